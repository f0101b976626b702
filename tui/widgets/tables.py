"""Tables as screens declare them: columns with their cells, the key of a row, and words to filter rows by."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from rich.cells import cell_len

from sfumato.workspace.reporting.tables import DisplayColumn, fit_columns, grid_value, grid_width

from .pages import RowHeading, TableRow

MOST_MEASURED_ROWS = 500
"""Rows by whose cells columns are narrowed: later ones of a long list would cost more than they tell."""

Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)
Cells = Mapping[str, object]
"""Cells of a row, by name of the column."""
Keyed = tuple[Hashable, Cells]
"""Row given as its key and its cells."""


@dataclass(frozen=True)
class TableColumn(DisplayColumn, Generic[Row]):
    """Column of a table of a screen.

    cell: function that returns the column's cell of a row
    optional: whether the column is left out if no row has a value
    yields: whether it is left out before a cell of the growing column is cut
    least_width: cells that it keeps though its texts are shorter, since they change by themselves
    """

    cell: Callable[[Row], object] | None = field(default=None, kw_only=True, compare=False)
    optional: bool = field(default=False, kw_only=True)
    yields: bool = field(default=False, kw_only=True)
    least_width: int = field(default=0, kw_only=True)


Columns = Sequence[TableColumn[Row]]


def table_columns(columns: Iterable[DisplayColumn]) -> tuple[TableColumn[Any], ...]:
    """Return the columns as columns of a screen's table, whose cells come from its ``values``."""
    return tuple(
        TableColumn(
            one.name,
            one.title,
            one.width,
            one.align,
            one.drop_order,
            one.grow_order,
            one.full_title,
            one.page_only,
            one.spills,
        )
        for one in columns
    )


def _no_cells(_: object) -> Cells:
    return {}


def _no_heading(_: object) -> RowHeading | None:
    return None


@dataclass(frozen=True)
class GridTable(Generic[Row]):
    """Table of rows of one kind on a grid.

    columns: the columns
    key: key of a row; by default its index
    values: cells, by name, of the columns that have no ``cell``
    search_texts: texts that filters search; by default the cells
    sort_key: sort key of a row; by default rows keep their order
    column_fitter: function that fits the columns into a width
    heading: heading that stands in place of a row's cells; None for a row
    """

    columns: Columns[Row]
    key: Callable[[Row], Hashable] | None = None
    values: Callable[[Row], Cells] = _no_cells
    search_texts: Callable[[Row], Cells] | None = None
    sort_key: Callable[[Row], Any] | None = None
    column_fitter: Callable[[Columns[Row], int], Columns[Row]] = fit_columns
    heading: Callable[[Row], RowHeading | None] = _no_heading

    def sort_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        return rows if self.sort_key is None else sorted(rows, key=self.sort_key)

    def row_keys(self, rows: Sequence[Row]) -> Sequence[Hashable]:
        return range(len(rows)) if self.key is None else [self.key(row) for row in rows]

    def columns_in(self, rows: Sequence[Row], width: int) -> Columns[Row]:
        """Return the columns that fit in ``width`` cells, without the optional ones that no row fills."""
        there = [column for column in self.columns if not column.optional or any(map(column.cell or bool, rows))]
        fitted = self.column_fitter(there, width)
        growing = [one for one in fitted if one.grow_order]
        # A table with a rule of its own for the widths of its columns keeps to it.
        is_own_rule = self.column_fitter is not fit_columns
        if is_own_rule or all(self._longest_cell(one, rows) <= one.width for one in growing):
            return fitted
        return self._columns_with_whole_title(there, rows, width)

    def _columns_with_whole_title(
        self, there: Sequence[TableColumn[Row]], rows: Sequence[Row], width: int
    ) -> Columns[Row]:
        """Return the columns so that no title is cut beside columns that are wider than what they hold.

        There is first room for every growing column, then for the last of them in their order, which names the row.
        """
        # Another width of one column repaints every row, and texts that change would give it one at each step of a run.
        longest = {
            one.name: max(1, cell_len(one.title), self._longest_cell(one, rows), one.least_width) for one in there
        }
        growing = sorted((one for one in there if one.grow_order), key=lambda one: one.grow_order)
        narrowed = [one if one.grow_order else replace(one, width=min(one.width, longest[one.name])) for one in there]
        yielding = [one.name for one in sorted(there, key=lambda one: one.drop_order) if one.yields]
        for whole, left_out in [(growing, ()), *((growing[-1:], yielding[:at]) for at in range(len(yielding) + 1))]:
            names = {one.name for one in whole}
            columns = [replace(one, width=longest[one.name]) if one.name in names else one for one in narrowed]
            kept = [one for one in columns if one.name not in left_out]
            if grid_width(kept) <= width:
                # A narrow column may fit although a wider one that is worth more does not.
                for name in reversed(left_out):
                    more = [one for one in columns if one in kept or one.name == name]
                    kept = more if grid_width(more) <= width else kept
                return self.column_fitter(kept, width)
        return self.column_fitter(narrowed, width)

    def _longest_cell(self, column: TableColumn[Row], rows: Sequence[Row]) -> int:
        """Return the width in cells of a column's longest cell in the first rows."""
        return max((cell_len(str(self.row_cells([column], row)[0])) for row in rows[:MOST_MEASURED_ROWS]), default=0)

    def row_cells(self, columns: Columns[Row], row: Row) -> tuple[object, ...]:
        """Return the cells of a row in these columns; of a heading it alone."""
        heading = self.heading(row)
        if heading is not None:
            return (heading,)
        values = self.values(row)
        return tuple(grid_value(values[one.name] if one.cell is None else one.cell(row)) for one in columns)

    def filter_fields(self, row: Row) -> Cells:
        """Return the texts that filters search, by title."""
        if self.search_texts is not None:
            return self.search_texts(row)
        return dict(zip([one.name for one in self.columns], self.row_cells(self.columns, row), strict=True))


class RowSource(Protocol[Row_co]):
    """Source of rows that are read a page at a time, off the event loop."""

    def __len__(self) -> int: ...

    def lines(self, offset: int, limit: int) -> Sequence[Row_co]: ...


@dataclass(frozen=True, eq=False)
class TablePages(Generic[Row]):
    """Table of a source, as pages of a grid.

    table: the table
    source: its rows
    columns: columns that fit
    """

    table: GridTable[Row]
    source: RowSource[Row]
    columns: Columns[Row]

    @classmethod
    def from_width(cls, table: GridTable[Row], source: RowSource[Row], width: int) -> TablePages[Row]:
        """Fit the table's columns into ``width`` cells."""
        return cls(table, source, table.column_fitter(table.columns, width))

    def count(self) -> int:
        return len(self.source)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        return [self.table.row_cells(self.columns, row) for row in self.source.lines(offset, limit)]


def keyed_table(columns: Columns[Keyed]) -> GridTable[Keyed]:
    """Return a table of rows that are pairs of a key and finished cells."""
    return GridTable(columns, lambda row: row[0], lambda row: row[1])
