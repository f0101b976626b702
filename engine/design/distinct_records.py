"""The distinct combinations of values that records have of some variables: what depends on those alone is computed once for each.

A table of ten million records of a region, a sex and an age has some thousands. Combinations are numbered by keys, so that neither a row of values nor
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
"""So many possible keys for each record are told by a table of them; more, by sorting."""


@dataclass(frozen=True, eq=False)
class DistinctRecords:
    """d combinations, sorted by value in the order of the variables: ``first`` (d,) is the first record of each, ``of`` (n,) the combination of each record."""

    first: Integers
    of: Integers

    def __len__(self) -> int:
        return len(self.first)

    def table(self, data: Microdata) -> Microdata:
        """A record of each combination, (d,), without weights."""
        return Microdata(data.schema, data.frame.iloc[self.first].reset_index(drop=True), data.origin)

    def sums(self, values: Floats | None = None) -> Floats:
        """The sum of ``values`` (n,) over the records of each combination, (d,); how many those are without."""
        found = np.zeros(len(self))
        for rows in row_blocks(len(self.of)):
            found += np.bincount(self.of[rows], None if values is None else values[rows], len(self))
        return found


def distinct_records(data: Microdata, columns: Iterable[str]) -> DistinctRecords:
    """The combinations of these variables' values; a missing value is one more, after all others. Without variables all records are alike."""
    key, size = np.zeros(len(data), dtype=np.int64), 1
    for name in dict.fromkeys(columns):
        codes, count = _codes(data, name)
        if size * count > _LARGEST_KEY:
            key, size = ranks(key, size)
        key *= count
        key += codes
        size *= count
        del codes
        if size > _KEYS_A_RECORD * len(data):
            key, size = ranks(key, size)
    of, size = ranks(key, size)
    first = np.empty(size, dtype=np.int64)
    first[of[::-1]] = np.arange(len(of), dtype=np.int64)[::-1]
    return DistinctRecords(first, of)


def ranks(key: Integers, size: int) -> tuple[Integers, int]:
    """The place of each key (n,), from 0 to ``size`` - 1, among those that occur; and how many do."""
    if size > _KEYS_A_RECORD * len(key):
        found, places = np.unique(key, return_inverse=True)
        return places.astype(np.int64, copy=False), len(found)
    present = np.zeros(size, dtype=np.bool_)
    present[key] = True
    place = np.cumsum(present) - 1
    return place[key], int(place[-1]) + 1 if size else 0


def _codes(data: Microdata, name: str) -> tuple[Integers, int]:
    """The place of each value among those of the variable, ascending, (n,), and how many there are, a missing one the last."""
    if data.schema[name].kind.has_levels:
        values = data.column(name).cat
        codes, count = values.codes.to_numpy().astype(np.int64), len(values.categories)
    else:
        places, found = pd.factorize(data.numbers(name), sort=True)
        codes, count = places.astype(np.int64), len(found)
    codes[codes < 0] = count
    return codes, count + 1
