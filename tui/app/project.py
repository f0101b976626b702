"""Screen of a project: data, plan, runs, and in the other tabs the findings of the chosen run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Static

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.tui.parts.verdict_board import VerdictBoard
from sfumato.tui.session.export import ScreenExport
from sfumato.tui.session.gate_answers import BEING_EXAMINED, NOT_ASKED, NOT_EXAMINED, current_stamp, signed_answer_text
from sfumato.tui.session.words import run_state_text, tally_text
from sfumato.tui.terminal.painting import Backdrop
from sfumato.tui.terminal.text import cut_text
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import Line, TabLine
from sfumato.tui.widgets.panel import FrameEdge, FrameSides, TabEdge
from sfumato.workspace.reporting.words import PUBLIC_KEY, duration_text, sign_for
from sfumato.workspace.store.runs import (
    RunState,
    RunSummary,
    StoredRun,
    drew_from_tables,
    has_intruder_beliefs,
    has_protected_tables,
    list_project_summaries,
    summarise_runs,
)
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.quality import has_quality_results
from sfumato.workspace.views.studies import has_study_answers

from ..data.data import DataTab
from ..data.rows import RowsPane
from ..findings.behind import OpensRecords
from ..findings.diagnostics import DiagnosticsPane
from ..findings.dial import DialPane
from ..findings.levers import LeverChosen
from ..findings.map import MapPane
from ..findings.people_at_risk import PeopleAtRisk
from ..findings.records import RecordsPane
from ..findings.results import ResultsPane
from ..findings.study import StudiesPane
from ..findings.tables import CellDecided, TablesPane
from ..findings.verdicts import VerdictsPane
from ..parts.page import PageScreen, RunPane, title_line
from ..plan.plan import PlanTab
from ..runs.runs import RunsTab
from .next_step import ProjectStage, next_step_text, stage_of_project, step_with_keys
from .seals import ChecksRunSeals

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer

PLACES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "data": ("Data", {"data": "Variables", "rows": "Rows"}),
    "plan": ("Plan", {"plan": "Steps"}),
    "runs": ("Runs", {"runs": "List", "map": "Map"}),
    "findings": (
        "Findings",
        {
            "verdicts": "Verdicts",
            "tables": "Tables",
            "records": "Records",
            "results": "Numbers",
            "sweep": "Studies",
            "diagnostics": "Diagnostics",
        },
    ),
    "release": ("Release", {}),
}
"""Places of a project in the order of the work, each with its tabs by name; a release has a screen of its own that
looks like them.
"""
TABS = {name: title for _, tabs in PLACES.values() for name, title in tabs.items()}
PLACE_BY_TAB = {name: place for place, (_, tabs) in PLACES.items() for name in tabs}
TITLES = {"data": "Data", "plan": "Plan", "runs": "Runs", "sweep": "Studies", "results": "Results"}
"""Names of tabs in the manual, if they differ from the titles."""
RUN_TABS = frozenset({"results", "verdicts", "sweep", "diagnostics", "records", "tables", "map"})
OPTIONAL_TABS = frozenset({"tables"})
"""Tabs that stand among the others only for a run that has something to show there."""
PROJECT_TABS = frozenset({"data", "rows", "plan"})
"""Tabs whose contents do not depend on the run that the other tabs show."""
NO_RUN = """No runs yet, so there is nothing to show here.

  {plan}   the plan of this project; {run} there runs it
  {runs}   the runs; {new} there runs a recipe (built in or your own)"""
VIEWS = ("quality", "planes", "limits", "beliefs", "pairs")
"""Screens above the tabs, for runs that have something to show there."""


AT_PLACES = "next: {left} {right} go to another place; {open} goes to the page"
"""What the keys do in the line of places, with acts in braces."""
LEAST_TITLE = 12
"""Cells of the project's name that stay if the state of its run needs room."""
PAUSE_SECONDS = 0.1
REST_SECONDS = 0.3
"""Seconds that the cursor must rest on a row before the row is remembered."""
ASK_SECONDS = 1.0
"""Seconds on a page of findings until the gate is asked about its run; Verdicts asks at once."""
ProjectRuns = tuple[str, Sequence[RunSummary], Mapping[int, frozenset[str]], ProjectStage]


def _views_with_content(workspace: Workspace, run: StoredRun) -> frozenset[str]:
    """Return which of ``VIEWS`` have something to show for a run."""
    asked = {
        "quality": has_quality_results,
        "planes": has_study_answers,
        "limits": has_study_answers,
        "beliefs": has_intruder_beliefs,
        "pairs": drew_from_tables,
    }
    found = {name for name, has in asked.items() if has(workspace, run)}
    return frozenset(found | ({"tables"} if has_protected_tables(workspace, run.id) else set()))


class ProjectPanes(Backdrop, ContentSwitcher):
    """Switcher between the tabs."""


def _place_description(title: str, tabs: Mapping[str, str]) -> str:
    """Describe the key of a place; pressed again, it goes to the first tab."""
    return f"{title}; again: {next(iter(tabs.values()))}" if len(tabs) > 1 else title


class ProjectScreen(OpensRecords, ChecksRunSeals, PageScreen):
    """Screen with the places of a project: data, plan, runs, and the findings of one run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            bind_act(name, f"place('{name}')", _place_description(title, tabs))
            for name, (title, tabs) in PLACES.items()
            if name != "release"
        ),
        *(bind_act(name, f"show_tab('{name}')") for name in TABS if name not in PLACES),
        *(bind_act(name, f"view('{name}')") for name in VIEWS),
        bind_act("projects", "app.close_place"),
        bind_act("back", "step_back", "Clear the filter, or return to the list"),
        bind_act("next_tab", "tab(1)", "Next tab", show=True),
        bind_act("previous_tab", "tab(-1)", "Previous tab"),
        bind_act("report", "report"),
        bind_act("search", "guide", "Find the smallest sample"),
        bind_act("distributions", "distributions"),
        bind_act("release", "release"),
        bind_act("release_run", "release", "Release", show=True),
    ]

    @dataclass
    class PlanFingerprint(Message, bubble=False):
        """Message with the fingerprint of the recipe in a text; empty for a text that is not a recipe."""

        toml: str
        sha256: str

    def __init__(self, project_id: int, run_id: int | None, tab: str) -> None:
        """Create the screen; ``run_id`` is the run to show first, ``tab`` the tab."""
        super().__init__()
        self._project_id, self._run_id, self._wanted_run = project_id, run_id, run_id
        self._tab = tab if tab in TABS else "runs"
        self._last = {place: next(iter(tabs), "") for place, (_, tabs) in PLACES.items()}
        self._title = ""
        self._lines: Sequence[RunSummary] = ()
        self._views: Mapping[int, frozenset[str]] = {}
        self._is_read = False
        self._standing = ProjectStage()
        self._examined = "", ""
        self._offered: object = None
        made = (
            RunsTab(),
            ResultsPane(id="results"),
            VerdictsPane(),
            StudiesPane(),
            DiagnosticsPane(),
            RecordsPane(),
            TablesPane(),
            MapPane(),
        )
        self._panes: Mapping[str, RunPane] = {
            str(pane.id): pane for pane in (*made, DataTab(project_id), RowsPane(project_id), PlanTab(project_id))
        }
        self._bringing = asyncio.Lock()
        self._resting: Timer | None = None
        self._asks_gate: Timer | None = None

    def compose_body(self) -> ComposeResult:
        """Yield the places, the tabs, their contents, and the next step."""
        yield TabLine({place: title for place, (title, _) in PLACES.items()})
        yield TabEdge()
        with FrameSides():
            yield Static(id="no-run")
            # The other tabs are mounted later: a project opens as fast as one tab.
            yield ProjectPanes(self.pane, initial=self._tab, id="panes")
        yield FrameEdge(name="next-step", lower=True)

    def on_mount(self) -> None:
        """Show the tab that was open last."""
        self._show_place_names()
        self.pane.take_focus()
        self.return_to_row()
        # Elsewhere, as in tests, tabs are mounted when they are first shown.
        if self.sfumato.owns_process:
            self.run_worker(self._mount_all_panes(), exit_on_error=False)

    def manual_topics(self) -> Sequence[str]:
        """Return the topics of the tab."""
        return (*self.pane.manual_topics(), f"app {TITLES.get(self._tab, TABS[self._tab])}")

    @property
    def project_id(self) -> int:
        """Return the number of the project."""
        return self._project_id

    @property
    def tab(self) -> str:
        """Return the name of the shown tab."""
        return self._tab

    @property
    def pane(self) -> RunPane:
        """Return the shown tab."""
        return self._panes[self._tab]

    def ask_roles(self) -> None:
        """Ask for the roles of new data."""
        data = self._panes["data"]
        if isinstance(data, DataTab):
            data.ask_roles()

    @property
    def unsaved(self) -> str:
        """Return what would be lost if the project were closed, in a sentence."""
        plan = self._panes["plan"]
        return plan.unsaved if isinstance(plan, PlanTab) and plan.is_attached else ""

    @property
    def _runs_tab(self) -> RunsTab:
        """Return the tab with the list of runs."""
        runs = self._panes["runs"]
        assert isinstance(runs, RunsTab)
        return runs

    @property
    def _shown_grid(self) -> Grid | None:
        """Return the grid of the shown tab; None if it has none."""
        return next(iter(self.pane.query(Grid)), None)

    @property
    def row_to_remember(self) -> str:
        """Return the place of the row to remember; empty without a row."""
        return self._shown_grid.cursor_place if self._shown_grid is not None and self._shown_grid.row_count else ""

    def return_to_row(self) -> None:
        """Move the cursor to the row that was remembered."""
        if self._shown_grid is not None:
            self._shown_grid.return_to(self.sfumato.state.row)

    @on(Grid.RowHighlighted)
    def _handle_cursor_move(self) -> None:
        """Make the run under the cursor the current one, show the next step for the row, and remember the row once the
        cursor rests.
        """
        self._follow_cursor()
        self._show_next_step()
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST_SECONDS, self._remember_row)

    def _follow_cursor(self) -> None:
        """Make the run under the cursor of the list of runs the current one, unless a run that was just started is not yet
        listed.
        """
        here = self._runs_tab.current_run if self._tab == "runs" else None
        if here is not None and self._wanted_run is None and here.run.id != self._run_id:
            self._run_id = here.run.id
            self.sfumato.remember(run=here.run.id)
        if self._tab == "runs" and self._is_read and self.is_mounted:
            self._show_run_title(self.current_run_line)

    def _remember_row(self) -> None:
        """Remember the row under the cursor."""
        if self.row_to_remember:
            self.sfumato.remember(row=self.row_to_remember)

    async def _mount_pane(self, name: str) -> RunPane:
        """Return a tab, mounting it when it is first needed."""
        pane = self._panes[name]
        # Two keys in a row may need the same tab, which must be mounted once.
        async with self._bringing:
            if not pane.is_attached:
                pane.display = False
                await self.query_one(ProjectPanes).mount(pane)
        return pane

    async def _mount_all_panes(self) -> None:
        """Mount the other tabs, with pauses for keys."""
        for name in TABS:
            await asyncio.sleep(PAUSE_SECONDS)
            await self._mount_pane(name)

    @property
    def run_id(self) -> int | None:
        """Return the run that the tabs show: the chosen one, otherwise the newest."""
        known = [line.run.id for line in self._lines]
        # The chosen run may have been deleted; trials of a search are never chosen by default.
        started = [line.run.id for line in self._lines if line.run.search_id is None]
        return self._run_id if self._run_id in known else next(iter([*started, *known]), None)

    def read_query(self) -> Callable[[Workspace], ProjectRuns]:
        """Return the query for name, runs, and the views of each finished run."""
        project_id, seen, memory = self._project_id, self._views, self.sfumato.gate_memory

        def query(workspace: Workspace) -> ProjectRuns:
            """Read the project; views of finished runs are not read twice, as they do not change."""
            names, lines = (
                {line.id: line.name for line in list_project_summaries(workspace)},
                summarise_runs(workspace, project_id),
            )
            done = [line.run for line in lines if line.run.state is RunState.DONE]
            views = {run.id: seen[run.id] if run.id in seen else _views_with_content(workspace, run) for run in done}
            # The engine is imported for the stamp: while no run was examined, nobody needs it.
            stamp = current_stamp(workspace) if memory.runs else ""
            return (
                names.get(project_id, ""),
                lines,
                views,
                replace(stage_of_project(workspace, project_id), stamp=stamp),
            )

        return query

    def show_answer(self, answer: ProjectRuns) -> None:
        """Show the runs, and the chosen one in the other tabs."""
        first, self._is_read = not self._lines, True
        self._title, self._lines, self._views, self._standing = answer
        wanted = self._wanted_run if self._wanted_run in {line.run.id for line in self._lines} else None
        if first or wanted is not None:
            self._wanted_run = None
        self._runs_tab.take_answers(self.sfumato.gate_memory.release_answers(self._standing.stamp))
        self._runs_tab.show_runs(self._lines, self.run_id if first else wanted)
        self._show_run()
        # Some tabs stand among the others only for a run that has something to show there.
        self._show_place_names()
        self._identify_plan()

    def _show_run(self) -> None:
        """Show the current run in the title, the tab and the next step."""
        self._show_run_title(self.current_run_line)
        self._show_run_hint()
        self.pane.show_run(self._shown_line)
        self._show_next_step()
        self._ask_gate_soon()

    def _ask_gate_soon(self) -> None:
        """Ask the gate about the run in the title, unless its answer is known or the page itself asks."""
        if self._asks_gate is not None:
            self._asks_gate.stop()
            self._asks_gate = None
        line = self._shown_line
        # Runs and Verdicts ask at once, and a title that names a run says the same of it on every page.
        if line is None or PLACE_BY_TAB[self._tab] not in ("data", "plan", "findings") or self._tab == "verdicts":
            return
        if line.run.state is RunState.DONE and line.run.id not in self._gate_answers:
            self._asks_gate = self.set_timer(ASK_SECONDS, self._ask_gate)

    async def _ask_gate(self) -> None:
        """Ask the gate about the run that is shown, and say that it examines it."""
        await self._mount_pane("runs")
        if self._shown_line is not None:
            self._runs_tab.ask_gate_about(self._shown_line)
            self._show_run_title(self.current_run_line)

    @property
    def _shown_line(self) -> RunSummary | None:
        """Return the run that the tabs show; None without runs."""
        return next((line for line in self._lines if line.run.id == self.run_id), None)

    def _show_run_title(self, line: RunSummary | None) -> None:
        """Show the run in the title line, with the gate's answer if known, otherwise with its limits."""
        if line is None:
            self.set_title(f" {sign_for('into')} ", self._title)
            return
        self.check_seal_of(line.run)
        if self._tab in PROJECT_TABS:
            place = PLACES[PLACE_BY_TAB[self._tab]][0].lower()
            self.set_title(*self._title_parts(f"{place}  run {line.run.id}  ", line))
        else:
            self.set_title(*self._title_parts(self._run_description(line), line))

    def _run_description(self, line: RunSummary) -> str:
        """Return a run's number, name and state, each with two blanks behind it."""
        said = [
            f"{sign_for('fail')} not as it was sealed" if self.broken_seal_text(line.run) else "",
            f"run {line.run.id}",
            line.run.name,
            PUBLIC_KEY if line.run.key_public else "",
            run_state_text(line),
            duration_text(line.run.seconds) if line.run.state.is_final else "",
        ]
        return "".join(f"{part}  " for part in said if part)

    def _title_parts(
        self, state: str, line: RunSummary, answer: ReleaseAnswer | None = None
    ) -> list[tuple[str, str] | str]:
        """Return the name of the project, the state of a run, and the gate's answer for it with unmet limits after it.

        answer: the answer; by default the one that is known
        """
        into = f" {sign_for('into')} "
        answer = answer or self.sfumato.gate_memory.release_answers(self._standing.stamp).get(line.run.id)
        judged = self._unanswered_text(line) if answer is None else signed_answer_text(answer)
        room = self.size.width - len("Sfumato") - 2 * len(into) - cell_len(state + judged) - 2
        title = cut_text(self._title, max(LEAST_TITLE, room))
        return [into, (title, "bold"), into, state, (judged, "bold" if answer else "")]

    def _unanswered_text(self, line: RunSummary) -> str:
        """Return what is known of a run for which the gate has not answered: that, and its limits that are not met."""
        tally = line.verdicts
        # Limits that are met would read as a permission.
        limits = tally_text(tally) if tally.met < tally.total else ""
        if line.run.state is not RunState.DONE:
            return limits
        return "  ".join(filter(None, (self._gate_state_text(line.run.id), limits)))

    def _gate_state_text(self, run_id: int) -> str:
        """Return why there is no answer of the gate for a run: it examines it, it could not, or nobody has asked."""
        shown, gate = self.pane, self._runs_tab.gate
        if run_id == gate.asking or (isinstance(shown, VerdictsPane) and shown.is_examining):
            return BEING_EXAMINED
        # Verdicts asks at once, so that there nothing but a failure leaves a run without an answer.
        return NOT_EXAMINED if run_id in gate.unexamined or isinstance(shown, VerdictsPane) else NOT_ASKED

    @property
    def _gate_answers(self) -> Mapping[int, str]:
        """Return the gate's answers by run that are still valid."""
        return self.sfumato.gate_memory.answers_by_run(self._standing.stamp)

    @on(VerdictsPane.GateAnswerChanged)
    @on(RunsTab.GateAnswered)
    def _update_gate_answer(self) -> None:
        """Read the current stamp, then show the answer in the title line and in the next step."""
        self.reload()

    def _show_next_step(self) -> None:
        """Show the next step with its keys, for the run under the cursor or the one that the tab shows."""
        if self._is_read and self.is_mounted:
            toml, sha256 = self._examined
            known = self._tab == "plan" or toml == self._standing.toml
            standing = replace(
                self._standing.with_plan_run(self._lines, sha256 if known else ""),
                answers=self._gate_answers,
                findings_tab=self._last["findings"],
            )
            if isinstance(plan := self._panes["plan"], PlanTab):
                plan.set_run_of_plan(None if standing.plan_run is None else standing.plan_run.run.id)
                self._show_answer_in_plan(plan, standing.plan_run)
            at_places = self.query_one(TabLine).has_focus and not self._is_run_missing
            text = (AT_PLACES if at_places else self.pane.focused_step()) or next_step_text(
                standing, self.current_run_line, self._tab, self.pane.row_step()
            )
            step = step_with_keys(self.app, text)
            self.query_one("#next-step", Line).set_text(step)
            offered = tuple(map(self.in_footer, ("export", "release", "distributions"))), self.views, self._tab
            # Reading the bindings again takes long enough to be left out if nothing has changed.
            if offered != self._offered:
                self._offered = offered
                self.refresh_bindings()

    def _show_answer_in_plan(self, plan: PlanTab, plan_run: RunSummary | None) -> None:
        """Show in Plan what the gate said of the run of the plan, else of the current run; nothing where it was not asked."""
        answers = self.sfumato.gate_memory.release_answers(self._standing.stamp)
        answered = [line for line in (plan_run, self.current_run_line) if line is not None and line.run.id in answers]
        if not answered:
            plan.set_run_answer(None)
            return
        run = answered[0].run
        is_of_plan = plan_run is not None and run.recipe_sha256 == plan_run.run.recipe_sha256
        plan.set_run_answer((run.id, answers[run.id], is_of_plan))

    @on(events.DescendantFocus)
    @on(VerdictBoard.BoardCursorMoved)
    def _follow_focus(self) -> None:
        """Show the next step of the part that has the keys, and of the line under its cursor."""
        self._show_next_step()

    @on(PlanTab.PlanExamined)
    def _note_examined_plan(self, event: PlanTab.PlanExamined) -> None:
        """Remember the plan's fingerprint after each edit."""
        self._examined = event.view.toml, event.view.sha256
        self._show_next_step()

    def _identify_plan(self) -> None:
        """Find the fingerprint of a plan whose text is not the recipe of any run."""
        toml, standing = self._standing.toml, self._standing.with_plan_run(self._lines)
        # A run's recipe may differ in text from its plan, since it leaves out defaults.
        if toml and toml != self._examined[0] and standing.plan_run is None and self._lines:
            self._examined = toml, ""
            self._find_fingerprint(toml)

    @work(thread=True, exclusive=True, group="fingerprint", exit_on_error=False)
    def _find_fingerprint(self, toml: str) -> None:
        """Parse the plan in a thread and post its fingerprint."""
        from sfumato.workspace.plan.edits import parse_plan

        self.post_message(self.PlanFingerprint(toml, parse_plan(toml).sha256))

    @on(PlanFingerprint)
    def _note_fingerprint(self, event: PlanFingerprint) -> None:
        """Store the fingerprint, unless the plan was edited since."""
        if self._examined == (event.toml, ""):
            self._examined = event.toml, event.sha256
            self._show_next_step()

    def show_broken_seal(self) -> None:
        """Show in the title that the run differs from its seal."""
        self._show_run()

    @property
    def _is_run_missing(self) -> bool:
        """Return whether the tab would show a run, but no run exists."""
        return self._is_read and not self._lines and self._tab in RUN_TABS

    def _show_run_hint(self) -> None:
        """Show the keys that lead to a run in place of an empty tab."""
        said, panes = self.query_one("#no-run", Static), self.query_one("#panes", ContentSwitcher)
        if said.display == self._is_run_missing:
            return
        said.display, panes.display = self._is_run_missing, not self._is_run_missing
        if said.display:
            said.update(NO_RUN.format(**{act: current_key(self.app, act) for act in ("plan", "run", "runs", "new")}))
            self.query_one(TabLine).focus()

    def select_run(self, run_id: int) -> None:
        """Make this run the current one; the cursor of the runs goes there once the run is listed."""
        self._run_id = self._wanted_run = run_id
        self.sfumato.remember(run=run_id)
        self.reload()

    @on(RunsTab.RunChosen)
    @on(MapPane.MapRunChosen)
    async def _open_chosen_run(self, event: RunsTab.RunChosen | MapPane.MapRunChosen) -> None:
        """Open the run that was chosen in the list or the map."""
        line = next(line for line in self._lines if line.run.id == event.run_id)
        others = "tables" if "tables" in self._views.get(event.run_id, frozenset()) else "results"
        await self.open_run(event.run_id, "verdicts" if line.verdicts.total else others)

    async def open_run(self, run_id: int, tab: str, measure: int | None = None, row: int | None = None) -> None:
        """Show a tab of a run; with ``measure``, the records of the measure at this place, the cursor in ``row``."""
        self._run_id = run_id
        self._runs_tab.show_runs(self._lines, run_id)
        self.sfumato.remember(run=run_id)
        records = self._panes["records"]
        if measure is not None and isinstance(records, RecordsPane):
            records.show_by_measure(run_id, measure, row)
        self._show_run()
        await self.action_show_tab(tab)

    @on(ResultsPane.PictureRequested)
    async def _show_distribution(self, event: ResultsPane.PictureRequested) -> None:
        """Show the distributions of the requested variable."""
        await self.action_distributions(event.variable)

    @on(RunsTab.RunDuplicated)
    async def _plan_from_run(self, event: RunsTab.RunDuplicated) -> None:
        """Make the plan that of a run, with weights if they are given."""
        await self.action_show_tab("plan")
        self.query_one(PlanTab).start_from_run(event.run_id, event.weights)

    @on(DataTab.PlanDrafted)
    async def _use_draft(self, event: DataTab.PlanDrafted) -> None:
        """Make the drafted text the plan."""
        from ..plan.drafting import draft_text

        await self.action_show_tab("plan")
        self.query_one(PlanTab).replace_text(event.draft.toml, draft_text(event.draft))

    @on(VerdictBoard.NumbersSelected)
    async def _show_results_tab(self) -> None:
        """Show all numbers of the run."""
        await self.action_show_tab("results")

    @on(PeopleAtRisk.PersonSelected)
    async def _show_person(self, event: PeopleAtRisk.PersonSelected) -> None:
        """Show the chosen person among the records of the run."""
        if self._shown_line is not None:
            await self.open_run(self._shown_line.run.id, "records", 0, event.row)

    @on(VerdictsPane.TableCellRequested)
    async def _show_table_cell(self, event: VerdictsPane.TableCellRequested) -> None:
        """Show the tables of the run, at the cell that a finding of the gate names."""
        await self.action_show_tab("tables")
        if isinstance(self.pane, TablesPane):
            self.pane.show_named_cell(event.text)

    @on(DialPane.StudiesRequested)
    async def _show_studies_tab(self) -> None:
        """Show the studies of the run, that of every subset first."""
        await self.action_show_tab("sweep")
        if isinstance(self.pane, StudiesPane):
            self.pane.show_lattice()

    @on(CellDecided)
    async def _apply_cell_decision(self, event: CellDecided) -> None:
        """Make the plan that of the run with a cell published or hidden."""
        await self.action_show_tab("plan")
        self.query_one(PlanTab).replace_draft(event.changed, event.text)

    @on(LeverChosen)
    async def _apply_lever(self, event: LeverChosen) -> None:
        """Make the plan that of the run with the change of a lever, and show the difference; where the user must decide how,
        make it that of the run.
        """
        from ..findings.levers import PlanChange

        await self.action_show_tab("plan")
        lever, plan = event.lever, self.query_one(PlanTab)
        if not lever.toml:
            plan.replace_draft(event.draft, f"To do in the plan of run {event.run_id}: {lever.text}")
            return
        changed = event.draft.with_text(lever.toml)
        plan.replace_draft(changed, f"The plan of run {event.run_id} has changed: {lever.text} (u undoes)")

        def run_or_undo(answer: str | None) -> None:
            """Run the changed plan or undo the change."""
            if answer is not None:
                self.call_later(plan.run_confirmed if answer == "run" else plan.action_undo)

        await self.sfumato.open(PlanChange(lever), run_or_undo)

    @on(RunsTab.RunsMarked)
    def _overlay_marked_runs(self, event: RunsTab.RunsMarked) -> None:
        """Draw the studies of marked runs together."""
        sweep = self._panes["sweep"]
        assert isinstance(sweep, StudiesPane)
        sweep.overlay_runs(event.run_ids)

    @on(RunsTab.MapRequested)
    async def _show_map(self) -> None:
        """Show the map."""
        await self.action_show_tab("map")

    @on(TabLine.PageEntered)
    def _enter_page(self) -> None:
        """Go from the line of places to the rows of the tab."""
        if not self._is_run_missing:
            self.pane.take_focus()

    def action_step_back(self) -> None:
        """Clear the filter, or return to the list; the project stays open, and a message says how to close it."""
        if self._is_run_missing:
            self._say_how_to_close()
            return
        before = self.focused
        self.pane.take_focus()
        if not self.pane.clear_filter() and self.focused is before:
            self._say_how_to_close()

    def _say_how_to_close(self) -> None:
        """Show the keys that close the project."""
        close, projects = (current_key(self.app, act) for act in ("close", "projects"))
        self.sfumato.say(f"{close} or {projects} closes the project; its runs keep running")

    @on(TabLine.TabChosen)
    @on(TabEdge.EdgeTabChosen)
    async def _open_chosen_tab(self, event: TabLine.TabChosen | TabEdge.EdgeTabChosen) -> None:
        """Go to the clicked place or tab."""
        if event.name == "release":
            await self.action_release()
        else:
            await self._switch_tab(event.name if event.name in TABS else self._last[event.name])

    async def action_place(self, name: str) -> None:
        """Go to a place, at the tab that it showed last; if it is shown already, to its first tab."""
        first = next(iter(self._tabs_of_place(name)))
        await self.action_show_tab(first if PLACE_BY_TAB[self._tab] == name else self._last[name])

    async def action_tab(self, step: int) -> None:
        """Go to the next tab of the place, or to the previous one; after the last comes the first."""
        tabs = list(self._tabs_of_place(PLACE_BY_TAB[self._tab]))
        await self.action_show_tab(tabs[(tabs.index(self._tab) + step) % len(tabs)])

    async def take_words(self, act: str, words: str) -> None:
        """Go to a place or tab, for the run or with the filter that ``words`` name."""
        tab = act if act in TABS else self._last.get(act, "")
        run = next((line.run.id for line in self._lines if words in (str(line.run.id), line.run.name)), None)
        if not tab:
            self.sfumato.say(f"{act.replace('_', '-')} takes no words")
            return
        if run is not None and tab in RUN_TABS:
            await self.open_run(run, tab)
            return
        await self.action_show_tab(tab)
        sift = getattr(self.pane, "filter_rows", None)
        if sift is None:
            self.sfumato.say(f"{TABS[tab]} has no filter, and there is no run {words}")
        else:
            sift(words)

    def _tabs_of_place(self, place: str) -> Mapping[str, str]:
        """Return the tabs of a place that have something to show for the run, and the one that is shown."""
        shown = self._views.get(self.run_id or 0, frozenset()) | {self._tab}
        return {name: title for name, title in PLACES[place][1].items() if name not in OPTIONAL_TABS or name in shown}

    def _show_place_names(self) -> None:
        """Show the name of the place and its tabs, with the present one marked."""
        place = PLACE_BY_TAB[self._tab]
        self._last[place] = self._tab
        self.query_one(TabLine).active = place
        counted = f": {self.pane.heading_count}" if self.pane.heading_count and not self._is_run_missing else ""
        named = Content.styled(f"{PLACES[place][0]}{counted}", "bold")
        title = None if self._is_run_missing else self.pane.frame_title
        self.query_one(TabEdge).show_tabs(
            title or named,
            self._tabs_of_place(place),
            self._tab,
            whole=title is not None,
            shorter=() if title is None else self.pane.shorter_titles,
        )

    @on(RunPane.CountChanged)
    def _update_counts(self) -> None:
        """Show the changed count of the tab."""
        if self.is_mounted:
            self._show_place_names()

    async def action_show_tab(self, name: str) -> None:
        """Show a tab and focus it."""
        await self._switch_tab(name)
        if not self._is_run_missing:
            self.pane.take_focus()

    async def _switch_tab(self, name: str) -> None:
        """Show a tab, mounting it if needed, and remember it."""
        await self._mount_pane(name)
        self._tab = name
        self._show_place_names()
        self.query_one("#panes", ContentSwitcher).current = name
        self.sfumato.remember(tab=name, row=self.row_to_remember)
        self._show_run()

    def make_exportable(self) -> ScreenExport | None:
        """Return what the tab exports."""
        return self.pane.make_exportable()

    def command_words(self) -> tuple[str, ...]:
        """Return the command that shows what the tab does."""
        return ("plan", self._title) if self._tab == "plan" else self.pane.command_words()

    @property
    def current_run_line(self) -> RunSummary | None:
        """Return the run that the title names and every key acts on: the one under the cursor of the list, else the one that
        the tabs show.
        """
        runs = self._runs_tab
        return runs.current_run if self._tab == "runs" and runs.is_listed else self._shown_line

    @property
    def views(self) -> frozenset[str]:
        """Return which of ``VIEWS`` have something to show for that run."""
        here = self.current_run_line if self.is_mounted else None
        return frozenset() if here is None else self._views.get(here.run.id, frozenset())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable a view that would be empty, and another tab where there is one alone."""
        if action == "tab":
            return not self._is_run_missing and len(self._tabs_of_place(PLACE_BY_TAB[self._tab])) > 1
        return parameters[0] in self.views if action == "view" else super().check_action(action, parameters)

    def in_footer(self, action: str) -> bool:
        """Return whether the footer shows an action: a release for a run that is done, distributions if
        there are data.
        """
        if action in ("release", "report"):
            return (
                self.is_mounted
                and self.current_run_line is not None
                and self.current_run_line.run.state is RunState.DONE
            )
        if not getattr(self.pane, "in_footer", lambda _: True)(action):
            return False
        return self._standing.has_data if action == "distributions" else super().in_footer(action)

    @property
    def can_export(self) -> bool:
        """Return whether the tab has a table or a plot to export."""
        return self.pane.can_export and not self._is_run_missing

    async def action_view(self, name: str) -> None:
        """Show a run's data quality, studies, intruder beliefs, or kept pairs."""
        from ..findings.beliefs import BeliefsDialog
        from ..findings.kept_pairs import KeptPairs
        from ..findings.quality import QualityDialog
        from ..findings.study import StudyDialog

        if self.current_run_line is None:
            return
        dialogs = {"quality": QualityDialog, "beliefs": BeliefsDialog, "pairs": KeptPairs}
        opened = (
            dialogs[name](self.current_run_line.run.id) if name in dialogs else StudyDialog(self.current_run_line, name)
        )
        await self.sfumato.open(opened)

    async def action_guide(self) -> None:
        """Ask in plain words for what a search for the smallest sufficient sample needs, and start it."""
        from ..plan.guided_minimisation import ask_and_start_minimisation

        await ask_and_start_minimisation(self.sfumato, self._project_id)

    async def action_distributions(self, variable: str | None = None) -> None:
        """Show the distributions of the variable under the cursor, with the released values if the run is done."""
        from ..findings.distribution import DistributionsDialog

        here, data = self.current_run_line, self.pane
        if variable is None and isinstance(data, DataTab) and data.current_row is not None:
            variable = data.current_row.variable.name
        ended = here is not None and here.run.state is RunState.DONE
        await self.sfumato.open(
            DistributionsDialog(self._project_id, here.run.id if here and ended else None, variable)
        )

    async def action_report(self) -> None:
        """Ask where to write the report of that run, and write it."""
        from ..release.reports import report_form

        here = self.current_run_line
        if here is None or here.run.state is not RunState.DONE:
            self.sfumato.say("Only a run that is done has a report")
            return
        await self.sfumato.open(*report_form(self.sfumato, here.run.id))

    async def action_release(self) -> None:
        """Show what a release of the run would contain."""
        from ..release.release import ReleaseScreen

        here = self.current_run_line
        if here is None or here.run.state is not RunState.DONE:
            self.sfumato.say("Only a run that is done can be released")
            return
        places = {place: title for place, (title, _) in PLACES.items()}
        # From Data and Plan, too, the title is that of the run.
        described = self._run_description(here)

        def title_with_answer(answer: ReleaseAnswer | None) -> Content:
            """Return the title line with the gate's answer."""
            return title_line(*self._title_parts(described, here, answer))

        release = ReleaseScreen(here.run.id, places, title_with_answer)

        def show_chosen_place(place: str | None) -> None:
            """Go to the place for which the release was left."""
            if place == "projects":
                # The app closes this screen: a screen that waited for its own removal would wait for ever.
                self.app.call_later(self.app.run_action, "close_place")
            elif place is not None:
                self.call_later(self.action_show_tab, self._last[place])

        await self.sfumato.open(release, show_chosen_place)
