"""Smoothed bootstrap: a donor's number is moved by a normal kernel over the donor's group.

Silverman (1986, §3.4.2, §6.4.1); synthpop's ``smoothing = "density"`` (Nowok, Raab & Dibben 2016). With donor y_j of a
group of c donors with mean ybar and variance s^2, and e standard normal,

    h = 0.9 min(s, IQR / 1.34) c^(-1/5)                         the rule of thumb, §3.4.2
    y = ybar + (y_j - ybar + h e) / sqrt(1 + h^2 / s^2)         keeps the group's mean and variance, §6.4.1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.long_arrays import long_blocks
from ..data.sorting import sorted_unique
from .columns import column_scales

MAX_DECIMALS = 6


def common_step(numbers: Floats) -> float:
    """Return the largest step, down to a millionth, of which all numbers (n,) are multiples; 0 where there is none."""
    return CommonDivisor.from_numbers(numbers).step


def _common_divisor(values: Floats, decimals: int) -> int | None:
    """Return of what values (n,) with so many decimals are multiples; None where they have more."""
    divisor = 0
    for rows in long_blocks(len(values)):
        scaled = values[rows] * 10.0**decimals
        whole = np.rint(scaled)
        is_whole = np.abs(scaled - whole) <= 1e-9 * np.maximum(1, np.abs(scaled))
        if not ((np.abs(whole) < 2**53).all() and is_whole.all()):
            return None
        divisor = math.gcd(divisor, int(np.gcd.reduce(whole.astype(np.int64))))
    return divisor


class CommonDivisor(NamedTuple):
    """What numbers have in common: with how many decimals they are whole, and of what they are then multiples.

    decimals: beyond ``MAX_DECIMALS`` where there are too many
    divisor: 0 where all numbers are 0
    """

    decimals: int
    divisor: int

    @classmethod
    def from_numbers(cls, numbers: Floats) -> Self:
        """Return what numbers (n,) have in common."""
        values = sorted_unique(numbers)
        for decimals in range(MAX_DECIMALS + 1):
            divisor = _common_divisor(values, decimals)
            if divisor is not None:
                return cls(decimals, divisor)
        return cls(MAX_DECIMALS + 1, 0)

    @classmethod
    def of_all(cls, parts: Sequence[Self]) -> Self:
        """Return what the numbers of all parts have in common."""
        decimals = max(one.decimals for one in parts)
        return cls(decimals, math.gcd(*(one.divisor * 10 ** (decimals - one.decimals) for one in parts)))

    @property
    def step(self) -> float:
        """Return the step of which all numbers are multiples; 0 where there is none."""
        return 0.0 if self.decimals > MAX_DECIMALS else float(self.divisor or 1) / 10.0**self.decimals


def smooth_donor_values(
    values: Floats,
    group: Integers,
    donors: Floats,
    donor_group: Integers,
    noise: Callable[[int], Floats],
    weight: Floats | None = None,
) -> Floats:
    """Move drawn values (n,) by the kernels of their groups, and return them.

    group: group of each value, from 0, (n,)
    donors: numbers of the donors, which decide the width of each kernel, (d,)
    donor_group: group of each donor, from 0, (d,)
    noise: function that returns so many standard normal numbers
    weight: number of donors that each one counts for, above 0, (d,); default: 1
    """
    groups = int(donor_group.max()) + 1
    # Squares of the donors themselves may overflow, or vanish.
    unit = float(column_scales(donors))
    values, donors = values / unit, donors / unit
    mean, sd, width = _group_kernels(donors, donor_group, groups, weight)
    everywhere = _group_kernels(donors, np.zeros(len(donors), dtype=np.int64), 1, weight)[2][0]
    # A group of one value has no width of its own, and would release that value.
    here = np.where(width > 0, width, everywhere)[group]
    ratio = np.divide(here, sd[group], out=np.zeros(len(values)), where=width[group] > 0)
    moved = values - mean[group] + here * noise(len(values))
    return np.asarray(mean[group] + moved / np.sqrt(1 + ratio**2)) * unit


def _group_kernels(
    donors: Floats, group: Integers, groups: int, weight: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Return the mean, the standard deviation and the kernel width of each group, (groups,) each; 0 for a group without
    donors.
    """
    count = np.bincount(group, weight, groups)
    safe = np.where(count > 0, count, 1)
    each = 1.0 if weight is None else weight
    mean = np.bincount(group, donors * each, groups) / safe
    variance = np.bincount(group, (donors - mean[group]) ** 2 * each, groups) / safe
    sd = np.sqrt(variance)
    order = np.lexsort((donors, group))
    ordered = np.append(donors[order], 0.0)
    start = np.cumsum(count) - count
    places = [start + (share * np.maximum(safe - 1, 0)).round() for share in (0.25, 0.75)]
    if weight is not None:
        upto = np.cumsum(weight[order])
        places = [np.searchsorted(upto, place, side="right") for place in places]
    low, high = (ordered[np.minimum(place.astype(np.int64), len(donors))] for place in places)
    # Where most donors have one value the interquartile range is 0 and says nothing of the others.
    spread = np.where(high > low, np.minimum(sd, (high - low) / 1.34), sd)
    return mean, sd, 0.9 * spread * safe**-0.2


def reflect_at_bounds(values: Floats, low: float | None, high: float | None, step: float) -> Floats:
    """Reflect values (n,) at the bounds and round them to a multiple of ``step``.

    A bound of None is not applied, nor is a step of 0. Values further outside than the range is wide are clipped.
    """
    if low is not None:
        # synthpop cuts at the smallest and the largest value, which releases both. Here nothing is cut at a value of
        # the data.
        values = low + np.abs(values - low)
    if high is not None:
        values = high - np.abs(high - values)
    if step:
        values = np.round(np.rint(values / step) * step, MAX_DECIMALS)
    if low is None and high is None:
        return values
    return np.clip(values, low, high)
