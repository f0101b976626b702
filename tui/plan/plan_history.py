"""The plan of a project while a tab edits it: what it was before, and storing it, one edit after another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from textual import on, work

from sfumato.tui.session import jobs
from sfumato.tui.session.command_lines import change_text, changed_lines
from sfumato.tui.session.messages import PlanSaved
from sfumato.workspace.plan.drafts import Draft

from ..parts.page import PlanPane

NOTHING_TO_UNDO = "There is no edit to take back"
NOTHING_TO_REDO = "There is no edit that was taken back"


@dataclass(frozen=True)
class PlanHistory:
    """The plan ``now``, those before it, the last at the end, and those that undoing left, the next at the end."""

    now: Draft
    past: tuple[Draft, ...] = ()
    future: tuple[Draft, ...] = ()

    def edited(self, draft: Draft) -> PlanHistory:
        """After an edit; nothing where it says the same."""
        return self if _same(draft, self.now) else PlanHistory(draft, (*self.past, self.now))

    def undone(self) -> PlanHistory:
        return PlanHistory(self.past[-1], self.past[:-1], (*self.future, self.now)) if self.past else self

    def redone(self) -> PlanHistory:
        """One edit that was undone done again."""
        return PlanHistory(self.future[-1], (*self.past, self.now), self.future[:-1]) if self.future else self

    def stored(self, revision: int) -> PlanHistory:
        return replace(self, now=replace(self.now, revision=revision))


def _same(one: Draft, other: Draft) -> bool:
    return (one.toml, one.dataset_id, one.drawn_from) == (other.toml, other.dataset_id, other.drawn_from)


class EditsPlan(PlanPane):
    """Edits go to the stored plan at once. A plan that somebody else has stored since it was read is never written over."""

    _history: PlanHistory | None = None
    _saving = False
    _saves = 0
    _revision = 0

    def reload(self) -> None:
        if (query := self.read_query()) is not None:
            self.read(query, partial(self._take_unless_stale, self._saves))

    def _take_unless_stale(self, saves: int, answer: Any) -> None:
        """Take what was read, or read again where an edit has been stored since."""
        if saves == self._saves:
            self.take(answer)
        else:
            self.reload()

    def read_plan(self, draft: Draft) -> PlanHistory | None:
        """The history with a plan that was read; None where it is the one at hand, or an edit of that is under way."""
        history = self._history
        if self._saving or (history is not None and draft.revision == self._revision):
            return None
        self._revision, self._told = draft.revision, draft.toml
        return PlanHistory(draft) if history is None else history.edited(draft).stored(draft.revision)

    def store_plan(self) -> None:
        if self._history is None:
            return
        self._tell_change(self._history)
        if not self._saving:
            self._saving = True
            self._save(self._history.now, self._revision)

    _told: str | None = None
    changed = ""
    """The last edit in a line, such as ``minbucket = 5   (was minbucket = 50)``; empty before there is one."""

    def _tell_change(self, history: PlanHistory) -> None:
        """Remember which lines the last edit changed."""
        now, before = history.now.toml, self._told
        if before is None:
            before = history.past[-1].toml if history.past else now
        lines = changed_lines(before, now)
        self._told = now
        if lines:
            self.changed = change_text(lines)
            self.sfumato.note_change("; ".join(lines))

    @work(thread=True, group="save", exit_on_error=False)
    def _save(self, draft: Draft, after: int) -> None:
        self.post_message(jobs.save_plan(self.sfumato.directory, draft, after))

    @on(PlanSaved)
    def _saved(self, event: PlanSaved) -> None:
        self._saving = False
        self._saves += 1
        if event.error:
            self.sfumato.say(event.error, severity="error")
            self.load()
        elif self._history is not None:
            self._revision = event.draft.revision
            behind = not _same(self._history.now, event.draft)
            self._history = self._history.stored(event.draft.revision)
            if behind:
                self.store_plan()
