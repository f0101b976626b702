"""The commands that equal what this screen shows and what was done in this session, to be copied into a script."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from sfumato.tui.clipboard import send
from sfumato.tui.messages import JobDone
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import KeyLine
from sfumato.workspace.reporting.tables import Column
from sfumato.workspace.visible_text import printable

from .page import Dialog

NONE = "Nothing has been done yet that a command does too."


class CommandGrid(LiveGrid):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,Y", "select", "Copy", id="commands.copy")]


class Commands(Dialog[None]):
    """The command that shows the same as the screen below, then what was done, the last first; enter copies one."""

    AUTO_FOCUS = "Grid"
    DEFAULT_CSS = "Commands #command-whole { height: auto; max-height: 50%; padding: 0 1; background: $surface; }"

    def __init__(self, shows: str, done: Sequence[str]) -> None:
        super().__init__()
        here = [("shows this", shows)] if shows else []
        self._lines = [*here, *(("did this", text) for text in reversed(done))]

    def compose(self) -> ComposeResult:
        """A line a command, the whole of the one under the cursor, and the keys."""
        with Vertical(classes="whole"):
            yield Static(
                "Commands that equal what was done here (a line with + or - is of the plan)",
                classes="dialog-title",
                markup=False,
            )
            yield CommandGrid(empty=NONE)
            yield Static("", id="command-whole", markup=False)
            yield KeyLine()

    def on_mount(self) -> None:
        self._show()

    def on_resize(self) -> None:
        """Give the columns their new widths."""
        self._show()

    def _show(self) -> None:
        columns = (Column("what", "", 10), Column("command", "command", max(20, self.size.width - 13)))
        rows = [(what, printable(text)) for what, text in self._lines]
        self.query_one(CommandGrid).show(columns, rows, list(range(len(rows))))

    @on(Grid.Highlighted)
    @on(Grid.Opened)
    def _read(self) -> None:
        at = self.query_one(CommandGrid).cursor
        said = printable(self._lines[at][1]) if at < len(self._lines) else ""
        self.query_one("#command-whole", Static).update(said)

    @on(Grid.Selected)
    def _copy(self, event: Grid.Selected) -> None:
        text, app = self._lines[event.index][1], self.sfumato
        osc52 = partial(app.call_from_thread, app.copy_to_clipboard)
        app.job(lambda: JobDone(f"{send(text, app.directory, osc52)}: {printable(text)}"))
