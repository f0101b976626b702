"""First screen: every project, its size, and the state of its newest run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.tui.parts.fields import FormField
from sfumato.tui.session import jobs
from sfumato.tui.session.gate_answers import current_stamp, known_answer_text
from sfumato.tui.session.words import listed_state_text, tally_text, tasks_done_text
from sfumato.tui.widgets.facts import titled_facts
from sfumato.tui.widgets.grid import HEADER, Grid
from sfumato.tui.widgets.lines import is_same_text
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.tui.widgets.panel import FrameEdge, FrameSides
from sfumato.tui.widgets.tables import Columns, GridTable, TableColumn
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.reporting.words import duration_text, records_and_dropped_text
from sfumato.workspace.store.database import DATABASE
from sfumato.workspace.store.runs import ProjectSummary, RunState, RunSummary, list_project_summaries, summarise_runs
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.data_view import read_dataset_outline

from ..parts.page import PageScreen
from ..parts.sifted import FilteredList
from ..parts.tables import TableScreen

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer

    ListedProjects = tuple[list[ProjectSummary], Mapping[int, ReleaseAnswer]]

MOST_RUNS, LEAST_FACTS = 6, 4
"""Newest runs of a project that are named below the list, and least lines for the facts about it."""
LEAST_OF_TALL = 20
"""Lines below the list from which the ways to begin follow the facts at once."""
NONE = "No projects yet. Start with:"
FIRST_STEPS = (
    ("demo", "Open the demo: 20,190 person-years of a health insurance study"),
    ("import", "Import a file: text, Excel, SPSS, Stata, SAS, Parquet and others"),
    ("check_file", "Check a file that somebody anonymised: k, l, t"),
    ("new", "Run a recipe (built in or your own)"),
    ("workspace", "Open or create a workspace"),
    ("keys", "All keys (works on every screen)"),
)
"""Acts that are possible without projects, each with a description."""
OTHERS = "Another project"
OTHER_STEPS = FIRST_STEPS[1:]
"""Acts that lead to another project, where there is one."""


Facts = list[tuple[str, str]]
FIRST_TABS = {"data": "data", "plan": "plan", "runs": "runs", "findings": "verdicts"}
"""Places of a project that its digits open, each with the tab shown first."""


def _newest_run_cell(cell: Callable[[RunSummary], object]) -> Callable[[ProjectSummary], object]:
    """Return the function for a cell of the project's newest run; empty if it has none."""
    return lambda line: cell(line.last) if line.last else ""


COLUMNS: Columns[ProjectSummary] = (
    TableColumn("name", "project", 14, grow_order=1, cell=lambda line: line.name),
    TableColumn("datasets", "datasets", 8, "right", drop_order=2, yields=True, cell=lambda line: line.datasets),
    TableColumn("runs", "runs", 5, "right", cell=lambda line: line.runs),
    TableColumn(
        "run",
        "newest run",
        10,
        "right",
        drop_order=3,
        yields=True,
        cell=lambda line: line.last and line.last.run.id,
    ),
    TableColumn("state", "state", 13, cell=_newest_run_cell(listed_state_text)),
    TableColumn(
        "seconds",
        "time",
        9,
        "right",
        drop_order=1,
        yields=True,
        cell=_newest_run_cell(lambda last: duration_text(last.run.seconds)),
    ),
    TableColumn(
        "verdicts",
        "limits",
        16,
        drop_order=5,
        yields=True,
        cell=_newest_run_cell(lambda last: tally_text(last.verdicts)),
    ),
)
STATE_PLACE = 4
"""Place of the state among the columns; the gate's answer follows it, and the limits come after it."""


def projects_table(answers: Mapping[int, ReleaseAnswer]) -> GridTable[ProjectSummary]:
    """Return the table of projects with the gate's ``answers`` that are known, by run."""
    answer = TableColumn(
        "answer", "may it leave?", 15, cell=_newest_run_cell(lambda last: _answer_or_progress(last, answers))
    )
    return GridTable((*COLUMNS[: STATE_PLACE + 1], answer, *COLUMNS[STATE_PLACE + 1 :]), key=lambda line: line.id)


def _answer_or_progress(last: RunSummary, answers: Mapping[int, ReleaseAnswer]) -> str:
    """Return the gate's answer for a run, or how far a run is that is not done."""
    return known_answer_text(last.run, answers) if last.run.state is RunState.DONE else tasks_done_text(last.run)


class ProjectGrid(MarkedGrid):
    """Grid of projects in which enter opens one."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Open", show=True)]


class ProjectsScreen(TableScreen[ProjectSummary], FilteredList, PageScreen):
    """Screen with the list of projects; the root screen."""

    manual = "tutorial"
    export_file = "projects"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("new", "app.new_run", "New run", show=True),
        bind_act("import", "import", "Import", show=True),
        bind_act("workspace", "workspace", "Workspace"),
        bind_act("demo", "demo"),
        bind_act("delete", "delete", "Delete a project"),
        *(bind_act(name, f"place('{tab}')") for name, tab in FIRST_TABS.items()),
        bind_act("close", "app.close_place", "Quit", show=True),
    ]
    DEFAULT_CSS = """
    #welcome { display: none; padding: 1 2; }
    #project-facts { display: none; height: 1fr; padding: 1 1 0 1; }
    """

    def __init__(self) -> None:
        """Create the screen."""
        super().__init__()
        self._lines: list[ProjectSummary] = []
        self._answers: Mapping[int, ReleaseAnswer] = {}
        self._facts: tuple[ProjectSummary | None, Facts] = None, []

    def compose_body(self) -> ComposeResult:
        """Yield the table of projects, or what to do while it is empty."""
        yield FrameEdge(name="projects-head")
        with FrameSides():
            yield Static(id="welcome")
            yield ProjectGrid(empty="…")
            yield Static("", id="project-facts", markup=False)
            yield from self.compose_filter()
        yield FrameEdge(lower=True)

    def read_query(self) -> Callable[[Workspace], ListedProjects]:
        """Return the query for all projects, and the gate's answers that are still valid."""
        memory = self.sfumato.gate_memory

        def query(workspace: Workspace) -> ListedProjects:
            """Read the projects."""
            # The engine is imported for the stamp: while no run was examined, nobody needs it.
            answers = memory.release_answers(current_stamp(workspace)) if memory.runs else {}
            return list_project_summaries(workspace), answers

        return query

    def show_answer(self, answer: ListedProjects) -> None:
        """Show the projects, and the directory of the workspace."""
        self._lines, answers = answer
        if answers != self._answers:
            # The facts name the answers too.
            self._answers, self._facts = answers, (None, [])
        self.refresh_bindings()
        self.show_rows(projects_table(answers), self._lines)
        self._show_welcome()
        self.set_title(f"  {self.sfumato.directory}")
        self.query_one("#projects-head", FrameEdge).set_text(Content.styled(f"Projects: {len(self._lines)}", "bold"))
        self._show_facts()

    def on_resize(self) -> None:
        """Lay the facts about a project out in the new size."""
        self.call_after_refresh(self._show_facts)

    @on(Grid.RowHighlighted)
    @on(Grid.SourceOpened)
    def _show_facts(self) -> None:
        """Show the data and the newest runs of the project under the cursor, and what to do next, below the list."""
        grid, shown = self.query_one(ProjectGrid), self.query_one("#project-facts", Static)
        here = self.current_row if self._lines else None
        needed = len(grid.row_keys) + HEADER
        space = self.query_one(FrameSides).size
        room = space.height - needed - 1
        fits = here is not None and room >= LEAST_FACTS
        grid.styles.height = needed if fits else "1fr"
        shown.display = fits
        if here is None or not fits:
            return
        known, facts = self._facts
        if known != here:
            self._facts = here, facts if known is not None and known.id == here.id else []
            self.read(partial(_read_project_facts, here, self._answers), self._take_facts)
            if known is not None:
                # What stands there is painted over once, when the facts are here.
                return
        keys = {act: current_key(self.app, act) for act in ("open", "findings", "mark")}
        way = f"{keys['open']} opens it; {keys['findings']} opens its findings, which say whether a run may leave; {keys['mark']} marks it"
        text = titled_facts(here.name, [*self._facts[1], ("next", way)], max(20, space.width - 2))
        others = self._ways_to_begin(OTHER_STEPS)
        if (free := room - len(text.split("\n")) - len(others) - 1) >= 1:
            # At the foot of a low terminal they stay where they are, whatever stands above them.
            gap = free if room < LEAST_OF_TALL else 1
            text = Content("\n").join([text, *[Content("")] * gap, Content.styled(OTHERS, "bold"), *others])
        text = Content("\n").join(text.split("\n")[:room])
        if not is_same_text(shown.content, text):
            shown.update(text)

    def _take_facts(self, answer: tuple[ProjectSummary, Facts]) -> None:
        """Show the facts that were read, unless another project is under the cursor by now."""
        if answer[0] == self._facts[0]:
            self._facts = answer
            self._show_facts()

    def _show_welcome(self) -> None:
        """Show the keys to begin with in place of an empty table."""
        grid, welcome = self.query_one(ProjectGrid), self.query_one("#welcome", Static)
        grid.display, welcome.display = bool(self._lines), not self._lines
        # The table was hidden while it was empty, and a hidden widget cannot keep the focus.
        if self._lines and self.focused is None:
            grid.focus()
        ways = Content("\n").join(self._ways_to_begin(FIRST_STEPS))
        welcome.update(Content.assemble((NONE, "bold"), "\n\n", ways))

    def _ways_to_begin(self, steps: Sequence[tuple[str, str]]) -> list[Content]:
        """Return a line for each act with its key, or with that of the palette, which finds it by its name."""
        keys = {name: current_key(self.app, name) or current_key(self.app, "palette") for name, _ in steps}
        width = max(map(cell_len, keys.values())) + 1
        return [Content.assemble("  ", (f"{keys[name]:<{width}}", "$primary bold"), text) for name, text in steps]

    @property
    def can_export(self) -> bool:
        """Return whether there are projects to export."""
        return bool(self._lines)

    def action_demo(self) -> None:
        """Run the built-in study and show it."""
        self.sfumato.say("The demo is being prepared: 20,190 person-years of the RAND Health Insurance Experiment")
        self.sfumato.job(partial(jobs.open_demo, self.sfumato.directory))

    async def action_import(self) -> None:
        """Ask for a file, import it into a project, and show its variables."""
        from ..parts.form import Form

        def import_chosen_file(table: dict[str, Any] | None) -> None:
            """Detect the format of the chosen file."""
            if table is not None:
                self.sfumato.reading_notice.begin(table["file"])
                self.sfumato.job(
                    partial(jobs.detect_format, self.sfumato.directory, table["file"], table.get("project", ""))
                )

        fields = [
            FormField(
                "file",
                "text, Excel, SPSS, Stata, SAS, Parquet and others; right completes the path",
                completes_paths=True,
            ),
            FormField("project", "the project it belongs to; left out, the file's name"),
        ]
        await self.sfumato.open(
            Form("Import a file", fields, check_import_file, topic="commands sfumato import"), import_chosen_file
        )

    async def action_workspace(self) -> None:
        """Ask for another workspace, and open it."""
        from ..parts.form import Form

        def open_chosen_workspace(table: dict[str, Any] | None) -> None:
            """Open the chosen workspace."""
            if table is not None:
                directory = Path(table["directory"]).expanduser().resolve()
                self.sfumato.job(partial(jobs.open_workspace, directory))

        field = FormField(
            "directory", "a workspace, or a new or empty directory; right completes the path", completes_paths=True
        )
        await self.sfumato.open(Form("Open a workspace", [field], check_workspace_form), open_chosen_workspace)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable opening and deleting if there are no projects."""
        return bool(self._lines) if action in ("delete", "place") else super().check_action(action, parameters)

    async def action_delete(self) -> None:
        """Ask, then delete the marked projects, or the one under the cursor if none is marked."""
        from ..parts.dialogs import ConfirmDialog

        chosen = self.query_one(ProjectGrid).chosen_keys
        lines = [line for line in self._lines if line.id in chosen]
        if not lines:
            return

        def delete_if_confirmed(yes: bool | None) -> None:
            """Delete the projects if the user has confirmed."""
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
        await self.sfumato.open(ConfirmDialog(f"Delete {what}?", consequence, "Delete"), delete_if_confirmed)

    async def take_words(self, act: str, words: str) -> None:
        """Show the projects that contain these words."""
        if act == "projects":
            self.filter_rows(words)
        else:
            self.sfumato.say(f"Open a project first: {act} {words} is of a project")

    async def action_place(self, tab: str) -> None:
        """Open the project under the cursor at a place."""
        if (row := self.current_row) is not None:
            await self.sfumato.open_project(row.id, tab=tab)

    async def open_row(self, row: ProjectSummary) -> None:
        """Open the chosen project."""
        await self.sfumato.open_project(row.id)


def _read_project_facts(
    line: ProjectSummary, answers: Mapping[int, ReleaseAnswer], workspace: Workspace
) -> tuple[ProjectSummary, Facts]:
    """Read the data of a project and its newest runs, trials of searches left out; ``answers`` are the gate's by run."""
    facts: Facts = []
    draft = find_draft(workspace, line.id)
    if draft is not None:
        outline = read_dataset_outline(workspace, draft.dataset_id)
        columns = count_noun(len(outline.columns), "variable")
        facts.append(
            ("data", f"{outline.name}: {records_and_dropped_text(outline.records, outline.dropped)}, {columns}")
        )
    started = [one for one in summarise_runs(workspace, line.id) if one.run.search_id is None]
    for at, one in enumerate(started[:MOST_RUNS]):
        # Limits that are met would read as a permission before the gate's answer.
        judged = f"may it leave: {answered}" if (answered := known_answer_text(one.run, answers)) else ""
        state, time = listed_state_text(one), duration_text(one.run.seconds)
        parts = [one.run.full_title, state, judged, tally_text(one.verdicts), time]
        facts.append(("" if at else "runs", f"{one.run.id}  {' · '.join(filter(None, parts))}"))
    left = len(started) - MOST_RUNS
    return line, [*facts, *([("", f"and {count_noun(left, 'earlier run')}")] if left > 0 else [])]


def check_import_file(table: dict[str, Any]) -> None:
    """Raise BadInput unless a form names a file."""
    file = table.get("file", "")
    if not file or not Path(file).expanduser().is_file():
        raise BadInput("file", f'no such file "{file}"' if file else "name a file")


def check_workspace_form(table: dict[str, Any]) -> None:
    """Raise BadInput unless a form names a workspace, or a directory for a new one."""
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
