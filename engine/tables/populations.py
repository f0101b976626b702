"""Cells that no table prints, and that two printed ones give: what one table has and another one leaves out by ``where``.

A table of ages from 15 and one of ages from 16 print two numbers of a region; their difference is those who are 15:

    y_a - y_b = sum of the atoms of a that the second table does not have

wherever the part of a that it has is a cell of it, or a sum of its cells. Such a difference is a cell of the system like
any other, always hidden: where a rule finds it unsafe it must not follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Integers
from .rules import TableRules, find_unsafe_cells
from .system import TOTAL, PrintedTable, TableSystem


@dataclass(frozen=True, eq=False)
class _Population:
    """The records that some tables of one measure are of.

    measure: number of the measure
    inside: atoms that they have, (atoms,)
    names: names of the tables
    variables: the variables of each of them
    """

    measure: int
    inside: Booleans
    names: list[str]
    variables: list[set[str]]


def add_implied_cells(system: TableSystem, rules: TableRules, release: str = "") -> TableSystem:
    """Return a system with the unsafe differences between tables of one release as further cells.

    They stand behind its other cells, and in no table. A system without any is returned as it is.
    """
    from scipy import sparse

    tables = [one for one in system.tables if one.release == release and (one.cells >= 0).any()]
    populations = _list_populations(system, tables)
    if len(populations) < 2:
        return system
    known = {_key_of_atoms(system.atoms_of(cell)) for cell in range(system.cell_count)}
    found: dict[bytes, tuple[Integers, str]] = {}
    for table in tables:
        for cell, labelled in _labelled_cells(table):
            atoms = system.atoms_of(cell)
            for other in populations:
                if other.measure != system.cell_measures[cell]:
                    continue
                inside = other.inside[atoms]
                if inside.all() or not inside.any():
                    continue
                key = _key_of_atoms(atoms[~inside])
                is_printed = any(labelled <= own for own in other.variables)
                if key in known or not (is_printed or _key_of_atoms(atoms[inside]) in known):
                    continue
                name = f'{system.cell_names[cell]}, without the records of "{min(other.names)}"'
                if key not in found or name < found[key][1]:
                    found[key] = (atoms[~inside], name)
    if not found:
        return system
    chosen = sorted(found.values(), key=lambda one: one[1])
    columns = sparse.csc_matrix(
        (
            np.ones(sum(len(atoms) for atoms, _ in chosen), dtype=np.int64),
            np.concatenate([atoms for atoms, _ in chosen]),
            np.cumsum([0, *(len(atoms) for atoms, _ in chosen)]),
        ),
        (system.columns.shape[0], len(chosen)),
    )
    every = _append_cells(system, columns, [name for _, name in chosen])
    # That nobody at all is left out says nothing of anybody.
    is_unsafe = find_unsafe_cells(every, rules).unsafe & (every.unit_counts > 0)
    unsafe = np.flatnonzero(is_unsafe[system.cell_count :])
    if not len(unsafe):
        return system
    return _append_cells(system, columns[:, unsafe], [chosen[at][1] for at in unsafe.tolist()])


def _append_cells(system: TableSystem, columns: Any, names: list[str]) -> TableSystem:
    """Return a system with further cells that stand in no table."""
    from scipy import sparse

    joined = sparse.hstack([system.columns, columns], format="csc")
    joined.sort_indices()
    measures = system.atom_measures[columns.indices[columns.indptr[:-1]]]
    return replace(
        system,
        columns=joined,
        cell_measures=np.append(system.cell_measures, measures),
        cell_names=(*system.cell_names, *names),
        implied=system.implied + len(names),
    )


def _list_populations(system: TableSystem, tables: list[PrintedTable]) -> list[_Population]:
    """Return the different sets of records that the tables are of."""
    found: dict[tuple[int, bytes], _Population] = {}
    for table in tables:
        cells = np.unique(table.cells[table.cells >= 0])
        inside = np.asarray(system.columns[:, cells].sum(axis=1)).ravel() > 0
        measure = int(system.cell_measures[cells[0]])
        own = found.setdefault((measure, inside.tobytes()), _Population(measure, inside, [], []))
        own.names.append(table.name)
        own.variables.append(set(table.variables))
    return list(found.values())


def _labelled_cells(table: PrintedTable) -> Iterator[tuple[int, set[str]]]:
    """Yield each cell of a table with the variables that it is not summed over."""
    cells, first = np.unique(table.cells, return_index=True)
    places = (
        np.stack(np.unravel_index(first, table.cells.shape)) if table.cells.ndim else np.zeros((0, len(first)), int)
    )
    for at, cell in enumerate(cells.tolist()):
        if cell >= 0:
            yield (
                cell,
                {
                    name
                    for name, options, place in zip(table.variables, table.options, places[:, at].tolist(), strict=True)
                    if options[place][1] != TOTAL
                },
            )


def _key_of_atoms(atoms: Integers) -> bytes:
    return np.sort(atoms).astype(np.int64).tobytes()
