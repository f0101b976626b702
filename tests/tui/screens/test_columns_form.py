"""The first rows of a file stand below how each column is read, and what is unclear is asked, before anything is stored."""

from __future__ import annotations

import pytest

from sfumato.engine.data.schema import Kind
from sfumato.workspace.service.importing import import_or_ask
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow


@pytest.fixture
def doubtful(tmp_path):
    """Codes of one length with zeros in front, dates that two orders fit, and an amount without a question."""
    lines = [f"0{1000 + i},{1 + i % 12:02}/{1 + (i * 5) % 12:02}/2019,{100 + 37 * i}" for i in range(60)]
    path = tmp_path / "doubtful.csv"
    path.write_text("\n".join(["area,seen,income", *lines, ""]))
    return path


def stored_kinds(directory):
    with Workspace.open(directory, read_only=True) as workspace:
        (number,) = workspace.connection.execute("SELECT id FROM dataset").fetchone()
        schema = workspace.find_dataset(number).schema
    return {variable.name: (variable.kind, variable.format) for variable in schema}


def stored_datasets(directory):
    with Workspace.open(directory, read_only=True) as workspace:
        return workspace.connection.execute("SELECT id FROM dataset").fetchall()


async def test_columns_with_a_question_are_asked_about_before_they_are_stored(sit, empty_workspace, doubtful, size):
    async with sit(empty_workspace, "I", size=size) as seat:
        await seat.press(*str(doubtful), "enter")
        await seat.until(lambda: "columns of doubtful.csv are" in seat.text)
        assert "columns of doubtful.csv are" in seat.text
        assert "01/01/2019" in seat.text, "the first rows are there"
        assert not stored_datasets(empty_workspace)
        await seat.press("enter")
        await seat.until(lambda: any("doubtful.csv: 60 records" in one for one in (seat.text, *seat.app.notices)))
    assert stored_kinds(empty_workspace)["income"][0] is Kind.COUNT


async def test_answers_decide_kind_form_and_what_is_left_out(sit, empty_workspace, doubtful):
    preview = import_or_ask(empty_workspace, str(doubtful), "asked").preview
    assert preview is not None
    places = {column.variable.name: at for at, column in enumerate(preview.asked_columns)}
    assert {"seen"} <= set(places)
    seen = next(column for column in preview.asked_columns if column.variable.name == "seen")
    other = f"date:{seen.other_formats[0]}"
    async with sit(empty_workspace, "I") as seat:
        await seat.press(*str(doubtful), "enter")
        await seat.until(lambda: "columns of doubtful.csv are" in seat.text)
        await seat.press(*["down"] * places["seen"], *["backspace"] * 20, *"nonsense", "enter")
        assert '"nonsense" is no kind' in seat.text
        assert not stored_datasets(empty_workspace)
        await seat.press(*["backspace"] * 8, *other, "enter")
        await seat.until(lambda: "60 records" in seat.text)
        await seat.press("at")
        assert "--as" in seat.text
    assert stored_kinds(empty_workspace)["seen"] == (Kind.DATE, seen.other_formats[0])


async def test_a_column_can_be_left_out_and_no_question_asks_nothing(sit, empty_workspace, doubtful, tmp_path):
    async with sit(empty_workspace, "I") as seat:
        await seat.press(*str(doubtful), "enter")
        await seat.until(lambda: "columns of doubtful.csv are" in seat.text)
        assert "[date" not in seat.text, "the form of a date is typed"
        await seat.press(*["backspace"] * 20, *"leave", "space", *"out", "enter")
        await seat.until(lambda: "60 records" in seat.text)
    assert set(stored_kinds(empty_workspace)) == {"income"}, (
        "area numbers the records and is left out without a question"
    )
    plain = tmp_path / "plain.csv"
    plain.write_text("\n".join(["sex,income", *(f"{'mf'[i % 2]},{100 + 3 * (i % 20)}" for i in range(60)), ""]))
    assert import_or_ask(empty_workspace, str(plain), "plain").result is not None


async def test_an_answer_is_chosen_by_one_key(sit, empty_workspace, tmp_path, size):
    names = [f"{given} {last}" for given in ("Maria", "Thomas", "Laura", "Michael") for last in ("Ott", "Ray", "Lund")]
    path = tmp_path / "staff.csv"
    path.write_text("\n".join(["clerk,income", *(f"{names[i % 12]},{100 + 37 * i}" for i in range(60)), ""]))
    async with sit(empty_workspace, "I", size=size) as seat:
        await seat.press(*str(path), "enter")
        # what the question names comes first
        await seat.until(lambda: "[categorical] leave out" in seat.text.replace("\u00a0", " "))
        await seat.press("right", "enter")
        assert "Role of income" in seat.text, "a column that is left out has no role"
    assert set(stored_kinds(empty_workspace)) == {"income"}


async def test_a_file_without_a_question_shows_ten_rows_below_how_each_column_is_read(
    sit, empty_workspace, tmp_path, size
):
    path = tmp_path / "plain.csv"
    rows = (f"{'mf'[i % 2]},{20 + i % 30},{'north' if i % 3 else ''},{100 + i}.5" for i in range(60))
    path.write_text("\n".join(["sex,age,region,income", *rows, ""]))
    async with sit(empty_workspace, "I", size=size) as seat:
        await seat.press(*str(path), "enter")
        await seat.until(lambda: "Import plain.csv: 4 columns, none unclear" in seat.text)
        lines = [line.strip("│ ").split() for line in seat.text.splitlines()]
        (names,) = (line for line in lines if line[-1:] == ["income"])
        assert names == ["sex", "age", "region", "income"]
        found = {line[0]: line for line in lines if line}
        assert found["read"] == ["read", "as", "binary", "count", "binary", "continuous"]
        assert found["missing"] == ["missing", "0", "0", "20", "0"]
        rows = [line for line in lines if line[:1] == ["row"]]
        assert [line[1] for line in rows] == [str(number) for number in range(1, 11)]
        assert rows[1][2:] == ["f", "21", "north", "101.5"]
        assert not stored_datasets(empty_workspace), "nothing is stored yet"
        await seat.press("escape")
        assert "No projects yet" in seat.text
        assert not stored_datasets(empty_workspace)


async def test_columns_that_do_not_fit_are_counted_and_those_asked_about_stand_first(sit, empty_workspace, tmp_path):
    path = tmp_path / "wide.csv"
    heads = [f"measure_{at}" for at in range(12)]
    rows = (
        ",".join([*(str(i * (at + 2) % 97) for at in range(12)), f"{1 + i % 12:02}/{1 + i % 11:02}/2019"])
        for i in range(60)
    )
    path.write_text("\n".join([",".join([*heads, "seen"]), *rows, ""]))
    async with sit(empty_workspace, "I", size=(80, 24)) as seat:
        await seat.press(*str(path), "enter")
        await seat.until(lambda: "read as" in seat.text)
        (heads,) = (line for line in seat.text.splitlines() if "measure_0" in line and " more" in line)
        assert heads.strip("│ ").split()[0] == "seen"
