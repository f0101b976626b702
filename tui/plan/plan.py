"""Tab Plan: the steps of the project's plan in a list, the current one in words, its text, and the queue of edits.

Edits are computed in a thread. Each key acts on the plan as all earlier keys have left it, and waits until their edits
are done.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import isawaitable
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from textual import events, on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static, TextArea
from textual.worker import get_current_worker

from sfumato.engine.errors import EngineError
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.workspace.errors import NotFound, WorkspaceError
from sfumato.workspace.jobs.settings import DEFAULT_JOBS
from sfumato.workspace.plan.drafts import PlanDraft, draft_of_run, find_draft
from sfumato.workspace.reporting.tables import COLUMN_GAP, fit_columns, grid_width
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.dialogs import ConfirmDialog
from ..parts.gate_lines import run_answer_lines
from ..session import jobs
from ..session.messages import ErrorMessage
from ..terminal.external_editor import NotEdited, edit_text, editor_command
from ..terminal.text import cut_text
from ..widgets.entries import TomlText
from ..widgets.facts import titled_facts, wrap_text
from ..widgets.grid import HEADER, Grid, LiveGrid
from ..widgets.lines import Line, is_same_text
from ..widgets.pages import RowHeading
from ..widgets.panel import SECOND
from ..widgets.tables import Cells, Columns, GridTable, Keyed, TableColumn
from .plan_history import NOTHING_TO_REDO, NOTHING_TO_UNDO, EditsPlan, PlanHistory
from .step_lines import StepTexts, fit_phrases, fit_variables, step_lines, step_texts, width_of_names
from .step_words import DATA_AND_RELEASE, GROUPS, step_cells, step_reason, step_sentence

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.plan.edits import PlanView, StepPlace
    from sfumato.workspace.plan.hierarchies import EditedHierarchy
    from sfumato.workspace.reporting.plan_steps import Facts, StepDescription
    from sfumato.workspace.reporting.searches import SearchOutcome
    from sfumato.workspace.reporting.variable_plans import VariablePlan
    from sfumato.workspace.views.recipe_difference import ChangesSinceRun

    from .search import SearchAnswer

MOST_CHANGES = 8
WIDTH = 54
"""Width of a line in the dialog, in cells."""
SETTINGS = "settings"
LEAST_LINES = 12
"""Height of a pane in lines below which the current step is not shown in full under the list."""
NONE = "This project has no data to plan for. Press n in Runs to run a recipe, or in a shell: sfumato import FILE"
TYPING_SECONDS = 1.0
UNSAVED_TEXT = "The text of the plan cannot be read yet, so it is not saved."
FIX_TOML_FIRST = "The TOML cannot be read; fix it first, or press u to undo what was typed"


class EditQueue(EditsPlan):
    """Mixin that computes edits one after another, and queues other acts in between."""

    @dataclass
    class EditComputed(Message, bubble=False):
        """Message with a computed edit: the new plan, or None and the error."""

        plan: PlanDraft | None
        error: str = ""

    _changing = 0
    _in_turn = False

    def __init__(self, project_id: int, name: str) -> None:
        """Create the tab with an empty queue."""
        super().__init__(project_id, name)
        self._acts: deque[Callable[[], object]] = deque()

    @property
    def is_read(self) -> bool:
        """Return whether the shown plan has been read completely."""
        raise NotImplementedError

    def show_edited_plan(self, plan: PlanDraft) -> None:
        """Show an edited plan."""
        raise NotImplementedError

    def compute_edit(self, query: Callable[[Workspace], PlanDraft]) -> None:
        """Compute an edit in a thread; after an error of the engine or the workspace the plan stays unchanged."""
        self._changing += 1
        self._compute_change(query)

    @work(thread=True, group="change", exit_on_error=False)
    def _compute_change(self, query: Callable[[Workspace], PlanDraft]) -> None:
        """Run the query in this thread and post the plan or the error."""
        message = self.EditComputed(None)
        try:
            with Workspace.open(self.sfumato.directory) as workspace:
                message = self.EditComputed(query(workspace))
        except (sqlite3.Error, WorkspaceError, EngineError) as error:
            message = self.EditComputed(None, str(error))
        # Posted in any case: without this message all later acts would wait forever.
        finally:
            self.post_message(message)

    @on(EditComputed)
    def _finish_edit(self, event: EditComputed) -> None:
        """Show the edited plan or the error, and run the next act."""
        self._changing -= 1
        if event.error:
            self.post_message(ErrorMessage(event.error))
        elif event.plan is not None:
            self.show_edited_plan(event.plan)
        self.run_next_act()

    def queue_if_busy(self, act: Callable[[], object]) -> bool:
        """Queue the act if an edit or another act is in progress; return whether it was queued."""
        # An act that is run from the queue must not queue itself again.
        if self._in_turn or not (self._acts or self._changing or not self.is_read):
            return False
        self._acts.append(act)
        return True

    def run_next_act(self) -> None:
        """Run the act that has waited longest, once nothing is in progress."""
        if self._acts and not self._changing and self.is_read:
            self.call_later(self._run_act_in_turn, self._acts.popleft())

    def drop_queued_acts(self) -> None:
        """Drop the queued acts, since there is no plan to act on."""
        self._acts.clear()

    async def _run_act_in_turn(self, act: Callable[[], object]) -> None:
        """Run a queued act, and then the next one."""
        self._in_turn = True
        try:
            done = act()
            if isawaitable(done):
                await done
        finally:
            self._in_turn = False
        self.run_next_act()


def run_plan_text(view: PlanView, cost: str = "") -> str:
    """Describe what a run would compute, and its privacy cost, if any."""
    release = mapping_or_empty(view.table.get("release"))
    counts = [
        (len(view.table.get(section, [])), name)
        for section, name in (
            ("measure", "measure"),
            ("study", "study"),
            ("threshold", "threshold"),
            ("table", "table"),
        )
    ]
    plural = {"study": "studies"}
    parts = [f"{n} {name if n == 1 else plural.get(name, f'{name}s')}" for n, name in counts if n]
    if view.table.get("synthesis"):
        m = release.get("m", 20)
        parts.insert(0, f"{count_noun(m, 'dataset')}")
    weights = mapping_or_empty(view.table.get("weights"))
    known = ", ".join(map(str, weights.get("known", ())))
    at_risk = f"Records with rare values of {known}" if known else f"Records at risk in run {weights.get('run')}"
    less = f"{at_risk} have less influence." if weights else ""
    doubts = " ".join(f"{sign_for('warn')} {said}." for said in view.warnings)
    return " ".join(filter(None, (f"{', '.join(parts)}.", less, cost, doubts, "It keeps running if you quit.")))


def mapping_or_empty(value: object) -> Mapping[str, Any]:
    """Return a mapping unchanged, and an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def changes_since_run_text(since: ChangesSinceRun | None) -> str:
    """Describe what was changed since the newest run, a line for each difference; empty if there is no run."""
    if since is None:
        return ""
    from sfumato.workspace.reporting.recipe_difference import difference_sentence

    run = replace_unprintable(f"run {since.run_id}{f' {since.run_label}' if since.run_label else ''}")
    lines = [f"- {difference_sentence(one)}" for one in since.changes]
    lines.insert(0, "- it is for other records") if since.is_other_data else None
    if not lines:
        return f"Nothing is changed since {run}: the same plan runs again."
    more = len(lines) - MOST_CHANGES
    shown = [cut_text(line, WIDTH) for line in lines[:MOST_CHANGES]]
    return "\n".join([f"Changed since {run}:", *shown, *([f"and {more} more"] if more > 0 else [])])


class RunPlanDialog(ConfirmDialog):
    """Question before a plan is run."""

    needs_engine = True

    # The question is shown before the changes are read, so that no key is lost.
    def __init__(self, consequence: str, draft: PlanDraft) -> None:
        """Create the dialog for a plan."""
        super().__init__("Run this plan?", consequence, "Run")
        self._draft = draft

    def compose_extra(self) -> ComposeResult:
        """Yield the text for cost and changes."""
        yield Static("", id="run-changes", markup=False)

    def read_query(self) -> Callable[[Workspace], str]:
        """Return the query for the cost and the changes, in words."""
        draft = self._draft

        def query(workspace: Workspace) -> str:
            """Describe how long the run takes and what was changed."""
            from sfumato.workspace.service.costs import plan_cost_text
            from sfumato.workspace.views.recipe_difference import changes_since_newest_run

            takes = plan_cost_text(
                workspace, draft.toml, workspace.find_dataset(draft.dataset_id).records, DEFAULT_JOBS
            )
            return "\n\n".join(
                filter(None, (takes, changes_since_run_text(changes_since_newest_run(workspace, draft))))
            )

        return query

    def show_answer(self, answer: str) -> None:
        """Show the cost and the changes."""
        if answer:
            self.query_one("#run-changes", Static).update(f"\n{answer}")


LEAST_STEP_WIDTH, MOST_STEP_WIDTH = 8, 20
"""Least and greatest width of the column of drawn variables in cells."""
BESIDE_FROM = 100
"""Columns of a terminal from which the step under the cursor stands beside the list."""


def step_table(steps: Iterable[StepRow], name_width: int = 0) -> GridTable[Keyed]:
    """Return the table of the steps; columns have the room that their longest cell needs, settings what is left.

    What a variable is drawn from begins below the column that stands behind names of ``name_width`` cells.
    """
    drawn = [one.cells for one in steps if one.cells["method"]]
    name, method, given, settings = (
        max((cell_len(str(cells[key])) for cells in drawn), default=0) for key in ("step", "method", "from", "settings")
    )

    named = min(MOST_STEP_WIDTH, max(LEAST_STEP_WIDTH, name))
    aligned = name_width - named - COLUMN_GAP

    def cell(key: str) -> Callable[[Keyed], object]:
        """Return the function that reads a cell of a row."""
        return lambda row: row[1].get(key)

    def fit_step_columns(columns: Columns[Keyed], width: int) -> Columns[Keyed]:
        """Return the columns in ``width`` cells; settings only beside whole names of what a variable is drawn from."""
        needed = grid_width([replace(one, width=given) if one.name == "from" else one for one in columns])
        kept = [one for one in columns if one.name != "settings" or (settings and needed <= width)]
        if len(kept) < len(columns):
            # Settings would need the cells more.
            kept = [replace(one, width=max(one.width, aligned)) if one.name == "method" else one for one in kept]
        return [
            replace(one, cell=partial(given_text, one.width)) if one.name == "from" else one
            for one in fit_columns(kept, width)
        ]

    def given_text(room: int, row: Keyed) -> str:
        """Return what a variable is drawn from in ``room`` cells."""
        return fit_variables(str(row[1].get("from") or ""), room)

    columns: Columns[Keyed] = (
        TableColumn("mark", "", 1, cell=cell("mark")),
        TableColumn("step", "step", named, spills=True, cell=cell("step")),
        TableColumn("method", "method", max(len("method"), method), cell=cell("method")),
        TableColumn("from", "drawn from", 16, grow_order=1, cell=cell("from")),
        TableColumn("settings", "settings", max(len("settings"), settings), cell=cell("settings")),
    )
    return GridTable(
        columns,
        lambda row: row[0],
        column_fitter=fit_step_columns,
        heading=_row_heading,
    )


def _row_heading(row: Keyed) -> RowHeading | None:
    """Return the heading that a row is; None for a step."""
    found = row[1].get("heading")
    return found if isinstance(found, RowHeading) else None


def width_of_step_names(steps: Iterable[StepRow], width: int) -> int:
    """Return the cells of the names of all steps that draw nothing, in lines of ``width`` cells."""
    return width_of_names([one.texts for one in steps if one.texts is not None], width)


def rows_with_headings(steps: Iterable[StepRow], width: int) -> list[Keyed]:
    """Return the rows of the list in lines of ``width`` cells, with a heading above the steps of each section.

    Steps that draw nothing have columns of their own, whose heads stand in the heading, and begin at one place.
    """
    rows: list[Keyed] = []
    steps = list(steps)
    name_width = width_of_step_names(steps, width)
    for section, group in groupby(steps, key=lambda one: one.section):
        listed = list(group)
        texts = [one.texts for one in listed if one.texts is not None]
        heads, lines = step_lines(section, texts, width, name_width)
        if section != SETTINGS:
            named = GROUPS.get(section, section)
            title = named + f"{HEADING_INDENT}{heads}"[cell_len(named) :] if heads else named
            rows.append((f"heading {len(rows)}", {"heading": RowHeading(title)}))
        told = iter(lines)
        rows += [(one.key, one.cells if one.texts is None else {**one.cells, "step": next(told)}) for one in listed]
    return rows


UNPROTECTED = "Who knows what stays unchanged"
MOST_ANSWER, LEAST_ANSWER, BETWEEN = 14, 5, 2
"""Most and least lines of what the run of the plan found, and blank lines around a part below the list."""
LED_BY = "why", "who knows it", "if not met", "what to change", "good is"
"""Facts of a step that stand first where it has few lines."""
IN_ROW_OF_LIMIT = "what it does", "limit", "why"
"""Facts of a limit that its row has, or that are those of every limit."""
DRAWN_BY = "replaces", "predictors"
"""Facts of a step that draws a variable which the sentence on what it does has too."""
SETTINGS_MEANING = "Settings at their default"
"""Heading above what the settings mean that the plan does not name."""
TOLD = 2
"""Facts of a step before those about its variable: what it does and why."""
LEAST_STEP, MOST_LIST = 6, 0.6
"""Lines for the current step in full, and the share of the lines that a long list keeps."""
TAKES = "It takes "
"""Beginning of the sentence on the cost of a run."""
LEAST_WIDTH = 20
"""Least width of a text in cells."""
MOST_HEAD = 2
"""Most lines of the heading beside the step."""
HEADING_INDENT = "   "
"""Blanks before a step's name under a heading, where the sign of a problem stands."""
BEFORE_STEP = 6
"""Cells of a line of the list besides the text of a step: the sign of a problem, gaps and the bar that scrolls."""


@dataclass(frozen=True)
class StepRow:
    """Row of the list of steps.

    key: key of the row
    section: section of the recipe
    cells: cells by column
    words: full description
    facts: what the step does and why, then all about it
    texts: texts of a step that draws nothing by column; None of one that draws, and of the settings
    """

    key: str
    section: str
    cells: Cells
    words: StepDescription
    facts: Facts
    texts: StepTexts | None = None


def step_rows(view: PlanView, plans: Mapping[str, VariablePlan]) -> list[StepRow]:
    """Return a row for title, data and release, then one for each step; ``plans`` say what is done to each variable."""
    from sfumato.workspace.reporting.plan_steps import describe_plan_head, describe_step

    wrong = view.problem_place.partition(".")[0] in ("title", "data", "weights", "variables", "release")
    found = [_step_row(SETTINGS, SETTINGS, describe_plan_head(view.table), {}, wrong=wrong)]
    for line in view.lines or ():
        place = str(line.place)
        wrong = view.problem_place == place or view.problem_place.startswith(f"{place}.")
        words = describe_step(line.place.section, line.table, view.table)
        title = _variable_title(line.table.get("target"), view.table)
        row = _step_row(place, line.place.section, words, line.table, title, wrong=wrong)
        plan = plans.get(str(line.table.get("target"))) if line.place.section == "synthesis" else None
        if plan is not None:
            # The row has the first fact, how the variable is released, already.
            row = replace(row, facts=[*row.facts[:TOLD], *plan.facts[1:], *row.facts[TOLD:]])
        found.append(row)
    return found


def _variable_title(name: object, table: Mapping[str, Any]) -> str:
    """Return the title of a variable of the plan ``table``; empty without one."""
    variables = mapping_or_empty(table.get("variables"))
    return str(mapping_or_empty(variables.get(name) if isinstance(name, str) else None).get("title", ""))


def _step_row(
    key: str, section: str, words: StepDescription, step: Mapping[str, Any], title: str = "", *, wrong: bool
) -> StepRow:
    """Return a row with the sign of a problem if the step is ``wrong``; ``title`` is that of the drawn variable."""
    cells = {"mark": sign_for("fail") if wrong else "", **step_cells(section, words, step)}
    reason = step_reason(section, step)
    told = [("what it does", step_sentence(section, words, step, title)), ("why", reason)] if reason else []
    # The sentence names the variable and what it is drawn from.
    facts = [fact for fact in words.facts if not told or section != "synthesis" or fact[0] not in DRAWN_BY]
    texts = None if section == SETTINGS or cells["method"] else step_texts(section, words, step)
    return StepRow(key, section, cells, words, [*told, *facts], texts)


def _line_count(text: Content) -> int:
    """Return the number of lines of a text."""
    return text.plain.count("\n") + 1


def _marked_lines(text: Content, most: int, width: int) -> Content:
    """Return at most so many lines of a text of ``width`` cells, the last of them with a mark where others follow."""
    lines = text.split("\n", allow_blank=True)
    if not 0 < most < len(lines):
        return text
    *kept, last = lines[:most]
    return Content("\n").join([*kept, Content.assemble(last.truncate(max(1, width - 2)), " …")])


class StepPane(Static):
    """Pane with the step under the cursor in words."""

    DEFAULT_CLASSES = SECOND
    pane_title = "Step"


class StepGrid(LiveGrid):
    """Grid of steps in which enter edits one."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Edit", show=True)]


class PlanTab(EditQueue):
    """Tab with the steps and the text of the plan. Edits are stored at once; u undoes them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("add", "add", show=True),
        bind_act("run", "run", show=True),
        bind_act("search", "search", "Search for a plan", show=True),
        bind_act("undo", "undo", show=True),
        bind_act("redo", "redo"),
        bind_act("delete", "remove", "Remove"),
        bind_act("earlier", "move(-1)", "Move up"),
        bind_act("later", "move(1)", "Move down"),
        bind_act("hierarchy", "hierarchy", "Hierarchies"),
        bind_act("table", "text", "Edit the TOML"),
        bind_act("constraints", "rules"),
        bind_act("editor", "editor", "Edit the TOML in your editor"),
    ]

    @dataclass
    class PlanExamined(Message):
        """Message with a parsed text of the plan, the rows of its steps, and the variables by what is released of them."""

        view: PlanView
        steps: Sequence[StepRow]
        released: Facts
        unprotected: Facts

    def __init__(self, project_id: int) -> None:
        """Create the tab of a project."""
        super().__init__(project_id, "plan")
        self._view: PlanView | None = None
        self._steps: Mapping[str, StepRow] = {}
        self._head: PlanView | None = None
        self._run_of_plan: int | None = None
        self._waiting: PlanDraft | None = None
        self._due = self._absent = False
        self._examined: str | None = None
        self._to_examine: str | None = None
        self._listed, self._began = True, False
        self._typing: Timer | None = None
        self._want: str | None = None
        self._released: Facts = []
        self._unprotected: Facts = []
        self._answered: tuple[int, ReleaseAnswer, bool] | None = None
        self._row_count = self._detail_lines = self._list_lines = 0
        self._cost: tuple[str, str] = "", ""
        self._head_text = ""

    def compose(self) -> ComposeResult:
        """Yield the problems, the steps and the current one in full, and the text."""
        yield Line(name="plan-head")
        with Container(id="plan-body"):
            with Vertical(id="plan-steps"):
                yield Static("", id="plan-state", markup=False)
                yield StepGrid(empty="…")
                yield Static("", id="plan-released", markup=False)
            yield StepPane("", id="plan-step", markup=False)
            yield TomlText(id="plan-text")

    def take_focus(self) -> None:
        """Focus the steps."""
        self.query_one(StepGrid).focus()

    def show_answer(self, answer: PlanDraft | None) -> None:
        """Show the plan, unless an edit of it is in progress."""
        draft, first = answer, self._history is None
        self._absent = draft is None
        if draft is None:
            self.drop_queued_acts()
            self.query_one(StepGrid).set_empty_text(NONE)
            self.query_one(StepGrid).show_table(step_table([]), [])
        elif not self._is_typed and (history := self.history_with_read_plan(draft)) is not None:
            self._set_plan(history, save=False)
            # A plan that came before the stored one was read is an edit of that, so that u restores the stored one.
            waiting, self._waiting = self._waiting, None
            if first and waiting is not None:
                self.show_edited_plan(waiting)

    @property
    def is_read(self) -> bool:
        """Return whether the shown text was read and checked and its steps are listed, or there is no plan."""
        if self._absent or self._history is None:
            return self._absent
        return self._listed and self._examined == self.query_one(TomlText).text

    @property
    def _is_typed(self) -> bool:
        """Return whether the text was changed and is not the plan yet."""
        return self._history is not None and self.query_one(TomlText).text != self._history.now.toml

    @property
    def unsaved(self) -> str:
        """Return a warning that the typed text cannot be the plan; empty if all is saved."""
        return UNSAVED_TEXT if self._is_typed and self.is_mounted else ""

    def _set_plan(self, history: PlanHistory, *, save: bool = True) -> None:
        """Show a plan, and store it unless told otherwise."""
        self._history = history
        text = self.query_one(TomlText)
        if text.text != history.now.toml:
            text.load_text(history.now.toml)
        self._examine_text(history.now.toml)
        if save:
            self.store_plan()

    def _examine_text(self, toml: str) -> None:
        """Parse a text in a thread; an earlier text is dropped."""
        self._to_examine = toml
        self._examine(toml)

    @work(thread=True, exclusive=True, group="examine", exit_on_error=False)
    def _examine(self, toml: str) -> None:
        """Parse the text and describe its steps."""
        from sfumato.workspace.plan.edits import parse_plan
        from sfumato.workspace.reporting.variable_plans import (
            describe_variable_plans,
            treatment_lines,
            unprotected_lines,
        )

        worker = get_current_worker()
        view = parse_plan(toml)
        plans = {} if view.problem else describe_variable_plans(view.table)
        steps, released = step_rows(view, plans), treatment_lines(plans)
        if not worker.is_cancelled:
            self.post_message(self.PlanExamined(view, steps, released, unprotected_lines(plans)))

    @on(PlanExamined)
    def _show_examined_plan(self, event: PlanExamined) -> None:
        """Show a parsed text, unless the text was edited since."""
        view = event.view
        if view.toml != self.query_one(TomlText).text:
            return
        self._examined = view.toml
        # While the typed text cannot be read, the last steps that could stay listed.
        if view.lines is not None:
            self._view, self._steps = view, {one.key: one for one in event.steps}
            self._released, self._unprotected = event.released, event.unprotected
            self._show_steps()
            if self._due:
                self._apply_typed_text()
        self.run_next_act()
        self._head = view
        self._show_head()
        self._estimate_cost(view)

    def _estimate_cost(self, view: PlanView) -> None:
        """Estimate in a thread how long the plan takes, for its heading; an unreadable plan has no estimate."""
        draft = self._history.now if self._history is not None else None
        if draft is None or view.problem or not view.lines or self._cost[0] == view.toml:
            return

        def estimate(workspace: Workspace) -> tuple[str, str]:
            """Return the text of the plan with the sentence about its cost."""
            from sfumato.workspace.service.costs import plan_cost_text

            records = workspace.find_dataset(draft.dataset_id).records
            return view.toml, plan_cost_text(workspace, view.toml, records, DEFAULT_JOBS)

        self.compute(estimate, self._show_cost)

    def _show_cost(self, answer: tuple[str, str]) -> None:
        """Show the estimate, unless the plan has changed since."""
        self._cost = answer
        self._show_head()

    def set_run_of_plan(self, run_id: int | None) -> None:
        """Show in the heading which run was made from the present plan; None for no run."""
        if run_id != self._run_of_plan:
            self._run_of_plan = run_id
            self._show_head()

    def set_run_answer(self, answered: tuple[int, ReleaseAnswer, bool] | None) -> None:
        """Show what the gate said of a run, and whether its plan is this one; None where there is no answer."""
        if answered != self._answered:
            self._answered = answered
            if self.is_mounted:
                self._show_step_details()

    def _show_head(self) -> None:
        """Show whether the plan can be run, whether it was, and warnings about it."""
        if (view := self._head) is None:
            return
        if view.problem:
            self._write_head(f"{sign_for('fail')} {view.problem}")
            return
        if view.lines:
            key = current_key(self.app, "run")
            words = [sign_for("pass"), key, "runs this plan"]
            if self._run_of_plan is not None:
                words = [sign_for("pass"), f"run {self._run_of_plan} is this plan;", key, "runs it again"]
        else:
            words = [sign_for("into"), current_key(self.app, "add"), "adds the first step; there is nothing to run yet"]
        doubts = [f"{sign_for('warn')} {said}" for said in view.warnings]
        # The first sentence has the time; what it is based on stands in the question before a run.
        cost = self._cost[1].partition(" (")[0].rstrip(".") if self._cost[0] == view.toml else ""
        # "about 3 minutes, 0.9 GB" has room in the one line of a narrow list.
        takes = cost.removeprefix(TAKES)
        cost = f"{cost[:1].lower()}{cost[1:]}" if takes == cost else takes.replace(" and about ", ", ", 1)
        self._write_head(
            " · ".join(filter(None, (" ".join(words), replace_unprintable(self.last_change_text), *doubts, cost)))
        )

    @property
    def _list_width(self) -> int:
        """Return the cells of a line beside the step, as the style sheet divides the width."""
        return self.query_one("#plan-body").size.width * 2 // 3 - 2

    def _write_head(self, text: str) -> None:
        """Write the heading above the steps: in the list's own width where the step stands beside it."""
        self._head_text = text
        self.query_one("#plan-head", Line).set_text(text)
        self._divide_lines()

    def _show_steps(self) -> None:
        """List the steps, with the cursor on the wanted one."""
        if self._view is not None:
            steps = self._steps.values()
            if not self._began and self._steps:
                # The first look is at what is wrong, else at the first step.
                self._began, own = True, [one.key for one in steps if one.key != SETTINGS]
                wrong = [one.key for one in steps if one.cells["mark"]]
                self._want = self._want or next(iter([*wrong, *own]), None)
            is_wide = self.app.size.width >= BESIDE_FROM
            list_width = self._list_width if is_wide else self.query_one("#plan-body").size.width
            width = max(LEAST_WIDTH, list_width - BEFORE_STEP)
            head = self._steps.get(SETTINGS)
            rows = rows_with_headings(steps, width)
            if head is not None:
                # Data and release has one line, as the steps have; others of its settings are told by name.
                said = fit_phrases(str(head.cells["step"]).split("; "), width) or head.cells["step"]
                rows[0] = rows[0][0], {**rows[0][1], "step": said}
            self._row_count = len(rows)
            table = step_table(steps, width_of_step_names(steps, width))
            self.query_one(StepGrid).show_table(table, rows, self._want)
            self._divide_lines()
            # Until the grid has the rows, its cursor is not on the step that keys are meant for.
            self._want, self._listed = None, False
            self.set_heading_count(count_noun(len(self._view.lines or ()), "step"))

    def on_resize(self) -> None:
        """Divide the lines between list and step, and break long steps at the new width."""
        self._divide_lines()
        self.call_after_refresh(self._show_steps)

    def _divide_lines(self) -> None:
        """Place the step in words beside the list or below it, and what the plan releases below the list."""
        body, pane = self.query_one("#plan-body"), self.query_one(StepPane)
        beside = self.app.size.width >= BESIDE_FROM
        self.query_one("#plan-head", Line).display = not beside
        state = self.query_one("#plan-state", Static)
        state.display = beside and bool(self._head_text)
        above = wrap_text(self._head_text, max(1, self._list_width))[:MOST_HEAD] if state.display else []
        state.update("\n".join(above))
        lines, needed = body.size.height, self._row_count + HEADER + len(above)
        shown = bool(self._steps) and (beside or lines >= LEAST_LINES)
        kept = lines if beside or not shown else min(needed, max(lines - LEAST_STEP, round(lines * MOST_LIST)))
        body.set_class(beside, "beside")
        pane.set_class(shown, "shown")
        self.query_one("#plan-steps").styles.height = "1fr" if beside or not shown else kept
        self._detail_lines = lines if beside else lines - kept
        self._list_lines = lines - needed if beside else 0
        # The width of the step is known once it is laid out.
        self.call_after_refresh(self._show_step_details)

    def _show_step_details(self) -> None:
        """Show all details of the step under the cursor, and what all steps together release."""
        told, found = self.query_one(StepPane), self._steps.get(str(self.query_one(StepGrid).row_key))
        below, steps = self.query_one("#plan-released", Static), self.query_one("#plan-steps").size
        released = titled_facts("What the plan releases", self._released, max(LEAST_WIDTH, steps.width - 2))
        is_below = bool(self._released) and _line_count(released) + 1 <= self._list_lines
        if is_below:
            released = self._with_answer(released, max(LEAST_WIDTH, steps.width - 2))
        above = self.query_one("#plan-state", Static)
        rows = steps.height - self._list_lines - (above.size.height if above.display else 0)
        self.query_one(StepGrid).styles.height = rows if is_below else "1fr"
        below.display = is_below
        if is_below and not is_same_text(below.content, released):
            below.update(released)
        if not told.display or found is None:
            return
        title = DATA_AND_RELEASE if found.key == SETTINGS else found.words.name
        width = max(LEAST_WIDTH, told.size.width - 2)
        begins = self._released if found.key == SETTINGS and not is_below else []
        facts = found.facts
        is_narrow = self.app.size.width < BESIDE_FROM
        if is_narrow:
            # The row above says what the step does; a few lines are for what it does not.
            facts = [fact for fact in facts if found.section != "threshold" or fact[0] not in IN_ROW_OF_LIMIT]
            facts = sorted(facts, key=lambda fact: LED_BY.index(fact[0]) if fact[0] in LED_BY else len(LED_BY))
        if is_narrow and found.cells.get("settings"):
            title = f"{title}: {found.cells['settings']}"
        parts = [] if found.key == SETTINGS or is_below else [("What the plan releases", self._released)]
        parts += [(SETTINGS_MEANING, found.words.meanings)]
        parts += [] if is_below or is_narrow else [(UNPROTECTED, self._unprotected)]
        own = [titled_facts(heading, told_facts, width) for heading, told_facts in parts if told_facts]
        text = self._with_fitting_parts(titled_facts(title, [*begins, *facts], width), own)
        airy = self._with_fitting_parts(titled_facts(title, [*begins, *facts], width, is_airy=True), own)
        # Blank lines take none that a part needs.
        blank = _line_count(airy) - _line_count(text)
        if not is_narrow and blank >= 0 and _line_count(airy) <= self._detail_lines:
            text = airy
        text = _marked_lines(text, told.size.height, width)
        # An unchanged text is not sent to the terminal again.
        if not is_same_text(told.content, text):
            told.update(text, layout=False)

    def _with_fitting_parts(self, text: Content, parts: Sequence[Content]) -> Content:
        """Return a text with the parts below it for which the pane of the step has lines."""
        for part in parts:
            if _line_count(text) + _line_count(part) + 1 <= self._detail_lines:
                text = Content("\n\n").join([text, part])
        return text

    def _with_answer(self, released: Content, width: int) -> Content:
        """Add what the run found, then who knows the variables that stay as they are, as far as there is room for them."""

        def room() -> int:
            """Return the lines that are left for another part."""
            return self._list_lines - _line_count(released) - BETWEEN

        if self._answered is not None and room() >= LEAST_ANSWER:
            run_id, answer, is_of_plan = self._answered
            part = run_answer_lines(run_id, answer, width, min(MOST_ANSWER, room()), is_of_plan=is_of_plan)
            released = Content("\n").join([released, Content(""), *part])
        if self._unprotected:
            known = titled_facts(UNPROTECTED, self._unprotected, width)
            if _line_count(known) <= room():
                released = Content("\n\n").join([released, known])
        return released

    @on(Grid.SourceOpened)
    def _finish_listing(self) -> None:
        """Run queued acts, now that the cursor is on its step again."""
        self._listed = True
        self._show_step_details()
        self.run_next_act()

    @property
    def current_step(self) -> StepPlace | None:
        """Return the place of the step under the cursor; None on the settings."""
        key = self.query_one(StepGrid).row_key
        lines = (self._view.lines if self._view else None) or ()
        return next((line.place for line in lines if str(line.place) == key), None)

    def manual_topics(self) -> Sequence[str]:
        """Return the method of the step under the cursor, or the section of the recipe, as topics of the manual."""
        place = self.current_step
        if place is None:
            return ("recipe data",)
        lines = (self._view.lines if self._view else None) or ()
        methods = [f"methods {line.method}" for line in lines if line.place == place and line.method]
        return (*methods, f"recipe {place.section}")

    @on(Grid.RowHighlighted)
    def _show_current_step(self) -> None:
        """Show the step under the cursor in full."""
        self._show_step_details()

    @on(TextArea.Changed)
    def _handle_typing(self) -> None:
        """Check the typed text, and make it the plan once typing pauses."""
        text = self.query_one(TomlText).text
        if text != self._to_examine:  # back to the plan that was there, by hand, has to be read too
            self._due = False
            self._examine_text(text)
            if self._typing is not None:
                self._typing.stop()
            self._typing = self.set_timer(TYPING_SECONDS, self._apply_typed_text)

    @on(TomlText.EditingEnded)
    def _leave_text(self) -> None:
        """Make the typed text the plan, and return to the steps."""
        self._apply_typed_text()
        self.query_one("#plan-body").remove_class("typing")
        self.take_focus()

    @on(events.DescendantBlur)
    def _apply_typed_text(self) -> None:
        """Make the typed text the plan, once it is known to be valid."""
        text = self.query_one(TomlText).text
        # A text that has not been checked yet becomes the plan when its check has come.
        self._due = self._view is None or self._view.toml != text
        if self._history is not None and self._is_typed and not self._due:
            self._history = self._history.after_edit(self._history.now.with_text(text))
            self.store_plan()

    def show_edited_plan(self, plan: PlanDraft) -> None:
        """Show an edited plan, as soon as there is a history to add it to."""
        if self._history is None:  # the plan has not been read yet, and what was asked for must not be lost
            self._waiting = plan
            return
        history = self._history.after_edit(plan)
        if history is not self._history:
            self._set_plan(history)

    def edit_text(self, change: Callable[[str], str], want: str | None = None, message: str = "") -> None:
        """Change the plan's text and show a message; the cursor goes to ``want``.

        Nothing is changed while the typed text is not valid TOML.
        """
        if self._history is None:
            return
        if self._is_typed:
            self.sfumato.say(FIX_TOML_FIRST, severity="warning")
            return
        if message:
            self.sfumato.say(message)
        self._want = want
        now = self._history.now
        self.compute_edit(lambda _: now.with_text(change(now.toml)))

    def start_from_run(self, run_id: int, weights: Mapping[str, Any] | None = None) -> None:
        """Make the plan that of a run, with these ``[weights]``; u restores the previous plan."""
        self.compute_edit(lambda workspace: draft_of_run(workspace, run_id, weights))

    def replace_text(self, toml: str, message: str) -> None:
        """Make this text the plan, and show a message; u restores the previous plan."""
        self.sfumato.say(message)
        self.compute_edit(partial(_draft_with_text, self._project_id, toml))

    def replace_draft(self, draft: PlanDraft, message: str) -> None:
        """Make this the plan, and show a message; u restores the previous plan."""
        self.sfumato.say(message)
        self.compute_edit(lambda _: draft)

    def action_undo(self) -> None:
        """Undo typed text that cannot be read, otherwise the last edit."""
        if self.queue_if_busy(self.action_undo):
            return
        if self._history is not None and self._is_typed:
            self._set_plan(self._history, save=False)
        elif self._history is not None and self._history.past:
            self._set_plan(self._history.after_undo())
        else:
            self.sfumato.say(NOTHING_TO_UNDO)

    def action_redo(self) -> None:
        """Apply the undone edit again."""
        if self.queue_if_busy(self.action_redo):
            return
        if self._history is not None and self._history.future and not self._is_typed:
            self._set_plan(self._history.after_redo())
        else:
            self.sfumato.say(NOTHING_TO_REDO)

    def action_text(self) -> None:
        """Show the text at the step under the cursor; escape returns. In a narrow terminal it replaces the steps."""
        self.query_one("#plan-body").add_class("typing")
        text, place = self.query_one(TomlText), self.current_step
        text.focus()
        # Its lines are broken once it has a width.
        self.call_after_refresh(text.show_table, place.section if place else "data", place.index if place else 0)

    def action_editor(self) -> None:
        """Edit the text with the editor that ``VISUAL`` or ``EDITOR`` names; the result is treated as typed."""
        if self.queue_if_busy(self.action_editor):
            return
        if self._history is None:
            return
        text = self.query_one(TomlText)
        try:
            command = editor_command(os.environ)
            with self.app.suspend():
                found = edit_text(text.text, "plan.toml", command)
        except (NotEdited, SuspendNotSupported) as error:
            self.sfumato.say(str(error), severity="warning")
            return
        if found == text.text:
            self.sfumato.say(
                f"{command[0]} changed nothing; one that returns at once needs an option to wait, as code --wait"
            )
        else:
            text.load_text(found)

    def action_move(self, by: int) -> None:
        """Move the step up or down among those of its section."""
        if self.queue_if_busy(partial(self.action_move, by)):
            return
        place = self.current_step
        if place is not None and self._view is not None:
            from sfumato.workspace.plan.edits import StepPlace, move_step

            to = StepPlace(place.section, place.index + by)
            self.edit_text(lambda toml: move_step(toml, place, by), str(to) if str(to) in self._steps else None)

    def action_remove(self) -> None:
        """Remove the step; u restores it."""
        if self.queue_if_busy(self.action_remove):
            return
        place = self.current_step
        if place is not None:
            from sfumato.workspace.plan.edits import remove_step

            self.edit_text(lambda toml: remove_step(toml, place), message=f"{place} was removed; u undoes")

    @on(Grid.RowSelected)
    async def _edit_current_step(self) -> None:
        """Edit the step under the cursor, or the settings, in a form."""
        if self.queue_if_busy(self._edit_current_step):
            return
        from .plan_forms import settings_form
        from .table_form import form_of_step

        if self._view is None or self._history is None:
            return
        place = self.current_step
        if place is None:
            await self.sfumato.open(*settings_form(self._view, self.edit_text))
            return
        await self.sfumato.open(
            *form_of_step(self._view, place, self._view.table[place.section][place.index], self.edit_text)
        )

    async def action_hierarchy(self) -> None:
        """Edit the hierarchy of a quasi-identifier, of the step under the cursor if it has any."""
        if self.queue_if_busy(self.action_hierarchy):
            return
        from .hierarchy import edit_hierarchy, hierarchy_edit

        def save(opened: EditedHierarchy) -> None:
            """Put the hierarchy into the plan."""
            self.edit_text(
                hierarchy_edit(opened), str(opened.place), f"The hierarchy of {opened.variable.name} is in the plan"
            )

        if self._view is not None and self._history is not None:
            await edit_hierarchy(self, self._history.now, self._view.table, str(self.current_step), save)

    async def action_add(self) -> None:
        """Ask for a method and its settings, and add the step."""
        if self.queue_if_busy(self.action_add):
            return
        if self._view is None:
            return
        from .plan_forms import AddStepDialog

        def add_chosen_step(found: tuple[str, ...] | None) -> None:
            """Ask for the settings of the chosen method."""
            if found:
                self.call_later(self._add_step, found[0])

        await self.sfumato.open(AddStepDialog(), add_chosen_step)

    async def _add_step(self, key: str) -> None:
        """Ask for the settings of a new step; of a threshold first for its value."""
        from .plan_forms import new_step, threshold_value_list
        from .table_form import form_of_step

        view = self._view
        if view is None:
            return
        place, step = new_step(view, key)

        def of_value(found: tuple[str, ...] | None) -> None:
            """Ask for the limit on the chosen value."""
            if found:
                self.call_later(
                    self.sfumato.open, *form_of_step(view, place, {**step, "value": found[0]}, self.edit_text)
                )

        if key == "threshold":
            await self.sfumato.open(threshold_value_list(view), of_value)
        else:
            await self.sfumato.open(*form_of_step(view, place, step, self.edit_text))

    async def action_rules(self) -> None:
        """Show which rules the records satisfy; changes there are edits of the plan."""
        if self.queue_if_busy(self.action_rules):
            return
        if self._view is None or self._history is None:
            return
        if self._view.lines is None or self._is_typed:
            self.sfumato.say(FIX_TOML_FIRST, severity="error")
            return
        from sfumato.workspace.plan.edits import replace_sections

        from .rules import RulesDialog

        said = mapping_or_empty(self._view.table.get("constraints"))

        def apply_rules(found: dict[str, Any] | None) -> None:
            """Put the changed rules into the plan."""
            if found is not None and found != said:
                more = len(found) - len(said)
                words = f"{more} rules added" if more > 1 else "1 rule added" if more > 0 else "1 rule removed"
                self.edit_text(
                    lambda toml: replace_sections(toml, {"constraints": found or None}), message=f"{words} (u undoes)"
                )

        await self.sfumato.open(RulesDialog(self._history.now, said), apply_rules)

    async def action_run(self) -> None:
        """Ask, then run the plan with all edits of earlier keys."""
        if not self.queue_if_busy(self.action_run):
            await self._run_plan(is_confirmed=False)

    async def run_confirmed(self) -> None:
        """Run the plan, whose changes were confirmed; ask only what it costs in privacy."""
        if not self.queue_if_busy(self.run_confirmed):
            await self._run_plan(is_confirmed=True)

    async def _run_plan(self, *, is_confirmed: bool) -> None:
        """Run the plan; ask before, unless it was confirmed and has no privacy cost."""
        if self._history is None:
            return
        if self._view is None or self._view.problem or self._is_typed:
            self.sfumato.say((self._view and self._view.problem) or FIX_TOML_FIRST, severity="error")
            return
        from .plan_forms import has_extra_cost, method_of_step

        draft, view = self._history.now, self._view

        def run_if_confirmed(yes: bool | None) -> None:
            """Run the plan if the user has confirmed."""
            if yes:
                self.sfumato.job(partial(jobs.run_plan, self.sfumato.directory, draft))

        async def ask(price: str) -> None:
            """Ask whether to run the plan, with its privacy cost."""
            await self.sfumato.open(RunPlanDialog(run_plan_text(view, price), draft), run_if_confirmed)

        def cost(workspace: Workspace) -> str:
            """Return the privacy cost of the run in words."""
            from sfumato.workspace.service.prepare import cost_notice

            return cost_notice(workspace, draft)

        makers = [line for line in view.lines or () if line.place.section == "synthesis"]
        # A privacy cost is computed in a thread; without one the question is shown at once.
        if any(has_extra_cost(method_of_step(line.place, line.table), line.table) for line in makers):
            self.compute(cost, ask)
        elif is_confirmed:
            run_if_confirmed(True)
        else:
            await ask("")

    async def action_search(self) -> None:
        """Show the result of the project's newest search; without one, ask and start one from the plan."""
        if self.queue_if_busy(self.action_search) or self._history is None:
            return
        if self._view is None or self._view.problem or self._is_typed:
            self.sfumato.say((self._view and self._view.problem) or FIX_TOML_FIRST, severity="error")
            return
        from .search import AskSearchDialog, SearchFinalists, newest_outcome

        draft, directory = self._history.now, self.sfumato.directory

        async def ask() -> None:
            """Ask whether to search from the present plan."""

            def search_if_confirmed(yes: bool | None) -> None:
                """Search if the user has confirmed."""
                if yes:
                    self.sfumato.job(partial(jobs.search_plan, directory, draft))

            await self.sfumato.open(AskSearchDialog(), search_if_confirmed)

        async def show(found: SearchOutcome | None) -> None:
            """Show the result, or ask if there is none."""
            if found is None:
                await ask()
                return

            def handle_search_answer(answer: SearchAnswer | None) -> None:
                """Take a plan, continue the search, or start another one."""
                if answer is None:
                    return
                act, number = answer
                if act == "new":
                    self.call_later(ask)
                else:
                    does = jobs.take_searched_plan if act == "take" else jobs.continue_search
                    self.sfumato.job(partial(does, directory, number))

            await self.sfumato.open(SearchFinalists(found), handle_search_answer)

        self.compute(newest_outcome(draft.project_id), show)


def _draft_with_text(project_id: int, toml: str, workspace: Workspace) -> PlanDraft:
    """Return the plan of a project with another text. Raises NotFound."""
    found = find_draft(workspace, project_id)
    if found is None:
        raise NotFound(f"project {project_id} has no plan")
    return found.with_text(toml)
