"""Round numbers along an axis, their labels, and numbers in few digits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST", "Floats", "Limits", "limits", "nice_ticks", "short_number", "tick_labels"]

Floats = NDArray[np.float64]
Limits = tuple[float, float]

LARGEST = 1e300
UNITS = {3: "k", 6: "M", 9: "G", 12: "T"}


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
