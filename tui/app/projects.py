"""The first screen: every project, how much is in it, and how its newest run stands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind
from sfumato.tui.keys.own_keys import key_for
from sfumato.tui.parts.fields import Field
from sfumato.tui.session import jobs
from sfumato.tui.session.words import progress, state_text, tally_text
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.tui.widgets.panel import Edge, Sides
from sfumato.tui.widgets.tables import Table, TableColumn
from sfumato.workspace.reporting.words import duration
from sfumato.workspace.store.database import DATABASE
from sfumato.workspace.store.runs import Project, RunLine, projects
from sfumato.workspace.store.workspace import Workspace

from ..parts.page import Page
from ..parts.sifted import Sifted
from ..parts.tables import TableScreen

NONE = "No projects yet. Start with:"
WAYS = (
    ("demo", "Open the demo: 20,190 person-years of a health insurance study"),
    ("import", "Import a file: text, Excel, SPSS, Stata, SAS, Parquet and others"),
    ("new", "Run a recipe (built in or your own)"),
    ("workspace", "Open or create a workspace"),
    ("keys", "All keys (works on every screen)"),
)
"""What can be done while there is nothing: an act and what it does."""


FIRST_TABS = {"data": "data", "plan": "plan", "runs": "runs", "findings": "verdicts"}
"""The places of a project that its digits open, each with the tab that is shown there first."""


def _newest(cell: Callable[[RunLine], object]) -> Callable[[Project], object]:
    """A cell of the project's newest run; empty where it has none."""
    return lambda line: cell(line.last) if line.last else ""


TABLE: Table[Project] = Table(
    (
        TableColumn("name", "project", 14, grows=1, cell=lambda line: line.name),
        TableColumn("datasets", "datasets", 8, "right", spare=2, cell=lambda line: line.datasets),
        TableColumn("runs", "runs", 5, "right", cell=lambda line: line.runs),
        TableColumn("run", "newest run", 10, "right", spare=3, cell=lambda line: line.last and line.last.run.id),
        TableColumn("state", "state", 13, cell=_newest(state_text)),
        TableColumn("progress", "tasks", 14, "right", spare=4, cell=_newest(lambda last: progress(last.run))),
        TableColumn("seconds", "time", 9, "right", spare=1, cell=_newest(lambda last: duration(last.run.seconds))),
        TableColumn("verdicts", "verdicts", 16, cell=_newest(lambda last: tally_text(last.tally))),
    ),
    key=lambda line: line.id,
)


class ProjectGrid(MarkedGrid):
    BINDINGS: ClassVar[list[BindingType]] = [bind("open", "select", "Open", show=True)]


class Projects(TableScreen[Project], Sifted, Page):
    manual = "tutorial"
    exports = "projects"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("new", "app.new_run", "New run", show=True),
        bind("import", "import", "Import", show=True),
        bind("workspace", "workspace", "Workspace", show=True),
        bind("demo", "demo"),
        bind("delete", "delete", "Delete a project"),
        *(bind(name, f"place('{tab}')") for name, tab in FIRST_TABS.items()),
        bind("close", "app.close_place", "Quit", show=True),
    ]
    DEFAULT_CSS = "#welcome { display: none; padding: 1 2; }"

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[Project] = []

    def compose_body(self) -> ComposeResult:
        """One table, or what to do while it is empty."""
        yield Edge(name="projects-head")
        with Sides():
            yield Static(id="welcome")
            yield ProjectGrid(empty="…")
            yield from self.compose_sift()
        yield Edge(lower=True)

    def read_query(self) -> Callable[[Workspace], list[Project]]:
        return projects

    def take(self, answer: list[Project]) -> None:
        self._lines = answer
        self.refresh_bindings()
        self.show_rows(TABLE, answer)
        self._welcome()
        self.say_where(f"  {self.sfumato.directory}")
        self.query_one("#projects-head", Edge).say(Content.styled(f"Projects: {len(answer)}", "bold"))

    def _welcome(self) -> None:
        """In place of an empty table, the keys to begin with."""
        grid, welcome = self.query_one(ProjectGrid), self.query_one("#welcome", Static)
        grid.display, welcome.display = bool(self._lines), not self._lines
        if self._lines and self.focused is None:
            grid.focus()
        ways = [
            Content.assemble("\n  ", (f"{key_for(self.app, name):<4}", "$primary bold"), text) for name, text in WAYS
        ]
        welcome.update(Content.assemble((NONE, "bold"), "\n", *ways))

    @property
    def can_export(self) -> bool:
        return bool(self._lines)

    def action_demo(self) -> None:
        """Run the shipped study and look at it."""
        self.sfumato.say("The demo is being prepared: 20,190 person-years of the RAND Health Insurance Experiment")
        self.sfumato.job(partial(jobs.open_demo, self.sfumato.directory))

    async def action_import(self) -> None:
        """Ask for a file, bring it into a project, and look at its variables."""
        from ..parts.form import Form

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                self.sfumato.reading_notice.begin(table["file"])
                self.sfumato.job(
                    partial(jobs.detect_format, self.sfumato.directory, table["file"], table.get("project", ""))
                )

        fields = [
            Field("file", "text, Excel, SPSS, Stata, SAS, Parquet and others; right completes the path", paths=True),
            Field("project", "the project it belongs to; left out, the file's name"),
        ]
        await self.sfumato.open(Form("Import a file", fields, check_file, topic="commands sfumato import"), answered)

    async def action_workspace(self) -> None:
        """Ask for another workspace, and open it."""
        from ..parts.form import Form

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                directory = Path(table["directory"]).expanduser().resolve()
                self.sfumato.job(partial(jobs.open_workspace, directory))

        field = Field("directory", "a workspace, or a new or empty directory; right completes the path", paths=True)
        await self.sfumato.open(Form("Open a workspace", [field], check_workspace), answered)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without projects none can be opened or deleted."""
        return bool(self._lines) if action in ("delete", "place") else super().check_action(action, parameters)

    async def action_delete(self) -> None:
        """Ask, then delete the marked projects, or else the one under the cursor."""
        from ..parts.dialogs import Confirm

        chosen = self.query_one(ProjectGrid).chosen
        lines = [line for line in self._lines if line.id in chosen]
        if not lines:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                ids = tuple(line.id for line in lines)
                self.sfumato.job(partial(jobs.delete_projects, self.sfumato.directory, ids))

        runs = sum(line.runs for line in lines)
        one = len(lines) == 1
        what = (
            f"the project {lines[0].name}"
            if one
            else f"{count_noun(len(lines), 'project')}: {', '.join(x.name for x in lines)}"
        )
        consequence = (
            f"{'Its' if one else 'Their'} {count_noun(runs, 'run')} with all they found, the plan and the confidential data "
            "imported are removed for good. The audit log keeps that there were such runs; files outside the workspace are not touched."
        )
        await self.sfumato.open(Confirm(f"Delete {what}?", consequence, "Delete"), answered)

    async def take_words(self, act: str, words: str) -> None:
        """Show the projects that have these words."""
        if act == "projects":
            self.sift_by(words)
        else:
            self.sfumato.say(f"Open a project first: {act} {words} is of a project")

    async def action_place(self, tab: str) -> None:
        """Open the project under the cursor at a place."""
        if (row := self.here) is not None:
            await self.sfumato.open_project(row.id, tab=tab)

    async def chosen(self, row: Project) -> None:
        await self.sfumato.open_project(row.id)


def check_file(table: dict[str, Any]) -> None:
    """BadInput unless a form names a file."""
    file = table.get("file", "")
    if not file or not Path(file).expanduser().is_file():
        raise BadInput("file", f'no such file "{file}"' if file else "name a file")


def check_workspace(table: dict[str, Any]) -> None:
    """BadInput unless a form names a workspace or a place for one."""
    given = table.get("directory", "")
    directory = Path(given).expanduser()
    if not given:
        raise BadInput("directory", "name a directory")
    if (
        not (directory / DATABASE).is_file()
        and directory.exists()
        and (not directory.is_dir() or any(directory.iterdir()))
    ):
        raise BadInput("directory", "it has other things in it; name a workspace, or a new or empty directory")
