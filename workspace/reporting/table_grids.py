"""Protected tables as grids of rows and columns, with a letter and a sentence for what becomes of each cell.

The first variables of a table are its rows, the last one its columns. Hierarchies are indented below their nodes, and
totals are marked. Letters name what happens to a cell; values of hidden cells are confidential and stand in a grid only
where a caller reveals them.
"""

from __future__ import annotations

import contextlib
import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sfumato.engine.data.arrays import Booleans, Floats, Integers
from sfumato.engine.recipe.table_sections import PlannedTable
from sfumato.engine.tables.declared_table import TOTAL
from sfumato.engine.tables.system import EMPTY, PrintedTable, TableSystem
from sfumato.engine.wording import format_number

from ..table_files.printed_tables import HIDDEN_MARK, CellStatuses
from ..visible_text import replace_unprintable

if TYPE_CHECKING:
    from sfumato.engine.tables.audit import TableAudit

PRINTED, ZERO, FROZEN, UNSAFE, SECONDARY, FOLLOWS, TOO_CLOSE, UNDECIDED = ".", "Z", "F", "P", "S", "!", "<", "?"
LETTERS: Mapping[str, str] = {
    UNSAFE: "hidden: unsafe by a rule",
    SECONDARY: "hidden to protect another cell",
    FOLLOWS: "follows exactly from what is printed",
    TOO_CLOSE: "can be estimated too closely",
    UNDECIDED: "not known whether it follows",
    FROZEN: "printed, whatever follows",
    ZERO: "printed: no records",
    PRINTED: "printed",
}
"""What each letter says of a cell."""
OPEN_LETTERS = (FOLLOWS, TOO_CLOSE, UNDECIDED)
"""Letters of unsafe cells that are not shown to be protected."""
HIDDEN_LETTERS = (UNSAFE, SECONDARY, *OPEN_LETTERS)
TOTAL_TEXT = "total"
INDENT = "  "


@dataclass(frozen=True, slots=True)
class GridLabel:
    """Label of a row or a column of a grid along one variable.

    text: the label; ``total`` for all groups together
    key: the label as a recipe names it, with its grouping where it stands in several; empty for a total
    depth: how many nodes of its hierarchy stand above it
    is_total: whether it is all groups together
    """

    text: str
    key: str = ""
    depth: int = 0
    is_total: bool = False

    @property
    def indented(self) -> str:
        """Return the label with two blanks for each node above it."""
        return f"{INDENT * self.depth}{self.text}"


@dataclass(frozen=True, eq=False)
class TableGrid:
    """One table as rows and columns.

    number: its number among the tables of the recipe, from 1
    name: its name
    measure: what it adds up, in words, such as ``number of records``
    row_names: variables of the rows
    column_name: variable of the columns; empty where the table has none
    rows: labels of each row, one for each variable of the rows
    columns: label of each column
    cells: cell of the system at each place, ``EMPTY`` without records, (rows, columns)
    letters: what becomes of each cell, (rows, columns)
    published: whether each cell is printed, (rows, columns)
    values: value of each cell, (rows, columns)
    whole: whether values are numbers of records
    """

    number: int
    name: str
    measure: str
    row_names: tuple[str, ...]
    column_name: str
    rows: tuple[tuple[GridLabel, ...], ...]
    columns: tuple[GridLabel, ...]
    # Errors print fields of this kind: values must not be among them.
    cells: Integers = field(repr=False)
    letters: Any = field(repr=False)
    published: Booleans = field(repr=False)
    values: Floats = field(repr=False)
    whole: bool

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the variables of the table, that of the columns last."""
        return (*self.row_names, *filter(None, [self.column_name]))

    @property
    def cell_count(self) -> int:
        """Return the number of places."""
        return int(self.cells.size)

    def count_letters(self, *letters: str) -> int:
        """Return the number of places with one of these letters."""
        return int(np.isin(self.letters, letters).sum())

    def labels_at(self, row: int, column: int) -> tuple[GridLabel, ...]:
        """Return the label of each variable at a place."""
        return (*self.rows[row], *([self.columns[column]] if self.column_name else []))

    def keys_at(self, row: int, column: int) -> dict[str, str]:
        """Return the label of each variable at a place as a recipe names it; a total is the empty label."""
        labels = self.labels_at(row, column)
        return {name: label.key for name, label in zip(self.variables, labels, strict=True)}

    def describe_place(self, row: int, column: int) -> str:
        """Return a place in words: ``region north, sex total``."""
        labels = self.labels_at(row, column)
        parts = [f"{name} {label.text}" for name, label in zip(self.variables, labels, strict=True)]
        return replace_unprintable(", ".join(parts)) or TOTAL_TEXT

    def value_text(self, row: int, column: int) -> str:
        """Return the value at a place as it is printed; confidential where the place is hidden."""
        value = float(self.values[row, column])
        return f"{round(value):,}" if self.whole else format_number(value)

    def cell_text(self, row: int, column: int, *, revealed: bool) -> str:
        """Return what a screen shows at a place: its value where it is printed or ``revealed``, and its letter."""
        letter = str(self.letters[row, column])
        shown = letter if letter in HIDDEN_LETTERS or letter == FROZEN else ""
        if not (self.published[row, column] or revealed):
            return letter
        return f"{self.value_text(row, column)} {shown}".rstrip()

    def released_text(self, row: int, column: int) -> str:
        """Return what a reader of the release sees at a place: its value, or the mark of a hidden cell."""
        return self.value_text(row, column) if self.published[row, column] else HIDDEN_MARK

    def next_place(self, row: int, column: int, letters: Sequence[str], step: int = 1) -> tuple[int, int] | None:
        """Return the next place with one of these letters, row by row; from the other end after the last.

        None where no other place has one.
        """
        places = np.flatnonzero(np.isin(self.letters, list(letters)).ravel())
        here = row * self.letters.shape[1] + column
        places = places[places != here]
        if not len(places):
            return None
        beyond = places[places > here] if step > 0 else places[places < here][::-1]
        found = int(beyond[0]) if len(beyond) else int(places[0 if step > 0 else -1])
        return found // self.letters.shape[1], found % self.letters.shape[1]


class AuditedTables(Protocol):
    """Protected tables with what a reader finds out, as a run stores them or a trial computes them."""

    @property
    def system(self) -> TableSystem:
        """Return atoms and cells of all tables."""

    @property
    def audit(self) -> TableAudit:
        """Return which cells are printed, and what readers find out."""

    @property
    def frozen(self) -> Booleans:
        """Return the cells that are printed whatever follows, (cells,)."""

    @property
    def unprotected(self) -> Booleans:
        """Return the unsafe cells that follow from frozen ones, or are frozen, (cells,)."""

    @property
    def printed(self) -> tuple[PrintedTable, ...]:
        """Return the tables of the release, in the order of the recipe."""

    @property
    def statuses(self) -> CellStatuses:
        """Return what becomes of each cell."""

    @property
    def are_zeros_hidden(self) -> bool:
        """Return whether cells without records are hidden."""

    @property
    def are_contributors_examined(self) -> bool:
        """Return whether contributors, who know their own part of each cell, were looked at."""


def table_grids(found: AuditedTables, planned: Sequence[PlannedTable]) -> tuple[TableGrid, ...]:
    """Return the tables of a release as grids, in the order of the recipe."""
    letters = cell_letters(found)
    printed = {one.name: one for one in found.printed}
    return tuple(
        _make_grid(number, table, printed[table.name], found.statuses, letters, found.are_zeros_hidden)
        for number, table in enumerate(planned, 1)
    )


def cell_letters(found: AuditedTables) -> Any:
    """Return the letter of each cell of a system, (cells,)."""
    audit, published = found.audit, found.audit.published
    letters = np.full(found.system.cell_count, PRINTED)
    letters[found.system.values == 0] = ZERO
    letters[found.frozen & published] = FROZEN
    letters[~published] = SECONDARY
    letters[audit.primary & ~published] = UNSAFE
    # The worst comes last: it stands over whatever else is true of the cell.
    letters[audit.undecided] = UNDECIDED
    if not found.are_contributors_examined:
        letters[audit.primary & ~published] = UNDECIDED
    letters[audit.short_of_level] = TOO_CLOSE
    letters[audit.exact_outside | audit.exact_zeros_shown | audit.exact_contributor | found.unprotected] = FOLLOWS
    return letters


def _make_grid(
    number: int,
    table: PlannedTable,
    printed: PrintedTable,
    statuses: CellStatuses,
    letters: Any,
    are_zeros_hidden: bool,
) -> TableGrid:
    """Return one table as a grid."""
    orders = [
        _order_options(table, name, options) for name, options in zip(printed.variables, printed.options, strict=True)
    ]
    places = np.ix_(*([at for at, _ in order] for order in orders)) if orders else ()
    cells = printed.cells[places]
    # One variable is easier to read downwards, and the column is named for what is added up.
    across = orders[-1] if len(orders) > 1 else [(0, GridLabel(measure_text(table)))]
    down = orders[:-1] if len(orders) > 1 else orders
    columns = tuple(label for _, label in across)
    rows = tuple(itertools.product(*([label for _, label in order] for order in down)))
    shape = (len(rows), len(columns))
    cells = np.asarray(cells, dtype=np.int64).reshape(shape)
    empty = cells == EMPTY
    known = np.where(empty, 0, cells)
    return TableGrid(
        number,
        table.name,
        measure_text(table),
        printed.variables if len(orders) == 1 else printed.variables[:-1],
        printed.variables[-1] if len(orders) > 1 else "",
        rows,
        columns,
        cells,
        np.where(empty, UNSAFE if are_zeros_hidden else ZERO, letters[known]),
        np.where(empty, not are_zeros_hidden, statuses.published[known]),
        np.where(empty, 0.0, statuses.values[known]),
        bool(table.value is None and table.weights is None),
    )


def measure_text(table: PlannedTable) -> str:
    """Return what a table adds up in words: ``number of records``, ``turnover weighted by weight``."""
    own = table.value or "number of records"
    return f"{own} weighted by {table.weights}" if table.weights else own


def _order_options(table: PlannedTable, name: str, options: Sequence[tuple[str, str]]) -> list[tuple[int, GridLabel]]:
    """Return the places of an axis in the order of a page, each with its label: a node before what lies below it."""
    above = _nodes_above(table, name, options)
    children: dict[int | None, list[int]] = {}
    for place in range(len(options)):
        children.setdefault(above.get(place), []).append(place)
    times = Counter(label for _, label in options)
    found = list[tuple[int, GridLabel]]()

    def add_places(parent: int | None, depth: int) -> None:
        """Add the places below a node, each followed by those below it."""
        for place in children.get(parent, []):
            found.append((place, _make_label(options[place], depth, is_single=times[options[place][1]] == 1)))
            add_places(place, depth + 1)

    add_places(None, 0)
    return found


def _make_label(option: tuple[str, str], depth: int, *, is_single: bool) -> GridLabel:
    """Return the label of a place of an axis; ``is_single`` is whether no other place has its text."""
    grouping, label = option
    if label == TOTAL:
        return GridLabel(TOTAL_TEXT, "", depth, is_total=True)
    # The levels of a tree are shown by their indent; any other grouping has to be named.
    text = f"{grouping}: {label}" if grouping and not grouping.startswith("level ") else label
    return GridLabel(replace_unprintable(text), label if is_single else f"{grouping}:{label}", depth)


def _nodes_above(table: PlannedTable, name: str, options: Sequence[tuple[str, str]]) -> dict[int, int]:
    """Return the place of the nearest printed node above each place of an axis that lies below one."""
    levels = table.printed_levels(name)
    place_of = {option: place for place, option in enumerate(options)}
    found = dict[int, int]()
    # From the highest level down: the nearest node is written last.
    for at, level in enumerate(levels[:-1]):
        labels = [label for grouping, label in options if label != TOTAL and grouping == _level_name(level)]
        for upper in reversed(levels[at + 1 :]):
            above = _labels_above(table, name, labels, level, upper, options)
            for label in labels:
                place = place_of.get((_level_name(upper), above.get(label, "")))
                if place is not None:
                    found[place_of[_level_name(level), label]] = place
    return found


def _level_name(level: int) -> str:
    """Return the name of the grouping at a level of a tree or of widths."""
    return f"level {level}" if level else ""


def _labels_above(
    table: PlannedTable, name: str, labels: Sequence[str], level: int, upper: int, options: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Return the label at a higher level above each of some labels, where there is one."""
    if name in table.hierarchies:
        return {row[level]: row[upper] for row in table.hierarchies[name].rows}
    # Intervals nest: the one above starts at or before this one, and is the last that does.
    starts = sorted(
        (start, text)
        for grouping, text in options
        if grouping == _level_name(upper) and (start := _interval_start(text)) is not None
    )
    found = dict[str, str]()
    for label in labels:
        own = _interval_start(label)
        at = 0 if own is None else bisect_right(starts, own, key=lambda pair: pair[0])
        if at:
            found[label] = starts[at - 1][1]
    return found


def _interval_start(label: str) -> float | None:
    """Return where an interval such as ``[20, 30)`` or ``[2001-01-01, 2001-02-01)`` starts; None for other labels."""
    start, comma, _ = label.removeprefix("[").partition(", ")
    if not (label.startswith("[") and comma):
        return None
    with contextlib.suppress(ValueError):
        return float(start)
    with contextlib.suppress(ValueError):
        return float(np.datetime64(start, "D").astype(np.int64))
    return None
