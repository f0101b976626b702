"""Distinct combinations of values that records have of some variables: what depends on those alone is computed once for each.

A table of ten million records of a region, a sex and an age has some thousands. Combinations are numbered by keys, so that neither a
row of values nor
a sort of records is needed where levels are few.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.arrays import Floats, Integers
from ..data.blocks import row_blocks
from ..data.microdata import Microdata

_LARGEST_KEY = 2**62
_KEYS_A_RECORD = 4
"""Number of possible keys for each record up to which a table counts them; more are sorted."""


@dataclass(frozen=True, eq=False)
class DistinctRecords:
    """Distinct combinations of values, d of them, sorted by value in the order of the variables.

    first: first record of each, (d,)
    combination_of: combination of each record, (n,)
    """

    first: Integers
    combination_of: Integers

    def __len__(self) -> int:
        return len(self.first)

    def representatives(self, data: Microdata) -> Microdata:
        """Return a record of each combination, (d,), without weights."""
        return Microdata(data.schema, data.frame.iloc[self.first].reset_index(drop=True), data.origin)

    def sum_by_combination(self, values: Floats | None = None) -> Floats:
        """Sum ``values`` (n,) over the records of each combination, (d,); without values, count the records."""
        found = np.zeros(len(self))
        for rows in row_blocks(len(self.combination_of)):
            found += np.bincount(self.combination_of[rows], None if values is None else values[rows], len(self))
        return found


def distinct_records(data: Microdata, columns: Iterable[str]) -> DistinctRecords:
    """Find the combinations of these variables' values; a missing value is one more, after all others. Without variables all records are
    alike.
    """
    key, size = np.zeros(len(data), dtype=np.int64), 1
    for name in dict.fromkeys(columns):
        codes, count = _value_codes(data, name)
        if size * count > _LARGEST_KEY:
            key, size = dense_ranks(key, size)
        key *= count
        key += codes
        size *= count
        del codes
        if size > _KEYS_A_RECORD * len(data):
            key, size = dense_ranks(key, size)
    of, size = dense_ranks(key, size)
    first = np.empty(size, dtype=np.int64)
    first[of[::-1]] = np.arange(len(of), dtype=np.int64)[::-1]
    return DistinctRecords(first, of)


def dense_ranks(key: Integers, size: int) -> tuple[Integers, int]:
    """Return the place of each key (n,), from 0 to ``size`` - 1, among those that occur; and how many do."""
    if size > _KEYS_A_RECORD * len(key):
        found, places = np.unique(key, return_inverse=True)
        return places.astype(np.int64, copy=False), len(found)
    present = np.zeros(size, dtype=np.bool_)
    present[key] = True
    place = np.cumsum(present) - 1
    return place[key], int(place[-1]) + 1 if size else 0


def _value_codes(data: Microdata, name: str) -> tuple[Integers, int]:
    """Return the place of each value among those of the variable, ascending, (n,), and how many there are, a missing one the last."""
    if data.schema[name].kind.has_levels:
        values = data.column(name).cat
        codes, count = values.codes.to_numpy().astype(np.int64), len(values.categories)
    else:
        places, found = pd.factorize(data.numbers(name), sort=True)
        codes, count = places.astype(np.int64), len(found)
    codes[codes < 0] = count
    return codes, count + 1
