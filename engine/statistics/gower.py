"""How far records of mixed types lie apart: variable by variable (Gower 1971), numbers by their ranks.

A variable with levels counts 1 where two records differ. A number or a date counts the difference of their places, a place
being the share of the values of given tables that lie below, and half of those that are equal; between two neighbouring values it is
interpolated. Whatever its unit, its scale and its tails are, a variable counts at most 1, so that none rules the others. A missing value
is 0 away from a missing one, and 1 from any other.

Distances are told in half ranks, of which 2N are 1 where the tables have N records. Places are rounded to 2^-20 of these, so that sums are exact:
equal distances are equal, in whatever order variables and records come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import pandas as pd

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..errors import NotComputable
from .columns import column_scales

_GRAIN = 2.0**20
_MISSING = -1.0
_UNKNOWN = -2.0
_AT_ONCE = 2_000_000
_MEANS = '"{}" is released as class means, which are not among its levels'


@dataclass(frozen=True, eq=False)
class Gower:
    """The distance by d variables, in half ranks of ``records``: ``levels`` number those that have levels, ``values`` are the numbers of the others, ascending."""

    names: tuple[str, ...]
    records: int
    levels: Mapping[str, Mapping[str, int]]
    values: Mapping[str, Floats]

    @classmethod
    def of(cls, tables: Sequence[Microdata], names: Sequence[str]) -> Gower:
        """With the places that values have in these tables together.

        Raises:
            NotComputable: where a table has labels of a generalisation, or class means of levels.
        """
        levels: dict[str, dict[str, int]] = {}
        values: dict[str, Floats] = {}
        for name in names:
            if tables[0].schema[name].kind.has_levels:
                found = (str(level) for table in tables for level in _levels(table, name).categories)
                levels[name] = {level: k for k, level in enumerate(dict.fromkeys(found))}
            else:
                values[name] = np.sort(np.concatenate([table.present_numbers(name) for table in tables]))
        return cls(tuple(names), sum(map(len, tables)), levels, values)

    def of_some(self, names: Sequence[str]) -> Gower:
        """Return the distance by some of the variables, with the same places."""
        return replace(self, names=tuple(names))

    @property
    def unit(self) -> float:
        """The half ranks that a variable counts at most."""
        return 2.0 * self.records

    def places(self, data: Microdata) -> Floats:
        """Records as places and numbers of levels, (n, d): -1 where a value is missing, -2 for a level that no table has."""
        columns = [self.places_of(data, name) for name in self.names]
        return np.stack(columns, axis=1) if columns else np.zeros((len(data), 0))

    def places_of(self, data: Microdata, name: str) -> Floats:
        """Return the places of the records in one variable, (n,)."""
        return self._level(data, name) if name in self.levels else self._place(data, name)

    def _level(self, data: Microdata, name: str) -> Floats:
        column = _levels(data, name)
        numbers = np.array([self.levels[name].get(str(level), _UNKNOWN) for level in column.categories], dtype=float)
        return np.where(column.codes < 0, _MISSING, np.append(numbers, _MISSING)[column.codes])

    def _place(self, data: Microdata, name: str) -> Floats:
        if data.schema[name].kind.has_levels:
            raise NotComputable(_MEANS.format(name))
        own = data.numbers(name)
        if not len(self.values[name]):
            return np.where(np.isnan(own), _MISSING, 0.0)
        scale, values, middle = self._middles[name]
        place = np.interp(own / scale, values, middle, left=0.0, right=self.unit)
        return np.where(np.isnan(own), _MISSING, np.rint(place * _GRAIN) / _GRAIN)

    @cached_property
    def _middles(self) -> Mapping[str, tuple[float, Floats, Floats]]:
        """Of each number by what values are divided, and its different values, divided, with their places."""
        found = {}
        for name, known in self.values.items():
            if len(known):
                values, counts = np.unique(known, return_counts=True)
                scale = float(column_scales(values)) * 2
                middle = (2 * np.cumsum(counts) - counts) * (self.records / len(known))
                found[name] = scale, values / scale, np.asarray(middle, dtype=np.float64)
        return found

    def apart(self, own: Floats, other: Floats) -> Floats:
        """Distances (q, r) of records at places (q, d) and (r, d), the second of them of the tables."""
        total = np.zeros((len(own), len(other)))
        for k, name in enumerate(self.names):
            a, b = own[:, k, None], other[None, :, k]
            if name in self.levels:
                total += self.unit * (a != b)
                continue
            gap = np.abs(a - b)
            if a.min(initial=0) < 0 or b.min(initial=0) < 0:
                gap = np.where((a < 0) | (b < 0), self.unit * ((a < 0) != (b < 0)), gap)
            total += gap
        return total

    def pairs(self, own: Floats, other: Floats, rows: Integers, columns: Integers) -> Floats:
        """``apart`` of pairs of records, (p,): ``rows`` (p,) of places (q, d), ``columns`` (p,) of places (r, d)."""
        total = np.zeros(len(rows))
        for k, name in enumerate(self.names):
            a, b = own[rows, k], other[columns, k]
            gap = np.where((a < 0) | (b < 0), self.unit * ((a < 0) != (b < 0)), np.abs(a - b))
            total += self.unit * (a != b) if name in self.levels else gap
        return total

    def blocks(self, own: Floats, other: Floats) -> Iterator[tuple[slice, Floats]]:
        """``apart`` in rows: which of ``own``, and their distances (some, r)."""
        step = max(_AT_ONCE // max(len(other), 1), 1)
        for start in range(0, len(own), step):
            rows = slice(start, start + step)
            yield rows, self.apart(own[rows], other)


def _levels(data: Microdata, name: str) -> pd.Categorical:
    column = data.column(name)
    if not data.schema[name].kind.has_levels:
        raise NotComputable(_MEANS.format(name))
    return cast("pd.Categorical", column.array)
