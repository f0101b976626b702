"""Tab Runs: the runs of a project, and acts on them, such as naming and running again with less weight for records at
risk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.workspace.reporting.words import duration_text, sign_for, varying_settings_of_recipe
from sfumato.workspace.store.run_names import MAX_NAME_LENGTH, MAX_NOTE_LENGTH, check_run_name, check_run_note
from sfumato.workspace.store.runs import (
    RunState,
    RunSummary,
    StoredRun,
    count_records_and_units,
    find_run,
    list_tasks,
    recipe_text_of,
)
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import ResultSelection, read_selected_rows, read_verdicts
from sfumato.workspace.views.run_detail import read_run_detail
from sfumato.workspace.visible_text import replace_unprintable

from ..keys.own_keys import current_key
from ..parts.answer_panel import TITLE_NEEDS, answer_of_run_title
from ..parts.dialogs import ConfirmDialog
from ..parts.fields import FormField
from ..parts.form import Form
from ..parts.gate_lines import answer_lines
from ..parts.page import CallInProcess, RunPane, unexpected_error
from ..parts.sifted import FilteredList
from ..parts.split import REST_SECONDS, DetailQuery, SplitView
from ..parts.tables import TableScreen
from ..session import jobs
from ..session.gate_answers import ASKING, NOT_ASKED, NOT_EXAMINED, known_answer_text
from ..session.words import (
    listed_state_text,
    run_state_text,
    tally_text,
    task_rate_text,
    tasks_done_text,
    time_left_text,
)
from ..widgets.facts import fact_lines, titled_facts, wrap_text
from ..widgets.grid import HEADER, Grid
from ..widgets.lines import is_same_text
from ..widgets.marks import MarkedGrid
from ..widgets.tables import Columns, GridTable, TableColumn
from .compare import ComparisonDialog
from .run_detail import LABEL, FullRunDetail, RunBrief, brief_run_text
from .run_meters import MeterContext
from .run_tasks import NamedTask, tasks_to_name

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.reporting.searches import SearchProgress
    from sfumato.workspace.service.reweighting import ReweightableRun

FIELDS = {
    "name": f"stands for the run's number wherever a run is asked for; at most {MAX_NAME_LENGTH} characters, empty for none",
    "note": f"what the run is for, in a line of at most {MAX_NOTE_LENGTH} characters. Neither name nor note ever goes into a public file",
}
LEAST_HEIGHT = 14
"""Height in lines below which all lines are for the table."""
LEAST_SPARE = 6
"""Number of spare lines from which the plan of the selected run is shown below the list."""
ROOMY, MOST_ANSWER_LINES, LEAST_ANSWER_LINES = 24, 6, 3
"""Height of the tab in lines from which the gate's answer has the most lines below the list, and its most lines."""
GATE = "gate"
"""Group of the threads that ask the gate."""
MOST_ATTEMPTS = 2
"""Times that the gate is asked about a run until its answer holds."""
UNSTABLE = "the workspace or the policy changed while it examined"
ASKING_TEXT = "The gate examines this run: it says whether the release may leave."
NOT_EXAMINED_TEXT = "The gate could not examine this run, so nothing of it can be released: {}"
LEAST_COUNTED = 90
"""Width of the list in cells from which the frame has the number of runs beside the answer."""
LEAST_ROWS = 2
"""Lines that the list keeps, with its heading."""
ROOM_FOR_BLANK = 16
"""Lines below the list from which a blank one keeps its rows apart from the text."""
MOST_MARKED = 6
"""Number of marked runs, the latest marked ones, that are drawn together."""
MOST_ROWS = 1000
"""Number of rows of a run that are read for the text beside the list; Results has all."""


@dataclass(frozen=True)
class SearchTrials:
    """The trials of a search, which take one row of the list.

    search_id: number of the search
    trials: its runs, newest first
    is_open: whether each trial has a row below this one
    progress: how far the search is; None before it was read
    """

    search_id: int
    trials: tuple[RunSummary, ...]
    is_open: bool
    progress: SearchProgress | None = None

    @property
    def title(self) -> str:
        """Return the title of the row."""
        count = count_noun(len(self.trials), "trial") if self.progress is None else self.progress.looks_text
        return f"{sign_for('open' if self.is_open else 'folded')} search {self.search_id}: {count}"

    @property
    def state_text(self) -> str:
        """Return how many trials are done, or that the search has ended."""
        if self.progress is not None and self.progress.has_ended:
            return "ended"
        return f"{sum(one.run.state is RunState.DONE for one in self.trials)} done"

    @property
    def time_left_text(self) -> str:
        """Return the estimated time left, as that of a run."""
        left = None if self.progress is None or self.progress.has_ended else self.progress.seconds_left
        return "" if left is None else f"~{duration_text(left)}"

    @property
    def best_text(self) -> str:
        """Return how many limits the best plan so far meets; empty before there is one."""
        best = None if self.progress is None else self.progress.best
        if best is None or not best.n_limits:
            return ""
        return f"best: {best.n_missed} not met" if best.n_missed else f"best: {best.n_limits} met"

    @property
    def progress_facts(self) -> list[tuple[str, str]]:
        """Return how far the search is and what its best plan so far changes and costs, by name."""
        if (progress := self.progress) is None:
            return [("trials", f"{len(self.trials)}, {self.state_text}")]
        state = "ended" if progress.has_ended else progress.time_left_text
        facts = [("looks", ", ".join(filter(None, (progress.looks_text, state))))]
        if (best := progress.best) is None:
            return [*facts, ("best so far", "no trial has ended yet")]
        return [
            *facts,
            ("best so far", best.label),
            ("limits", best.limits_text),
            ("gate", best.gate_text),
            *([("people", best.people)] if best.people else []),
            *([("utility", best.utility)] if best.utility else []),
        ]

    @property
    def trial_facts(self) -> list[tuple[str, str]]:
        """Return each trial that has ended, those that miss the fewest limits first."""
        ended = () if self.progress is None else self.progress.new
        ranked = sorted(ended, key=lambda one: (not one.was_carried_out, one.n_missed, one.number))
        return [(f"look {one.number}", one.text) for one in ranked]


RunRow = RunSummary | SearchTrials


def fold_trials(
    lines: Sequence[RunSummary], open_searches: Collection[int], progress: Mapping[int, SearchProgress]
) -> list[RunRow]:
    """Return the rows of the list: runs that somebody started, and one row a search, before its trials if it is open."""
    trials: dict[int, list[RunSummary]] = {}
    for line in lines:
        if line.run.search_id is not None:
            trials.setdefault(line.run.search_id, []).append(line)
    rows: list[RunRow] = []
    for line in lines:
        search_id = line.run.search_id
        if search_id is None:
            rows.append(line)
        elif search_id in trials:
            found = tuple(trials.pop(search_id))
            rows += [SearchTrials(search_id, found, search_id in open_searches, progress.get(search_id))]
            rows += found if search_id in open_searches else ()
    return rows


def _row_key(row: RunRow) -> int | str:
    """Return the key of a row, by which the cursor finds it again."""
    return f"search {row.search_id}" if isinstance(row, SearchTrials) else row.run.id


def weighing_form(found: ReweightableRun) -> Form:
    """Return the form for the measure of risk and the strength of down-weighting.

    Its answer is part of ``[weights]``.
    """
    fields = [
        FormField("measure", "records are at risk by this measure of the run; a record of no risk keeps its whole influence",
              choices=found.measures, value=found.measures[0]),
        FormField("strength", "what a record of risk 1 loses, above 0 and at most 1; 1 leaves it no influence at all. Measure the new run "
              "as well: others may be at risk then", "value", default=1.0),
    ]  # fmt: skip
    return Form(
        f"Less influence for the records at risk in run {found.run_id}",
        fields,
        found.check_answers,
        topic="recipe weights",
    )


def naming_form(run: StoredRun) -> Form:
    """Return the form for name and note; its answer is a table of the two, without empty ones."""
    now = {"name": run.name, "note": run.note}
    fields = [FormField(name, said, value=replace_unprintable(now[name])) for name, said in FIELDS.items()]
    return Form(f"Name and note of run {run.id}", fields, _check_name_and_note, topic="app runs")


def _check_name_and_note(table: dict[str, Any]) -> None:
    """Raise BadInput unless name and note are valid."""
    check_run_name(str(table.get("name", "")))
    check_run_note(str(table.get("note", "")))


def _activity_cell(line: RunSummary) -> str:
    """Return the current task of a run that is computed, or the error of one that failed."""
    if not line.run.state.is_final:
        return line.current_task
    return line.run.error if line.run.state is RunState.FAILED else ""


def _tasks_cell(line: RunSummary) -> str:
    """Return the progress of the tasks; empty for a run that is done."""
    return "" if line.run.state is RunState.DONE else tasks_done_text(line.run)


def _created_cell(line: RunSummary) -> str:
    """Return the local date and time at which the run was created."""
    return datetime.fromtimestamp(line.run.created).strftime("%Y-%m-%d %H:%M")


def _cell_of_run(
    cell: Callable[[RunSummary], object], of_search: Callable[[SearchTrials], object] = lambda _: ""
) -> Callable[[RunRow], object]:
    """Return the cell of a column for any row; that of a search is empty unless ``of_search`` returns it."""
    return lambda row: of_search(row) if isinstance(row, SearchTrials) else cell(row)


def _title_cell(row: RunRow) -> str:
    """Return the title of a run or a search."""
    return row.title if isinstance(row, SearchTrials) else row.run.full_title


def _state_cell(row: RunRow) -> str:
    """Return the state of a run, or how many trials of a search are done."""
    return row.state_text if isinstance(row, SearchTrials) else listed_state_text(row)


def _filter_words(known: GateAnswers, line: RunRow) -> dict[str, object]:
    """Return the texts that filters search, by title."""
    if isinstance(line, SearchTrials):
        return {"title": line.title, "state": line.state_text}
    run = line.run
    said = {"state": run_state_text(line), "leave": known.answer_cell(line), "verdicts": _verdicts_cell(line)}
    return {"run": run.id, "title": run.full_title, **said, "note": run.note}


def _verdicts_cell(line: RunSummary) -> str:
    """Return the counts of verdicts, or the error of a run without any."""
    return tally_text(line.verdicts) or line.run.error


RATE = _cell_of_run(lambda line: task_rate_text(line.run))
LEFT = _cell_of_run(lambda line: time_left_text(line.run), lambda row: row.time_left_text)
COLUMNS: Columns[RunRow] = (
    TableColumn("run", "run", 4, "right", cell=_cell_of_run(lambda line: line.run.id)),
    TableColumn("title", "title", 11, drop_order=9, grow_order=2, cell=_title_cell),
    TableColumn("state", "state", 13, cell=_state_cell),
    TableColumn("tasks", "tasks", 15, "right", drop_order=6, optional=True, cell=_cell_of_run(_tasks_cell)),
    TableColumn("rate", "rate", 7, "right", drop_order=2, optional=True, yields=True, cell=RATE),
    TableColumn("left", "left", 8, "right", drop_order=5, optional=True, cell=LEFT),
    TableColumn("doing", "doing", 22, drop_order=3, grow_order=1, optional=True, cell=_cell_of_run(_activity_cell)),
    TableColumn(
        "time",
        "time",
        9,
        "right",
        drop_order=4,
        yields=True,
        cell=_cell_of_run(lambda line: duration_text(line.run.seconds)),
    ),
    TableColumn("entered", "entered", 16, drop_order=1, yields=True, cell=_cell_of_run(_created_cell)),
    TableColumn(
        "verdicts",
        "limits",
        17,
        drop_order=7,
        optional=True,
        yields=True,
        cell=_cell_of_run(_verdicts_cell),
    ),
)
STATE_PLACE = 2
"""Place of the state among the columns; the gate's answer and the people follow it."""
LIVE = {"rate": len("9.9/min"), "left": len("~10 min"), "time": len("59.9 s")}
"""Cells of the columns whose texts change by themselves while a run is computed."""


@dataclass(frozen=True)
class GateAnswers:
    """What is known of the gate's answers for the runs of a list.

    answers: answers that are still valid, by run
    asking: the run that the gate examines now
    unexamined: why runs could not be examined, by run
    """

    answers: Mapping[int, ReleaseAnswer]
    asking: int | None
    unexamined: Mapping[int, str]

    def answer_cell(self, line: RunSummary) -> str:
        """Return the gate's answer for a run that is done with its sign, or that the gate was not asked."""
        run_id = line.run.id
        unknown = ASKING if run_id == self.asking else NOT_EXAMINED if run_id in self.unexamined else NOT_ASKED
        return known_answer_text(line.run, self.answers, unknown)

    def people_cell(self, line: RunSummary) -> str:
        """Return how many people the worst finding is about; empty where the gate counted none or was not asked."""
        answer = self.answers.get(line.run.id)
        # The limits of a release that may leave let a few be found, so its 0 would say more than the gate does.
        if answer is None or not answer.people or answer.may_leave == "yes":
            return ""
        return f"{answer.people:,} of {int(answer.records):,}"


def runs_table(known: GateAnswers, *, is_live: bool = False) -> GridTable[RunRow]:
    """Return the table of runs with what is ``known`` of the gate's answers; ``is_live`` while a run is computed."""
    gate: Columns[RunRow] = (
        TableColumn("answer", "may it leave?", 15, cell=_cell_of_run(known.answer_cell, lambda row: row.best_text)),
        TableColumn(
            "people",
            "people",
            15,
            "right",
            drop_order=8,
            optional=True,
            yields=True,
            cell=_cell_of_run(known.people_cell),
        ),
    )
    own = [replace(one, least_width=LIVE.get(one.name, 0) if is_live else 0) for one in COLUMNS]
    columns = [*own[: STATE_PLACE + 1], *gate, *own[STATE_PLACE + 1 :]]
    return GridTable(columns, key=_row_key, search_texts=partial(_filter_words, known))


class RunGrid(MarkedGrid):
    """Grid of runs in which enter opens one."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Open", show=True)]


class RunsTab(TableScreen[RunRow], FilteredList, RunPane, SplitView):
    """Tab with the runs of a project, newest first.

    Enter chooses the run that the other tabs show, or opens the trials of a search; marked runs are compared, drawn
    together, or deleted.
    """

    full_list = 98
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("run", "again", "Run again", show=True),
        bind_act("interrupt", "interrupt", "Interrupt", show=True),
        bind_act("interrupt", "resume", "Resume", show=True),
        bind_act("picture", "map", "Map", show=True),
        bind_act("duplicate", "duplicate", "Duplicate with changes"),
        bind_act("weigh", "weigh"),
        bind_act("delete", "delete"),
        bind_act("rename", "name"),
        bind_act("log", "log", "Log of its tasks"),
        bind_act("compare", "compare", "Compare the marked runs"),
    ]

    export_file = "runs"
    DEFAULT_CSS = "#glance { height: auto; padding: 0 1; display: none; background: $surface; }"

    @dataclass
    class RunChosen(Message):
        """Message with the run that the user chose for the other tabs."""

        run_id: int

    @dataclass
    class RunDuplicated(Message):
        """Message that the user wants a plan that starts from this run; ``weights`` give its records at risk less
        influence.
        """

        run_id: int
        weights: Mapping[str, Any] | None = None

    @dataclass
    class RunsMarked(Message):
        """Message with the marked runs, the latest marked last."""

        run_ids: tuple[int, ...]

    class GateAnswered(Message):
        """Message that the gate has answered for a run of the list."""

    class MapRequested(Message):
        """Message that the user wants to see the runs as points on a map."""

    def __init__(self) -> None:
        """Create the tab."""
        super().__init__(id="runs")
        self._lines: Sequence[RunSummary] = ()
        self._open_searches: set[int] = set()
        self._progress: dict[int, SearchProgress] = {}
        self._read_trials: dict[int, tuple[object, ...]] = {}
        self._can: tuple[bool, ...] = ()
        self._seen: RunSummary | None = None
        self._brief: RunBrief | None = None
        self._answers: Mapping[int, ReleaseAnswer] = {}
        self._unexamined: dict[int, str] = {}
        self._attempts: Counter[int] = Counter()
        self._asking: int | None = None
        self._ask_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Yield the table, the brief of the run under the cursor below it, and if there is room the run in full beside
        it.
        """
        yield from self.compose_split(RunGrid(empty="…"), *self.compose_filter(), Static(id="glance", markup=False))

    def show_runs(self, lines: Sequence[RunSummary], want: int | None = None) -> None:
        """Show the current state of the runs, with the cursor on ``want`` or where it was."""
        self._lines = lines
        # A trial that is to be shown has no row while its search is folded.
        self._open_searches.update(
            line.run.search_id for line in lines if line.run.id == want and line.run.search_id is not None
        )
        # The project may know its runs before the tab is mounted.
        if not self.is_mounted:
            self.call_later(self.show_runs, lines, want)
            return
        if not lines:
            keys = [current_key(self.app, act) for act in ("plan", "run", "new")]
            self.grid.set_empty_text(
                "No runs yet: {} opens the plan, and {} there runs it; {} runs a recipe".format(*keys)
            )
        going = sum(not line.run.state.is_final for line in lines)
        self.set_heading_count(f"{len(lines)}{f', {going} unfinished' if going else ''}")
        self.show_rows(
            runs_table(self.gate, is_live=going > 0), fold_trials(lines, self._open_searches, self._progress), want
        )
        self._show_brief()
        self._read_progress()

    def take_answers(self, answers: Mapping[int, ReleaseAnswer]) -> None:
        """Take the gate's answers that are still valid, which the next ``show_runs`` shows."""
        self._answers = answers
        for run_id in answers:
            del self._attempts[run_id]

    @on(Worker.StateChanged)
    def _take_gate_error(self, event: Worker.StateChanged) -> None:
        """Keep an unexpected error as the reason why the gate could not examine the run."""
        error = event.worker.error if event.worker.group == GATE and event.state is WorkerState.ERROR else None
        if error is not None and self._asking is not None:
            self._take_gate_answer(self._asking, unexpected_error(error))

    @property
    def gate(self) -> GateAnswers:
        """Return what is known of the gate's answers."""
        return GateAnswers(self._answers, self._asking, self._unexamined)

    def on_show(self) -> None:
        """Ask the gate about the run under the cursor, now that the list is seen."""
        self._ask_soon()

    def _ask_soon(self) -> None:
        """Ask the gate about the run under the cursor, once the cursor rests."""
        if self._ask_timer is not None:
            self._ask_timer.stop()
        self._ask_timer = self.set_timer(REST_SECONDS, self._ask_gate)

    def _ask_gate(self) -> None:
        """Ask the gate about the run under the cursor."""
        if self.current_run is not None and self.is_on_screen:
            self.ask_gate_about(self.current_run)

    def ask_gate_about(self, line: RunSummary) -> None:
        """Ask the gate in another process about a run that is done, unless its answer is known or it examines one."""
        if line.run.state is not RunState.DONE or self._asking is not None:
            return
        run_id = line.run.id
        if run_id in self._answers or run_id in self._unexamined:
            return
        # An answer that did not hold, since something changed meanwhile, is asked for once more, not for ever.
        if self._attempts[run_id] >= MOST_ATTEMPTS:
            self._unexamined[run_id] = UNSTABLE
            self.show_runs(self._lines)
            return
        self._attempts[run_id] += 1
        self._asking = run_id
        directory, memory = self.sfumato.directory, self.sfumato.gate_memory
        take = partial(self._take_gate_answer, run_id)

        def examine_run(call: CallInProcess) -> str:
            """Examine the run, which the memory keeps; return why it could not, here nothing."""
            memory.examine(directory, run_id, call)
            return ""

        self.compute_in_processes(
            examine_run, take, group=GATE, exclusive=False, refuse=partial(self.AnswerReceived, take)
        )
        self.show_runs(self._lines)

    def _take_gate_answer(self, run_id: int, why_not: str) -> None:
        """Request that the project reads the new answer, or keep why there is none; then ask about the next run."""
        self._asking = None
        if why_not:
            self._unexamined[run_id] = why_not
            self.show_runs(self._lines)
        if not why_not or not self.is_on_screen:
            # another page says in its title that there is no answer
            self.post_message(self.GateAnswered())
        self._ask_soon()

    def _read_progress(self) -> None:
        """Read how far the searches are, in a thread, where a trial has begun or ended since."""
        trials: dict[int, tuple[object, ...]] = {}
        for line in self._lines:
            if (search_id := line.run.search_id) is not None:
                trials[search_id] = (*trials.get(search_id, ()), line.run.id, line.run.state)
        due = [search_id for search_id, state in trials.items() if self._read_trials.get(search_id) != state]
        if not due:
            return
        self._read_trials = trials
        directory = self.sfumato.directory

        def read_searches(_: CallInProcess) -> list[SearchProgress]:
            """Read the progress of the searches that have changed."""
            from sfumato.workspace.service.searching import search_progress

            with Workspace.open(directory, read_only=True) as workspace:
                return [search_progress(workspace, search_id) for search_id in due]

        # A search that cannot be read, such as one of another version, keeps the number of its trials.
        self.compute_in_processes(read_searches, self._show_progress, group="search-progress", refuse=lambda _: None)

    def _show_progress(self, found: Sequence[SearchProgress]) -> None:
        """Show how far searches are in their rows."""
        self._progress.update((one.search_id, one) for one in found)
        self._seen = None
        self.show_runs(self._lines)

    @property
    def is_listed(self) -> bool:
        """Return whether the list is there: a key may come before it is, or while the app closes."""
        return self.is_mounted and bool(self.walk_children(Grid))

    @property
    def current_run(self) -> RunSummary | None:
        """Return the run under the cursor; None in an empty list and on the row of a search."""
        here = self.current_row if self.is_listed else None
        return here if isinstance(here, RunSummary) else None

    @property
    def grid(self) -> RunGrid:
        """Return the grid of runs."""
        return self.query_one(RunGrid)

    def on_resize(self) -> None:
        """Break the lines of the brief for the new width."""
        self._seen = None
        self._show_brief()

    @property
    def can_export(self) -> bool:
        """Return whether there are runs to export."""
        return bool(self._lines)

    @on(Grid.RowHighlighted)
    @on(Grid.SourceOpened)
    def _show_brief(self) -> None:
        """Show the brief of the run under the cursor if there is room."""
        self._update_keys()
        self._ask_soon()
        here = self.current_run
        self._show_title(here)
        search = self.current_row if self.is_listed else None
        # In a low terminal the brief would leave no rows of the table.
        if not self._lines or self.size.height < LEAST_HEIGHT or (self.is_split and self._spare_lines < LEAST_SPARE):
            self.query_one("#glance").display = False
            self.grid.styles.max_height = None
        elif isinstance(search, SearchTrials):
            self._seen = None
            # What the search found stands beside the list where there is room for it.
            facts = search.trial_facts if self.is_split else self._search_facts(search)
            lines = fact_lines(facts, self._brief_width)
            self._write_brief(Content("\n").join(lines[: max(self._spare_lines, self.size.height // 2)]))
        elif here is not None and here != self._seen:
            self._seen = here
            self.read(partial(read_run_brief, here.run.id), self._show_brief_text)
        elif here is not None and self._brief is not None:
            self._show_brief_text(self._brief)

    def _show_title(self, here: RunSummary | None) -> None:
        """Show the gate's answer for the run under the cursor in the frame, if it is known."""
        answer = None if here is None else self._answers.get(here.run.id)
        if here is None or answer is None:
            self.set_frame_title(None)
        else:
            # In a narrow terminal the people say more than the number of runs.
            count = count_noun(len(self._lines), "run") if self._brief_width >= LEAST_COUNTED else ""
            self.set_frame_title(answer_of_run_title(count, here.run.id, answer))

    def _gate_content(self, run_id: int, is_done: bool) -> list[Content]:
        """Return the lines of the gate's answer for a run, or why there is none."""
        answer, width = self._answers.get(run_id), self._brief_width
        if answer is not None:
            most = MOST_ANSWER_LINES if self.size.height >= ROOMY else LEAST_ANSWER_LINES
            # Nothing else needs most of the lines below a short list.
            most = max(most, self._spare_lines // 2)
            return answer_lines(answer, width, most, titled=width < TITLE_NEEDS, least_label=LABEL)
        if not is_done:
            return []
        why = self._unexamined.get(run_id)
        text = NOT_EXAMINED_TEXT.format(why) if why else ASKING_TEXT
        return [Content.styled(line, "bold") for line in wrap_text(text, width)[:LEAST_ANSWER_LINES]]

    @property
    def _spare_lines(self) -> int:
        """Return the number of lines below the rows of the list."""
        return max(0, self.size.height - len(self.grid.table_rows) - HEADER)

    def detail_of_row(self, row: RunRow) -> DetailQuery | None:
        """Return the query for the run in full; None for the row of a search."""
        if isinstance(row, SearchTrials):
            facts = self._search_facts(row)
            return _row_key(row), row, lambda _: partial(titled_facts, f"Search {row.search_id}", facts)
        key = current_key(self.app, "findings")
        return row.run.id, row, lambda workspace: full_run_detail(workspace, row, key).to_lines

    def _search_facts(self, row: SearchTrials) -> list[tuple[str, str]]:
        """Return how far a search is, with the keys that go on from it."""
        keys = {act: current_key(self.app, act) for act in ("open", "plan", "search")}
        way = f"{keys['open']} {'folds' if row.is_open else 'lists'} its trials; {keys['plan']} {keys['search']} shows the finalists"
        return [*row.progress_facts, ("next", f"{way} and takes the plan of one")]

    @property
    def _brief_width(self) -> int:
        """Return the width in cells of the text below the list."""
        return (self.list_width if self.is_split else self.size.width) - 2

    def _show_brief_text(self, found: RunBrief) -> None:
        """Write the brief, hidden until the first time."""
        self._brief, here = found, self.current_run
        if here is None or here.run.id != found.detail.run_id:
            return
        least = 0 if self.is_split else self.size.height // 2
        gate = self._gate_content(here.run.id, here.run.state is RunState.DONE)
        room = max(self._spare_lines, least)
        apart = int(room >= ROOM_FOR_BLANK)
        answer = self._answers.get(here.run.id)
        units = answer.records if answer is not None and int(answer.records) != found.detail.records else None
        context = MeterContext(
            found.detail.records,
            units,
            answer is not None and answer.may_leave == "yes",
            # The tasks say how long it took, where they are shown.
            duration_text(here.run.seconds)
            if here.run.state is RunState.DONE and (found.verdicts or not self.is_split)
            else "",
            current_key(self.app, "findings"),
        )
        text = brief_run_text(found, gate, self._brief_width, room - apart, context=context, beside=self.is_split)
        self._write_brief(Content("\n" * apart) + text)

    def _write_brief(self, text: Content) -> None:
        """Write the text below the list, hidden until the first time."""
        shown = self.query_one("#glance", Static)
        rows = len(self.grid.table_rows) + HEADER
        # The brief begins right below the rows, and rows that have no room are scrolled.
        self.grid.styles.max_height = max(rows, LEAST_ROWS)
        if not shown.display or not is_same_text(shown.content, text):
            # Only another number of lines needs a new layout of the tab.
            shown.update(text, layout=not shown.display or shown.size.height != len(text.plain.splitlines()))
            shown.display = True

    def _update_keys(self) -> None:
        """Read the bindings again if other acts have become possible."""
        can = tuple(bool(self.check_action(action, ())) for action in ("interrupt", "resume"))
        if can != self._can:
            self._can = can
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable acts on the run under the cursor: a running run can be interrupted, a stopped one resumed."""
        here = self.current_run
        if action == "interrupt":
            return here is not None and not here.run.state.is_final and not here.is_stalled
        if action == "resume":
            return here is not None and (here.is_resumable or here.is_stalled)
        if action == "delete":
            return self.is_mounted and (bool(self._marked_run_ids) or (here is not None and here.run.state.is_final))
        if action in ("again", "duplicate", "weigh", "name", "log"):
            return here is not None
        if action in ("compare", "map"):
            return bool(self._lines)
        return True

    def open_word_of(self, row: RunRow) -> str | None:
        """Return what ``enter`` does on a row: the trials of a search are listed or folded, a run is opened."""
        if not isinstance(row, SearchTrials):
            return None
        return "Hide trials" if row.search_id in self._open_searches else "List trials"

    async def open_row(self, row: RunRow) -> None:
        """Request the run for the other tabs, or open or fold the trials of a search."""
        if isinstance(row, SearchTrials):
            self._open_searches ^= {row.search_id}
            self.show_runs(self._lines)
            return
        self.post_message(self.RunChosen(row.run.id))

    @on(MarkedGrid.MarksChanged)
    def _post_marked_runs(self) -> None:
        """Post the marked runs."""
        self.post_message(self.RunsMarked(self._marked_run_ids[-MOST_MARKED:]))

    @property
    def _marked_run_ids(self) -> tuple[int, ...]:
        """Return the numbers of the marked runs, the latest marked last."""
        return tuple(key for key in self.grid.marked_keys if isinstance(key, int))

    def command_words(self) -> tuple[str, ...]:
        return ("runs",)

    async def action_compare(self) -> None:
        """Compare the two runs marked last, or the marked one with the one under the cursor."""
        chosen = list(self._marked_run_ids[-2:])
        if len(chosen) < 2 and self.current_run is not None and self.current_run.run.id not in chosen:
            chosen.append(self.current_run.run.id)
        if len(chosen) < 2:
            self.sfumato.say(
                f"Mark two runs with {current_key(self.app, 'mark')}, then press {current_key(self.app, 'compare')} to compare them"
            )
            return
        states = {line.run.id: line.run.state for line in self._lines}
        if unfinished := [run for run in chosen if states.get(run) is not RunState.DONE]:
            self.sfumato.say(f"run {unfinished[0]} is not done; compare runs that are")
            return
        await self.sfumato.open(ComparisonDialog(chosen[0], chosen[1]))

    async def action_again(self) -> None:
        """Ask, then run the same recipe on the same data once more."""
        if self.current_run is None:
            return
        run_id = self.current_run.run.id

        def run_again_if_confirmed(yes: bool | None) -> None:
            """Run the recipe again if the user has confirmed."""
            if yes:
                self.sfumato.run_again(run_id)

        consequence = (
            f"The recipe of run {run_id} on its data once more, as a new run; with the same seed and key it finds the same. "
            f"{current_key(self.app, 'duplicate')} makes a plan of it, to change first."
        )
        await self.sfumato.open(
            ConfirmDialog(f"Run the recipe of run {run_id} again?", consequence, "Run"), run_again_if_confirmed
        )

    def action_duplicate(self) -> None:
        """Request a plan that is that of this run."""
        if self.current_run is not None:
            self.post_message(self.RunDuplicated(self.current_run.run.id))

    def action_weigh(self) -> None:
        """Request the plan of this run with less influence for its records at risk."""
        here = self.current_run
        if here is None or here.run.state is not RunState.DONE:
            self.sfumato.say("Only a run that is done tells which records are at risk")
            return
        from sfumato.workspace.service.reweighting import read_reweightable_run

        self.compute(lambda workspace: read_reweightable_run(workspace, here.run.id), self._ask_weighing)

    def _ask_weighing(self, found: ReweightableRun) -> None:
        """Ask for the measure and the strength."""

        def post_weighted_plan(table: dict[str, Any] | None) -> None:
            """Request the plan with the weights."""
            if table is not None:
                self.post_message(self.RunDuplicated(found.run_id, found.weights_table(table)))

        self.call_later(self.sfumato.open, weighing_form(found), post_weighted_plan)

    def action_map(self) -> None:
        """Request the map."""
        self.post_message(self.MapRequested())

    def action_resume(self) -> None:
        """Resume the run under the cursor."""
        if self.current_run is not None:
            self.sfumato.resume_run(self.current_run.run.id)

    async def action_log(self) -> None:
        """Show the tasks of the run and the log entries of each."""
        if self.current_run is not None:
            from .task_log import TaskLog

            await self.sfumato.open(TaskLog(self.current_run.run.id))

    async def action_name(self) -> None:
        """Ask for the name and the note of the run."""
        if self.current_run is not None:
            run = self.current_run.run

            def store_name(table: dict[str, Any] | None) -> None:
                """Store name and note."""
                if table is not None:
                    given = (str(table.get(key, "")) for key in ("name", "note"))
                    self.sfumato.job(partial(jobs.name_run, self.sfumato.directory, run.id, *given))

            await self.sfumato.open(naming_form(run), store_name)

    async def action_delete(self) -> None:
        """Ask, then delete the marked runs that have ended, or the run under the cursor if none is marked."""
        chosen = self.grid.chosen_keys
        ended = tuple(line.run.id for line in self._lines if line.run.id in chosen and line.run.state.is_final)
        if not ended:
            self.sfumato.say("Only runs that have ended can be deleted")
            return

        def delete_if_confirmed(yes: bool | None) -> None:
            """Delete the runs if the user has confirmed."""
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
        await self.sfumato.open(ConfirmDialog(f"Delete {what}?", consequence, "Delete"), delete_if_confirmed)

    async def action_interrupt(self) -> None:
        """Ask, then interrupt the run under the cursor."""
        if self.current_run is None:
            return
        run_id = self.current_run.run.id

        def interrupt_if_confirmed(yes: bool | None) -> None:
            """Interrupt the run if the user has confirmed."""
            if yes:
                self.sfumato.interrupt_run(run_id)

        question = ConfirmDialog(
            f"Interrupt run {run_id}?",
            f"Finished tasks keep their results; {current_key(self.app, 'interrupt')} resumes it.",
            "Interrupt",
        )
        await self.sfumato.open(question, interrupt_if_confirmed)


def read_run_brief(run_id: int, workspace: Workspace) -> RunBrief:
    """Read a run in brief, its verdicts, what changed since the run before it, and its synthesis in a line. Raises NotFound."""
    # They load methods, which takes the app longer than to start.
    from sfumato.workspace.reporting.plan_steps import plan_facts
    from sfumato.workspace.views.run_changes import read_run_changes

    verdicts = read_verdicts(workspace, run_id)
    facts = plan_facts(read_toml(recipe_text_of(workspace, run_id)), limits=not verdicts)
    return RunBrief(
        read_run_detail(workspace, run_id),
        read_run_changes(workspace, run_id),
        brief_plan_facts(facts),
        verdicts,
        _read_named_tasks(workspace, run_id),
    )


def _read_named_tasks(workspace: Workspace, run_id: int) -> list[NamedTask]:
    """Read the tasks of a run that are computed now, or took longest; none where this version cannot read its recipe."""
    try:
        return tasks_to_name(list_tasks(workspace, run_id), find_run(workspace, run_id).recipe)
    except BadInput:
        return []


def brief_plan_facts(facts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return how many steps draw values by which methods, and the limits; the place Plan has the rest."""
    head, methods, limits = "", Counter[str](), []
    for name, text in facts:
        head = name or head
        if head == "synthesis":
            methods[text.partition(":")[0]] += 1
        elif head == "limits":
            limits.append((name, text))
    steps = count_noun(methods.total(), "step")
    said = ", ".join(f"{method} ({count})" for method, count in methods.items())
    return [*limits, *([("synthesis", f"{steps}: {said}")] if methods else [])]


STATE_COLUMNS = [COLUMNS[place] for place in (2, 6, 3, 4, 5, 7, 8)]
"""Columns that the list may have no room for beside the run in full."""


def full_run_detail(workspace: Workspace, line: RunSummary, place_key: str = "") -> FullRunDetail:
    """Read a run in full; ``place_key`` is the key of the place that has all numbers. Raises NotFound."""
    run_id = line.run.id
    state = [(column.name, str(said)) for column in STATE_COLUMNS if column.cell and (said := column.cell(line))]
    standing = ", ".join(f"{name} {said}" for name, said in state)
    # A study has a row for each level; Results shows them.
    rows = [row for row in read_selected_rows(workspace, ResultSelection(run_id), 0, MOST_ROWS) if row.level is None]
    detail = read_run_detail(workspace, run_id)
    # Where a person has several records, numbers of people have to say of how many people. Counting them reads a column,
    # for which a run that goes on, which is read again at every step, has no use.
    if rows and line.run.state.is_final:
        detail = replace(detail, records=count_records_and_units(workspace, line.run))
    apart = varying_settings_of_recipe(recipe_text_of(workspace, run_id))
    # The number of tasks that are done stands with the time that they took.
    facts = [one for one in state if one[0] != "tasks"]
    return FullRunDetail(detail, standing, read_verdicts(workspace, run_id), rows, apart, facts, place_key)
