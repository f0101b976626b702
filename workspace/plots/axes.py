"""Axes: round numbers along them and their labels, units, scales from data to dots, ticks whose labels never overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Limits = tuple[float, float]

LARGEST = 1e300
UNITS = {3: "k", 6: "M", 9: "G", 12: "T"}
AxisUnit = Literal["number", "log10", "date"]
MONTHS = (1, 3, 6)


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


YEARS = tuple(first * 10**power for power in range(5) for first in (1, 2, 5))


def log_ticks(low: float, high: float, most: int) -> Floats:
    """At most ``most`` round values in [low, high], both above 0, even on a logarithmic axis: decades with 2 and 5
    between them, with 3, decades alone, or every so many. Where there are not two, those of a linear axis.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for leading in ((1, 2, 5), (1, 3), (1,)):
        values = np.array([first * 10.0**power for power in powers for first in leading])
        inside = values[(values >= low * (1 - 1e-9)) & (values <= high * (1 + 1e-9))]
        if inside.size <= most:
            break
    if inside.size < 2:
        return nice_ticks(low, high, most)
    return np.asarray(inside[:: math.ceil(inside.size / most)])


def unit_ticks(low: float, high: float, most: int, unit: AxisUnit = "number") -> tuple[Floats, list[str]]:
    """At most ``most`` places in [low, high], both in ``unit``, at which round values stand, and their labels."""
    if unit == "log10" and most > 0:
        values = log_ticks(10.0**low, 10.0**high, most)
        return np.log10(values), [short_number(value) for value in values.tolist()]
    if unit == "date":
        return _date_ticks(low, high, most)
    ticks = nice_ticks(low, high, most)
    return ticks, tick_labels(ticks)


def _date_ticks(low: float, high: float, most: int) -> tuple[Floats, list[str]]:
    """Days where there are few of them, else the first days of months or of years."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last - first < most:
        days = np.arange(first, last + 1).astype("datetime64[D]")
        return days.astype(np.float64), days.astype(str).tolist()
    ends = np.array([first, last]).astype("datetime64[D]")
    for code, steps in (("M", MONTHS), ("Y", YEARS)):
        start, end = ends.astype(f"datetime64[{code}]").astype(np.int64)
        for step in steps:
            periods = (np.arange(-(-start // step), end // step + 1) * step).astype(f"datetime64[{code}]")
            days = periods.astype("datetime64[D]").astype(np.float64)
            inside = (days >= first) & (days <= last)
            if 0 < inside.sum() <= most:
                return days[inside], periods[inside].astype(str).tolist()
    return np.empty(0), []


def unit_text(value: float, unit: AxisUnit = "number", digits: int = 4) -> str:
    """A place on an axis in words: ``2019-03-01``, or the number itself, also where its logarithm is drawn."""
    if unit == "date":
        return str(np.datetime64(math.floor(value), "D"))
    return short_number(10.0**value if unit == "log10" else value, digits)


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
