"""What the numbers along an axis are: numbers, base 10 logarithms of numbers, or days since 1970; ticks and words for each."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from sfumato.workspace.plots.ticks import Floats, nice_ticks, short_number, tick_labels

__all__ = ["AxisUnit", "log_ticks", "unit_text", "unit_ticks"]

AxisUnit = Literal["number", "log10", "date"]
MONTHS = (1, 3, 6)
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
