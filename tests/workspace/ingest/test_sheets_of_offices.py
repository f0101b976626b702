"""Sheets as offices write them: titles above the table and footers below it are found as in text, by the same rules."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from sfumato.engine.data.schema import Kind
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.dialects import DetectedFormat, detect_sheet_format, detect_text_format
from sfumato.workspace.ingest.files import find_source, read_file_microdata, read_table
from sfumato.workspace.service.importing import EVERYTHING, ImportSelection, import_file, preview_file, read_source

NAMES = ["region", "sex", "age", "score"]
RECORDS = [["north" if i % 3 else "south", "m" if i % 2 else "f", 20 + i * 7 % 30, i * 37 % 91 / 4] for i in range(60)]
TITLE: list[list[Any]] = [["Table 1: people by region, 2025"], []]
TOTAL: list[list[Any]] = [[], ["Source: office"], ["Total", None, sum(row[2] for row in RECORDS)]]
Rows = Sequence[Sequence[Any]]


def write_sheet(path: Path, rows: Rows, column: int = 0) -> Path:
    """Write a workbook whose table begins ``column`` columns from the left."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([*[None] * (column if row else 0), *row])
    book.save(path)
    return path


def write_text(rows: Rows, *, padded: bool) -> bytes:
    """Write rows as CSV; ``padded`` as a spreadsheet program exports a sheet, with a separator for each empty cell."""
    sink = io.StringIO()
    width = max(map(len, rows))
    out = csv.writer(sink, lineterminator="\n")
    out.writerows([*row, *[None] * (width - len(row))] if padded else row for row in rows)
    return sink.getvalue().encode()


def read_sheet(path: Path, **given: Any) -> tuple[pd.DataFrame, DetectedFormat]:
    raw, detection = read_source(find_source(str(path)), given, EVERYTHING)
    assert detection is not None
    return raw.frame, detection


def records_of(frame: pd.DataFrame) -> list[list[Any]]:
    return frame.astype("object").where(frame.notna(), None).to_numpy().tolist()


SURROUNDINGS = {
    "plain": ([], []),
    "title and total": (TITLE, TOTAL),
    "title alone": (TITLE, []),
    "total alone": ([], [["Total", None, 2400]]),
    "source": ([], [[], ["Source: office, 2025"]]),
    "two titles and notes": (
        [["Office"], ["People by region"], []],
        [["* estimated"], ["Revised figures are published in March"]],
    ),
    "notes with gaps": (
        [["Lots of people"], ["like", "to", "write"], ["at the", "top,", None, "too"]],
        [["Some at the bottom of it"], [None, None, "and", "here"]],
    ),
    "a total between notes": ([], [["Insgesamt", None, 2400, 900.5], [], ["Quelle: Amt"]]),
}


@pytest.mark.parametrize("case", SURROUNDINGS)
@pytest.mark.parametrize("column", [0, 2])
def test_a_table_is_found_wherever_it_stands(tmp_path: Path, case: str, column: int) -> None:
    above, below = SURROUNDINGS[case]
    path = write_sheet(tmp_path / "office.xlsx", [*above, NAMES, *RECORDS, *below], column)
    frame, detection = read_sheet(path)
    assert list(frame) == NAMES
    assert records_of(frame) == RECORDS
    assert (detection.format.skip, detection.format.footer) == (len(above), len(below))
    if any("otal" in str(row) or "gesamt" in str(row) for row in below):
        doubt = next(one for one in detection.doubtful_settings if one.key == "footer")
        assert all(f'"{row[0]}"' in doubt.explanation for row in below if row), "what is left out is named"


@pytest.mark.parametrize("case", SURROUNDINGS)
@pytest.mark.parametrize("padded", [True, False])
def test_sheet_and_text_of_the_same_rows_are_read_alike(case: str, padded: bool) -> None:
    above, below = SURROUNDINGS[case]
    rows = [*above, NAMES, *RECORDS, *below]
    text = write_text(rows, padded=padded)
    of_text = detect_text_format(text, tail=text)
    of_sheet = detect_sheet_format([["" if cell is None else str(cell) for cell in row] for row in rows])
    for key in ("header", "skip", "skip_below", "footer", "missing"):
        assert getattr(of_text.format, key) == getattr(of_sheet.format, key), key
    assert of_text.header == of_sheet.header
    assert of_text.rows[:5] == of_sheet.rows[:5]


@pytest.mark.parametrize(
    "rows",
    [
        [["", "sex", "age"], ["Anna", "f", "refused"], *([f"Person {i}", "mf"[i % 2], str(20 + i)] for i in range(12))],
        [
            ["name", "sex", "age"],
            *([f"Person {i}", "mf"[i % 2], str(20 + i)] for i in range(12)),
            ["Anna", "", "refused"],
        ],
    ],
    ids=["no name for row names", "a name and a sign of no value at the end"],
)
def test_a_person_of_whom_little_is_known_is_no_note(rows: list[list[str]]) -> None:
    found = detect_sheet_format(rows).format
    assert (found.skip, found.footer) == (0, 0)


def test_the_plan_of_an_import_reads_the_same_records(tmp_path: Path) -> None:
    path = write_sheet(tmp_path / "office.xlsx", [*TITLE, NAMES, *RECORDS, *TOTAL])
    found = import_file(tmp_path / "w", str(path), "people")
    table = read_toml(found.recipe)
    assert table["data"]["format"] == {"skip": 2, "footer": 3}
    recipe = Recipe.from_table({**table, "synthesis": [{"target": "age", "method": "cart", "predictors": ["sex"]}]})
    again = Recipe.from_toml(recipe.to_toml())
    for one in (recipe, again):
        data = read_file_microdata(find_source(str(path)), one.data, one.schema, 1, key=PUBLIC)
        assert records_of(data.frame[NAMES].astype({"region": str, "sex": str})) == RECORDS


def test_the_office_can_say_where_the_table_is(tmp_path: Path) -> None:
    path = write_sheet(tmp_path / "office.xlsx", [*TITLE, NAMES, *RECORDS, *TOTAL])
    frame, detection = read_sheet(path, skip=2, footer=3)
    assert records_of(frame) == RECORDS
    assert {one.key: one.explanation for one in detection.reasons if one.key in ("skip", "footer")} == {
        "skip": "as you say",
        "footer": "as you say",
    }
    with_total, _ = read_sheet(path, footer=0)
    assert len(with_total) == len(RECORDS) + len(TOTAL)
    fewer, _ = read_sheet(path, skip=4, header=False)
    assert list(fewer) == ["column_1", "column_2", "column_3", "column_4"]
    assert records_of(fewer) == RECORDS[1:]


def test_errors_and_codes_are_missing(tmp_path: Path) -> None:
    rows = [[*row] for row in RECORDS]
    rows[3][3], rows[7][3], rows[9][2], rows[11][1] = "#N/A", "#DIV/0!", "n/a", "?"
    path = write_sheet(tmp_path / "office.xlsx", [*TITLE, NAMES, *rows, *TOTAL])
    frame, detection = read_sheet(path)
    assert frame.isna().sum().to_dict() == {"region": 0, "sex": 1, "age": 1, "score": 2}
    assert pd.api.types.is_numeric_dtype(frame["age"])
    assert set(detection.format.missing) == {"n/a", "?"}
    said, _ = read_sheet(path, missing=["south"])
    assert said["region"].isna().sum() == sum(row[0] == "south" for row in rows)
    numbers, _ = read_sheet(path, missing=["27"])
    assert numbers["age"].isna().sum() == sum(row[2] == 27 for row in rows)


def test_lines_below_the_names_are_found_as_in_text(tmp_path: Path) -> None:
    below = [["where?", "which?", "how old?", "how many?"]]
    path = write_sheet(tmp_path / "survey.xlsx", [NAMES, *below, *RECORDS])
    frame, detection = read_sheet(path)
    assert detection.format.skip_below == 1
    assert records_of(frame) == RECORDS


def test_names_that_stand_twice_have_a_number(tmp_path: Path) -> None:
    path = write_sheet(tmp_path / "twice.xlsx", [["region", "sex", "age", "age"], *RECORDS])
    found = preview_file(str(path))
    assert [column.variable.name for column in found.columns] == ["region", "sex", "age", "age_2"]
    assert 'names that stand twice have a number: "age" is "age_2"' in found.notes


CONTROLS = {
    "a sheet with an empty first row": ([[], NAMES, *RECORDS], len(RECORDS)),
    "a person called Total": ([NAMES, *RECORDS, ["Total", "f", 33, 4.25]], len(RECORDS) + 1),
    "a person of whom the region alone is known": ([NAMES, *RECORDS, ["north", None, None, None]], len(RECORDS) + 1),
    "a region of its own, alone": ([NAMES, *RECORDS, ["west", None, None, None]], len(RECORDS) + 1),
    "a town of three words, alone": ([NAMES, *RECORDS, ["Stow on Wold", None, None, None]], len(RECORDS) + 1),
    "a level All in several rows": (
        [NAMES, *([["All", *row[1:]] if i % 4 == 3 else row for i, row in enumerate(RECORDS)])],
        len(RECORDS),
    ),
}


@pytest.mark.parametrize("case", CONTROLS)
@pytest.mark.parametrize("way", ["sheet", "text"])
def test_records_that_look_like_lines_around_a_table_stay(tmp_path: Path, case: str, way: str) -> None:
    rows, records = CONTROLS[case]
    path = tmp_path / ("table.xlsx" if way == "sheet" else "table.csv")
    if way == "sheet":
        write_sheet(path, rows)
    else:
        path.write_bytes(write_text([row for row in rows if row], padded=True))
    frame, detection = read_sheet(path)
    assert list(frame) == NAMES
    assert len(frame) == records
    assert (detection.format.footer, detection.format.skip) == (0, 0)
    assert detection.is_default, "nothing is written into the recipe"


def test_a_sheet_of_one_column_is_a_table(tmp_path: Path) -> None:
    words = [["opinion"], *([f"sentence number {i} of somebody"] for i in range(30)), ["Total"]]
    frame, detection = read_sheet(write_sheet(tmp_path / "one.xlsx", words))
    assert (len(frame), detection.is_default) == (31, True)


def test_a_recipe_of_before_reads_a_sheet_as_it_did(tmp_path: Path) -> None:
    """Without ``[data.format]`` the first row that is not empty has the names, and all rows below are records."""
    path = write_sheet(tmp_path / "old.xlsx", [[], NAMES, *RECORDS, ["Total", None, 2400]])
    assert len(read_table(find_source(str(path))).frame) == len(RECORDS) + 1
    titled = write_sheet(tmp_path / "titled.xlsx", [*TITLE, NAMES, *RECORDS])
    with pytest.raises(BadInput, match="beyond the columns that have a name"):
        read_table(find_source(str(titled)))


@pytest.mark.parametrize(
    ("given", "place", "message"),
    [
        (
            {"delimiter": ";"},
            "data.format.delimiter",
            "only header, names, skip, skip_below, footer, missing can be set",
        ),
        ({"encoding": "cp850"}, "data.format.encoding", "an Excel file"),
        ({"skip": 500}, "data.format.skip", "no row of"),
        ({"footer": 500}, "data.format.skip", "no row of"),
        ({"skip": -1}, "data.format.skip", "at least 0"),
        ({"missing": 3}, "data.format.missing", "list"),
    ],
)
def test_settings_that_a_sheet_cannot_have(tmp_path: Path, given: dict[str, Any], place: str, message: str) -> None:
    path = write_sheet(tmp_path / "office.xlsx", [*TITLE, NAMES, *RECORDS, *TOTAL])
    with pytest.raises(BadInput, match=message) as caught:
        preview_file(str(path), given)
    assert caught.value.place == place


def test_another_sheet_has_a_table_of_its_own(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["see the other sheet"])
    for row in [*TITLE, NAMES, *RECORDS, *TOTAL]:
        (book["people"] if "people" in book.sheetnames else book.create_sheet("people")).append(row)
    book.save(tmp_path / "two.xlsx")
    found = preview_file(str(tmp_path / "two.xlsx"), {}, ImportSelection(sheet="people"))
    assert {column.variable.name: column.variable.kind for column in found.columns}["age"] is Kind.COUNT
    assert found.detection is not None
    assert (found.detection.format.skip, found.detection.format.footer) == (2, 3)
