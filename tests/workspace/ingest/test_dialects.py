"""How files write their tables is found with its reasons, or asked about; never wrong without a doubt."""

from __future__ import annotations

import csv
import io
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat
from sfumato.workspace.ingest.dialects import _decode_sample, detect_text_format
from sfumato.workspace.ingest.files import SourceFile, read_frame, text_head
from sfumato.workspace.ingest.number_signs import parse_number

NAMES = ("name", "town", "born", "age", "income", "share")
TOWNS = ("Zürich", "Kraków", "Malmö", "São Paulo", "Orléans", "Łódź")


def people(n: int = 60) -> list[tuple[str, str, str, int, float, float]]:
    rng = random.Random(4)
    return [
        (
            f"person {i}",
            TOWNS[rng.randrange(4)],
            f"{rng.randrange(1940, 2010)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
            rng.randrange(18, 90),
            round(rng.uniform(1_000, 3_000_000), 2),
            round(rng.uniform(0, 1), 3),
        )
        for i in range(n)
    ]


@dataclass(frozen=True)
class Dialect:
    """A way to write the people; ``doubted`` are the keys that the file does not settle."""

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    quote: str = '"'
    encoding: str = "utf-8"
    header: bool = True
    end: str = "\n"
    always: bool = False
    before: str = ""
    gap: str = ""
    missing: str = ""
    doubted: tuple[str, ...] = ()
    towns: dict[str, str] = field(default_factory=dict)

    def csv_bytes(self) -> bytes:
        out = io.StringIO(newline="")
        quoting = csv.QUOTE_ALL if self.always else csv.QUOTE_MINIMAL
        separator = self.delimiter
        writer = csv.writer(out, delimiter=separator, quotechar=self.quote, quoting=quoting, lineterminator="\n")
        if self.header:
            writer.writerow(NAMES)
        for i, (name, town, born, age, income, share) in enumerate(people()):
            row = [name, self.towns.get(town, town), born, str(age), self.number(income, 2), self.number(share, 3)]
            if self.missing and i % 7 == 3:
                row[3] = row[1] = self.missing
            writer.writerow(row)
        text = out.getvalue()
        if self.gap:
            text = text.replace(separator, separator + self.gap)
        return (self.before + text).replace("\n", self.end).encode(self.encoding)

    def number(self, value: float, digits: int) -> str:
        text = f"{value:,.{digits}f}" if self.thousands else f"{value:.{digits}f}"
        return text.translate({ord(","): self.thousands, ord("."): self.decimal})

    def expected(self) -> pd.DataFrame:
        names = NAMES if self.header else [f"column_{i + 1}" for i in range(6)]
        rows: list[list[Any]] = [list(row) for row in people()]
        for i, row in enumerate(rows):
            row[1] = self.towns.get(row[1], row[1])
            if self.missing and i % 7 == 3:
                row[3] = row[1] = None
        return pd.DataFrame(rows, columns=list(names))


PLAIN = {"Zürich": "Zurich", "Kraków": "Krakow", "Malmö": "Malmo", "São Paulo": "Sao Paulo"}
WEST = {"Kraków": "Cádiz"}
EIGHT = ("encoding",)
DIALECTS = {
    "comma": Dialect(),
    "comma, every cell quoted": Dialect(always=True),
    "comma, CRLF": Dialect(end="\r\n"),
    "comma, old Macintosh": Dialect(end="\r"),
    "comma, UTF-8 with a mark": Dialect(encoding="utf-8-sig"),
    "comma, thousands with commas, quoted": Dialect(thousands=","),
    "comma, decimal comma, quoted": Dialect(decimal=","),
    "comma, points of thousands, decimal comma": Dialect(decimal=",", thousands="."),
    "comma and blank": Dialect(gap=" "),
    "comma, no header": Dialect(header=False),
    "semicolon": Dialect(";"),
    "semicolon, decimal comma": Dialect(";", ","),
    "semicolon, decimal comma, points of thousands": Dialect(";", ",", "."),
    "semicolon, decimal comma, blanks of thousands": Dialect(";", ",", " "),
    "semicolon, decimal comma, narrow blanks": Dialect(";", ",", "\u202f"),
    "semicolon, Swiss apostrophes": Dialect(";", ".", "'"),
    "semicolon, no header, decimal comma": Dialect(";", ",", header=False),
    "semicolon, Excel's first line": Dialect(";", ",", before="sep=;\n"),
    "semicolon, a title above": Dialect(";", before="People of our towns\nas of 2024\n\n"),
    "semicolon, a spreadsheet's title": Dialect(";", ",", before="People of our towns;;;;;\n;;;;;\n"),
    "semicolon, Windows": Dialect(";", ",", encoding="windows-1252", end="\r\n", towns=WEST, doubted=EIGHT),
    "semicolon, Windows of Central Europe": Dialect(
        ";", ",", encoding="windows-1250", towns={"São Paulo": "Łódź"}, doubted=EIGHT
    ),
    "semicolon, DOS": Dialect(";", encoding="cp850", towns=WEST, doubted=EIGHT),
    "semicolon, apostrophes around cells": Dialect(";", quote="'", always=True),
    "tab": Dialect("\t"),
    "tab, decimal comma": Dialect("\t", ","),
    "tab, UTF-16 of Excel": Dialect("\t", ",", encoding="utf-16", end="\r\n"),
    "tab, UTF-16 without a mark": Dialect("\t", encoding="utf-16-le"),
    "bar": Dialect("|"),
    "bar, thousands": Dialect("|", ".", ","),
    "bar, decimal comma": Dialect("|", ","),
    "blanks": Dialect(" ", towns=PLAIN, always=True),
    "comma, ? for missing": Dialect(missing="?"),
    "semicolon, NA for missing": Dialect(";", ",", missing="NA", doubted=("missing",)),
    "tab, points for missing": Dialect("\t", missing="."),
    "comma, plain ASCII, N/A": Dialect(towns=PLAIN, missing="N/A", doubted=("missing",)),
}


def test_a_semicolon_goes_before_a_bar_where_both_split_alike_and_it_is_asked() -> None:
    found = detect_text_format("".join(f"{i};{i + 1}|{i + 2};{i + 3}|x\n" for i in range(20)).encode())
    assert found.format.delimiter == ";"
    assert "delimiter" in {reason.key for reason in found.doubtful_settings}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_found_or_asked_about(name: str) -> None:
    dialect = DIALECTS[name]
    content = dialect.csv_bytes()
    found = detect_text_format(content)
    assert {reason.key for reason in found.doubtful_settings} <= set(dialect.doubted)
    assert all(reason.explanation for reason in found.reasons)
    form = found.format
    if form.encoding != dialect.encoding and "encoding" in dialect.doubted:
        asked = next(reason for reason in found.doubtful_settings if reason.key == "encoding")
        assert dialect.encoding in asked.alternatives
        form = TextFormat.from_table({**form.to_table(), "encoding": dialect.encoding})
    elif dialect.missing == ".":
        form = TextFormat.from_table({**form.to_table(), "missing": ["."]})
    frame = read_frame(SourceFile("people.csv", content), form=form)
    expected = dialect.expected()
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    if not dialect.missing:
        assert list(map(str, frame.dtypes.iloc[3:])) == ["int64", "float64", "float64"]


@pytest.mark.slow
def test_what_is_found_survives_a_recipe() -> None:
    for dialect in DIALECTS.values():
        form = detect_text_format(dialect.csv_bytes()).format
        assert TextFormat.from_table(form.to_table()) == form


@pytest.mark.parametrize(
    ("lines", "key", "others"),
    [
        ('place,visits\nx,"1,234"\ny,"2,345"\n', "decimal", {"."}),
        ("town,state\nAlbany,NY\nBuffalo,NY\n", "header", {"no"}),
        ("a;b\nGhana;GH\nNamibia;NA\n", "missing", {'"NA" may be a value'}),
    ],
)
def test_what_a_file_does_not_settle_is_asked(lines: str, key: str, others: set[str]) -> None:
    doubt = next(reason for reason in detect_text_format(lines.encode()).doubtful_settings if reason.key == key)
    assert others <= set(doubt.alternatives)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("1,2\n3,4\n5,6\n", {"header": True}),
        ("a;b\n1,5;2\n2,5;3\n", {"decimal": "."}),
        ("a;b\n1.234,5;2\n2.345,5;3\n", {"thousands": ""}),
        ("title;;\na;b;c\n1;2;3\n4;5;6\n", {"skip": 0}),
        ("a, b\n1, 2\n3, 4\n", {"trim": False}),
        ("a;b\n?;2\n2;3\n", {"missing": []}),
        ("a;b\nZ\u00fcrich;2\n".encode("windows-1252").decode("latin-1"), {"encoding": "utf-8"}),
    ],
)
def test_what_the_owner_says_holds_though_it_is_what_holds_by_default(lines: str, said: dict[str, Any]) -> None:
    content = lines.encode("latin-1")
    ((key, value),) = said.items()
    assert detect_text_format(content).format.to_table().get(key) is not None, "the file shows something else"
    found = detect_text_format(content, said)
    assert getattr(found.format, key) == (tuple(value) if isinstance(value, list) else value)
    assert not found.is_default
    assert not any(reason.is_doubtful for reason in found.reasons if reason.key == key)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
def test_the_head_of_a_long_file_has_no_broken_character(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "long.csv"
    path.write_bytes("\n".join(["town;age", *(f"Zürich {i};{i % 90}" for i in range(40_000))]).encode(encoding))
    found = detect_text_format(text_head(path))
    assert found.format.delimiter == ";"
    assert found.header == ("town", "age")
    assert "\ufffd" not in _decode_sample(text_head(path), found.format.encoding)


def test_codes_made_of_nines_far_from_the_rest_are_pointed_at_and_not_taken() -> None:
    rows = [f"{20 + i % 50};{i * 3 % 90}" for i in range(80)]
    rows[5], rows[9] = "999;4", "-9;5"
    found = detect_text_format("\n".join(["age;visits", *rows]).encode())
    doubt = next(reason for reason in found.doubtful_settings if reason.key == "missing")
    assert any("in age may be a code" in other for other in doubt.alternatives)
    assert not found.format.missing
    calm = detect_text_format("\n".join(["age;visits", *(f"{20 + i};{i}" for i in range(80))]).encode())
    assert not calm.doubtful_settings


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00\x01\x02", b"a", b'"', b'a,b\n"c', b"\xff\xfe", b",,,\n,,,\n"])
def test_whatever_the_bytes_are_something_is_said(content: bytes) -> None:
    assert detect_text_format(content).reasons


@given(st.binary(max_size=300))
def test_no_bytes_end_in_an_error(content: bytes) -> None:
    found = detect_text_format(content)
    assert TextFormat.from_table(found.format.to_table()) == found.format


@pytest.mark.parametrize(
    ("text", "signs", "value"),
    [
        ("1,234.50", (".", ","), 1234.5),
        ("1.234,50", (",", "."), 1234.5),
        ("1 234,5", (",", " "), 1234.5),
        ("1\u202f234", (".", " "), 1234.0),
        ("1'234", (".", "'"), 1234.0),
        ("-,5", (",", ""), -0.5),
        ("5.", (".", ""), 5.0),
        ("1e3", (".", ""), 1000.0),
        ("12,34.5", (".", ","), None),
        ("1.2.3", (",", "."), None),
        ("1.5", (",", "."), None),
        ("", (".", ""), None),
        ("e5", (".", ""), None),
        (".", (".", ""), None),
        ("12 a", (".", " "), None),
    ],
)
def test_numbers_are_read_by_their_signs_and_nothing_else_is_one(
    text: str, signs: tuple[str, str], value: float | None
) -> None:
    assert parse_number(text, *signs) == value


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ({"delimiter": "ab"}, "data.format.delimiter"),
        ({"encoding": "klingon"}, "data.format.encoding"),
        ({"encoding": "rot13"}, "data.format.encoding"),
        ({"encoding": "base64"}, "data.format.encoding"),
        ({"decimal": ",", "quote": ""}, "data.format.decimal"),
        ({"delimiter": ";", "decimal": ",", "thousands": ","}, "data.format.thousands"),
        ({"header": 1}, "data.format.header"),
        ({"skip": -1}, "data.format.skip"),
        ({"missing": "NA"}, "data.format.missing"),
        ({"separator": ";"}, "data.format.separator"),
        (";", "data.format"),
    ],
)
def test_a_format_that_cannot_be_is_refused_at_its_key(table: object, place: str) -> None:
    with pytest.raises(BadInput) as caught:
        TextFormat.from_table(table)
    assert caught.value.place == place


def test_a_file_in_another_encoding_than_said_is_refused() -> None:
    content = "a;b\nZürich;1\n".encode("windows-1252")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_frame(SourceFile("x.csv", content), form=TextFormat(delimiter=";"))
    with pytest.raises(BadInput, match="not text in windows-1252"):
        read_frame(SourceFile("x.csv", b"a;b\n\x81;1\n"), form=TextFormat(delimiter=";", encoding="windows-1252"))
