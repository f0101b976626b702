"""One project: its runs, and in the other tabs what the chosen run found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Static

from sfumato.tui.keys.acts import bind
from sfumato.tui.keys.own_keys import key_for
from sfumato.tui.parts.verdict_board import VerdictBoard
from sfumato.tui.session.export import Exportable
from sfumato.tui.session.gate_answers import SHORT_ANSWERS, STATE_SIGNS, current_stamp
from sfumato.tui.session.words import state_text, tally_text
from sfumato.tui.terminal.painting import Backdrop
from sfumato.tui.terminal.text import cut
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import Line, TabLine
from sfumato.tui.widgets.panel import Edge, Sides, TabEdge
from sfumato.workspace.reporting.words import PUBLIC_KEY, duration, mark
from sfumato.workspace.store.runs import Run, RunLine, RunState, has_beliefs, has_pairs, projects, run_lines
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.quality import has_quality
from sfumato.workspace.views.studies import has_answers

from ..data.data import Data
from ..findings.behind import LeadsBehind
from ..findings.diagnostics import Diagnostics
from ..findings.map import Map
from ..findings.records import Records
from ..findings.results import Results
from ..findings.study import Studies
from ..findings.verdicts import Verdicts
from ..parts.page import Page, Pane
from ..plan.plan import Plan
from ..runs.runs import Runs
from .next_step import Standing, next_step, standing_of, step_text
from .seals import HoldsSeals

PLACES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "data": ("Data", {"data": "Variables"}),
    "plan": ("Plan", {"plan": "Steps"}),
    "runs": ("Runs", {"runs": "List", "map": "Map"}),
    "findings": (
        "Findings",
        {
            "verdicts": "Verdicts",
            "records": "Records",
            "results": "Numbers",
            "sweep": "Studies",
            "diagnostics": "Diagnostics",
        },
    ),
    "release": ("Release", {}),
}
"""The places of a project in the order of the work, each with its tabs by name; a release has a screen of its own that looks like them."""
TABS = {name: title for _, tabs in PLACES.values() for name, title in tabs.items()}
PLACE_OF = {name: place for place, (_, tabs) in PLACES.items() for name in tabs}
TITLES = {"data": "Data", "plan": "Plan", "runs": "Runs", "sweep": "Studies", "results": "Results"}
"""What the manual calls tabs, where that is not what stands above them."""
OF_A_RUN = frozenset({"results", "verdicts", "sweep", "diagnostics", "records", "map"})
OF_THE_PROJECT = frozenset({"data", "plan"})
"""What they show is not of the run that the other tabs show."""
NO_RUN = """No runs yet, so there is nothing to show here.

  {plan}   the plan of this project; {run} there runs it
  {runs}   the runs; {new} there runs a recipe (built in or your own)"""
VIEWS = ("quality", "planes", "limits", "beliefs", "pairs")
"""Screens above the tabs, for the runs that have something to show there."""


LEAST_TITLE = 12
"""Cells of the project's name that stay where the state of its run needs room."""
PAUSE_SECONDS = 0.1
REST_SECONDS = 0.3
"""The row of the cursor is remembered once it has stood still for so long."""
ProjectRuns = tuple[str, Sequence[RunLine], Mapping[int, frozenset[str]], Standing]


def _views_of(workspace: Workspace, run: Run) -> frozenset[str]:
    """Which of ``VIEWS`` a run has something to show in; none before it is done."""
    asked = {
        "quality": has_quality,
        "planes": has_answers,
        "limits": has_answers,
        "beliefs": has_beliefs,
        "pairs": has_pairs,
    }
    return frozenset(name for name, has in asked.items() if has(workspace, run))


class Panes(Backdrop, ContentSwitcher):
    pass


def _with_tabs(title: str, tabs: Mapping[str, str]) -> str:
    """What the key of a place does: pressed again, it goes to the next tab."""
    return f"{title}; again: its next tab" if len(tabs) > 1 else title


class Project(LeadsBehind, HoldsSeals, Page):
    """The runs of a project, its data, and ways to look at one of its runs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            bind(name, f"place('{name}')", _with_tabs(title, tabs))
            for name, (title, tabs) in PLACES.items()
            if name != "release"
        ),
        *(bind(name, f"show_tab('{name}')") for name in TABS if name not in PLACES),
        *(bind(name, f"view('{name}')") for name in VIEWS),
        bind("projects", "app.close_place"),
        bind("report", "report"),
        bind("search", "guide", "Find the smallest sample"),
        bind("distributions", "distributions"),
        bind("release", "release"),
        bind("release_run", "release", "Release", show=True),
    ]

    @dataclass
    class Fingerprint(Message, bubble=False):
        """The fingerprint of the recipe that a text is; empty where it is none."""

        toml: str
        sha256: str

    def __init__(self, project_id: int, run_id: int | None, tab: str) -> None:
        super().__init__()
        self._project_id, self._run_id = project_id, run_id
        self._tab = tab if tab in TABS else "runs"
        self._last = {place: next(iter(tabs), "") for place, (_, tabs) in PLACES.items()}
        self._title = ""
        self._lines: Sequence[RunLine] = ()
        self._views: Mapping[int, frozenset[str]] = {}
        self._is_read = False
        self._standing = Standing()
        self._examined = "", ""
        self._offered: object = None
        made = (Runs(), Results(id="results"), Verdicts(), Studies(), Diagnostics(), Records(), Map())
        self._panes: Mapping[str, Pane] = {str(pane.id): pane for pane in (*made, Data(project_id), Plan(project_id))}
        self._bringing = asyncio.Lock()
        self._resting: Timer | None = None

    def compose_body(self) -> ComposeResult:
        yield TabLine({place: title for place, (title, _) in PLACES.items()})
        yield TabEdge()
        with Sides():
            yield Static(id="no-run")
            yield Panes(self.pane, initial=self._tab, id="panes")
        yield Edge(name="next-step", lower=True)

    def on_mount(self) -> None:
        """Show the tab that was open last."""
        self._name_place()
        self.pane.take_focus()
        self.return_to_row()
        if self.sfumato.alone:
            self.run_worker(self._bring_all(), exit_on_error=False)

    def manual_topics(self) -> Sequence[str]:
        return (*self.pane.manual_topics(), f"app {TITLES.get(self._tab, TABS[self._tab])}")

    @property
    def project_id(self) -> int:
        return self._project_id

    @property
    def pane(self) -> Pane:
        return self._panes[self._tab]

    def ask_roles(self) -> None:
        """Have the roles of new data asked for."""
        data = self._panes["data"]
        if isinstance(data, Data):
            data.ask_roles()

    @property
    def unsaved(self) -> str:
        """What would be lost if the project were left, in a sentence."""
        plan = self._panes["plan"]
        return plan.unsaved if isinstance(plan, Plan) and plan.is_attached else ""

    @property
    def _grid(self) -> Grid | None:
        return next(iter(self.pane.query(Grid)), None)

    @property
    def row_here(self) -> str:
        """The row that is to be remembered; empty where there is none."""
        return self._grid.place if self._grid is not None and self._grid.count else ""

    def return_to_row(self) -> None:
        """Have the cursor go to the row that was remembered."""
        if self._grid is not None:
            self._grid.return_to(self.sfumato.state.row)

    @on(Grid.Highlighted)
    def _moved(self) -> None:
        self._say_next()
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST_SECONDS, self._remember_row)

    def _remember_row(self) -> None:
        if self.row_here:
            self.sfumato.remember(row=self.row_here)

    async def _bring(self, name: str) -> Pane:
        """A tab, mounted when it is first needed: a project opens as fast as one tab."""
        pane = self._panes[name]
        async with self._bringing:
            if not pane.is_attached:
                pane.display = False
                await self.query_one(Panes).mount(pane)
        return pane

    async def _bring_all(self) -> None:
        """Mount the other tabs while nobody presses a key."""
        for name in TABS:
            await asyncio.sleep(PAUSE_SECONDS)
            await self._bring(name)

    @property
    def run_id(self) -> int | None:
        """The run that the tabs show: the chosen one, else the newest."""
        known = [line.run.id for line in self._lines]
        return self._run_id if self._run_id in known else next(iter(known), None)

    def read_query(self) -> Callable[[Workspace], ProjectRuns]:
        """Name, runs, and what there is to see of each that is done."""
        project_id, seen, memory = self._project_id, self._views, self.sfumato.gate_memory

        def query(workspace: Workspace) -> ProjectRuns:
            names, lines = {line.id: line.name for line in projects(workspace)}, run_lines(workspace, project_id)
            done = [line.run for line in lines if line.run.state is RunState.DONE]
            views = {run.id: seen[run.id] if run.id in seen else _views_of(workspace, run) for run in done}
            # The engine is imported for the stamp: while no run was examined, nobody needs it.
            stamp = current_stamp(workspace) if memory.runs else ""
            return names.get(project_id, ""), lines, views, replace(standing_of(workspace, project_id), stamp=stamp)

        return query

    def take(self, answer: ProjectRuns) -> None:
        first, self._is_read = not self._lines, True
        self._title, self._lines, self._views, self._standing = answer
        runs = self._panes["runs"]
        assert isinstance(runs, Runs)
        runs.show_runs(self._lines, self.run_id if first else None)
        self._show_run()
        self._know_plan()

    def _show_run(self) -> None:
        line = self._shown_line
        self._say_run(line)
        self._say_lack()
        self.pane.show(line)
        self._say_next()

    @property
    def _shown_line(self) -> RunLine | None:
        """The run that the tabs show."""
        return next((line for line in self._lines if line.run.id == self.run_id), None)

    def _say_run(self, line: RunLine | None) -> None:
        """Name the run in the title line, with the gate's answer where that is known, else with its limits."""
        into = f" {mark('into')} "
        if line is None:
            self.say_where(into, self._title)
        elif self._tab in OF_THE_PROJECT:
            self.look_at_seal_of(line.run)
            self.say_where(into, (self._title, "bold"), into, PLACES[PLACE_OF[self._tab]][0].lower())
        else:
            self.look_at_seal_of(line.run)
            said = [f"run {line.run.id}", line.run.name, PUBLIC_KEY if line.run.key_public else "", state_text(line)]
            said.insert(0, f"{mark('fail')} not as it was sealed" if self.broken_seal(line.run) else "")
            answer = self._answers.get(line.run.id)
            judged = f"{mark(STATE_SIGNS[answer])} {SHORT_ANSWERS[answer]}" if answer else tally_text(line.tally)
            said += [duration(line.run.seconds) if line.run.state.ended else ""]
            state = "".join(f"{part}  " for part in said if part)
            room = self.size.width - len("Sfumato") - 2 * len(into) - cell_len(state + judged) - 2
            title = cut(self._title, max(LEAST_TITLE, room))
            self.say_where(into, (title, "bold"), into, state, (judged, "bold" if answer else ""))

    @property
    def _answers(self) -> Mapping[int, str]:
        """What the gate answered for runs, as far as that still holds."""
        return self.sfumato.gate_memory.answers(self._standing.stamp)

    @on(Verdicts.GateAnswered)
    def _know_answer(self) -> None:
        """Read the stamp that answers have to have now, then say the answer in the title line and in the next step."""
        self.reload()

    def _say_next(self) -> None:
        """Name the next step, of the run under the cursor or the one that the tab shows, and the keys that it has."""
        if self._is_read and self.is_mounted:
            toml, sha256 = self._examined
            known = self._tab == "plan" or toml == self._standing.toml
            standing = replace(self._standing.beside(self._lines, sha256 if known else ""), answers=self._answers)
            if isinstance(plan := self._panes["plan"], Plan):
                plan.carried_out_by(None if standing.done_by is None else standing.done_by.run.id)
            step = step_text(self.app, next_step(standing, self.here, self._tab))
            self.query_one("#next-step", Line).say(step)
            offered = tuple(map(self.in_footer, ("export", "release", "distributions"))), self.views
            if offered != self._offered:
                self._offered = offered
                self.refresh_bindings()

    @on(Plan.Examined)
    def _take_plan(self, event: Plan.Examined) -> None:
        """Know the plan by its fingerprint, as it stands after each edit."""
        self._examined = event.view.toml, event.view.sha256
        self._say_next()

    def _know_plan(self) -> None:
        """Find the fingerprint of a plan that no run is known to be of by its text: a run's recipe leaves out what is as by default."""
        toml, standing = self._standing.toml, self._standing.beside(self._lines)
        if toml and toml != self._examined[0] and standing.done_by is None and self._lines:
            self._examined = toml, ""
            self._find_fingerprint(toml)

    @work(thread=True, exclusive=True, group="fingerprint", exit_on_error=False)
    def _find_fingerprint(self, toml: str) -> None:
        from sfumato.workspace.plan.edits import plan_view

        self.post_message(self.Fingerprint(toml, plan_view(toml).sha256))

    @on(Fingerprint)
    def _take_fingerprint(self, event: Fingerprint) -> None:
        if self._examined == (event.toml, ""):
            self._examined = event.toml, event.sha256
            self._say_next()

    def seal_broken(self) -> None:
        self._show_run()

    @property
    def _lacks_run(self) -> bool:
        """Whether the tab would show a run, and there is none."""
        return self._is_read and not self._lines and self._tab in OF_A_RUN

    def _say_lack(self) -> None:
        """In place of an empty tab, the keys that lead to a run."""
        said, panes = self.query_one("#no-run", Static), self.query_one("#panes", ContentSwitcher)
        if said.display == self._lacks_run:
            return
        said.display, panes.display = self._lacks_run, not self._lacks_run
        if said.display:
            said.update(NO_RUN.format(**{act: key_for(self.app, act) for act in ("plan", "run", "runs", "new")}))
            self.query_one(TabLine).focus()

    def look_at(self, run_id: int) -> None:
        """Have the tabs show this run; the cursor of the runs goes there when it is known."""
        self._run_id = run_id
        self.sfumato.remember(run=run_id)
        self.reload()

    @on(Runs.Chosen)
    @on(Map.Chosen)
    async def _choose(self, event: Runs.Chosen | Map.Chosen) -> None:
        line = next(line for line in self._lines if line.run.id == event.run_id)
        await self.open_run(event.run_id, "verdicts" if line.tally.total else "results")

    async def open_run(self, run_id: int, tab: str, measure: int | None = None) -> None:
        """Show a tab of a run; of its records those of the measure at this place."""
        self._run_id = run_id
        self.sfumato.remember(run=run_id)
        records = self._panes["records"]
        if measure is not None and isinstance(records, Records):
            records.by_measure(run_id, measure)
        self._show_run()
        await self.action_show_tab(tab)

    @on(Results.Pictured)
    async def _picture(self, event: Results.Pictured) -> None:
        await self.action_distributions(event.variable)

    @on(Runs.Duplicated)
    async def _duplicate(self, event: Runs.Duplicated) -> None:
        await self.action_show_tab("plan")
        self.query_one(Plan).start_from(event.run_id, event.weights)

    @on(Data.Drafted)
    async def _take_draft(self, event: Data.Drafted) -> None:
        from ..plan.drafting import drafted_words

        await self.action_show_tab("plan")
        self.query_one(Plan).take_text(event.found.toml, drafted_words(event.found))

    @on(VerdictBoard.NumbersAsked)
    async def _show_numbers(self) -> None:
        await self.action_show_tab("results")

    @on(Verdicts.Pulled)
    async def _pull(self, event: Verdicts.Pulled) -> None:
        """Change the plan by a lever and show the difference; or show the plan, where a person decides how."""
        from ..findings.levers import PlanChange

        await self.action_show_tab("plan")
        lever, plan = event.lever, self.query_one(Plan)
        if not lever.toml:
            self.sfumato.say(f"To do in the plan: {lever.text}")
            return
        plan.take_text(lever.toml, f"The plan has changed: {lever.text} (u undoes)")

        def answered(answer: str | None) -> None:
            if answer is not None:
                self.call_later(plan.action_run if answer == "run" else plan.action_undo)

        await self.sfumato.open(PlanChange(lever), answered)

    @on(Runs.Marked)
    def _lay_over(self, event: Runs.Marked) -> None:
        sweep = self._panes["sweep"]
        assert isinstance(sweep, Studies)
        sweep.lay_over(event.run_ids)

    @on(Runs.MapAsked)
    async def _show_map(self) -> None:
        await self.action_show_tab("map")

    @on(TabLine.Chosen)
    @on(TabEdge.Chosen)
    async def _choose_tab(self, event: TabLine.Chosen | TabEdge.Chosen) -> None:
        if event.name == "release":
            await self.action_release()
        else:
            await self._switch(event.name if event.name in TABS else self._last[event.name])

    async def action_place(self, name: str) -> None:
        """Go to a place, at the tab that it showed last; where it is shown already, to its next tab."""
        tabs = list(PLACES[name][1])
        again = PLACE_OF[self._tab] == name
        await self.action_show_tab(tabs[(tabs.index(self._tab) + 1) % len(tabs)] if again else self._last[name])

    async def take_words(self, act: str, words: str) -> None:
        """Go to a place or tab, for the run or with the filter that ``words`` name."""
        tab = act if act in TABS else self._last.get(act, "")
        run = next((line.run.id for line in self._lines if words in (str(line.run.id), line.run.name)), None)
        if not tab:
            self.sfumato.say(f"{act.replace('_', '-')} takes no words")
            return
        if run is not None and tab in OF_A_RUN:
            await self.open_run(run, tab)
            return
        await self.action_show_tab(tab)
        sift = getattr(self.pane, "sift_by", None)
        if sift is None:
            self.sfumato.say(f"{TABS[tab]} has no filter, and there is no run {words}")
        else:
            sift(words)

    def _name_place(self) -> None:
        """Name the place and its tabs, the present one marked."""
        place = PLACE_OF[self._tab]
        self._last[place] = self._tab
        self.query_one(TabLine).active = place
        counted = f": {self.pane.counted}" if self.pane.counted and not self._lacks_run else ""
        self.query_one(TabEdge).show(f"{PLACES[place][0]}{counted}", PLACES[place][1], self._tab)

    @on(Pane.Counted)
    def _count(self) -> None:
        if self.is_mounted:
            self._name_place()

    async def action_show_tab(self, name: str) -> None:
        """Show a tab and give it the keys."""
        await self._switch(name)
        if not self._lacks_run:
            self.pane.take_focus()

    async def _switch(self, name: str) -> None:
        await self._bring(name)
        self._tab = name
        self._name_place()
        self.query_one("#panes", ContentSwitcher).current = name
        self.sfumato.remember(tab=name, row=self.row_here)
        self._show_run()

    def exportable(self) -> Exportable | None:
        return self.pane.exportable()

    def command_words(self) -> tuple[str, ...]:
        """The command that shows what the tab does."""
        return ("plan", self._title) if self._tab == "plan" else self.pane.command_words()

    @property
    def here(self) -> RunLine | None:
        """The run under the cursor, or the one that the tabs show."""
        pane = self.pane  # a key may come while the app is closing, when the list is gone
        return pane.here if isinstance(pane, Runs) and pane.is_mounted and pane.walk_children(Grid) else pane.line

    @property
    def views(self) -> frozenset[str]:
        """Which of ``VIEWS`` that run has something to show in."""
        here = self.here if self.is_mounted else None
        return frozenset() if here is None else self._views.get(here.run.id, frozenset())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A view is not offered where it would be empty."""
        return parameters[0] in self.views if action == "view" else super().check_action(action, parameters)

    def in_footer(self, action: str) -> bool:
        """A release is named where the run is done, and distributions where there are data."""
        if action in ("release", "report"):
            return self.is_mounted and self.here is not None and self.here.run.state is RunState.DONE
        if not getattr(self.pane, "in_footer", lambda _: True)(action):
            return False
        return self._standing.has_data if action == "distributions" else super().in_footer(action)

    @property
    def can_export(self) -> bool:
        """Whether the tab can have a table or a plot."""
        return self.pane.can_export and not self._lacks_run

    async def action_view(self, name: str) -> None:
        """Look at what a run has found about data quality, what its studies answer, what an intruder believes, or which pairs it keeps."""
        from ..findings.beliefs import Beliefs
        from ..findings.kept_pairs import KeptPairs
        from ..findings.quality import Quality
        from ..findings.study import StudyDialog

        if self.here is None:
            return
        dialogs = {"quality": Quality, "beliefs": Beliefs, "pairs": KeptPairs}
        opened = dialogs[name](self.here.run.id) if name in dialogs else StudyDialog(self.here, name)
        await self.sfumato.open(opened)

    async def action_guide(self) -> None:
        """Ask in plain words for what a search for the smallest sufficient sample needs, and start it."""
        from ..plan.guided_minimisation import guide

        await guide(self.sfumato, self._project_id)

    async def action_distributions(self, variable: str | None = None) -> None:
        """Show what the confidential values look like beside the released ones, of the variable under the cursor."""
        from ..findings.distribution import Distributions

        here, data = self.here, self.pane
        if variable is None and isinstance(data, Data) and data.here is not None:
            variable = data.here.variable.name
        ended = here is not None and here.run.state is RunState.DONE
        await self.sfumato.open(Distributions(self._project_id, here.run.id if here and ended else None, variable))

    async def action_report(self) -> None:
        """Ask where to the report of that run is to go, and write it."""
        from ..release.reports import report_form

        here = self.here
        if here is None or here.run.state is not RunState.DONE:
            self.sfumato.say("Only a run that is done has a report")
            return
        await self.sfumato.open(*report_form(self.sfumato, here.run.id))

    async def action_release(self) -> None:
        """Show what a release of the run would hold: of the one under the cursor, or the one that the tabs show."""
        from ..release.release import ReleaseScreen

        here = self.here
        if here is None or here.run.state is not RunState.DONE:
            self.sfumato.say("Only a run that is done can be released")
            return
        where = self.query_one("#where", Line).content
        places = {place: title for place, (title, _) in PLACES.items()}
        release = ReleaseScreen(here.run.id, places, where if isinstance(where, Content) else str(where))

        def answered(place: str | None) -> None:
            if place is not None:
                self.call_later(self.action_show_tab, self._last[place])

        await self.sfumato.open(release, answered)
