"""Order statistics and counts of values that come in blocks, in memory for a few of them.

A first pass keeps cuts of each block, values at equally spaced ranks. They bound the rank of any value, so that a second
pass needs only the values between two bounds: around a quantile, or in one of several ranges that together hold them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.row_buckets import stack_columns

CUTS = 1024
"""Intervals between the cuts of a block."""
ValueCounts = tuple[Floats, Integers]
"""Distinct values, ascending, (d,), and the number of records with each, (d,)."""


def cut_ranks(records: int) -> Integers:
    """Return the ranks, from 0, whose values are the cuts of so many values, at most ``CUTS`` + 1."""
    return np.unique(np.linspace(0, records - 1, CUTS + 1).astype(np.int64)) if records else np.zeros(0, dtype=np.int64)


def cut_values(values: Floats) -> Floats:
    """Return the cuts of the values (n,) of a block: those at ``cut_ranks``, ascending."""
    return np.asarray(np.sort(values)[cut_ranks(len(values))])


def count_values(values: Floats) -> ValueCounts:
    """Return the distinct values of a block (n,) with their counts."""
    distinct, counts = np.unique(values, return_counts=True)
    return distinct, counts


def cuts_of_counts(counts: ValueCounts) -> Floats:
    """Return the cuts of the values of a block, which are counted."""
    distinct, count = counts
    upto = np.cumsum(count)
    return distinct[np.searchsorted(upto, cut_ranks(int(upto[-1]) if len(upto) else 0), side="right")]


def merge_counts(parts: Sequence[ValueCounts]) -> ValueCounts:
    """Return the counts of the values of several blocks, or their weights."""
    if len(parts) == 1:
        return parts[0]
    distinct, place = np.unique(np.concatenate([values for values, _ in parts]), return_inverse=True)
    each = np.concatenate([count for _, count in parts])
    return distinct, np.bincount(place, each, len(distinct)).astype(each.dtype)


def bounds_of_rank(cuts: Sequence[Floats], records: Sequence[int], rank: int) -> tuple[float, float]:
    """Return two values between which the values of this rank and the next, from 0, of all blocks lie.

    cuts: cuts of each block
    records: number of values of each block
    """
    points = np.unique(np.concatenate(cuts))
    # At least so many values are at or below a point, and at most so many are below it.
    at_or_below, below = np.zeros(len(points), dtype=np.int64), np.zeros(len(points), dtype=np.int64)
    for own, count in zip(cuts, records, strict=True):
        if not count:
            continue
        ranks = cut_ranks(count)
        at_or_below += np.append(0, ranks + 1)[np.searchsorted(own, points, side="right")]
        below += np.append(ranks, count)[np.searchsorted(own, points, side="left")]
    low = int(np.searchsorted(below, rank, side="right")) - 1
    high = int(np.searchsorted(at_or_below, rank + 2, side="left"))
    return float(points[max(low, 0)]), float(points[min(high, len(points) - 1)])


ValuesBetween = tuple[int, Floats, Integers]
"""How many values of a block are below two others, and those that lie between these, with their counts."""


def values_between(values: Floats, between: Sequence[tuple[float, float]]) -> list[ValuesBetween]:
    """Return what lies between each two values, both included, among the values (n,) of a block."""
    ordered = np.sort(values)
    ends = [(np.searchsorted(ordered, low), np.searchsorted(ordered, high, "right")) for low, high in between]
    return [(int(first), *count_values(ordered[first:end])) for first, end in ends]


def values_at_ranks(parts: Sequence[ValuesBetween], ranks: Integers | int) -> Floats:
    """Return the values of some ranks, from 0, of all blocks, (k,), given what lies between two values that bound them;
    the last for ranks beyond.
    """
    below = sum(part[0] for part in parts)
    distinct, counts = merge_counts([part[1:] for part in parts])
    places = np.searchsorted(np.cumsum(counts), np.asarray(ranks) - below, side="right")
    return distinct[np.minimum(places, len(distinct) - 1)]


def range_edges(cuts: Sequence[Floats], records: Sequence[int], most: int) -> Floats:
    """Return ascending edges of ranges with about ``most`` values or fewer each: range i is [edge i, edge i + 1).

    The first is -inf and the last inf. Only a range that holds one value often holds many more.
    """
    points = np.concatenate(cuts)
    weights = np.repeat(
        [count / max(1, len(own)) for own, count in zip(cuts, records, strict=True)], [len(own) for own in cuts]
    )
    order = np.argsort(points, kind="stable")
    total = np.cumsum(weights[order])
    pieces = max(1, int(np.ceil(total[-1] / most)))
    at = np.searchsorted(total, np.arange(1, pieces) * total[-1] / pieces)
    return np.concatenate([[-np.inf], np.unique(points[order][at]), [np.inf]])


@dataclass(frozen=True, eq=False)
class ValueRanges:
    """Ranges of the values of several variables, numbered one variable after another.

    names: variables
    edges: edges of the ranges of each, as ``range_edges`` returns them
    """

    names: Sequence[str]
    edges: Sequence[Sequence[float]]

    @property
    def starts(self) -> list[int]:
        """Return the number of the first range of each variable, and of all ranges."""
        return [0, *np.cumsum([len(own) - 1 for own in self.edges]).tolist()]

    def to_rows(self, data: Microdata) -> Floats:
        """Return the values as rows of buckets, (n, 2): the range and the value of each."""
        columns = [data.present_numbers(name) for name in self.names]
        numbered = zip(columns, self.edges, self.starts, strict=False)
        ranges = [np.searchsorted(own[1:-1], some, side="right") + start for some, own, start in numbered]
        return stack_columns(np.concatenate(ranges), np.concatenate(columns))


def quantile_of_neighbours(lower: float, upper: float, records: int, q: float) -> float:
    """Return the quantile q that ``numpy.quantile`` has of so many values, given those of ``rank_of_quantile`` and the
    next rank.
    """
    place = (records - 1) * q
    return float(np.quantile(np.array([lower, upper]), place - np.floor(place)))


def rank_of_quantile(records: int, q: float) -> int:
    """Return the rank, from 0, of the value at or below the quantile q of so many values."""
    return int(np.floor((records - 1) * q))
