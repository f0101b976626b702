"""Axes: linear scales from data to dots, round ticks, and labels that are short and never overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Limits = tuple[float, float]

LARGEST = 1e300
UNITS = {3: "k", 6: "M", 9: "G", 12: "T"}


@dataclass(frozen=True)
class Scale:
    """``low`` falls on the first of ``dots`` dots and ``high`` on the last; ``downward`` turns it round."""

    low: float
    high: float
    dots: int
    downward: bool = False

    def to_dots(self, values: Floats) -> Floats:
        """Positions in dots, the shape of ``values``; NaN and overflow are not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            position = (values - self.low) / (self.high - self.low) * (self.dots - 1)
        return self.dots - 1 - position if self.downward else position

    def to_data(self, dot: float) -> float:
        """The value at the centre of ``dot``."""
        share = dot / max(self.dots - 1, 1)
        return self.low + (1 - share if self.downward else share) * (self.high - self.low)


def limits(values: Floats) -> Limits | None:
    """Lowest and highest of the finite ``values`` (n,), widened when all are equal; None when there is none."""
    known = values[np.abs(values) < LARGEST]
    if known.size == 0:
        return None
    low, high = float(known.min()), float(known.max())
    size = max(abs(low), abs(high))
    if high - low > max(1e-12 * size, 1e-300):
        return low, high
    margin = size / 2 if size > 1e-300 else 1.0
    return low - margin, high + margin


def nice_ticks(low: float, high: float, most: int) -> Floats:
    """At most ``most`` multiples of 1, 2 or 5 · 10^k in [low, high], for the finest such step; perhaps none."""
    if most < 1:
        return np.empty(0)
    exponent = math.floor(math.log10((high - low) / most)) - 1
    while True:
        for leading in (1, 2, 5):
            ticks = _multiples(low, high, leading, exponent)
            if ticks.size <= most:
                return ticks
        exponent += 1


def _multiples(low: float, high: float, leading: int, exponent: int) -> Floats:
    """The multiples of ``leading`` · 10^``exponent`` in [low, high], but for rounding."""
    unit = float(f"1e{abs(exponent)}")
    scaled = [value * unit if exponent < 0 else value / unit for value in (low, high)]
    first = math.ceil(scaled[0] / leading - 1e-9)
    last = math.floor(scaled[1] / leading + 1e-9)
    count = np.arange(first, last + 1, dtype=np.float64) * leading
    return count / unit if exponent < 0 else count * unit


def tick_labels(ticks: Floats) -> list[str]:
    """Short decimal labels, all in one unit (k, M, G, T or a power of ten), with the decimals the step needs."""
    if ticks.size == 0:
        return []
    exponent, suffix = _unit(float(np.abs(ticks).max()))
    shown = np.array([_in_unit(tick, exponent) for tick in ticks.tolist()])
    decimals = _decimals(shown)
    labels = [f"{value:.{decimals}f}" for value in shown.tolist()]
    return ["0" if float(label) == 0 else label + suffix for label in labels]


def _decimals(values: Floats) -> int:
    """The fewest decimals that tell the rising ``values`` to a thousandth of their step."""
    slack = 1e-3 * float(np.diff(values).min()) if values.size > 1 else 1e-9 * abs(float(values[0]))
    enough = (d for d in range(17) if np.all(np.abs(values - np.round(values, d)) <= slack))
    return next(enough, 17)


def _unit(largest: float) -> tuple[int, str]:
    if largest == 0 or 1e-3 <= largest < 1e4:
        return 0, ""
    exponent = math.floor(math.log10(largest) + 1e-9)
    thousands = exponent // 3 * 3
    return (thousands, UNITS[thousands]) if thousands in UNITS else (exponent, f"e{exponent}")


def _in_unit(value: float, exponent: int) -> float:
    scaled = value / 10.0**exponent if exponent >= -300 else value * 1e300 / 10.0 ** (exponent + 300)
    return float(scaled)


def short_number(value: float, digits: int = 4) -> str:
    """``value`` in ``digits`` significant digits; all digits of a whole number below ten million."""
    if math.isnan(value):
        return "-"
    size = abs(value)
    if size < 1e7 and value == round(value):
        return str(round(value))
    if 10.0**digits <= size < 1e7:
        return f"{value:.0f}"
    return f"{value:.{digits}g}" if 1e-4 <= size < 1e7 else f"{value:.{digits - 1}e}"


def fit_ticks(low: float, high: float, cells: int) -> tuple[Floats, list[str]]:
    """The most ticks of a horizontal axis ``cells`` long whose labels stand apart, and the labels."""
    for most in range(max(1, cells // 8), 0, -1):
        ticks = nice_ticks(low, high, most)
        labels = tick_labels(ticks)
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
