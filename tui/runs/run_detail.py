"""A run at a glance, below the list of runs, and in full, beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from sfumato.engine.methods.labels import label_by_key, labels_of
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.outcomes import WORST_FIRST
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun
from sfumato.tui.terminal.text import cut, fit
from sfumato.tui.widgets.facts import ONE_COLUMN, run_in, wrapped
from sfumato.workspace.reporting.plan_steps import Facts
from sfumato.workspace.reporting.recipe_difference import sentence
from sfumato.workspace.reporting.results import result_table
from sfumato.workspace.reporting.tables import text
from sfumato.workspace.reporting.words import (
    PUBLIC_KEY,
    Apart,
    controls_text,
    duration,
    limit_text,
    mark,
    observed_text,
)
from sfumato.workspace.views.run_detail import Phase, RunDetail
from sfumato.workspace.visible_text import replace_unprintable

MOST_CHANGES = 4
MOST_UNMET = 3
NAME, LONG_NAME = 10, 14
NUMBERS = ("measure", "variable", "confidential", "release")

Named = list[tuple[str, str, str]]
"""Lines: a name, or nothing below it, what is said, and its style."""


def glance(detail: RunDetail, plan: Facts, width: int, room: int, least: int = 0, *, beside: bool = False) -> Content:
    """The run in lines of ``width`` cells: what it is of, what is new in it, where the time went, what was not met and what mends it.

    In the ``room`` that a short list leaves its ``plan`` follows, the lines broken where there are enough. ``beside`` the run in
    full only what that leaves out is said. At most ``room`` lines, or ``least`` of them beside a long list.
    """
    said = [] if beside else _said(detail, MOST_CHANGES)
    unmet = [(_unmet(one, name), _style(one.outcome)) for one, name in zip(detail.unmet, detail.names, strict=True)]
    said += _some("not met", unmet, MOST_UNMET)
    levers = dict.fromkeys(lever for one in detail.unmet for lever in label_by_key(one.value).levers)
    said += _some("what to change", [(lever, "") for lever in levers], MOST_UNMET)
    if room > len(said) + 1:
        said += [*([("", "", "")] if said else []), *((name, line, "") for name, line in plan)]
    most, text_width = max(room, least), max(20, width - LONG_NAME - 1)
    broken = [
        ("" if at else name, line, style)
        for name, line, style in said
        for at, line in enumerate(wrapped(line, text_width) or [""])
    ]
    lines = (
        broken
        if len(broken) <= most
        else [(name, cut(replace_unprintable(line), text_width), style) for name, line, style in said]
    )
    return Content("\n").join(
        Content.assemble((fit(name, LONG_NAME), "$primary"), " ", (line, style)) for name, line, style in lines[:most]
    )


@dataclass(frozen=True)
class WholeRun:
    """A run at a glance with all its verdicts, and the rows of the first of its numbers."""

    detail: RunDetail
    standing: str
    verdicts: Sequence[Verdict]
    rows: Sequence[Row]
    apart: Apart

    def lines(self, width: int) -> Content:
        """All of it in lines of ``width`` cells: verdicts, those that are not met first, what ``glance`` says, and the numbers where there is room for a table."""
        verdicts = sorted(self.verdicts, key=lambda one: WORST_FIRST.index(one.outcome))
        run, *others = _said(self.detail, len(self.detail.changes))
        lines_of = verdict_lines(verdicts, self.detail.records)
        judged = [(line, _style(one.outcome)) for one, line in zip(verdicts, lines_of, strict=True)]
        said = [run, ("now", self.standing, ""), *_some("verdicts", judged, len(judged)), *others]
        if width < ONE_COLUMN:
            return Content("\n").join(line for one in said for line in run_in(one[0], one[1], width, one[2]))
        lines = [
            Content.assemble((f"{'' if place else name:<{NAME}}", "$primary"), (line, style))
            for name, text, style in said
            for place, line in enumerate(wrapped(text, max(20, width - NAME)))
        ]
        table = result_table(self.rows, (), self.apart)
        numbers = text(table.only([i for i, one in enumerate(table.columns) if one.title in NUMBERS]), width)
        return Content("\n").join([*lines, Content(""), *map(Content, numbers.splitlines())] if self.rows else lines)


def _said(detail: RunDetail, changes: int) -> Named:
    """What a run is, with so many of its changes."""
    made = [] if detail.m is None else [f"m = {detail.m}"]
    key = [PUBLIC_KEY] if detail.key_public else []
    return [
        ("run", ", ".join([f"{detail.run_id}{f' {detail.name}' if detail.name else ''}: {detail.data}", f"{count_noun(detail.records, 'record')}", *made, f"seed {detail.seed}", *key]), ""),
        *_some("note", [(detail.note, "")] if detail.note else [], 1),
        *_some("controls", [(controls_text(detail.controls), "")] if detail.controls else [], 1),
        *_some("rules", [(detail.redrawn, "")] if detail.redrawn else [], 1),
        *_some("weights", [(line, "") for line in detail.weights], len(detail.weights)),
        *_changes(detail, changes),
        ("phases", ", ".join(_phase(phase) for phase in detail.phases), ""),
    ]  # fmt: skip


def _style(outcome: str) -> str:
    return {"not met": "$error", "met": ""}.get(outcome, "$warning")


def _changes(detail: RunDetail, most: int) -> list[tuple[str, str, str]]:
    if detail.against is None:
        return []
    name = f"{mark('into')} run {detail.against}"
    if not detail.changes:
        return [(name, "the same recipe", "$text-muted")]
    return _some(name, [(sentence(change), "") for change in detail.changes], most)


def _some(name: str, lines: Sequence[tuple[str, str]], most: int) -> list[tuple[str, str, str]]:
    """The first lines, named once, and how many more there are."""
    left = len(lines) - most
    more = [("", f"and {left} more", "$text-muted")] if left > 0 else []
    return [("" if place else name, *line) for place, line in enumerate(lines[:most])] + more


def _phase(phase: Phase) -> str:
    tasks = f"{phase.done}/{phase.tasks}" if phase.done < phase.tasks else f"{phase.tasks}"
    took = f" in {duration(phase.seconds)}" if phase.done else ""
    memory = f" ({phase.peak_bytes / 1e6:.0f} MB)" if phase.peak_bytes else ""
    return f"{phase.kind} {tasks}{took}{memory}"


def verdict_lines(verdicts: Sequence[Verdict], records: int | None = None) -> list[str]:
    """Each verdict in a line, by the name that it has among these."""
    return [_unmet(one, name, records) for one, name in zip(verdicts, labels_of(verdicts), strict=True)]


def _unmet(verdict: Verdict, name: str, records: int | None = None) -> str:
    """``✗ Re-identified with certainty: 88 of 20,190 (0.44 %), at most 0.1 %``."""
    limit = limit_text(verdict.bound, verdict.limit, verdict.value)
    found = verdict.reason if verdict.observed is None else observed_text(verdict, records)
    return f"{mark(verdict.outcome)} {name}: {found}, {limit}"
