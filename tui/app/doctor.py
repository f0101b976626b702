"""Dialog with problems of the installation, the terminal and the workspace, and with the repairs possible here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.tables import GridTable, TableColumn
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.dialogs import ConfirmDialog
from ..parts.page import OffersExport
from ..parts.tables import TableDialog

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.upkeep.maintenance import WorkspaceCheck

SIGNS = {"ok": "pass", "note": "not computed", "problem": "fail"}
ORDER = ("problem", "note", "ok")
TABLE: GridTable[WorkspaceCheck] = GridTable(
    (
        TableColumn("state", "", 9, cell=lambda check: f"{sign_for(SIGNS[check.state])} {check.state}"),
        TableColumn("what", "what", 18, cell=lambda check: check.what),
        TableColumn("text", "finding", 40, grow_order=1, cell=lambda check: check.text),
    ),
    sort_key=lambda check: ORDER.index(check.state),
)


class DoctorDialog(TableDialog["WorkspaceCheck", None], OffersExport):
    """Dialog with the checks of installation, terminal and workspace, problems first; they run when opened and on
    request.
    """

    manual = "operations disk"
    id_prefix = export_file = "doctor"
    needs_engine = True

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("run", "again", "Check again", show=True),
        bind_act("delete", "fix", "Remove files that no run needs", show=True),
    ]

    def __init__(self) -> None:
        """Create the dialog."""
        super().__init__()
        self._asked = False

    def on_mount(self) -> None:
        """Run the checks."""
        self._run_checks()

    def action_again(self) -> None:
        """Run all checks again, and report that this was done."""
        self._asked = True
        self._run_checks()

    def _run_checks(self) -> None:
        """Run the checks in a thread."""
        self.set_head("Looking at the installation, the terminal and the workspace …")
        directory = self.sfumato.directory

        def checks(_: Workspace) -> Sequence[WorkspaceCheck]:
            """Import and run the checks."""
            from sfumato.tui.session.doctor_checks import all_checks

            return all_checks(directory)

        self.compute(checks, self.show_answer)

    def show_answer(self, found: Sequence[WorkspaceCheck]) -> None:
        """Show the checks and count their results."""
        counts = {state: sum(check.state == state for check in found) for state in ORDER}
        names = {"problem": ("problem", "problems"), "note": ("note", "notes"), "ok": ("in order", "in order")}
        said = [f"{count} {names[state][count != 1]}" for state, count in counts.items() if count]
        self.set_head(f"{sign_for('fail' if counts['problem'] else 'pass')} {', '.join(said)}")
        self.show_rows(TABLE, found)
        if self._asked:
            self.sfumato.say("Everything was looked at once more", "error" if counts["problem"] else "information")
        self._asked = False

    def describe_row(self, row: WorkspaceCheck) -> str:
        """Return the finding of a check."""
        return replace_unprintable(row.text)

    async def action_fix(self) -> None:
        """Ask, then remove the files that no run needs, and check again."""

        def remove(workspace: Workspace) -> int:
            """Remove the files and return their number."""
            from sfumato.workspace.upkeep.maintenance import remove_orphans

            return remove_orphans(workspace)

        question = ConfirmDialog(
            "Remove the files of this workspace that no run needs?",
            "They are left over from runs that were deleted or ended before they were done. What a run has stays.",
        )

        def remove_if_confirmed(yes: bool | None) -> None:
            """Remove the files if the user has confirmed."""
            if yes:
                self.compute(remove, self._report_removed_files)

        await self.sfumato.open(question, remove_if_confirmed)

    def _report_removed_files(self, removed: int) -> None:
        """Report the number of removed files, and check again."""
        self.sfumato.note_command(("doctor", "--fix"))
        self.sfumato.say(f"{count_noun(removed, 'file')} removed that no run needed")
        self._run_checks()

    def command_words(self) -> tuple[str, ...]:
        """Return the command that runs the same checks."""
        return ("doctor",)
