"""Released tails of a variable: whether its smallest and largest values are released unchanged.

A count may equal another count by chance, a price in cents hardly. A tail value is released by chance with a
probability that is the share of the possible values between the tail's ends which are released: between 50 and 77 there
are 28 counts, between 100,000 and 400,000 cents 300,001 amounts. The step between possible values is estimated from the
column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.sorting import sorted_unique
from ..statistics.smoothing import common_step
from .likeness import MemorisationShare, share_standard_error

LARGEST_CHANCE = 0.05


@dataclass(frozen=True, eq=False)
class ReleasedTails:
    """Tail values of a variable that a release shows.

    memorisation: share of the tail values that are released, compared with chance
    ends: extremes that are released although chance would hardly do so, of "smallest" and "largest"
    records: records that have these extremes
    """

    memorisation: MemorisationShare
    ends: tuple[str, ...] = ()
    records: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _UpperTail:
    """Upper tail of a variable, or of its negative.

    name: "smallest" or "largest"
    values: values of the tail, ascending
    end: most extreme value
    chance: probability that a possible value between its ends is released
    """

    name: str
    values: Floats
    end: float
    chance: float


def measure_released_tails(
    own: Floats, releases: Iterable[Floats], size: int, bounds: tuple[float | None, float | None]
) -> ReleasedTails:
    """Measure the share of tail values that are released.

    The tails are the values of the ``size`` smallest and largest records that fewer than ``size`` records share.
    ``own`` (n,) and ``releases`` are numbers from ``cells.comparable_numbers``, NaN if missing. Values equal to
    declared ``bounds`` do not count.
    """
    missing = np.isnan(own)
    present = own[~missing] if missing.any() else own
    if not len(present):
        return ReleasedTails(MemorisationShare(0.0, 0.0, 0.0))
    step = common_step(present)
    low, high = (_tail_values(sign * present, size) for sign in (-1, 1))
    inner = [-low[0] if len(low) else -np.inf, high[0] if len(high) else np.inf]
    pooled = sorted_unique(
        np.concatenate([np.zeros(0), *(sorted_unique(one[(one <= inner[0]) | (one >= inner[1])]) for one in releases)])
    )
    sides = [
        _make_tail(name, values, float((sign * present).max()), sign * pooled, step)
        for name, sign, values in (("smallest", -1, low), ("largest", 1, high))
    ]
    # A declared bound is known without the release.
    known = [bound for bound in bounds if bound is not None]
    signed = [
        (side, values[~np.isin(values, known)])
        for side, sign in zip(sides, (-1, 1), strict=True)
        for values in [sign * side.values]
    ]
    count = sum(len(values) for _, values in signed)
    if not count:
        return ReleasedTails(MemorisationShare(0.0, 0.0, 0.0))
    released = [values[np.isin(values, pooled)] for _, values in signed]
    found = np.concatenate(released)
    baseline = sum(side.chance * len(values) for side, values in signed) / count
    ends = [
        (side.name, end)
        for (side, values), sign in zip(signed, (-1, 1), strict=True)
        for end in [sign * side.end]
        if side.chance <= LARGEST_CHANCE and end in values and end in found
    ]
    likeness = MemorisationShare(
        len(found) / count,
        baseline,
        1.0,
        2 * share_standard_error(baseline, count),
        np.flatnonzero(np.isin(own, found)),
    )
    return ReleasedTails(
        likeness, tuple(name for name, _ in ends), np.flatnonzero(np.isin(own, [end for _, end in ends]))
    )


def _tail_values(own: Floats, size: int) -> Floats:
    """Return the values of the upper tail, ascending."""
    least = np.partition(own, -min(size, len(own)))[-min(size, len(own))]
    values, counts = np.unique(own[own >= least], return_counts=True)
    return values[counts < size]


def _make_tail(name: str, tail: Floats, end: float, pooled: Floats, step: float) -> _UpperTail:
    """Return the upper tail of ascending values, with the probability that a possible value in it is released."""
    if not len(tail):
        return _UpperTail(name, tail, end, 0.0)
    there = int(((pooled >= tail[0]) & (pooled <= end)).sum())
    possible = (end - tail[0]) / step + 1 if step else np.inf
    return _UpperTail(name, tail, end, float(min(1.0, there / possible)))
