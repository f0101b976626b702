"""A table as a recipe declares it: the variables of its rows and columns, their groupings, and the amount that it sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Floats, Integers

TOTAL = ""
"""Label of all groups together, where a cell is named."""
COUNT = "count"
"""Measure of tables without a value."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """A division of records into groups, such as a level of a hierarchy.

    name: name among the groupings of its variable; the variable's own values have none
    codes: group of each record, -1 for a record of no group, (n,)
    labels: name of each group
    """

    name: str
    codes: Integers
    labels: tuple[str, ...]

    @classmethod
    def from_values(cls, values: Any, name: str = "") -> Grouping:
        """Build from a label of each record, (n,); the groups are in the order of their labels."""
        labels, codes = np.unique(np.asarray(values).astype(str), return_inverse=True)
        return cls(name, codes.astype(np.int64).ravel(), tuple(labels.tolist()))


@dataclass(frozen=True, eq=False)
class TableVariable:
    """A variable of a table with everything that the table has rows for.

    name: name of the variable
    groupings: its values, levels of its hierarchy, second groupings; any set, nested or not
    total: whether the table has all records together too
    """

    name: str
    groupings: tuple[Grouping, ...]
    total: bool = True

    @classmethod
    def from_values(
        cls, name: str, values: Any, levels: Mapping[str, Any] | None = None, total: bool = True
    ) -> TableVariable:
        """Build from a label of each record, and from its label in other groupings by their names, (n,) each."""
        others = [Grouping.from_values(of_records, key) for key, of_records in (levels or {}).items()]
        return cls(name, (Grouping.from_values(values), *others), total)

    @cached_property
    def options(self) -> tuple[tuple[str, str], ...]:
        """Return grouping and label of all that its axis of a table has: the total first, if any."""
        total = [("", TOTAL)] if self.total else []
        return (*total, *((grouping.name, label) for grouping in self.groupings for label in grouping.labels))


@dataclass(frozen=True, eq=False)
class DeclaredTable:
    """A table to print, or one that was printed, over n records.

    name: name of the table
    variables: what it has rows and columns by; none for a single total
    value: number of each record that it adds up, (n,); None counts records
    measure: name of the value; tables of one measure and one release add up the same numbers
    units: number of the person, household or enterprise group of each record, (n,), the same in all tables; None where
        each record is one, or another table says so
    weights: sampling weight of each record, (n,)
    records: how many records each row stands for, (n,); None for one each
    where: records that it is of, (n,); None for all
    release: name of the release that it belongs to
    """

    name: str
    variables: tuple[TableVariable, ...]
    value: Floats | None = None
    measure: str = COUNT
    units: Integers | None = None
    weights: Floats | None = None
    records: Integers | None = None
    where: Booleans | None = None
    release: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return how many rows it has along each of its variables."""
        return tuple(len(variable.options) for variable in self.variables)
