"""Pairs of queries and points that are compared one by one, where few points lie in the most selective window of a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.blocks import blocks_of_sizes

PAIRS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class PairsInWindows:
    """Pairs of queries (q,) and points (r,) of one group of which the point lies in all windows of the query.

    lower, upper: windows, (q, d)
    values: points, (r, d)
    first: variable whose windows are most selective
    order: points by group and value of that variable, (r,)
    start, stop: places in ``order`` of the points that lie in each query's window of it, (q,)
    """

    lower: Floats
    upper: Floats
    values: Floats
    first: int
    order: Integers
    start: Integers
    stop: Integers

    @classmethod
    def from_windows(
        cls, group: Integers, lower: Floats, upper: Floats, point_group: Integers, values: Floats
    ) -> PairsInWindows:
        """Find the pairs that lie in the most selective window, without listing them."""
        # The variable with most values has the most selective windows.
        first = int(np.argmax([len(np.unique(column)) for column in values.T])) if len(values) else 0
        distinct = np.unique(values[~np.isnan(values[:, first]), first])
        width = len(distinct) + 1
        point_keys = point_group * width + np.searchsorted(distinct, values[:, first])
        order = np.argsort(point_keys, kind="stable")
        ascending = point_keys[order]
        start = np.searchsorted(ascending, group * width + np.searchsorted(distinct, lower[:, first], "left"))
        stop = np.searchsorted(ascending, group * width + np.searchsorted(distinct, upper[:, first], "right"))
        return cls(lower, upper, values, first, order, start, np.maximum(stop, start))

    @property
    def number(self) -> int:
        """Return the number of pairs that have to be compared."""
        return int((self.stop - self.start).sum())

    def chunks(self) -> Iterator[tuple[Integers, Integers]]:
        """Yield the queries and the points of pairs, (p,) each, in blocks; at least one block."""
        pairs = self.stop - self.start
        for block in blocks_of_sizes(pairs, PAIRS_AT_ONCE):
            some = pairs[block]
            query = np.repeat(np.arange(block.start, block.stop), some)
            place = self.start[query] + np.arange(len(query)) - np.repeat(np.cumsum(some) - some, some)
            point = self.order[place]
            # The first window too: a missing end holds nothing.
            for column in (self.first, *(one for one in range(self.values.shape[1]) if one != self.first)):
                value = self.values[point, column]
                inside = (self.lower[query, column] <= value) & (value <= self.upper[query, column])
                query, point = query[inside], point[inside]
            yield query, point
        if not len(pairs):
            nobody = np.empty(0, dtype=np.int64)
            yield nobody, nobody

    def count_by_query(self) -> Integers:
        """Count the pairs of each query, (q,)."""
        counts = np.zeros(len(self.start), dtype=np.int64)
        for query, _ in self.chunks():
            counts += np.bincount(query, minlength=len(counts))
        return counts
