"""Measures by unit: two units are equal where their records are, in any order.

A measure of records is one of units where keys of units take the place of keys of rows: the composition of a unit, the
multiset of its records' keys, is compared as one value. Sums and maxima over the records of a unit do not show that
households were copied whole; the composition does. Rows by unit have the parameter ``by = "unit"``; those of the units
of one size have ``unit_size`` too, explain the row of all units, and are judged only where a threshold names a size.

With an exact amount every unit differs from all others, and a household is not found that was copied but for its income.
So units are compared on sets of variables too (``columns``): those without numbers, all but one, the quasi-identifiers,
and those of the unit with its number of records. A limit applies to each, so that the worst decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..adversary.cells import unit_keys
from ..data.arrays import Booleans, Integers
from ..data.bits import Keys, mix_bits
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..data.units import Units
from ..methods.results import Estimate
from ..methods.rows import UNIT_SIZE
from ..wording import join_names

BY_UNIT: Mapping[str, Any] = {"by": "unit"}
COLUMNS = "columns"
"""The parameter of rows about units that are compared on some of the variables."""
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


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """Units of two tables, compared on sets of variables.

    cells: mixed codes of each variable, (n,) and (m,), equal where the values of both tables are
    units: units of the confidential and of the released records
    """

    cells: Mapping[str, tuple[Keys, Keys]]
    units: UnitsOfBothTables

    @classmethod
    def from_codes(cls, codes: Mapping[str, tuple[Integers, Integers]], units: UnitsOfBothTables) -> ColumnSets:
        """Create the sets from codes of each variable, (n,) and (m,), equal where values are."""
        cells = {}
        for number, (name, (ours, theirs)) in enumerate(codes.items(), 1):
            first, second = (mix_bits(own.astype(np.uint64) + np.uint64(number << 48)) for own in (ours, theirs))
            cells[name] = first, second
        return cls(cells, units)

    def sets(self, schema: Schema) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
        """Yield the name of each kind of set with its sets, none of which has all variables, and no set twice."""
        names = tuple(self.cells)
        known = {frozenset(names), frozenset()}
        kinds: dict[str, list[tuple[str, ...]]] = {
            "without numbers": [tuple(name for name in names if schema[name].kind.has_levels)],
            "all but one": [tuple(name for name in names if name != out) for out in names] if len(names) > 2 else [],
            "quasi-identifiers": [tuple(name for name in names if schema[name].role is Role.QUASI_IDENTIFIER)],
            "of the unit, and its size": [tuple(name for name in names if name in schema.unit_level)],
        }
        for kind, sets in kinds.items():
            chosen = [one for one in sets if frozenset(one) not in known]
            known.update(map(frozenset, chosen))
            if chosen:
                yield kind, chosen

    def classes(self, names: Sequence[str]) -> tuple[Integers, Integers]:
        """Return the class of each unit of both tables on some variables, (U,) and (V,), equal for equal units."""
        sides = zip(*(self.cells[name] for name in names), strict=True)
        both = zip(sides, (self.units.confidential, self.units.released), strict=True)
        keys = [unit_keys(np.add.reduce(list(cells)), of) for cells, of in both]
        found = pd.factorize(np.concatenate(keys))[0].astype(np.int64)
        return found[: len(keys[0])], found[len(keys[0]) :]

    def left_out(self, names: Sequence[str]) -> str:
        """Return the variables that a set lacks, in words."""
        return f"without {join_names([name for name in self.cells if name not in names])}"


def not_computed_by_unit(names: Iterable[str], reason: str) -> tuple[Estimate, ...]:
    """Return a row by unit of each output, without a value and with the reason."""
    return tuple(Estimate.not_computed(name, reason, **BY_UNIT) for name in names)
