"""Printed tables of several files as one system: which cell of which table is the sum of which combinations.

Columns of one name are one variable in all files, and what is added up under one name is one measure. A combination of
labels that some table shows to be 0 is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.engine.data.arrays import Booleans, Floats, Integers
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.tables.declared_table import COUNT, TOTAL, DeclaredTable, Grouping, TableVariable
from sfumato.engine.tables.polytope import CellBounds
from sfumato.engine.tables.system import EMPTY, TableSystem, build_system
from sfumato.engine.wording import count_noun, join_names

from .printed_files import PrintedFile, PrintedLine

MAX_PLACES = 20_000_000
"""Combinations of the labels of one file."""
MAX_ATOMS = 400_000
"""Combinations of the labels of all linked files that no printed 0 rules out."""


@dataclass(frozen=True, eq=False)
class PrintedCells:
    """What the files print of the cells of a system; arrays are (cells,).

    system: atoms and cells; its values mean nothing
    bounds: what readers see of each cell
    hidden: cells that a file hides
    primary: cells that a file hides for their own sake
    tells_primary: whether every file says of hidden cells which are hidden for their own sake
    shown: the value of each cell where the files show it, hidden ones too, NaN elsewhere
    sole: cells that one contributor is alone in
    places: one place of each hidden cell: file and line
    shown_elsewhere: hidden cells that another line prints, with that line
    empty: hidden cells of which every combination is shown to be 0
    assumed_zeros: combinations that stand in no line and were taken for 0, by file
    """

    system: TableSystem
    bounds: CellBounds
    hidden: Booleans
    primary: Booleans
    tells_primary: bool
    shown: Floats
    sole: Integers
    places: Mapping[int, tuple[PrintedFile, PrintedLine]]
    shown_elsewhere: Mapping[int, tuple[PrintedFile, PrintedLine]]
    empty: tuple[tuple[PrintedFile, PrintedLine], ...]
    assumed_zeros: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class _Axis:
    """A variable over all files.

    groupings: label of each value in each grouping, None in none; the first has the values themselves
    names: name of each grouping
    """

    groupings: tuple[tuple[str | None, ...], ...]
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.groupings[0])

    def values_of(self, label: str) -> Booleans:
        """Return which values a label contains, (size,)."""
        if label == TOTAL:
            return np.ones(self.size, dtype=np.bool_)
        grouping = next(own for own in self.groupings if label in own)
        return np.array([own == label for own in grouping], dtype=np.bool_)


def join_printed_files(
    files: Sequence[PrintedFile],
    trees: Mapping[str, Sequence[Hierarchy]],
    missing: str = "zero",
    rounding: float = 0.0,
) -> PrintedCells:
    """Return the tables of several files as one system.

    Args:
        files: the tables.
        trees: hierarchies of variables, by name, besides those that files name.
        missing: what a combination in no line of its file is: "zero" or "hidden".
        rounding: printed values lie within half of it of the true ones; 0 where they are exact.

    Raises BadInput with file and line where the tables contradict one another, NotComputable for too many combinations.
    """
    names = list(dict.fromkeys(name for one in files for name in one.variables))
    if strange := sorted(set(trees) - set(names)):
        raise BadInput("--hierarchy", f'no file has a column "{strange[0]}"; known: {", ".join(names)}')
    axes = {name: _make_axis(name, files, trees, missing) for name in names}
    declared, assumed = list[DeclaredTable](), dict[str, int]()
    by_measure = dict[str, list[int]]()
    for at, one in enumerate(files):
        by_measure.setdefault(one.measure, []).append(at)
    rows_of_measure = dict[str, dict[str, Integers]]()
    allowed = {at: _allowed_combinations(one, axes, missing, assumed) for at, one in enumerate(files)}
    for measure, own in by_measure.items():
        rows_of_measure[measure] = _join_rows([(files[at], allowed[at]) for at in own], axes)
    total_rows = sum(len(next(iter(rows.values()), [0])) for rows in rows_of_measure.values())
    start = 0
    for measure, own in by_measure.items():
        rows = rows_of_measure[measure]
        number = len(next(iter(rows.values()))) if rows else 1
        inside = np.zeros(total_rows, dtype=np.bool_)
        inside[start : start + number] = True
        for at in own:
            one = files[at]
            variables = tuple(
                _declare_variable(name, axes[name], _spread(rows[name], start, total_rows), total is not None)
                for name, total in zip(one.variables, one.totals, strict=True)
            )
            value = None if measure == COUNT else np.ones(total_rows)
            declared.append(DeclaredTable(str(at), variables, value, measure, where=inside))
        start += number
    if not total_rows:
        raise BadInput("tables", "every cell is 0")
    system = build_system(declared)
    return _place_lines(files, system, rounding, assumed)


def _spread(codes: Integers, start: int, number: int) -> Integers:
    """Return codes of some rows as those of all, -1 elsewhere, (number,)."""
    found = np.full(number, -1, dtype=np.int64)
    found[start : start + len(codes)] = codes
    return found


def _make_axis(
    name: str, files: Sequence[PrintedFile], trees: Mapping[str, Sequence[Hierarchy]], missing: str
) -> _Axis:
    """Return a variable with all values that any file has. Raises BadInput for labels that nothing relates."""
    having = [one for one in files if name in one.variables]
    labels = dict[str, tuple[PrintedFile, PrintedLine]]()
    for one in having:
        at = one.variables.index(name)
        for line in one.lines:
            if line.labels[at] != TOTAL:
                labels.setdefault(line.labels[at], (one, line))
    own = [*trees.get(name, ()), *(one.trees[name] for one in having if name in one.trees)]
    if not own:
        _check_same_labels(name, having)
        return _Axis((tuple(labels),), ("",))
    columns, titles = list[list[str | None]](), list[str]()
    leaves = list(dict.fromkeys(row[0] for tree in own for row in tree.rows))
    known = {node for tree in own for row in tree.rows for node in row}
    for label, (one, line) in labels.items():
        if label not in known:
            raise BadInput(
                f"{one.file}, line {line.number}",
                f'"{label}" of {name} is in no line of its hierarchy; add it there, or name it by --total where it is the '
                "total",
            )
    columns.append([leaf if leaf in labels else None for leaf in leaves])
    titles.append("")
    for number, tree in enumerate(own):
        row_of = {row[0]: row for row in tree.rows}
        for level in range(1, tree.height + 1):
            nodes = [row_of[leaf][level] if leaf in row_of else None for leaf in leaves]
            used = [node if node in labels else None for node in nodes]
            if any(used) and used not in columns:
                columns.append(used)
                titles.append(f"level {level}" if len(own) == 1 else f"hierarchy {number + 1} level {level}")
    # Values that no label of any file tells apart are one.
    distinct = list(dict.fromkeys(zip(*columns, strict=True)))
    if missing == "zero":
        # A value of the hierarchy without any line, beside others of its node that have one, has no records.
        distinct = [own for own in distinct if None not in own or not any(_names_more(one, own) for one in distinct)]
    return _Axis(tuple(zip(*distinct, strict=True)), tuple(titles))


def _names_more(other: Sequence[str | None], own: Sequence[str | None]) -> bool:
    """Return whether labels are those of another value, and more of them."""
    return other != own and all(one is None or one == its for one, its in zip(own, other, strict=True))


def _check_same_labels(name: str, files: Sequence[PrintedFile]) -> None:
    """Raise BadInput where two files have rows of a variable that cannot be compared."""
    first = max(files, key=lambda one: len({line.labels[one.variables.index(name)] for line in one.lines}))
    known = {line.labels[first.variables.index(name)] for line in first.lines}
    for one in files:
        at = one.variables.index(name)
        for line in one.lines:
            if line.labels[at] not in known and line.labels[at] != TOTAL:
                raise BadInput(
                    f"{one.file}, line {line.number}",
                    f'"{line.labels[at]}" of {name} is no row of "{first.file}"; name the hierarchy that relates them by '
                    f"--hierarchy {name}=FILE.hrc, or the total by --total, or rename the column where it is another variable",
                )


def _allowed_combinations(
    one: PrintedFile, axes: Mapping[str, _Axis], missing: str, assumed: dict[str, int]
) -> Booleans:
    """Return which combinations of values no cell of a file shows to be 0, an axis a variable."""
    shape = tuple(axes[name].size for name in one.variables)
    if math.prod(shape) > MAX_PLACES:
        raise NotComputable(f'"{one.file}" has {math.prod(shape):,} combinations of labels, at most {MAX_PLACES:,}')
    found = np.ones(shape, dtype=np.bool_)
    known = np.zeros(shape, dtype=np.bool_)  # combinations with a line of their own
    own_values = [
        {label: axes[name].values_of(label) for label in dict.fromkeys(line.labels[at] for line in one.lines)}
        for at, name in enumerate(one.variables)
    ]
    single = [
        {label: int(np.flatnonzero(values)[0]) for label, values in own.items() if values.sum() == 1}
        for own in own_values
    ]
    any_inner = False
    for line in one.lines:
        places = [own.get(label) for own, label in zip(single, line.labels, strict=True)]
        is_inner = all(place is not None for place in places)
        if is_inner:
            known[tuple(places)] = True
            any_inner = True
        if line.high == 0:
            if is_inner:
                found[tuple(places)] = False
            else:
                inside = [np.flatnonzero(own[label]) for own, label in zip(own_values, line.labels, strict=True)]
                found[np.ix_(*inside)] = False
    if missing == "zero" and any_inner:
        # Labels that this file never has are in other files' tables only.
        rows = [np.zeros(size, dtype=np.bool_) for size in shape]
        for at, own in enumerate(single):
            rows[at][list(own.values())] = True
        absent = np.zeros(shape, dtype=np.bool_)
        absent[np.ix_(*[np.flatnonzero(row) for row in rows])] = True
        absent &= ~known & found
        if absent.any():
            assumed[one.file] = int(absent.sum())
            found &= ~absent
    return found


def _join_rows(files: Sequence[tuple[PrintedFile, Booleans]], axes: Mapping[str, _Axis]) -> dict[str, Integers]:
    """Return all combinations of values that every file allows, by variable, (rows,) each. Raises NotComputable."""
    rows = dict[str, Integers]()
    number = 1
    # Files with the most variables rule out most.
    for one, allowed in sorted(files, key=lambda pair: -len(pair[0].variables)):
        shared = [at for at, name in enumerate(one.variables) if name in rows]
        fresh = [at for at in range(len(one.variables)) if at not in shared]
        table = allowed.transpose([*shared, *fresh])
        width = math.prod(table.shape[len(shared) :])
        table = table.reshape(-1, width)
        keys = np.zeros(number, dtype=np.int64)
        for at in shared:
            name = one.variables[at]
            keys = keys * axes[name].size + rows[name]
        counts = table.sum(axis=1)[keys] if shared else np.full(number, table.sum())
        if int(counts.sum()) > MAX_ATOMS:
            names = join_names([f'"{file.file}"' for file, _ in files])
            raise NotComputable(
                f"{names} have more than {MAX_ATOMS:,} combinations of labels together, which are too many to look at as "
                "one; audit fewer files together, or tables with fewer labels. An audit of parts is no audit of the whole"
            )
        owner = np.repeat(np.arange(number), counts)
        line, place = np.nonzero(table)
        start = np.searchsorted(line, keys if shared else np.zeros(number, dtype=np.int64))
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = place[np.repeat(start, counts) + within] if len(owner) else np.zeros(0, dtype=np.int64)
        rows = {name: codes[owner] for name, codes in rows.items()}
        number = len(owner)
        if fresh:
            parts = np.unravel_index(chosen, tuple(axes[one.variables[at]].size for at in fresh))
            rows |= {one.variables[at]: part.astype(np.int64) for at, part in zip(fresh, parts, strict=True)}
    return rows


def _declare_variable(name: str, axis: _Axis, codes: Integers, total: bool) -> TableVariable:
    """Return a variable of a table over rows with these values, -1 for rows of other measures."""
    groupings = list[Grouping]()
    for title, labels in zip(axis.names, axis.groupings, strict=True):
        texts = [label for label in dict.fromkeys(labels) if label is not None]
        of_value = np.array([-1 if label is None else texts.index(label) for label in labels] + [-1], dtype=np.int64)
        groupings.append(Grouping(title, of_value[codes], tuple(texts)))
    return TableVariable(name, tuple(groupings), total)


def _place_lines(
    files: Sequence[PrintedFile], system: TableSystem, rounding: float, assumed: Mapping[str, int]
) -> PrintedCells:
    """Return what the lines say of the cells. Raises BadInput where two lines contradict one another."""
    number = system.cell_count
    low, high = np.zeros(number), np.full(number, np.inf)
    shown = np.full(number, np.nan)
    hidden, primary = np.zeros(number, dtype=np.bool_), np.zeros(number, dtype=np.bool_)
    printed_by = dict[int, tuple[PrintedFile, PrintedLine]]()
    places = dict[int, tuple[PrintedFile, PrintedLine]]()
    empty, sole = list[tuple[PrintedFile, PrintedLine]](), set[int]()
    tells = True
    for at, one in enumerate(files):
        table = next(own for own in system.tables if own.name == str(at))
        index = [
            {label: place for place, (_, label) in reversed(list(enumerate(options)))} for options in table.options
        ]
        slack = rounding / 2
        for line in one.lines:
            cell = int(table.cells[tuple(own[label] for own, label in zip(index, line.labels, strict=True))])
            here = f"{one.file}, line {line.number}"
            if cell == EMPTY:
                if line.is_hidden:
                    empty.append((one, line))
                elif line.low > slack:
                    raise BadInput(
                        here,
                        f"{one.name_cell(line)} is {line.low:g}, and all cells below it are 0 or in no line; add their lines, "
                        "or say --missing hidden",
                    )
                continue
            if line.is_hidden:
                hidden[cell] = True
                places.setdefault(cell, (one, line))
                tells = tells and line.is_primary is not None
                primary[cell] |= line.is_primary is True
                if line.shown is not None:
                    shown[cell] = line.shown
                high[cell] = min(high[cell], line.high)
            else:
                if cell in printed_by and abs(printed_by[cell][1].low - line.low) > rounding * (1 + 1e-9):
                    other, earlier = printed_by[cell]
                    raise BadInput(
                        here,
                        f"{one.name_cell(line)} is {line.low:g}; {other.name_cell(earlier)} in {other.file}, line "
                        f"{earlier.number}, has the same records and is {earlier.low:g}; correct one, or say how far values "
                        "are rounded by --rounding",
                    )
                low[cell], high[cell] = max(low[cell], line.low - slack, 0.0), min(high[cell], line.high + slack)
                shown[cell] = line.low
                printed_by.setdefault(cell, (one, line))
            if (line.contributors == 1) or (one.is_whole and line.shown == 1):
                sole.add(cell)
    elsewhere = {cell: printed_by[cell] for cell in np.flatnonzero(hidden).tolist() if cell in printed_by}
    return PrintedCells(
        system, CellBounds(low, high), hidden, primary, tells and bool(hidden.any()), shown,
        np.array(sorted(sole), dtype=np.int64), places, elsewhere, tuple(empty), dict(assumed),
    )  # fmt: skip


def check_sums(files: Sequence[PrintedFile], cells: PrintedCells, rounding: float) -> None:
    """Raise BadInput at the first line whose value is not the sum of the printed cells that it contains."""
    system, bounds = cells.system, cells.bounds
    line_of = dict[int, tuple[PrintedFile, PrintedLine]]()
    for at, one in enumerate(files):
        table = next(own for own in system.tables if own.name == str(at))
        index = [
            {label: place for place, (_, label) in reversed(list(enumerate(options)))} for options in table.options
        ]
        for line in one.lines:
            cell = int(table.cells[tuple(own[label] for own, label in zip(index, line.labels, strict=True))])
            if cell != EMPTY and not line.is_hidden:
                line_of.setdefault(cell, (one, line))
    for parent, children in system.list_partitions():
        if parent not in line_of:
            continue
        least, most = float(bounds.low[children].sum()), float(bounds.high[children].sum())
        scale = 1e-9 * max(1.0, abs(least))
        if bounds.high[parent] < least - scale or bounds.low[parent] > most + scale:
            one, line = line_of[parent]
            complete = bool(np.isfinite(most))
            what = "add up to" if complete else "that are printed add up to"
            raise BadInput(
                f"{one.file}, line {line.number}",
                f"{one.name_cell(line)} is {line.low:g}, and {count_noun(len(children), 'cell')} below it {what} {least:g}; "
                "where rows contain other rows, name their hierarchy by --hierarchy, where values are rounded, --rounding, where rows "
                "without a line are not 0, --missing hidden",
            )
