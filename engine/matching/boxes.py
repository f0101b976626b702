"""How many points of its own group lie in the box of each query.

That is counted in no quadratic time. One side of the box is a range of a sorted order. A second side is counted with a wavelet matrix (Claude, Navarro &
Ordóñez 2015, Information Systems 47, §4), here built and asked level by level for all queries at once. Every further
side is cut into dyadic intervals, the canonical nodes of a range tree (Bentley 1980, CACM 23(4)). For n points
and queries and d sides the time is O(n log n) up to d = 2 and O(n log^(d-1) n) beyond, the memory O(n) throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.blocks import row_blocks

Ints = NDArray[np.int64]
Counts = NDArray[np.signedinteger[Any]]

_LARGE = 2**31

CELLS_PER_KEY = 4
"""How many cells may be counted for each key, rather than keys sorted and searched in."""

FEW = 4096
"""Numbers among which it is quicker to search as they come."""


@dataclass(frozen=True, eq=False)
class Side:
    """One side of the boxes, in ranks of the points' distinct values.

    ``start`` and ``stop`` (n,): query i holds the ranks ``start[i] <= rank < stop[i]``. ``rank`` (n_points,) is below
    ``distinct``; -1 lies in no box.
    """

    start: Counts
    stop: Counts
    rank: Counts
    distinct: int

    @classmethod
    def of(cls, lower: NDArray[np.float64], upper: NDArray[np.float64], points: NDArray[np.float64]) -> Side:
        """Ranks for ``lower <= point <= upper``. A missing end (NaN) makes the side empty, a missing point lies in none."""
        distinct, rank = _ranks(points)
        start, stop = np.empty((2, len(lower)), dtype=_narrow(len(distinct)))
        for rows in row_blocks(len(lower)):
            low, high = lower[rows], upper[rows]
            start[rows] = _positions(distinct, low, "left")
            stop[rows] = np.where(np.isnan(low) | np.isnan(high), start[rows], _positions(distinct, high, "right"))
        return cls(start, stop, rank, len(distinct))

    @property
    def lacks(self) -> bool:
        """Whether a point is missing."""
        return bool(self.rank.min(initial=0) < 0)

    @property
    def single(self) -> bool:
        """Whether no query holds more than one value, which is then as good as a key of its group."""
        return bool((self.stop - self.start).max(initial=0) <= 1)

    def take(self, queries: NDArray[np.intp], points: NDArray[np.intp]) -> Side:
        """The same side for some of the queries and points."""
        return Side(self.start[queries], self.stop[queries], self.rank[points], self.distinct)


def _ranks(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], Counts]:
    """The distinct points, ascending, and the rank of each point among them, (n_points,): -1 of a missing one, which is not among them."""
    order = np.argsort(points)
    ordered = points[order][: len(points) - np.count_nonzero(np.isnan(points))]
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    rank = np.full(len(points), -1, dtype=_narrow(len(points)))
    rank[order[: len(ordered)]] = np.cumsum(new, dtype=rank.dtype) - 1
    return ordered[new], rank


def _narrow(largest: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if largest < np.iinfo(np.int32).max else np.int64


def count_in_boxes(group: Ints, point_group: Ints, sides: Sequence[Side]) -> Counts:
    """For every query the number of points of its own group inside its box.

    Args:
        group: shape (n,), at least 0.
        point_group: shape (n_points,).
        sides: the sides of the boxes; without any, whole groups are counted.

    Returns:
        Shape (n,).
    """
    if not sides:
        sizes = np.bincount(point_group, minlength=int(group.max(initial=-1)) + 1)
        return np.asarray(sizes[group], dtype=np.int64)
    asked = np.flatnonzero(np.logical_and.reduce([side.start < side.stop for side in sides]))
    present = np.flatnonzero(np.logical_and.reduce([side.rank >= 0 for side in sides]))
    counts = np.zeros(len(group), dtype=np.int64)
    if len(asked) and len(present):
        chosen = sorted((side.take(asked, present) for side in sides), key=lambda side: side.distinct)
        counts[asked] = _count(group[asked], point_group[present], chosen)
    return counts


def _count(group: Ints, point_group: Ints, sides: Sequence[Side]) -> Counts:
    """Counts for sides in ascending order of distinct values, so that the most selective one is sorted by."""
    if len(sides) > 2 or (len(sides) == 2 and sides[0].single):
        return _count_dyadic(group, point_group, sides)
    if len(sides) == 1:
        found = Ordered.of(group, point_group, sides[0], with_order=False)
        return np.asarray(found.stop - found.start)
    return Ordered.of(group, point_group, sides[1]).count(sides[0])


@dataclass(frozen=True, eq=False)
class Ordered:
    """The points in the ``order`` (n_points,) of their group and rank on a side, and from where to where each query holds them, (n,) both."""

    order: NDArray[np.intp]
    start: Counts
    stop: Counts

    @classmethod
    def of(cls, group: Ints, point_group: Ints, side: Side, *, with_order: bool = True) -> Ordered:
        """The points of the queries' groups by a side on which no point is missing; without the order where nobody asks for it."""
        width = side.distinct + 1
        keys = point_group * width + side.rank
        order = np.argsort(keys) if with_order else None
        below = _below(keys, order, width * (int(max(group.max(initial=0), point_group.max(initial=0))) + 1))
        start, stop = np.empty((2, len(group)), dtype=_narrow(len(keys)))
        for rows in row_blocks(len(group)):
            own = group[rows] * width
            start[rows] = below(own + side.start[rows])
            stop[rows] = below(own + np.maximum(side.start[rows], side.stop[rows]))
        return cls(np.empty(0, dtype=np.intp) if order is None else order, start, stop)

    @cached_property
    def _queries(self) -> tuple[NDArray[np.intp], Counts, Counts]:
        """The queries in the order of what they hold, so that neighbours are looked at together."""
        order = np.argsort(self.start)
        return order, self.start[order], self.stop[order]

    def count(self, side: Side) -> Counts:
        """The points that each query holds and that lie in another side of its box, on which no point is missing: (n,)."""
        queries, start, stop = self._queries
        found = np.empty_like(self.start)
        limits = side.start[queries], side.stop[queries]
        found[queries] = _count_ranks_between(side.rank[self.order], start, stop, limits, side.distinct)
        return found


def _below(keys: Ints, order: NDArray[np.intp] | None, cells: int) -> Callable[[Ints], Ints]:
    """How many keys, all of them below ``cells``, are below given numbers; ``order`` sorts the keys, if it is known."""
    if cells <= CELLS_PER_KEY * len(keys):
        counts = np.zeros(cells + 1, dtype=_narrow(len(keys)))
        np.cumsum(np.bincount(keys, minlength=cells), out=counts[1:])
        return counts.__getitem__
    ascending = np.sort(keys) if order is None else keys[order]
    return lambda numbers: _positions(ascending, numbers, "left")


def _count_dyadic(group: Ints, point_group: Ints, sides: Sequence[Side]) -> Ints:
    """Counts with the narrowest side cut into dyadic intervals: at each size, the interval becomes part of the group."""
    cut = min(sides, key=lambda side: int((side.stop - side.start).sum()))
    others = [side for side in sides if side is not cut]
    counts = np.zeros(len(group), dtype=np.int64)
    for level, query, node in _dyadic(cut.start, cut.stop):
        points = _points_in(node, cut.rank >> level)
        nodes = (cut.distinct >> level) + 1
        parts = _compact(group[query] * nodes + node, point_group[points] * nodes + (cut.rank[points] >> level))
        found = _count(*parts, [side.take(query, points) for side in others])
        counts += np.bincount(query, weights=found, minlength=len(group)).astype(np.int64)
    return counts


def _points_in(node: Ints, point_node: Ints) -> NDArray[np.intp]:
    """The points that lie in some node asked for."""
    asked = np.zeros(int(max(node.max(initial=0), point_node.max(initial=0))) + 1, dtype=np.bool_)
    asked[node] = True
    return np.flatnonzero(asked[point_node])


def _compact(group: Ints, point_group: Ints) -> tuple[Ints, Ints]:
    """The same groups under smaller numbers, once products of them could pass 64 bits."""
    if max(group.max(initial=0), point_group.max(initial=0)) < _LARGE:
        return group, point_group
    codes, _ = pd.factorize(np.concatenate([group, point_group]))
    return codes[: len(group)].astype(np.int64), codes[len(group) :].astype(np.int64)


def _dyadic(start: Ints, stop: Ints) -> Iterator[tuple[int, NDArray[np.intp], Ints]]:
    """Ranges cut into intervals ``[node 2^level, (node + 1) 2^level)``: (level, query, node), those with any, by level."""
    query = np.arange(len(start))
    level = 0
    while len(query):
        left, right = start & 1 == 1, stop & 1 == 1
        if left.any() or right.any():
            yield level, np.concatenate([query[left], query[right]]), np.concatenate([start[left], stop[right] - 1])
        start, stop = (start + 1) >> 1, stop >> 1
        rest = start < stop
        query, start, stop = query[rest], start[rest], stop[rest]
        level += 1


def _count_ranks_between(
    ranks: Counts, start: Counts, stop: Counts, limits: tuple[Counts, Counts], distinct: int
) -> Counts:
    """For each query how many of ``ranks[start:stop]``, below ``distinct``, lie between its limits: those below the upper one, less those below the lower one.

    Bit by bit from the highest; the queries of a block at a time, the ranges of both ends in place.
    """
    found = np.zeros(len(start), dtype=start.dtype)
    lower, upper = limits
    ends = [(1, start.copy(), stop.copy(), np.maximum(lower, upper)), (-1, start.copy(), stop.copy(), lower)]
    for bit in reversed(range(distinct.bit_length())):
        ones = (ranks >> bit) & 1 == 1
        zeros_before = np.zeros(len(ranks) + 1, dtype=start.dtype)
        np.cumsum(~ones, out=zeros_before[1:])
        for sign, first, last, limit in ends:
            for rows in row_blocks(len(found)):
                zero_first, zero_last = zeros_before[first[rows]], zeros_before[last[rows]]
                go_right = (limit[rows] >> bit) & 1 == 1
                found[rows] += sign * np.where(go_right, zero_last - zero_first, 0)
                first[rows] = np.where(go_right, zeros_before[-1] + first[rows] - zero_first, zero_first)
                last[rows] = np.where(go_right, zeros_before[-1] + last[rows] - zero_last, zero_last)
        ranks = np.concatenate([ranks[~ones], ranks[ones]])
    return found


def _positions(ascending: NDArray[np.generic], needles: NDArray[np.generic], side: str) -> Ints:
    """``np.searchsorted``, with the needles asked in ascending order: in large tables that is several times faster."""
    if len(ascending) <= FEW:
        return np.searchsorted(ascending, needles, side)  # type: ignore[call-overload, no-any-return]
    order = np.argsort(needles)
    found = np.empty(len(needles), dtype=np.int64)
    found[order] = np.searchsorted(ascending, needles[order], side)  # type: ignore[call-overload]
    return found
