"""Edits of a recipe's text: what the lists and forms of a screen do to a plan, each as a new text that keeps what
it does not change: comments, order and layout.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe import read_toml

from .rewrite import rewritten

__all__ = ["SECTIONS", "Place", "places", "with_moved", "with_sections", "with_step", "with_variable", "without_step"]

SECTIONS = ("synthesis", "anonymisation", "measure", "study", "threshold")
"""The lists of a recipe, in its order."""


@dataclass(frozen=True, slots=True)
class Place:
    """A step of a plan: ``synthesis[1]``."""

    section: str
    index: int

    def __str__(self) -> str:
        return f"{self.section}[{self.index}]"


def places(table: Mapping[str, Any]) -> list[Place]:
    """Every step of a plan in order. Raises BadInput where a section is not a list of tables."""
    found = []
    for section in SECTIONS:
        steps = table.get(section, [])
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            raise BadInput(section, f"must be tables, [[{section}]]")
        found += [Place(section, index) for index in range(len(steps))]
    return found


def with_variable(toml: str, name: str, variable: Mapping[str, Any]) -> str:
    """The plan with one variable described so. Raises BadInput when the text is not TOML."""
    table = _read(toml)
    variables = table.get("variables", {})
    return rewritten(toml, {**table, "variables": {**variables, name: dict(variable)}})


def with_sections(toml: str, sections: Mapping[str, Any]) -> str:
    """The plan with these keys or tables in place of its own; None leaves one out."""
    table = {**_read(toml), **sections}
    return rewritten(toml, {key: value for key, value in table.items() if value is not None})


def with_step(toml: str, place: Place, step: Mapping[str, Any]) -> str:
    """The plan with a step in place of the one at ``place``, or added at the end of its section."""
    table = _read(toml)
    steps = list(table.get(place.section, []))
    steps[place.index : place.index + 1] = [dict(step)]
    return rewritten(toml, {**table, place.section: steps})


def without_step(toml: str, place: Place) -> str:
    """The plan without a step."""
    table = _read(toml)
    steps = [step for index, step in enumerate(table[place.section]) if index != place.index]
    rest = {key: value for key, value in table.items() if key != place.section}
    return rewritten(toml, {**table, place.section: steps} if steps else rest)


def with_moved(toml: str, place: Place, by: int) -> str:
    """The plan with a step so many places further down its section; the text itself where there is no such place."""
    table = _read(toml)
    steps = list(table[place.section])
    to = place.index + by
    if not 0 <= to < len(steps):
        return toml
    steps.insert(to, steps.pop(place.index))
    return rewritten(toml, {**table, place.section: steps})


def _read(toml: str) -> dict[str, Any]:
    table = copy.deepcopy(read_toml(toml))
    places(table)
    if not isinstance(table.get("variables", {}), dict):
        raise BadInput("variables", "must be a table, [variables]")
    return table
