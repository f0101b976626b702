"""Axes: round ticks and their labels, units, and scales from data to dots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Limits = tuple[float, float]

# larger values are not drawn: the difference of two of them could overflow
LARGEST_VALUE = 1e300
UNITS = {3: "k", 6: "M", 9: "G", 12: "T"}
AxisUnit = Literal["number", "log10", "date"]
MONTHS = (1, 3, 6)


def finite_limits(values: Floats) -> Limits | None:
    """Return the lowest and highest of the finite ``values`` (n,), widened where all are equal.

    None without finite values.
    """
    known = values[np.abs(values) < LARGEST_VALUE]
    if known.size == 0:
        return None
    low, high = float(known.min()), float(known.max())
    size = max(abs(low), abs(high))
    if high - low > max(1e-12 * size, 1e-300):
        return low, high
    margin = size / 2 if size > 1e-300 else 1.0
    return low - margin, high + margin


def nice_ticks(low: float, high: float, most: int) -> Floats:
    """Return at most ``most`` multiples of 1, 2 or 5 · 10^k in [low, high], for the finest such step; possibly none."""
    if most < 1:
        return np.empty(0)
    exponent = math.floor(math.log10((high - low) / most)) - 1
    while True:
        for leading in (1, 2, 5):
            ticks = _multiples_between(low, high, leading, exponent)
            if ticks.size <= most:
                return ticks
        exponent += 1


def _multiples_between(low: float, high: float, leading: int, exponent: int) -> Floats:
    """Return the multiples of ``leading`` · 10^``exponent`` in [low, high], with a tolerance for rounding."""
    unit = float(f"1e{abs(exponent)}")
    scaled = [value * unit if exponent < 0 else value / unit for value in (low, high)]
    first = math.ceil(scaled[0] / leading - 1e-9)
    last = math.floor(scaled[1] / leading + 1e-9)
    count = np.arange(first, last + 1, dtype=np.float64) * leading
    # divided by 10^k: 10^-k is no exact float, and 3 times 0.1 would be 0.30000000000000004
    return count / unit if exponent < 0 else count * unit


def tick_labels(ticks: Floats) -> list[str]:
    """Return decimal labels of ticks, all in one unit (k, M, G, T or a power of ten), with as many decimals as needed."""
    if ticks.size == 0:
        return []
    exponent, suffix = _unit_suffix(float(np.abs(ticks).max()))
    shown = np.array([_value_in_unit(tick, exponent) for tick in ticks.tolist()])
    decimals = _needed_decimals(shown)
    labels = [f"{value:.{decimals}f}" for value in shown.tolist()]
    return ["0" if float(label) == 0 else label + suffix for label in labels]


def _needed_decimals(values: Floats) -> int:
    """Return the fewest decimals that show the rising ``values`` to a thousandth of their step."""
    slack = 1e-3 * float(np.diff(values).min()) if values.size > 1 else 1e-9 * abs(float(values[0]))
    enough = (d for d in range(17) if np.all(np.abs(values - np.round(values, d)) <= slack))
    return next(enough, 17)


def _unit_suffix(largest: float) -> tuple[int, str]:
    """Return the power of ten and the suffix of the unit in which labels up to ``largest`` are written."""
    if largest == 0 or 1e-3 <= largest < 1e4:
        return 0, ""
    exponent = math.floor(math.log10(largest) + 1e-9)
    thousands = exponent // 3 * 3
    return (thousands, UNITS[thousands]) if thousands in UNITS else (exponent, f"e{exponent}")


def _value_in_unit(value: float, exponent: int) -> float:
    """Return a value divided by a power of ten."""
    # below 1e-300 powers of ten lose digits, and then become 0
    scaled = value / 10.0**exponent if exponent >= -300 else value * 1e300 / 10.0 ** (exponent + 300)
    return float(scaled)


def short_number(value: float, digits: int = 4) -> str:
    """Return a number in ``digits`` significant digits, or all digits of a whole number below ten million."""
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
    """Return at most ``most`` round values in [low, high], both above 0, for a logarithmic axis.

    These are decades with 2 and 5 between them, with 3, decades alone, or every k-th of these so that three are left;
    where there are not two, the ticks of a linear axis.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    finer = np.empty(0)
    for leading in ((1, 2, 5), (1, 3), (1,)):
        values = np.array([first * 10.0**power for power in powers for first in leading])
        # A decade that rounding put just outside counts, as the end of the axis itself.
        inside = np.clip(values[(values >= low * (1 - 1e-9)) & (values <= high * (1 + 1e-9))], low, high)
        if inside.size <= most:
            break
        finer = inside
    # Two values do not show that a scale is logarithmic.
    if inside.size == 2 and most > 2 and finer.size:
        inside = finer
    if inside.size < 2:
        return nice_ticks(low, high, most)
    return np.asarray(inside[:: math.ceil(inside.size / most)])


def unit_ticks(low: float, high: float, most: int, unit: AxisUnit = "number") -> tuple[Floats, list[str]]:
    """Return at most ``most`` ticks in [low, high], both in ``unit``, at round values, and their labels."""
    if unit == "log10" and most > 0:
        values = log_ticks(10.0**low, 10.0**high, most)
        return np.log10(values), [short_number(value) for value in values.tolist()]
    if unit == "date":
        return _date_ticks(low, high, most)
    ticks = nice_ticks(low, high, most)
    return ticks, tick_labels(ticks)


def _date_ticks(low: float, high: float, most: int) -> tuple[Floats, list[str]]:
    """Return ticks at single days where there are few, otherwise at the first days of months or years."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last - first < most:
        days = np.arange(first, last + 1).astype("datetime64[D]")
        return days.astype(np.float64), days.astype(str).tolist()
    ends = np.array([first, last]).astype("datetime64[D]")
    for code, steps in (("M", MONTHS), ("Y", YEARS)):
        start, end = ends.astype(f"datetime64[{code}]").astype(np.int64)
        for step in steps:
            # -(-a // b) rounds up, to the first period within the axis
            periods = (np.arange(-(-start // step), end // step + 1) * step).astype(f"datetime64[{code}]")
            days = periods.astype("datetime64[D]").astype(np.float64)
            inside = (days >= first) & (days <= last)
            if 0 < inside.sum() <= most:
                return days[inside], periods[inside].astype(str).tolist()
    return np.empty(0), []


def unit_text(value: float, unit: AxisUnit = "number", digits: int = 4) -> str:
    """Return a position on an axis as text: a date, or a number, also where its logarithm is drawn."""
    if unit == "date":
        return str(np.datetime64(math.floor(value), "D"))
    return short_number(10.0**value if unit == "log10" else value, digits)


@dataclass(frozen=True)
class DotScale:
    """Scale from data to dots.

    low, high: values on the first and on the last dot
    dots: number of dots
    downward: whether the direction is reversed
    log: whether it is logarithmic; then both ends must be above 0, and a value that is not above 0 has no position
    """

    low: float
    high: float
    dots: int
    downward: bool = False
    log: bool = False

    def to_dots(self, values: Floats) -> Floats:
        """Return positions in dots, in the shape of ``values``; they are not finite for NaN and values that overflow."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            low, high = self._scaled_ends
            position = ((np.log10(values) if self.log else values) - low) / (high - low) * (self.dots - 1)
        return self.dots - 1 - position if self.downward else position

    def to_data(self, dot: float) -> float:
        """Return the value at the centre of ``dot``."""
        share = dot / max(self.dots - 1, 1)
        low, high = self._scaled_ends
        value = low + (1 - share if self.downward else share) * (high - low)
        return float(10.0**value) if self.log else value

    @property
    def _scaled_ends(self) -> Limits:
        """Return the ends of the scale, or their logarithms."""
        return (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)


CELLS_OF_TICK, CELLS_OF_CLOSE_TICK, LEAST_TICKS = 8, 5, 3
"""Cells that a tick of a horizontal axis has, those where they would be fewer than the last number, and this number."""


def fit_ticks(low: float, high: float, cells: int, unit: AxisUnit = "number") -> tuple[Floats, list[str]]:
    """Return as many ticks of a horizontal axis as fit into ``cells`` without overlapping labels, and the labels."""
    usual = max(1, cells // CELLS_OF_TICK)
    found: tuple[Floats, list[str]] = np.empty(0), []
    # An axis of one or two ticks says little, so that it has them closer where their labels are short.
    for most in (*range(usual, 0, -1), *range(usual + 1, max(usual, cells // CELLS_OF_CLOSE_TICK) + 1)):
        ticks, labels = unit_ticks(low, high, most, unit)
        centres = np.rint(DotScale(low, high, cells).to_dots(ticks)).astype(int).tolist()
        if ticks.size and len(place_labels(centres, labels, cells)) == ticks.size:
            if ticks.size >= LEAST_TICKS:
                return ticks, labels
            found = (ticks, labels) if ticks.size > found[0].size else found
    return found


def place_labels(centres: Sequence[int], labels: Sequence[str], width: int) -> list[tuple[int, str]]:
    """Return the starts of labels centred on a line of ``width`` cells; labels without room are left out."""
    placed: list[tuple[int, str]] = []
    free = 0
    for centre, label in zip(centres, labels, strict=True):
        start = max(0, min(centre - len(label) // 2, width - len(label)))
        if label and start >= free and start + len(label) <= width:
            placed.append((start, label))
            free = start + len(label) + 1
    return placed
