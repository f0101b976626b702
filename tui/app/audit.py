"""The audit log: every act that changed the workspace, and whether the log is as it was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind
from sfumato.tui.session.audit_verification import verified
from sfumato.tui.session.export import Exportable, lines_of
from sfumato.tui.widgets.tables import Table, TableColumn
from sfumato.workspace.audit import AuditRow, audit_rows
from sfumato.workspace.reporting.words import details_text, mark
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.page import Exports
from ..parts.tables import TableDialog

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace

VerifiedLog = tuple[Sequence[AuditRow], bool, str]
"""The rows, whether they are whole, and what there is to say."""
TABLE: Table[AuditRow] = Table(
    (
        TableColumn("number", "row", 6, "right", cell=lambda row: row.number),
        TableColumn("time", "time (UTC)", 19, cell=lambda row: row.time[:19].replace("T", " ")),
        TableColumn("act", "act", 18, cell=lambda row: row.act),
        TableColumn("subject", "of", 12, cell=lambda row: row.subject),
        TableColumn("details", "details", 20, grows=1, cell=lambda row: details_text(row.details)),
    ),
    key=lambda row: row.number,
)


class Audit(TableDialog[AuditRow, None], Exports):
    """Newest first; the log is verified when it is opened and on request."""

    manual = "operations audit and seals"
    called = "audit"
    computes = True

    BINDINGS: ClassVar[list[BindingType]] = [bind("run", "verify", "Verify", show=True)]

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[AuditRow] = ()
        self._asked = False

    def action_verify(self) -> None:
        """Check the log once more, and say that this was done."""
        self._asked = True
        self.reload()

    def read_query(self) -> Callable[[Workspace], VerifiedLog]:
        """The log, every row of it checked."""
        self.say_head("Verifying the audit log …")
        return _read

    def take(self, answer: VerifiedLog) -> None:
        """Show it, with the cursor on what is broken."""
        rows, whole, said = answer
        self._rows = rows[::-1]
        said, *more = said.splitlines()
        said += f" (and {len(more)} more: sfumato audit verify)" if more and not whole else ""
        style, sign = ("$success bold", mark("pass")) if whole else ("$error bold", mark("fail"))
        words = "The audit log is whole: " if whole else ""
        self.say_head(Content.assemble((f"{sign} {words}{replace_unprintable(said)}", style)))
        if self._asked:
            self.sfumato.say(
                f"Verified {count_noun(len(self._rows), 'row')} once more", "information" if whole else "error"
            )
        self.show_rows(TABLE, self._rows, None if whole else _row_named(said))

    def reading(self, row: AuditRow) -> str:
        return f"row {row.number}, sha256 {row.hash[:16]}: {replace_unprintable(details_text(row.details))}"

    def command_words(self) -> tuple[str, ...]:
        return ("audit", "list")

    def exportable(self) -> Exportable | None:
        rows = self._rows[::-1]
        return Exportable("audit-log", lambda: lines_of(AuditRow, rows)) if rows else None


def _read(workspace: Workspace) -> VerifiedLog:
    return audit_rows(workspace.connection), *verified(workspace, None)


def _row_named(said: str) -> int | None:
    """The row that is said to be broken."""
    found = re.search(r"\brow (\d+)", said)
    return int(found.group(1)) if found else None
