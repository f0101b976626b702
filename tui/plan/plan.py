"""The plan of the project: its steps in a list, its text beside it, always in step.

The steps of a plan as the rows of a list.

The question before a plan is run: what it would compute, what it would cost, and what is new in it since the last run.

Keys that act on a plan while an edit of it is under way: each waits until the plan is what the keys before it have made of it.

Edits are computed in a thread. A key that is typed meanwhile would act on the plan before the edit: run it, or take out a step of it.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static, TextArea
from textual.worker import get_current_worker

from sfumato.engine.errors import EngineError
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind
from sfumato.tui.keys.own_keys import key_for
from sfumato.workspace.errors import NotFound, WorkspaceError
from sfumato.workspace.jobs.settings import JOBS
from sfumato.workspace.plan.drafts import Draft, draft_of, draft_of_run
from sfumato.workspace.reporting.tables import fitted, grid_width
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.dialogs import Confirm
from ..parts.fields import shown_value
from ..session import jobs
from ..session.messages import ErrorMessage
from ..terminal.external_editor import NotEdited, edited, editor_command
from ..terminal.text import cut
from ..widgets.entries import TomlText
from ..widgets.facts import facts_in
from ..widgets.grid import Grid, LiveGrid
from ..widgets.lines import Line, alike
from ..widgets.tables import Cells, Columns, Keyed, Table, TableColumn
from .plan_history import NOTHING_TO_REDO, NOTHING_TO_UNDO, EditsPlan, PlanHistory

if TYPE_CHECKING:
    from sfumato.workspace.plan.edits import PlanView, StepPlace
    from sfumato.workspace.plan.hierarchies import OpenHierarchy
    from sfumato.workspace.reporting.plan_steps import StepWords
    from sfumato.workspace.reporting.searches import Outcome
    from sfumato.workspace.views.recipe_difference import SinceRun

    from .search import Answer

MOST_CHANGES = 8
WIDTH = 54
"""Cells of a line in the dialog."""
SETTINGS = "settings"
LONGEST_METHOD = 30
"""Cells of a method's name in a list that has room for it; settings have the rest."""
LEAST_LINES = 12
"""A pane with fewer has no room for a step in full below the list."""
NONE = "This project has no data to plan for. Press n in Runs to run a recipe, or in a shell: sfumato import FILE"
TYPING_SECONDS = 1.0
UNSAVED = "The text of the plan cannot be read yet, so it is not saved."
MEND = "The TOML cannot be read; fix it first, or press u to undo what was typed"


class EditQueue(EditsPlan):
    """Edits one after the other, and what else is asked for in between."""

    @dataclass
    class Changed(Message, bubble=False):
        """An edit was computed: the plan with it, or none and why."""

        plan: Draft | None
        error: str = ""

    _changing = 0
    _in_turn = False

    def __init__(self, project_id: int, name: str) -> None:
        super().__init__(project_id, name)
        self._acts: deque[Callable[[], object]] = deque()

    @property
    def is_read(self) -> bool:
        """Whether the plan that is shown has been read as it stands."""
        raise NotImplementedError

    def edited(self, plan: Draft) -> None:
        raise NotImplementedError

    def change(self, query: Callable[[Workspace], Draft]) -> None:
        """Compute an edit in a thread; errors of the engine's and the workspace's are told, and the plan stays as it was."""
        self._changing += 1
        self._compute_change(query)

    @work(thread=True, group="change", exit_on_error=False)
    def _compute_change(self, query: Callable[[Workspace], Draft]) -> None:
        message = self.Changed(None)
        try:
            with Workspace.open(self.sfumato.directory) as workspace:
                message = self.Changed(query(workspace))
        except (sqlite3.Error, WorkspaceError, EngineError) as error:
            message = self.Changed(None, str(error))
        finally:
            self.post_message(message)

    @on(Changed)
    def _take_change(self, event: Changed) -> None:
        self._changing -= 1
        if event.error:
            self.post_message(ErrorMessage(event.error))
        elif event.plan is not None:
            self.edited(event.plan)
        self.run_next()

    def waits(self, act: Callable[[], object]) -> bool:
        """Whether an act has to wait for an edit, or for others that wait; it is then done in its turn."""
        if self._in_turn or not (self._acts or self._changing or not self.is_read):
            return False
        self._acts.append(act)
        return True

    def run_next(self) -> None:
        """Do what has waited longest, once nothing is under way."""
        if self._acts and not self._changing and self.is_read:
            self.call_later(self._act, self._acts.popleft())

    def forget_acts(self) -> None:
        """Drop what waits: there is no plan to act on."""
        self._acts.clear()

    async def _act(self, act: Callable[[], object]) -> None:
        self._in_turn = True
        try:
            done = act()
            if isawaitable(done):
                await done
        finally:
            self._in_turn = False
        self.run_next()


def run_text(view: PlanView, cost: str = "") -> str:
    """What running would compute, and what it would cost in differential privacy where it does."""
    release = _section(view.table.get("release"))
    counts = [
        (len(view.table.get(section, [])), name)
        for section, name in (("measure", "measure"), ("study", "study"), ("threshold", "threshold"))
    ]
    plural = {"study": "studies"}
    parts = [f"{n} {name if n == 1 else plural.get(name, f'{name}s')}" for n, name in counts if n]
    if not view.table.get("anonymisation"):
        m = release.get("m", 20)
        parts.insert(0, f"{count_noun(m, 'dataset')}")
    weights = _section(view.table.get("weights"))
    less = f"Records at risk in run {shown_value(weights.get('run'))} have less influence." if weights else ""
    doubts = " ".join(f"{mark('warn')} {said}." for said in view.threshold_warnings)
    return " ".join(filter(None, (f"{', '.join(parts)}.", less, cost, doubts, "It goes on when you leave the app.")))


def _section(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def changes_text(since: SinceRun | None) -> str:
    """What was changed since the newest run, a line a difference; empty where there is no run."""
    if since is None:
        return ""
    from sfumato.workspace.reporting.recipe_difference import sentence

    run = replace_unprintable(f"run {since.run_id}{f' {since.called}' if since.called else ''}")
    lines = [f"- {sentence(one)}" for one in since.changes]
    lines.insert(0, "- it is for other records") if since.other_data else None
    if not lines:
        return f"Nothing is changed since {run}: the same plan runs again."
    more = len(lines) - MOST_CHANGES
    shown = [cut(line, WIDTH) for line in lines[:MOST_CHANGES]]
    return "\n".join([f"Changed since {run}:", *shown, *([f"and {more} more"] if more > 0 else [])])


class RunPlan(Confirm):
    """Asks at once, so that no key is lost; what is new in the plan comes when it is read."""

    computes = True

    def __init__(self, consequence: str, draft: Draft) -> None:
        super().__init__("Run this plan?", consequence, "Run")
        self._draft = draft

    def compose_beside(self) -> ComposeResult:
        yield Static("", id="run-changes", markup=False)

    def read_query(self) -> Callable[[Workspace], str]:
        """What it will take, and what is new, in words."""
        draft = self._draft

        def query(workspace: Workspace) -> str:
            from sfumato.workspace.service.costs import plan_cost_text
            from sfumato.workspace.views.recipe_difference import since_newest_run

            takes = plan_cost_text(workspace, draft.toml, workspace.dataset(draft.dataset_id).records, JOBS)
            return "\n\n".join(filter(None, (takes, changes_text(since_newest_run(workspace, draft)))))

        return query

    def take(self, answer: str) -> None:
        if answer:
            self.query_one("#run-changes", Static).update(f"\n{answer}")


COLUMNS: Columns[Keyed] = (
    TableColumn("mark", "", 1),
    TableColumn("section", "step", 9),
    TableColumn("method", "method", 24, grows=2),
    TableColumn("settings", "settings", 14, spare=1, grows=1),
)


def _laid_out(columns: Columns[Keyed], width: int) -> Columns[Keyed]:
    """The columns in ``width`` cells: names of methods have what settings do without, up to a length."""
    spare = max(0, width - grid_width(columns))
    most = {"method": min(LONGEST_METHOD, COLUMNS[2].width + spare)}
    return fitted([replace(one, width=most.get(one.name, one.width)) for one in columns], width)


TABLE: Table[Keyed] = Table(COLUMNS, lambda row: row[0], lambda row: row[1], fit=_laid_out)
LEAST_STEP, MOST_LIST = 4, 0.7
"""Lines of a step in full, and the share of the lines that a long list keeps."""


@dataclass(frozen=True)
class ListedStep:
    """A row of the list: its key, its cells, and all that there is to say of it."""

    key: str
    cells: Cells
    words: StepWords


def listed_steps(view: PlanView) -> list[ListedStep]:
    """A row for title, data and release, then one a step."""
    from sfumato.workspace.reporting.plan_steps import plan_head_words, step_words

    wrong = view.at.partition(".")[0] in ("title", "data", "weights", "variables", "release")
    found = [_listed(SETTINGS, SETTINGS, plan_head_words(view.table), wrong=wrong)]
    for line in view.lines or ():
        place = str(line.place)
        wrong = view.at == place or view.at.startswith(f"{place}.")
        words = step_words(line.place.section, line.table, view.table)
        found.append(_listed(place, line.place.section, words, wrong=wrong))
    return found


def _listed(key: str, section: str, words: StepWords, *, wrong: bool) -> ListedStep:
    cells = {
        "mark": mark("fail") if wrong else "",
        "section": section,
        "method": words.name,
        "settings": words.settings,
    }
    return ListedStep(key, cells, words)


def section_of(value: object) -> Mapping[str, Any]:
    """A section of a plan; empty where it is none."""
    return value if isinstance(value, Mapping) else {}


class StepGrid(LiveGrid):
    BINDINGS: ClassVar[list[BindingType]] = [bind("open", "select", "Edit", show=True)]


class Plan(EditQueue):
    """Edits go to the stored plan at once; u takes them back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("add", "add", show=True),
        bind("run", "run", show=True),
        bind("search", "search", "Search for a plan", show=True),
        bind("undo", "undo", show=True),
        bind("redo", "redo"),
        bind("delete", "remove", "Remove"),
        bind("earlier", "move(-1)", "Move up"),
        bind("later", "move(1)", "Move down"),
        bind("hierarchy", "hierarchy", "Hierarchies"),
        bind("table", "text", "Edit the TOML"),
        bind("constraints", "rules"),
        bind("editor", "editor", "Edit the TOML in your editor"),
    ]

    @dataclass
    class Examined(Message):
        view: PlanView
        steps: Sequence[ListedStep]

    def __init__(self, project_id: int) -> None:
        super().__init__(project_id, "plan")
        self._view: PlanView | None = None
        self._steps: Mapping[str, ListedStep] = {}
        self._head: PlanView | None = None
        self._run_of_plan: int | None = None
        self._waiting: Draft | None = None
        self._due = self._absent = False
        self._examined: str | None = None
        self._to_examine: str | None = None
        self._listed = True
        self._typing: Timer | None = None
        self._want: str | None = None

    def compose(self) -> ComposeResult:
        """What is wrong, the steps and the one under the cursor in full, the text."""
        yield Line(name="plan-head")
        with Container(id="plan-body"):
            with Vertical(id="plan-steps"):
                yield StepGrid(empty="…")
                yield Static("", id="plan-step", markup=False)
            yield TomlText(id="plan-text")

    def take_focus(self) -> None:
        self.query_one(StepGrid).focus()

    def take(self, answer: Draft | None) -> None:
        """Show the plan, unless an edit of it is under way."""
        draft, first = answer, self._history is None
        self._absent = draft is None
        if draft is None:
            self.forget_acts()
            self.query_one(StepGrid).set_empty(NONE)
            self.query_one(StepGrid).show_table(TABLE, [])
        elif not self._is_typed and (history := self.read_plan(draft)) is not None:
            self._put(history, save=False)
            waiting, self._waiting = self._waiting, None
            if first and waiting is not None:
                self.edited(waiting)

    @property
    def is_read(self) -> bool:
        """Whether the text that is shown was read and checked, and its steps are listed; so where there is none."""
        if self._absent or self._history is None:
            return self._absent
        return self._listed and self._examined == self.query_one(TomlText).text

    @property
    def _is_typed(self) -> bool:
        """Whether the text was changed and is not the plan yet."""
        return self._history is not None and self.query_one(TomlText).text != self._history.now.toml

    @property
    def unsaved(self) -> str:
        """That the text was typed and cannot be the plan; empty where all is saved."""
        return UNSAVED if self._is_typed and self.is_mounted else ""

    def _put(self, history: PlanHistory, *, save: bool = True) -> None:
        """Make a plan the one that is shown, and store it."""
        self._history = history
        text = self.query_one(TomlText)
        if text.text != history.now.toml:
            text.load_text(history.now.toml)
        self._read(history.now.toml)
        if save:
            self.store_plan()

    def _read(self, toml: str) -> None:
        self._to_examine = toml
        self._examine(toml)

    @work(thread=True, exclusive=True, group="examine", exit_on_error=False)
    def _examine(self, toml: str) -> None:
        from sfumato.workspace.plan.edits import plan_view

        worker = get_current_worker()
        view = plan_view(toml)
        steps = listed_steps(view)
        if not worker.is_cancelled:
            self.post_message(self.Examined(view, steps))

    @on(Examined)
    def _take(self, event: Examined) -> None:
        view = event.view
        if view.toml != self.query_one(TomlText).text:
            return
        self._examined = view.toml
        if view.lines is not None:
            self._view, self._steps = view, {one.key: one for one in event.steps}
            self._show()
            if self._due:
                self._keep_typed()
        self.run_next()
        self._head = view
        self._say_head()

    def carried_out_by(self, run_id: int | None) -> None:
        """Say with the plan which run carried it out as it stands, or does; None for no run."""
        if run_id != self._run_of_plan:
            self._run_of_plan = run_id
            self._say_head()

    def _say_head(self) -> None:
        """Whether the plan can be run, whether it was, and what is to be doubted."""
        if (view := self._head) is None:
            return
        if view.problem:
            self.query_one("#plan-head", Line).say(f"{mark('fail')} {view.problem}")
            return
        key = key_for(self.app, "run")
        first = "" if view.lines else "; a adds its first step"
        words = [key, f"runs this plan{first}"]
        if self._run_of_plan is not None:
            words = [f"run {self._run_of_plan} is this plan;", key, "runs it again"]
        good = " ".join((mark("pass"), *words))
        doubts = [f"{mark('warn')} {said}" for said in view.threshold_warnings]
        self.query_one("#plan-head", Line).say(
            " · ".join(filter(None, (good, *doubts, replace_unprintable(self.changed))))
        )

    def _show(self) -> None:
        if self._view is not None:
            rows = [(one.key, one.cells) for one in self._steps.values()]
            self.query_one(StepGrid).show_table(TABLE, rows, self._want)
            self._share_lines()
            self._want, self._listed = None, False
            self.count(count_noun(len(self._view.lines or ()), "step"))

    def on_resize(self) -> None:
        """Give list and step their lines."""
        self._share_lines()

    def _share_lines(self) -> None:
        """Have the step under the cursor in full in the lines that the list leaves, or in a few of those of a long one."""
        lines, needed = self.query_one("#plan-body").size.height, len(self._steps) + 1
        shown = bool(self._steps) and lines >= LEAST_LINES
        kept = max(lines - LEAST_STEP, round(lines * MOST_LIST)) if shown else lines
        self.query_one(StepGrid).styles.height = min(needed, kept) if shown else "1fr"
        self.query_one("#plan-step").display = shown
        if shown:
            self._tell_step()

    def _tell_step(self) -> None:
        """Say of the step under the cursor all that there is to say."""
        told, found = self.query_one("#plan-step", Static), self._steps.get(str(self.query_one(StepGrid).key))
        if told.display and found is not None:
            title = "Data and release" if found.key == SETTINGS else found.words.name
            text = facts_in(title, found.words.facts, self.query_one("#plan-steps").size.width - 2)
            if not alike(told.content, text):
                told.update(text, layout=False)

    @on(Grid.Opened)
    def _take_list(self) -> None:
        """The cursor is on its step again."""
        self._listed = True
        self._tell_step()
        self.run_next()

    @property
    def here(self) -> StepPlace | None:
        """The step under the cursor; None on the settings."""
        key = self.query_one(StepGrid).key
        lines = (self._view.lines if self._view else None) or ()
        return next((line.place for line in lines if str(line.place) == key), None)

    def manual_topics(self) -> Sequence[str]:
        """The method of the step under the cursor, or the section of the recipe."""
        place = self.here
        if place is None:
            return ("recipe data",)
        lines = (self._view.lines if self._view else None) or ()
        methods = [f"methods {line.method}" for line in lines if line.place == place and line.method]
        return (*methods, f"recipe {place.section}")

    @on(Grid.Highlighted)
    def _point(self) -> None:
        """Show in full and in the text what the cursor is on."""
        self._tell_step()
        if self.query_one(StepGrid).has_focus:
            place = self.here
            self.query_one(TomlText).show_table(place.section if place else "data", place.index if place else 0)

    @on(TextArea.Changed)
    def _typed(self) -> None:
        text = self.query_one(TomlText).text
        if text != self._to_examine:  # back to the plan that was there, by hand, has to be read too
            self._due = False
            self._read(text)
            if self._typing is not None:
                self._typing.stop()
            self._typing = self.set_timer(TYPING_SECONDS, self._keep_typed)

    @on(TomlText.Left)
    def _leave_text(self) -> None:
        self._keep_typed()
        self.query_one("#plan-body").remove_class("typing")
        self.take_focus()

    @on(events.DescendantBlur)
    def _keep_typed(self) -> None:
        """Make what was typed the plan, as soon as it is known to be one."""
        text = self.query_one(TomlText).text
        self._due = self._view is None or self._view.toml != text
        if self._history is not None and self._is_typed and not self._due:
            self._history = self._history.edited(self._history.now.saying(text))
            self.store_plan()

    def edited(self, plan: Draft) -> None:
        """Make a plan the one at hand, as soon as there is one to put it beside."""
        if self._history is None:  # the plan has not been read yet, and what was asked for must not be lost
            self._waiting = plan
            return
        history = self._history.edited(plan)
        if history is not self._history:
            self._put(history)

    def edit(self, change: Callable[[str], str], want: str | None = None, said: str = "") -> None:
        """Change the plan's text and say so; the cursor goes to ``want``. What was typed and is no TOML is in the way."""
        if self._history is None:
            return
        if self._is_typed:
            self.sfumato.say(MEND, severity="warning")
            return
        if said:
            self.sfumato.say(said)
        self._want = want
        now = self._history.now
        self.change(lambda _: now.saying(change(now.toml)))

    def start_from(self, run_id: int, weights: Mapping[str, Any] | None = None) -> None:
        """Make the plan that of a run, with these ``[weights]``; u brings back the one that was here."""
        self.change(lambda workspace: draft_of_run(workspace, run_id, weights))

    def take_text(self, toml: str, said: str) -> None:
        """Make this text the plan, and say so; u brings back the one that was here."""
        self.sfumato.say(said)
        self.change(partial(_saying, self._project_id, toml))

    def action_undo(self) -> None:
        """Take back what was typed and cannot be read, else the last edit."""
        if self.waits(self.action_undo):
            return
        if self._history is not None and self._is_typed:
            self._put(self._history, save=False)
        elif self._history is not None and self._history.past:
            self._put(self._history.undone())
        else:
            self.sfumato.say(NOTHING_TO_UNDO)

    def action_redo(self) -> None:
        if self.waits(self.action_redo):
            return
        if self._history is not None and self._history.future and not self._is_typed:
            self._put(self._history.redone())
        else:
            self.sfumato.say(NOTHING_TO_REDO)

    def action_text(self) -> None:
        """Give the keys to the text; escape comes back. Where there is room for one only, it takes the place of the steps."""
        self.query_one("#plan-body").add_class("typing")
        self.query_one(TomlText).focus()

    def action_editor(self) -> None:
        """Have the text edited with what ``VISUAL`` or ``EDITOR`` names; what comes back is as if it had been typed."""
        if self.waits(self.action_editor):
            return
        if self._history is None:
            return
        text = self.query_one(TomlText)
        try:
            command = editor_command(os.environ)
            with self.app.suspend():
                found = edited(text.text, "plan.toml", command)
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
        """Move the step up or down among those of its kind."""
        if self.waits(partial(self.action_move, by)):
            return
        place = self.here
        if place is not None and self._view is not None:
            from sfumato.workspace.plan.edits import StepPlace, with_moved

            to = StepPlace(place.section, place.index + by)
            self.edit(lambda toml: with_moved(toml, place, by), str(to) if str(to) in self._steps else None)

    def action_remove(self) -> None:
        """Take the step out; u brings it back."""
        if self.waits(self.action_remove):
            return
        place = self.here
        if place is not None:
            from sfumato.workspace.plan.edits import without_step

            self.edit(lambda toml: without_step(toml, place), said=f"{place} was removed; u undoes")

    @on(Grid.Selected)
    async def _open(self) -> None:
        if self.waits(self._open):
            return
        from .plan_forms import settings_form, step_form

        if self._view is None or self._history is None:
            return
        place = self.here
        if place is None:
            await self.sfumato.open(*settings_form(self._view, self.edit))
            return
        await self.sfumato.open(*step_form(self._view, place, self._view.table[place.section][place.index], self.edit))

    async def action_hierarchy(self) -> None:
        """Edit the tree or the intervals of a quasi-identifier, of the step under the cursor where it has any."""
        if self.waits(self.action_hierarchy):
            return
        from .hierarchy import edit_hierarchy, saved_text

        def save(opened: OpenHierarchy) -> None:
            self.edit(saved_text(opened), str(opened.place), f"The hierarchy of {opened.variable.name} is in the plan")

        if self._view is not None and self._history is not None:
            await edit_hierarchy(self, self._history.now, self._view.table, str(self.here), save)

    async def action_add(self) -> None:
        """Choose a method, fill in its form."""
        if self.waits(self.action_add):
            return
        if self._view is None:
            return
        from .plan_forms import AddStep

        def chosen(found: tuple[str, ...] | None) -> None:
            if found:
                self.call_later(self._add, found[0])

        await self.sfumato.open(AddStep(), chosen)

    async def _add(self, key: str) -> None:
        from .plan_forms import new_step, step_form, value_list

        view = self._view
        if view is None:
            return
        place, step = new_step(view, key)

        def of_value(found: tuple[str, ...] | None) -> None:
            if found:
                self.call_later(self.sfumato.open, *step_form(view, place, {**step, "value": found[0]}, self.edit))

        if key == "threshold":
            await self.sfumato.open(value_list(view), of_value)
        else:
            await self.sfumato.open(*step_form(view, place, step, self.edit))

    async def action_rules(self) -> None:
        """Show which rules the records keep to; what is changed there is an edit of the plan."""
        if self.waits(self.action_rules):
            return
        if self._view is None or self._history is None:
            return
        if self._view.lines is None or self._is_typed:
            self.sfumato.say(MEND, severity="error")
            return
        from sfumato.workspace.plan.edits import with_sections

        from .rules import Rules

        said = section_of(self._view.table.get("constraints"))

        def answered(found: dict[str, Any] | None) -> None:
            if found is not None and found != said:
                more = len(found) - len(said)
                words = f"{more} rules added" if more > 1 else "1 rule added" if more > 0 else "1 rule removed"
                self.edit(lambda toml: with_sections(toml, {"constraints": found or None}), said=f"{words} (u undoes)")

        await self.sfumato.open(Rules(self._history.now, said), answered)

    async def action_run(self) -> None:
        """Ask, then run the plan as the keys before have made it."""
        if self.waits(self.action_run) or self._history is None:
            return
        if self._view is None or self._view.problem or self._is_typed:
            self.sfumato.say((self._view and self._view.problem) or MEND, severity="error")
            return
        from .plan_forms import costs_more, method_of

        draft, view = self._history.now, self._view

        def answered(yes: bool | None) -> None:
            if yes:
                self.sfumato.job(partial(jobs.run_plan, self.sfumato.directory, draft))

        async def ask(price: str) -> None:
            await self.sfumato.open(RunPlan(run_text(view, price), draft), answered)

        def cost(workspace: Workspace) -> str:
            from sfumato.workspace.service.prepare import cost_notice

            return cost_notice(workspace, draft)

        makers = [line for line in view.lines or () if line.place.section == "synthesis"]
        if any(costs_more(method_of(line.place, line.table), line.table) for line in makers):
            self.compute(cost, ask)
        else:
            await ask("")

    async def action_search(self) -> None:
        """Show what the newest search of the project found; where there was none, ask and begin one from the plan."""
        if self.waits(self.action_search) or self._history is None:
            return
        if self._view is None or self._view.problem or self._is_typed:
            self.sfumato.say((self._view and self._view.problem) or MEND, severity="error")
            return
        from .search import AskSearch, SearchFound, newest_outcome

        draft, directory = self._history.now, self.sfumato.directory

        async def ask() -> None:
            def agreed(yes: bool | None) -> None:
                if yes:
                    self.sfumato.job(partial(jobs.search_plan, directory, draft))

            await self.sfumato.open(AskSearch(), agreed)

        async def show(found: Outcome | None) -> None:
            if found is None:
                await ask()
                return

            def answered(answer: Answer | None) -> None:
                if answer is None:
                    return
                act, number = answer
                if act == "new":
                    self.call_later(ask)
                else:
                    does = jobs.take_searched_plan if act == "take" else jobs.continue_search
                    self.sfumato.job(partial(does, directory, number))

            await self.sfumato.open(SearchFound(found), answered)

        self.compute(newest_outcome(draft.project_id), show)


def _saying(project_id: int, toml: str, workspace: Workspace) -> Draft:
    """The plan of a project with another text. Raises NotFound."""
    found = draft_of(workspace, project_id)
    if found is None:
        raise NotFound(f"project {project_id} has no plan")
    return found.saying(toml)
