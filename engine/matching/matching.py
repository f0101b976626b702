"""The matching join: which released records an intruder who knows a confidential record cannot tell from it.

Confidential record i matches released record j when every known variable agrees, exactly or within its window
(Reiter & Mitra 2009; Guo & Hu §4.2). Record i's own released record is row i.

Its summaries are what candidates and hits say about identification and attribute disclosure.

How many points of its own group lie in the box of each query.

That is counted in no quadratic time. One side of the box is a range of a sorted order. A second side is counted with a wavelet matrix (Claude, Navarro &
Ordóñez 2015, Information Systems 47, §4), here built and asked level by level for all queries at once. Every further
side is cut into dyadic intervals, the canonical nodes of a range tree (Bentley 1980, CACM 23(4)). For n points
and queries and d sides the time is O(n log n) up to d = 2 and O(n log^(d-1) n) beyond, the memory O(n) throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.blocks import row_blocks
from ..data.sorting import FEW_TO_SEARCH, sorted_search
from ..errors import NotComputable
from ..partition.grouping import Values, number_groups

Ints = NDArray[np.int64]
Counts = NDArray[np.signedinteger[Any]]

_LARGE = 2**31

CELLS_PER_KEY = 4
"""How many cells may be counted for each key, rather than keys sorted and searched in."""

MOST_CELLS = 2**62
"""Keys below it are whole numbers of 64 bits, and so are their sums with another."""
AT_ONCE = 1 << 20
"""Records of both tables that are counted together. Larger tables are counted in parts of whole groups; a group that is larger still is one part."""


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
    def of(cls, lower: NDArray[np.float64], upper: NDArray[np.float64], points: NDArray[np.float64] | Ranked) -> Side:
        """Ranks for ``lower <= point <= upper``. A missing end (NaN) makes the side empty, a missing point lies in none."""
        distinct, rank = points if isinstance(points, Ranked) else Ranked.of(points)
        start, stop = np.empty((2, len(lower)), dtype=_narrow(len(distinct)))
        for rows in row_blocks(len(lower)):
            low, high = lower[rows], upper[rows]
            order = (
                np.argsort(low) if len(distinct) > FEW_TO_SEARCH else None
            )  # upper ends ascend nearly as lower ones do
            start[rows] = sorted_search(distinct, low, "left", order)
            if upper is lower:
                stop[rows] = start[rows] + _holds(distinct, start[rows], low)
            else:
                stop[rows] = np.where(
                    np.isnan(low) | np.isnan(high), start[rows], sorted_search(distinct, high, "right", order)
                )
        return cls(start, stop, rank, len(distinct))

    @property
    def lacks(self) -> bool:
        return bool(self.rank.min(initial=0) < 0)

    @property
    def single(self) -> bool:
        """Whether no query holds more than one value, which is then as good as a key of its group."""
        return bool((self.stop - self.start).max(initial=0) <= 1)

    def take(self, queries: NDArray[np.intp], points: NDArray[np.intp]) -> Side:
        """The same side for some of the queries and points."""
        return Side(self.start[queries], self.stop[queries], self.rank[points], self.distinct)


def _holds(ascending: NDArray[np.float64], place: Counts, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a value stands at its place, (q,), which may be beyond the end."""
    if not len(ascending):
        return np.zeros(len(place), dtype=np.bool_)
    return np.asarray(ascending[np.minimum(place, len(ascending) - 1)] == values)


class Ranked(NamedTuple):
    """The ``distinct`` points, ascending, and the ``rank`` of each point among them, (n_points,): -1 of a missing one, which is not among them."""

    distinct: NDArray[np.float64]
    rank: Counts

    @classmethod
    def of(cls, points: NDArray[np.float64]) -> Ranked:
        order = np.argsort(points)
        ordered = points[order][: len(points) - np.count_nonzero(np.isnan(points))]
        new = np.ones(len(ordered), dtype=np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        rank = np.full(len(points), -1, dtype=_narrow(len(points)))
        rank[order[: len(ordered)]] = np.cumsum(new, dtype=rank.dtype) - 1
        return cls(ordered[new], rank)


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
    return Buckets.of(np.sort(keys) if order is None else keys[order], cells).below


@dataclass(frozen=True, eq=False)
class Buckets:
    """Keys (k,) in ascending order, below ``2^shift`` times as many as there are buckets; bucket b holds those from ``first[b]`` on.

    A number is looked for in its bucket alone, by halves, for all numbers at once: the needles need no order, as a search in a large
    table would.
    """

    keys: Ints
    shift: int
    first: Counts

    @classmethod
    def of(cls, keys: Ints, cells: int) -> Buckets:
        """Of ascending keys below ``cells``: at most two buckets a key."""
        shift = max(0, cells.bit_length() - max(1, len(keys)).bit_length())
        buckets = (cells >> shift) + 1
        first = np.zeros(buckets + 1, dtype=_narrow(len(keys)))
        np.cumsum(np.bincount(keys >> shift, minlength=buckets), out=first[1:])
        return cls(keys, shift, first)

    def below(self, numbers: Ints) -> Counts:
        """How many keys are below each number, (q,), which is at least 0 and at most the number of cells."""
        bucket = numbers >> self.shift
        low, high = self.first[bucket], self.first[bucket + 1]
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low[open_] + high[open_]) >> 1
            above = self.keys[middle] < numbers[open_]
            low[open_] = np.where(above, middle + 1, low[open_])
            high[open_] = np.where(above, high[open_], middle)
            open_ = open_[low[open_] < high[open_]]
        return np.asarray(low)


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


@dataclass(frozen=True, eq=False)
class Exact:
    """A known variable that must be equal, missing equal to missing: ``confidential`` (n,), ``released`` (n_r,)."""

    confidential: Values
    released: Values

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n_r)."""
        return len(self.confidential), len(self.released)

    def codes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Equal codes for equal values, from 0: (n,) and (n_r,)."""
        (confidential, released), _ = number_groups([(self.confidential, self.released)], self.shape)
        return confidential, released


@dataclass(frozen=True, eq=False)
class Within:
    """A known variable that must lie in a window: ``lower <= released <= upper``, both (n,), ``released`` (n_r,).

    A missing value (NaN) on either side matches nothing; where it should match a missing one, use ``among_missing``.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    released: NDArray[np.float64]
    ranked: Ranked | None = None
    """The released values in ranks, where other windows of the same release have found them."""

    @classmethod
    def among_missing(
        cls,
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        missing: NDArray[np.bool_],
        released: NDArray[np.float64],
    ) -> Within:
        """Windows of finite values, and of records whose own value is ``missing`` (n,): they match the missing and no other.

        Missing stands at infinity, beyond every finite window; a window up to infinity holds it too.
        """
        there = np.isnan(released)
        if not missing.any() and not there.any():
            return cls(lower, upper, released)
        lower, upper = np.where(missing, np.inf, lower), np.where(missing, np.inf, upper)
        return cls(lower, upper, np.where(there, np.inf, released))

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n_r)."""
        return len(self.lower), len(self.released)

    @cached_property
    def side(self) -> Side:
        """The window as a side of the boxes that are counted in; found once, however often it is matched."""
        return Side.of(self.lower, self.upper, self.released if self.ranked is None else self.ranked)


class Matches(NamedTuple):
    """``candidates`` (n,): c_i, the released records that match i. ``hit`` (n,): T_i, whether i's own is among them."""

    candidates: NDArray[np.int64]
    hit: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Matcher:
    """Records grouped by their exact keys, to be matched again and again with different windows.

    ``group`` (n,) and ``released_group`` (n_r,) hold equal codes below ``groups`` for equal keys.
    """

    group: NDArray[np.int64]
    released_group: NDArray[np.int64]
    groups: int

    @classmethod
    def of(cls, exact: Sequence[Exact], shape: tuple[int, int]) -> Matcher:
        """Group n confidential and n_r released records, ``shape = (n, n_r)``, by all the keys together."""
        return cls(np.zeros(shape[0], dtype=np.int64), np.zeros(shape[1], dtype=np.int64), 1).refined(*exact)

    def refined(self, *keys: Exact) -> Matcher:
        """The groups split by more keys; the earlier keys are not read again."""
        if not keys:
            return self
        for key in keys:
            self._check(key.shape)
        so_far = [] if self.groups == 1 else [(self.group, self.released_group)]
        columns: list[tuple[Values, Values]] = [*so_far, *((key.confidential, key.released) for key in keys)]
        (confidential, released), groups = number_groups(columns, keys[0].shape)
        return Matcher(confidential, released, groups)

    def match(self, within: Sequence[Within] = (), own: Ints | None = None) -> Matches:
        """Candidates and hits of every confidential record. O(N log N) up to two windows, one more log for each beyond.

        ``own`` (n,) is the released record that is each one's own, -1 for none; left out, record i's is row i.
        """
        return Held(self, ()).match(within, own)

    def parts(self) -> Iterator[Part]:
        """The records of both tables in parts of whole groups that are counted together; one part where there are few."""
        if sum(map(len, (self.group, self.released_group))) <= AT_ONCE:
            yield Part(slice(None), slice(None), self.group, self.released_group)
            return
        ranges = list(self._parts())
        part = np.repeat(np.arange(len(ranges), dtype=np.min_scalar_type(len(ranges))), [b - a for a, b in ranges])
        both = [_by_part(part[of], len(ranges)) for of in (self.group, self.released_group)]
        for (first, _), ours, theirs in zip(ranges, *both, strict=True):
            yield Part(ours, theirs, self.group[ours] - first, self.released_group[theirs] - first)

    def _parts(self) -> Iterator[tuple[int, int]]:
        """Consecutive groups, ``first`` up to but not ``last``, of ``AT_ONCE`` records of both tables together or one group."""
        sizes = sum(np.bincount(of, minlength=self.groups) for of in (self.group, self.released_group))
        ends = np.cumsum(sizes)
        first = 0
        while first < self.groups:
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + AT_ONCE, "right")))
            yield first, last
            first = last

    def members(self, within: Sequence[Within], records: Sequence[int]) -> list[NDArray[np.intp]]:
        """The released records that match each of the chosen confidential ones, ascending."""
        order = np.argsort(self.released_group, kind="stable")
        edges = np.searchsorted(self.released_group[order], np.arange(self.groups + 1))
        found = []
        for i in records:
            rows = order[edges[self.group[i]] : edges[self.group[i] + 1]]
            for window in within:
                values = window.released[rows]
                rows = rows[(window.lower[i] <= values) & (values <= window.upper[i])]
            found.append(rows)
        return found

    def _hits(self, within: Sequence[Within], own: Ints | None) -> NDArray[np.bool_]:
        hit = np.zeros(len(self.group), dtype=np.bool_)
        rows: slice | Ints
        theirs: slice | Ints
        if own is None:
            rows = theirs = slice(min(len(self.group), len(self.released_group)))
        else:
            rows = np.flatnonzero(own >= 0)
            theirs = own[rows]
        agrees = self.group[rows] == self.released_group[theirs]
        for window in within:
            values = window.released[theirs]
            agrees &= (window.lower[rows] <= values) & (values <= window.upper[rows])
        hit[rows] = agrees
        return hit

    def _check(self, shape: tuple[int, int]) -> None:
        expected = len(self.group), len(self.released_group)
        if shape != expected:
            raise ValueError(f"{shape} confidential and released records do not fit {expected}")


def _by_part(part: NDArray[Any], parts: int) -> list[NDArray[np.intp]]:
    """The rows of each part, ascending, by the part of each row, (n,)."""
    order = np.argsort(part, kind="stable")
    return np.split(order, np.cumsum(np.bincount(part, minlength=parts))[:-1])


class Part(NamedTuple):
    """Some whole groups: the rows of their confidential records and of their released ones, and their groups (n,) and (n_r,), from 0."""

    ours: slice | NDArray[np.intp]
    theirs: slice | NDArray[np.intp]
    group: Ints
    released_group: Ints

    @property
    def groups(self) -> int:
        """A number above every group's."""
        return int(max(self.group.max(initial=0), self.released_group.max(initial=0))) + 1

    def side(self, window: Within) -> Side:
        """A window as a side of the boxes of the part."""
        if isinstance(self.ours, slice):
            return window.side
        if window.ranked is not None and not isinstance(self.theirs, slice):
            return window.side.take(self.ours, self.theirs)
        return Side.of(window.lower[self.ours], window.upper[self.ours], window.released[self.theirs])


@dataclass(frozen=True, eq=False)
class Held:
    """A matcher with ``windows`` that stay, to be matched with others beside them again and again: what they say is found once.

    That takes some 30 bytes a record, and 16 without windows.
    """

    matcher: Matcher
    windows: Sequence[Within]

    def match(self, more: Sequence[Within] = (), own: Ints | None = None) -> Matches:
        """Candidates and hits of every confidential record by all windows, as ``Matcher.match`` has them."""
        within = [*self.windows, *more]
        for window in within:
            self.matcher._check(window.shape)
        return Matches(self.candidates(more), self.matcher._hits(within, own))

    def hits(self, more: Sequence[Within] = ()) -> NDArray[np.bool_]:
        """Return whether each record's own is among its matches by all windows, (n,), record i's being row i."""
        return self.matcher._hits([*self.windows, *more], None)

    def candidates(self, more: Sequence[Within] = ()) -> Ints:
        """Return the candidates of every confidential record by all windows, (n,), without asking for its own."""
        matcher = self.matcher
        if not self.windows and not more:
            return np.asarray(count_in_boxes(matcher.group, matcher.released_group, []), dtype=np.int64)
        candidates = np.zeros(len(matcher.group), dtype=np.int64)
        for part in self._kept:
            candidates[part.of.ours] = part.count(more)
        return candidates

    @cached_property
    def _kept(self) -> list[HeldPart]:
        return [HeldPart(part, [part.side(window) for window in self.windows]) for part in self.matcher.parts()]


@dataclass(frozen=True, eq=False)
class HeldPart:
    """A part, and the windows that stay as sides of its boxes."""

    of: Part
    sides: Sequence[Side] = ()
    _by_value: dict[str, Any] = field(default_factory=dict)

    def count(self, more: Sequence[Within]) -> Counts:
        """The points in the boxes of the part, with more windows beside those that stay, (n,)."""
        others = [self.of.side(window) for window in more]
        if len(self.sides) == len(others) == 1 and not (self.sides[0].lacks or others[0].lacks):
            if not others[0].single:
                return self._ordered.count(others[0])
            cells = self.of.groups * others[0].distinct * (self.sides[0].distinct + 1)
            if more[0].ranked is not None and cells < MOST_CELLS:
                return self._count_single(more[0].ranked, others[0])
        return count_in_boxes(self.of.group, self.of.released_group, [*self.sides, *others])

    def _count_single(self, ranked: Ranked, other: Side) -> Counts:
        """Counts with another side that holds at most one value: it is as good as a key of the group. What the points say is found once."""
        staying, group = self.sides[0], self.of.group
        width = staying.distinct + 1
        if self._by_value.get("ranked") is not ranked:
            keys = (self.of.released_group * other.distinct + other.rank) * width + staying.rank
            cells = self.of.groups * other.distinct * width
            self._by_value.update(ranked=ranked, below=_below(keys, None, cells))
        below: Callable[[Ints], Ints] = self._by_value["below"]
        counts = np.zeros(len(group), dtype=np.int64)
        asked = np.flatnonzero((other.start < other.stop) & (staying.start < staying.stop))
        cell = (group[asked] * other.distinct + other.start[asked]) * width
        counts[asked] = below(cell + staying.stop[asked]) - below(cell + staying.start[asked])
        return counts

    @cached_property
    def _ordered(self) -> Ordered:
        return Ordered.of(self.of.group, self.of.released_group, self.sides[0])


def match(exact: Sequence[Exact], within: Sequence[Within] = ()) -> Matches:
    """Candidates and hits of every confidential record, for keys that must agree and windows that must hold.

    Raises:
        ValueError: when there is no variable to match on, or when their lengths differ.
    """
    known: list[Exact | Within] = [*exact, *within]
    if not known:
        raise ValueError("matching needs at least one known variable")
    return Matcher.of(exact, known[0].shape).match(within)


def expected_match_risk(matches: Matches) -> float:
    """Sum of T_i / c_i: the records that an intruder finds on average by picking one candidate at random (Reiter & Mitra 2009)."""
    return float(np.sum(1.0 / matches.candidates[matches.hit]))


def true_match_rate(matches: Matches) -> float:
    """Share of the n targets whose only candidate is their own record (Reiter & Mitra 2009).

    Raises:
        NotComputable: when there are no targets.
    """
    if not len(matches.candidates):
        raise NotComputable("there are no records")
    return float(np.mean((matches.candidates == 1) & matches.hit))


def false_match_rate(matches: Matches) -> float:
    """Share of the unique matches that are another record (Reiter & Mitra 2009).

    Raises:
        NotComputable: when no record has a unique match.
    """
    unique = matches.candidates == 1
    if not unique.any():
        raise NotComputable("no record has a unique match")
    return float(np.mean(~matches.hit[unique]))


def unique_matches(matches: Matches) -> float:
    """How many targets have exactly one candidate, right or wrong (s of Reiter & Mitra 2009, u of Guo & Hu)."""
    return float(np.count_nonzero(matches.candidates == 1))


IDENTIFICATION_SUMMARIES: Mapping[str, Callable[[Matches], float]] = MappingProxyType(
    {
        "expected_match_risk": expected_match_risk,
        "true_match_rate": true_match_rate,
        "false_match_rate": false_match_rate,
        "unique_matches": unique_matches,
    }
)


def attribute_probabilities(known: Matches, similar: Matches, *, exclude_self: bool = False) -> NDArray[np.float64]:
    """Share p_i of the records matched on the known variables whose sensitive values are similar too (Guo & Hu §4.1).

    Args:
        known: the matched set M_i of every record.
        similar: the part of it that lies within the radii of the sensitive variables.
        exclude_self: leave record i itself out of its own set unless the set has no other member: what the paper prints
            of the confidential data. A release is never scored so.

    Returns:
        Shape (n,); 0 where the matched set is empty.
    """
    left_out = exclude_self & known.hit & (known.candidates > 1)
    members = known.candidates - left_out
    alike = similar.candidates - (left_out & similar.hit)
    return alike / np.maximum(members, 1)  # nothing is alike where the set is empty
