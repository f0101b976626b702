"""Dialog with the audit log: every act that changed the workspace, and whether the log was tampered with."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session.audit_verification import verify_sealed_workspace
from sfumato.tui.session.export import ScreenExport, table_of_records
from sfumato.tui.widgets.tables import GridTable, TableColumn
from sfumato.workspace.audit import AuditRow, audit_rows
from sfumato.workspace.reporting.words import details_text, sign_for
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.page import OffersExport
from ..parts.tables import TableDialog

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace

VerifiedLog = tuple[Sequence[AuditRow], bool, str]
"""Rows of the log, whether the log is intact, and the report of the verification."""
TABLE: GridTable[AuditRow] = GridTable(
    (
        TableColumn("number", "row", 6, "right", cell=lambda row: row.number),
        TableColumn("time", "time (UTC)", 19, cell=lambda row: row.time[:19].replace("T", " ")),
        TableColumn("act", "act", 18, cell=lambda row: row.act),
        TableColumn("subject", "of", 12, cell=lambda row: row.subject),
        TableColumn("details", "details", 20, grow_order=1, cell=lambda row: details_text(row.details)),
    ),
    key=lambda row: row.number,
)


class AuditLogDialog(TableDialog[AuditRow, None], OffersExport):
    """Dialog with the audit log, newest row first; it is verified when opened and on request."""

    manual = "operations audit and seals"
    id_prefix = "audit"
    needs_engine = True

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("run", "verify", "Verify", show=True)]

    def __init__(self) -> None:
        """Create the dialog."""
        super().__init__()
        self._rows: Sequence[AuditRow] = ()
        self._asked = False

    def action_verify(self) -> None:
        """Verify the log again, and show that this was done."""
        self._asked = True
        self.reload()

    def read_query(self) -> Callable[[Workspace], VerifiedLog]:
        """Return the query for the log with every row verified."""
        self.set_head("Verifying the audit log …")
        return _read_verified_log

    def show_answer(self, answer: VerifiedLog) -> None:
        """Show the log with the cursor on the first broken row."""
        rows, whole, said = answer
        self._rows = rows[::-1]
        said, *more = said.splitlines()
        said += f" (and {len(more)} more: sfumato audit verify)" if more and not whole else ""
        style, sign = ("$success bold", sign_for("pass")) if whole else ("$error bold", sign_for("fail"))
        words = "The audit log is whole: " if whole else ""
        self.set_head(Content.assemble((f"{sign} {words}{replace_unprintable(said)}", style)))
        if self._asked:
            self.sfumato.say(
                f"Verified {count_noun(len(self._rows), 'row')} once more", "information" if whole else "error"
            )
        self.show_rows(TABLE, self._rows, None if whole else _broken_row_number(said))

    def describe_row(self, row: AuditRow) -> str:
        """Return number, hash and details of a row."""
        return f"row {row.number}, sha256 {row.hash[:16]}: {replace_unprintable(details_text(row.details))}"

    def command_words(self) -> tuple[str, ...]:
        return ("audit", "list")

    def make_exportable(self) -> ScreenExport | None:
        """Return the log for export, oldest row first."""
        rows = self._rows[::-1]
        return ScreenExport("audit-log", lambda: table_of_records(AuditRow, rows)) if rows else None


def _read_verified_log(workspace: Workspace) -> VerifiedLog:
    """Read the log, and verify it together with the seals."""
    found = verify_sealed_workspace(workspace, None)
    return audit_rows(workspace.connection), found.unchanged, found.text


def _broken_row_number(report: str) -> int | None:
    """Return the number of the row that is reported as broken."""
    found = re.search(r"\brow (\d+)", report)
    return int(found.group(1)) if found else None
