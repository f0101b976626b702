"""The ends of a variable: whether its smallest and largest values, and those of the records beside them, are released as they are.

A count may hit another count by chance, a price in cents hardly. By chance a tail value is released with a probability
that is the share of the values between the tail's ends which are released at all: between 50 and 77 there are 28 counts, between 100,000 and
400,000 cents 300,001 amounts. The steps between possible values are read off the column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.sorting import distinct
from ..statistics.smoothing import steps
from .likeness import Likeness, standard_error

BY_CHANCE = 0.05


@dataclass(frozen=True, eq=False)
class Tails:
    """How many of the tail values are released, ``likeness``, and which ends themselves are though chance would not:
    ``ends`` of "smallest" and "largest", with the records that have them.
    """

    likeness: Likeness
    ends: tuple[str, ...] = ()
    records: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _Tail:
    name: str
    values: Floats
    end: float
    chance: float


def tails(own: Floats, releases: Iterable[Floats], size: int, bounds: tuple[float | None, float | None]) -> Tails:
    """The tails of a variable: the ``size`` smallest and largest records' values that fewer than ``size`` records have.

    A value that is one of the declared ``bounds`` is known beforehand and does not count. ``own`` (n,) and ``releases`` are numbers
    as ``cells.comparable`` gives them, NaN missing.
    """
    missing = np.isnan(own)
    present = own[~missing] if missing.any() else own
    if not len(present):
        return Tails(Likeness(0.0, 0.0, 0.0))
    step = steps(present)
    low, high = (_tail_values(sign * present, size) for sign in (-1, 1))
    inner = [-low[0] if len(low) else -np.inf, high[0] if len(high) else np.inf]
    pooled = distinct(
        np.concatenate([np.zeros(0), *(distinct(one[(one <= inner[0]) | (one >= inner[1])]) for one in releases)])
    )
    sides = [
        _tail(name, values, float((sign * present).max()), sign * pooled, step)
        for name, sign, values in (("smallest", -1, low), ("largest", 1, high))
    ]
    known = [bound for bound in bounds if bound is not None]
    signed = [
        (side, values[~np.isin(values, known)])
        for side, sign in zip(sides, (-1, 1), strict=True)
        for values in [sign * side.values]
    ]
    count = sum(len(values) for _, values in signed)
    if not count:
        return Tails(Likeness(0.0, 0.0, 0.0))
    released = [values[np.isin(values, pooled)] for _, values in signed]
    found = np.concatenate(released)
    baseline = sum(side.chance * len(values) for side, values in signed) / count
    ends = [
        (side.name, end)
        for (side, values), sign in zip(signed, (-1, 1), strict=True)
        for end in [sign * side.end]
        if side.chance <= BY_CHANCE and end in values and end in found
    ]
    likeness = Likeness(
        len(found) / count, baseline, 1.0, 2 * standard_error(baseline, count), np.flatnonzero(np.isin(own, found))
    )
    return Tails(likeness, tuple(name for name, _ in ends), np.flatnonzero(np.isin(own, [end for _, end in ends])))


def _tail_values(own: Floats, size: int) -> Floats:
    """The values of the upper tail, ascending."""
    least = np.partition(own, -min(size, len(own)))[-min(size, len(own))]
    values, counts = np.unique(own[own >= least], return_counts=True)
    return values[counts < size]


def _tail(name: str, tail: Floats, end: float, pooled: Floats, step: float) -> _Tail:
    """The upper tail, whose values are ascending; its ``chance`` that a possible value between its ends is released."""
    if not len(tail):
        return _Tail(name, tail, end, 0.0)
    there = int(((pooled >= tail[0]) & (pooled <= end)).sum())
    possible = (end - tail[0]) / step + 1 if step else np.inf
    return _Tail(name, tail, end, float(min(1.0, there / possible)))
