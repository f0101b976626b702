"""Released tails of a variable: whether its smallest and largest values are released unchanged.

A count may equal another count by chance, a price in cents hardly. A tail value is released by chance with a
probability that is the share of the possible values between the tail's ends which are released: between 50 and 77 there
are 28 counts, between 100,000 and 400,000 cents 300,001 amounts. The step between possible values is estimated from the
column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.long_arrays import compress_column, compute_column, long_blocks, marked_rows
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
    is_present = compute_column(len(own), np.bool_, lambda rows: ~np.isnan(own[rows]))
    present = own if is_present.all() else compress_column(own, is_present)
    if not len(present):
        return ReleasedTails(MemorisationShare(0.0, 0.0, 0.0))
    step = common_step(present)
    low, high = (_tail_values(present, sign, size) for sign in (-1, 1))
    inner = [-low[0] if len(low) else -np.inf, high[0] if len(high) else np.inf]
    pooled = sorted_unique(
        np.concatenate([np.zeros(0), *(values for one in releases for values in _values_outside(one, *inner))])
    )
    edges = np.array([(present[rows].min(), present[rows].max()) for rows in long_blocks(len(present))])
    sides = [
        _make_tail(name, values, end, sign * pooled, step)
        for name, sign, values, end in (
            ("smallest", -1, low, -float(edges.min())),
            ("largest", 1, high, float(edges.max())),
        )
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
        _records_with(own, found),
    )
    return ReleasedTails(likeness, tuple(name for name, _ in ends), _records_with(own, [end for _, end in ends]))


def _values_outside(numbers: Floats, low: float, high: float) -> Iterator[Floats]:
    """Yield the different numbers (n,) that are at an end or beyond it, a block at a time."""
    for rows in long_blocks(len(numbers)):
        own = numbers[rows]
        yield sorted_unique(own[(own <= low) | (own >= high)])


def _records_with(numbers: Floats, values: Floats | Sequence[float]) -> Integers:
    """Return the records that have one of some values, ascending."""
    return marked_rows(compute_column(len(numbers), np.bool_, lambda rows: np.isin(numbers[rows], values)))


def _tail_values(own: Floats, sign: int, size: int) -> Floats:
    """Return the values of the upper tail of the numbers (n,), or of the lower one with a sign of -1, ascending."""
    values, counts = np.zeros(0), np.zeros(0, dtype=np.int64)
    for rows in long_blocks(len(own)):
        block = sign * own[rows]
        fewest = min(size, len(block))
        more, times = np.unique(block[block >= np.partition(block, -fewest)[-fewest]], return_counts=True)
        values, place = np.unique(np.concatenate([values, more]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, times])).astype(np.int64)
        # the largest values that as many records have, or more
        first = max(0, int(np.count_nonzero(np.cumsum(counts[::-1])[::-1] >= size)) - 1)
        values, counts = values[first:], counts[first:]
    return values[counts < size]


def _make_tail(name: str, tail: Floats, end: float, pooled: Floats, step: float) -> _UpperTail:
    """Return the upper tail of ascending values, with the probability that a possible value in it is released."""
    if not len(tail):
        return _UpperTail(name, tail, end, 0.0)
    there = int(((pooled >= tail[0]) & (pooled <= end)).sum())
    possible = (end - tail[0]) / step + 1 if step else np.inf
    return _UpperTail(name, tail, end, float(min(1.0, there / possible)))
