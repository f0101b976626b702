"""All tables of one project as one system: atoms, cells, and which cell is the sum of which atoms.

Records that fall into the same cells of every table form an atom j with a count, or a sum of values, f_j >= 0. A cell k
is a set of atoms, a column of zeros and ones of the matrix X:

    y_k = sum_j X_jk f_j

Hierarchies, groupings that do not nest, tables of other variables and earlier releases are further columns. Cells with
equal columns are one cell, whatever their names: a total of one child, a common margin, last year's cell.

Source: Fischetti and Salazar (2001), section 2; Langsrud (2024), "Secondary cell suppression by Gaussian elimination".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.rows import distinct_rows
from ..errors import BadInput, near_miss_hint
from .declared_table import TOTAL, DeclaredTable
from .empty_combinations import add_empty_combinations, places_in_table

MAX_PRINTED_CELLS = 5_000_000
EMPTY = -1
"""Cell number of printed cells that no atom lies in."""


@dataclass(frozen=True, eq=False)
class PrintedTable:
    """The cells of a declared table.

    name, release: as declared
    variables: name of each axis
    options: grouping and label of each place of each axis
    cells: cell of each place, ``EMPTY`` where no atom lies, an axis a variable
    """

    name: str
    release: str
    variables: tuple[str, ...]
    options: tuple[tuple[tuple[str, str], ...], ...]
    cells: Integers

    def find_place(self, labels: Mapping[str, str]) -> tuple[int, ...]:
        """Return the place of a cell by the label of each variable; a variable that is not named is summed over.

        A label that stands in several groupings is found by ``grouping:label``. Raises BadInput.
        """
        if strange := set(labels) - set(self.variables):
            name = min(strange)
            raise BadInput(f"table {self.name}", f'has no variable "{name}"{near_miss_hint(name, self.variables)}')
        found = []
        for variable, options in zip(self.variables, self.options, strict=True):
            label = labels.get(variable, TOTAL)
            places = [at for at, (grouping, text) in enumerate(options) if label in (text, f"{grouping}:{text}")]
            if len(places) != 1:
                what = "no row" if not places else "several groupings"
                hint = near_miss_hint(label, [text for _, text in options]) if not places else ""
                raise BadInput(f"table {self.name}", f'has {what} "{label or "total"}" of {variable}{hint}')
            found.append(places[0])
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each unit contributes to each atom, one row for each record and atom.

    atoms: atom, (m,)
    units: number of the unit, (m,)
    sizes: observed value, 1 for counts, (m,)
    weights: sampling weight, (m,)
    records: how many records the row stands for, (m,)
    """

    atoms: Integers
    units: Integers
    sizes: Floats
    weights: Floats
    records: Integers


@dataclass(frozen=True, eq=False)
class TableSystem:
    """Atoms and cells of all tables.

    columns: atoms of each cell, 1 or 0, (atoms, cells), sparse by columns
    atom_values: count or sum of values of each atom, (atoms,)
    atom_measures, cell_measures: number of the measure, (atoms,) and (cells,)
    measures: name of each measure
    whole: whether a measure is a number of records, which readers know to be whole
    tables: the tables with their cells
    cell_names: one of the names of each cell, for messages and for an order that no input order changes
    contributions: who contributes what
    complete: whether combinations of groups without records are atoms too
    implied: how many of the last cells stand in no table: two printed cells differ by them
    doubtful: atoms without records that a printed cell has none but them, and that may be impossible, (atoms,): the
        records do not say whether groups exclude each other by what they mean, or by chance
    """

    columns: Any
    atom_values: Floats
    atom_measures: Integers
    cell_measures: Integers
    measures: tuple[str, ...]
    whole: tuple[bool, ...]
    tables: tuple[PrintedTable, ...]
    cell_names: tuple[str, ...]
    contributions: Contributions = field(repr=False)
    complete: bool = False
    implied: int = 0
    doubtful: Booleans | None = None

    @property
    def cell_count(self) -> int:
        """Return the number of different cells that have atoms."""
        return int(self.columns.shape[1])

    @cached_property
    def values(self) -> Floats:
        """Return the value of each cell, (cells,)."""
        return np.asarray(self.columns.T @ self.atom_values, dtype=np.float64)

    @cached_property
    def atom_counts(self) -> Integers:
        """Return the number of atoms of each cell, (cells,)."""
        return np.asarray(np.diff(self.columns.indptr), dtype=np.int64)

    @cached_property
    def cell_is_whole(self) -> Booleans:
        """Return which cells are numbers of records, (cells,)."""
        return np.array(self.whole, dtype=np.bool_)[self.cell_measures]

    @property
    def is_implied(self) -> Booleans:
        """Return which cells stand in no table, (cells,)."""
        return np.arange(self.cell_count) >= self.cell_count - self.implied

    @property
    def shows_zeros(self) -> Booleans:
        """Return of which cells readers see whether they are 0 where zeros are printed: numbers of records, (cells,)."""
        return self.cell_is_whole & ~self.is_implied

    @cached_property
    def unit_matrix(self) -> Any:
        """Return the observed value of each unit in each atom, (atoms, units), sparse; 0 is stored where it is 0."""
        from scipy import sparse

        own = self.contributions
        units = int(own.units.max(initial=-1)) + 1
        return sparse.csr_matrix((own.sizes, (own.atoms, own.units)), (self.columns.shape[0], units))

    @cached_property
    def unit_counts(self) -> Integers:
        """Return the number of units of each cell, (cells,)."""
        own = self.contributions
        if self._units_of_one_atom:
            of_atoms = np.bincount(own.atoms, own.records, self.columns.shape[0])
            return np.asarray(np.rint(self.columns.T @ of_atoms), dtype=np.int64)
        ones = self.unit_matrix.copy()
        ones.data = np.ones(len(ones.data))
        parts = [np.diff(part.indptr) for part in self._products(ones)]
        return np.asarray(np.concatenate(parts) if parts else np.zeros(0), dtype=np.int64)

    @cached_property
    def _units_of_one_atom(self) -> bool:
        """Return whether no unit lies in two atoms of a measure, so that units of atoms add up."""
        own = self.contributions
        keys = own.units * len(self.measures) + self.atom_measures[own.atoms]
        return len(np.unique(keys)) == len(keys)

    def _products(self, matrix: Any) -> Iterator[Any]:
        """Yield the sums of rows of atoms over the atoms of the cells, some cells at a time, sparse."""
        rows = self.columns.T.tocsr()
        entries = np.asarray(rows @ np.diff(matrix.indptr))
        # About 10^7 entries at a time.
        block = np.cumsum(entries) // 10_000_000
        for number in np.unique(block):
            yield (rows[np.flatnonzero(block == number)] @ matrix).tocsr()

    @cached_property
    def unit_amounts(self) -> Any:
        """Return what each unit adds to each atom, (units, atoms), sparse by rows, the atoms of each ascending.

        Atoms of a measure with a value below 0 are left out: others may take away from what one adds.
        """
        from scipy import sparse

        own = self.contributions
        measures = self.atom_measures[own.atoms]
        has_negative = np.zeros(len(self.measures), dtype=np.bool_)
        has_negative[measures[own.sizes * own.weights < 0]] = True
        # Of a row that stands for several people each one adds one part.
        used = (own.records > 0) & ~has_negative[measures]
        units = int(own.units.max(initial=-1)) + 1
        amounts = own.sizes[used] * own.weights[used]
        found = sparse.csr_matrix((amounts, (own.units[used], own.atoms[used])), (units, self.columns.shape[0]))
        found.sort_indices()
        return found

    @cached_property
    def sole_units(self) -> Integers:
        """Return the unit of each cell that only one unit contributes to, -1 for all others, (cells,)."""
        own = self.contributions
        found = np.full(self.cell_count, -1, dtype=np.int64)
        present = own.records > 0
        of_atom = np.full(self.columns.shape[0], -1, dtype=np.int64)
        of_atom[own.atoms[present]] = own.units[present]
        for cell in np.flatnonzero(self.unit_counts == 1).tolist():
            units = of_atom[self.columns.indices[self.columns.indptr[cell] : self.columns.indptr[cell + 1]]]
            found[cell] = units.max()
        return found

    def without_doubtful(self) -> TableSystem | None:
        """Return the system of a reader who knows that doubtful atoms are impossible; None where there are none.

        Atoms and cells keep their numbers; a cell that has none but such atoms has none there.
        """
        if self.doubtful is None or not self.doubtful.any():
            return None
        rows = self.columns.tocoo()
        kept = ~self.doubtful[rows.row]
        columns = type(rows)((rows.data[kept], (rows.row[kept], rows.col[kept])), rows.shape).tocsc()
        columns.sort_indices()
        return replace(self, columns=columns, doubtful=None)

    def find_cell(self, table: str, labels: Mapping[str, str], release: str = "") -> int:
        """Return the cell of a table by labels, ``EMPTY`` where it has no atoms. Raises BadInput."""
        names = [one.name for one in self.tables if one.release == release]
        if table not in names:
            raise BadInput(f"table {table}", f"there is no such table{near_miss_hint(table, names)}")
        printed = next(one for one in self.tables if one.release == release and one.name == table)
        return int(printed.cells[printed.find_place(labels)])

    def cells_of_release(self, release: str) -> Integers:
        """Return the cells with atoms of the tables of a release, ascending."""
        own = [one.cells.ravel() for one in self.tables if one.release == release]
        cells = np.unique(np.concatenate(own)) if own else np.zeros(0, dtype=np.int64)
        return cells[cells >= 0]

    def list_partitions(self) -> list[tuple[int, Integers]]:
        """Return cells with others that add up to them, as the tables show them: a row's total and the row's cells.

        Each is a cell and the cells of one grouping of one variable below it.
        """
        found: dict[tuple[int, tuple[int, ...]], None] = {}
        for table in self.tables:
            for axis, options in enumerate(table.options):
                lines = np.moveaxis(table.cells, axis, -1).reshape(-1, len(options))
                names = [grouping if label != TOTAL else None for grouping, label in options]
                for name in dict.fromkeys(names):
                    if name is None:
                        continue
                    below = [at for at, other in enumerate(names) if other == name]
                    for above in dict.fromkeys(names):
                        if above == name:
                            continue
                        self._add_partitions(found, lines, [at for at, own in enumerate(names) if own == above], below)
        return [(parent, np.array(children, dtype=np.int64)) for parent, children in sorted(found)]

    def _add_partitions(
        self, found: dict[tuple[int, tuple[int, ...]], None], lines: Integers, above: list[int], below: list[int]
    ) -> None:
        sizes = self.atom_counts
        for line in lines:
            children = {int(cell) for cell in line[below] if cell >= 0}
            if len(children) < 2:
                continue
            for at in above:
                parent = int(line[at])
                if parent < 0 or parent in children:
                    continue
                atoms = self.atoms_of(parent)
                own = sorted(cell for cell in children if np.isin(self.atoms_of(cell), atoms, assume_unique=True).all())
                if len(own) > 1 and int(sizes[own].sum()) == len(atoms):
                    found[parent, tuple(own)] = None

    def atoms_of(self, cell: int) -> Integers:
        """Return the atoms of a cell, ascending."""
        return np.asarray(self.columns.indices[self.columns.indptr[cell] : self.columns.indptr[cell + 1]])

    def list_changes(self, first: str, second: str) -> list[tuple[int, int]]:
        """Return pairs of different cells of two releases with the same labels: a cell of the first, and of the second.

        What a table is called, and which other variables it has, tells readers nothing: cells are compared by what they
        add up and by the labels of the variables that they are not summed over. A cell whose labels the other release
        does not have is compared with one that most of its records are in, whose labels this one does not have: a
        variable or a group that was renamed. A cell that is empty in one of them is ``EMPTY`` there.
        """
        own, others = self._cells_by_labels(first), self._cells_by_labels(second)
        found = {(a, b) for labels, cells in own.items() for a in cells for b in others.get(labels, ()) if a != b}
        only_first, only_second = (
            np.array(
                sorted({cell for key in one if key not in other for cell in one[key] if cell >= 0}), dtype=np.int64
            )
            for one, other in ((own, others), (others, own))
        )
        if len(only_first) and len(only_second):
            found |= self._pair_by_records(only_first, only_second)
        return sorted(found)

    def _pair_by_records(self, first: Integers, second: Integers) -> set[tuple[int, int]]:
        """Return pairs of different cells that share more than half of the records of each."""
        from scipy import sparse

        of_atoms = np.bincount(self.contributions.atoms, self.contributions.records, self.columns.shape[0])
        sizes = np.asarray(self.columns.T @ of_atoms)
        weighted = sparse.diags_array(of_atoms) @ self.columns[:, second]
        shared = (self.columns[:, first].T @ weighted).tocoo()
        a, b = first[shared.row], second[shared.col]
        most = (2 * shared.data > np.maximum(sizes[a], sizes[b])) & (a != b)
        return set(zip(a[most].tolist(), b[most].tolist(), strict=True))

    def _cells_by_labels(self, release: str) -> dict[tuple[int, frozenset[tuple[str, str]]], set[int]]:
        """Return the cells of a release by measure, variables and labels; several where tables differ."""
        found = dict[tuple[int, frozenset[tuple[str, str]]], set[int]]()
        for one in self.tables:
            if one.release != release or not (one.cells >= 0).any():
                continue
            measure = int(self.cell_measures[one.cells.max()])
            axes = [
                # A level may have another number in another year's tree: its name is left out.
                [() if label == TOTAL else ((name, label),) for _, label in options]
                for name, options in zip(one.variables, one.options, strict=True)
            ]
            for cell, labels in zip(one.cells.ravel().tolist(), itertools.product(*axes), strict=True):
                found.setdefault((measure, frozenset(itertools.chain(*labels))), set()).add(cell)
        return found


def build_system(tables: Sequence[DeclaredTable], complete: bool = False) -> TableSystem:
    """Build the system of tables over the same n records.

    Args:
        tables: the tables, those of earlier releases among them. A record that a release does not have is outside of
            the ``where`` of its tables.
        complete: whether combinations of groups that no record has become atoms too. Readers of tables whose zeros are
            hidden cannot tell them from others.

    Raises BadInput for tables that do not fit together, and NotComputable for more combinations than can be written
    down. The order of records and of tables changes nothing.
    """
    _check_tables(tables)
    names = sorted({table.measure for table in tables})
    # Units are those of the records, whatever a table adds up: one person is one reader of all tables.
    units = next((table.units for table in tables if table.units is not None), None)
    parts = [
        _MeasurePart.from_tables([one for one in tables if one.measure == name], units, complete) for name in names
    ]
    return _join_parts(tables, names, parts, complete)


def _check_tables(tables: Sequence[DeclaredTable]) -> None:
    """Raise BadInput for tables that cannot be one system."""
    if not tables:
        raise BadInput("table", "there is no table")
    seen = set[tuple[str, str]]()
    lengths = set[int]()
    units: Integers | None = None
    for table in tables:
        place = f"table {table.name}"
        if (table.release, table.name) in seen:
            raise BadInput(place, "two tables of one release have this name; give each its own")
        seen.add((table.release, table.name))
        own_lengths = {len(codes) for own in table.variables for codes in (g.codes for g in own.groupings)}
        own_lengths |= {
            len(array)
            for array in (table.value, table.units, table.weights, table.records, table.where)
            if array is not None
        }
        lengths |= own_lengths
        if math.prod(table.shape) > MAX_PRINTED_CELLS:
            raise BadInput(
                place, f"has {math.prod(table.shape):,} cells, at most {MAX_PRINTED_CELLS:,}; use fewer variables"
            )
        repeated = [own.name for own in table.variables]
        if len(set(repeated)) < len(repeated):
            raise BadInput(place, "has a variable twice")
        for own in table.variables:
            for grouping in own.groupings:
                codes = grouping.codes
                if len(codes) and (codes.min() < -1 or codes.max() >= len(grouping.labels)):
                    raise BadInput(place, f"has group numbers of {own.name} without a label")
        for name, array in (("value", table.value), ("weights", table.weights)):
            if array is not None and not np.isfinite(array[table.where if table.where is not None else ...]).all():
                raise BadInput(place, f"has missing or infinite numbers in {name}; leave these records out by where")
        if table.weights is not None and (table.weights < 0).any():
            raise BadInput(place, "has weights below 0")
        if table.records is not None and any(other.units is not None for other in tables):
            raise BadInput(place, "has rows that stand for several records; their units are not known")
        if table.units is not None:
            units = table.units if units is None else units
            if not np.array_equal(units, table.units):
                raise BadInput(place, "has other units than another table; a record has one unit in all tables")
    if len(lengths) > 1:
        raise BadInput("table", "the tables are of different numbers of records")


@dataclass(frozen=True, eq=False)
class _MeasurePart:
    """Atoms of the tables of one measure.

    tables: the tables
    codes: place of each atom along each axis' groupings, by table: (atoms, groupings); -1 outside of a group
    inside: whether each atom lies in each table, (atoms, tables)
    values: count or sum of each atom, (atoms,)
    contributions: who contributes what
    whole: whether the values are numbers of records
    doubtful: atoms without records that may be impossible, (atoms,)
    """

    tables: list[DeclaredTable]
    codes: list[Integers]
    inside: Booleans
    values: Floats
    contributions: Contributions
    whole: bool
    doubtful: Booleans

    @classmethod
    def from_tables(cls, tables: list[DeclaredTable], units: Integers | None, complete: bool) -> _MeasurePart:
        """Build from the tables of one measure."""
        number = _count_records(tables[0])
        rows, chosen, amounts, sizes, weights = _record_instances(tables, number)
        every_row, every_choice = rows, chosen
        used = chosen.any(axis=1)
        rows, chosen, amounts, sizes, weights = rows[used], chosen[used], amounts[used], sizes[used], weights[used]
        codes = [
            [
                _codes_inside(grouping.codes[rows], chosen[:, at])
                for own in table.variables
                for grouping in own.groupings
            ]
            for at, table in enumerate(tables)
        ]
        digits = _distinct_columns([*(chosen.T.astype(np.int64)), *(column for own in codes for column in own)])
        groups = distinct_rows(digits, len(rows))
        atoms = groups.combination_of.astype(np.int64)
        first = groups.first
        counted = next((table.records for table in tables if table.records is not None), None)
        records = np.ones(len(rows), dtype=np.int64) if counted is None else counted[rows]
        contributions = Contributions(atoms, rows if units is None else units[rows], sizes, weights, records)
        values = np.asarray(np.bincount(atoms, amounts * records, len(first)), dtype=np.float64)
        atom_codes = [
            np.stack([column[first] for column in own], axis=1) if own else np.zeros((len(first), 0), dtype=np.int64)
            for own in codes
        ]
        inside = chosen[first]
        doubtful = np.zeros(len(inside), dtype=np.bool_)
        if complete:
            atom_codes, inside, doubtful = add_empty_combinations(tables, every_row, every_choice, atom_codes, inside)
            values = np.append(values, np.zeros(len(inside) - len(values)))
        whole = all(table.value is None and table.weights is None for table in tables)
        return cls(tables, atom_codes, inside, values, contributions, whole, doubtful)


def _codes_inside(codes: Integers, inside: Booleans) -> Integers:
    """Return group numbers (n,) with -1 for the records that are not in the table."""
    return codes.astype(np.int64) if inside.all() else np.where(inside, codes, -1).astype(np.int64)


def _distinct_columns(columns: Sequence[Integers]) -> list[Integers]:
    """Return each of some columns (n,) of numbers from -1 on once, in the order of their values."""
    # Bytes from the highest on are in the order of the numbers; comparing them is much faster than sorting a matrix.
    keys = {(column + 1).astype(">i4").tobytes(): column for column in columns}
    return [keys[key] for key in sorted(keys)]


def _count_records(table: DeclaredTable) -> int:
    """Return the number of records that a table is declared over."""
    for own in table.variables:
        for grouping in own.groupings:
            return len(grouping.codes)
    for array in (table.value, table.units, table.weights, table.records, table.where):
        if array is not None:
            return len(array)
    raise BadInput(f"table {table.name}", "has neither variables nor values")


def _record_instances(tables: list[DeclaredTable], number: int) -> tuple[Integers, Booleans, Floats, Floats, Floats]:
    """Return records with what they contribute, each as often as it has different contributions.

    A record whose value was revised between two releases is one thing in the first and another one in the second.

    Returns the record of each instance, the tables that it is in, its amount, its observed size and its weight.
    """
    sizes = np.ones((number, len(tables)))
    weights = np.ones((number, len(tables)))
    chosen = np.ones((number, len(tables)), dtype=np.bool_)
    for at, table in enumerate(tables):
        if table.value is not None:
            sizes[:, at] = table.value
        if table.weights is not None:
            weights[:, at] = table.weights
        if table.where is not None:
            chosen[:, at] = table.where
    first = np.argmax(chosen, axis=1)
    every = np.arange(number)
    same = (sizes == sizes[every, first, None]) & (weights == weights[every, first, None])
    rows, inside, own = [every], [chosen & same], [first]
    left = chosen & ~same
    while left.any():
        again = np.flatnonzero(left.any(axis=1))
        first = np.argmax(left[again], axis=1)
        same = (sizes[again] == sizes[again, first, None]) & (weights[again] == weights[again, first, None])
        rows.append(again)
        inside.append(left[again] & same)
        own.append(first)
        left[again] &= ~same
    of_record, of_table = np.concatenate(rows), np.concatenate(own)
    size, weight = sizes[of_record, of_table], weights[of_record, of_table]
    return of_record, np.concatenate(inside), size * weight, size, weight


def _join_parts(
    tables: Sequence[DeclaredTable], names: list[str], parts: list[_MeasurePart], complete: bool
) -> TableSystem:
    """Put the atoms of all measures together, find equal cells, and bring all into an order that no input changes."""
    from scipy import sparse

    offsets = np.cumsum([0, *(math.prod(table.shape) for table in tables)])
    start_of = {id(table): int(at) for table, at in zip(tables, offsets[:-1], strict=True)}
    atom_start = np.cumsum([0, *(len(part.values) for part in parts)])
    atom_parts, place_parts = list[Integers](), list[Integers]()
    for part, begin in zip(parts, atom_start[:-1].tolist(), strict=True):
        for at, table in enumerate(part.tables):
            atoms = np.flatnonzero(part.inside[:, at])
            for places, mask in places_in_table(table, part.codes[at][atoms]):
                atom_parts.append(atoms[mask] + begin)
                place_parts.append(places[mask] + start_of[id(table)])
    atom, place = np.concatenate(atom_parts), np.concatenate(place_parts)
    filled, column = np.unique(place, return_inverse=True)
    matrix = sparse.csc_matrix((np.ones(len(atom), dtype=np.int64), (atom, column)), (int(atom_start[-1]), len(filled)))
    matrix.sort_indices()
    cell_of = _equal_columns(matrix)
    keys = _name_places(tables, filled)
    # The smallest name of a cell, and the cells in the order of these names.
    by_name = sorted(range(len(filled)), key=keys.__getitem__)
    number, first = dict[int, int](), list[int]()
    for at in by_name:
        if int(cell_of[at]) not in number:
            number[int(cell_of[at])] = len(first)
            first.append(at)
    cells = np.array([number[int(cell)] for cell in cell_of], dtype=np.int64)
    columns = matrix[:, first]
    # Atoms in the order of the cells that they lie in.
    rows = columns.tocsr()
    rows.sort_indices()
    texts = [rows.indices[a:b].astype(">i8").tobytes() for a, b in itertools.pairwise(rows.indptr.tolist())]
    order = np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    columns = columns[order].tocsc()
    columns.sort_indices()
    measures = np.repeat(np.arange(len(parts)), [len(part.values) for part in parts])[order]
    printed = []
    all_cells = np.full(int(offsets[-1]), EMPTY, dtype=np.int64)
    all_cells[filled] = cells
    for table, begin in zip(tables, offsets[:-1].tolist(), strict=True):
        own = all_cells[begin : begin + math.prod(table.shape)].reshape(table.shape)
        options = tuple(variable.options for variable in table.variables)
        printed.append(PrintedTable(table.name, table.release, tuple(v.name for v in table.variables), options, own))
    return TableSystem(
        columns,
        np.concatenate([part.values for part in parts])[order],
        measures,
        measures[columns.indices[columns.indptr[:-1]]],
        tuple(names),
        tuple(part.whole for part in parts),
        tuple(printed),
        tuple(keys[at] for at in first),
        _join_contributions(parts, atom_start, rank),
        complete,
        doubtful=np.concatenate([part.doubtful for part in parts])[order],
    )


def _join_contributions(parts: list[_MeasurePart], atom_start: Integers, rank: Integers) -> Contributions:
    """Put the contributions of all measures together."""
    own = [part.contributions for part in parts]
    return Contributions(
        rank[np.concatenate([one.atoms + begin for one, begin in zip(own, atom_start[:-1], strict=True)])],
        np.concatenate([one.units for one in own]),
        np.concatenate([one.sizes for one in own]),
        np.concatenate([one.weights for one in own]),
        np.concatenate([one.records for one in own]),
    )


def _equal_columns(matrix: Any) -> Integers:
    """Return the number of each column's class of equal columns, (columns,)."""
    rng = np.random.default_rng(0)
    # Sums of two random numbers of 64 bits differ for different sets of atoms but for chances of about 2^-128.
    marks = rng.integers(0, 2**63, (matrix.shape[0], 2), dtype=np.int64).astype(np.uint64)
    sums = np.stack(
        [np.add.reduceat(np.append(marks[matrix.indices, at], np.uint64(0)), matrix.indptr[:-1]) for at in range(2)],
        axis=1,
    )
    return np.asarray(np.unique(sums, axis=0, return_inverse=True)[1].ravel(), dtype=np.int64)


def _name_places(tables: Sequence[DeclaredTable], places: Integers) -> list[str]:
    """Return a name of each place of all tables, from measure, release and labels, not from the table's name."""
    names = list[str]()
    offset = 0
    for table in tables:
        size = math.prod(table.shape)
        own = places[(places >= offset) & (places < offset + size)] - offset
        order = np.argsort([variable.name for variable in table.variables], kind="stable").tolist()
        coordinates = np.stack(np.unravel_index(own, table.shape)) if table.shape else np.zeros((0, len(own)), int)
        texts = [
            [
                ""
                if (option := variable.options[at])[1] == TOTAL
                else f"{variable.name}={':'.join(filter(None, option))}"
                for at in coordinates[axis].tolist()
            ]
            for axis, variable in enumerate(table.variables)
        ]
        start = f"{table.measure} {table.release}".strip()
        for at in range(len(own)):
            labels = [texts[axis][at] for axis in order if texts[axis][at]]
            names.append(f"{start}: {', '.join(labels) or 'total'}")
        offset += size
    return names
