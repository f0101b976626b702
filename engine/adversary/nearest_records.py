"""Exact search for the nearest records of a table by Gower's distance.

    NearestRecords     k nearest records with ties, by the exact or the rounded distance of ``statistics.gower``
    LevelGroupSearch   nearest records one by one, for at most a few hundred queries in one table
    find_nearest_by_block   some of the nearest records for as many queries in a long table, which is read in blocks

Neither compares the numbers of every pair. To get the distances of all pairs, by several sets of variables, use the
blocks of ``SubsetGowerDistances`` and ``smallest_of_each_row``.

Records that differ in t levels are at least t units apart. So ``iterate_near_pairs`` first counts differing levels, in
bytes, and compares numbers only for pairs whose count leaves them a chance. The table is searched in pieces, and
distances found in one piece bound the search in the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..data.bits import Keys, mix_bits
from ..data.long_arrays import long_blocks, release_pages, take_block, take_rows
from ..data.rows import DistinctRecords, distinct_rows
from ..data.sorting import sort_order
from ..statistics.gower import MOST_EXACT, UNIT, Codes, GowerDistance, Singles, SubsetGowerDistances, variable_distances

FIRST_PIECE, PIECE = 2048, 4096
"""Records of the first piece, whose pairs are all compared, and of further ones."""
PAIRS = 1 << 20
"""Number of pairs whose differing levels are counted together."""
DENSE = 1 / 8
"""Share of remaining pairs above which computing all is faster than selecting."""
BITS = 40
"""More bits than a distance has."""
GOLDEN = (5**0.5 - 1) / 2
WINDOW = 100
"""Number of neighbours by the first number on either side that bound the nearest distance."""
ROUNDING = 1e-9
"""Bound of the rounding error of a difference of shares."""


@dataclass(frozen=True, eq=False)
class NearestRecords:
    """Records of a table that are at most as far from each of q records as its k-th nearest.

    Equal records are searched once, and equal records of the table are found together: there are p pairs of distinct
    records.

    k: number of nearest records
    searched: distinct records among the queries, u of q
    table: distinct records of the table, v of r
    row: query of each pair, numbered in ``searched``, ascending, (p,)
    column: table record of each pair, numbered in ``table``, (p,); pairs of a row ascend by distance, then by this
    distances: distance of each pair, (p,)
    """

    k: int
    searched: DistinctRecords
    table: DistinctRecords
    row: Integers
    column: Integers
    distances: Floats

    @classmethod
    def from_places(cls, gower: GowerDistance, own: Floats, table: Floats, k: int) -> NearestRecords:
        """Find the ``k`` nearest records, all if fewer, of positions ``table`` (r, d) for queries ``own`` (q, d)."""
        # Single precision selects candidates that contain all nearest records; their distances are then computed
        # exactly.
        rough = SubsetGowerDistances.from_gower(gower)
        # A rounded number is at most half a unit off, so that the distance of a pair is off by one for each number, and
        # that of the k-th nearest too. Beyond MOST_EXACT variables sums are rounded as well.
        slack = int(2 * (~rough.levelled).sum() + len(rough.levelled) // MOST_EXACT * UNIT)
        searched, others = distinct_rows(own.T, len(own)), distinct_rows(table.T, len(table))
        queries, places = own[searched.first], table[others.first]
        row, column, _ = _join_near_pairs(
            rough, rough.round_places(queries), rough.round_places(places), min(k, len(others)), slack
        )
        exact = gower.pair_distances(queries, places, row, column)
        return cls._within_kth(min(k, len(table)), searched, others, row, column, exact)

    @classmethod
    def from_rounded_places(
        cls, distances: SubsetGowerDistances, own: Singles, table: Singles, k: int
    ) -> NearestRecords:
        """Find the nearest records by rounded positions and distances."""
        searched, others = distinct_rows(own.T, len(own)), distinct_rows(table.T, len(table))
        row, column, apart = _join_near_pairs(
            distances, own[searched.first], table[others.first], min(k, len(others)), 0
        )
        return cls._within_kth(min(k, len(table)), searched, others, row, column, apart.astype(np.float64))

    @classmethod
    def _within_kth(
        cls,
        k: int,
        searched: DistinctRecords,
        table: DistinctRecords,
        row: Integers,
        column: Integers,
        distances: Floats,
    ) -> NearestRecords:
        """Keep the pairs that are at most as far as the k-th nearest record, given a superset of them."""
        order = np.lexsort((column, distances, row))
        found = cls(k, searched, table, row[order], column[order], distances[order])
        inside = np.flatnonzero(found.distances <= found.kth_distance[found.row])
        return cls(k, searched, table, found.row[inside], found.column[inside], found.distances[inside])

    @cached_property
    def _records_before(self) -> Integers:
        """Return the number of table records before each pair in its row, (p,)."""
        counts = self.table.counts[self.column]
        before = np.cumsum(counts) - counts
        return np.asarray(before - before[np.searchsorted(self.row, np.arange(len(self.searched)))][self.row])

    @property
    def k_distances(self) -> Floats:
        """Return the distances of the k nearest records of each distinct query, ascending, (u, k)."""
        at = np.flatnonzero(self._records_before < self.k)
        times = np.minimum(self.table.counts[self.column[at]], self.k - self._records_before[at])
        return np.repeat(self.distances[at], times).reshape(len(self.searched), self.k)

    @cached_property
    def kth_distance(self) -> Floats:
        """Return the distance of the k-th nearest record of each distinct query, (u,)."""
        at = np.flatnonzero(self._records_before < self.k)
        last = np.searchsorted(self.row[at], np.arange(len(self.searched)), side="right") - 1
        return self.distances[at[last]]

    @property
    def record_counts(self) -> Integers:
        """Return the number of table records that each pair stands for, (p,)."""
        return self.table.counts[self.column]

    def count_records(self, counted: Booleans | None = None) -> Integers:
        """Count the table records in all pairs, or in ``counted`` pairs (p,), of each distinct query, (u,)."""
        weights = self.record_counts if counted is None else np.where(counted, self.record_counts, 0)
        return np.bincount(self.row, weights, len(self.searched)).astype(np.int64)


def _join_near_pairs(
    distances: SubsetGowerDistances, own: Singles, other: Singles, k: int, slack: int
) -> tuple[Integers, Integers, Singles]:
    """Return row, column and distance of all pairs of ``iterate_near_pairs``, (p,) each."""
    found = list(iterate_near_pairs(distances, own, other, k, slack))
    none = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([none, *(pairs.row + pairs.rows.start for pairs in found)]),
        np.concatenate([none, *(pairs.column for pairs in found)]),
        np.concatenate([np.zeros(0, dtype=np.float32), *(pairs.distances for pairs in found)]),
    )


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Pairs of a block of queries with near table records, p in all.

    rows: slice of the queries
    row: query of each pair, relative to the start of ``rows``, ascending, (p,)
    column: table record of each pair, (p,)
    distances: distance of each pair, (p,)
    """

    rows: slice
    row: Integers
    column: Integers
    distances: Singles


def iterate_near_pairs(
    distances: SubsetGowerDistances, own: Singles, other: Singles, k: int, slack: int = 0
) -> Iterator[NearPairs]:
    """Yield the pairs of queries (q, d) with records (r, d) within the k-th nearest distance plus ``slack``.

    r must be at least ``k``.
    """
    search = _NearestSearch.from_tables(distances, own, other, max(FIRST_PIECE, 2 * k))
    for rows in search.record_blocks():
        q = rows.stop - rows.start
        for columns in search.pieces:
            piece = search.make_piece(rows, columns)
            if not columns.start:
                whole = piece.all_distances()
                limit = np.partition(whole, k - 1, axis=1)[:, k - 1] + np.float32(slack)
                row, column, apart = _select_within(whole, limit)
                column = search.order[column]
                continue
            more, at, farther = piece.pairs_within(limit)
            if not len(more):
                continue
            row, column = np.concatenate([row, more]), np.concatenate([column, search.order[at + columns.start]])
            apart = np.concatenate([apart, farther])
            # One integer key for row and distance: sorting it is faster than ``lexsort``.
            keys = np.sort((row << BITS) + apart.astype(np.int64))
            first = np.searchsorted(keys, np.arange(q) << BITS)
            limit = (keys[first + k - 1] - (np.arange(q) << BITS)).astype(np.float32) + np.float32(slack)
            inside = np.flatnonzero(apart <= limit[row])
            row, column, apart = row[inside], column[inside], apart[inside]
        order = np.argsort(row, kind="stable")
        yield NearPairs(rows, row[order], column[order], apart[order])


@dataclass(frozen=True, eq=False)
class _NearestSearch:
    """Search of q queries in a table of r records, reordered and divided into pieces.

    levels: level codes of both sides, (l, q) and (l, r)
    numbers: numbers of both sides, (v, q) and (v, r)
    may_be_missing: whether each number may be missing, (v,)
    order: order of the table's records, (r,)
    pieces: slices of the reordered table
    differ, counts: buffers that every piece overwrites
    """

    levels: tuple[Codes, Codes]
    numbers: tuple[Singles, Singles]
    may_be_missing: Booleans
    order: Integers
    pieces: tuple[slice, ...]
    differ: Booleans
    counts: Codes

    @classmethod
    def from_tables(cls, distances: SubsetGowerDistances, own: Singles, other: Singles, first: int) -> _NearestSearch:
        """Reorder and divide the table."""
        levelled, r = distances.levelled, len(other)
        order = np.argsort(np.arange(r) * GOLDEN % 1)  # records of every piece come from everywhere
        sides = own.T, other[order].T
        codes = distances.level_codes(own, other[order])
        numbers = [np.ascontiguousarray(side[~levelled]) for side in sides]
        lacks = np.array(
            [min(a.min(initial=0), b.min(initial=0)) < 0 for a, b in zip(*numbers, strict=True)], dtype=np.bool_
        )
        edges = [0, *range(min(first, r), r, PIECE), r]
        pieces = tuple(slice(a, b) for a, b in pairwise(edges))
        size = max(PAIRS, PIECE, first)
        return cls(
            (codes[0], codes[1]), (numbers[0], numbers[1]), lacks, np.asarray(order, dtype=np.int64), pieces,
            np.empty(size, dtype=np.bool_),
            np.empty(size, dtype=np.uint8 if len(codes[0]) < 256 else np.uint16),
        )  # fmt: skip

    def record_blocks(self) -> Iterator[slice]:
        """Return consecutive slices of the queries that fit the buffers."""
        widest = max(piece.stop - piece.start for piece in self.pieces)
        step, q = max(1, PAIRS // widest), self.levels[0].shape[1]
        return (slice(start, min(start + step, q)) for start in range(0, q, step))

    def make_piece(self, rows: slice, columns: slice) -> _PiecePairs:
        """Return all pairs of a slice of queries and a piece of the table."""
        levels, numbers = (
            [(own[rows, None], other[columns]) for own, other in zip(*sides, strict=True)]
            for sides in (self.levels, self.numbers)
        )
        shape = rows.stop - rows.start, columns.stop - columns.start
        return _PiecePairs(self, shape, levels, numbers)


@dataclass(frozen=True, eq=False)
class _PiecePairs:
    """All pairs of q queries and a piece of r table records.

    search: search that the pairs belong to
    shape: q and r
    levels, numbers: values of both sides, (q, 1) and (r,) each
    """

    search: _NearestSearch
    shape: tuple[int, int]
    levels: list[tuple[Codes, Codes]]
    numbers: list[tuple[Singles, Singles]]

    def _count_differing_levels(self) -> Codes:
        """Count the levels in which each pair differs, (q, r)."""
        size = self.shape[0] * self.shape[1]
        count, differ = self.search.counts[:size].reshape(self.shape), self.search.differ[:size].reshape(self.shape)
        count[:] = 0
        for a, b in self.levels:
            np.not_equal(a, b, out=differ)
            np.add(count, differ.view(np.uint8), out=count)
        return count

    def all_distances(self) -> Singles:
        """Return the distances of all pairs, (q, r)."""
        total = self._count_differing_levels().astype(np.float32)
        total *= np.float32(UNIT)
        gap = np.empty_like(total)
        for (a, b), lacks in zip(self.numbers, self.search.may_be_missing, strict=True):
            total += variable_distances(a, b, gap, has_levels=False, most=UNIT, may_be_missing=bool(lacks))
        return total

    def pairs_within(self, limit: Singles) -> tuple[Integers, Integers, Singles]:
        """Return row, column and distance of the pairs within the ``limit`` (q,) of their row, (p,) each.

        Pairs ascend by row and column.
        """
        width = self.shape[1]
        count = self._count_differing_levels()
        most = np.minimum(limit / np.float32(UNIT), np.iinfo(count.dtype).max).astype(count.dtype)
        at = np.flatnonzero(count <= most[:, None])
        if len(at) > DENSE * count.size:
            return _select_within(self.all_distances(), limit)
        row = at // width
        column = at - row * width
        apart = count.ravel()[at] * np.float32(UNIT)
        for (a, b), lacks in zip(self.numbers, self.search.may_be_missing, strict=True):
            apart += variable_distances(
                a[row, 0], b[column], np.empty_like(apart), has_levels=False, most=UNIT, may_be_missing=bool(lacks)
            )
            inside = np.flatnonzero(apart <= limit[row])
            row, column, apart = row[inside], column[inside], apart[inside]
        return row, column, apart


def _select_within(apart: Singles, limit: Singles) -> tuple[Integers, Integers, Singles]:
    """Return row, column and distance of the entries (q, r) within the limit of their row, (p,) each."""
    at = np.flatnonzero(apart <= limit[:, None])
    row = at // apart.shape[1]
    return row, at - row * apart.shape[1], apart.ravel()[at]


def smallest_of_each_row(apart: Singles, k: int) -> tuple[Singles, NDArray[np.intp]]:
    """Return the ``k`` smallest values of each row (q, r), ascending, and their columns, (q, k) each."""
    q, r = apart.shape
    width = max(1, int(np.sqrt(r / k)))
    # The k smallest lie in the k pieces with the smallest minima, so that few values are partitioned.
    pieces = r // width
    if pieces <= 2 * k:
        at = np.argpartition(apart, k - 1, axis=1)[:, :k]
    else:
        whole = apart[:, : pieces * width].reshape(q, pieces, width)
        some = np.argpartition(whole.min(axis=2), k - 1, axis=1)[:, :k]
        inside = (some[:, :, None] * width + np.arange(width)).reshape(q, -1)
        rest = np.broadcast_to(np.arange(pieces * width, r), (q, r - pieces * width))
        tried = np.concatenate([inside, rest], axis=1)
        place = np.argpartition(np.take_along_axis(apart, tried, axis=1), k - 1, axis=1)[:, :k]
        at = np.take_along_axis(tried, place, axis=1)
    values = np.take_along_axis(apart, at, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(at, order, axis=1)


@dataclass(frozen=True, eq=False)
class LevelGroupSearch:
    """Search among records sorted by the combination of their levels, then by their first number.

    columns: values of each column, (n,): rank shares or level codes, and whether they are levels
    members: searched records in sorted order, (m,)
    first: first number of all records, (n,)
    ascending: first number of the sorted members, (m,)
    group: combination of levels of each record, (n,)
    edges: first and end position of each group among the members
    unit_of: unit of each record, whose other records are not searched, (n,); None where each record is one
    """

    columns: Sequence[tuple[Floats, bool]]
    members: Integers
    first: Floats
    ascending: Floats
    group: Integers
    edges: Integers
    unit_of: Integers | None = None

    @classmethod
    def from_columns(
        cls,
        columns: Sequence[tuple[Floats, bool]],
        records: int,
        searched: int | None = None,
        unit_of: Integers | None = None,
    ) -> LevelGroupSearch:
        """Create the search among the first ``searched`` of ``records`` records, by default among all."""
        groups = distinct_rows((values for values, has_levels in columns if has_levels), records)
        first = next((values for values, has_levels in columns if not has_levels), np.zeros(records))
        group, few = groups.combination_of, slice(searched)
        by_first = sort_order(first[few])
        by_group = sort_order(take_rows(group, by_first))
        members = take_rows(by_first, by_group)
        counts = np.zeros(len(groups), dtype=np.int64)
        for rows in long_blocks(len(members)):
            counts += np.bincount(group[few][rows], minlength=len(groups))
        return cls(columns, members, first, take_rows(first, members), group, np.append(0, np.cumsum(counts)), unit_of)

    def nearest_records(self, i: int) -> Integers:
        """Return the members other than record ``i``, and those of its unit, that are nearest to it, ascending."""
        start, end = self.edges[self.group[i]], self.edges[self.group[i] + 1]
        ascending = self.ascending[start:end]
        at = start + np.searchsorted(ascending, self.first[i])
        near = self.members[max(start, at - WINDOW) : min(end, at + WINDOW + 1)]
        bound = np.nextafter(self._distances_from(i, near).min(), np.float32(np.inf)) if len(near) else 1.0
        # Records of other groups are at least 1 away, and none is nearer than its first number alone.
        if bound < 1:
            reach = bound + ROUNDING
            low, high = np.searchsorted(ascending, [self.first[i] - reach, self.first[i] + reach])
            some = np.sort(self.members[start + low : start + high])
            return self._nearest_of(i, some)
        best, nearest = np.float32(np.inf), list[Integers]()
        for rows in long_blocks(len(self.members)):
            some = np.arange(rows.start, rows.stop)
            distance = self._distances_from(i, some)
            if distance.min() < best or not nearest:
                best, nearest = distance.min(), []
            nearest.append(some[distance == best])
        return np.concatenate(nearest)

    def _nearest_of(self, i: int, some: Integers) -> Integers:
        """Return which of some records (k,) are nearest to record ``i``."""
        distance = self._distances_from(i, some)
        return np.asarray(some[distance == distance.min()])

    def _distances_from(self, i: int, others: Integers) -> NDArray[np.float32]:
        """Return the distances of records (k,) from record ``i``, (k,), infinite for the record itself and its unit."""
        distance, gap = np.zeros(len(others), dtype=np.float32), np.empty(len(others))
        for values, has_levels in self.columns:
            # Missing numbers have a rank of their own, before all others.
            distance += variable_distances(
                values[i : i + 1],
                take_block(values, others),
                gap,
                has_levels=has_levels,
                most=1.0,
                may_be_missing=False,
            )
        distance[others == i] = np.inf
        if self.unit_of is not None:
            distance[self.unit_of[others] == self.unit_of[i]] = np.inf
        return distance


def find_nearest_by_block(
    columns: Sequence[tuple[Floats, bool]], chosen: Integers, keys: Keys, most: int
) -> list[Integers]:
    """Return for each chosen record of a table up to ``most`` of the other records that are nearest to it.

    They are at the distance that ``LevelGroupSearch`` finds. Of more than ``most`` those are taken whose ``keys``, (n,),
    are smallest once mixed with the key of the chosen record: chance takes them, whatever the order of the table.
    """
    n = len(keys)
    levels = [has_levels for _, has_levels in columns]
    groups = distinct_rows((values for values, has_levels in columns if has_levels), n).combination_of
    first = next((values for values, has_levels in columns if not has_levels), None)
    # Records far apart in the table are read once, since each brings what lies around it into memory.
    own_values = (
        np.stack([take_block(values, chosen) for values, _ in columns]) if columns else np.zeros((0, len(chosen)))
    )
    own_groups, own_keys = take_block(groups, chosen), take_block(keys, chosen)
    centres = np.zeros(len(chosen)) if first is None else take_block(first, chosen)
    release_pages()
    found = [
        _NearestOfRecord(
            int(i),
            int(own_groups[at]),
            float(centres[at]),
            mix_bits(own_keys[at : at + 1]),
            own_values[:, at],
            levels,
            most,
        )
        for at, i in enumerate(chosen)
    ]
    for rows in long_blocks(n):
        block = _RecordBlock(rows, [values[rows] for values, _ in columns], keys[rows])
        numbers = np.zeros(rows.stop - rows.start) if first is None else first[rows]
        order = np.argsort(numbers)
        order = order[np.argsort(groups[rows][order], kind="stable")]
        group, ascending = groups[rows][order], numbers[order]
        for one in found:
            start, end = np.searchsorted(group, [one.group, one.group + 1])
            there = ascending[start:end]
            if np.isinf(one.distance) and start < end:
                at = int(np.searchsorted(there, one.centre))
                one.bound(block, order[start:end][max(0, at - WINDOW) : at + WINDOW + 1])
            reach = float(np.nextafter(one.distance, np.float32(np.inf))) + ROUNDING
            low, high = np.searchsorted(there, [one.centre - reach, one.centre + reach])
            one.compare(block, order[start:end][low:high])
    # Records of other groups are at least 1 away.
    far = [one for one in found if one.distance >= 1]
    for one in far:
        one.forget()
    for rows in long_blocks(n) if far else ():
        block = _RecordBlock(rows, [values[rows] for values, _ in columns], keys[rows])
        for one in far:
            one.compare(block, np.arange(rows.stop - rows.start))
    return [np.sort(one.nearest) for one in found]


@dataclass(frozen=True, eq=False)
class _RecordBlock:
    """Block of the records of a long table: its place, the values of its columns and its keys, (b,) each."""

    place: slice
    columns: Sequence[Floats]
    keys: Keys


class _NearestOfRecord:
    """Some of the records that are nearest to a record, as far as they are found.

    record, group, centre: the record, its combination of levels, and its first number
    distance: at most that of the nearest found
    nearest: those whose mixed keys are smallest, in the order of these
    """

    def __init__(
        self,
        record: int,
        group: int,
        centre: float,
        key: Keys,
        values: Floats,
        are_levels: Sequence[bool],
        most: int,
    ) -> None:
        """Find nothing yet. ``values`` are those of the record in each column, (c,), which are levels or not."""
        self.record, self.group, self.centre, self._key, self._most = record, group, centre, key, most
        self._values = [(values[at : at + 1], has_levels) for at, has_levels in enumerate(are_levels)]
        self.forget()

    def forget(self) -> None:
        """Forget what was found."""
        self.distance = np.float32(np.inf)
        self.nearest, self._mixed = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)

    def _distances_of(self, block: _RecordBlock, rows: Integers) -> NDArray[np.float32]:
        """Return the distances of some rows of a block, (k,), infinite for the record itself."""
        distance, gap = np.zeros(len(rows), dtype=np.float32), np.empty(len(rows))
        for (value, has_levels), own in zip(self._values, block.columns, strict=True):
            distance += variable_distances(value, own[rows], gap, has_levels=has_levels, most=1.0, may_be_missing=False)
        distance[rows == self.record - block.place.start] = np.inf
        return distance

    def bound(self, block: _RecordBlock, rows: Integers) -> None:
        """Bound the distance by some rows of a block, (k,), which are compared with again."""
        self.distance = min(self.distance, self._distances_of(block, rows).min(initial=np.float32(np.inf)))

    def compare(self, block: _RecordBlock, rows: Integers) -> None:
        """Compare with some rows of a block, (k,)."""
        distance = self._distances_of(block, rows)
        least = distance.min(initial=np.float32(np.inf))
        if np.isinf(least) or least > self.distance:
            return
        if least < self.distance:
            self.distance, self.nearest, self._mixed = least, self.nearest[:0], self._mixed[:0]
        alike = rows[distance == least]
        records = np.append(self.nearest, alike + block.place.start)
        mixed = np.append(self._mixed, mix_bits(block.keys[alike] ^ self._key))
        if len(mixed) > self._most:
            smallest = np.argpartition(mixed, self._most - 1)[: self._most]
            records, mixed = records[smallest], mixed[smallest]
        self.nearest, self._mixed = records, mixed
