"""Dialog to try other limits on a run's thresholds.

The stored rows are judged at once; changed limits are saved only into the project's plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from sfumato.engine.methods.labels import SeriesIdentity, label_of
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.parts.verdict_board import board_text, overall_line
from sfumato.tui.widgets.entries import EntryField
from sfumato.tui.widgets.lines import KeyLine, Line, Scroll
from sfumato.tui.widgets.panel import FrameEdge, FrameSides
from sfumato.workspace.reporting.words import limit_text

from ..parts.page import Dialog

if TYPE_CHECKING:
    from sfumato.engine.methods.rows import Row
    from sfumato.engine.recipe.thresholds import Threshold
    from sfumato.workspace.store.workspace import Workspace

HEAD = "WHAT IF: nothing is saved."


Judged = tuple["Sequence[Threshold]", "Sequence[Row]", "Sequence[Verdict]", int]
"""Thresholds, the averages that they are about, the verdicts of the run, and its number of confidential records."""


class LimitField(EntryField):
    """Number field that leaves q to the dialog, which it closes."""

    def on_key(self, event: events.Key) -> None:
        """Keep q out of the field."""
        if event.key == "q":
            event.prevent_default()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether the field takes a key; not q."""
        # No number has a q, and q closes every other screen.
        return key != "q" and super().check_consume_key(key, character)


class LimitTrial(Dialog[None]):
    """Dialog to edit the limits of thresholds one at a time; the board below shows the verdicts after every key."""

    manual = "app verdicts"

    DEFAULT_CSS = """
    LimitTrial FrameEdge, LimitTrial .sides--edge { color: $warning; } LimitTrial #trial-head { text-style: bold; }
    LimitTrial Input { margin: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("down", "threshold(1)", "Next", show=True, priority=True, typed=True),
        bind_act("up", "threshold(-1)", "Previous", show=True, priority=True, typed=True),
        bind_act("page_down", "pages(1)", priority=True, only="pagedown"),
        bind_act("page_up", "pages(-1)", priority=True, only="pageup"),
        bind_act("reset_limits", "own", "Reset limits", show=True, priority=True),
        bind_act("save", "keep", "Save into the plan", show=True, priority=True),
    ]
    AUTO_FOCUS = "Input"

    needs_engine = True

    def __init__(self, run_id: int, project_id: int) -> None:
        """Create the dialog about a run of a project."""
        super().__init__()
        self._run_id, self._project_id = run_id, project_id
        self._own: Sequence[Threshold] = ()
        self._tried: Sequence[Threshold] = ()
        self._rows: Sequence[Row] = ()
        self._stored: Sequence[Verdict] = ()
        self._verdicts: Sequence[Verdict] = ()
        self._records: int | None = None
        self._at = 0

    def compose(self) -> ComposeResult:
        """Yield the remark that nothing is saved, the threshold with its limit, the board, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="trial-head")
            with FrameSides():
                yield Line(name="trial-name")
                yield LimitField(id="trial-limit")
                yield Line(name="trial-wrong")
                yield Scroll()
            yield FrameEdge(lower=True)
            yield KeyLine()

    def read_query(self) -> Callable[[Workspace], Judged]:
        """Return the query for the thresholds, the averages that they are about, and the verdicts."""
        self._set_line("head", f"{HEAD} Run {self._run_id}")
        return partial(_read_thresholds, self._run_id)

    def _set_line(self, line: str, text: Content | str) -> None:
        """Set the text of a line by the end of its name."""
        self.query_one(f"#trial-{line}", Line).set_text(text)

    def show_answer(self, answer: Judged) -> None:
        """Show the thresholds, beginning with the first."""
        self._own, self._rows, self._stored, self._records = answer
        self._tried = self._own
        self._edit_threshold(0)
        self._judge_trial()

    def _edit_threshold(self, at: int) -> None:
        """Put a threshold's limit into the field."""
        if not self._tried:
            return
        self._at = at % len(self._tried)
        one, own = self._tried[self._at], self._own[self._at]
        name = label_of(SeriesIdentity(one.value, one.target, one.level, one.params))
        self._set_line(
            "name",
            f"threshold {self._at + 1}/{len(self._tried)}: {name}, by the recipe {limit_text(own.bound, own.limit, own.value)}",
        )
        # Setting the value must not be taken for typing: the limit is rounded to 12 digits here.
        with self.prevent(Input.Changed):
            self.query_one(Input).value = f"{one.limit:.12g}"
        self.query_one(Input).cursor_position = len(self.query_one(Input).value)
        self._set_line("wrong", "")

    @on(Input.Changed)
    def _take_limit(self, event: Input.Changed) -> None:
        """Judge the rows with the typed limit, or say that it is not a number."""
        limit = _parse_number(event.value)
        if limit is None or not self._tried:
            self._set_line("wrong", "Not a number: the board shows the limit before." if event.value.strip() else "")
            return
        self._set_line("wrong", "")
        self._tried = [replace(one, limit=limit) if i == self._at else one for i, one in enumerate(self._tried)]
        self._judge_trial()

    def _judge_trial(self) -> None:
        """Judge the rows by the tried limits in a thread."""
        # Bound now: the user may type another limit before the thread has started.
        tried, rows = self._tried, self._rows

        def query(_: Workspace) -> Sequence[Verdict]:
            """Judge the rows; the engine is imported here, in the thread."""
            from sfumato.engine.recipe.thresholds import judge_thresholds

            return judge_thresholds(tried, rows)

        self.compute(query, self._show_judged)

    def _show_judged(self, verdicts: Sequence[Verdict]) -> None:
        """Store the verdicts of the trial and show them."""
        self._verdicts = verdicts
        self._show_board()

    def on_resize(self) -> None:
        self._show_board()

    def _show_board(self) -> None:
        """Show the stored result and the board of the trial."""
        if not self._verdicts:
            return
        stored = Content.assemble("As stored: ", overall_line(self._stored), "\nIn this trial:")
        width = max(40, self.query_one(Scroll).scrollable_content_region.width or self.size.width - 5)
        self.query_one(Scroll).show_text(Content("\n").join([stored, board_text(self._verdicts, width, self._records)]))

    def action_threshold(self, step: int) -> None:
        """Edit the next threshold or the previous one."""
        self._edit_threshold(self._at + step)

    def action_pages(self, pages: float) -> None:
        self.query_one(Scroll).action_pages(pages)

    def action_own(self) -> None:
        """Reset the limits to those of the recipe."""
        self._tried = self._own
        self._edit_threshold(self._at)
        self._judge_trial()

    def action_keep(self) -> None:
        """Save the changed limits into the plan; the run's verdicts stay."""
        changed = [tried for tried, own in zip(self._tried, self._own, strict=True) if tried != own]
        project_id = self._project_id
        if not changed:
            self.sfumato.say("No limit has been changed")
            return

        def query(workspace: Workspace) -> int:
            """Store the changed limits and return their number."""
            from sfumato.workspace.plan.edits import store_limits

            store_limits(workspace, project_id, changed)
            return len(changed)

        self.compute(query, self._report_saved)

    def _report_saved(self, limits: int) -> None:
        self.sfumato.say(f"{count_noun(limits, 'limit')} saved into the plan; a new run will be judged by them")


def _parse_number(text: str) -> float | None:
    """Return the finite number that a text denotes; None for any other text."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _read_thresholds(run_id: int, workspace: Workspace) -> Judged:
    """Read the thresholds of a run with the rows to judge."""
    from sfumato.workspace.store.runs import count_records_and_units, find_run
    from sfumato.workspace.views.results import read_result_rows, read_verdicts

    rows = [row for row in read_result_rows(workspace, run_id) if row.draw is None]
    run = find_run(workspace, run_id)
    return run.recipe.thresholds, rows, read_verdicts(workspace, run_id), count_records_and_units(workspace, run)
