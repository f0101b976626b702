"""Keys that act on a plan while an edit of it is under way: each waits until the plan is what the keys before it have made of it.

Edits are computed in a thread. A key that is typed meanwhile would act on the plan before the edit: run it, or take out a step of it.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isawaitable

from textual import on, work
from textual.message import Message

from sfumato.engine.errors import EngineError
from sfumato.tui.messages import ErrorMessage
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.plan.drafts import Draft
from sfumato.workspace.store.workspace import Workspace

from .plan_history import EditsPlan


class EditsInTurn(EditsPlan):
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
        """Make a plan the one at hand."""
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
        self.act_next()

    def waits(self, act: Callable[[], object]) -> bool:
        """Whether an act has to wait for an edit, or for others that wait; it is then done in its turn."""
        if self._in_turn or not (self._acts or self._changing or not self.is_read):
            return False
        self._acts.append(act)
        return True

    def act_next(self) -> None:
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
        self.act_next()
