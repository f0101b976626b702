"""A plan's text as a list of steps, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe import Recipe, read_toml

from .edits import Place, places

__all__ = ["PlanView", "StepLine", "plan_view"]


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step: its place, what it does, and the table that says so."""

    place: Place
    method: str
    table: Mapping[str, Any]


@dataclass(frozen=True)
class PlanView:
    """What a text says. ``lines`` is None where it cannot be read as a plan; ``problem`` is why it cannot be run, if so.

    ``at`` is the place of the problem; ``table`` is the whole plan.
    """

    toml: str
    lines: tuple[StepLine, ...] | None
    table: Mapping[str, Any]
    problem: str = ""
    at: str = ""


def plan_view(toml: str) -> PlanView:
    """Read and check a plan's text."""
    try:
        table = read_toml(toml)
        found = places(table)
    except BadInput as error:
        return PlanView(toml, None, {}, str(error), error.place)
    lines = tuple(_line(place, table[place.section][place.index]) for place in found)
    try:
        Recipe.from_table(table)
    except BadInput as error:
        return PlanView(toml, lines, table, str(error), error.place)
    return PlanView(toml, lines, table)


def _line(place: Place, step: Mapping[str, Any]) -> StepLine:
    method = "threshold" if place.section == "threshold" else str(step.get("method", ""))
    return StepLine(place, method, step)
