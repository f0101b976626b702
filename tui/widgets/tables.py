"""Tables as screens declare them: columns with their cells, the key of a row, and words to filter rows by."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from sfumato.workspace.reporting.tables import DisplayColumn, fit_columns, grid_value

from .pages import TableRow

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
    """

    cell: Callable[[Row], object] | None = field(default=None, kw_only=True, compare=False)
    optional: bool = field(default=False, kw_only=True)


Columns = Sequence[TableColumn[Row]]


def table_columns(columns: Iterable[DisplayColumn]) -> tuple[TableColumn[Any], ...]:
    """Return the columns as columns of a screen's table, whose cells come from its ``values``."""
    return tuple(
        TableColumn(
            one.name, one.title, one.width, one.align, one.drop_order, one.grow_order, one.full_title, one.page_only
        )
        for one in columns
    )


def _no_cells(_: object) -> Cells:
    return {}


@dataclass(frozen=True)
class GridTable(Generic[Row]):
    """Table of rows of one kind on a grid.

    columns: the columns
    key: key of a row; by default its index
    values: cells, by name, of the columns that have no ``cell``
    search_texts: texts that filters search; by default the cells
    sort_key: sort key of a row; by default rows keep their order
    column_fitter: function that fits the columns into a width
    """

    columns: Columns[Row]
    key: Callable[[Row], Hashable] | None = None
    values: Callable[[Row], Cells] = _no_cells
    search_texts: Callable[[Row], Cells] | None = None
    sort_key: Callable[[Row], Any] | None = None
    column_fitter: Callable[[Columns[Row], int], Columns[Row]] = fit_columns

    def sort_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        return rows if self.sort_key is None else sorted(rows, key=self.sort_key)

    def row_keys(self, rows: Sequence[Row]) -> Sequence[Hashable]:
        return range(len(rows)) if self.key is None else [self.key(row) for row in rows]

    def columns_in(self, rows: Sequence[Row], width: int) -> Columns[Row]:
        """Return the columns that fit in ``width`` cells, without the optional ones that no row fills."""
        there = [column for column in self.columns if not column.optional or any(map(column.cell or bool, rows))]
        return self.column_fitter(there, width)

    def row_cells(self, columns: Columns[Row], row: Row) -> tuple[object, ...]:
        """Return the cells of a row in these columns."""
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
