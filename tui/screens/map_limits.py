"""Thresholds as lines on the risk-utility map."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.thresholds import Verdict
from sfumato.tui.widgets.series import Series
from sfumato.workspace.reporting.words import limit_text
from sfumato.workspace.views.risk_utility import Axis, Point, made_with

__all__ = ["Limit", "limit_series", "limit_words", "limits_on"]

Limit = tuple[str, float]
"""``max`` or ``min``, and the value that a threshold sets."""


def limits_on(verdicts: Sequence[Verdict], axis: Axis, own: float | None) -> list[Limit]:
    """The thresholds that speak of an axis's number; a ratio in units of the confidential data's ``own`` value."""
    found = []
    for one in verdicts:
        same = (one.value, one.level) == (axis.key, axis.level) and one.target in ("", axis.target)
        if not same or (one.params and made_with(one.value.rpartition(".")[0], one.params) != dict(axis.settings)):
            continue
        if one.bound != "max_ratio":
            found.append((one.bound, one.limit))
        elif own is not None:
            found.append(("max", one.limit * own))
    return list(dict.fromkeys(found))


def limit_words(limit: Limit) -> str:
    """``at most 0.02``."""
    return limit_text(*limit)


def limit_series(limits: tuple[Sequence[Limit], Sequence[Limit]], points: Sequence[Point]) -> list[Series]:
    """Upright lines at the thresholds across and level ones at those up, as long as the picture needs.

    One that is farther off than the runs lie apart would press them into a corner, and is only named above.
    """
    if not points:
        return []
    spans = [[p.x.value for p in points], [p.y.value for p in points]]
    near = [[one for one in side if _near(one[1], span)] for side, span in zip(limits, spans, strict=True)]
    (left, right), (low, high) = (
        _ends([*span, *(limit for _, limit in side)]) for span, side in zip(spans, near, strict=True)
    )
    upright = [Series(f"across {limit_words(one)}", [one[1]] * 2, [low, high]) for one in near[0]]
    return [*upright, *(Series(f"up {limit_words(one)}", [left, right], [one[1]] * 2) for one in near[1])]


def _near(limit: float, values: Sequence[float]) -> bool:
    low, high = _ends(values)
    return low - 2 * (high - low) <= limit <= high + 2 * (high - low)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = 0.0 if high > low else abs(low) / 2 or 1.0
    return low - room, high + room
