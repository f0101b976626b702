"""Dialog with the commands equivalent to what the screen shows and to what was done in this session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Static

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session.clipboard import copy_to_clipboard_and_file
from sfumato.tui.session.messages import JobDone
from sfumato.tui.widgets.grid import LiveGrid
from sfumato.tui.widgets.tables import GridTable, TableColumn
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.tables import TableDialog

NONE = "Nothing has been done yet that a command does too."


class CommandGrid(LiveGrid):
    """Grid of commands in which enter copies one."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Copy", show=True), bind_act("copy", "select")]


TABLE: GridTable[tuple[str, str]] = GridTable(
    (
        TableColumn("what", "", 10, cell=lambda line: line[0]),
        TableColumn("command", "command", 20, grow_order=1, cell=lambda line: replace_unprintable(line[1])),
    )
)


class EquivalentCommands(TableDialog[tuple[str, str], None]):
    """Dialog with the command that shows the same as the screen below, then what was done, newest first; enter copies
    one.
    """

    id_prefix = "commands"
    DEFAULT_CSS = (
        "EquivalentCommands #commands-reading { height: auto; max-height: 50%; padding: 0 1; background: $surface; }"
    )

    def __init__(self, shows: str, done: Sequence[str]) -> None:
        """Create the dialog; ``shows`` is empty if no command shows the same."""
        super().__init__()
        here = [("shows this", shows)] if shows else []
        self._lines = [*here, *(("did this", text) for text in reversed(done))]

    def make_grid(self) -> CommandGrid:
        """Return the grid of commands."""
        return CommandGrid(empty=NONE)

    def compose_below_table(self) -> Iterator[Widget]:
        """Yield the text for the whole command under the cursor."""
        yield Static("", id="commands-reading", markup=False)

    def on_mount(self) -> None:
        """Show the title and the commands."""
        self.set_head("Equivalent commands (a line with + or - changes the plan)")
        self.show_rows(TABLE, self._lines)

    def describe_row(self, row: tuple[str, str]) -> str:
        """Return the whole command."""
        return replace_unprintable(row[1])

    async def open_row(self, row: tuple[str, str]) -> None:
        """Copy the command."""
        text, app = row[1], self.sfumato
        osc52 = partial(app.call_from_thread, app.copy_to_clipboard)
        app.job(
            lambda: JobDone(f"{copy_to_clipboard_and_file(text, app.directory, osc52)}: {replace_unprintable(text)}")
        )
