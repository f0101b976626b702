"""Distance of records with levels and numbers: variable by variable (Gower 1971), numbers by their ranks.

A variable with levels counts 1 where two records differ. A number or a date counts the difference of their places, a
place being the share of the values of given tables that lie below, and half of those that are equal; between two
neighbouring values it is interpolated. Whatever its unit and its tails are, a variable counts at most 1. A missing
value is 0 away from a missing one, and 1 from any other.

``GowerDistance`` gives exact distances, in half ranks, of which 2N are 1 where the tables have N records.
``SubsetGowerDistances`` gives distances of many pairs by several sets of variables in one pass, with places in single
precision, up to ``UNIT``: numbers that are closer than 1 / ``UNIT`` of the records are equal there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..errors import NotComputable
from .columns import column_scales

_GRAIN = 2.0**20
_MISSING = -1.0
_UNKNOWN = -2.0
UNIT = 2.0**16
MOST_EXACT = 256
"""Variables whose distances add up exactly in single precision."""
AT_ONCE = 250_000
"""Pairs of records in a block."""
_MEANS = '"{}" is released as class means, which are not among its levels'
Singles = NDArray[np.float32]
Codes = NDArray[np.unsignedinteger]
Gaps = TypeVar("Gaps", Floats, Singles)


def variable_distances(
    own: Gaps, other: Gaps, out: Gaps, *, has_levels: bool, most: float, may_be_missing: bool = True
) -> Gaps:
    """Compute the distances of values by one variable into ``out``, and return it.

    has_levels: whether different values are ``most`` apart; else they are by their difference
    most: distance of a missing number, which is below 0, from one that is present
    may_be_missing: whether missing numbers are looked for

    The shapes of ``own`` and ``other`` are broadcast to that of ``out``.
    """
    if has_levels:
        np.multiply(own != other, most, out=out)
        return out
    np.abs(np.subtract(own, other, out=out), out=out)
    if may_be_missing:
        lacking = (own < 0) | (other < 0)
        out[lacking] = (most * ((own < 0) != (other < 0)))[lacking]
    return out


@dataclass(frozen=True, eq=False)
class GowerDistance:
    """Gower distance by d variables, in half ranks of the records of some tables.

    names: the variables
    record_count: number of records of the tables
    levels: number of each level, by variable with levels
    values: ascending numbers of the other variables
    """

    names: tuple[str, ...]
    record_count: int
    levels: Mapping[str, Mapping[str, int]]
    values: Mapping[str, Floats]

    @classmethod
    def from_tables(cls, tables: Sequence[Microdata], names: Sequence[str]) -> GowerDistance:
        """Build the distance from the ranks that values have in these tables together.

        Raises:
            NotComputable: where a table has labels of a generalisation, or class means of levels.
        """
        levels: dict[str, dict[str, int]] = {}
        values: dict[str, Floats] = {}
        for name in names:
            if tables[0].schema[name].kind.has_levels:
                found = (str(level) for table in tables for level in _categorical_values(table, name).categories)
                levels[name] = {level: k for k, level in enumerate(dict.fromkeys(found))}
            else:
                values[name] = np.sort(np.concatenate([table.present_numbers(name) for table in tables]))
        return cls(tuple(names), sum(map(len, tables)), levels, values)

    def select_variables(self, names: Sequence[str]) -> GowerDistance:
        """Return the distance by some of the variables, with the same ranks."""
        return replace(self, names=tuple(names))

    @property
    def unit_distance(self) -> float:
        """Return the largest distance by one variable, in half ranks."""
        return 2.0 * self.record_count

    def record_places(self, data: Microdata) -> Floats:
        """Return the place or level of each record by each variable, (n, d): -1 for a missing value, -2 for a level
        that no table has.
        """
        columns = [self.variable_places(data, name) for name in self.names]
        return np.stack(columns, axis=1) if columns else np.zeros((len(data), 0))

    def variable_places(self, data: Microdata, name: str) -> Floats:
        """Return the place or level of each record by one variable, (n,)."""
        return self._level_numbers(data, name) if name in self.levels else self._number_places(data, name)

    def _level_numbers(self, data: Microdata, name: str) -> Floats:
        """Return the level of each record by a variable with levels, (n,)."""
        column = _categorical_values(data, name)
        numbers = np.array([self.levels[name].get(str(level), _UNKNOWN) for level in column.categories], dtype=float)
        return np.where(column.codes < 0, _MISSING, np.append(numbers, _MISSING)[column.codes])

    def _number_places(self, data: Microdata, name: str) -> Floats:
        """Return the place of each record by a number variable, (n,)."""
        if data.schema[name].kind.has_levels:
            raise NotComputable(_MEANS.format(name))
        own = data.numbers(name)
        if not len(self.values[name]):
            return np.where(np.isnan(own), _MISSING, 0.0)
        scale, values, middle = self._places_of_values[name]
        # Divided by a power of two, differences of the largest doubles do not overflow.
        place = np.interp(own / scale, values, middle, left=0.0, right=self.unit_distance)
        # Multiples of 2^-20 add up exactly: equal distances are equal in whatever order variables and records come.
        return np.where(np.isnan(own), _MISSING, np.rint(place * _GRAIN) / _GRAIN)

    @cached_property
    def _places_of_values(self) -> Mapping[str, tuple[float, Floats, Floats]]:
        """Return for each number variable a divisor, its distinct values divided by that, and their places."""
        found = {}
        for name, known in self.values.items():
            if len(known):
                values, counts = np.unique(known, return_counts=True)
                scale = float(column_scales(values)) * 2
                middle = (2 * np.cumsum(counts) - counts) * (self.record_count / len(known))
                found[name] = scale, values / scale, np.asarray(middle, dtype=np.float64)
        return found

    def pairwise_distances(self, own: Floats, other: Floats) -> Floats:
        """Return the distances (q, r) between records at places (q, d) and (r, d)."""
        return self._total(
            ((own[:, k, None], other[None, :, k]) for k in range(len(self.names))), (len(own), len(other))
        )

    def pair_distances(self, own: Floats, other: Floats, rows: Integers, columns: Integers) -> Floats:
        """Return the distances (p,) of pairs of records: ``rows`` (p,) among places (q, d), ``columns`` (p,) among (r,
        d).
        """
        return self._total(((own[rows, k], other[columns, k]) for k in range(len(self.names))), (len(rows),))

    def _total(self, sides: Iterable[tuple[Floats, Floats]], shape: tuple[int, ...]) -> Floats:
        """Return the sum of the distances by all variables, whose values on both ``sides`` are broadcast to the shape."""
        total, gap = np.zeros(shape), np.empty(shape)
        for name, (a, b) in zip(self.names, sides, strict=True):
            lacks = a.min(initial=0) < 0 or b.min(initial=0) < 0
            total += variable_distances(
                a, b, gap, has_levels=name in self.levels, most=self.unit_distance, may_be_missing=bool(lacks)
            )
        return total


def _categorical_values(data: Microdata, name: str) -> pd.Categorical:
    """Return the levels of a variable. Raises NotComputable for class means of levels."""
    column = data.column(name)
    if not data.schema[name].kind.has_levels:
        raise NotComputable(_MEANS.format(name))
    return cast("pd.Categorical", column.array)


@dataclass(frozen=True, eq=False)
class SubsetGowerDistances:
    """Gower distances of many pairs of records by subsets of the d variables of ``gower``.

    gower: distance by all variables
    levelled: whether each variable has levels, (d,)
    """

    gower: GowerDistance
    levelled: Booleans

    @classmethod
    def from_tables(cls, tables: Sequence[Microdata], names: Sequence[str]) -> SubsetGowerDistances:
        """Build distances from the ranks that values have in these tables together. Raises NotComputable like
        ``GowerDistance.from_tables``.
        """
        return cls.from_gower(GowerDistance.from_tables(tables, names))

    @classmethod
    def from_gower(cls, gower: GowerDistance) -> SubsetGowerDistances:
        """Build distances with the ranks of another distance."""
        return cls(gower, np.array([name in gower.levels for name in gower.names], dtype=np.bool_))

    def scaled_places(self, data: Microdata) -> Singles:
        """Return the level or the place, up to ``UNIT``, of each record as whole numbers, (n, d); below 0 where a value
        is missing or unknown.
        """
        return self.round_places(self.gower.record_places(data))

    def round_places(self, places: Floats) -> Singles:
        """Return places of ``gower``, (n, d), scaled to ``UNIT`` and rounded."""
        number = np.where(places < 0, places, np.rint(places * (UNIT / self.gower.unit_distance)))
        return np.where(self.levelled, places, number).astype(np.float32)

    def level_codes(self, *sides: Singles) -> list[Codes]:
        """Return the levels of records (n, d) on each side in the smallest type that holds all of them, (l, n) each."""
        levels = [side.T[self.levelled] + 2 for side in sides]
        most = max((int(one.max(initial=0)) for one in levels), default=0)
        return [np.ascontiguousarray(one, dtype=np.min_scalar_type(most)) for one in levels]

    def iterate_blocks(self, own: Singles, other: Singles, subsets: Booleans) -> Iterator[tuple[slice, int, Singles]]:
        """Yield the distances of records (q, d) to others (r, d) by each subset (s, d) of the variables, in blocks of
        records.

        Each block is (rows, number of the subset, distances (rows, r)); a variable adds at most 1. The array is
        overwritten by the next block.
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
            # Levels that differ are counted in bytes, which is several times faster than to add their distances.
            for (a, b), byte in zip(levels, differ, strict=True):
                np.not_equal(a[rows, None], b, out=byte[:size].reshape(shape).view(np.bool_))
            for (c, d), one, lack in zip(numbers, apart, lacks, strict=True):
                variable_distances(
                    c[rows, None], d, one[:size].reshape(shape), has_levels=False, most=1.0, may_be_missing=bool(lack)
                )
            for k, chosen in enumerate(subsets):
                count[:size] = 0
                for at in np.flatnonzero(chosen[self.levelled]):
                    np.add(count[:size], differ[at, :size], out=count[:size])
                np.copyto(total[:size], count[:size])
                for at in np.flatnonzero(chosen[~self.levelled]):
                    np.add(total[:size], apart[at, :size], out=total[:size])
                yield rows, k, total[:size].reshape(shape)
