"""A file whose text is unusual is shown as it would be read, and changed there, before anything is stored."""

from __future__ import annotations

import re
import tomllib

import pytest

from sfumato.engine.recipe.text_format import TextFormat
from sfumato.tui.app.reading import format_fields, format_from_answers
from sfumato.workspace.ingest.dialects import detect_text_format
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
LINES = ["name;visits;income", *(f"Zoé {i};{i % 5};{1000 + i},5" for i in range(60))]


@pytest.fixture
def odd(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes("\r\n".join(LINES).encode("windows-1252"))
    return path


async def test_a_file_of_another_encoding_is_asked_about_and_read_as_is_said(sit, empty_workspace, odd, size):
    async with sit(empty_workspace, "I", size=size) as seat:
        await seat.press(*str(odd), "enter")
        assert "How odd.csv is read" in seat.text
        assert "Zoé 1" in seat.text
        assert "? encoding" in seat.text
        assert "1001,5" in seat.text
        with Workspace.open(empty_workspace, read_only=True) as workspace:
            assert not workspace.connection.execute("SELECT * FROM dataset").fetchall(), "nothing is stored yet"
        # the form begins at what is uncertain
        await seat.press(*["backspace"] * 12, *"cp850")
        assert "ZoÚ 1" in seat.text, "the rows follow what is said"
        await seat.press(*["backspace"] * 5, *"klingon")
        assert "no encoding of text" in seat.text
        await seat.press(*["backspace"] * 7, *"windows-1252", "enter")
        await seat.until(lambda: "Import odd.csv" in seat.text)
        await seat.press("enter")
        await seat.until(lambda: "odd.csv: 60 records" in seat.text)
    with Workspace.open(empty_workspace, read_only=True) as workspace:
        draft = find_draft(workspace, 1)
    assert draft is not None
    said = tomllib.loads(draft.toml)["data"]["format"]
    assert said == {"encoding": "windows-1252", "delimiter": ";", "decimal": ","}


@pytest.mark.parametrize(
    "width", [80, pytest.param(120, marks=pytest.mark.study), pytest.param(160, marks=pytest.mark.study), 200]
)
async def test_the_first_rows_are_as_wide_as_there_is_room_and_none_goes_on_in_the_next_line(
    sit, empty_workspace, tmp_path, width
):
    """On a wide terminal they once were made for the terminal and shown in a narrower dialog."""
    names = [f"column_number_{n}" for n in range(15)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([";".join(names), *(";".join(f"{i * n},5" for n in range(15)) for i in range(40))]))
    async with sit(empty_workspace, "I", size=(width, 30)) as seat:
        await seat.press(*str(path), "enter")
        (rows,) = (line for line in seat.text.splitlines() if "column_number_0" in line)
        shown = sum(name in rows for name in names)
        assert f"{15 - shown} more" in rows, "what there is no room for is counted in the same line"
        assert shown >= (min(width, 140) - 16) // 17


async def test_an_uncertain_sign_of_no_value_is_in_view(sit, empty_workspace, tmp_path, size):
    path = tmp_path / "smokers.csv"
    path.write_text("\n".join(["smokes,pulse", *(f"{('never', 'often', 'NA')[i % 3]},{60 + i}" for i in range(60))]))
    async with sit(empty_workspace, "I", size=size) as seat:
        await seat.press(*str(path), "enter")
        assert '"NA" may be a value' in seat.text
        assert 'may be "NA"' not in seat.text
        assert re.search(r"(?m) missing +NA\b", seat.text), "the field is in view"
        await seat.press("backspace", "backspace", "enter")
        await seat.until(lambda: "Import smokers.csv" in seat.text)
        await seat.press("enter")
        await seat.until(lambda: "Role of" in seat.text)
    with Workspace.open(empty_workspace, read_only=True) as workspace:
        draft = find_draft(workspace, 1)
    assert draft is not None
    assert 'missing = ["NA"]' not in draft.toml, "it is a level"


async def test_escape_stores_nothing(sit, empty_workspace, odd):
    async with sit(empty_workspace, "I") as seat:
        await seat.press(*str(odd), "enter")
        assert "How odd.csv is read" in seat.text
        await seat.press("escape")
        assert "No projects yet" in seat.text


def test_the_fields_say_the_format_and_why() -> None:
    found = detect_text_format("\n".join(LINES).encode("windows-1252"))
    fields = format_fields(found)
    answers = {field.name: field.value for field in fields}
    assert TextFormat.from_table(format_from_answers(answers)) == found.format
    assert all(field.help for field in fields)
    assert "may be" in next(field.help for field in fields if field.name == "encoding")


async def test_a_table_of_fixed_widths_is_split_and_named_in_the_form(sit, empty_workspace, tmp_path):
    path = tmp_path / "fixed.dat"
    rows = (
        f"{i:05} {18 + i * 7 % 70}{'MF'[i % 2]}{['North', 'West'][i % 2]:7}{10_000 + 37.5 * i:9.2f}" for i in range(99)
    )
    path.write_text("\n".join(rows) + "\n")
    async with sit(empty_workspace, "I", size=(80, 24)) as seat:
        await seat.press(*str(path), "enter")
        assert "? widths of the columns" in seat.text
        await seat.press(*"6,2,1,7,9", "down", *"id,age,sex,region")
        assert "4 names for 5 widths: give one for each" in seat.text
        await seat.press(*",income")
        assert "00000  18   M    North   10000.00" in seat.text
        await seat.press("enter", "enter")
    with Workspace.open(empty_workspace, read_only=True) as workspace:
        draft = find_draft(workspace, 1)
    assert draft is not None
    said = tomllib.loads(draft.toml)["data"]["format"]
    assert (said["widths"], said["header"]) == ([6, 2, 1, 7, 9], False)
    assert said["names"] == ["id", "age", "sex", "region", "income"]


def test_whoever_names_the_columns_says_that_no_line_does() -> None:
    found = detect_text_format("\n".join(line.replace(";", " ") for line in LINES).encode("utf-8"))
    answers = {field.name: field.value for field in format_fields(found)}
    made = format_from_answers({**answers, "separator": ";", "header": "yes", "names": ["a", "b", "c"]})
    assert (made["header"], made["names"]) == (False, ["a", "b", "c"])
