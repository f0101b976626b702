"""A newcomer with a file that somebody anonymised: from the first screen to k, l and t, and to a page, by keys alone."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from sfumato.tui.parts.page import Dialog
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
ROWS = ["<50,male,81***,hiv", "<50,male,81***,flu", ">=50,*,81***,flu", ">=50,*,81***,cold", "*,*,*,hiv"]


@pytest.fixture
def anonymised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "already.csv"
    path.write_text("\n".join(["age,sex,zip,disease", *ROWS * 3]) + "\n")
    return path


async def answer(seat, known, sensitive, *limits):
    """Fill in the form for the columns; the first two are typed as lists."""
    for field, text in zip(seat.app.screen.query(Input), (known, sensitive, *limits), strict=False):
        field.value = text
    await seat.press("shift")
    await seat.press("enter")


async def test_three_questions_lead_to_the_numbers_and_nothing_is_stored(sit, empty_workspace, anonymised, size):
    async with sit(empty_workspace, "act:check_file", size=size) as seat:
        await seat.press(*str(anonymised.name), "enter")
        assert "name the columns that an intruder may know" in " ".join(seat.text.split())
        await seat.press("space")
        assert "age      <50, <50, >=50" in seat.text, "columns are listed with their first values"
        # space marks a column and goes to the next
        await seat.press("space", "space", "space", "enter", "down", *"disease", "down", *"4", "enter")
        text = " ".join(seat.text.replace("│", " ").split())
        assert "1 of 1 limit is not met: k." in text
        assert "3 records have all known cells suppressed" in text
        assert "compared with 3" in text
        await seat.press("end")
        assert "suppressed" in seat.text
        assert "FILE --released FILE" in " ".join(seat.text.split())
    with Workspace.open(empty_workspace, read_only=True) as workspace:
        assert not workspace.connection.execute("SELECT * FROM dataset").fetchall()


async def test_other_columns_are_asked_with_the_answers_that_were_given(sit, empty_workspace, anonymised):
    async with sit(empty_workspace, "act:check_file") as seat:
        await seat.press(*str(anonymised.name), "enter")
        await answer(seat, "age, sex", "disease", "2", "2", "0.9")
        assert "3 limits of this file are met" not in seat.text, "hiv alone is in the suppressed records"
        assert "not met: l_distinct of disease" in seat.text
        await seat.press("enter")
        assert [one.value for one in seat.app.screen.query(Input)] == ["age, sex", "disease", "2", "2", "0.9"]
        await answer(seat, "zip", "", "", "", "")
        assert "No limit was set" in seat.text
        assert "Not looked at: age, sex, disease." in seat.text


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (("agee", ""), 'no column "agee"'),
        (("age", "age"), '"age" is known too'),
        (("age", "", "1"), "a whole number from 2 on"),
        (("age", "", "2.5"), "a whole number from 2 on"),
        (("age", "", "", "2"), "it limits a sensitive column"),
        (("age", "disease", "", "1"), "a number above 1"),
        (("age", "disease", "", "", "7"), "at most 1"),
        (("age", "disease", "many"), "is no number"),
    ],
)
async def test_a_wrong_answer_is_said_in_the_form(sit, empty_workspace, anonymised, answers, message):
    async with sit(empty_workspace, "act:check_file") as seat:
        await seat.press(*str(anonymised.name), "enter")
        await answer(seat, *answers)
        assert message in seat.text
        assert "is about" in seat.text, "the form stays"


async def test_a_page_is_written_and_the_command_is_named(sit, empty_workspace, anonymised, tmp_path):
    async with sit(empty_workspace, "act:check_file") as seat:
        await seat.press(*str(anonymised.name), "enter")
        await answer(seat, "age, sex, zip", "disease", "2")
        await seat.press("P", "enter")
        page = tmp_path / "already-anonymity.html"
        assert "What already.csv shows by itself" in page.read_text()
        assert page.stat().st_mode & 0o077 == 0, "only its owner can read it"
        await seat.press("at")
        assert "evaluate --released" in seat.text
        assert isinstance(seat.app.screen, Dialog)
        await seat.press("q", "P", "enter")
        assert (tmp_path / "already-anonymity-2.html").exists(), "a page that is there stays"


async def test_a_file_that_is_no_table_is_said(sit, empty_workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").write_text("a,b\n")
    async with sit(empty_workspace, "act:check_file") as seat:
        await seat.press(*"nowhere.csv", "enter")
        assert 'no such file "nowhere.csv"' in seat.text
        await seat.press(*["backspace"] * 11, *"empty.csv", "enter")
        assert seat.app.notices[-1] == '"empty.csv" has no records'
