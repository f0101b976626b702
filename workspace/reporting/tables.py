"""Tables as values: columns and rows of cells, drawn as text, as HTML, or on a grid of the app."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from ..plots.markup import Markup, element
from ..visible_text import replace_unprintable
from .terminal_text import cell_width, fold_text, pad_text
from .words import ASCII_MARKS, sign_for

Align = Literal["left", "right"]
COLUMN_GAP = 2
"""Cells between the columns of a line of text."""
LEAST_WORDS_WIDTH = 12
"""Width below which a column of words is narrowed only where the table would be too wide otherwise."""
LEAST_BROKEN_WIDTH = 8
"""Width below which no column of words is narrowed."""
_SIGNS = {
    "pass": "✓", "fail": "✗", "not computed": "?",
    "met": "✓", "not met": "✗", "undecided": "~",
    "warn": "!", "block": "✗", "not checked": "?", "does not apply": "–",
}  # fmt: skip
DisplayRow = Sequence["DisplayCell | str"]
"""Cells of a row, one for each column."""


@dataclass(frozen=True, slots=True)
class DisplayColumn:
    """Column of a table.

    name: its key
    title: its heading
    width: its cells on a grid
    align: ``right`` for numbers
    drop_order: order in which columns are left out where there is too little room, the lowest above 0 first; 0 for
        never
    grow_order: on a grid the column with the lowest order above 0 takes the remaining room
    full_title: heading on a page, where a line has too little room for it
    page_only: whether it is shown on pages only
    spills: whether on a grid a long text of it continues in empty cells to its right
    """

    name: str
    title: str
    width: int = 10
    align: Align = "left"
    drop_order: int = 0
    grow_order: int = 0
    full_title: str = ""
    page_only: bool = False
    spills: bool = False


@dataclass(frozen=True, slots=True)
class DisplayCell:
    """Cell that has an outcome or a longer text on a page.

    text: its text
    outcome: outcome, whose sign is shown
    full_text: its text on a page
    """

    text: str
    outcome: str = ""
    full_text: str = ""


def outcome_cell(outcome: str) -> DisplayCell:
    """Return the outcome of a verdict, or the status of a check, as a cell with its sign."""
    return DisplayCell(outcome, outcome)


@dataclass(frozen=True)
class DisplayTable:
    """Table of columns and rows of cells.

    columns: its columns
    rows: its rows, each with a cell for each column
    title: heading
    full_title: heading on a page
    """

    columns: Sequence[DisplayColumn]
    rows: Sequence[DisplayRow]
    title: str = ""
    full_title: str = ""

    def select_columns(self, kept: Iterable[int]) -> DisplayTable:
        """Return the table with the columns at these positions."""
        places = list(kept)
        return replace(
            self, columns=[self.columns[i] for i in places], rows=[[row[i] for i in places] for row in self.rows]
        )

    @property
    def without_empty_columns(self) -> DisplayTable:
        """Return the table without the columns that are empty in every row."""
        if not self.rows:
            return self
        return self.select_columns(i for i in range(len(self.columns)) if any(_cell_text(row[i]) for row in self.rows))


def table_from_titles(
    titles: Sequence[str],
    rows: Sequence[DisplayRow],
    right: Iterable[int] = (),
    spare: Sequence[int] = (),
    title: str = "",
) -> DisplayTable:
    """Create a table from the titles of its columns.

    ``right`` are the positions of right-aligned columns; columns in ``spare`` are dropped in that order where there is
    too little room.
    """
    flush, leaving = set(right), {place: order for order, place in enumerate(spare, start=1)}
    made = [
        DisplayColumn(name, name, align="right" if i in flush else "left", drop_order=leaving.get(i, 0))
        for i, name in enumerate(titles)
    ]
    return DisplayTable(made, rows, title)


def _cell_text(cell: DisplayCell | str) -> str:
    """Return the text of a cell."""
    return cell if isinstance(cell, str) else cell.text


def format_table(table: DisplayTable, width: int | None = None) -> str:
    """Return a table as lines of text of at most ``width`` cells.

    Where it is too wide, columns are dropped in their order, then words are folded. Unprintable characters become a
    question mark.
    """
    table = table.without_empty_columns
    table = table.select_columns(i for i, column in enumerate(table.columns) if not column.page_only)
    lines = _text_lines(table)
    while width is not None and max(map(cell_width, lines)) > width:
        # columns are dropped before any text is folded: a folded table is harder to read
        spare = [column.drop_order for column in table.columns if column.drop_order]
        if not spare:
            break
        table = table.select_columns(i for i, column in enumerate(table.columns) if column.drop_order != min(spare))
        lines = _text_lines(table)
    if width is not None and max(map(cell_width, lines)) > width:
        lines = _text_lines(table, width)
    return "\n".join([*([replace_unprintable(table.title)] if table.title else []), *lines])


def _text_lines(table: DisplayTable, most: int | None = None) -> list[str]:
    """Return the lines of a table, folded to ``most`` cells where it is given."""
    cells = [
        [_ascii_cell_text(cell) for cell in row] for row in ([column.title for column in table.columns], *table.rows)
    ]
    widths = [max(cell_width(line[i]) for line in cells) for i in range(len(table.columns))]
    heads = 1
    if most is not None:
        widths = _narrow_widths(widths, [column.align != "right" for column in table.columns], most)
        folded = [_fold_row(line, widths) for line in cells]
        heads, cells = len(folded[0]), [line for lines in folded for line in lines]
    lines = [
        (" " * COLUMN_GAP)
        .join(
            pad_text(cell, width, right=column.align == "right")
            for cell, width, column in zip(line, widths, table.columns, strict=True)
        )
        .rstrip()
        for line in cells
    ]
    # a folded heading takes several lines
    lines.insert(heads, (" " * COLUMN_GAP).join("-" * width for width in widths))
    return lines


def _narrow_widths(widths: Sequence[int], words: Sequence[bool], most: int) -> list[int]:
    """Narrow the columns of words, the widest first, until all fit into ``most`` cells or none can be narrowed."""
    found = list(widths)
    # words of more than ten letters are broken only where the table would not fit otherwise
    for least in (LEAST_WORDS_WIDTH, LEAST_BROKEN_WIDTH):
        while sum(found) + COLUMN_GAP * (len(found) - 1) > most:
            wide = [i for i, is_words in enumerate(words) if is_words and found[i] > least]
            if not wide:
                break
            found[max(wide, key=found.__getitem__)] -= 1
    return found


def _fold_row(cells: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Return the lines of a row, whose cells continue below where they are wider than their column."""
    parts = [fold_text(cell, width) for cell, width in zip(cells, widths, strict=True)]
    return [[part[i] if i < len(part) else "" for part in parts] for i in range(max(map(len, parts)))]


def _ascii_cell_text(cell: DisplayCell | str) -> str:
    """Return the text of a cell with an ASCII sign for its outcome."""
    if isinstance(cell, DisplayCell) and cell.outcome:
        return f"{ASCII_MARKS[cell.outcome]} {replace_unprintable(cell.text)}"
    # names come from untrusted files and could contain commands to the terminal
    return replace_unprintable(_cell_text(cell))


def table_html(table: DisplayTable) -> Markup:
    """Return the table as HTML, with full texts and without empty columns."""
    table = table.without_empty_columns
    head = element(
        "tr", [element("th", c.full_title or c.title, scope="col", class_=_css_class(c)) for c in table.columns]
    )
    body = [element("tr", _html_cells(table.columns, row)) for row in table.rows]
    title = table.full_title or table.title
    caption = element("caption", title) if title else ""
    return element("table", caption, element("thead", head), element("tbody", body))


def _html_cells(columns: Sequence[DisplayColumn], row: DisplayRow) -> list[Markup]:
    """Return the cells of a row as HTML; the first is the row's heading."""
    words = [full_cell_text(cell) for cell in row]
    rest = [element("td", one, class_=_css_class(column)) for one, column in zip(words[1:], columns[1:], strict=True)]
    return [element("th", words[0], scope="row"), *rest]


def full_cell_text(cell: DisplayCell | str) -> str:
    """Return the full text of a cell, with the sign of its outcome."""
    if isinstance(cell, str):
        return cell
    words = cell.full_text or cell.text
    return f"{_SIGNS[cell.outcome]} {words}" if cell.outcome else words


def _css_class(column: DisplayColumn) -> str | None:
    """Return the class of a column's cells: "number" for right-aligned ones."""
    return "number" if column.align == "right" else None


AnyColumn = TypeVar("AnyColumn", bound=DisplayColumn)


def fit_columns(columns: Sequence[AnyColumn], width: int) -> tuple[AnyColumn, ...]:
    """Return the columns that fit into ``width`` cells of a grid; one of them grows into the remaining room."""
    kept = tuple(columns)
    for spare in sorted((column for column in kept if column.drop_order), key=lambda column: column.drop_order):
        if grid_width(kept) <= width:
            break
        kept = tuple(column for column in kept if column.name != spare.name)
    room = max(0, width - grid_width(kept))
    grown = min((column for column in kept if column.grow_order), key=lambda column: column.grow_order, default=None)
    return tuple(replace(column, width=column.width + room) if column is grown else column for column in kept)


def grid_width(columns: Sequence[DisplayColumn]) -> int:
    """Return the width of a grid's line in cells: a blank at either end, ``COLUMN_GAP`` between columns."""
    return sum(column.width for column in columns) + COLUMN_GAP * max(len(columns) - 1, 0) + 2


def grid_value(value: object) -> object:
    """Return a value as a grid shows it; an outcome has its sign."""
    if isinstance(value, DisplayCell):
        return f"{sign_for(value.outcome)} {value.text}" if value.outcome else value.text
    return value
