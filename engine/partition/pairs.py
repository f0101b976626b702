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
from .equivalence_classes import equivalence_classes
from .hierarchies import ROOT

__all__ = ["CATEGORIES", "NUMBERS", "Pairs", "minimum", "quasi_identifiers"]

Floats = NDArray[np.float64]

NUMBERS = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.BINARY)
CATEGORIES = (Kind.CATEGORICAL, Kind.ORDINAL)
MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Both tables; ``rows`` (k,) are the original rows of the released records, the n - k others are suppressed."""

    original: Microdata
    released: Microdata
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, original: Microdata, released: Microdata) -> Pairs:
        """The pairs, by the classes of an anonymised release, else record by record. NotComputable where neither tells."""
        released.require_linked()
        n = len(released) if released.classes is None else len(released.classes)
        if n != len(original) or len(released.records) != len(released):
            reason = f"the release has {len(released):,} of {len(original):,} records and does not say which"
            raise NotComputable(reason)
        return cls(original, released, released.records)

    @property
    def kept(self) -> float:
        """|A| / |O|."""
        return len(self.rows) / len(self.original)

    def numbers(self, name: str) -> tuple[Floats, Floats]:
        """Original and released numbers of a variable, both (k,), NaN where missing. NotComputable without numbers."""
        self._require(name)
        if self.released.schema[name].kind.has_levels:
            return self.original.numbers(name)[self.rows], self._codes(name)
        return self.original.numbers(name)[self.rows], self.released.numbers(name)

    def labels(self, name: str) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Original (n,) and released (k,) values of a variable as text; missing is a value of its own."""
        self._require(name)
        return _labels(self.original.frame[name]), _labels(self.released.frame[name])

    def hidden(self, name: str) -> NDArray[np.bool_]:
        """Which released values (k,) of a variable are generalised to the root."""
        if name not in self.released.generalised:
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(self.released.frame[name].astype("object").eq(ROOT).fillna(value=False), dtype=np.bool_)

    def classes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The equivalence class of each original record, (n,), -1 where it is suppressed.

        Those that the release says; where it says none, released records that are alike in ``names``.
        """
        if self.released.classes is not None:
            return self.released.classes
        columns = [self.released.frame[name] for name in names if name in self.released.frame.columns]
        return equivalence_classes(columns, len(self.released))

    def _require(self, name: str) -> None:
        if name not in self.released.frame.columns:
            raise NotComputable("the release does not have this variable")
        if not len(self.rows):
            raise NotComputable("every record is suppressed")

    def _codes(self, name: str) -> Floats:
        column = self.original.column(name)
        if not self.original.schema[name].kind.has_levels:
            raise NotComputable("the release has intervals of this variable, not numbers")
        labels = self.released.frame[name].astype("object")
        codes = column.cat.categories.get_indexer(pd.Index(labels))
        if ((codes < 0) & labels.notna()).any():
            raise NotComputable("the release generalises values of this variable, which are then no numbers")
        return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _labels(column: pd.Series) -> NDArray[np.object_]:
    text = column.astype("str").astype("object").where(column.notna(), MISSING)
    return np.asarray(text, dtype=object)


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
