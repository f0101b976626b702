"""Tasks of a run in lines: how many of each kind are done, where the time goes, and which take longest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.wording import count_noun
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.tui.widgets.facts import wrap_text
from sfumato.workspace.reporting.words import duration_text, sign_for
from sfumato.workspace.views.run_detail import TaskPhase
from sfumato.workspace.visible_text import replace_unprintable

if TYPE_CHECKING:
    from sfumato.engine.recipe.recipe import Recipe
    from sfumato.workspace.store.runs import TaskRow

KINDS = {
    "fit": "fit the models",
    "draw": "draw the datasets",
    "measure": "measure",
    "study": "study",
    "combine": "combine the results",
    "tables": "protect the tables",
}
"""What tasks of a kind do, in words."""
MOST_NAMED = 5
"""Most tasks that are named: those that are computed now, else those that took longest."""
LEAST_BAR, MOST_BAR = 6, 24
"""Cells of a bar below which it is left out, and its most cells."""
LEAST_LINES = 3
"""Lines below which tasks are not told."""
GAP = "  "


@dataclass(frozen=True)
class NamedTask:
    """Task in words.

    text: what it does
    seconds: seconds that it took; None while it is computed
    """

    text: str
    seconds: float | None


def tasks_to_name(tasks: Sequence[TaskRow], recipe: Recipe) -> list[NamedTask]:
    """Return the tasks that are computed now; else those that took longest, the longest first."""
    from sfumato.tui.session.run_progress import (
        task_words,  # it loads methods, which takes the app longer than to start
    )

    running = [NamedTask(task_words(one.key, recipe), None) for one in tasks if one.state == "running"]
    if running:
        return running[:MOST_NAMED]
    seconds: dict[str, list[float]] = {}
    for one in tasks:
        if one.seconds:
            seconds.setdefault(task_words(one.key, recipe), []).append(one.seconds)
    # Parts of one measure have the same words, so they are one line.
    ended = [
        NamedTask(text if len(took) == 1 else f"{text}, {count_noun(len(took), 'task')}", sum(took))
        for text, took in seconds.items()
    ]
    return sorted(ended, key=lambda one: -(one.seconds or 0.0))[:MOST_NAMED]


def task_lines(
    phases: Sequence[TaskPhase], named: Sequence[NamedTask], label_width: int, width: int, room: int
) -> list[Content]:
    """Return a line for each kind of task with a bar, then the ``named`` tasks, in at most ``room`` lines of ``width`` cells.

    The bar of a run that goes on is the share of the tasks that is done, that of an ended one the share of the time.
    """
    if not phases or room < LEAST_LINES:
        return []
    done, total = sum(one.n_done for one in phases), sum(one.n_tasks for one in phases)
    seconds = sum(one.seconds for one in phases)
    goes_on = done < total
    texts = [
        (KINDS.get(one.kind, one.kind), _count_text(one), duration_text(one.seconds) if one.n_done else "", _memory_text(one))
        for one in phases
    ]  # fmt: skip
    sizes = [max(cell_len(text[at]) for text in texts) for at in range(4)]
    spare = width - len(GAP) - sum(sizes) - len(GAP) * 4
    bar = min(MOST_BAR, spare) if spare >= LEAST_BAR else 0
    said = f"{done} of {total} done" if goes_on else f"{total} done, {duration_text(seconds)} of computing"
    bars = ("" if not bar else "; bars: share done") if goes_on else ("" if not bar else "; bars: share of the time")
    lines = [
        Content.assemble(
            (fit_text("Tasks", label_width), "$text-muted"),
            (said, "bold"),
            (cut_text(bars, max(0, width - label_width - cell_len(said))), "$text-muted"),
        )
    ]
    for one, (kind, count, took, memory) in zip(phases, texts, strict=True):
        share = one.n_done / one.n_tasks if goes_on else one.seconds / seconds if seconds else 0.0
        drawn: list[tuple[str, str]] = [*_bar_parts(share, bar), (GAP, "")] if bar else []
        parts: list[str | tuple[str, str]] = [
            GAP,
            fit_text(kind, sizes[0]),
            GAP,
            fit_text(count, sizes[1], "right"),
            GAP,
        ]
        parts += [*drawn, fit_text(took, sizes[2], "right"), GAP, (fit_text(memory, sizes[3], "right"), "$text-muted")]
        lines.append(Content.assemble(*parts))
    label = "Now" if goes_on else "Longest tasks"
    column = max((cell_len(duration_text(one.seconds)) for one in named if one.seconds is not None), default=0)
    text_width = max(1, width - label_width - (column + len(GAP) if column else 0))
    for place, task in enumerate(named):
        took = fit_text(duration_text(task.seconds), column, "right") + GAP if task.seconds is not None else ""
        text, *rest = wrap_text(task.text, text_width) or [""]
        # A text is whole or, without lines for it, cut: a task less says more than two that end alike.
        if len(lines) + 1 + len(rest) > room:
            text, rest = _fitting_clauses(replace_unprintable(task.text), text_width), []
        lines.append(Content.assemble((fit_text("" if place else label, label_width), "$text-muted"), took, text))
        lines += [Content(" " * (width - text_width) + line) for line in rest]
    return lines[:room]


def _fitting_clauses(text: str, width: int) -> str:
    """Return a text without its last clauses, as far as it fits; cut where not even the first does."""
    parts = text.split(", ")
    said = [", ".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((one for one in said if cell_len(one) <= width), cut_text(parts[0], width))


def _bar_parts(share: float, width: int) -> list[tuple[str, str]]:
    """Return a bar from 0 to all, filled up to a share, as texts with their styles."""
    filled = min(width, max(1 if share > 0 else 0, round(share * width)))
    return [(sign_for("bar") * filled, "$primary"), (sign_for("track") * (width - filled), "$text-muted")]


def _count_text(phase: TaskPhase) -> str:
    """Return how many tasks of a kind are done: ``5``, ``3 of 5``."""
    return f"{phase.n_tasks}" if phase.n_done == phase.n_tasks else f"{phase.n_done} of {phase.n_tasks}"


def _memory_text(phase: TaskPhase) -> str:
    """Return the largest memory of a task: ``265 MB``; empty where none is known."""
    return f"{phase.peak_bytes / 1e6:.0f} MB" if phase.peak_bytes else ""
