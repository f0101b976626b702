"""Tables of several releases over one list of people: who is in both is one record of all of them.

A person whose values were revised is in the cells of the old values in one release, and in those of the new ones in the
other. Whoever is in one release alone is in the cells of that release alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..tables.declared_table import DeclaredTable, Grouping, TableVariable
from ..tables.system import EMPTY, TableSystem
from .declared_tables import declare_tables
from .table_sections import PlannedTable


@dataclass(frozen=True, eq=False)
class ReleasedTables:
    """The tables that an earlier release printed.

    release: name of the release, such as ``run 3``
    data: the records that they are of
    tables: the tables
    names: columns by which its people are found among others; empty where the records are the same, in the same order
    shown: for each table the places that it printed, an axis a variable
    """

    release: str
    data: Microdata
    tables: tuple[PlannedTable, ...]
    names: tuple[str, ...]
    shown: tuple[Booleans, ...]


@dataclass(frozen=True, eq=False)
class JoinedTables:
    """Tables of several releases over all of their people; the first ones are the records of this release.

    declared: tables of earlier releases
    shown: for each of them the places that it printed, an axis a variable
    number: number of people
    units: number of the unit of each, (number,); None where each is one
    """

    declared: tuple[DeclaredTable, ...]
    shown: tuple[Booleans, ...]
    number: int
    units: Integers | None


def join_released_tables(
    data: Microdata, tables: Sequence[PlannedTable], earlier: Sequence[ReleasedTables]
) -> JoinedTables:
    """Return the tables of earlier releases over the records of this one and all others that they have. Raises BadInput."""
    people = _People(data)
    places = [people.find_records(one) for one in earlier]
    unit = next((one.unit for one in tables if one.unit), data.schema.unit) if data.units is not None else None
    unit = unit or next((one.unit for one in tables if one.unit), None)
    units = None if unit is None else _join_units(data, unit, earlier, places, people.number)
    declared = list[DeclaredTable]()
    for one, where in zip(earlier, places, strict=True):
        for own in declare_tables(one.data, one.tables, one.release):
            declared.append(_spread_table(own, where, people.number, units))
    shown = tuple(places for one in earlier for places in one.shown)
    return JoinedTables(tuple(declared), shown, people.number, units)


def widen_tables(declared: Sequence[DeclaredTable], records: int, joined: JoinedTables) -> list[DeclaredTable]:
    """Return tables over the ``records`` of this release as tables over all people of the joined ones."""
    return [_spread_table(one, np.arange(records), joined.number, joined.units) for one in declared]


def frozen_cells(system: TableSystem, joined: JoinedTables) -> Integers:
    """Return the cells of a system that the earlier releases printed, ascending."""
    found = set[int]()
    for declared, shown in zip(joined.declared, joined.shown, strict=True):
        printed = next(one for one in system.tables if (one.name, one.release) == (declared.name, declared.release))
        cells = printed.cells[shown]
        found.update(cells[cells != EMPTY].tolist())
    return np.array(sorted(found), dtype=np.int64)


class _People:
    """All people of several tables, numbered as they are found; the first are the records of one of them."""

    def __init__(self, data: Microdata) -> None:
        self.data, self.number = data, len(data)
        self._known = dict[tuple[str, ...], dict[tuple[tuple[str, ...], int], int]]()

    def find_records(self, released: ReleasedTables) -> Integers:
        """Return the number of the person of each record of another table, (m,); new people get new numbers."""
        if not released.names:
            return np.arange(len(released.data))
        names = released.names
        if names not in self._known:
            self._known[names] = {key: at for at, key in enumerate(_row_keys(self.data, names))}
        known, found = self._known[names], np.empty(len(released.data), dtype=np.int64)
        for at, key in enumerate(_row_keys(released.data, names)):
            if key not in known:
                known[key] = self.number
                self.number += 1
            found[at] = known[key]
        return found


def _row_keys(data: Microdata, names: Sequence[str]) -> list[tuple[tuple[str, ...], int]]:
    """Return the values of each record in some columns, and how many records before it have the same."""
    seen = dict[tuple[str, ...], int]()
    keys = list[tuple[tuple[str, ...], int]]()
    for row in zip(*(data.frame[name].astype(object).map(str).tolist() for name in names), strict=True):
        keys.append((row, seen.get(row, 0)))
        seen[row] = seen.get(row, 0) + 1
    return keys


def _join_units(
    data: Microdata, unit: str, earlier: Sequence[ReleasedTables], places: Sequence[Integers], number: int
) -> Integers:
    """Return the number of the unit of each person, (number,): by the values of a column, where there is one."""
    found = np.full(number, -1, dtype=np.int64)
    known = dict[str, int]()
    everything = [(data, np.arange(len(data))), *zip((one.data for one in earlier), places, strict=True)]
    for table, where in everything:
        if unit not in table.frame:
            continue
        values, missing = table.frame[unit].astype(object).map(str).tolist(), table.missing_mask(unit)
        for at, value, lacking in zip(where.tolist(), values, missing.tolist(), strict=True):
            if found[at] < 0 and not lacking:
                found[at] = known.setdefault(value, len(known))
    # Who has no number is a unit of their own.
    alone = np.flatnonzero(found < 0)
    found[alone] = len(known) + np.arange(len(alone))
    return found


def _spread_table(table: DeclaredTable, where: Integers, number: int, units: Integers | None) -> DeclaredTable:
    """Return a table over other records: record i is number ``where[i]`` of so many, the others are not in it."""
    inside = np.zeros(number, dtype=np.bool_)
    inside[where] = True if table.where is None else table.where
    return replace(
        table,
        variables=tuple(
            TableVariable(
                own.name,
                tuple(Grouping(one.name, _spread(one.codes, where, number, -1), one.labels) for one in own.groupings),
                own.total,
            )
            for own in table.variables
        ),
        value=None if table.value is None else _spread_numbers(table.value, where, number),
        weights=None if table.weights is None else _spread_numbers(table.weights, where, number),
        units=units,
        where=None if inside.all() else inside,
    )


def _spread(codes: Integers, where: Integers, number: int, rest: int) -> Integers:
    found = np.full(number, rest, dtype=np.int64)
    found[where] = codes
    return found


def _spread_numbers(values: Floats, where: Integers, number: int) -> Floats:
    found = np.zeros(number)
    found[where] = values
    return found
