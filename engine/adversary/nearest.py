"""Search for the nearest of many records without comparing all of every pair.

Records that differ in t levels are t units apart or more (``distances``). So the levels that differ are counted first, in bytes, and
numbers
are compared only of pairs whose count leaves them a chance to be nearer than what was found so far. The table is searched in pieces,
each with
records from everywhere in it; what was found in one bounds what can still be nearest in the next. Nothing is estimated: the result is
that of
all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..data.arrays import Booleans, Integers
from .distances import UNIT, Codes, Singles, SubsetGowerDistances, absolute_gaps

FIRST_PIECE, PIECE = 2048, 4096
"""Records of a table in the first piece, of which every pair is compared, and in each further one."""
PAIRS = 1 << 20
"""Pairs of records whose differing levels are counted at once."""
DENSE = 1 / 8
"""Where a larger share of the pairs is left, the numbers of all are compared, which is faster than to select them."""
BITS = 40
"""More than a distance has."""
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Pairs of some records with others that are near them, p in all.

    rows: the records that the pairs are of
    row: first record of each pair, counted from the first of ``rows``, ascending, (p,)
    column: second record of each pair, (p,)
    distances: distance of each pair, (p,)
    """

    rows: slice
    row: Integers
    column: Integers
    distances: Singles

    def nearest_of_each_row(self, k: int) -> tuple[Singles, Integers]:
        """Return the distances and the columns of the first ``k`` pairs of each row, ascending by distance, equal ones by column: (rows,
        k) each.
        """
        order = np.lexsort((self.column, self.distances, self.row))
        first = np.searchsorted(self.row, np.arange(self.rows.stop - self.rows.start))
        at = order[first[:, None] + np.arange(k)]
        return self.distances[at], self.column[at]


def iterate_near_pairs(
    distances: SubsetGowerDistances, own: Singles, other: Singles, k: int, slack: int = 0
) -> Iterator[NearPairs]:
    """Yield the pairs of each of ``own`` (q, d) with the ``other`` records (r, d), r at least ``k``, at most ``slack`` farther than its
    k-th nearest, by all variables.
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
            keys = np.sort((row << BITS) + apart.astype(np.int64))
            first = np.searchsorted(keys, np.arange(q) << BITS)
            limit = (keys[first + k - 1] - (np.arange(q) << BITS)).astype(np.float32) + np.float32(slack)
            inside = np.flatnonzero(apart <= limit[row])
            row, column, apart = row[inside], column[inside], apart[inside]
        order = np.argsort(row, kind="stable")
        yield NearPairs(rows, row[order], column[order], apart[order])


@dataclass(frozen=True, eq=False)
class _NearestSearch:
    """Records to search for, q, and a table of r records in another order, divided into pieces.

    levels: levels of both sides as codes, (l, q) and (l, r)
    numbers: numbers of both sides, (v, q) and (v, r)
    may_be_missing: whether each number may be missing, (v,)
    order: order of the table's records, (r,)
    pieces: slices of the ordered table
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
        """Return consecutive slices of the records to search for."""
        widest = max(piece.stop - piece.start for piece in self.pieces)
        step, q = max(1, PAIRS // widest), self.levels[0].shape[1]
        return (slice(start, min(start + step, q)) for start in range(0, q, step))

    def make_piece(self, rows: slice, columns: slice) -> _PiecePairs:
        levels, numbers = (
            [(own[rows, None], other[columns]) for own, other in zip(*sides, strict=True)]
            for sides in (self.levels, self.numbers)
        )
        shape = rows.stop - rows.start, columns.stop - columns.start
        return _PiecePairs(self, shape, levels, numbers)


@dataclass(frozen=True, eq=False)
class _PiecePairs:
    """All pairs of some records and a piece of the table, q and r by ``shape``.

    search: the search that the pairs belong to
    shape: number of records and of table records
    levels, numbers: values of both sides, (q, 1) and (r,) each
    """

    search: _NearestSearch
    shape: tuple[int, int]
    levels: list[tuple[Codes, Codes]]
    numbers: list[tuple[Singles, Singles]]

    def _count_differing_levels(self) -> Codes:
        """Count in how many levels the pairs differ, (q, r)."""
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
            total += absolute_gaps(a, b, gap, most=UNIT, may_be_missing=bool(lacks))
        return total

    def pairs_within(self, limit: Singles) -> tuple[Integers, Integers, Singles]:
        """Return the pairs, (p,) each, that are no farther than the ``limit`` (q,) of the row: row, column and distance; ascending by row
        and column.
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
            apart += absolute_gaps(a[row, 0], b[column], np.empty_like(apart), most=UNIT, may_be_missing=bool(lacks))
            inside = np.flatnonzero(apart <= limit[row])
            row, column, apart = row[inside], column[inside], apart[inside]
        return row, column, apart


def _select_within(apart: Singles, limit: Singles) -> tuple[Integers, Integers, Singles]:
    at = np.flatnonzero(apart <= limit[:, None])
    row = at // apart.shape[1]
    return row, at - row * apart.shape[1], apart.ravel()[at]
