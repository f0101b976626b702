"""Where a table begins and ends in a text file: names that are one fewer or more than the columns, lines around the table."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat
from sfumato.workspace.ingest import text_streams
from sfumato.workspace.ingest.dialects import detect_text_format, number_repeated_names
from sfumato.workspace.ingest.files import find_source, read_frame
from sfumato.workspace.service.importing import EVERYTHING, import_file, read_source

RNG = np.random.default_rng(11)
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, 60),
        "sex": RNG.choice(["f", "m"], 60),
        "region": RNG.choice(["north", "south", "west"], 60),
        "income": RNG.normal(3000, 400, 60).round(2),
    }
)


def read_as_imported(path: Path) -> pd.DataFrame:
    """Return the table that an import would store."""
    raw, _ = read_source(find_source(str(path)), {}, EVERYTHING)
    return raw.frame


def check_same_table(path: Path, first: str = "") -> None:
    """Check that an import reads the table, below a column of names of rows if ``first`` names one."""
    found = read_as_imported(path)
    names = ([first] if first else []) + list(TABLE)
    assert [name for name in found if found[name].notna().any()] == names
    pd.testing.assert_frame_equal(found[list(TABLE)], TABLE, check_dtype=False)


def rows_of(sign: str, *, index: bool = False, ending: str = "") -> list[str]:
    text = TABLE.to_csv(sep=sign, index=index, header=False)
    return [line + ending for line in text.splitlines()]


@pytest.mark.parametrize("sign", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("quoted", [True, False])
def test_names_of_rows_without_a_name_as_r_writes_them(tmp_path: Path, sign: str, quoted: bool) -> None:
    names = sign.join(f'"{name}"' if quoted else name for name in TABLE)
    path = tmp_path / "r.txt"
    path.write_text("\n".join([names, *rows_of(sign, index=True), ""]))
    check_same_table(path, "row_names")


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_names_of_rows_that_were_a_column_without_a_name_before_r_wrote_them_again(tmp_path: Path, sign: str) -> None:
    names, path = sign.join(['""', *(f'"{name}"' for name in TABLE)]), tmp_path / "twice.csv"
    twice = TABLE.set_axis([f"farm{i % 7}" for i in range(len(TABLE))]).to_csv(sep=sign, header=False).splitlines()
    path.write_text("\n".join([names, *(f"{i}{sign}{row}" for i, row in enumerate(twice, 1)), ""]))
    found = read_as_imported(path)
    assert list(found) == ["row_names", "column_2", *TABLE]
    assert found["row_names"].tolist() == list(range(1, len(TABLE) + 1))
    pd.testing.assert_frame_equal(found[list(TABLE)], TABLE, check_dtype=False)


@pytest.mark.parametrize("names", [["E1", "e2", "N1", "O1"], ["", "E1", "N1", "O1"], ["E1", "", "N1", "E3"]])
def test_names_such_as_e1_are_no_numbers(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "items.csv"
    path.write_text("\n".join([",".join(names), *(f"{i},{i % 6},{i % 5},{i % 4}" for i in range(60)), ""]))
    assert list(read_as_imported(path)) == [name or f"column_{i}" for i, name in enumerate(names, 1)]


def test_one_name_that_is_a_number_among_words_above_numbers_is_asked_about(tmp_path: Path) -> None:
    rows = [f"{i},{i % 6},{i % 5},{i % 4}" for i in range(60)]
    path = tmp_path / "groups.csv"
    path.write_text("\n".join(["people,under,5-9-10,over", *rows, ""]))
    raw, detection = read_source(find_source(str(path)), {}, EVERYTHING)
    assert raw.names == ("people", "under", "5-9-10", "over")
    assert detection is not None
    assert [one.key for one in detection.doubtful_settings] == ["header"]
    # a record whose missing values are words is still a record
    path.write_text("\n".join(["NA,NA,3,NA", *rows, ""]))
    assert len(read_as_imported(path)) == 61


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
@pytest.mark.parametrize("above", [[], ["Survey of 2024", ""], ["# made by a program"]])
def test_a_separator_at_the_end_of_the_names_or_of_the_rows_alone(tmp_path: Path, sign: str, above: list[str]) -> None:
    names, path = sign.join(TABLE), tmp_path / "ends.csv"
    for header, ending in ((names + sign, ""), (names, sign), (names + sign, sign)):
        path.write_text("\n".join([*above, header, *rows_of(sign, ending=ending), ""]))
        check_same_table(path)


def test_a_title_of_one_cell_above_two_columns_is_no_line_of_names(tmp_path: Path) -> None:
    path = tmp_path / "title.csv"
    path.write_text("\n".join(["Population by age", "age,n", *(f"{a},{a * 7 % 50}" for a in range(60)), ""]))
    assert list(read_as_imported(path)) == ["age", "n"]


def test_a_first_record_that_is_longer_or_shorter_stays_an_error_where_it_has_numbers(tmp_path: Path) -> None:
    for first in ("5,6", "5,6,7,8"):
        found = detect_text_format("\n".join([first, *(f"{i},{i + 1},{i + 2}" for i in range(40))]).encode())
        assert not found.format.header_cells


@pytest.mark.parametrize(
    "below",
    [
        ["How old are you?,Your sex,Your region,Income in euros"],
        ["How old are you?,Your sex,Where?,Income", '"{""Id"":1}","{""Id"":2}","{""Id"":3}","{""Id"":4}"'],
        ["years,,,euros"],
    ],
    ids=["questions", "questions and codes", "units"],
)
def test_lines_below_the_names_that_are_no_records(tmp_path: Path, below: list[str]) -> None:
    path = tmp_path / "survey.csv"
    path.write_text("\n".join([",".join(TABLE), *below, *rows_of(","), ""]))
    check_same_table(path)
    doubts = detect_text_format(path.read_bytes()).doubtful_settings
    assert [(d.key, d.value) for d in doubts] == [("skip_below", str(len(below)))]


@pytest.mark.parametrize("first", ["44,f,north,", "unknown,f,north,3000", ",,,", "NA,NA,NA,NA", "44,f,east,3000.5"])
def test_a_first_record_with_a_missing_or_a_new_value_is_a_record(tmp_path: Path, first: str) -> None:
    path = tmp_path / "survey.csv"
    path.write_text("\n".join([",".join(TABLE), first, *rows_of(","), ""]))
    assert len(read_as_imported(path)) == len(TABLE) + 1


@pytest.mark.parametrize(
    "footer",
    [
        ["Total,,,180000", "", "Source: office"],
        ["", "Source: office, 2024"],
        ["Insgesamt,,,180000"],
        ["* estimated", "** provisional"],
    ],
    ids=["total and source", "source", "total", "notes"],
)
@pytest.mark.parametrize("end", ["\n", ""])
def test_lines_below_the_table(tmp_path: Path, footer: list[str], end: str) -> None:
    path = tmp_path / "office.csv"
    path.write_text("\n".join([",".join(TABLE), *rows_of(","), *footer]) + end)
    check_same_table(path)
    _raw, detection = read_source(find_source(str(path)), {}, EVERYTHING)
    assert detection is not None
    assert detection.format.footer == len(footer)


def test_lines_below_a_long_table_are_found_although_it_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.csv"
    lines = rows_of(",") * 300
    path.write_text("\n".join([",".join(TABLE), *lines, "Total,,,1", "Source: office", ""]))
    monkeypatch.setattr("sfumato.workspace.ingest.sources.PIECE_BYTES", 1_000)
    assert len(read_as_imported(path)) == len(lines)


@pytest.mark.parametrize("piece", [1, 2, 7, 1000])
@pytest.mark.parametrize("count", [1, 2, 5, 50])
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_last_lines_are_dropped_however_the_bytes_come(piece: int, count: int, end: bytes) -> None:
    text = b"".join(b"line %d\n" % i for i in range(20)) + b"last" + end
    pieces = (text[i : i + piece] for i in range(0, len(text), piece))
    lines = text.splitlines(keepends=True)
    assert b"".join(text_streams._drop_last_lines(pieces, count)) == b"".join(lines[: max(0, len(lines) - count)])


@pytest.mark.parametrize("sign", ["\u2028", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
def test_signs_that_are_no_ends_of_lines_drop_no_record(tmp_path: Path, sign: str) -> None:
    """Python counts more signs as ends of lines than the parser does; the records that hold one must all stay."""
    lines = [line.replace("north", f'"no{sign}rth"') for line in rows_of(",")]
    path = tmp_path / "signs.csv"
    path.write_bytes("\n".join(["Survey", "", ",".join(TABLE), *lines, "Source: office", ""]).encode())
    found = read_as_imported(path)
    assert found["income"].tolist() == TABLE["income"].tolist()


@pytest.mark.parametrize("sign", ["\r", "\u2028"])
def test_last_lines_that_hold_other_signs_are_dropped_alone(sign: str) -> None:
    text = f"a\nb{sign}c\nd{sign}e\n".encode()
    assert b"".join(text_streams._drop_last_lines(iter([text]), 1)) == f"a\nb{sign}c\n".encode()


@pytest.mark.parametrize("word", ["total", "All", "Summe"])
def test_a_word_for_a_total_that_begins_several_rows_is_a_level(tmp_path: Path, word: str) -> None:
    path = tmp_path / "levels.csv"
    lines = [f"{word if i % 3 == 2 else 'part'},{line}" for i, line in enumerate(rows_of(","))]
    path.write_text("\n".join([",".join(["scope", *TABLE]), *lines, ""]))
    assert lines[-1].startswith(word)
    assert len(read_as_imported(path)) == len(TABLE["income"])


def test_a_last_line_that_no_parser_takes_is_no_footer(tmp_path: Path) -> None:
    """A cell of more characters than Python's parser takes is a cell like others, and ends in no traceback."""
    path = tmp_path / "long.csv"
    path.write_text("\n".join([",".join(TABLE), *rows_of(","), "a" * 200_000 + ",m,north,1", ""]))
    assert len(read_as_imported(path)) == len(TABLE["income"]) + 1


def test_a_quotation_mark_that_is_never_closed_is_looked_for_once() -> None:
    """The head of the file is not read to its end, and not again for each piece."""
    taken = []

    def pieces() -> Iterator[bytes]:
        yield b'names,"open\n'
        for number in range(200):
            taken.append(number)
            yield b"1,2\n" * 20_000

    with pytest.raises(BadInput, match="never closed"):
        next(text_streams._fix_header(pieces(), TextFormat(skip_below=1)))
    assert len(taken) < 150


def test_a_quotation_mark_below_the_names_that_is_never_closed_loses_no_rows() -> None:
    """The lines to leave out never end: the rows behind them are not left out in silence."""
    pieces = iter([b'names,open\n"question\n', *[b"1,2\n" * 20_000] * 100])
    with pytest.raises(BadInput, match="never closed"):
        list(text_streams._fix_header(pieces, TextFormat(skip_below=1)))


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_names_that_break_a_line_are_one_line_of_names(piece: int) -> None:
    text = b'"two\nlines",b\n"a\nquestion",?\n1,2\n3,4\n'
    pieces = (text[i : i + piece] for i in range(0, len(text), piece))
    form = TextFormat(skip_below=1, header_cells="first_missing")
    assert b"".join(text_streams._fix_header(pieces, form)) == b'row_names,"two\nlines",b\n1,2\n3,4\n'


def test_names_that_stand_twice_are_numbered_and_said(tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text("\n".join(["id,age,age,,age_2", *(f"{i},{i % 50},{i % 40},x,{i % 7}" for i in range(80)), ""]))
    raw, detection = read_source(find_source(str(path)), {}, EVERYTHING)
    assert raw.names == ("id", "age", "age_3", "column_4", "age_2")
    assert raw.notes == ('names that stand twice have a number: "age" is "age_3"',)
    assert detection is not None
    assert not detection.doubtful_settings
    assert any("stand twice" in note for note in import_file(tmp_path / "ws", str(path), "").notes)


def test_numbered_names_all_differ_whatever_stands_there() -> None:
    assert number_repeated_names(["a", "a", "a_2", "a", "", "column_5"]) == [
        "a",
        "a_3",
        "a_2",
        "a_4",
        "column_5",
        "column_5_2",
    ]


def test_the_keys_of_a_recipe_read_what_detection_finds(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("\n".join([",".join(TABLE), "a,b,c,d", *rows_of(",", index=True), "Source: office", ""]))
    form = TextFormat.from_table({"header_cells": "first_missing", "skip_below": 1, "footer": 1})
    frame = read_frame(find_source(str(path)), form=form)
    pd.testing.assert_frame_equal(frame[list(TABLE)], TABLE, check_dtype=False)
    assert TextFormat.from_table(form.to_table()) == form
    with pytest.raises(BadInput, match="no line of names"):
        TextFormat.from_table({"header": False, "skip_below": 1})
    with pytest.raises(BadInput, match="header_cells"):
        TextFormat.from_table({"header_cells": "two"})


def test_a_plain_file_is_read_as_before(tmp_path: Path) -> None:
    text = TABLE.to_csv(index=False)
    found = detect_text_format(text.encode(), tail=text.encode()[-500:])
    assert found.is_default
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(text)), TABLE, check_dtype=False)
