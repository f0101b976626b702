"""Tables as screens declare them: columns with their cells, the key of a row, words that rows are found by."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from sfumato.workspace.reporting.tables import Column, fitted, on_grid

from .pages import TableRow

Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)
Cells = Mapping[str, object]
"""The cells of a row, by the names of the columns."""
Keyed = tuple[Hashable, Cells]
"""A row that is its key and its cells."""


@dataclass(frozen=True)
class TableColumn(Column, Generic[Row]):
    """A column with its ``cell`` of a row; an ``optional`` one is there only where a row has something in it."""

    cell: Callable[[Row], object] | None = field(default=None, kw_only=True, compare=False)
    optional: bool = field(default=False, kw_only=True)


Columns = Sequence[TableColumn[Row]]


def columns_of(columns: Iterable[Column]) -> tuple[TableColumn[Any], ...]:
    """Columns whose cells a table takes from ``values``."""
    return tuple(
        TableColumn(one.name, one.title, one.width, one.align, one.spare, one.grows, one.full, one.page)
        for one in columns
    )


def _nothing(_: object) -> Cells:
    return {}


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Rows of one kind on a grid.

    ``values`` are the cells, by name, of the columns that have no ``cell``. Without a ``key`` a row is known by its place.
    ``words`` are what rows are found by, the cells by default; ``order`` sorts them; ``fit`` lays the columns out in so many cells.
    """

    columns: Columns[Row]
    key: Callable[[Row], Hashable] | None = None
    values: Callable[[Row], Cells] = _nothing
    words: Callable[[Row], Cells] | None = None
    order: Callable[[Row], Any] | None = None
    fit: Callable[[Columns[Row], int], Columns[Row]] = fitted

    def sorted(self, rows: Sequence[Row]) -> Sequence[Row]:
        return rows if self.order is None else sorted(rows, key=self.order)

    def keys(self, rows: Sequence[Row]) -> Sequence[Hashable]:
        return range(len(rows)) if self.key is None else [self.key(row) for row in rows]

    def fitted(self, rows: Sequence[Row], width: int) -> Columns[Row]:
        """The columns in ``width`` cells, without the optional ones that no row fills."""
        there = [column for column in self.columns if not column.optional or any(map(column.cell or bool, rows))]
        return self.fit(there, width)

    def cells(self, columns: Columns[Row], row: Row) -> tuple[object, ...]:
        """The cells of a row in these columns."""
        values = self.values(row)
        return tuple(on_grid(values[one.name] if one.cell is None else one.cell(row)) for one in columns)

    def found_by(self, row: Row) -> Cells:
        """What words are looked for in, by title."""
        if self.words is not None:
            return self.words(row)
        return dict(zip([one.name for one in self.columns], self.cells(self.columns, row), strict=True))


class Source(Protocol[Row_co]):
    """Rows that are read a page at a time, off the event loop."""

    def __len__(self) -> int: ...

    def lines(self, offset: int, limit: int) -> Sequence[Row_co]: ...


@dataclass(frozen=True, eq=False)
class TablePages(Generic[Row]):
    """A table of a source as a grid reads it."""

    table: Table[Row]
    source: Source[Row]
    columns: Columns[Row]

    @classmethod
    def fitted(cls, table: Table[Row], source: Source[Row], width: int) -> TablePages[Row]:
        return cls(table, source, table.fit(table.columns, width))

    def count(self) -> int:
        return len(self.source)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        return [self.table.cells(self.columns, row) for row in self.source.lines(offset, limit)]


def keyed_table(columns: Columns[Keyed]) -> Table[Keyed]:
    """A table of rows whose cells have been made."""
    return Table(columns, lambda row: row[0], lambda row: row[1])
