"""The plan of the project: its steps in a list, its text beside it, always in step."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea
from textual.worker import get_current_worker

from sfumato.tui import jobs
from sfumato.tui.terminal.external_editor import NotEdited, edited, editor_command
from sfumato.tui.widgets.entries import TomlText
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import Line
from sfumato.workspace.errors import NotFound
from sfumato.workspace.plan.drafts import Draft, draft_of, draft_of_run
from sfumato.workspace.reporting.tables import cells, fitted
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.visible_text import printable

from .in_turn import EditsInTurn
from .plan_history import NOTHING_TO_REDO, NOTHING_TO_UNDO, PlanHistory
from .plan_rows import COLUMNS, keys, section_of, values
from .plan_run import RunPlan, run_text

if TYPE_CHECKING:
    from sfumato.workspace.plan.edits import PlanView, StepPlace
    from sfumato.workspace.plan.hierarchies import OpenHierarchy
    from sfumato.workspace.store.workspace import Workspace


NONE = "This project has no data to plan for. Press n in Runs to run a recipe, or in a shell: sfumato import FILE"
TYPING_SECONDS = 1.0
MEND = "The TOML cannot be read; mend it first, or press u to take back what was typed"


class StepGrid(LiveGrid):
    """The steps."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Edit", id="plan.edit")]


class Plan(EditsInTurn):
    """Edits go to the stored plan at once; u takes them back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add", id="plan.add"),
        Binding("R", "run", "Run", id="plan.run"),
        Binding("u", "undo", "Undo", id="plan.undo"),
        Binding("ctrl+r", "redo", "Redo", show=False, id="plan.redo"),
        Binding("X,delete", "remove", "Remove", show=False, id="plan.remove"),
        Binding("K,shift+up", "move(-1)", "Move up", show=False, id="plan.up"),
        Binding("J,shift+down", "move(1)", "Move down", show=False, id="plan.down"),
        Binding("H", "hierarchy", "Hierarchies", show=False, id="plan.hierarchy"),
        Binding("t", "text", "Edit the TOML", show=False, id="plan.text"),
        Binding("c", "rules", "Constraints", show=False, id="plan.rules"),
        Binding("E", "editor", "Edit the TOML in your editor", show=False, id="plan.editor"),
    ]

    @dataclass
    class Examined(Message):
        """A text was read and checked."""

        view: PlanView

    def __init__(self, project_id: int) -> None:
        super().__init__(project_id, "plan")
        self._view: PlanView | None = None
        self._waiting: Draft | None = None
        self._due = self._absent = False
        self._examined: str | None = None
        self._listed = True
        self._typing: Timer | None = None
        self._want: str | None = None

    def compose(self) -> ComposeResult:
        """What is wrong, the steps, the text."""
        yield Line(name="plan-head")
        with Container(id="plan-body"):
            yield StepGrid(empty="…")
            yield TomlText(id="plan-text")

    def take_focus(self) -> None:
        """The list takes the keys."""
        self.query_one(StepGrid).focus()

    def take(self, answer: Draft | None) -> None:
        """Show the plan, unless an edit of it is under way."""
        draft, first = answer, self._history is None
        self._absent = draft is None
        if draft is None:
            self.forget_acts()
            self.query_one(StepGrid).set_empty(NONE)
            self.query_one(StepGrid).show(COLUMNS, [], [])
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

    def _put(self, history: PlanHistory, *, save: bool = True) -> None:
        """Make a plan the one that is shown, and store it."""
        self._history = history
        text = self.query_one(TomlText)
        if text.text != history.now.toml:
            text.load_text(history.now.toml)
        self._examine(history.now.toml)
        if save:
            self.store_plan()

    @work(thread=True, exclusive=True, group="examine", exit_on_error=False)
    def _examine(self, toml: str) -> None:
        from sfumato.workspace.plan.edits import plan_view

        worker = get_current_worker()
        view = plan_view(toml)
        if not worker.is_cancelled:
            self.post_message(self.Examined(view))

    @on(Examined)
    def _take(self, event: Examined) -> None:
        view = event.view
        if view.toml != self.query_one(TomlText).text:
            return
        self._examined = view.toml
        if view.lines is not None:
            self._view = view
            self._show()
            if self._due:
                self._keep_typed()
        self.act_next()
        good = f"{mark('pass')} R runs this plan{'' if view.lines else '; a adds its first step'}"
        doubts = [f"{mark('warn')} {said}" for said in view.misgivings]
        good = " · ".join(filter(None, (good, *doubts, printable(self.changed))))
        self.query_one("#plan-head", Line).say(f"{mark('fail')} {view.problem}" if view.problem else good)

    def on_resize(self) -> None:
        """Give the columns their new widths."""
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        if self._view is None:
            return
        grid = self.query_one(StepGrid)
        columns = fitted(COLUMNS, grid.size.width - 1, ("settings", "method"), ("settings",))
        grid.show(columns, [cells(columns, row) for row in values(self._view)], keys(self._view), self._want)
        self._want, self._listed = None, False

    @on(Grid.Opened)
    def _take_list(self) -> None:
        """The cursor is on its step again."""
        self._listed = True
        self.act_next()

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
        """Show in the text what the cursor is on."""
        if self.query_one(StepGrid).has_focus:
            place = self.here
            self.query_one(TomlText).show_table(place.section if place else "data", place.index if place else 0)

    @on(TextArea.Changed)
    def _typed(self) -> None:
        if self._is_typed:
            self._due = False
            self._examine(self.query_one(TomlText).text)
            if self._typing is not None:
                self._typing.stop()
            self._typing = self.set_timer(TYPING_SECONDS, self._keep_typed)

    @on(TomlText.Left)
    def _leave_text(self) -> None:
        self._keep_typed()
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
        """Do again what was taken back."""
        if self.waits(self.action_redo):
            return
        if self._history is not None and self._history.future and not self._is_typed:
            self._put(self._history.redone())
        else:
            self.sfumato.say(NOTHING_TO_REDO)

    def action_text(self) -> None:
        """Give the keys to the text; escape comes back."""
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
            self.edit(lambda toml: with_moved(toml, place, by), str(to) if str(to) in keys(self._view) else None)

    def action_remove(self) -> None:
        """Take the step out; u brings it back."""
        if self.waits(self.action_remove):
            return
        place = self.here
        if place is not None:
            from sfumato.workspace.plan.edits import without_step

            self.edit(lambda toml: without_step(toml, place), said=f"{place} was taken out; u brings it back")

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
                words = f"{more} rules are new" if more > 1 else "1 rule is new" if more > 0 else "The rule is out"
                self.edit(
                    lambda toml: with_sections(toml, {"constraints": found or None}), said=f"{words}; u takes that back"
                )

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
            from sfumato.workspace.service.prepare import told_before

            return told_before(workspace, draft)

        makers = [line for line in view.lines or () if line.place.section == "synthesis"]
        if any(costs_more(method_of(line.place, line.table), line.table) for line in makers):
            self.compute(cost, ask)
        else:
            await ask("")


def _saying(project_id: int, toml: str, workspace: Workspace) -> Draft:
    """The plan of a project with another text. Raises NotFound."""
    found = draft_of(workspace, project_id)
    if found is None:
        raise NotFound(f"project {project_id} has no plan")
    return found.saying(toml)
