"""Detected format of a text file in words and tables: settings, reasons, open decisions and the first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ingest.columns import ColumnProfile
from ..ingest.dialects import DetectedFormat, SettingReason
from .tables import DisplayTable, format_table, table_from_titles
from .words import role_text

SETTING_NAMES = {
    "encoding": "encoding",
    "delimiter": "separator",
    "quote": "quotes",
    "header": "names in the first line",
    "decimal": "decimal sign",
    "thousands": "sign of thousands",
    "missing": "missing codes",
    "header_cells": "names and columns",
    "skip": "lines above the table",
    "skip_below": "lines below the names",
    "footer": "lines below the table",
    "widths": "widths of the columns",
    "trim": "blanks around cells left out",
}
SIGN_NAMES = {"\t": "tab", " ": "blank", "": "none"}
MOST_COLUMNS = 8
MOST_ROWS = 5
LONGEST_CELL = 20
"""Most characters of a value that are shown."""


def visible_sign(value: str) -> str:
    """Return a sign itself, or its name where it is invisible."""
    return SIGN_NAMES.get(value, value)


def detection_table(found: DetectedFormat) -> DisplayTable:
    """Return the detected settings of a file with their reasons, and a mark where the owner has to decide."""
    lines = [
        [SETTING_NAMES[one.key], visible_sign(one.value), "?" if one.is_doubtful else "", one.explanation]
        for one in found.reasons
    ]
    return table_from_titles(("read with", "value", "", "why"), lines)


def first_rows_table(found: DetectedFormat, width: int | None = None) -> DisplayTable:
    """Return the first rows under the detected format, with as many columns as fit into ``width`` cells."""
    # its cells are records, shown only to the owner of the file before anything is stored
    made = _first_columns(found, min(len(found.header), MOST_COLUMNS))
    for number in range(len(made.columns) - 1, 0, -1):
        if width is None or max(map(len, format_table(made).splitlines())) <= width:
            break
        made = _first_columns(found, number)
    return made


def _first_columns(found: DetectedFormat, number: int) -> DisplayTable:
    """Return the first rows of the first ``number`` columns."""
    more = len(found.header) - number
    rows = [[*row[:number], *(["…"] if more else [])] for row in found.rows[:MOST_ROWS]]
    lines = [
        [_shortened_cell(cell) for cell in line]
        for line in ((*found.header[:number], *([f"{more} more"] if more else [])), *rows)
    ]
    return table_from_titles(lines[0], lines[1:])


def previewed_rows_table(
    columns: Sequence[ColumnProfile], first_rows: Mapping[str, Sequence[str]], width: int | None, rows: int
) -> DisplayTable:
    """Return the first rows of a file below how each column is read: kind, role, missing values.

    As many columns as fit into ``width`` cells are shown, all where it is None, and ``rows`` rows.
    """
    # its cells are records, shown only to the owner of the file before anything is stored
    by_name = {column.variable.name: column for column in columns}
    shown = [by_name[name] for name in first_rows]
    made = _previewed_columns(shown, first_rows, rows, len(columns))
    for number in range(len(shown) - 1, 0, -1):
        if width is None or max(map(len, format_table(made).splitlines())) <= width:
            break
        made = _previewed_columns(shown[:number], first_rows, rows, len(columns))
    return made


def _previewed_columns(
    shown: Sequence[ColumnProfile], first_rows: Mapping[str, Sequence[str]], rows: int, total: int
) -> DisplayTable:
    """Return the first rows of these columns below how each is read, of ``total`` columns."""
    more = total - len(shown)
    heads = ["", *(column.variable.name for column in shown), *([f"{more} more"] if more else [])]
    lines = [
        ["read as", *map(column_reading, shown)],
        ["role", *map(guessed_role, shown)],
        ["missing", *(f"{column.missing:,}" for column in shown)],
        *(
            [f"row {at + 1}", *cells]
            for at, cells in enumerate(zip(*(first_rows[column.variable.name] for column in shown), strict=True))
            if at < rows
        ),
    ]
    return table_from_titles(
        [_shortened_cell(head) for head in heads],
        [[*(_shortened_cell(cell) for cell in line), *(["…"] if more else [])] for line in lines],
    )


def column_reading(column: ColumnProfile) -> str:
    """Return how a column is read, with a question mark where that is a guess to be confirmed."""
    doubt = " ?" if column.is_included and column.question else ""
    return f"{column.variable.kind} {column.variable.format}".strip() + doubt


def guessed_role(column: ColumnProfile) -> str:
    """Return the role that a column is proposed for, or that it is left out."""
    return role_text(column.variable.role) if column.is_included else "left out"


def _shortened_cell(cell: str) -> str:
    """Return a cell, cut where it is long."""
    return cell if len(cell) <= LONGEST_CELL else f"{cell[: LONGEST_CELL - 1]}…"


def undecided_lines(found: DetectedFormat) -> list[str]:
    """Return a line for each setting that the file does not determine."""
    return [undecided_line(one) for one in found.doubtful_settings]


def undecided_line(one: SettingReason) -> str:
    """Return the assumed value of a setting, its alternatives, and the option that sets it."""
    others = "; ".join(map(visible_sign, one.alternatives))
    how = {"header": "--no-header or --header", "missing": "--missing CODE"}.get(one.key, f"--{one.key} SIGN")
    how = how.replace("SIGN", "NAME") if one.key == "encoding" else how
    how = "--widths N,N" if one.key == "widths" else how
    how = f"--{one.key.replace('_', '-')} LINES" if one.key in ("skip_below", "footer") else how
    may_be = others if one.key == "missing" else f"may be {others}"
    return f"? {SETTING_NAMES[one.key]}: {visible_sign(one.value) or 'none'} is taken, {may_be}; {how} says which"
