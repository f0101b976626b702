"""Streams of the bytes of a text file, converted to what the parser reads. Untrusted: the bytes.

The bytes become UTF-8 with line feeds, without a byte-order mark and without the lines before the table.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat

from .dialects import ROW_NAMES
from .sources import ByteSurvey, survey_bytes
from .text_files import (
    MAX_ROW_BYTES,
    comma_format,
    not_utf8_error,
    rewrite_fixed_widths,
    rewrite_with_commas,
    split_lines,
    wrong_encoding_error,
)

UNCLOSED_QUOTE = "a quotation mark in the first {lines} lines of its table is never closed; correct the file, or give another --quote"

Pieces = Callable[[], Iterator[bytes]]


class PieceStream:
    """File-like object that reads pieces of bytes from beginning to end."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        # bytes rather than text: pandas would encode the strings of a text file again
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most ``size``, none at the end; all that are left where it is negative."""
        if size < 0:
            left, self._rest = b"".join([self._rest, *self._pieces]), memoryview(b"")
            return left
        while not self._rest:
            found = next(self._pieces, None)
            if found is None:
                return b""
            self._rest = memoryview(found)
        some, self._rest = self._rest[:size], self._rest[size:]
        return bytes(some)

    def readable(self) -> bool:
        """Return True, as pyarrow asks of a file."""
        return True

    def close(self) -> None:
        """Mark the stream as closed."""
        self.closed = True


@dataclass(frozen=True)
class TableText:
    """Text of a table in UTF-8.

    pieces: yields the bytes from the beginning, each time it is called
    form: format that splits the text
    survey: properties of its bytes
    """

    pieces: Pieces
    form: TextFormat
    survey: ByteSurvey

    def open(self) -> PieceStream:
        """Open the bytes as a file."""
        return PieceStream(self.pieces())

    def first_lines(self, size: int) -> bytes:
        """Return as many whole lines from the beginning as ``size`` bytes hold, or ``size`` bytes of a longer line."""
        found = b""
        for piece in self.pieces():
            found += piece
            if len(found) >= size:
                return found[:size][: found[:size].rfind(b"\n") + 1] or found[:size]
        return found


def prepare_text(raw: Pieces, name: str, form: TextFormat, place: str, file_survey: ByteSurvey) -> TableText:
    """Return the text of a table, given the bytes of its file.

    Raises BadInput, also while the text is read where the bytes are not text in the declared encoding.
    """
    pieces, survey = raw, file_survey
    if codecs.lookup(form.encoding).name not in ("utf-8", "ascii"):
        pieces = lambda: _convert_to_utf8(raw(), form.encoding, name)  # noqa: E731
        survey = survey_bytes(pieces())
    elif not file_survey.is_utf8:
        raise not_utf8_error(name, place)
    if survey.has_null_bytes:
        raise BadInput(place, f'"{name}" is not a table that can be read: it holds bytes that no text has')
    steps: list[Callable[[Iterator[bytes]], Iterator[bytes]]] = [_remove_byte_order_mark]
    if not survey.has_line_feeds:
        # old Macintosh files end lines with a carriage return alone
        steps.append(lambda some: (piece.replace(b"\r", b"\n") for piece in some))
    if form.skip:
        steps.append(lambda some: _skip_lines(some, form.skip))
    if form.footer:
        steps.append(lambda some: _drop_last_lines(some, form.footer))
    if form.widths:
        steps.append(lambda some: rewrite_fixed_widths(split_lines(some), name, form))
    split_by = comma_format(form) if form.widths else form
    if form.header_cells or form.skip_below:
        steps.append(lambda some: _fix_header(some, split_by))
    if form.delimiter == " ":
        steps.append(lambda some: rewrite_with_commas(split_lines(some), name, form, place))

    def make_pieces() -> Iterator[bytes]:
        """Yield the converted bytes from the beginning."""
        found = pieces()
        for step in steps:
            found = step(found)
        return found

    if form.widths or form.delimiter == " ":
        # where a cell begins shows only now
        survey = survey_bytes(make_pieces())
    return TableText(make_pieces, comma_format(form) if form.delimiter == " " else split_by, survey)


def _convert_to_utf8(pieces: Iterator[bytes], encoding: str, name: str) -> Iterator[bytes]:
    """Yield bytes of an encoding as UTF-8. Raises BadInput where they are not text in it."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in pieces:
            yield decoder.decode(piece).encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError:
        raise wrong_encoding_error(name, encoding) from None


def _remove_byte_order_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield bytes without the byte-order mark of UTF-8."""
    first = b""
    for piece in pieces:
        # the mark may be cut between two pieces
        first += piece
        if len(first) >= len(codecs.BOM_UTF8):
            break
    yield first.removeprefix(codecs.BOM_UTF8)
    yield from pieces


def _skip_lines(pieces: Iterator[bytes], skip: int) -> Iterator[bytes]:
    """Yield bytes without the first ``skip`` lines."""
    left = skip
    for piece in pieces:
        rest = piece
        while left and rest:
            _, ended, rest = rest.partition(b"\n")
            left -= bool(ended)
        if not left and rest:
            yield rest


def _drop_last_lines(pieces: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Yield bytes without the last ``count`` lines."""
    kept = b""
    for piece in pieces:
        kept += piece
        # the last line may have no line feed, so one more line than is dropped has to wait
        end = len(kept)
        for _ in range(count + 1):
            end = kept.rfind(b"\n", 0, max(end, 0))
        if end > 0:
            yield kept[: end + 1]
            kept = kept[end + 1 :]
    # the steps before have made every end of a line a line feed; a carriage return within a line is part of a cell
    lines = kept.removesuffix(b"\n").split(b"\n")
    yield b"".join(line + b"\n" for line in lines[: max(0, len(lines) - count)])


def _fix_header(pieces: Iterator[bytes], form: TextFormat) -> Iterator[bytes]:
    """Yield bytes whose line of names has a name for each column, without the records below it that are none.

    Raises BadInput where these lines do not end within the most bytes of a row, as after a quotation mark that is never
    closed.
    """
    head, records, least = b"", [b""], 0
    for piece in pieces:
        head += piece
        # small pieces are not looked through again and again
        if len(head) < least:
            continue
        records, least = _first_records(head, form, 1 + form.skip_below), 2 * len(head)
        if len(records) > 1 + form.skip_below or len(head) > MAX_ROW_BYTES:
            break
    else:
        records = _first_records(head, form, 1 + form.skip_below)
    if len(records) <= 1 + form.skip_below and len(head) > MAX_ROW_BYTES:
        raise BadInput("file", UNCLOSED_QUOTE.format(lines=1 + form.skip_below))
    names, sign = records[0].rstrip(b"\r\n"), form.delimiter.encode()
    if form.header_cells == "first_missing":
        names = ROW_NAMES.encode() + sign + names
    elif form.header_cells == "last_missing":
        names += sign
    elif form.header_cells == "one_more":
        names = names.removesuffix(sign)
    yield names + b"\n"
    yield from records[1 + form.skip_below :]
    yield from pieces


def _first_records(head: bytes, form: TextFormat, count: int) -> list[bytes]:
    """Return the first ``count`` records of bytes, and the rest as last item; fewer where the bytes have fewer."""
    records: list[bytes] = []
    start, at, quote, is_open = 0, 0, form.quote.encode(), False
    while len(records) < count and (end := head.find(b"\n", at) + 1):
        # a line feed within quotes belongs to a cell
        is_open ^= bool(quote) and head.count(quote, at, end) % 2 == 1
        at = end
        if not is_open:
            records.append(head[start:at])
            start = at
    return [*records, head[start:]]
