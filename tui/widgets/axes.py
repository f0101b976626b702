"""Axes: linear and logarithmic scales from data to dots, and ticks whose labels never overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.workspace.plots.ticks import LARGEST, Floats, Limits, limits, nice_ticks, short_number, tick_labels
from sfumato.workspace.plots.units import AxisUnit, log_ticks, unit_text, unit_ticks

__all__ = [
    "LARGEST", "AxisUnit", "Floats", "Limits", "Scale", "fit_ticks", "limits", "log_ticks", "nice_ticks", "place",
    "short_number", "tick_labels", "unit_text", "unit_ticks",
]  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """``low`` falls on the first of ``dots`` dots and ``high`` on the last; ``downward`` turns it round.

    On a ``log`` scale, of which both must be above 0, their logarithms do; what is not above 0 has no place on it.
    """

    low: float
    high: float
    dots: int
    downward: bool = False
    log: bool = False

    def to_dots(self, values: Floats) -> Floats:
        """Positions in dots, the shape of ``values``; NaN and overflow are not finite."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            low, high = self._ends
            position = ((np.log10(values) if self.log else values) - low) / (high - low) * (self.dots - 1)
        return self.dots - 1 - position if self.downward else position

    def to_data(self, dot: float) -> float:
        """The value at the centre of ``dot``."""
        share = dot / max(self.dots - 1, 1)
        low, high = self._ends
        value = low + (1 - share if self.downward else share) * (high - low)
        return float(10.0**value) if self.log else value

    @property
    def _ends(self) -> Limits:
        return (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)


def fit_ticks(low: float, high: float, cells: int, unit: AxisUnit = "number") -> tuple[Floats, list[str]]:
    """The most ticks of a horizontal axis ``cells`` long whose labels stand apart, and the labels."""
    for most in range(max(1, cells // 8), 0, -1):
        ticks, labels = unit_ticks(low, high, most, unit)
        centres = np.rint(Scale(low, high, cells).to_dots(ticks)).astype(int).tolist()
        if ticks.size and len(place(centres, labels, cells)) == ticks.size:
            return ticks, labels
    return np.empty(0), []


def place(centres: Sequence[int], labels: Sequence[str], width: int) -> list[tuple[int, str]]:
    """Where labels start on a line of ``width`` cells, centred and kept inside, those without room left out."""
    placed: list[tuple[int, str]] = []
    free = 0
    for centre, label in zip(centres, labels, strict=True):
        start = max(0, min(centre - len(label) // 2, width - len(label)))
        if label and start >= free and start + len(label) <= width:
            placed.append((start, label))
            free = start + len(label) + 1
    return placed
