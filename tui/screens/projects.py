"""The first screen: every project, how much is in it, and how its newest run stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from tui.console import duration
from tui.exhibits import Exhibit
from tui.widgets.columns import cells, fitted
from tui.widgets.grid import Grid
from tui.widgets.live import LiveGrid
from tui.widgets.pages import Column
from tui.words import progress, state_text, tally_text
from workspace.views import ProjectLine, project_lines

from .exhibiting import grid_exhibit
from .page import Page

EMPTY = "No project yet. Press n to run a recipe, or in a shell: sfumato demo"
COLUMNS = (
    Column("name", "project", 20),
    Column("datasets", "datasets", 8, "right"),
    Column("runs", "runs", 5, "right"),
    Column("run", "newest run", 10, "right"),
    Column("state", "state", 13),
    Column("progress", "tasks", 14, "right"),
    Column("seconds", "time", 9, "right"),
    Column("verdicts", "verdicts", 16),
)


class ProjectGrid(LiveGrid):
    """The projects."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Open", id="projects.open")]


class Projects(Page):
    """The root of the app."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "app.new_run", "New run", id="projects.new"),
    ]

    @dataclass
    class Arrived(Message):
        """The projects were read."""

        lines: list[ProjectLine]

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[ProjectLine] = []

    def compose_body(self) -> ComposeResult:
        """One table."""
        yield ProjectGrid(empty=EMPTY)

    def reload(self) -> None:
        """Read the projects."""
        self.read(project_lines, self.Arrived)

    @on(Arrived)
    def _take(self, event: Arrived) -> None:
        self._lines = event.lines
        self._show()

    def on_resize(self) -> None:
        """Give the columns their new widths."""
        self._show()

    def _show(self) -> None:
        columns = fitted(COLUMNS, self.size.width - 1, ("name",), ("seconds", "datasets", "run", "progress"))
        rows = [cells(columns, _values(line)) for line in self._lines]
        self.query_one(LiveGrid).show(columns, rows, [line.id for line in self._lines])
        self.say_where(f"  {self.sfumato.directory}")

    def exhibit(self) -> Exhibit | None:
        """The table of projects."""
        return grid_exhibit(self.query_one(Grid), "projects")

    @on(Grid.Selected)
    async def _open(self, event: Grid.Selected) -> None:
        await self.sfumato.open_project(self._lines[event.index].id)


def _values(line: ProjectLine) -> dict[str, object]:
    last = line.last
    return {
        "name": line.name,
        "datasets": line.datasets,
        "runs": line.runs,
        "run": last.run.id if last else None,
        "state": state_text(last) if last else "",
        "progress": progress(last.run) if last else "",
        "seconds": duration(last.run.seconds) if last else "",
        "verdicts": tally_text(last.tally) if last else "",
    }
