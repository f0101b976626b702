"""A run at a glance, below the list of runs."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from sfumato.engine.thresholds import Verdict
from sfumato.engine.wording import counted
from sfumato.tui.widgets.text import cut
from sfumato.workspace.reporting.recipe_difference import sentence
from sfumato.workspace.reporting.words import PUBLIC_KEY, controls_text, duration, limit_text, mark, number, printable
from sfumato.workspace.views.run_detail import Phase, RunDetail

MOST_CHANGES = 4
MOST_UNMET = 3
NAME = 10


def glance(detail: RunDetail, width: int) -> Content:
    """The run in lines of ``width`` cells: what it is of, what is new in it, where the time went, what was not met."""
    made = [] if detail.m is None else [f"m = {detail.m}"]
    key = [PUBLIC_KEY] if detail.key_public else []
    named: list[tuple[str, str, str]] = [
        ("run", ", ".join([f"{detail.run_id}{f' {detail.name}' if detail.name else ''}: {detail.data}", f"{counted(detail.records, 'record')}", *made, f"seed {detail.seed}", *key]), ""),
        *_some("note", [(detail.note, "")] if detail.note else [], 1),
        *_some("controls", [(controls_text(detail.controls), "")] if detail.controls else [], 1),
        *_some("rules", [(detail.redrawn, "")] if detail.redrawn else [], 1),
        *_some("weights", [(line, "") for line in detail.weights], len(detail.weights)),
        *_changes(detail),
        ("phases", ", ".join(_phase(phase) for phase in detail.phases), ""),
        *_some("not met", [(_unmet(one), "$error" if one.outcome == "fail" else "$warning") for one in detail.unmet], MOST_UNMET),
    ]  # fmt: skip
    return Content("\n").join(
        Content.assemble((f"{name:<{NAME}}", "$primary"), (cut(printable(text), max(20, width - NAME)), style))
        for name, text, style in named
    )


def _changes(detail: RunDetail) -> list[tuple[str, str, str]]:
    if detail.against is None:
        return []
    name = f"{mark('into')} run {detail.against}"
    if not detail.changes:
        return [(name, "the same recipe", "$text-muted")]
    return _some(name, [(sentence(change), "") for change in detail.changes], MOST_CHANGES)


def _some(name: str, lines: Sequence[tuple[str, str]], most: int) -> list[tuple[str, str, str]]:
    """The first lines, named once, and how many more there are."""
    left = len(lines) - most
    more = [("", f"and {left} more", "$text-muted")] if left > 0 else []
    return [("" if place else name, *line) for place, line in enumerate(lines[:most])] + more


def _phase(phase: Phase) -> str:
    tasks = f"{phase.done}/{phase.tasks}" if phase.done < phase.tasks else f"{phase.tasks}"
    memory = f" {phase.peak_bytes / 1e6:.0f} MB" if phase.peak_bytes else ""
    return f"{phase.kind} {tasks} in {duration(phase.seconds)}{memory}"


def _unmet(verdict: Verdict) -> str:
    limit = limit_text(verdict.bound, verdict.limit, verdict.value)
    found = verdict.reason if verdict.observed is None else number(verdict.observed)
    return f"{mark(verdict.outcome)} {verdict.value} {verdict.target}: {found}, {limit}".replace(" : ", ": ")
