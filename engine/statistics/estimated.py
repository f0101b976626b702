"""Estimates with an interval: simultaneous intervals, differences and ratios.

A difference and a ratio of two estimates have the limits that follow from the limits of both ("method of variance
estimates recovery"): Zou & Donner (2008), Statistics in Medicine 27, eq. 3; Donner & Zou (2012), Statistical Methods in
Medical Research 21(4), eq. 9. Both are taken as independent; of two that rise and fall together the interval is too
wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..data.intervals import UNBOUNDED, Range

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class ValueWithInterval:
    """An estimate with the ends of its 95 % interval, both None without one."""

    value: float
    lower: float | None = None
    upper: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the interval, widened to contain the value where rounding left that outside; None without one."""
        if self.lower is None or self.upper is None:
            return None
        return min(self.lower, self.value), max(self.upper, self.value)


def widening_factor(series: int) -> float:
    """Return the factor by which half widths of 95 % intervals grow for all ``series`` to cover simultaneously (Šidák
    1967).

    Rectangular Confidence Regions for the Means of Multivariate Normal Distributions, JASA 62: exact for independent
    series, and never too small for normal ones.
    """
    from scipy.special import ndtri

    if series <= 1:
        return 1.0
    return float(ndtri((1 + CONFIDENCE ** (1 / series)) / 2) / ndtri((1 + CONFIDENCE) / 2))


def widen_for_series(estimate: ValueWithInterval, series: int, within: Range = UNBOUNDED) -> ValueWithInterval:
    """Return an estimate with its interval widened for ``series`` simultaneous intervals, cut at the ends of its range."""
    if estimate.interval is None or series <= 1:
        return estimate
    low, high = estimate.interval
    by, (least, most) = widening_factor(series), within
    lower, upper = estimate.value - by * (estimate.value - low), estimate.value + by * (high - estimate.value)
    return ValueWithInterval(
        estimate.value,
        # An interval that already exceeds the range is not narrowed.
        lower if least is None else min(low, max(lower, least)),
        upper if most is None else max(high, min(upper, most)),
    )


def difference_with_interval(first: ValueWithInterval, second: ValueWithInterval) -> ValueWithInterval:
    """Return ``first`` minus ``second``, with an interval where both have one."""
    value = first.value - second.value
    if first.interval is None or second.interval is None:
        return ValueWithInterval(value)
    (low, high), (least, most) = first.interval, second.interval
    return ValueWithInterval(
        value,
        value - math.hypot(first.value - low, most - second.value),
        value + math.hypot(high - first.value, second.value - least),
    )


def ratio_with_interval(first: ValueWithInterval, second: ValueWithInterval) -> ValueWithInterval:
    """Return ``first``, at least 0, divided by ``second``, above 0, with an interval where both have one.

    The upper end is infinite where that of ``second`` includes 0.
    """
    a, b = first.value, second.value
    if first.interval is None or second.interval is None:
        return ValueWithInterval(a / b)
    (low, high), (least, most) = first.interval, second.interval
    if low == high and least == most:
        return ValueWithInterval(a / b, a / b, a / b)
    # Each side in a power of two near its value: products of four of them neither overflow nor vanish.
    unit, other_unit = _power_of_two_above(a or high), _power_of_two_above(b)
    x, y = a / unit, b / other_unit
    low, high, least, most = low / unit, high / unit, least / other_unit, most / other_unit
    under, over = low * (2 * x - low), least * (2 * y - least)
    root = math.sqrt(max(0.0, (x * y) ** 2 - under * most * (2 * y - most)))
    lower = under / (x * y + root) * unit / other_unit if a else 0.0
    # A divisor that may be 0 leaves the ratio without an upper end.
    if least <= 0:
        return ValueWithInterval(a / b, min(lower, a / b), math.inf)
    root = math.sqrt(max(0.0, (x * y) ** 2 - over * high * (2 * x - high)))
    return ValueWithInterval(a / b, min(lower, a / b), max((x * y + root) / over * unit / other_unit, a / b))


def _power_of_two_above(value: float) -> float:
    """Return the power of two above the absolute value, 1 for 0 and infinity."""
    # As ``column_scales`` does, which would load numerical libraries for every screen that reads an interval.
    return math.ldexp(1.0, max(-1021, min(math.frexp(value)[1], 1023)))
