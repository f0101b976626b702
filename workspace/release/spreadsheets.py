"""Released datasets as Excel files: a sheet of values, texts that look like formulas among them as texts, the same bytes each time."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO

import openpyxl
import pandas as pd
from openpyxl.cell import WriteOnlyCell
from openpyxl.utils.exceptions import IllegalCharacterError

from ..errors import NotReleased

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
LONGEST_TEXT = 32_767
MOMENT = (1980, 1, 1, 0, 0, 0)
"""When the file and its parts say that they were written: it is no matter of its readers."""
_DATES = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")


def spreadsheet(frame: pd.DataFrame, note: str) -> bytes:
    """The bytes of an Excel file with the columns of ``frame`` (n, k). Raises NotReleased where a sheet has no room for them."""
    if len(frame) >= MOST_ROWS or frame.shape[1] > MOST_COLUMNS:
        raise NotReleased(
            f"a sheet has room for {MOST_ROWS - 1:,} records of {MOST_COLUMNS:,} variables; choose another --format"
        )
    book = openpyxl.Workbook(write_only=True)
    book.properties.title = note or None
    book.properties.creator = "Sfumato"
    sheet = book.create_sheet("data")
    columns = [_cells(frame[name]) for name in frame]

    def text(value: str) -> WriteOnlyCell:
        if len(value) > LONGEST_TEXT:
            raise NotReleased("a text is too long for a cell of a sheet; choose another --format")
        cell = WriteOnlyCell(sheet, value)
        cell.data_type = "s"  # one that begins with = too
        return cell

    try:
        sheet.append([text(str(name)) for name in frame])
        for row in zip(*columns, strict=True):
            sheet.append([text(value) if isinstance(value, str) else value for value in row])
    except IllegalCharacterError:
        raise NotReleased("a text has a character that a sheet cannot hold; choose another --format") from None
    sink = BytesIO()
    book.save(sink)
    return _undated(sink.getvalue())


def _cells(values: pd.Series) -> list[object]:
    """The cells of a column (n,): numbers, texts, dates; None for a missing one."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype("object").map(str, na_action="ignore")
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return [None if pd.isna(moment) else moment.to_pydatetime() for moment in values]
    return [None if pd.isna(value) else value for value in values.astype("object")]


def _undated(content: bytes) -> bytes:
    sink = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as given, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as made:
        for entry in given.infolist():
            part = given.read(entry)
            if entry.filename == "docProps/core.xml":
                part = _DATES.sub(rb"\g<1>1980-01-01T00:00:00Z", part)
            about = zipfile.ZipInfo(entry.filename, MOMENT)
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, entry.external_attr
            made.writestr(about, part)
    return sink.getvalue()
