"""One table, however it is shown: built once as columns and rows of cells, drawn as text, as HTML, or on a grid of the app."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from ..plots.markup import Markup, element
from ..visible_text import replace_unprintable
from .terminal_text import cell_width, folded, padded
from .words import ASCII_MARKS, mark

Align = Literal["left", "right"]
GAP = 2
"""Cells between the columns of a line of text."""
LEAST_WORDS = 12
"""No column of words is made narrower, where it is wider."""
_SIGNS = {
    "pass": "✓", "fail": "✗", "not computed": "?",
    "met": "✓", "not met": "✗", "undecided": "~",
    "warn": "!", "block": "✗", "not checked": "?", "does not apply": "–",
}  # fmt: skip
Line = Sequence["Cell | str"]
"""The cells of a row, one a column."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: ``width`` in cells of a grid; numbers read best to the ``right``.

    ``full`` is its title on a page, where a line has little room for ``title``. A ``page`` column is shown on pages alone.
    Where there is too little room columns leave by their ``spare``, the lowest above 0 first. In a grid one column that
    ``grows`` takes what is left, of those that are there the lowest above 0.
    """

    name: str
    title: str
    width: int = 10
    align: Align = "left"
    spare: int = 0
    grows: int = 0
    full: str = ""
    page: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that is more than its ``text``: an ``outcome``, which has a sign, and all its words on a page, ``full``."""

    text: str
    outcome: str = ""
    full: str = ""


def outcome_cell(outcome: str) -> Cell:
    """The outcome of a verdict, or the status of a check, with its sign."""
    return Cell(outcome, outcome)


@dataclass(frozen=True)
class Table:
    """``columns`` and ``rows`` with a cell a column, under a ``title``, on a page one that says it in ``full``."""

    columns: Sequence[Column]
    rows: Sequence[Line]
    title: str = ""
    full: str = ""

    def only(self, kept: Iterable[int]) -> Table:
        """The table of some of its columns."""
        places = list(kept)
        return replace(
            self, columns=[self.columns[i] for i in places], rows=[[row[i] for i in places] for row in self.rows]
        )

    @property
    def filled(self) -> Table:
        """The table without the columns that no row says anything in."""
        if not self.rows:
            return self
        return self.only(i for i in range(len(self.columns)) if any(_text(row[i]) for row in self.rows))


def table(
    titles: Sequence[str], rows: Sequence[Line], right: Iterable[int] = (), spare: Sequence[int] = (), title: str = ""
) -> Table:
    """A table by the titles of its columns: those numbered in ``right`` are set flush right, ``spare`` ones leave in that order."""
    flush, leaving = set(right), {place: order for order, place in enumerate(spare, start=1)}
    made = [
        Column(name, name, align="right" if i in flush else "left", spare=leaving.get(i, 0))
        for i, name in enumerate(titles)
    ]
    return Table(made, rows, title)


def _text(cell: Cell | str) -> str:
    return cell if isinstance(cell, str) else cell.text


def text(table: Table, width: int | None = None) -> str:
    """Columns of text under their heads, in lines of at most ``width`` cells: spare columns are left out, then words go on below.

    What is not printable is shown as a question mark: names come from untrusted files.
    """
    table = table.filled
    table = table.only(i for i, column in enumerate(table.columns) if not column.page)
    lines = _lines(table)
    while width is not None and max(map(cell_width, lines)) > width:
        spare = [column.spare for column in table.columns if column.spare]
        if not spare:
            break
        table = table.only(i for i, column in enumerate(table.columns) if column.spare != min(spare))
        lines = _lines(table)
    if width is not None and max(map(cell_width, lines)) > width:
        lines = _lines(table, width)
    return "\n".join([*([replace_unprintable(table.title)] if table.title else []), *lines])


def _lines(table: Table, most: int | None = None) -> list[str]:
    cells = [[_plain(cell) for cell in row] for row in ([column.title for column in table.columns], *table.rows)]
    widths = [max(cell_width(line[i]) for line in cells) for i in range(len(table.columns))]
    heads = 1
    if most is not None:
        widths = _narrowed(widths, [column.align != "right" for column in table.columns], most)
        folded = [_folded(line, widths) for line in cells]
        heads, cells = len(folded[0]), [line for lines in folded for line in lines]
    lines = [
        (" " * GAP)
        .join(
            padded(cell, width, right=column.align == "right")
            for cell, width, column in zip(line, widths, table.columns, strict=True)
        )
        .rstrip()
        for line in cells
    ]
    lines.insert(heads, (" " * GAP).join("-" * width for width in widths))
    return lines


def _narrowed(widths: Sequence[int], words: Sequence[bool], most: int) -> list[int]:
    """The widths with those of words made less, the widest first, until all fit into ``most`` or none is above ``LEAST_WORDS``."""
    found = list(widths)
    while sum(found) + GAP * (len(found) - 1) > most:
        wide = [i for i, is_words in enumerate(words) if is_words and found[i] > LEAST_WORDS]
        if not wide:
            break
        found[max(wide, key=found.__getitem__)] -= 1
    return found


def _folded(cells: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """The lines of a row: what is wider than its column goes on below."""
    parts = [folded(cell, width) for cell, width in zip(cells, widths, strict=True)]
    return [[part[i] if i < len(part) else "" for part in parts] for i in range(max(map(len, parts)))]


def _plain(cell: Cell | str) -> str:
    if isinstance(cell, Cell) and cell.outcome:
        return f"{ASCII_MARKS[cell.outcome]} {replace_unprintable(cell.text)}"
    return replace_unprintable(_text(cell))


def html(table: Table) -> Markup:
    """The table as markup: every word there is; columns that are empty throughout are left out, numbers set flush right."""
    table = table.filled
    head = element("tr", [element("th", c.full or c.title, scope="col", class_=_class(c)) for c in table.columns])
    body = [element("tr", _cells(table.columns, row)) for row in table.rows]
    title = table.full or table.title
    caption = element("caption", title) if title else ""
    return element("table", caption, element("thead", head), element("tbody", body))


def _cells(columns: Sequence[Column], row: Line) -> list[Markup]:
    """The first cell of a row says what the others speak of."""
    words = [whole(cell) for cell in row]
    rest = [element("td", one, class_=_class(column)) for one, column in zip(words[1:], columns[1:], strict=True)]
    return [element("th", words[0], scope="row"), *rest]


def whole(cell: Cell | str) -> str:
    """All the words of a cell, with the sign of its outcome."""
    if isinstance(cell, str):
        return cell
    words = cell.full or cell.text
    return f"{_SIGNS[cell.outcome]} {words}" if cell.outcome else words


def _class(column: Column) -> str | None:
    return "number" if column.align == "right" else None


AnyColumn = TypeVar("AnyColumn", bound=Column)


def fitted(columns: Sequence[AnyColumn], width: int) -> tuple[AnyColumn, ...]:
    """The columns on a grid of ``width`` cells: spare ones leave while it is too little, one that grows takes what is left."""
    kept = tuple(columns)
    for spare in sorted((column for column in kept if column.spare), key=lambda column: column.spare):
        if grid_width(kept) <= width:
            break
        kept = tuple(column for column in kept if column.name != spare.name)
    room = max(0, width - grid_width(kept))
    grown = min((column for column in kept if column.grows), key=lambda column: column.grows, default=None)
    return tuple(replace(column, width=column.width + room) if column is grown else column for column in kept)


def grid_width(columns: Sequence[Column]) -> int:
    """Cells in a line of a grid: a blank at either end, GAP between columns."""
    return sum(column.width for column in columns) + GAP * max(len(columns) - 1, 0) + 2


def on_grid(value: object) -> object:
    """A value as a grid shows it: an outcome with its sign."""
    if isinstance(value, Cell):
        return f"{mark(value.outcome)} {value.text}" if value.outcome else value.text
    return value
