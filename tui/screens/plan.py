"""The plan of the project: its steps in a list, its text beside it, always in step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea
from textual.worker import get_current_worker

from sfumato.tui import jobs
from sfumato.tui.messages import PlanSaved
from sfumato.tui.plan_history import PlanHistory
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.line import Line
from sfumato.tui.widgets.toml_text import TomlText
from sfumato.workspace.plan.drafts import Draft, draft_of_run
from sfumato.workspace.reporting.tables import cells, fitted
from sfumato.workspace.reporting.words import mark

from .add_step import AddStep
from .confirm import Confirm
from .plan_lines import COLUMNS, keys, run_text, values
from .plan_pane import PlanPane

if TYPE_CHECKING:
    from sfumato.workspace.plan.edits import Place
    from sfumato.workspace.plan.steps import PlanView

__all__ = ["Plan"]

NONE = "This project has no data to plan for. Press n in Runs to run a recipe, or in a shell: sfumato import FILE"
TYPING_SECONDS = 1.0
MEND = "The TOML cannot be read; mend it first, or press u to take back what was typed"


class StepGrid(LiveGrid):
    """The steps."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Edit", id="plan.edit")]


class Plan(PlanPane):
    """Edits go to the stored plan at once; u takes them back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add", id="plan.add"),
        Binding("R", "run", "Run", id="plan.run"),
        Binding("u", "undo", "Undo", id="plan.undo"),
        Binding("ctrl+r", "redo", "Redo", show=False, id="plan.redo"),
        Binding("d,delete", "remove", "Remove", show=False, id="plan.remove"),
        Binding("K,shift+up", "move(-1)", "Move up", show=False, id="plan.up"),
        Binding("J,shift+down", "move(1)", "Move down", show=False, id="plan.down"),
        Binding("t", "text", "Edit the TOML", show=False, id="plan.text"),
    ]

    @dataclass
    class Examined(Message):
        """A text was read and checked."""

        view: PlanView

    @dataclass
    class Edited(Message):
        """A form or a key made an edit."""

        draft: Draft

    def __init__(self, project_id: int) -> None:
        super().__init__(project_id, "plan")
        self._history: PlanHistory | None = None
        self._view: PlanView | None = None
        self._saving = self._due = False
        self._typing: Timer | None = None
        self._want: str | None = None

    def compose(self) -> ComposeResult:
        """What is wrong, the steps, the text."""
        yield Line(name="plan-head")
        with Container(id="plan-body"):
            yield StepGrid(empty=NONE)
            yield TomlText(id="plan-text")

    def take_focus(self) -> None:
        """The list takes the keys."""
        self.query_one(StepGrid).focus()

    @on(PlanPane.Found)
    def _found(self, event: PlanPane.Found) -> None:
        draft, history = event.draft, self._history
        if draft is None:
            self.query_one(StepGrid).show(COLUMNS, [], [])
        elif self._saving or self._is_typed:
            return
        elif history is None:
            self._put(PlanHistory(draft), save=False)
        elif draft.revision != history.now.revision:
            self._put(history.edited(draft).stored(draft.revision), save=False)

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
            self._store()

    def _store(self) -> None:
        """Store the plan, one edit after another."""
        if self._history is not None and not self._saving:
            self._saving = True
            self._save(self._history.now)

    @work(thread=True, group="save", exit_on_error=False)
    def _save(self, draft: Draft) -> None:
        self.post_message(jobs.save_plan(self.sfumato.directory, draft))

    @on(PlanSaved)
    def _saved(self, event: PlanSaved) -> None:
        self._saving = False
        if event.trouble:
            self.sfumato.say(event.trouble, severity="error")
        elif self._history is not None:
            behind = self._history.now.toml != event.draft.toml
            self._history = self._history.stored(event.draft.revision)
            if behind:
                self._store()

    @work(thread=True, exclusive=True, group="examine", exit_on_error=False)
    def _examine(self, toml: str) -> None:
        from sfumato.workspace.plan.steps import plan_view

        worker = get_current_worker()
        view = plan_view(toml)
        if not worker.is_cancelled:
            self.post_message(self.Examined(view))

    @on(Examined)
    def _take(self, event: Examined) -> None:
        view = event.view
        if view.toml != self.query_one(TomlText).text:
            return
        if view.lines is not None:
            self._view = view
            self._show()
            if self._due:
                self._keep_typed()
        good = f"{mark('pass')} R runs this plan{'' if view.lines else '; a adds its first step'}"
        self.query_one("#plan-head", Line).say(f"{mark('fail')} {view.problem}" if view.problem else good)

    def on_resize(self) -> None:
        """Give the columns their new widths."""
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        if self._view is None:
            return
        grid = self.query_one(StepGrid)
        columns = fitted(COLUMNS, grid.size.width - 1, ("says", "method"), ("says",))
        grid.show(columns, [cells(columns, row) for row in values(self._view)], keys(self._view), self._want)
        self._want = None

    @property
    def here(self) -> Place | None:
        """The step under the cursor; None on the settings."""
        key = self.query_one(StepGrid).key
        lines = (self._view.lines if self._view else None) or ()
        return next((line.place for line in lines if str(line.place) == key), None)

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
            self._store()

    @on(Edited)
    def _edited(self, event: Edited) -> None:
        history = self._history.edited(event.draft) if self._history is not None else None
        if history is not None and history is not self._history:
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
        self.compute(lambda _: now.saying(change(now.toml)), self.Edited)

    def start_from(self, run_id: int) -> None:
        """Make the plan that of a run; u brings back the one that was here."""
        self.compute(lambda workspace: draft_of_run(workspace, run_id), self.Edited)

    def action_undo(self) -> None:
        """Take back what was typed and cannot be read, else the last edit."""
        if self._history is not None and self._is_typed:
            self._put(self._history, save=False)
        elif self._history is not None and self._history.past:
            self._put(self._history.undone())

    def action_redo(self) -> None:
        """Do again what was taken back."""
        if self._history is not None and self._history.future and not self._is_typed:
            self._put(self._history.redone())

    def action_text(self) -> None:
        """Give the keys to the text; escape comes back."""
        self.query_one(TomlText).focus()

    def action_move(self, by: int) -> None:
        """Move the step up or down among those of its kind."""
        place = self.here
        if place is not None and self._view is not None:
            from sfumato.workspace.plan.edits import Place, with_moved

            to = Place(place.section, place.index + by)
            self.edit(lambda toml: with_moved(toml, place, by), str(to) if str(to) in keys(self._view) else None)

    def action_remove(self) -> None:
        """Take the step out; u brings it back."""
        place = self.here
        if place is not None:
            from sfumato.workspace.plan.edits import without_step

            self.edit(lambda toml: without_step(toml, place), said=f"{place} was taken out; u brings it back")

    @on(Grid.Selected)
    async def _open(self) -> None:
        from .step_dialogs import settings_form, step_form

        if self._view is None or self._history is None:
            return
        place = self.here
        if place is None:
            await self.sfumato.open(*settings_form(self._view, self.edit))
            return
        await self.sfumato.open(*step_form(self._view, place, self._view.table[place.section][place.index], self.edit))

    async def action_add(self) -> None:
        """Choose a method, fill in its form."""
        if self._view is None:
            return

        def chosen(key: str | None) -> None:
            if key is not None:
                self.call_later(self._add, key)

        await self.sfumato.open(AddStep(), chosen)

    async def _add(self, key: str) -> None:
        from .step_dialogs import new_step, step_form

        if self._view is not None:
            await self.sfumato.open(*step_form(self._view, *new_step(self._view, key), self.edit))

    async def action_run(self) -> None:
        """Ask, then run the plan."""
        if self._view is None or self._history is None:
            return
        if self._view.problem or self._is_typed:
            self.sfumato.say(self._view.problem or MEND, severity="error")
            return
        draft = self._history.now

        def answered(yes: bool | None) -> None:
            if yes:
                self.sfumato.job(partial(jobs.run_plan, self.sfumato.directory, draft))

        await self.sfumato.open(Confirm("Run this plan?", run_text(self._view)), answered)
