"""The nearest records among many, without comparing all of every pair.

Records that differ in t levels are t units apart or more (``distances``). So the levels that differ are counted first, in bytes, and numbers
are compared only of pairs whose count leaves them a chance to be nearer than what was found so far. The table is searched in pieces, each with
records from everywhere in it; what was found in one bounds what can still be nearest in the next. Nothing is estimated: the result is that of
all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..data.arrays import Booleans, Integers
from .distances import UNIT, Codes, Distances, Singles, gaps

FIRST, PIECE = 2048, 4096
"""Records of a table in the first piece, of which every pair is compared, and in each further one."""
PAIRS = 1 << 20
"""Pairs of records whose differing levels are counted at once."""
DENSE = 1 / 8
"""Where a larger share of the pairs is left, the numbers of all are compared, which is faster than to select them."""
BITS = 40
"""More than a distance has."""
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class Pairs:
    """Of the records ``rows``, pairs with others, (p,) each: the ``row``, counted from the first of ``rows``, ascending, the ``column``, and how far ``apart``."""

    rows: slice
    row: Integers
    column: Integers
    apart: Singles

    def of_each(self, k: int) -> tuple[Singles, Integers]:
        """The distances and the columns of the first ``k`` pairs of each row, ascending by distance, equal ones by column: (rows, k) each."""
        order = np.lexsort((self.column, self.apart, self.row))
        first = np.searchsorted(self.row, np.arange(self.rows.stop - self.rows.start))
        at = order[first[:, None] + np.arange(k)]
        return self.apart[at], self.column[at]


def near(distances: Distances, own: Singles, other: Singles, k: int, slack: int = 0) -> Iterator[Pairs]:
    """Of the records ``other`` (r, d), r at least ``k``, those at most ``slack`` farther than the k-th nearest of each of ``own`` (q, d), by all variables."""
    search = _Search.of(distances, own, other, max(FIRST, 2 * k))
    for rows in search.blocks():
        q = rows.stop - rows.start
        for columns in search.pieces:
            piece = search.piece(rows, columns)
            if not columns.start:
                whole = piece.all()
                limit = np.partition(whole, k - 1, axis=1)[:, k - 1] + np.float32(slack)
                row, column, apart = _of_all(whole, limit)
                column = search.order[column]
                continue
            more, at, farther = piece.within(limit)
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
        yield Pairs(rows, row[order], column[order], apart[order])


@dataclass(frozen=True, eq=False)
class _Search:
    """Records to search for, q, and a table of r in another ``order`` (r,), divided into ``pieces``: levels as codes (l, q) and (l, r), numbers (v, q) and (v, r).

    ``lacks`` (v,) says which numbers may be missing. ``differ`` and ``counts`` are overwritten by every piece.
    """

    levels: tuple[Codes, Codes]
    numbers: tuple[Singles, Singles]
    lacks: Booleans
    order: Integers
    pieces: tuple[slice, ...]
    differ: Booleans
    counts: Codes

    @classmethod
    def of(cls, distances: Distances, own: Singles, other: Singles, first: int) -> _Search:
        levelled, r = distances.levelled, len(other)
        order = np.argsort(np.arange(r) * GOLDEN % 1)  # records of every piece come from everywhere
        sides = own.T, other[order].T
        codes = distances.codes(own, other[order])
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

    def blocks(self) -> Iterator[slice]:
        widest = max(piece.stop - piece.start for piece in self.pieces)
        step, q = max(1, PAIRS // widest), self.levels[0].shape[1]
        return (slice(start, min(start + step, q)) for start in range(0, q, step))

    def piece(self, rows: slice, columns: slice) -> _Piece:
        levels, numbers = (
            [(own[rows, None], other[columns]) for own, other in zip(*sides, strict=True)]
            for sides in (self.levels, self.numbers)
        )
        shape = rows.stop - rows.start, columns.stop - columns.start
        return _Piece(self, shape, levels, numbers)


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some rows and some columns, q and r by ``shape``: the ``levels`` and the ``numbers`` of both sides, (q, 1) and (r,) each."""

    search: _Search
    shape: tuple[int, int]
    levels: list[tuple[Codes, Codes]]
    numbers: list[tuple[Singles, Singles]]

    def _counted(self) -> Codes:
        """In how many levels the pairs differ, (q, r)."""
        size = self.shape[0] * self.shape[1]
        count, differ = self.search.counts[:size].reshape(self.shape), self.search.differ[:size].reshape(self.shape)
        count[:] = 0
        for a, b in self.levels:
            np.not_equal(a, b, out=differ)
            np.add(count, differ.view(np.uint8), out=count)
        return count

    def all(self) -> Singles:
        """The distances, (q, r)."""
        total = self._counted().astype(np.float32)
        total *= np.float32(UNIT)
        gap = np.empty_like(total)
        for (a, b), lacks in zip(self.numbers, self.search.lacks, strict=True):
            total += gaps(a, b, gap, most=UNIT, lacks=bool(lacks))
        return total

    def within(self, limit: Singles) -> tuple[Integers, Integers, Singles]:
        """The pairs, (p,) each, that are no farther than the ``limit`` (q,) of the row: row, column and distance; ascending by row and column."""
        width = self.shape[1]
        count = self._counted()
        most = np.minimum(limit / np.float32(UNIT), np.iinfo(count.dtype).max).astype(count.dtype)
        at = np.flatnonzero(count <= most[:, None])
        if len(at) > DENSE * count.size:
            return _of_all(self.all(), limit)
        row = at // width
        column = at - row * width
        apart = count.ravel()[at] * np.float32(UNIT)
        for (a, b), lacks in zip(self.numbers, self.search.lacks, strict=True):
            apart += gaps(a[row, 0], b[column], np.empty_like(apart), most=UNIT, lacks=bool(lacks))
            inside = np.flatnonzero(apart <= limit[row])
            row, column, apart = row[inside], column[inside], apart[inside]
        return row, column, apart


def _of_all(apart: Singles, limit: Singles) -> tuple[Integers, Integers, Singles]:
    at = np.flatnonzero(apart <= limit[:, None])
    row = at // apart.shape[1]
    return row, at - row * apart.shape[1], apart.ravel()[at]
