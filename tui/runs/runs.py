"""The runs of a project, with what can be done to them: named, noted, and run again with less influence for records at risk."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Static

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind
from sfumato.workspace.reporting.words import duration, settings_apart
from sfumato.workspace.store.run_names import LONGEST_NAME, LONGEST_NOTE, check_name, check_note
from sfumato.workspace.store.runs import Run, RunLine, RunState, recipe_toml
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import Selection, selected_rows, verdicts_of
from sfumato.workspace.views.run_detail import RunDetail, run_detail
from sfumato.workspace.visible_text import replace_unprintable

from ..keys.own_keys import key_for
from ..parts.dialogs import Confirm
from ..parts.fields import Field
from ..parts.form import Form
from ..parts.page import Pane
from ..parts.sifted import Sifted
from ..parts.split import DetailQuery, Split
from ..parts.tables import TableScreen
from ..session import jobs
from ..session.words import progress, rate, seconds_left, state_text, tally_text
from ..widgets.grid import Grid
from ..widgets.lines import alike
from ..widgets.marks import MarkedGrid
from ..widgets.tables import Columns, Table, TableColumn
from .compare import Compare
from .run_detail import WholeRun, glance, verdict_lines

if TYPE_CHECKING:
    from sfumato.workspace.reporting.plan_steps import Facts
    from sfumato.workspace.service.reweighting import ReweightableRun

FIELDS = {
    "name": f"stands for the run's number wherever a run is asked for; at most {LONGEST_NAME} characters, empty for none",
    "note": f"what the run is for, in a line of at most {LONGEST_NOTE} characters. Neither name nor note ever goes into a public file",
}
LEAST_HEIGHT = 14
"""With fewer lines all are for the table."""
LEAST_SPARE = 6
"""Beside the run in full its plan stands below the list where that leaves so many lines."""
MOST_MARKED = 6
"""So many of the marked runs, those marked last, lie over each other."""
MOST_ROWS = 200
"""So many of a run's rows are read to stand beside the list of runs; Results has all."""


def weighing_form(found: ReweightableRun) -> Form:
    """Asks by which measure records are at risk, and how much less they say. Its answer is part of ``[weights]``."""
    fields = [
        Field("measure", "records are at risk by this measure of the run; a record of no risk keeps its whole influence",
              choices=found.measures, value=found.measures[0]),
        Field("strength", "what a record of risk 1 loses, above 0 and at most 1; 1 leaves it no influence at all. Measure the new run "
              "as well: others may be at risk then", "value", default=1.0),
    ]  # fmt: skip
    return Form(
        f"Less influence for the records at risk in run {found.run_id}",
        fields,
        found.check_answers,
        topic="recipe weights",
    )


def naming_form(run: Run) -> Form:
    """Asks for both; its answer is a table of the two, without those that are empty."""
    now = {"name": run.name, "note": run.note}
    fields = [Field(name, said, value=replace_unprintable(now[name])) for name, said in FIELDS.items()]
    return Form(f"Name and note of run {run.id}", fields, _check, topic="app runs")


def _check(table: dict[str, Any]) -> None:
    check_name(str(table.get("name", "")))
    check_note(str(table.get("note", "")))


def _doing(line: RunLine) -> str:
    if not line.run.state.ended:
        return line.doing
    return line.run.error if line.run.state is RunState.FAILED else ""


def _tasks(line: RunLine) -> str:
    """Nothing of a run that is done: all of them are."""
    return "" if line.run.state is RunState.DONE else progress(line.run)


def _entered(line: RunLine) -> str:
    return datetime.fromtimestamp(line.run.created).strftime("%Y-%m-%d %H:%M")


def _words(line: RunLine) -> dict[str, object]:
    run = line.run
    said = {"state": state_text(line), "verdicts": _verdicts(line)}
    return {"run": run.id, "title": run.titled, **said, "note": run.note}


def _verdicts(line: RunLine) -> str:
    return tally_text(line.tally) or line.run.error


COLUMNS: Columns[RunLine] = (
    TableColumn("run", "run", 4, "right", cell=lambda line: line.run.id),
    TableColumn("title", "title", 11, spare=7, grows=2, cell=lambda line: line.run.titled),
    TableColumn("state", "state", 13, cell=state_text),
    TableColumn("tasks", "tasks", 15, "right", spare=6, optional=True, cell=_tasks),
    TableColumn("rate", "rate", 7, "right", spare=1, optional=True, cell=lambda line: rate(line.run)),
    TableColumn("left", "left", 8, "right", spare=5, optional=True, cell=lambda line: seconds_left(line.run)),
    TableColumn("doing", "doing", 22, spare=3, grows=1, optional=True, cell=_doing),
    TableColumn("time", "time", 9, "right", spare=4, cell=lambda line: duration(line.run.seconds)),
    TableColumn("entered", "entered", 16, spare=2, cell=_entered),
    TableColumn("verdicts", "verdicts", 17, cell=_verdicts),
)
TABLE = Table(COLUMNS, key=lambda line: line.run.id, words=_words)


class RunGrid(MarkedGrid):
    BINDINGS: ClassVar[list[BindingType]] = [bind("open", "select", "Open", show=True)]


class Runs(TableScreen[RunLine], Sifted, Pane, Split):
    """Newest first. Enter chooses the run that the other tabs show; marked runs are compared, laid over each other, or deleted together."""

    full_list = 78
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("run", "again", "Run again", show=True),
        bind("interrupt", "interrupt", "Interrupt", show=True),
        bind("interrupt", "resume", "Resume", show=True),
        bind("picture", "map", "Map", show=True),
        bind("duplicate", "duplicate", "Duplicate with changes"),
        bind("weigh", "weigh"),
        bind("delete", "delete"),
        bind("rename", "name"),
        bind("log", "log", "Log of its tasks"),
        bind("compare", "compare", "Compare the marked runs"),
    ]

    exports = "runs"
    DEFAULT_CSS = "#glance { height: auto; padding: 0 1; display: none; background: $surface; }"

    @dataclass
    class Chosen(Message):
        """The user chose the run that the other tabs show."""

        run_id: int

    @dataclass
    class Duplicated(Message):
        """The user wants a plan that starts from this run, whose records at risk ``weights`` give less influence."""

        run_id: int
        weights: Mapping[str, Any] | None = None

    @dataclass
    class Marked(Message):
        run_ids: tuple[int, ...]

    class MapAsked(Message):
        """The user wants to see the runs as points on a map."""

    def __init__(self) -> None:
        super().__init__(id="runs")
        self._lines: Sequence[RunLine] = ()
        self._can: tuple[bool, ...] = ()
        self._seen: RunLine | None = None

    def compose(self) -> ComposeResult:
        """One table, and below it the run under the cursor at a glance; beside it in full where there is room."""
        yield from self.compose_split(RunGrid(empty="…"), *self.compose_sift(), Static(id="glance", markup=False))

    def show_runs(self, lines: Sequence[RunLine], want: int | None = None) -> None:
        """Show the runs as they stand now, or as soon as there is room, the cursor on ``want`` or where it was."""
        self._lines = lines
        if not self.is_mounted:
            self.call_later(self.show_runs, lines, want)
            return
        if not lines:
            keys = [key_for(self.app, act) for act in ("plan", "run", "new")]
            self.grid.set_empty("No runs yet: {} opens the plan, and {} there runs it; {} runs a recipe".format(*keys))
        going = sum(not line.run.state.ended for line in lines)
        self.count(f"{len(lines)}{f', {going} unfinished' if going else ''}")
        self.show_rows(TABLE, lines, want)
        self._look()

    @property
    def grid(self) -> RunGrid:
        return self.query_one(RunGrid)

    def on_resize(self) -> None:
        """Break the lines of the run at a glance anew."""
        self._seen = None
        self._look()

    @property
    def can_export(self) -> bool:
        return bool(self._lines)

    @on(Grid.Highlighted)
    @on(Grid.Opened)
    def _look(self) -> None:
        self._update_keys()
        here = self.here
        if not self._lines or self.size.height < LEAST_HEIGHT or (self.is_split and self._spare_lines < LEAST_SPARE):
            self.query_one("#glance").display = False
        elif here is not None and here != self._seen:
            self._seen = here
            self.read(partial(run_and_plan, here.run.id, beside=self.is_split), self._say)

    @property
    def _spare_lines(self) -> int:
        """Lines that the list has no row for."""
        return max(0, self.size.height - len(self._lines) - 1)

    def detail(self, row: RunLine) -> DetailQuery:
        """The run in full."""
        return row.run.id, row, lambda workspace: whole_run(workspace, row).lines

    def _say(self, found: tuple[RunDetail, Facts]) -> None:
        least = 0 if self.is_split else self.size.height // 2
        width = (self.list_width if self.is_split else self.size.width) - 2
        shown, text = (
            self.query_one("#glance", Static),
            glance(*found, width, self._spare_lines, least, beside=self.is_split),
        )
        if not shown.display or not alike(shown.content, text):
            shown.update(text, layout=not shown.display or shown.size.height != len(text.plain.splitlines()))
            shown.display = True

    def _update_keys(self) -> None:
        can = tuple(bool(self.check_action(action, ())) for action in ("interrupt", "resume"))
        if can != self._can:
            self._can = can
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A run that goes on can be interrupted, one that stopped can be resumed."""
        here = self.here if self.is_mounted else None
        if action == "interrupt":
            return here is not None and not here.run.state.ended and not here.stalled
        if action == "resume":
            return here is not None and (here.resumable or here.stalled)
        if action == "delete":
            return self.is_mounted and (bool(self._marked) or (here is not None and here.run.state.ended))
        if action in ("again", "duplicate", "weigh", "compare", "name", "log", "map"):
            return bool(self._lines)
        return True

    async def chosen(self, row: RunLine) -> None:
        self.post_message(self.Chosen(row.run.id))

    @on(MarkedGrid.Marked)
    def _mark(self) -> None:
        self.post_message(self.Marked(self._marked[-MOST_MARKED:]))

    @property
    def _marked(self) -> tuple[int, ...]:
        return tuple(key for key in self.grid.marked if isinstance(key, int))

    def command_words(self) -> tuple[str, ...]:
        return ("runs",)

    async def action_compare(self) -> None:
        """Compare the two runs marked last, or the one marked with the one under the cursor."""
        chosen = list(self._marked[-2:])
        if len(chosen) < 2 and self.here is not None and self.here.run.id not in chosen:
            chosen.append(self.here.run.id)
        if len(chosen) < 2:
            self.sfumato.say(
                f"Mark two runs with {key_for(self.app, 'mark')}, then press {key_for(self.app, 'compare')} to compare them"
            )
            return
        states = {line.run.id: line.run.state for line in self._lines}
        if unfinished := [run for run in chosen if states.get(run) is not RunState.DONE]:
            self.sfumato.say(f"run {unfinished[0]} is not done; compare runs that are")
            return
        await self.sfumato.open(Compare(chosen[0], chosen[1]))

    async def action_again(self) -> None:
        """Ask, then run the same recipe on the same data once more."""
        if self.here is None:
            return
        run_id = self.here.run.id

        def answered(yes: bool | None) -> None:
            if yes:
                self.sfumato.run_again(run_id)

        consequence = (
            f"The recipe of run {run_id} on its data once more, as a new run; with the same seed and key it finds the same. "
            f"{key_for(self.app, 'duplicate')} makes a plan of it, to change first."
        )
        await self.sfumato.open(Confirm(f"Run the recipe of run {run_id} again?", consequence, "Run"), answered)

    def action_duplicate(self) -> None:
        """Make the plan that of this run, to change it."""
        if self.here is not None:
            self.post_message(self.Duplicated(self.here.run.id))

    def action_weigh(self) -> None:
        """Make the plan that of this run, with less influence for its records at risk."""
        here = self.here
        if here is None or here.run.state is not RunState.DONE:
            self.sfumato.say("Only a run that is done tells which records are at risk")
            return
        from sfumato.workspace.service.reweighting import read_reweightable_run

        self.compute(lambda workspace: read_reweightable_run(workspace, here.run.id), self._weigh)

    def _weigh(self, found: ReweightableRun) -> None:

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                self.post_message(self.Duplicated(found.run_id, found.weights_table(table)))

        self.call_later(self.sfumato.open, weighing_form(found), answered)

    def action_map(self) -> None:
        self.post_message(self.MapAsked())

    def action_resume(self) -> None:
        if self.here is not None:
            self.sfumato.resume(self.here.run.id)

    async def action_log(self) -> None:
        """Show the tasks of the run and what its log says of each."""
        if self.here is not None:
            from .task_log import TaskLog

            await self.sfumato.open(TaskLog(self.here.run.id))

    async def action_name(self) -> None:
        """Ask for the name and the note of the run."""
        if self.here is not None:
            run = self.here.run

            def answered(table: dict[str, Any] | None) -> None:
                if table is not None:
                    given = (str(table.get(key, "")) for key in ("name", "note"))
                    self.sfumato.job(partial(jobs.name_run, self.sfumato.directory, run.id, *given))

            await self.sfumato.open(naming_form(run), answered)

    async def action_delete(self) -> None:
        """Ask, then delete the marked runs that have ended, or else the run under the cursor."""
        chosen = self.grid.chosen
        ended = tuple(line.run.id for line in self._lines if line.run.id in chosen and line.run.state.ended)
        if not ended:
            self.sfumato.say("Only runs that have ended can be deleted")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.sfumato.job(partial(jobs.delete_runs, self.sfumato.directory, ended))

        what = (
            f"run {ended[0]}" if len(ended) == 1 else f"{count_noun(len(ended), 'run')}: {', '.join(map(str, ended))}"
        )
        going = (
            f" {len(chosen) - len(ended)} of the marked runs have not ended and stay."
            if len(chosen) > len(ended)
            else ""
        )
        consequence = (
            "Released datasets, results and log are removed for good. The confidential data and the plan stay in the "
            f"project; the audit log keeps that there was such a run.{going}"
        )
        await self.sfumato.open(Confirm(f"Delete {what}?", consequence, "Delete"), answered)

    async def action_interrupt(self) -> None:
        if self.here is None:
            return
        run_id = self.here.run.id

        def answered(yes: bool | None) -> None:
            if yes:
                self.sfumato.interrupt(run_id)

        question = Confirm(
            f"Interrupt run {run_id}?",
            f"Finished tasks keep their results; {key_for(self.app, 'interrupt')} resumes it.",
            "Interrupt",
        )
        await self.sfumato.open(question, answered)


def run_and_plan(run_id: int, workspace: Workspace, *, beside: bool) -> tuple[RunDetail, Facts]:
    """A run at a glance, the limits that it met unless it stands in full ``beside``, and its plan in words. Raises NotFound."""
    from sfumato.workspace.reporting.plan_steps import (
        plan_facts,  # it loads methods, which takes the app longer than to start
    )

    verdicts = verdicts_of(workspace, run_id)
    met = [one for one in verdicts if one.outcome == "met" and not beside]
    facts = [("" if at else "met", line) for at, line in enumerate(verdict_lines(met))]
    return run_detail(workspace, run_id), [
        *facts,
        *plan_facts(tomllib.loads(recipe_toml(workspace, run_id)), limits=not verdicts),
    ]


STANDING = [COLUMNS[place] for place in (2, 6, 3, 4, 5, 7, 8)]
"""Columns for which the list may have no room beside the run in full."""


def whole_run(workspace: Workspace, line: RunLine) -> WholeRun:
    """What there is to say of a run. Raises NotFound."""
    run_id = line.run.id
    standing = ", ".join(f"{column.name} {said}" for column in STANDING if column.cell and (said := column.cell(line)))
    rows = [row for row in selected_rows(workspace, Selection(run_id), 0, MOST_ROWS) if row.level is None]
    apart = settings_apart(recipe_toml(workspace, run_id))
    return WholeRun(run_detail(workspace, run_id), standing, verdicts_of(workspace, run_id), rows, apart)
