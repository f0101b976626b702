"""Sheets of Excel files (.xlsx). Untrusted: the bytes.

The values that cells show are read; no formula is computed and no link followed.
"""

from __future__ import annotations

import datetime as dt
import re
import zipfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.recipe.text_format import TextFormat
from sfumato.engine.wording import count_noun

from ...errors import NotReleased
from ..dialects import detect_sheet_format
from ..file_formats import FileFormat, OutputTable, ReadRequest
from ..limits import MAX_COLUMNS
from ..sheet_limits import MAX_CELLS, check_archive

if TYPE_CHECKING:
    import pandas as pd

    from ..raw_tables import RawTable
    from ..sources import SourceFile

SAMPLE_SHEET_ROWS = 1_500
"""Rows at the beginning and at the end of a sheet among which its table is looked for."""
MAX_SHEET_ROWS = 1_048_576
MAX_SHEET_COLUMNS = 16_384
"""Most columns of a sheet."""
MAX_CELL_TEXT = 32_767
MAX_NAMED = 10
"""Columns without a name that a remark lists."""
FIXED_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
"""Time of writing of a released file and of its parts: the same for all, so that a dataset has the same bytes each
time.
"""
_DATES = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")
NO_VALUE = "#N/A"
"""Error of a cell that has no value."""
ERROR_CELLS = frozenset({NO_VALUE, "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})
"""Texts that a cell shows where its formula has no value."""


def read_sheet(source: SourceFile, request: ReadRequest) -> RawTable:
    """Read the table of one sheet, by default the first; without a format its first row that is not empty has the
    names.

    Raises BadInput, and what zipfile and openpyxl raise.
    """
    import openpyxl

    from ..raw_tables import RawTable

    sheet, content = request.sheet, source.content
    with zipfile.ZipFile(BytesIO(content)) as archive:
        if "xl/workbook.xml" not in archive.namelist():
            raise BadInput("", "{name} is a zip archive, not a table; unpack it")
        # before openpyxl, which unpacks whole parts into memory
        check_archive(archive)
    book = openpyxl.load_workbook(BytesIO(content), read_only=True, data_only=True, keep_links=False)
    try:
        names = [one.title for one in book.worksheets]
        if not names:
            raise BadInput("", "{name} has no sheet with cells")
        if sheet and sheet not in names:
            near = near_miss_hint(sheet, names) or f"; sheets: {', '.join(names)}"
            raise BadInput("data.sheet", f'{{name}} has no sheet "{sheet}"{near}')
        chosen = book.worksheets[names.index(sheet) if sheet else 0]
        # a sheet may declare dimensions that are too small, or huge
        chosen.reset_dimensions()
        rows = _sheet_rows(chosen.iter_rows(values_only=True))
    finally:
        book.close()
    if not rows:
        raise BadInput("", f'the sheet "{chosen.title}" of {{name}} is empty')
    form, detection = request.form or TextFormat(), None
    if request.given_keys is not None:
        detection = detect_sheet_format(_sample_texts(rows), request.given_keys)
        form = detection.format
    frame, errors, remarks = _sheet_table(rows, form)
    more = f", the first of {len(names)}; --sheet NAME reads another" if not sheet else ""
    notes = [f'the sheet "{chosen.title}" is read{more}'] if len(names) > 1 else []
    notes += [f"{errors:,} cells show an error such as #N/A: they are missing"] if errors else []
    return replace(RawTable.from_frame(frame, notes=(*notes, *remarks)), detection=detection)


def _sheet_rows(cells: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows of a sheet to the last that is not empty. Raises BadInput for too large a sheet."""
    rows: list[tuple[Any, ...]] = []
    places = 0
    for number, row in enumerate(cells, start=1):
        # empty cells count too: one cell far to the right makes every row as wide
        places += len(row)
        if number > MAX_SHEET_ROWS:
            raise BadInput("", f"{{name}} has more than {MAX_SHEET_ROWS:,} rows, which no sheet has")
        if places > MAX_CELLS:
            raise BadInput("", f"{{name}} spans more than {MAX_CELLS:,} cells; save the sheet that you need as CSV")
        rows.append(row)
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    return rows


def _sample_texts(rows: Sequence[tuple[Any, ...]]) -> list[list[str]]:
    """Return the cells of the first and last rows of a sheet as texts, empty ones and errors as empty text."""
    some = rows if len(rows) <= 2 * SAMPLE_SHEET_ROWS else [*rows[:SAMPLE_SHEET_ROWS], *rows[-SAMPLE_SHEET_ROWS:]]
    first = _first_column(rows)
    return [["" if cell is None or _shows_error(cell) else _sheet_text(cell) for cell in row[first:]] for row in some]


def _first_column(rows: Sequence[tuple[Any, ...]]) -> int:
    """Return the place of the first column in which a cell is filled."""
    return min((place for row in rows if (place := _first_filled_place(row)) is not None), default=0)


def _first_filled_place(row: tuple[Any, ...]) -> int | None:
    """Return the place of the first filled cell of a row; None without one."""
    return next((place for place, cell in enumerate(row) if cell is not None), None)


def _shows_error(cell: object) -> bool:
    """Return whether a cell shows that its formula has no value."""
    return isinstance(cell, str) and cell in ERROR_CELLS


def _sheet_table(sheet: Sequence[tuple[Any, ...]], form: TextFormat) -> tuple[pd.DataFrame, int, tuple[str, ...]]:
    """Return the table of a sheet, the number of its cells that show an error, and remarks on the names.

    Raises BadInput.
    """
    import pandas as pd

    from ..text_files import distinct_names, names_without_header

    left = _first_column(sheet)
    rows = [row[left:] for row in sheet[form.skip : len(sheet) - form.footer]]
    top = next((number for number, row in enumerate(rows) if any(cell is not None for cell in row)), None)
    if top is None:
        raise BadInput(
            "data.format.skip",
            f"no row of {{name}} is left after {form.skip:,} above the table and {form.footer:,} below it",
        )
    header, body = list(rows[top]), rows[top + 1 + form.skip_below :]
    while header and header[-1] is None:
        header.pop()
    if not form.header:
        body = rows[top:]
        header = list(names_without_header(form, max(map(len, map(_without_empty_end, body)))))
    unnamed = [f"column_{place}" for place, cell in enumerate(header, 1) if cell is None]
    if len(header) > MAX_COLUMNS:
        raise BadInput(
            "",
            f"{{name}} has {count_noun(len(header), 'column')}; at most {MAX_COLUMNS:,} can be read: leave some out",
        )
    if wide := sum(any(cell is not None for cell in row[len(header) :]) for row in body):
        raise BadInput("", f"{count_noun(wide, 'row')} of {{name}} have cells beyond the columns that have a name")
    names, remarks = distinct_names(
        [f"column_{place}" if cell is None else _sheet_text(cell) for place, cell in enumerate(header, 1)]
    )
    if unnamed:
        verb = "has no name and is" if len(unnamed) == 1 else "have no name and are"
        remarks = (
            *remarks,
            f"{count_noun(len(unnamed), 'column')} {verb} named by place: {', '.join(unnamed[:MAX_NAMED])}",
        )
    errors, missing = 0, {"", *form.missing}
    columns: dict[int, pd.Series] = {}
    for j in range(len(header)):
        values = [row[j] if j < len(row) else None for row in body]
        errors += sum(map(_shows_error, values))
        columns[j] = _sheet_column([_value_or_none(cell, missing) for cell in values])
    return pd.DataFrame(columns, index=range(len(body))).set_axis(names, axis=1), errors, remarks


def _without_empty_end(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row to its last filled cell."""
    return row[: max((place for place, cell in enumerate(row, 1) if cell is not None), default=0)]


def _value_or_none(cell: object, missing: Collection[str]) -> object:
    """Return a cell; None where it is empty, shows an error, or holds a missing code."""
    if cell is None or _shows_error(cell):
        return None
    if isinstance(cell, str):
        return None if cell.strip() in missing else cell
    return None if len(missing) > 1 and _sheet_text(cell) in missing else cell


def _sheet_text(cell: object) -> str:
    """Return the text of a cell; a whole number has no decimals."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _sheet_column(values: list[Any]) -> pd.Series:
    """Return a column as numbers, dates or truth values where all cells are of that type, otherwise as text."""
    import pandas as pd

    # the exact type, since a bool is an int to isinstance
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
    return pd.Series([None if cell is None else _sheet_text(cell) for cell in values], dtype="object")


def write_sheet(out: OutputTable) -> bytes:
    """Return the bytes of the dataset as an Excel file. Raises NotReleased where a sheet has no room for the columns."""
    import openpyxl
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.exceptions import IllegalCharacterError

    frame = out.frame
    if len(frame) >= MAX_SHEET_ROWS or frame.shape[1] > MAX_SHEET_COLUMNS:
        raise NotReleased(
            f"a sheet has room for {MAX_SHEET_ROWS - 1:,} records of {MAX_SHEET_COLUMNS:,} variables; choose another --format"
        )
    book = openpyxl.Workbook(write_only=True)
    book.properties.title = out.note or None
    book.properties.creator = "Sfumato"
    sheet = book.create_sheet("data")
    columns = [_sheet_cells(frame[name]) for name in frame]
    if columns and columns[0] and all(cells[-1] is None for cells in columns):
        # a sheet ends with its last filled cell, so that readers would not see a last record without any value
        columns[0][-1] = WriteOnlyCell(sheet, NO_VALUE)
        columns[0][-1].data_type = "e"

    def text(value: str) -> WriteOnlyCell:
        """Return a cell that holds a text. Raises NotReleased where the text is too long."""
        if len(value) > MAX_CELL_TEXT:
            raise NotReleased("a text is too long for a cell of a sheet; choose another --format")
        cell = WriteOnlyCell(sheet, value)
        cell.data_type = "s"  # one that begins with = too
        return cell

    def number(value: float) -> WriteOnlyCell | float:
        """Return a cell that holds a number with all its digits."""
        if float(f"{value:.16g}") == value:
            return value
        # openpyxl writes 16 digits, and some numbers have 17
        cell = WriteOnlyCell(sheet, repr(value))
        cell.data_type = "n"
        return cell

    def cell_of(value: object) -> object:
        """Return what the sheet takes for a value."""
        if isinstance(value, str):
            return text(value)
        return number(value) if isinstance(value, float) else value

    try:
        sheet.append([text(str(name)) for name in frame])
        for row in zip(*columns, strict=True):
            sheet.append([cell_of(value) for value in row])
    except IllegalCharacterError:
        raise NotReleased("a text has a character that a sheet cannot hold; choose another --format") from None
    sink = BytesIO()
    book.save(sink)
    return _remove_dates(sink.getvalue())


def _sheet_cells(values: pd.Series) -> list[Any]:
    """Return the cells of a column (n,): numbers, texts, dates; None for a missing one."""
    import pandas as pd

    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype("object").map(str, na_action="ignore")
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return [None if pd.isna(moment) else moment.to_pydatetime() for moment in values]
    return [None if pd.isna(value) else value for value in values.astype("object")]


def _remove_dates(content: bytes) -> bytes:
    """Replace the times of writing in a file by a fixed one."""
    sink = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as given, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as made:
        for entry in given.infolist():
            part = given.read(entry)
            if entry.filename == "docProps/core.xml":
                part = _DATES.sub(rb"\g<1>1980-01-01T00:00:00Z", part)
            about = zipfile.ZipInfo(entry.filename, FIXED_TIMESTAMP)
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, entry.external_attr
            # rewritten part by part, since the archive has a time for each part too
            made.writestr(about, part)
    return sink.getvalue()


FORMAT = FileFormat(
    kind="an Excel",
    list_title="Excel (.xlsx)",
    suffixes=(".xlsx",),
    recognises=lambda head: head.startswith(b"PK\x03\x04"),
    refused_signatures={b"\xd0\xcf\x11\xe0": "is an Excel file of before 2007; save it as .xlsx"},
    read=read_sheet,
    uses_subprocess=True,
    has_sheets=True,
    write=write_sheet,
    media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    required_modules=("openpyxl",),
    manual_sentence="One sheet: its stored values, and nothing is computed.",
    order=4,
)
