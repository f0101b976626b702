"""Tables without separators: their columns have fixed widths, which the owner says and a preview proposes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.text_format import TextFormat
from sfumato.tui.app.reading import format_fields, format_from_answers
from sfumato.workspace.ingest.dialects import detect_text_format
from sfumato.workspace.ingest.files import find_source, read_file_microdata, read_table
from sfumato.workspace.service.draft_data import RoleAssignment, draft_file
from sfumato.workspace.service.importing import EVERYTHING, import_file, preview_file, read_source

NAMES = ["age", "sex", "region", "income"]
WIDTHS = [2, 1, 8, 9]


def people(number: int = 80) -> list[list[Any]]:
    chance = random.Random(4)
    return [
        [chance.randrange(18, 90), chance.choice("MF"), chance.choice(["North", "South", "East"]), chance.randrange(900_000) / 100]
        for _ in range(number)
    ]  # fmt: skip


def line_of(row: Sequence[Any], widths: Sequence[int] = WIDTHS) -> str:
    """Write a row as a program of the seventies does: texts to the left, numbers to the right of their columns."""
    return "".join(
        f"{'' if cell is None else cell:>{width}}" if isinstance(cell, (int, float)) else f"{cell or '':<{width}}"
        for cell, width in zip(row, widths, strict=True)
    )


def write(path: Path, rows: Sequence[Sequence[Any]], *, above: Sequence[str] = (), below: Sequence[str] = ()) -> Path:
    path.write_text("\n".join([*above, *map(line_of, rows), *below, ""]), "utf-8")
    return path


def read_records(path: Path, **given: Any) -> pd.DataFrame:
    return read_source(find_source(str(path)), {"widths": WIDTHS, **given}, EVERYTHING)[0].frame


def records_of(frame: pd.DataFrame) -> list[list[Any]]:
    return frame.astype("object").where(frame.notna(), None).to_numpy().tolist()


def test_a_table_of_fixed_widths_is_refused_with_the_widths_that_it_shows(tmp_path: Path) -> None:
    path = write(tmp_path / "fixed.dat", people())
    for reads in (
        lambda: preview_file(str(path)),
        lambda: import_file(tmp_path / "w", str(path), ""),
        lambda: draft_file(str(path), {}, None, RoleAssignment()),  # type: ignore[arg-type]
    ):
        with pytest.raises(BadInput, match=r"--widths 2,1,\d+,\d+; or --delimiter blanks") as caught:
            reads()
        assert caught.value.place == "--widths"
    assert not (tmp_path / "w").exists()
    proposed = [int(one) for one in caught.value.message.partition("--widths ")[2].partition(";")[0].split(",")]
    assert records_of(read_records(path, widths=proposed, names=NAMES)) == people()


def test_it_is_read_by_the_widths_that_are_given(tmp_path: Path) -> None:
    path = write(tmp_path / "fixed.dat", people())
    frame = read_records(path, names=NAMES)
    assert list(frame) == NAMES
    assert records_of(frame) == people()
    assert list(read_records(path)) == ["column_1", "column_2", "column_3", "column_4"]


def test_a_line_of_names_is_split_by_the_widths_too(tmp_path: Path) -> None:
    path = write(tmp_path / "named.dat", people(), above=["agsregion    income"])
    frame = read_records(path, widths=[2, 1, 8, 9])
    assert list(frame) == ["ag", "s", "region", "income"]
    assert records_of(frame) == people()


def test_empty_places_are_missing_and_make_the_file_one_of_fixed_widths(tmp_path: Path) -> None:
    """Blanks would split such lines into different numbers of cells."""
    rows = [["A7", "x", None if i % 5 == 1 else "North", None if i % 7 == 2 else i + 0.5] for i in range(40)]
    rows[11][1] = None
    path = write(tmp_path / "gaps.dat", rows)
    with pytest.raises(BadInput, match="blanks split them into different numbers of cells"):
        preview_file(str(path))
    assert records_of(read_records(path, names=NAMES)) == rows


def test_lines_around_the_table_are_found(tmp_path: Path) -> None:
    path = write(tmp_path / "titled.dat", people(), above=["A title of the office", ""], below=["Source: office"])
    assert records_of(read_records(path, names=NAMES, skip=2, footer=1)) == people()
    with pytest.raises(BadInput, match="fixed widths"):
        preview_file(str(path))


def test_widths_count_characters_not_bytes(tmp_path: Path) -> None:
    rows = [[row[0], row[1], "Köln" if i % 2 else "Zürich", row[3]] for i, row in enumerate(people())]
    assert records_of(read_records(write(tmp_path / "towns.dat", rows), names=NAMES)) == rows
    (tmp_path / "latin.dat").write_bytes(("\n".join(map(line_of, rows)) + "\n").encode("windows-1252"))
    assert records_of(read_records(tmp_path / "latin.dat", names=NAMES, encoding="windows-1252")) == rows


def test_signs_of_other_formats_are_part_of_a_cell(tmp_path: Path) -> None:
    rows = [[row[0], row[1], ('a,"b"', "it's; c", "tab|x")[i % 3], row[3]] for i, row in enumerate(people())]
    assert records_of(read_records(write(tmp_path / "signs.dat", rows), names=NAMES)) == rows


def test_zeros_at_the_beginning_of_a_code_stay_where_a_letter_stands_before_it(tmp_path: Path) -> None:
    lines = [f"M{i % 90:03}{i % 7}" for i in range(60)]
    (tmp_path / "codes.dat").write_text("\n".join(lines) + "\n")
    found = preview_file(str(tmp_path / "codes.dat"), {"widths": [1, 3, 1], "names": ["sex", "zip", "n"]})
    assert [column.variable.kind.value for column in found.columns][1] == "categorical"
    frame = read_records(tmp_path / "codes.dat", widths=[1, 3, 1], names=["sex", "zip", "n"])
    assert frame["zip"].astype(str).str.len().eq(3).all() or frame["zip"].dtype.kind in "if"


def test_decimal_commas_are_found(tmp_path: Path) -> None:
    rows = people()
    text = "\n".join(line_of([*row[:3], f"{row[3]:.2f}".replace(".", ",").rjust(9)]) for row in rows)
    (tmp_path / "commas.dat").write_text(text + "\n")
    assert records_of(read_records(tmp_path / "commas.dat", names=NAMES)) == rows


def test_a_long_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = people(3_000)
    path = write(tmp_path / "long.dat", rows)
    monkeypatch.setattr("sfumato.workspace.ingest.sources.PIECE_BYTES", 777)
    monkeypatch.setattr("sfumato.workspace.ingest.text_files.ROWS_PER_WRITE", 100)
    assert records_of(read_records(path, names=NAMES)) == rows


def test_the_plan_of_an_import_reads_the_same_records(tmp_path: Path) -> None:
    path = write(tmp_path / "fixed.dat", people())
    found = import_file(tmp_path / "w", str(path), "", {"widths": WIDTHS, "names": NAMES})
    table = read_toml(found.recipe)
    assert (table["data"]["format"]["widths"], table["data"]["format"]["names"]) == (WIDTHS, NAMES)
    step = [{"target": "sex", "method": "cart", "predictors": ["region"]}]
    recipe = Recipe.from_toml(Recipe.from_table({**table, "synthesis": step}).to_toml())
    data = read_file_microdata(find_source(str(path)), recipe.data, recipe.schema, 1, key=PUBLIC)
    assert data.frame["age"].tolist() == [row[0] for row in people()]


def test_names_can_be_given_for_any_table_without_a_line_of_names(tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text("".join(f"{row[0]},{row[1]},{row[3]}\n" for row in people()))
    raw, _ = read_source(find_source(str(tmp_path / "bare.csv")), {"names": ["age", "sex", "income"]}, EVERYTHING)
    assert raw.names == ("age", "sex", "income")
    assert raw.records == len(people())


CONTROLS = {
    "codes of letters and digits between blanks": [f"P{i:03} M{i % 60 + 10} {i % 9}" for i in range(60)],
    "numbers between blanks": [f"{10 + i} {20 + i} {i % 7}" for i in range(60)],
    "one long column": [f"A sentence of somebody, number {i:03}" for i in range(60)],
    "one column of equal length": [f"{i:04}" for i in range(60)],
    "words between commas, equally long": [f"{10 + i}M,{'North' if i % 2 else 'South'},{i % 7}" for i in range(60)],
    "a few classes with a letter": [f"{i % 3 + 1}{'ab'[i % 2]} {i % 9} {i % 4}" for i in range(60)],
}


@pytest.mark.parametrize("case", CONTROLS)
def test_other_tables_are_read_as_before(tmp_path: Path, case: str) -> None:
    path = tmp_path / "table.txt"
    path.write_text("\n".join([*CONTROLS[case], ""]))
    found = preview_file(str(path), {"header": False} if "column" in case else {})
    assert found.detection is not None
    assert not [one for one in found.detection.reasons if one.key == "widths"]


def test_a_separator_that_is_given_settles_it(tmp_path: Path) -> None:
    path = write(tmp_path / "fixed.dat", people())
    found = preview_file(str(path), {"delimiter": " "})
    assert len(found.columns) == 2


def test_digits_glued_to_letters_in_one_column_are_marked_but_read(tmp_path: Path) -> None:
    (tmp_path / "one.dat").write_text("".join(f"{20 + i}{'MF'[i % 2]}\n" for i in range(70)))
    found = preview_file(str(tmp_path / "one.dat"))
    assert found.detection is not None
    (doubt,) = [one for one in found.detection.doubtful_settings if one.key == "widths"]
    assert doubt.alternatives == ("2,1",)


def test_the_form_of_the_app_takes_the_widths(tmp_path: Path) -> None:
    head = write(tmp_path / "fixed.dat", people()).read_bytes()
    fields = format_fields(detect_text_format(head))
    assert fields[0].name == "widths"
    assert "may be 2,1," in fields[0].help
    answers = {field.name: field.value for field in fields} | {"widths": ["2", "1", "8", "9"]}
    answers |= {"separator": ",", "thousands": "none", "quotes": '"', "header": "no", "trim": "no", "missing": []}
    said = format_from_answers(answers)
    assert said["widths"] == WIDTHS
    assert len(detect_text_format(head, said).header) == 4
    with pytest.raises(BadInput, match="no number of characters"):
        format_from_answers(answers | {"widths": ["2", "x"]})


@pytest.mark.parametrize(
    ("given", "place", "message"),
    [
        ({"widths": [2, 1, 8]}, "data.format.widths", "line 1 of .* has 20 characters, and the widths add up to 11"),
        ({"widths": [2, 0, 8]}, "data.format.widths", "at least 1"),
        ({"widths": "2,1"}, "data.format.widths", "list"),
        ({"widths": WIDTHS, "names": ["a"]}, "data.format.names", "1 name for 4 widths"),
        ({"widths": WIDTHS, "names": ["a", "a", "b", "c"]}, "data.format.names", "twice|once|repeat"),
        ({"widths": WIDTHS, "delimiter": ";"}, "data.format.delimiter", "no sign separates"),
        ({"widths": WIDTHS, "names": NAMES, "header": True}, "data.format.names", "set header = false"),
    ],
)
def test_wrong_widths_and_names(tmp_path: Path, given: dict[str, Any], place: str, message: str) -> None:
    path = write(tmp_path / "fixed.dat", people())
    with pytest.raises(BadInput, match=message) as caught:
        preview_file(str(path), given)
    assert caught.value.place.startswith(place)


def test_names_for_another_number_of_columns(tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text("1,2\n3,4\n")
    form = TextFormat(header=False, names=("a", "b", "c"))
    with pytest.raises(BadInput, match="3 names for 2 columns"):
        read_table(find_source(str(tmp_path / "bare.csv")), form=form)
