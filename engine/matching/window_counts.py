"""Rows of long tables in ranges of values, such that a window needs the rows of few ranges, and counts of keys in others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.row_buckets import RowBuckets
from ..data.rows import distinct_rows


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
