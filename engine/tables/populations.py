"""Cells that no table prints, and that printed ones give: what one table has and others leave out by ``where``.

A table of ages from 15 and one of ages from 16 print two numbers of a region; their difference is those who are 15:

    y_a - y_b = sum of the atoms of a that the second table does not have

wherever the part of a that it has is a cell of it, or a sum of its cells. Of three tables, all, up to 15 and from 17,
it is those who are in the first alone; of all, up to 16 and from 16, those who are in all three. One table may have
finer groups than the other one, whatever the variables are called: regions, and counties that are sums of them.

Such a difference is a cell of the system like any other, always hidden: where a rule finds it unsafe it must not follow.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Integers
from .declared_table import TOTAL
from .rules import TableRules, find_unsafe_cells
from .system import PrintedTable, TableSystem

MOST_TOGETHER = 8
"""Other tables that divide a cell by their records up to which what each choice of them leaves of it is looked at; of more,
one, two and all of them."""


@dataclass(frozen=True, eq=False)
class _Classes:
    """Atoms that no cell of a table divides.

    of_atom: number of the class of each atom, -1 outside of the table, (atoms,)
    order: the atoms of the table, class after class
    start: place of the first atom of each class there, (classes + 1,)
    sizes: atoms with records of each class, (classes,)
    """

    of_atom: Integers
    order: Integers
    start: Integers
    sizes: Integers

    @classmethod
    def of_cells(cls, system: TableSystem, cells: Integers, is_real: Booleans) -> _Classes:
        """Build from the cells of a table."""
        of_atom = _classes_of_cells(system, cells)
        order = np.argsort(of_atom, kind="stable")[int((of_atom < 0).sum()) :]
        number = int(of_atom.max(initial=-1)) + 1
        start = np.searchsorted(of_atom[order], np.arange(number + 1))
        return cls(of_atom, order, start, np.bincount(of_atom[is_real & (of_atom >= 0)], minlength=number))

    def list_atoms(self, numbers: Integers) -> Integers:
        """Return the atoms of some classes, ascending."""
        own = [self.order[self.start[number] : self.start[number + 1]] for number in numbers.tolist()]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *own]))


@dataclass(frozen=True, eq=False)
class _Population:
    """The records that some tables of one measure are of.

    measure: number of the measure
    inside: atoms that they have, (atoms,)
    names: names of the tables
    variables: the variables of each of them
    classes: for each of them, the atoms that no cell of the table divides
    """

    measure: int
    inside: Booleans
    names: list[str]
    variables: list[set[str]]
    classes: list[_Classes]


@dataclass(frozen=True, eq=False)
class _Base:
    """Atoms that one table prints as a cell, or as a sum of cells.

    atoms: the atoms, ascending
    labels: the variables that it is not summed over; None for a sum of cells
    name: name of a cell that has these labels
    population: number of the population of the table
    """

    atoms: Integers
    labels: set[str] | None
    name: str
    population: int


def add_implied_cells(system: TableSystem, rules: TableRules, release: str = "") -> TableSystem:
    """Return a system with the unsafe differences between tables of one release as further cells.

    They stand behind its other cells, and in no table. A system without any is returned as it is.
    """
    from scipy import sparse

    tables = [one for one in system.tables if one.release == release and (one.cells >= 0).any()]
    is_real = _atoms_with_records(system)
    found: dict[bytes, tuple[Integers, str]] = {}
    known = {_key_of_atoms(system.atoms_of(cell)) for cell in range(system.cell_count)}
    every_population = _list_populations(system, tables, is_real)
    for measure in sorted({one.measure for one in every_population}):
        populations = [one for one in every_population if one.measure == measure]
        if len(populations) < 2:
            continue
        own = [one for one in tables if system.cell_measures[one.cells.max()] == measure]
        for base in _list_bases(system, own, populations, is_real):
            for atoms, name in _list_parts(base, populations, known, is_real):
                key = _key_of_atoms(atoms)
                if key not in known and (key not in found or (len(name), name) < (len(found[key][1]), found[key][1])):
                    found[key] = (atoms, name)
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


def list_unexamined_pairs(system: TableSystem, release: str = "") -> list[tuple[PrintedTable, PrintedTable]]:
    """Return pairs of tables of different records and groupings whose differences were not all looked at.

    The first of a pair is of the release. Where groups of one table are sums of groups of the other, that is seen by the
    records that both have: a group of one table that has no record in the other one is in no such sum. Differences
    between two releases are looked at by equal labels alone.
    """
    is_real = _atoms_with_records(system)
    tables = [one for one in system.tables if (one.cells >= 0).any()]
    classes = [np.where(is_real, _classes_of_cells(system, one.cells), -1) for one in tables]
    found = list[tuple[PrintedTable, PrintedTable]]()
    for at, to in itertools.permutations(range(len(tables)), 2):
        one, other, first, second = tables[at], tables[to], classes[at], classes[to]
        if one.release != release or (other.release == release and to < at):
            continue
        shared = [axis for axis in range(len(one.options)) if _is_axis_of(one, axis, other)]
        if system.cell_measures[one.cells.max()] != system.cell_measures[other.cells.max()]:
            continue
        if len(shared) in (len(one.options), len(other.options)):
            continue
        both = (first >= 0) & (second >= 0)
        if not both.any() or ((first >= 0) == (second >= 0)).all():
            continue
        by_labels = _classes_of_cells(system, _cells_by_axes(one, shared))
        if len(_join_classes(first, second)) <= len(np.unique(by_labels[both])):
            continue
        if (
            other.release != release
            or _has_group_apart(system, one, other, both, is_real)
            or _has_group_apart(system, other, one, both, is_real)
        ):
            found.append((one, other))
    return found


def count_unexamined_populations(system: TableSystem, release: str = "") -> int:
    """Return of how many different sets of records the tables of one measure and release are, where these are too many
    for all of them to be looked at together; 0 elsewhere.
    """
    tables = [one for one in system.tables if one.release == release and (one.cells >= 0).any()]
    measures = [one.measure for one in _list_populations(system, tables, _atoms_with_records(system))]
    most = max(map(measures.count, measures), default=0)
    return most if most > MOST_TOGETHER + 1 else 0


def _has_group_apart(
    system: TableSystem, table: PrintedTable, other: PrintedTable, both: Booleans, is_real: Booleans
) -> bool:
    """Return whether a group of a table has no record of another table that has records with the same labels.

    ``both`` are the atoms of both tables, (atoms,).
    """
    axes = range(len(table.options))
    shared = [axis for axis in axes if _is_axis_of(table, axis, other)]
    for size in range(len(shared) + 1):
        for labels in itertools.combinations(shared, size):
            groups = _classes_of_cells(system, _cells_by_axes(table, [*set(axes) - set(shared), *labels]))
            by_labels = _classes_of_cells(system, _cells_by_axes(table, labels))
            seen = is_real & (groups >= 0) & np.isin(by_labels, by_labels[both])
            if set(groups[seen].tolist()) - set(groups[both].tolist()):
                return True
    return False


def _is_axis_of(table: PrintedTable, axis: int, other: PrintedTable) -> bool:
    """Return whether an axis of a table is one of another table too; labels may be added between releases."""
    options = set(table.options[axis])
    for name, own in zip(other.variables, other.options, strict=True):
        if name == table.variables[axis]:
            same = {one for one in options & set(own) if one[1] != TOTAL}
            return options == set(own) or (table.release != other.release and bool(same))
    return False


def _cells_by_axes(table: PrintedTable, axes: Sequence[int]) -> Integers:
    """Return the cells of a table by some of its axes alone, summed over all others."""
    cells = table.cells
    for axis in reversed(range(cells.ndim)):
        if axis not in axes:
            totals = [at for at, (_, label) in enumerate(table.options[axis]) if label == TOTAL]
            cells = np.take(cells, totals, axis=axis)
    return cells


def _atoms_with_records(system: TableSystem) -> Booleans:
    own = system.contributions
    return np.asarray(np.bincount(own.atoms, own.records, system.columns.shape[0]) > 0)


def _list_bases(
    system: TableSystem, tables: list[PrintedTable], populations: list[_Population], is_real: Booleans
) -> Iterator[_Base]:
    """Yield the cells of tables of one measure, and the sums of cells of one that another one prints as a cell."""
    number = {name: at for at, one in enumerate(populations) for name in one.names}
    for table in tables:
        own = number[table.name]
        inside = populations[own].inside
        for cell, labelled in _labelled_cells(table):
            atoms, name = system.atoms_of(cell), system.cell_names[cell]
            yield _Base(atoms, labelled, name, own)
            real = atoms[is_real[atoms]]
            for at, other in enumerate(populations):
                for classes in other.classes if at != own else ():
                    touched = np.unique(classes.of_atom[real])
                    wide = classes.list_atoms(touched[touched >= 0])
                    if len(wide) and np.array_equal(wide[inside[wide] & is_real[wide]], real[other.inside[real]]):
                        yield _Base(wide, None, name, at)
    for (at, one), (_, other) in itertools.permutations(enumerate(populations), 2):
        for first, second in itertools.product(one.classes, other.classes):
            for numbers in _join_classes(np.where(is_real, first.of_atom, -1), second.of_atom):
                atoms = first.list_atoms(numbers)
                yield _Base(atoms, None, _name_of_atoms(system, atoms), at)


def _name_of_atoms(system: TableSystem, atoms: Integers) -> str:
    """Return the name of the smallest cell that has some atoms."""
    shared = np.asarray(system.columns[atoms].sum(axis=0)).ravel() == len(atoms)
    cells = np.flatnonzero(shared)
    if not len(cells):
        return f"{system.measures[system.atom_measures[atoms[0]]]}: several groups"
    return system.cell_names[int(cells[np.argmin(system.atom_counts[cells])])]


def _join_classes(first: Integers, second: Integers) -> list[Integers]:
    """Return the classes of a table that are connected by those of another one, as lists of their numbers."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    both = np.flatnonzero((first >= 0) & (second >= 0))
    if not len(both):
        return []
    sizes = int(first.max()) + 1, int(second.max()) + 1
    links = sparse.coo_matrix((np.ones(len(both)), (first[both], second[both] + sizes[0])), (sum(sizes), sum(sizes)))
    _, of_class = connected_components(links, directed=False)
    used = np.unique(first[both])
    return [used[of_class[used] == own] for own in np.unique(of_class[used])]


def _list_parts(
    base: _Base, populations: Sequence[_Population], known: set[bytes], is_real: Booleans
) -> Iterator[tuple[Integers, str]]:
    """Yield the parts of a base by which other populations have its records, and a name of each."""
    atoms = base.atoms
    real = is_real[atoms]
    # Populations that divide it, and print their part of it.
    dividing = list[int]()
    for at, other in enumerate(populations):
        within = other.inside[atoms] & real
        if at == base.population or not within.any() or not (real & ~within).any():
            continue
        is_labelled = base.labels is not None and any(base.labels <= own for own in other.variables)
        inside = atoms[other.inside[atoms]]
        if is_labelled or _key_of_atoms(inside) in known or _is_sum_of_classes(other, atoms[within]):
            dividing.append(at)
    if base.labels is None:
        yield atoms, f"{base.name}, of those in {_list_names([min(populations[base.population].names)])}"
    number = len(dividing)
    sizes = range(1, number + 1) if number <= MOST_TOGETHER else (1, 2, number)
    chosen = {numbers for size in sizes for numbers in itertools.combinations(dividing, size)}
    for numbers in sorted(chosen):
        membership = np.stack([populations[at].inside[atoms] for at in numbers], axis=1)
        for row in np.unique(membership[real], axis=0):
            part = atoms[(membership == row).all(axis=1)]
            members = list(zip((min(populations[at].names) for at in numbers), row.tolist(), strict=True))
            with_them, without = (
                [name for name, is_in in members if is_in],
                [name for name, is_in in members if not is_in],
            )
            name = base.name
            if with_them:
                name += f", of those in {_list_names([min(populations[base.population].names), *with_them])}"
            if without:
                name += f", without the records of {_list_names(without)}"
            yield part, name


def _list_names(names: list[str]) -> str:
    return " and ".join(f'"{name}"' for name in sorted(names))


def _is_sum_of_classes(population: _Population, atoms: Integers) -> bool:
    """Return whether one of the tables of a population divides no class between some atoms with records and others."""
    for classes in population.classes:
        own = np.unique(classes.of_atom[atoms])
        if (own >= 0).all() and int(classes.sizes[own].sum()) == len(atoms):
            return True
    return False


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


def _list_populations(system: TableSystem, tables: list[PrintedTable], is_real: Booleans) -> list[_Population]:
    """Return the different sets of records that the tables are of."""
    found: dict[tuple[int, bytes], _Population] = {}
    for table in tables:
        cells = np.unique(table.cells[table.cells >= 0])
        inside = np.asarray(system.columns[:, cells].sum(axis=1)).ravel() > 0
        measure = int(system.cell_measures[cells[0]])
        own = found.setdefault((measure, inside.tobytes()), _Population(measure, inside, [], [], []))
        own.names.append(table.name)
        own.variables.append(set(table.variables))
        own.classes.append(_Classes.of_cells(system, table.cells, is_real))
    return list(found.values())


def _classes_of_cells(system: TableSystem, cells: Integers) -> Integers:
    """Return the class of each atom that no cell divides, -1 outside of all, (atoms,)."""
    rows = system.columns[:, np.unique(cells[cells >= 0])].tocsr()
    rows.sort_indices()
    number: dict[bytes, int] = {}
    found = np.full(rows.shape[0], -1, dtype=np.int64)
    for atom in np.flatnonzero(np.diff(rows.indptr)).tolist():
        key = rows.indices[rows.indptr[atom] : rows.indptr[atom + 1]].tobytes()
        found[atom] = number.setdefault(key, len(number))
    return found


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
