"""Protected tables in words: a list of them, one as rows and columns of text, and both as objects for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sfumato.engine.wording import agreeing_word, count_noun

from ..visible_text import replace_unprintable
from .table_grids import (
    FOLLOWS,
    FROZEN,
    HIDDEN_LETTERS,
    LETTERS,
    SECONDARY,
    TOO_CLOSE,
    UNDECIDED,
    UNSAFE,
    TableGrid,
)
from .tables import COLUMN_GAP, DisplayTable, table_from_titles
from .terminal_text import cell_width

COUNTED: Mapping[str, str] = {
    UNSAFE: "hidden by a rule",
    SECONDARY: "hidden to protect",
    FOLLOWS: "follow exactly",
    TOO_CLOSE: "too close",
    UNDECIDED: "not known",
}
"""Headings of the letters that a list of tables counts."""
JSON_KEYS: Mapping[str, str] = {
    UNSAFE: "hidden_by_rule",
    SECONDARY: "hidden_to_protect",
    FOLLOWS: "follows_exactly",
    TOO_CLOSE: "too_close",
    UNDECIDED: "undecided",
}


OPEN_TEXTS: Mapping[str, tuple[str, str]] = {
    FOLLOWS: ("follows exactly", "follow exactly"),
    TOO_CLOSE: ("can be estimated too closely", "can be estimated too closely"),
    UNDECIDED: ("is not known to be protected", "are not known to be protected"),
}
"""What is wrong with unsafe cells by their letter, for one and for several."""


def table_list(grids: Sequence[TableGrid]) -> DisplayTable:
    """Return a list of tables with the number of their cells by what becomes of them."""
    lines = [
        [
            str(grid.number),
            grid.name,
            grid.measure,
            ", ".join(grid.variables),
            f"{grid.cell_count:,}",
            *(f"{grid.count_letters(letter):,}" for letter in COUNTED),
        ]
        for grid in grids
    ]
    titles = ("", "table", "adds up", "by", "cells", *COUNTED.values())
    return table_from_titles(titles, lines, right=(0, *range(4, len(titles))), spare=(2, 3))


def tables_sentence(grids: Sequence[TableGrid]) -> str:
    """Return in a sentence what a release of tables hides, and whether a hidden cell is not protected."""
    cells = sum(grid.cell_count for grid in grids)
    hidden = sum(int((~grid.published).sum()) for grid in grids)
    parts = [f"{count_noun(len(grids), 'table')}, {count_noun(cells, 'cell')}, {hidden:,} hidden"]
    return "; ".join([*parts, *open_cell_phrases(grids)])


def open_cell_phrases(grids: Sequence[TableGrid]) -> list[str]:
    """Return in phrases how many unsafe cells are not protected: ``1 unsafe cell follows exactly``."""
    found = []
    for letter, (one, several) in OPEN_TEXTS.items():
        if number := sum(grid.count_letters(letter) for grid in grids):
            found.append(f"{count_noun(number, 'unsafe cell')} {agreeing_word(number, one, several)}")
    return found


def grid_tables(grid: TableGrid, width: int | None, *, revealed: bool) -> list[DisplayTable]:
    """Return a table as text tables of at most ``width`` cells, beside each other: each has the labels of the rows.

    revealed: whether hidden values are shown, with the letter of each cell, which makes the text confidential
    """
    texts = [
        [
            grid.cell_text(row, column, revealed=True) if revealed else grid.released_text(row, column)
            for column in range(len(grid.columns))
        ]
        for row in range(len(grid.rows))
    ]
    labels = [[label.indented for label in row] for row in grid.rows]
    titles = [label.text for label in grid.columns]
    head = f"{grid.name}: {grid.measure}" + (f", {grid.column_name} across" if grid.column_name else "")
    parts = list(_column_blocks(grid, labels, titles, texts, width))
    found = []
    for first, last in parts:
        more = f"; columns {first + 1} to {last} of {len(titles)}" if len(parts) > 1 else ""
        rows = [[*names, *line[first:last]] for names, line in zip(labels, texts, strict=True)]
        heads = (*(grid.row_names or ("",) * len(labels[0])), *titles[first:last])
        right = range(len(heads) - (last - first), len(heads))
        found.append(table_from_titles(heads, rows, right=right, title=f"{head}{more}"))
    return found


def _column_blocks(
    grid: TableGrid,
    labels: Sequence[Sequence[str]],
    titles: Sequence[str],
    texts: Sequence[Sequence[str]],
    width: int | None,
) -> Iterator[tuple[int, int]]:
    """Yield the first and the last column of each block that fits into a width."""
    if width is None:
        yield 0, len(titles)
        return
    names = grid.row_names or ("",)
    left = sum(
        max(cell_width(replace_unprintable(text)) for text in (name, *(row[at] for row in labels))) + COLUMN_GAP
        for at, name in enumerate(names)
    )
    widths = [
        max(cell_width(replace_unprintable(text)) for text in (title, *(line[at] for line in texts))) + COLUMN_GAP
        for at, title in enumerate(titles)
    ]
    first, used = 0, left
    for at, own in enumerate(widths):
        # A block has at least one column, however wide that is.
        if at > first and used + own - COLUMN_GAP > width:
            yield first, at
            first, used = at, left
        used += own
    yield first, len(titles)


def legend_text(grids: Sequence[TableGrid]) -> str:
    """Return what the letters say that stand in these tables."""
    shown = [letter for letter in (*HIDDEN_LETTERS, FROZEN) if any(grid.count_letters(letter) for grid in grids)]
    return "; ".join(f"{letter} {LETTERS[letter]}" for letter in shown)


def table_list_object(grids: Sequence[TableGrid]) -> list[dict[str, Any]]:
    """Return a list of tables for JSON."""
    return [
        {
            "number": grid.number,
            "name": grid.name,
            "adds_up": grid.measure,
            "by": list(grid.variables),
            "cells": grid.cell_count,
            "published": int(grid.published.sum()),
            **{JSON_KEYS[letter]: grid.count_letters(letter) for letter in COUNTED},
        }
        for grid in grids
    ]


def grid_object(grid: TableGrid, *, revealed: bool) -> dict[str, Any]:
    """Return the cells of a table for JSON: as they would be released, or with all values and letters."""
    cells = []
    for row in range(len(grid.rows)):
        for column in range(len(grid.columns)):
            published = bool(grid.published[row, column])
            value = float(grid.values[row, column])
            shown = round(value) if grid.whole else value
            line: dict[str, Any] = {
                "labels": grid.keys_at(row, column),
                "value": shown if published or revealed else None,
                "status": "published" if published else "hidden",
            }
            if revealed:
                letter = str(grid.letters[row, column])
                line |= {"letter": letter, "meaning": LETTERS[letter]}
            cells.append(line)
    return {"number": grid.number, "name": grid.name, "adds_up": grid.measure, "cells": cells}
