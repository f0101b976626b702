"""Measures by unit: two units are equal where their records are, in any order.

A measure of records is one of units where keys of units take the place of keys of rows: the composition of a unit, the
multiset of its records' keys, is compared as one value. Sums and maxima over the records of a unit do not show that
households were copied whole; the composition does. Rows by unit have the parameter ``by = "unit"``; those of the units
of one size have ``unit_size`` too, explain the row of all units, and are judged only where a threshold names a size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..adversary.cells import unit_keys
from ..data.arrays import Booleans, Integers
from ..data.bits import mix_bits
from ..data.microdata import Microdata
from ..data.units import Units
from ..methods.results import Estimate
from ..methods.rows import UNIT_SIZE

BY_UNIT: Mapping[str, Any] = {"by": "unit"}
BY_RECORD = (("by", "record"),)
"""What a row says that does not say by what it counts."""
SIZES = ((1, 1, "1"), (2, 2, "2"), (3, 3, "3"), (4, np.inf, "4 and more"))
"""Smallest and largest number of records of the units that are shown together, and its name."""


@dataclass(frozen=True, eq=False)
class UnitsOfBothTables:
    """Units of the confidential and of the released records."""

    confidential: Units
    released: Units

    @classmethod
    def from_tables(cls, confidential: Microdata, released: Microdata) -> UnitsOfBothTables | None:
        """Return the units of both tables; None where every confidential record is a unit.

        Raises NotComputable if the release does not say which records are of one unit.
        """
        if confidential.units is None:
            return None
        return cls(confidential.units, released.require_units())

    def parts(self) -> Iterator[UnitPart]:
        """Yield all units, then the units of each size that confidential ones have."""
        ours, theirs = self.confidential.sizes, self.released.sizes
        yield UnitPart(BY_UNIT, np.ones(len(ours), dtype=np.bool_), np.ones(len(theirs), dtype=np.bool_))
        for least, most, name in SIZES:
            part = UnitPart(
                {**BY_UNIT, UNIT_SIZE: name}, (least <= ours) & (ours <= most), (least <= theirs) & (theirs <= most)
            )
            if part.confidential.any():
                yield part


@dataclass(frozen=True, eq=False)
class UnitPart:
    """Units that a row is about.

    params: of the row
    confidential, released: whether each unit is one of them, (U,) and (V,)
    """

    params: Mapping[str, Any]
    confidential: Booleans
    released: Booleans

    @property
    def is_whole(self) -> bool:
        """Return whether these are all units, not those of one size."""
        return UNIT_SIZE not in self.params

    def share(self, name: str, found: Booleans, among: Booleans, remark: str = "", **params: Any) -> Estimate:
        """Return the share of some units (``among``) that were ``found``, both (U,), as an estimate."""
        count = int(among.sum())
        if not count:
            return Estimate.not_computed(name, "the release has no unit of this size", **self.params, **params)
        value = float(np.sum(found & among)) / count
        return Estimate(name, value, reason=remark, params={**self.params, **params})

    def count(self, name: str, found: Booleans, among: Booleans, remark: str = "") -> Estimate:
        """Return the number of some units (``among``) that were ``found``, both (U,), as an estimate."""
        return Estimate(name, float(np.sum(found & among)), unit="units", reason=remark, params=self.params)


def composition_classes(classes: Sequence[Integers], units: Sequence[Units]) -> list[Integers]:
    """Return the class of each unit of one or several tables, (U,) each: equal for units of equal records.

    ``classes`` (n,) are those of the records of each table, equal in all tables for equal records.
    """
    keys = [unit_keys(mix_bits(own.astype(np.uint64)), of) for own, of in zip(classes, units, strict=True)]
    found = pd.factorize(np.concatenate(keys))[0].astype(np.int64)
    return np.split(found, np.cumsum([len(own) for own in keys])[:-1])


def not_computed_by_unit(names: Iterable[str], reason: str) -> tuple[Estimate, ...]:
    """Return a row by unit of each output, without a value and with the reason."""
    return tuple(Estimate.not_computed(name, reason, **BY_UNIT) for name in names)
