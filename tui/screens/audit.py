"""The audit log: every act that changed the workspace, and whether the log is as it was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from sfumato.engine.wording import counted
from sfumato.tui.cli.admin_tables import verified
from sfumato.tui.export import Exportable, lines_of
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.workspace.audit import AuditRow, audit_rows
from sfumato.workspace.reporting.tables import Column, cells, fitted
from sfumato.workspace.reporting.words import details_text, mark
from sfumato.workspace.visible_text import printable

from .page import Dialog, Exports

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace

VerifiedLog = tuple[Sequence[AuditRow], bool, str]
"""The rows, whether they are whole, and what there is to say."""
COLUMNS = (
    Column("number", "row", 6, "right"),
    Column("time", "time (UTC)", 19),
    Column("act", "act", 18),
    Column("subject", "of", 12),
    Column("details", "details", 20),
)


class Audit(Dialog[None], Exports):
    """Newest first; the log is verified when it is opened and on request."""

    manual = "operations audit and seals"

    BINDINGS: ClassVar[list[BindingType]] = [Binding("v", "verify", "Verify", id="audit.verify")]
    AUTO_FOCUS = "Grid"

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[AuditRow] = ()
        self._asked = False

    def compose(self) -> ComposeResult:
        """The verdict on the log, its rows, the details of one, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="audit-head")
            yield LiveGrid(empty="…")
            yield Line(name="audit-reading")
            yield KeyLine()

    computes = True

    def action_verify(self) -> None:
        """Check the log once more, and say that this was done."""
        self._asked = True
        self.reload()

    def read_query(self) -> Callable[[Workspace], VerifiedLog]:
        """The log, every row of it checked."""
        self.query_one("#audit-head", Line).say("Verifying the audit log …")
        return _read

    def take(self, answer: VerifiedLog) -> None:
        """Show it, with the cursor on what is broken."""
        rows, whole, said = answer
        self._rows = rows[::-1]
        said, *more = said.splitlines()
        said += f" (and {len(more)} more: sfumato audit verify)" if more and not whole else ""
        style, sign = ("$success bold", mark("pass")) if whole else ("$error bold", mark("fail"))
        words = "The audit log is whole: " if whole else ""
        self.query_one("#audit-head", Line).say(Content.assemble((f"{sign} {words}{printable(said)}", style)))
        if self._asked:
            self.sfumato.say(
                f"Verified {counted(len(self._rows), 'row')} once more", "information" if whole else "error"
            )
        self._show(None if whole else _row_named(said))

    def on_resize(self) -> None:
        """Give the columns their new widths, once there are rows."""
        if self._rows:
            self._show(None)

    def _show(self, want: int | None) -> None:
        columns = fitted(COLUMNS, self.size.width - 1, ("details",))
        rows = [cells(columns, _values(row)) for row in self._rows]
        self.query_one(LiveGrid).show(columns, rows, [row.number for row in self._rows], want)

    @on(Grid.Highlighted)
    @on(Grid.Opened)
    def _move(self) -> None:
        index = self.query_one(LiveGrid).cursor
        row = self._rows[index] if index < len(self._rows) else None
        text = (
            "" if row is None else f"row {row.number}, sha256 {row.hash[:16]}: {printable(details_text(row.details))}"
        )
        self.query_one("#audit-reading", Line).say(text)

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


def _values(row: AuditRow) -> dict[str, object]:
    return {
        "number": row.number,
        "time": row.time[:19].replace("T", " "),
        "act": row.act,
        "subject": row.subject,
        "details": details_text(row.details),
    }
