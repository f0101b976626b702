"""Gower's distance by ranks for many pairs in one pass over several sets of variables.

Places of ``statistics.gower`` are whole numbers in single precision: one variable adds at most ``UNIT``, and sums of up to ``MOST_EXACT`` variables are exact. A
place is rounded to 1 / ``UNIT`` of the records, so numbers that are closer than that are equal here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats
from ..data.microdata import Microdata
from ..statistics.gower import Gower

UNIT = 2.0**16
MOST_EXACT = 256
"""Variables whose distances add up exactly."""
AT_ONCE = 250_000
"""Pairs of records in a block."""
Singles = NDArray[np.float32]
Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True, eq=False)
class SubsetGowerDistances:
    """Gower distances of many pairs of records by subsets of the d variables of ``gower``.

    gower: ranges, levels and ranks of the variables
    levelled: whether each variable has levels, (d,)
    """

    gower: Gower
    levelled: Booleans

    @classmethod
    def from_tables(cls, tables: Sequence[Microdata], names: Sequence[str]) -> SubsetGowerDistances:
        """Build distances whose ranks are those of these tables together. Raises NotComputable like ``Gower.of``."""
        return cls.from_gower(Gower.of(tables, names))

    @classmethod
    def from_gower(cls, gower: Gower) -> SubsetGowerDistances:
        return cls(gower, np.array([name in gower.levels for name in gower.names], dtype=np.bool_))

    def scaled_places(self, data: Microdata) -> Singles:
        """Return records as whole numbers, (n, d): levels, or places up to ``UNIT``; below 0 where a value is missing or a level unknown."""
        return self.round_places(self.gower.places(data))

    def round_places(self, places: Floats) -> Singles:
        """Return places of ``gower``, (n, d), rounded to the whole numbers used here."""
        number = np.where(places < 0, places, np.rint(places * (UNIT / self.gower.unit)))
        return np.where(self.levelled, places, number).astype(np.float32)

    def level_codes(self, *sides: Singles) -> list[Codes]:
        """Return the levels of records (n, d) as the smallest numbers that hold those of all sides, (l, n) each."""
        levels = [side.T[self.levelled] + 2 for side in sides]
        most = max((int(one.max(initial=0)) for one in levels), default=0)
        return [np.ascontiguousarray(one, dtype=np.min_scalar_type(most)) for one in levels]

    def iterate_blocks(self, own: Singles, other: Singles, subsets: Booleans) -> Iterator[tuple[slice, int, Singles]]:
        """Yield which of the records (q, d), the number of a subset (s, d) of the variables, and their distances to others (r, d) by it:
        (some, r).

        Here a variable adds at most 1. The array is overwritten by the next. Levels that differ are counted in bytes, and become
        distances once.
        """
        step = max(1, AT_ONCE // max(len(other), 1))
        sides = [np.ascontiguousarray(side.T[~self.levelled]) / np.float32(UNIT) for side in (own, other)]
        levels, numbers = (list(zip(*both, strict=True)) for both in (self.level_codes(own, other), sides))
        lacks = [min(a.min(initial=0), b.min(initial=0)) < 0 for a, b in numbers]
        differ = np.empty((len(levels), step * len(other)), dtype=np.uint8)
        apart = np.empty((len(numbers), step * len(other)), dtype=np.float32)
        count = np.empty(step * len(other), dtype=np.uint8 if len(levels) < 256 else np.uint16)
        total = np.empty(step * len(other), dtype=np.float32)
        for start in range(0, len(own), step):
            rows = slice(start, min(start + step, len(own)))
            shape = rows.stop - start, len(other)
            size = shape[0] * shape[1]
            for (a, b), byte in zip(levels, differ, strict=True):
                np.not_equal(a[rows, None], b, out=byte[:size].reshape(shape).view(np.bool_))
            for (c, d), one, lack in zip(numbers, apart, lacks, strict=True):
                absolute_gaps(c[rows, None], d, one[:size].reshape(shape), most=1.0, may_be_missing=lack)
            for k, chosen in enumerate(subsets):
                count[:size] = 0
                for at in np.flatnonzero(chosen[self.levelled]):
                    np.add(count[:size], differ[at, :size], out=count[:size])
                np.copyto(total[:size], count[:size])
                for at in np.flatnonzero(chosen[~self.levelled]):
                    np.add(total[:size], apart[at, :size], out=total[:size])
                yield rows, k, total[:size].reshape(shape)


def absolute_gaps(own: Singles, other: Singles, out: Singles, *, most: float, may_be_missing: bool) -> Singles:
    """Write the absolute differences of numbers into ``out`` and return it; with ``may_be_missing`` some are missing, which are ``most`` away from
    those that are not.
    """
    np.abs(np.subtract(own, other, out=out), out=out)
    if may_be_missing:
        lacking = (own < 0) | (other < 0)
        out[lacking] = (most * ((own < 0) != (other < 0)))[lacking]
    return out


def smallest_of_each_row(apart: Singles, k: int) -> tuple[Singles, NDArray[np.intp]]:
    """Return the ``k`` smallest of each row of (q, r), r at least k, ascending, and where they stand: (q, k) each.

    The k smallest of a row lie in the k pieces of it that have the smallest minima.
    """
    q, r = apart.shape
    width = max(1, int(np.sqrt(r / k)))
    pieces = r // width
    if pieces <= 2 * k:
        at = np.argpartition(apart, k - 1, axis=1)[:, :k]
    else:
        whole = apart[:, : pieces * width].reshape(q, pieces, width)
        some = np.argpartition(whole.min(axis=2), k - 1, axis=1)[:, :k]
        inside = (some[:, :, None] * width + np.arange(width)).reshape(q, -1)
        rest = np.broadcast_to(np.arange(pieces * width, r), (q, r - pieces * width))
        tried = np.concatenate([inside, rest], axis=1)
        found = np.argpartition(np.take_along_axis(apart, tried, axis=1), k - 1, axis=1)[:, :k]
        at = np.take_along_axis(tried, found, axis=1)
    values = np.take_along_axis(apart, at, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(at, order, axis=1)
