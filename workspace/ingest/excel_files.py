"""Sheets of Excel files (.xlsx): the values that cells show, no formula is computed, no link followed. Untrusted: the bytes."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Iterable
from io import BytesIO
from typing import Any

import openpyxl
import pandas as pd

from sfumato.engine.errors import BadInput, suggestion
from sfumato.engine.wording import counted

from .limits import MOST_COLUMNS
from .raw_tables import RawTable
from .sheet_limits import MOST_CELLS, check_archive

MOST_ROWS = 1_048_576
ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})
"""What a cell shows whose formula has no value."""


def read_excel(content: bytes, sheet: str = "") -> RawTable:
    """The table of one sheet, the first unless one is named: names in its first row that holds something.

    Raises BadInput, and what zipfile and openpyxl raise.
    """
    with zipfile.ZipFile(BytesIO(content)) as archive:
        if "xl/workbook.xml" not in archive.namelist():
            raise BadInput("", "{name} is a zip archive, not a table; unpack it")
        check_archive(archive)
    book = openpyxl.load_workbook(BytesIO(content), read_only=True, data_only=True, keep_links=False)
    try:
        names = [one.title for one in book.worksheets]
        if not names:
            raise BadInput("", "{name} has no sheet with cells")
        if sheet and sheet not in names:
            near = suggestion(sheet, names) or f"; sheets: {', '.join(names)}"
            raise BadInput("data.sheet", f'{{name}} has no sheet "{sheet}"{near}')
        chosen = book.worksheets[names.index(sheet) if sheet else 0]
        chosen.reset_dimensions()
        rows = _rows(chosen.iter_rows(values_only=True))
    finally:
        book.close()
    if not rows:
        raise BadInput("", f'the sheet "{chosen.title}" of {{name}} is empty')
    frame, errors = _table(rows)
    more = f", the first of {len(names)}; --sheet NAME reads another" if not sheet else ""
    notes = [f'the sheet "{chosen.title}" is read{more}'] if len(names) > 1 else []
    notes += [f"{errors:,} cells show an error such as #N/A: they are missing"] if errors else []
    return RawTable(frame, {}, None, tuple(notes))


def _rows(cells: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    places = 0
    for number, row in enumerate(cells, start=1):
        places += len(row)
        if number > MOST_ROWS:
            raise BadInput("", f"{{name}} has more than {MOST_ROWS:,} rows, which no sheet has")
        if places > MOST_CELLS:
            raise BadInput("", f"{{name}} spans more than {MOST_CELLS:,} cells; save the sheet that you need as CSV")
        if rows or any(cell is not None for cell in row):
            rows.append(row)
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    return rows


def _table(rows: list[tuple[Any, ...]]) -> tuple[pd.DataFrame, int]:
    header, body = list(rows[0]), rows[1:]
    while header and header[-1] is None:
        header.pop()
    if any(cell is None for cell in header):
        place = 1 + next(i for i, cell in enumerate(header) if cell is None)
        raise BadInput("", f"column {place} of {{name}} has no name; the first row must hold one for each column")
    if len(header) > MOST_COLUMNS:
        raise BadInput(
            "", f"{{name}} has {counted(len(header), 'column')}; at most {MOST_COLUMNS:,} can be read: leave some out"
        )
    if wide := sum(any(cell is not None for cell in row[len(header) :]) for row in body):
        raise BadInput("", f"{counted(wide, 'row')} of {{name}} have cells beyond the columns that have a name")
    errors = 0
    columns: dict[int, pd.Series] = {}
    for j in range(len(header)):
        values = [row[j] if j < len(row) else None for row in body]
        shown = [None if isinstance(cell, str) and (cell in ERRORS or not cell.strip()) else cell for cell in values]
        errors += sum(isinstance(cell, str) and cell in ERRORS for cell in values)
        columns[j] = _column(shown)
    return pd.DataFrame(columns, index=range(len(body))).set_axis([_name(cell) for cell in header], axis=1), errors


def _name(cell: object) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _column(values: list[Any]) -> pd.Series:
    """Numbers, dates or truth values where all cells are such; text where they are mixed."""
    kinds = {type(cell) for cell in values if cell is not None}
    if not kinds:
        return pd.Series([None] * len(values), dtype="object")
    if kinds <= {int, float}:
        return pd.Series([None if cell is None else cell for cell in values], dtype="float64" if None in values or float in kinds else "int64")  # fmt: skip
    if kinds == {bool}:
        return pd.Series(values, dtype="object" if None in values else "bool")
    if kinds <= {dt.datetime, dt.date}:
        moments = [None if cell is None else dt.datetime.fromisoformat(cell.isoformat()[:26]) for cell in values]
        return pd.Series(pd.array(moments, dtype="datetime64[us]"))
    return pd.Series([None if cell is None else _name(cell) for cell in values], dtype="object")
