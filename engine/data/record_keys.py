"""Keys of records as numbers, block by block: records of any block, in either table, have equal numbers where they are
equal on the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from .arrays import Floats, Integers
from .microdata import Microdata
from .record_hashes import hash_records


@dataclass(frozen=True, slots=True)
class KeyNumbers:
    """Variables of a key, and the places of their levels among those of all tables.

    names: variables
    levels: levels of all tables together, of each variable that has levels
    """

    names: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_tables(cls, names: Sequence[str], tables: Sequence[Microdata]) -> Self:
        """Return the numbering of the levels of tables, whose records are not looked at."""
        has_levels = [name for name in names if tables[0].schema[name].kind.has_levels]
        levels = {
            name: tuple(dict.fromkeys(str(level) for one in tables for level in one.column(name).cat.categories))
            for name in has_levels
        }
        return cls(tuple(names), levels)

    def columns_of(self, data: Microdata, names: Sequence[str] | None = None) -> list[Floats]:
        """Return some variables of a block as numbers, (n,) each, levels by their places; NaN for a missing value."""
        return [self._numbers_of(data, name) for name in (self.names if names is None else names)]

    def _numbers_of(self, data: Microdata, name: str) -> Floats:
        values = data.numbers(name)
        if name not in self.levels:
            return values
        place = {level: i for i, level in enumerate(self.levels[name])}
        codes = np.array([*(place[str(level)] for level in data.column(name).cat.categories), np.nan])
        return codes[np.where(np.isnan(values), -1, values).astype(np.int64)]


def buckets_of_keys(columns: Sequence[Floats], number: int, records: int) -> Integers:
    """Return the bucket of each record, (n,), of a number of them: equal keys, columns (n,) each, are in one bucket."""
    hashes = hash_records(columns, slice(0, records))
    return (hashes % np.uint64(max(1, number))).astype(np.int64)
