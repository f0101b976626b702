"""What is right and wrong with the installation, the terminal and the workspace; and what can be put right from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from sfumato.engine.wording import counted
from sfumato.tui.export import Exportable
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.workspace.reporting.tables import Column, cells, fitted
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.visible_text import printable

from .dialogs import Confirm
from .page import Dialog, Exports, grid_exportable

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.upkeep.maintenance import Check

COLUMNS = (Column("state", "", 9), Column("what", "what", 18), Column("text", "finding", 40))
SIGNS = {"ok": "pass", "note": "not computed", "problem": "fail"}
ORDER = ("problem", "note", "ok")


class Doctor(Dialog[None], Exports):
    """Problems first; looked at when it is opened and on request."""

    manual = "operations disk"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "again", "Check again", id="doctor.check"),
        Binding("f", "fix", "Remove files that no run needs", id="doctor.fix"),
    ]
    AUTO_FOCUS = "Grid"

    computes = True

    def __init__(self) -> None:
        super().__init__()
        self._found: Sequence[Check] = ()
        self._asked = False

    def compose(self) -> ComposeResult:
        """The sum of it, the findings, the one under the cursor in full, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="doctor-head")
            yield LiveGrid(empty="…")
            yield Line(name="doctor-reading")
            yield KeyLine()

    def on_mount(self) -> None:
        self._look()

    def action_again(self) -> None:
        """Look at everything once more, and say that this was done."""
        self._asked = True
        self._look()

    def _look(self) -> None:
        self.query_one("#doctor-head", Line).say("Looking at the installation, the terminal and the workspace …")
        directory = self.sfumato.directory

        def checks(_: Workspace) -> Sequence[Check]:
            from sfumato.tui.cli.admin_tables import all_checks

            return sorted(all_checks(directory), key=lambda check: ORDER.index(check.state))

        self.compute(checks, self._show)

    def _show(self, found: Sequence[Check]) -> None:
        self._found = found
        counts = {state: sum(check.state == state for check in found) for state in ORDER}
        names = {"problem": ("problem", "problems"), "note": ("note", "notes"), "ok": ("in order", "in order")}
        said = [f"{count} {names[state][count != 1]}" for state, count in counts.items() if count]
        self.query_one("#doctor-head", Line).say(f"{mark('fail' if counts['problem'] else 'pass')} {', '.join(said)}")
        self._lay_out()
        if self._asked:
            self.sfumato.say("Everything was looked at once more", "error" if counts["problem"] else "information")
        self._asked = False

    def on_resize(self) -> None:
        """Give the columns their new widths, once there are findings."""
        if self._found:
            self._lay_out()

    def _lay_out(self) -> None:
        columns = fitted(COLUMNS, self.size.width - 1, ("text",))
        rows = [cells(columns, _values(check)) for check in self._found]
        self.query_one(LiveGrid).show(columns, rows, list(range(len(rows))))

    @on(Grid.Highlighted)
    @on(Grid.Opened)
    def _read(self) -> None:
        at = self.query_one(LiveGrid).cursor
        found = self._found[at : at + 1]
        self.query_one("#doctor-reading", Line).say(printable(found[0].text) if found else "")

    async def action_fix(self) -> None:
        """Ask, then remove the files that no run needs, and look again."""

        def remove(workspace: Workspace) -> int:
            from sfumato.workspace.upkeep.maintenance import remove_orphans

            return remove_orphans(workspace)

        question = Confirm(
            "Remove the files of this workspace that no run needs?",
            "They are left over from runs that were deleted or ended before they were done. What a run has stays.",
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self.compute(remove, self._removed)

        await self.sfumato.open(question, answered)

    def _removed(self, removed: int) -> None:
        self.sfumato.note_command(("doctor", "--fix"))
        self.sfumato.say(f"{counted(removed, 'file')} removed that no run needed")
        self._look()

    def command_words(self) -> tuple[str, ...]:
        return ("doctor",)

    def exportable(self) -> Exportable | None:
        return grid_exportable(self.query_one(Grid), "doctor")


def _values(check: Check) -> dict[str, object]:
    return {"state": f"{mark(SIGNS[check.state])} {check.state}", "what": check.what, "text": check.text}
