"""How many points of a query's group lie in its box: orthogonal range counting, never quadratic.

One side of the box is a range of a sorted order. A second side is counted with a wavelet matrix (Claude, Navarro &
Ordóñez 2015, Information Systems 47, §4), here built and asked level by level for all queries at once. Every further
side is cut into dyadic intervals, the canonical nodes of a range tree (Bentley 1980, CACM 23(4)). For n points
and queries and d sides the time is O(n log n) up to d = 2 and O(n log^(d-1) n) beyond, the memory O(n) throughout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]
AnyInt = np.signedinteger[Any]

_LARGE = 2**31


@dataclass(frozen=True, eq=False)
class Side:
    """One side of the boxes, in ranks of the points' distinct values.

    ``start`` and ``stop`` (n,): query i holds the ranks ``start[i] <= rank < stop[i]``. ``rank`` (n_points,) is below
    ``distinct``; -1 lies in no box.
    """

    start: Ints
    stop: Ints
    rank: Ints
    distinct: int

    @classmethod
    def of(cls, lower: NDArray[np.float64], upper: NDArray[np.float64], points: NDArray[np.float64]) -> Side:
        """Ranks for ``lower <= point <= upper``. A missing end (NaN) makes the side empty, a missing point lies in none."""
        rank, distinct = pd.factorize(points, sort=True)
        start = _positions(distinct, lower, "left")
        stop = np.where(np.isnan(lower) | np.isnan(upper), start, _positions(distinct, upper, "right"))
        return cls(start, stop, rank.astype(np.int64), len(distinct))

    def take(self, queries: NDArray[np.intp], points: NDArray[np.intp]) -> Side:
        """The same side for some of the queries and points."""
        return Side(self.start[queries], self.stop[queries], self.rank[points], self.distinct)


def count_in_boxes(group: Ints, point_group: Ints, sides: Sequence[Side]) -> Ints:
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
        return sizes[group].astype(np.int64)
    asked = np.flatnonzero(np.logical_and.reduce([side.start < side.stop for side in sides]))
    present = np.flatnonzero(np.logical_and.reduce([side.rank >= 0 for side in sides]))
    counts = np.zeros(len(group), dtype=np.int64)
    if len(asked) and len(present):
        chosen = sorted((side.take(asked, present) for side in sides), key=lambda side: side.distinct)
        counts[asked] = _count(group[asked], point_group[present], chosen)
    return counts


def _count(group: Ints, point_group: Ints, sides: Sequence[Side]) -> Ints:
    """Counts for sides in ascending order of distinct values, so that the most selective one is sorted by."""
    if len(sides) > 2:
        return _count_dyadic(group, point_group, sides)
    ordered = sides[-1]
    point_key = point_group * (ordered.distinct + 1) + ordered.rank
    order = np.argsort(point_key)
    keys = point_key[order]
    start = _positions(keys, group * (ordered.distinct + 1) + ordered.start, "left")
    stop = _positions(keys, group * (ordered.distinct + 1) + ordered.stop, "left")
    if len(sides) == 1:
        return stop - start
    return _count_ranks_between(sides[0].rank[order], start, stop, sides[0])


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


def _count_ranks_between(ranks: Ints, start: Ints, stop: Ints, side: Side) -> Ints:
    """For each query how many of ``ranks[start:stop]`` lie in the side's range."""
    n = len(start)
    narrow = np.int32 if max(n, len(ranks)) < np.iinfo(np.int32).max else np.int64
    below = _count_ranks_below(
        ranks.astype(narrow),
        np.tile(start, 2).astype(narrow),
        np.tile(stop, 2).astype(narrow),
        np.concatenate([side.stop, side.start]).astype(narrow),
        side.distinct,
    )
    return below[:n] - below[n:]


def _count_ranks_below(
    ranks: NDArray[AnyInt], start: NDArray[AnyInt], stop: NDArray[AnyInt], limit: NDArray[AnyInt], distinct: int
) -> Ints:
    """For each query how many of ``ranks[start:stop]`` are below ``limit``, bit by bit from the highest."""
    below = np.zeros(len(start), dtype=np.int64)
    for bit in reversed(range(distinct.bit_length())):
        ones = (ranks >> bit) & 1 == 1
        zeros_before = np.zeros(len(ranks) + 1, dtype=ranks.dtype)
        np.cumsum(~ones, out=zeros_before[1:])
        zero_start, zero_stop = zeros_before[start], zeros_before[stop]
        go_right = (limit >> bit) & 1 == 1
        below += np.where(go_right, zero_stop - zero_start, 0)
        start = np.where(go_right, zeros_before[-1] + start - zero_start, zero_start)
        stop = np.where(go_right, zeros_before[-1] + stop - zero_stop, zero_stop)
        ranks = np.concatenate([ranks[~ones], ranks[ones]])
    return below


def _positions(ascending: NDArray[np.generic], needles: NDArray[np.generic], side: str) -> Ints:
    """``np.searchsorted``, with the needles asked in ascending order: in large tables that is several times faster."""
    order = np.argsort(needles)
    found = np.empty(len(needles), dtype=np.int64)
    found[order] = np.searchsorted(ascending, needles[order], side)  # type: ignore[call-overload]
    return found
