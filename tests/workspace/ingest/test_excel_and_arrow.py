"""Excel and Arrow files: values only, the sheet that is asked for, hostile ones refused in one line."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Callable
from decimal import Decimal
from io import BytesIO
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.file_formats import OutputTable, format_by_name, recognise_format
from sfumato.workspace.ingest.files import read_table
from sfumato.workspace.ingest.raw_tables import RawTable
from sfumato.workspace.ingest.read_foreign import read_foreign_table
from sfumato.workspace.ingest.sources import SourceFile

FRAME = pd.DataFrame(
    {
        "town": ["Ash", "=1+1", None],
        "people": [3, 4, 5],
        "share": [0.5, None, 1.25],
        "founded": pd.to_datetime(["1200-01-01", None, "1850-06-30"]),
    }
)


def workbook(sheets: dict[str, list[list[Any]]]) -> bytes:
    """An Excel file of these rows."""
    book = openpyxl.Workbook()
    assert book.active is not None
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    sink = BytesIO()
    book.save(sink)
    return sink.getvalue()


def released_bytes(form: str) -> bytes:
    """The table as a released file of this format."""
    variables = {
        name: Variable(name, Kind.CATEGORICAL, Role.SENSITIVE, title="Name of the town" if name == "town" else "")
        for name in FRAME
    }
    write = format_by_name(form).write
    assert write is not None
    return write(OutputTable(FRAME, variables, {}, pd.DataFrame(), {}, "SYNTHETIC data"))


def read(content: bytes, sheet: str = "") -> RawTable:
    """The table of an Excel or Arrow file, read in this process."""
    return read_foreign_table(content, recognise_format(content).name, sheet)


def test_the_first_sheet_is_read_unless_another_is_named_and_which_is_said() -> None:
    content = workbook({"towns": [["a"], [1]], "rivers": [[], ["b"], [2.5], [None], [None]]})
    first = read(content)
    assert (list(first.frame), list(first.frame["a"])) == (["a"], [1])
    assert 'the sheet "towns" is read' in first.notes[0]
    assert list(read(content, "rivers").frame["b"]) == [2.5]
    with pytest.raises(BadInput, match='did you mean "rivers"') as error:
        read(content, "river")
    assert error.value.place == "data.sheet"


def test_cells_keep_what_they_are_and_formulas_are_not_computed() -> None:
    rows = [
        ["n", "text", "mixed", "day", "sum", "bad"],
        [1, "a", 1, dt.datetime(2024, 2, 29), "=A2*2", "#DIV/0!"],
        [2, " ", "x", None, "=A3*2", 4],
    ]
    found = read(workbook({"only": rows}))
    frame = found.frame
    assert list(frame["n"]) == [1, 2]
    assert frame["text"].isna().tolist() == [False, True]
    assert list(frame["mixed"]) == ["1", "x"]
    assert frame["day"][0] == pd.Timestamp("2024-02-29")
    assert frame["sum"].isna().all(), "nobody has computed it, and nothing here does"
    assert frame["bad"].isna().tolist() == [True, False]
    assert found.notes == ("1 cells show an error such as #N/A: they are missing",)


def test_what_was_released_as_excel_or_arrow_is_read_again() -> None:
    excel = released_bytes("excel")
    assert excel == released_bytes("excel")
    cells = openpyxl.load_workbook(BytesIO(excel)).worksheets[0]
    assert cells["A3"].data_type != "f", "a text that looks like a formula is a text"
    arrow = released_bytes("arrow")
    assert recognise_format(arrow).name == "arrow"
    for content in (excel, arrow):
        found = read(content).frame
        assert list(found.columns) == list(FRAME.columns)
        for name in FRAME:
            assert found[name].isna().tolist() == FRAME[name].isna().tolist()
            assert found[name].dropna().tolist() == FRAME[name].dropna().tolist()
    assert read(arrow).descriptions["town"].title == "Name of the town"


def test_a_name_that_stands_twice_has_a_number_as_in_text() -> None:
    found = read(workbook({"s": [["a", "a"], [1, 2]]}))
    assert found.names == ("a", "a_2")
    assert found.notes == ('names that stand twice have a number: "a" is "a_2"',)


def test_headers_that_name_nothing_are_refused() -> None:
    for rows, said in (
        ([["a"], [1, 2]], "cells beyond the columns"),
        ([[]], "is empty"),
    ):
        with pytest.raises(BadInput) as error:
            read(workbook({"s": rows}))
        assert said in error.value.message


def test_hostile_archives_are_refused() -> None:
    with pytest.raises(BadInput, match="zip archive"):
        read(zipped({"x.txt": b"a"}))
    bomb = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + b"".join(
        b'<!ENTITY %c "%s">' % (c, b"&%c;" % (c - 1) * 10) for c in b"bcdefghij"
    )
    with pytest.raises(BadInput, match="damaged"):
        read(zipped({"xl/workbook.xml": bomb + b"]><a>&j;</a>", "[Content_Types].xml": b"<Types/>"}))
    whole = workbook({"s": [["a"], [1]]})
    with pytest.raises(BadInput, match="damaged"):
        read(whole[: len(whole) // 2])
    arrow = released_bytes("arrow")
    with pytest.raises(BadInput, match="damaged"):
        read(arrow[: len(arrow) // 2])
    table, sink = pa.table({"x": [[1, 2], [3]]}), BytesIO()
    with pa.ipc.new_file(sink, table.schema) as nested:
        nested.write_table(table)
    with pytest.raises(BadInput, match=r'column "x" of .* holds list values'):
        read(sink.getvalue())


def zipped(parts: dict[str, bytes]) -> bytes:
    """An archive of these parts."""
    sink = BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return sink.getvalue()


ODD_COLUMNS = {
    "time": pa.array([1, 2, 3, 4], pa.time64("us")),
    "duration": pa.array([1, 2, 3, 4], pa.duration("s")),
    "list": pa.array([[1], [2], [3], [4]]),
    "bytes": pa.array([b"a", b"b", b"c", b"d"]),
}


def parquet_of(columns: dict[str, pa.Array]) -> bytes:
    sink = BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def arrow_of(columns: dict[str, pa.Array]) -> bytes:
    sink, table = BytesIO(), pa.table(columns)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("written_as", [parquet_of, arrow_of])
@pytest.mark.parametrize("odd", ODD_COLUMNS)
def test_a_column_without_single_values_is_left_out_by_its_name_and_the_others_are_read(
    written_as: Callable[[dict[str, pa.Array]], bytes], odd: str
) -> None:
    content = written_as({"age": pa.array([20, 31, 42, 53]), odd: ODD_COLUMNS[odd], "sex": pa.array(list("fmfm"))})
    found = read_table(SourceFile("types.parquet", content))
    assert found.names == ("age", "sex")
    assert [f'column "{odd}" of' in note for note in found.notes] == [True]


def test_a_column_without_single_values_that_a_recipe_names_is_refused() -> None:
    content = parquet_of({"age": pa.array([20, 31, 42, 53]), "time": ODD_COLUMNS["time"]})
    schema = Schema((Variable("time", Kind.CATEGORICAL),))
    with pytest.raises(BadInput, match=r'column "time" of .* holds time64'):
        read_table(SourceFile("types.parquet", content), schema)


@pytest.mark.parametrize("written_as", [parquet_of, arrow_of])
def test_decimal_numbers_are_numbers(written_as: Callable[[dict[str, pa.Array]], bytes]) -> None:
    amounts = [Decimal("12.50"), None, Decimal("-3.25"), Decimal("0.00")]
    content = written_as({"amount": pa.array(amounts, pa.decimal128(9, 2)), "n": pa.array([1, 2, 3, 4])})
    found = read_table(SourceFile("types.parquet", content)).frame["amount"]
    assert found.dtype == "float64"
    assert found.dropna().tolist() == [12.5, -3.25, 0.0]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_a_sheet_has_all_digits_of_a_number(numbers: list[float]) -> None:
    """Some doubles need 17 digits; the writer's 16 made other numbers of them."""
    write = format_by_name("excel").write
    assert write is not None
    frame = pd.DataFrame({"x": [*numbers, 0.1 + 0.2]})
    content = write(OutputTable(frame, {"x": Variable("x", Kind.CONTINUOUS)}, {}, pd.DataFrame(), {}, ""))
    rows = openpyxl.load_workbook(BytesIO(content), read_only=True).worksheets[0].iter_rows(min_row=2, values_only=True)
    assert [float(str(value)) for (value,) in rows] == frame["x"].tolist()


@pytest.mark.parametrize("empty", [[3], [1, 3], [2, 3], [0, 1, 2, 3]])
def test_a_last_record_without_any_value_is_a_record_to_every_reader(empty: list[int]) -> None:
    """A sheet ends with its last filled cell, so the record was lost."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "town": ["a", "b", "c", "d"]})
    frame.loc[empty] = None
    write = format_by_name("excel").write
    assert write is not None
    variables = {"x": Variable("x", Kind.CONTINUOUS), "town": Variable("town", Kind.CATEGORICAL)}
    content = write(OutputTable(frame, variables, {}, pd.DataFrame(), {}, ""))
    read = pd.read_excel(BytesIO(content))
    assert read.isna().equals(frame.isna())
    again = read_foreign_table(content, "excel").frame
    assert again.isna().equals(frame.isna())
    assert again["x"].dropna().tolist() == frame["x"].dropna().tolist()
    rows = list(openpyxl.load_workbook(BytesIO(content)).worksheets[0].iter_rows(values_only=True))
    shown = [cell for row in rows for cell in row if cell == "#N/A"]
    assert len(rows) == 5
    assert len(shown) == 1
