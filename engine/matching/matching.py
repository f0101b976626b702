"""Matching of released and confidential records: candidates for each confidential record.

Confidential record i matches released record j if every known variable agrees, exactly or within its window (Reiter &
Mitra 2009; Guo & Hu §4.2). The own released record of record i is row i. Summaries of candidates and hits measure
identification and attribute disclosure.

Candidates are the points of a query's own group that lie in its box. They are counted without comparing all pairs: one
side of the box is a range of a sorted order; a second side is counted with a wavelet matrix (Claude, Navarro & Ordóñez
2015, Information Systems 47, §4); every further side is cut into dyadic intervals, the canonical nodes of a range tree
(Bentley 1980, CACM 23(4)). For n points and queries and d sides the time is O(n log n) up to d = 2 and O(n log^(d-1) n)
beyond, the memory O(n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..data.blocks import blocks_of_sizes, row_blocks
from ..data.rows import Values, distinct_codes, number_groups
from ..data.sorting import FEW_TO_SEARCH, sorted_search
from ..errors import NotComputable

Counts = NDArray[np.signedinteger[Any]]

_LARGE = 2**31

CELLS_PER_KEY = 4
"""Number of cells per key up to which keys are counted in a table; beyond it they are sorted and searched."""

MAX_CELLS = 2**62
"""Bound of keys whose sums fit into 64 bits."""
AT_ONCE = 1 << 20
"""Number of records of both tables counted together; larger tables are divided into batches of whole groups."""


@dataclass(frozen=True, eq=False)
class BoxEdges:
    """One side of the boxes of n queries, in ranks of the points' distinct values.

    start, stop: query i covers the ranks ``start[i] <= rank < stop[i]``, (n,) each
    rank: rank of each point, -1 if it lies in no box, (n_points,)
    distinct_count: number of distinct values
    """

    start: Counts
    stop: Counts
    rank: Counts
    distinct_count: int

    @classmethod
    def from_windows(cls, lower: Floats, upper: Floats, points: Floats | RankedPoints) -> BoxEdges:
        """Return the ranks of the windows ``lower <= point <= upper``.

        A missing end (NaN) makes the window empty; a missing point lies in none.
        """
        distinct, rank = points if isinstance(points, RankedPoints) else RankedPoints.from_points(points)
        start, stop = np.empty((2, len(lower)), dtype=_narrow_int_type(len(distinct)))
        beyond = np.append(distinct, np.nan)
        for rows in row_blocks(len(lower)):
            low, high = lower[rows], upper[rows]
            # Sorted needles are found faster; upper ends ascend nearly as lower ones do.
            order = np.argsort(low) if len(distinct) > FEW_TO_SEARCH else None
            start[rows] = sorted_search(distinct, low, "left", order)
            if upper is lower:
                stop[rows] = start[rows] + (beyond[start[rows]] == low)
            else:
                stop[rows] = np.where(
                    np.isnan(low) | np.isnan(high), start[rows], sorted_search(distinct, high, "right", order)
                )
        return cls(start, stop, rank, len(distinct))

    @property
    def has_missing_points(self) -> bool:
        """Return whether some point lies in no box."""
        return bool(self.rank.min(initial=0) < 0)

    @property
    def is_single_valued(self) -> bool:
        """Return whether every query covers at most one value, so that the side can join the group's key."""
        return bool((self.stop - self.start).max(initial=0) <= 1)

    def select(self, queries: Integers, points: Integers) -> BoxEdges:
        """Return the same side for some of the queries and points."""
        return BoxEdges(self.start[queries], self.stop[queries], self.rank[points], self.distinct_count)


class RankedPoints(NamedTuple):
    """Distinct points and the rank of each point among them.

    distinct_values: distinct points, ascending
    rank: rank of each point, -1 if it is missing, (n_points,)
    """

    distinct_values: Floats
    rank: Counts

    @classmethod
    def from_points(cls, points: Floats) -> RankedPoints:
        """Rank points, (n_points,); NaN is missing."""
        found = distinct_codes(points)
        # The last of the distinct values is NaN where one is missing.
        present = len(found.values) - int(np.isnan(found.values[-1:]).any())
        return cls(found.values[:present], np.where(found.codes < present, found.codes, np.int32(-1)))


def _narrow_int_type(largest: int) -> type[np.int32] | type[np.int64]:
    """Return the narrower integer type that holds numbers up to ``largest``."""
    return np.int32 if largest < np.iinfo(np.int32).max else np.int64


def count_in_boxes(group: Integers, point_group: Integers, sides: Sequence[BoxEdges]) -> Counts:
    """Count for every query the points of its own group inside its box.

    Args:
        group: group of each query, at least 0, (n,).
        point_group: group of each point, (n_points,).
        sides: sides of the boxes; whole groups are counted without any.

    Returns:
        Counts, (n,).
    """
    if not sides:
        sizes = np.bincount(point_group, minlength=int(group.max(initial=-1)) + 1)
        return np.asarray(sizes[group], dtype=np.int64)
    asked = np.flatnonzero(np.logical_and.reduce([side.start < side.stop for side in sides]))
    present = np.flatnonzero(np.logical_and.reduce([side.rank >= 0 for side in sides]))
    counts = np.zeros(len(group), dtype=np.int64)
    if len(asked) and len(present):
        chosen = sorted((side.select(asked, present) for side in sides), key=lambda side: side.distinct_count)
        counts[asked] = _count_in_sorted_sides(group[asked], point_group[present], chosen)
    return counts


def _count_in_sorted_sides(group: Integers, point_group: Integers, sides: Sequence[BoxEdges]) -> Counts:
    """Count points in boxes whose sides are sorted by ascending number of distinct values."""
    if len(sides) > 2 or (len(sides) == 2 and sides[0].is_single_valued):
        return _count_by_dyadic_intervals(group, point_group, sides)
    if len(sides) == 1:
        found = SortedPoints.from_groups(group, point_group, sides[0], with_order=False)
        return np.asarray(found.stop - found.start)
    # The side with most distinct values is the most selective, so it is sorted by.
    return SortedPoints.from_groups(group, point_group, sides[1]).count_in_side(sides[0])


@dataclass(frozen=True, eq=False)
class SortedPoints:
    """Points sorted by group and by rank on a side, with the range of each query.

    order: sorted points, (n_points,)
    start, stop: range of each query in ``order``, (n,) each
    """

    order: Integers
    start: Counts
    stop: Counts

    @classmethod
    def from_groups(
        cls, group: Integers, point_group: Integers, side: BoxEdges, *, with_order: bool = True
    ) -> SortedPoints:
        """Sort the points of the queries' groups by a side without missing points.

        ``order`` stays empty unless ``with_order``.
        """
        width = side.distinct_count + 1
        keys = point_group * width + side.rank
        order = np.argsort(keys) if with_order else None
        below = _counter_below(keys, order, width * (int(max(group.max(initial=0), point_group.max(initial=0))) + 1))
        start, stop = np.empty((2, len(group)), dtype=_narrow_int_type(len(keys)))
        for rows in row_blocks(len(group)):
            own = group[rows] * width
            start[rows] = below(own + side.start[rows])
            stop[rows] = below(own + np.maximum(side.start[rows], side.stop[rows]))
        return cls(np.empty(0, dtype=np.intp) if order is None else order, start, stop)

    @cached_property
    def _sorted_queries(self) -> tuple[Integers, Counts, Counts]:
        """Return the queries sorted by their ranges, with these."""
        # Neighbouring queries then read neighbouring memory.
        order = np.argsort(self.start)
        return order, self.start[order], self.stop[order]

    def count_in_side(self, side: BoxEdges) -> Counts:
        """Count the points in each query's range that lie in another side without missing points, (n,)."""
        queries, start, stop = self._sorted_queries
        found = np.empty_like(self.start)
        limits = side.start[queries], side.stop[queries]
        found[queries] = _count_ranks_between(side.rank[self.order], start, stop, limits, side.distinct_count)
        return found


def _counter_below(keys: Integers, order: Integers | None, cells: int) -> Callable[[Integers], Integers]:
    """Return a function that counts the keys below given numbers; all keys are below ``cells``."""
    if cells <= CELLS_PER_KEY * len(keys):
        counts = np.zeros(cells + 1, dtype=_narrow_int_type(len(keys)))
        np.cumsum(np.bincount(keys, minlength=cells), out=counts[1:])
        return counts.__getitem__
    return partial(sorted_search, np.sort(keys) if order is None else keys[order])


def _count_by_dyadic_intervals(group: Integers, point_group: Integers, sides: Sequence[BoxEdges]) -> Integers:
    """Count points with the narrowest side cut into dyadic intervals, which become part of the group, size by size."""
    cut = min(sides, key=lambda side: int((side.stop - side.start).sum()))
    others = [side for side in sides if side is not cut]
    counts = np.zeros(len(group), dtype=np.int64)
    for level, query, node in _dyadic_intervals(cut.start, cut.stop):
        points = np.flatnonzero(np.isin(cut.rank >> level, node))
        nodes = (cut.distinct_count >> level) + 1
        parts = _compact_groups(group[query] * nodes + node, point_group[points] * nodes + (cut.rank[points] >> level))
        found = _count_in_sorted_sides(*parts, [side.select(query, points) for side in others])
        counts += np.bincount(query, weights=found, minlength=len(group)).astype(np.int64)
    return counts


def _compact_groups(group: Integers, point_group: Integers) -> tuple[Integers, Integers]:
    """Return the same groups renumbered if products of their numbers could overflow 64 bits."""
    if max(group.max(initial=0), point_group.max(initial=0)) < _LARGE:
        return group, point_group
    (groups, point_groups), _ = number_groups([(group, point_group)], [len(group), len(point_group)])
    return groups, point_groups


def _dyadic_intervals(start: Integers, stop: Integers) -> Iterator[tuple[int, Integers, Integers]]:
    """Cut ranges into intervals ``[node 2^level, (node + 1) 2^level)`` and yield level, queries and nodes."""
    query = np.arange(len(start))
    level = 0
    while len(query):
        # At each level at most one interval at either end sticks out of the intervals of twice the size.
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
    """Count for each query the ``ranks[start:stop]`` between its limits.

    ``distinct`` is above all ranks. This is the count of a wavelet matrix, built bit by bit from the highest for all
    queries together.
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
class ExactKey:
    """Known variable that must be equal, missing equal to missing.

    confidential: values of the confidential records, (n,)
    released: values of the released records, (n_r,)
    """

    confidential: Values
    released: Values

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of records, (n, n_r)."""
        return len(self.confidential), len(self.released)

    def equal_codes(self) -> tuple[Integers, Integers]:
        """Return codes from 0 that are equal for equal values, (n,) and (n_r,)."""
        (confidential, released), _ = number_groups([(self.confidential, self.released)], self.shape)
        return confidential, released

    def any_codes(self) -> tuple[Counts, Counts]:
        """Return codes that are equal for equal values, (n,) and (n_r,), from 0 or -1, in no particular order.

        They are found sooner than ``equal_codes`` where both tables have the same levels.
        """
        both = [one.array for one in (self.confidential, self.released) if isinstance(one, pd.Series)]
        levelled = [one for one in both if isinstance(one, pd.Categorical)]
        if len(levelled) == 2 and levelled[0].categories.equals(levelled[1].categories):
            return levelled[0].codes, levelled[1].codes
        return self.equal_codes()


@dataclass(frozen=True, eq=False)
class WindowKey:
    """Known variable that must lie in a window: ``lower <= released <= upper``.

    A missing value (NaN) on either side matches nothing; see ``from_windows`` for missing values that match.

    lower, upper: ends of each confidential record's window, (n,) each
    released: released values, (n_r,)
    ranked_points: released values in ranks, if other windows of the same release have computed them
    """

    lower: Floats
    upper: Floats
    released: Floats
    ranked_points: RankedPoints | None = None

    @classmethod
    def from_windows(cls, lower: Floats, upper: Floats, missing: Booleans, released: Floats) -> WindowKey:
        """Return finite windows, and windows of ``missing`` (n,) records that match missing values only."""
        there = np.isnan(released)
        if not missing.any() and not there.any():
            return cls(lower, upper, released)
        # Missing values stand at infinity, beyond every finite window.
        lower, upper = np.where(missing, np.inf, lower), np.where(missing, np.inf, upper)
        return cls(lower, upper, np.where(there, np.inf, released))

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of records, (n, n_r)."""
        return len(self.lower), len(self.released)

    @cached_property
    def box_edges(self) -> BoxEdges:
        """Return the window as a side of boxes, computed once."""
        return BoxEdges.from_windows(
            self.lower, self.upper, self.released if self.ranked_points is None else self.ranked_points
        )


@dataclass(frozen=True, eq=False)
class MatchResults:
    """Candidates and hits of n confidential records, or of n kinds of them.

    candidates: c_i, number of released records that match i, (n,)
    hit: T_i, whether the own record of i is among them, (n,)
    records: how many records each stands for, (n,); None where each is one
    """

    candidates: Integers
    hit: Booleans
    records: Integers | None = None

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return candidates and hits by name."""
        return {"candidates": self.candidates, "hit": self.hit}

    def count_targets(self, among: Booleans | None = None) -> int:
        """Count the targets, all or some (n,) of them."""
        if self.records is not None:
            return int((self.records if among is None else self.records[among]).sum())
        return len(self.hit) if among is None else int(np.count_nonzero(among))


@dataclass(frozen=True, eq=False)
class RecordMatcher:
    """Records grouped by their exact keys, to be matched with different windows.

    group: group of each confidential record, (n,)
    released_group: group of each released record, equal for equal keys, (n_r,)
    group_count: number above all groups
    """

    group: Integers
    released_group: Integers
    group_count: int

    @classmethod
    def from_keys(cls, exact: Sequence[ExactKey], shape: tuple[int, int]) -> RecordMatcher:
        """Group n confidential and n_r released records, ``shape = (n, n_r)``, by all keys."""
        return cls(np.zeros(shape[0], dtype=np.int64), np.zeros(shape[1], dtype=np.int64), 1).split_groups(*exact)

    def split_groups(self, *keys: ExactKey) -> RecordMatcher:
        """Return the matcher with groups split by more keys."""
        if not keys:
            return self
        for key in keys:
            self._check_shape(key.shape)
        so_far = [] if self.group_count == 1 else [(self.group, self.released_group)]
        columns: list[tuple[Values, Values]] = [*so_far, *((key.confidential, key.released) for key in keys)]
        (confidential, released), groups = number_groups(columns, keys[0].shape)
        return RecordMatcher(confidential, released, groups)

    def match_windows(self, within: Sequence[WindowKey] = (), own: Integers | None = None) -> MatchResults:
        """Return candidates and hits of every confidential record.

        ``own`` (n,) is the released record of each, -1 for none; by default row i of record i. The time is O(N log N)
        up to two windows, with one more factor log N for each further one.
        """
        return CachedMatcher(self, ()).match_windows(within, own)

    def batches(self, windows: Sequence[WindowKey]) -> Iterator[GroupBatch]:
        """Yield batches of whole groups that are counted together, with fixed windows; a single one for small tables."""
        if sum(map(len, (self.group, self.released_group))) <= AT_ONCE:
            yield GroupBatch(slice(None), slice(None), self.group, self.released_group, windows)
            return
        sizes = sum(np.bincount(of, minlength=self.group_count) for of in (self.group, self.released_group))
        ranges = list(blocks_of_sizes(np.asarray(sizes), AT_ONCE))
        widths = [groups.stop - groups.start for groups in ranges]
        part = np.repeat(np.arange(len(ranges), dtype=np.min_scalar_type(len(ranges))), widths)
        both = [_rows_by_batch(part[of], len(ranges)) for of in (self.group, self.released_group)]
        for groups, ours, theirs in zip(ranges, *both, strict=True):
            first = groups.start
            yield GroupBatch(ours, theirs, self.group[ours] - first, self.released_group[theirs] - first, windows)

    def matching_rows(self, within: Sequence[WindowKey], records: Sequence[int]) -> list[Integers]:
        """Return the matching released records of each chosen confidential record, ascending."""
        order = np.argsort(self.released_group, kind="stable")
        edges = np.searchsorted(self.released_group[order], np.arange(self.group_count + 1))
        found = []
        for i in records:
            rows = order[edges[self.group[i]] : edges[self.group[i] + 1]]
            for window in within:
                values = window.released[rows]
                rows = rows[(window.lower[i] <= values) & (values <= window.upper[i])]
            found.append(rows)
        return found

    def own_is_match(self, within: Sequence[WindowKey], own: Integers | None) -> Booleans:
        """Return whether each record's own released record matches, (n,)."""
        hit = np.zeros(len(self.group), dtype=np.bool_)
        rows: slice | Integers
        theirs: slice | Integers
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

    def _check_shape(self, shape: tuple[int, int]) -> None:
        """Raise ValueError unless a key has these numbers of records."""
        expected = len(self.group), len(self.released_group)
        if shape != expected:
            raise ValueError(f"{shape} confidential and released records do not fit {expected}")


def _rows_by_batch(part: NDArray[Any], parts: int) -> list[Integers]:
    """Return the rows of each batch, ascending, given the batch of each row, (n,)."""
    order = np.argsort(part, kind="stable")
    return np.split(order, np.cumsum(np.bincount(part, minlength=parts))[:-1])


@dataclass(frozen=True, eq=False)
class GroupBatch:
    """Whole groups of records that are counted together.

    confidential_rows: rows of their confidential records
    released_rows: rows of their released records
    group: group of each of these confidential records, from 0, (n,)
    released_group: group of each of these released records, (n_r,)
    windows: fixed windows of all records, which are sides of the batch's boxes
    """

    confidential_rows: slice | Integers
    released_rows: slice | Integers
    group: Integers
    released_group: Integers
    windows: Sequence[WindowKey] = ()
    _counters: dict[str, Any] = field(default_factory=dict)

    @property
    def group_count(self) -> int:
        """Return a number above all groups of the batch."""
        return int(max(self.group.max(initial=0), self.released_group.max(initial=0))) + 1

    def edges_in_batch(self, window: WindowKey) -> BoxEdges:
        """Return a window as a side of the boxes of the batch."""
        if isinstance(self.confidential_rows, slice):
            return window.box_edges
        if window.ranked_points is not None and not isinstance(self.released_rows, slice):
            return window.box_edges.select(self.confidential_rows, self.released_rows)
        return BoxEdges.from_windows(
            window.lower[self.confidential_rows],
            window.upper[self.confidential_rows],
            window.released[self.released_rows],
        )

    @cached_property
    def window_edges(self) -> list[BoxEdges]:
        """Return the edges of the fixed windows, computed once."""
        return [self.edges_in_batch(window) for window in self.windows]

    def count_points(self, more: Sequence[WindowKey]) -> Counts:
        """Count the points in the boxes of the batch with further windows, (n,)."""
        others = [self.edges_in_batch(window) for window in more]
        if len(self.window_edges) == len(others) == 1 and not (
            self.window_edges[0].has_missing_points or others[0].has_missing_points
        ):
            if not others[0].is_single_valued:
                return self._sorted_points.count_in_side(others[0])
            cells = self.group_count * others[0].distinct_count * (self.window_edges[0].distinct_count + 1)
            if more[0].ranked_points is not None and cells < MAX_CELLS:
                return self._count_single_valued(more[0].ranked_points, others[0])
        return count_in_boxes(self.group, self.released_group, [*self.window_edges, *others])

    def _count_single_valued(self, ranked: RankedPoints, other: BoxEdges) -> Counts:
        """Count points with a further side that covers at most one value per query, (n,)."""
        staying, group = self.window_edges[0], self.group
        width = staying.distinct_count + 1
        # The value joins the group's key, and the counter depends on the points alone: it serves all further sides with
        # the same points.
        if self._counters.get("ranked") is not ranked:
            keys = (self.released_group * other.distinct_count + other.rank) * width + staying.rank
            cells = self.group_count * other.distinct_count * width
            self._counters.update(ranked=ranked, below=_counter_below(keys, None, cells))
        below: Callable[[Integers], Integers] = self._counters["below"]
        counts = np.zeros(len(group), dtype=np.int64)
        asked = np.flatnonzero((other.start < other.stop) & (staying.start < staying.stop))
        cell = (group[asked] * other.distinct_count + other.start[asked]) * width
        counts[asked] = below(cell + staying.stop[asked]) - below(cell + staying.start[asked])
        return counts

    @cached_property
    def _sorted_points(self) -> SortedPoints:
        """Return the points sorted by the fixed side, computed once."""
        return SortedPoints.from_groups(self.group, self.released_group, self.window_edges[0])


@dataclass(frozen=True, eq=False)
class CachedMatcher:
    """Matcher with fixed ``windows``, to be matched repeatedly with further ones; their points are sorted once."""

    matcher: RecordMatcher
    # The cache takes some 30 bytes per record, and 16 without windows.
    windows: Sequence[WindowKey]

    def match_windows(self, more: Sequence[WindowKey] = (), own: Integers | None = None) -> MatchResults:
        """Return candidates and hits of every confidential record with all windows.

        ``own`` is as in ``RecordMatcher.match_windows``.
        """
        within = [*self.windows, *more]
        for window in within:
            self.matcher._check_shape(window.shape)
        return MatchResults(self.candidate_counts(more), self.matcher.own_is_match(within, own))

    def own_is_match(self, more: Sequence[WindowKey] = ()) -> Booleans:
        """Return whether record i matches released row i in all windows, (n,)."""
        return self.matcher.own_is_match([*self.windows, *more], None)

    def candidate_counts(self, more: Sequence[WindowKey] = ()) -> Integers:
        """Return the number of candidates of every confidential record with all windows, (n,)."""
        matcher = self.matcher
        if not self.windows and not more:
            return np.asarray(count_in_boxes(matcher.group, matcher.released_group, []), dtype=np.int64)
        candidates = np.zeros(len(matcher.group), dtype=np.int64)
        for part in self._cached_batches:
            candidates[part.confidential_rows] = part.count_points(more)
        return candidates

    @cached_property
    def _cached_batches(self) -> list[GroupBatch]:
        """Return the batches of groups with the fixed windows."""
        return list(self.matcher.batches(self.windows))


def expected_match_risk(matches: MatchResults) -> float:
    """Return the sum of T_i / c_i: expected right matches when a random candidate is picked (Reiter & Mitra 2009)."""
    shares = 1.0 / matches.candidates[matches.hit]
    return float(np.sum(shares if matches.records is None else shares * matches.records[matches.hit]))


def true_match_rate(matches: MatchResults) -> float:
    """Return the share of the n targets whose only candidate is their own record (Reiter & Mitra 2009).

    Raises:
        NotComputable: if there are no targets.
    """
    targets = matches.count_targets()
    if not targets:
        raise NotComputable("there are no records")
    return matches.count_targets((matches.candidates == 1) & matches.hit) / targets


def false_match_rate(matches: MatchResults) -> float:
    """Return the share of the unique matches that are wrong (Reiter & Mitra 2009).

    Raises:
        NotComputable: if no record has a unique match.
    """
    unique = matches.candidates == 1
    found = matches.count_targets(unique)
    if not found:
        raise NotComputable("no record has a unique match")
    return matches.count_targets(unique & ~matches.hit) / found


def count_unique_matches(matches: MatchResults) -> float:
    """Count the targets with exactly one candidate, right or wrong (s of Reiter & Mitra 2009, u of Guo & Hu)."""
    return float(matches.count_targets(matches.candidates == 1))


IDENTIFICATION_SUMMARIES: Mapping[str, Callable[[MatchResults], float]] = MappingProxyType(
    {
        "expected_match_risk": expected_match_risk,
        "true_match_rate": true_match_rate,
        "false_match_rate": false_match_rate,
        "unique_matches": count_unique_matches,
    }
)


def attribute_probabilities(known: MatchResults, similar: MatchResults, *, exclude_self: bool = False) -> Floats:
    """Return the share p_i of each record's matches whose sensitive values are similar too (Guo & Hu §4.1).

    Args:
        known: matched set M_i of every record.
        similar: its part within the radii of the sensitive variables.
        exclude_self: whether record i is left out of its own set unless the set has no other member.

    Returns:
        Probabilities, 0 if the matched set is empty, (n,).
    """
    # The published numbers of the confidential data leave the record out; a release is never scored so.
    left_out = exclude_self & known.hit & (known.candidates > 1)
    members = known.candidates - left_out
    alike = similar.candidates - (left_out & similar.hit)
    return alike / np.maximum(members, 1)  # nothing is alike where the set is empty
