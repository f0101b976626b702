"""The plan of a project while a tab edits it: undo and redo, and storing one edit after another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from textual import on, work

from sfumato.tui.session import jobs
from sfumato.tui.session.command_lines import change_text
from sfumato.tui.session.messages import PlanSaved
from sfumato.workspace.plan.drafts import PlanDraft

from ..parts.page import PlanPane

NOTHING_TO_UNDO = "There is no edit to undo"
NOTHING_TO_REDO = "There is no edit to redo"


@dataclass(frozen=True)
class PlanHistory:
    """Plan with undo and redo.

    now: present plan
    past: earlier plans, the last at the end
    future: undone plans, the next at the end
    """

    now: PlanDraft
    past: tuple[PlanDraft, ...] = ()
    future: tuple[PlanDraft, ...] = ()

    def after_edit(self, draft: PlanDraft) -> PlanHistory:
        """Return the history after an edit; the same history if the edit changes nothing."""
        # A new edit drops the undone ones, as in every editor.
        return self if _same_plan(draft, self.now) else PlanHistory(draft, (*self.past, self.now))

    def after_undo(self) -> PlanHistory:
        """Return the history with the last edit undone."""
        return PlanHistory(self.past[-1], self.past[:-1], (*self.future, self.now)) if self.past else self

    def after_redo(self) -> PlanHistory:
        """Return the history with one undone edit applied again."""
        return PlanHistory(self.future[-1], (*self.past, self.now), self.future[:-1]) if self.future else self

    def with_revision(self, revision: int) -> PlanHistory:
        """Return the history with this revision for the present plan."""
        return replace(self, now=replace(self.now, revision=revision))


def _same_plan(one: PlanDraft, other: PlanDraft) -> bool:
    """Return whether two plans are equal but for their revision."""
    return (one.toml, one.dataset_id, one.drawn_from) == (other.toml, other.dataset_id, other.drawn_from)


class EditsPlan(PlanPane):
    """Mixin of a tab that edits the plan.

    Edits are stored at once, without overwriting a plan stored by another session since.
    """

    _history: PlanHistory | None = None
    _saving = False
    _saves = 0
    _revision = 0

    def reload(self) -> None:
        """Read the stored plan and show it."""
        if (query := self.read_query()) is not None:
            self.read(query, partial(self._take_unless_stale, self._saves))

    def _take_unless_stale(self, saves: int, answer: Any) -> None:
        """Show the plan that was read, or read again if an edit has been stored since."""
        if saves == self._saves:
            self.show_answer(answer)
        else:
            self.reload()

    def history_with_read_plan(self, draft: PlanDraft) -> PlanHistory | None:
        """Return the history with a plan that was read; None if it is known or an edit is being stored."""
        history = self._history
        if self._saving or (history is not None and draft.revision == self._revision):
            return None
        self._revision, self._reported_toml = draft.revision, draft.toml
        return PlanHistory(draft) if history is None else history.after_edit(draft).with_revision(draft.revision)

    def store_plan(self) -> None:
        """Store the present plan, after an edit that is being stored."""
        if self._history is None:
            return
        self._note_changed_lines(self._history)
        # One edit is stored at a time, each with the revision of the one before; the last plan is stored when that is
        # done.
        if not self._saving:
            self._saving = True
            self._save(self._history.now, self._revision)

    _reported_toml: str | None = None
    last_change_text = ""
    """Last edit in a line, such as ``minbucket = 5   (was minbucket = 50)``; empty before there is one."""

    def _note_changed_lines(self, history: PlanHistory) -> None:
        """Store which lines the last edit changed."""
        now, before = history.now.toml, self._reported_toml
        if before is None:
            before = history.past[-1].toml if history.past else now
        from sfumato.workspace.plan.edits import changed_lines

        lines = changed_lines(before, now)
        self._reported_toml = now
        if lines:
            self.last_change_text = change_text(lines)
            self.sfumato.note_change("; ".join(lines))

    @work(thread=True, group="save", exit_on_error=False)
    def _save(self, draft: PlanDraft, after: int) -> None:
        """Store a plan in a thread, if ``after`` is still the stored revision."""
        self.post_message(jobs.save_plan(self.sfumato.directory, draft, after))

    @on(PlanSaved)
    def _handle_saved_plan(self, event: PlanSaved) -> None:
        """Report an error and read the plan again, or store what was edited since."""
        self._saving = False
        self._saves += 1
        if event.error:
            self.sfumato.say(event.error, severity="error")
            self.load_run()
        elif self._history is not None:
            self._revision = event.draft.revision
            # Edits made while this one was stored are stored together now.
            behind = not _same_plan(self._history.now, event.draft)
            self._history = self._history.with_revision(event.draft.revision)
            if behind:
                self.store_plan()
