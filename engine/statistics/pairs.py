"""An original table beside an anonymised one, record by record: what is compared, and the equivalence classes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import NotComputable
from ..microdata import Microdata
from ..results import Estimate
from ..schema import Kind, Role, Schema

__all__ = ["CATEGORIES", "NUMBERS", "Pairs", "minimum", "quasi_identifiers"]

Floats = NDArray[np.float64]

NUMBERS = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.BINARY)
CATEGORIES = (Kind.CATEGORICAL, Kind.ORDINAL)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Both tables; ``rows`` (k,) are the original rows of the released records, the n - k others are suppressed."""

    original: Microdata
    released: Microdata
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, original: Microdata, released: Microdata) -> Pairs:
        """The pairs of a release whose record i is record i of the original. NotComputable where it has lost records."""
        if len(original) != len(released):
            reason = f"the release has {len(released):,} of {len(original):,} records and does not say which"
            raise NotComputable(reason)
        return cls(original, released, np.arange(len(original)))

    @property
    def kept(self) -> float:
        """|A| / |O|."""
        return len(self.rows) / len(self.original)

    def numbers(self, name: str) -> tuple[Floats, Floats]:
        """Original and released numbers of a variable, both (k,). NotComputable where the release has no numbers of it."""
        self._require(name)
        if self.released.schema[name].kind.has_levels:
            return self.original.numbers(name)[self.rows], self._codes(name)
        return self.original.numbers(name)[self.rows], self.released.numbers(name)

    def labels(self, name: str) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Original (n,) and released (k,) values of a variable as text."""
        self._require(name)
        both = self.original.column(name), self.released.column(name)
        first, second = (column.astype("str").astype("object").to_numpy(dtype=object) for column in both)
        return first, second

    def classes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The equivalence class of each original record, (n,), -1 where suppressed: released records alike in ``names``."""
        found = np.full(len(self.original), -1)
        there = [name for name in names if name in self.released.frame.columns]
        whole = np.zeros(len(self.rows), dtype=np.int64)
        found[self.rows] = self.released.frame.groupby(there, observed=True, sort=False).ngroup() if there else whole
        return found

    def _require(self, name: str) -> None:
        if name not in self.released.frame.columns:
            raise NotComputable("the release does not have this variable")
        if not len(self.rows):
            raise NotComputable("every record is suppressed")

    def _codes(self, name: str) -> Floats:
        column = self.original.column(name)
        if not self.original.schema[name].kind.has_levels:
            raise NotComputable("the release has intervals of this variable, not numbers")
        codes = pd.Categorical(self.released.column(name).astype("object"), categories=column.cat.categories).codes
        if (codes < 0).any():
            raise NotComputable("the release generalises values of this variable, which are then no numbers")
        return np.asarray(codes, dtype=np.float64)


def quasi_identifiers(schema: Schema, released: Sequence[str]) -> tuple[str, ...]:
    """The variables of role known; without any, the released ones; without those, all but the identifiers."""
    known = tuple(v.name for v in schema if v.role is Role.KNOWN)
    return known or tuple(released) or tuple(v.name for v in schema if v.role is not Role.IDENTIFIER)


def minimum(measure: str, columns: Sequence[Estimate], nothing_to_lose: Collection[str] = ()) -> Estimate:
    """The smallest of the columns' values (§3.6).

    A column without a value leaves none for the whole, save those of ``nothing_to_lose``: constant in the original.
    """
    missing = [column for column in columns if column.value is None]
    for column in missing:
        if column.target not in nothing_to_lose:
            return Estimate.not_computed(measure, f"{column.target}: {column.reason}")
    values = [column.value for column in columns if column.value is not None]
    if not values:
        return Estimate.not_computed(measure, missing[0].reason if missing else "there is no such variable")
    return Estimate(measure, min(values))
