"""Counts of points within one window of each query, group by group, for long tables that come in chunks.

Points are sorted by value once; whatever the groups, those of one group within a window are then a range of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.row_buckets import RowBuckets
from ..data.rows import distinct_rows, number_groups

FEW_GROUPS = 1 << 16
"""Groups up to which their numbers have 16 bits, which NumPy sorts by radix."""


@dataclass(frozen=True, eq=False)
class SortedWindow:
    """Windows of queries among points that are sorted by value.

    points: order of the points that are not missing, (k,)
    queries: order of the queries by the lower ends of their windows, (q,)
    start, stop: the range of the sorted points within each query's window, (q,) each
    """

    points: Integers
    queries: Integers
    start: Integers
    stop: Integers

    @classmethod
    def from_ends(cls, lower: Floats, upper: Floats, points: Floats) -> Self:
        """Return the windows ``lower <= point <= upper``, (q,) each; nothing is within a window with a missing end."""
        order, queries = np.argsort(points), np.argsort(lower)
        order = order[: len(points) - int(np.count_nonzero(np.isnan(points)))]
        ascending = points[order]
        start, stop = np.zeros((2, len(lower)), dtype=np.int64)
        # Needles in ascending order find their part of the points in the cache.
        start[queries] = np.searchsorted(ascending, lower[queries], "left")
        stop[queries] = np.searchsorted(ascending, upper[queries], "right")
        is_empty = np.isnan(lower) | np.isnan(upper) | (stop < start)
        return cls(order, queries, start, np.where(is_empty, start, stop))

    def count_in_groups(self, groups: Integers, point_groups: Integers, number: int) -> Integers:
        """Count the points of each query's own group within its window, (q,); the groups are below ``number``."""
        if number <= 1:
            return self.stop - self.start
        kind = np.uint16 if number <= FEW_GROUPS else np.int64
        by_value = point_groups[self.points].astype(kind)
        places = np.argsort(by_value, kind="stable")
        width = len(places) + 1
        ascending = by_value[places].astype(np.int64) * width + places
        queries = self.queries[np.argsort(groups[self.queries].astype(kind), kind="stable")]
        first = groups[queries].astype(np.int64) * width
        found = np.empty(len(queries), dtype=np.int64)
        found[queries] = np.searchsorted(ascending, first + self.stop[queries])
        found[queries] -= np.searchsorted(ascending, first + self.start[queries])
        return found


class NumberedKeys:
    """Keys of some tables as whole numbers that are equal for equal keys, of any of their columns."""

    def __init__(self, tables: Sequence[Sequence[Floats]], sizes: Sequence[int]) -> None:
        """Get the columns (n,) of each table, and its number of records."""
        self._sizes = list(sizes)
        self._columns = [_whole_numbers(column) for column in zip(*tables, strict=True)]
        self._ranges = [
            (min(int(one.min(initial=0)) for one in column), max(int(one.max(initial=0)) for one in column))
            if column[0].dtype.kind == "i"
            else (0, FEW_GROUPS)
            for column in self._columns
        ]

    def numbers_by(self, places: Sequence[int]) -> tuple[list[Integers], int]:
        """Return the number of each record by some of the columns, (n,) for each table, and a number above all."""
        widths = [self._ranges[at][1] - self._ranges[at][0] + 1 for at in places]
        number = math.prod(widths)
        if number > FEW_GROUPS:
            return number_groups([self._columns[at] for at in places], self._sizes)
        found: list[Integers] = [np.zeros(size, dtype=np.int64) for size in self._sizes]
        for at, width in zip(places, widths, strict=True):
            for i, own in enumerate(self._columns[at]):
                found[i] = found[i] * width + (own - self._ranges[at][0])
        return found, number


def _whole_numbers(column: Sequence[Floats]) -> list[Any]:
    """Return a column of each table as whole numbers where all are such and none is missing, else as it is."""
    found = []
    for own in column:
        with np.errstate(invalid="ignore"):
            whole = own.astype(np.int64)
        if not np.array_equal(whole, own):
            return list(column)
        found.append(whole)
    return found


def count_keys(keys: Floats, records: Integers) -> KeyCounts:
    """Return each of the keys (n, d) once, (k, d), with the records of all that are equal, (k,)."""
    kinds = distinct_rows(keys.T, len(keys))
    return KeyCounts(keys[kinds.first], kinds.sum_by_combination(records.astype(np.float64)).astype(np.int64))


class KeyCounts(NamedTuple):
    """Keys and how many released records have each.

    keys: different keys, (k, d)
    records: (k,)
    """

    keys: Floats
    records: Integers

    @classmethod
    def from_rows(cls, blocks: Iterable[Floats]) -> KeyCounts:
        """Count the keys of blocks of rows (n, d), at least one block."""
        return cls.from_counts([count_keys(rows, np.ones(len(rows), dtype=np.int64)) for rows in blocks])

    @classmethod
    def from_counts(cls, counts: Sequence[KeyCounts]) -> KeyCounts:
        """Add counts up, at least one."""
        return counts[0] if len(counts) == 1 else count_keys(*map(np.concatenate, zip(*counts, strict=True)))


class RangeRows(NamedTuple):
    """Confidential records whose windows begin in a range, and what may lie in these.

    queries: the confidential records, (q, width)
    points: released records near the ends of the windows, (p, width)
    between: keys of those that lie between, within every window
    """

    queries: Floats
    points: Floats
    between: KeyCounts


class RowRanges:
    """Rows of both tables in buckets that are ranges of values: a confidential record is where its window begins."""

    def __init__(self, cuts: Floats, lower: int, value: int, n_exact: int, *, all_points: bool = False) -> None:
        """Get the ends of the ranges but the outer ones, and the columns of the windows' lower ends and of the values.

        The ``n_exact`` columns of the keys follow the first one of a released record. Those that lie between the ends of
        windows are counted by key, unless ``all_points`` are needed.
        """
        self.cuts, self._lower, self._value, self._n_exact, self._all_points = cuts, lower, value, n_exact, all_points
        self._counts: dict[int, KeyCounts] = {}
        self._every: KeyCounts | None = None

    @property
    def number(self) -> int:
        """Return the number of ranges."""
        return len(self.cuts) + 1

    def range_of(self, values: Floats) -> Integers:
        """Return the range of each value, (n,); a missing one is in the first."""
        return np.where(np.isnan(values), 0, np.searchsorted(self.cuts, values, "right"))

    def read_range(self, ours: RowBuckets, theirs: RowBuckets, at: int) -> RangeRows:
        """Return what is needed for the windows that begin in a range."""
        queries = ours.read_bucket(at).read_rows()
        upper = queries[:, self._lower + 1]
        upper = upper[~np.isnan(upper)]
        first, last = self.range_of(np.array([upper.min(), upper.max()])).tolist() if len(upper) else (at, at)
        first = at + 1 if self._all_points else max(at + 1, first)
        points = [theirs.read_bucket(i).read_rows() for i in (at, *range(first, last + 1))]
        between = [self._counts_of(theirs, i) for i in range(at + 1, first)]
        return RangeRows(
            queries,
            np.concatenate(points),
            KeyCounts.from_counts(between)
            if between
            else KeyCounts(np.empty((0, self._n_exact)), np.empty(0, np.int64)),
        )

    def count_all(self, theirs: RowBuckets) -> KeyCounts:
        """Count the keys of all released records."""
        if self._every is None:
            self._every = KeyCounts.from_counts([self._counts_of(theirs, i) for i in range(self.number)])
        return self._every

    def _counts_of(self, theirs: RowBuckets, at: int) -> KeyCounts:
        if at not in self._counts:
            rows = theirs.read_bucket(at).read_rows()
            self._counts[at] = KeyCounts.from_rows([rows[:, 1 : 1 + self._n_exact]])
        return self._counts[at]
