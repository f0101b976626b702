"""Bytes that stream by are those of the whole text, wherever one piece ends and the next begins."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat
from sfumato.workspace.ingest.sources import ByteScanner, survey_bytes
from sfumato.workspace.ingest.text_files import (
    comma_format,
    not_utf8_error,
    rewrite_with_commas,
    split_lines,
    wrong_encoding_error,
)
from sfumato.workspace.ingest.text_streams import PieceStream, prepare_text

SIGNS = st.sampled_from(["a", "1", "-0", "-", "0", "é", "€", "𝄞", ",", " ", "\t", "\n", "\r", "\r\n", '"', ".", "e"])
TEXTS = st.lists(SIGNS, max_size=40).map("".join)
FORMATS = [
    *[TextFormat(), TextFormat("utf-16"), TextFormat("utf-16-le"), TextFormat("utf-32"), TextFormat("latin-1")],
    *[TextFormat(skip=1), TextFormat("utf-16", skip=2), TextFormat(delimiter=" "), TextFormat(delimiter=" ", skip=1)],
]


def whole(content: bytes, form: TextFormat) -> bytes:
    """The same in memory, step by step."""
    try:
        text = content.decode(form.encoding).removeprefix("\ufeff")
        found = (text if "\n" in text else text.replace("\r", "\n")).encode()
    except UnicodeError:
        raise (
            not_utf8_error("f", "p") if form.encoding == "utf-8" else wrong_encoding_error("f", form.encoding)
        ) from None
    if form.skip:
        found = b"\n".join(found.split(b"\n")[form.skip :])
    if form.delimiter == " ":
        found = b"".join(rewrite_with_commas(io.StringIO(found.decode(), newline="\n"), "f", form, "p"))
    return found


@given(TEXTS, st.sampled_from(FORMATS), st.integers(1, 9), st.booleans())
def test_pieces_of_any_length_make_the_same_text(text: str, form: TextFormat, piece: int, mark: bool) -> None:
    if form.encoding == "latin-1":
        text = text.encode("latin-1", "ignore").decode("latin-1")
    content = (("\ufeff" if mark and form.encoding == "utf-8" else "") + text).encode(form.encoding)

    def pieces() -> Iterator[bytes]:
        return (content[i : i + piece] for i in range(0, len(content), piece))

    expected: bytes | str
    try:
        expected = whole(content, form)
    except BadInput as error:
        expected = str(error)
    found: bytes | str
    try:
        made = prepare_text(pieces, "f", form, "p", survey_bytes(pieces()))
        found = made.open().read()
        assert found == b"".join(iter(lambda: opened.read(3), b"")) if (opened := made.open()) else True
        assert found.startswith(made.first_lines(5))
        assert made.form == (comma_format(form) if form.delimiter == " " else form)
    except BadInput as error:
        found = str(error)
    assert found == expected


@given(TEXTS, st.integers(1, 5))
def test_a_survey_sees_what_the_whole_has(text: str, piece: int) -> None:
    content = text.encode()
    found = survey_bytes(content[i : i + piece] for i in range(0, len(content), piece))
    assert (found.is_utf8, found.is_ascii, found.has_line_feeds) == (True, text.isascii(), "\n" in text)
    if survey_bytes([content]).may_have_minus_zero:
        assert found.may_have_minus_zero


@pytest.mark.parametrize("cell", ["-0", "-00", '"-0"', " -0 ", "-0\n", "x,-0,y"])
def test_a_minus_zero_is_seen_wherever_it_is_cut(cell: str) -> None:
    content = f"a,b\n1,{cell}".encode()
    for cut in range(len(content) + 1):
        assert survey_bytes([content[:cut], content[cut:]]).may_have_minus_zero


@pytest.mark.parametrize("text", ["-0.5", "1-0", "2024-01-02", "-01", "-0e3", "a-0", "0"])
def test_other_numbers_are_no_minus_zero(text: str) -> None:
    assert not survey_bytes([f"a,{text},b\n".encode()]).may_have_minus_zero


@pytest.mark.parametrize("content", [b"\xe9", b"a\xc3", b"a\xc3\n", b"\xed\xa0\x80"])
def test_what_is_not_utf8_is_known_wherever_it_is_cut(content: bytes) -> None:
    for cut in range(len(content) + 1):
        assert not survey_bytes([content[:cut], content[cut:]]).is_utf8
    assert survey_bytes(["é".encode()[:1], "é".encode()[1:]]).is_utf8, "the control"


def test_bytes_that_no_text_has_are_refused_after_they_were_decoded() -> None:
    with pytest.raises(BadInput, match="bytes that no text has"):
        prepare_text(lambda: iter([b"a,b\n1,\0\n"]), "f", TextFormat(), "p", survey_bytes([b"a,b\n1,\0\n"]))
    wide = "a,b\n1,2\n".encode("utf-16-le")
    survey = survey_bytes([wide])
    assert survey.has_null_bytes
    assert prepare_text(lambda: iter([wide]), "f", TextFormat("utf-16-le"), "p", survey).open().read() == b"a,b\n1,2\n"


def test_lines_are_apart_only_where_a_line_feed_is() -> None:
    text = "a\rb\n\x0bc\u2028d\n\ne"
    assert list(split_lines([text.encode()[:9], text.encode()[9:]])) == ["a\rb\n", "\x0bc\u2028d\n", "\n", "e"]


def test_a_stream_is_read_in_bits_of_any_size() -> None:
    assert PieceStream([b"ab", b"", b"cde"]).read(4) == b"ab"
    stream = PieceStream([b"ab", b"", b"cde"])
    assert [stream.read(1), stream.read(), stream.read(5)] == [b"a", b"bcde", b""]
    assert ByteScanner().finish_survey().is_utf8


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n105,10\n", "x,1.05,2\n", "2020-10-05,1\n", "x,01,2\n", "0123\n", "a,b\n0\n05,1\n", "region 01,2\n",
        "x, 01,2\n", "x 1 01,y 02\n",
    ],
)  # fmt: skip
def test_a_leading_zero_is_one_wherever_pieces_end(text: str) -> None:
    """A zero at the end of a piece has what stands before it, so that 105 cut in two begins with none."""
    content = text.encode()
    whole = survey_bytes([content]).may_have_leading_zeros
    assert whole == any(cell.strip().startswith("0") and len(cell) > 1 for cell in text.replace("\n", ",").split(","))
    for first in range(len(content)):
        for second in range(first, len(content)):
            pieces = [content[:first], content[first:second], content[second:]]
            assert survey_bytes(pieces).may_have_leading_zeros == whole


def test_a_code_after_a_blank_begins_a_cell_where_blanks_separate_cells() -> None:
    content = b"area code\na 01\nb 02\n"
    survey = survey_bytes([content])
    assert not prepare_text(lambda: iter([content]), "f", TextFormat(), "p", survey).survey.may_have_leading_zeros
    apart = prepare_text(lambda: iter([content]), "f", TextFormat(delimiter=" "), "p", survey)
    assert apart.survey.may_have_leading_zeros
