"""Numbers of few runs as bars beside the confidential data: two points on a map leave it empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.content import Content

from sfumato.workspace.reporting.words import DIRECTION_TEXTS, number
from sfumato.workspace.views.risk_utility import MapAxis, RiskUtilityMap

from ..terminal.text import cut_text, fit_text

NAME, VALUE = 18, 10
"""Cells of a run's name and of its number beside its bar."""
LEAST_BAR = 10
BAR = "█"


def run_bars(
    found: RiskUtilityMap, shown: tuple[MapAxis, MapAxis], width: int, most: int, name_of: Callable[[MapAxis], str]
) -> list[Content]:
    """Return at most ``most`` lines of ``width`` cells: for each number its name and direction, then a bar for each run
    and for the confidential data.

    The numbers of the map come first, then others that all runs have, one of each measure.
    """
    lines: list[Content] = []
    for axis in _barred_axes(found, shown):
        block = _bars_of_axis(found, axis, width, name_of(axis))
        if len(lines) + len(block) > most:
            break
        lines += block
    return lines


def _barred_axes(found: RiskUtilityMap, shown: tuple[MapAxis, MapAxis]) -> list[MapAxis]:
    """Return the axes on the map, then one of each other measure that can be compared, with the confidential data
    first.
    """
    first = {axis.key: axis for axis in shown}
    for axis in sorted(found.axes, key=lambda axis: axis.ident not in found.confidential_values):
        if _can_be_compared(found, axis):
            first.setdefault(axis.key, axis)
    return list(first.values())


def _can_be_compared(found: RiskUtilityMap, axis: MapAxis) -> bool:
    """Return whether a number has a better direction, all runs have it, and bars from 0 compare two values or more."""
    runs = found.coordinates.get(axis.ident, {})
    own = found.confidential_values.get(axis.ident)
    values = [one.value for one in runs.values()] + ([] if own is None else [own])
    # A bar has no side for numbers below 0.
    return (
        axis.goal in ("low", "high") and runs.keys() >= found.run_titles.keys() and len(values) > 1 and min(values) >= 0
    )


def _bars_of_axis(found: RiskUtilityMap, axis: MapAxis, width: int, name: str) -> list[Content]:
    """Return the name of a number and a bar for each of its values, from 0."""
    values: list[tuple[str, float, str]] = []
    if (own := found.confidential_values.get(axis.ident)) is not None:
        values.append(("confidential data", own, "$text-muted"))
    values += [(f"run {run}", one.value, "$primary") for run, one in found.coordinates.get(axis.ident, {}).items()]
    longest = max((abs(value) for _, value, _ in values), default=0.0)
    room = max(LEAST_BAR, width - NAME - VALUE - 3)
    heading = Content.styled(cut_text(f"{name}, {DIRECTION_TEXTS[axis.goal]}", width), "bold")
    return [heading, *(_bar_line(one, longest, room) for one in values)]


def _bar_line(one: tuple[str, float, str], longest: float, room: int) -> Content:
    """Return one value with its bar; the longest has ``room`` cells."""
    name, value, ink = one
    length = round(room * abs(value) / longest) if longest else 0
    # A small number must not look as if it were none.
    bar = BAR * max(length, 1 if value else 0)
    return Content.assemble(f"{fit_text(name, NAME)} {number(value):>{VALUE}} ", (bar, ink))


def with_blank_between(blocks: Sequence[list[Content]]) -> list[Content]:
    """Return the lines of blocks with a blank line between two."""
    return [line for block in blocks if block for line in (*block, Content(""))][:-1]
