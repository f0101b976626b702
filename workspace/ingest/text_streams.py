"""The bytes of a file of text as they stream by: in UTF-8, without what stands before the table, and what is to be known of all of them first.

The same bytes as ``text_files.read_text`` makes of the whole file, a piece at a time. Untrusted: the bytes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat

from .text_files import as_commas, in_commas, lines_apart, not_text_in, not_utf8

PIECE = 1 << 22
MINUS_ZERO = re.compile(rb"-(?<![0-9A-Za-z]-)0+(?![0-9.eE])")

Pieces = Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Survey:
    """What is to be known of all bytes before the first is read as a table.

    ``plain``: all are ASCII. ``lines``: a line ends with a line feed somewhere. ``minus_zero``: a cell may be ``-0``, which is another number where
    its column is read as whole ones than where it is not.
    """

    utf8: bool = True
    plain: bool = True
    zeros: bool = False
    lines: bool = False
    minus_zero: bool = False


@dataclass
class Surveyor:
    """Makes a ``Survey`` of the bytes that it is shown, in order; ``done`` after the last."""

    _decoder: Any = field(default_factory=codecs.getincrementaldecoder("utf-8"))
    _utf8: bool = True
    _plain: bool = True
    _zeros: bool = False
    _lines: bool = False
    _minus_zero: bool = False
    _last: bytes = b""

    def see(self, piece: bytes) -> None:
        """Look at the next bytes."""
        plain = piece.isascii()
        self._plain &= plain
        if self._utf8 and not (plain and self._decoder.getstate()[0] == b""):
            self._decode(piece)
        self._zeros |= b"\0" in piece
        self._lines |= b"\n" in piece
        self._minus_zero = self._minus_zero or MINUS_ZERO.search(self._last + piece) is not None
        self._last = piece[-1:] or self._last

    def _decode(self, piece: bytes, *, final: bool = False) -> None:
        try:
            self._decoder.decode(piece, final=final)
        except UnicodeDecodeError:
            self._utf8 = False

    def done(self) -> Survey:
        if self._utf8:
            self._decode(b"", final=True)
        return Survey(self._utf8, self._plain, self._zeros, self._lines, self._minus_zero)


def surveyed(pieces: Iterable[bytes]) -> Survey:
    """What is to be known of these bytes."""
    surveyor = Surveyor()
    for piece in pieces:
        surveyor.see(piece)
    return surveyor.done()


class PieceStream:
    """Pieces of bytes as a file that is read from beginning to end. Nothing of Python's own, which pandas would decode and encode again."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size``, none at the end; all that are left where it is negative."""
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
        return True

    def close(self) -> None:
        self.closed = True


@dataclass(frozen=True)
class TableText:
    """The text of a table in UTF-8: ``pieces`` begins from its beginning again; ``form`` splits it."""

    pieces: Pieces
    form: TextFormat
    survey: Survey

    def open(self) -> PieceStream:
        """The bytes as a file."""
        return PieceStream(self.pieces())

    def head(self, size: int) -> bytes:
        """The first bytes, as many whole lines as ``size`` holds where it holds one."""
        found = b""
        for piece in self.pieces():
            found += piece
            if len(found) >= size:
                return found[:size][: found[:size].rfind(b"\n") + 1] or found[:size]
        return found


def table_text(raw: Pieces, name: str, form: TextFormat, place: str, seen: Survey) -> TableText:
    """The text of a table whose file has these bytes, of which ``seen`` was seen. Raises BadInput, later too where the bytes are no text."""
    pieces, survey = raw, seen
    if codecs.lookup(form.encoding).name not in ("utf-8", "ascii"):
        pieces = lambda: _in_utf8(raw(), form.encoding, name)  # noqa: E731
        survey = surveyed(pieces())
    elif not seen.utf8:
        raise not_utf8(name, place)
    if survey.zeros:
        raise BadInput(place, f'"{name}" is not a table that can be read: it holds bytes that no text has')
    steps: list[Callable[[Iterator[bytes]], Iterator[bytes]]] = [_without_mark]
    if not survey.lines:
        steps.append(lambda some: (piece.replace(b"\r", b"\n") for piece in some))
    if form.skip:
        steps.append(lambda some: _without_lines(some, form.skip))
    if form.delimiter == " ":
        steps.append(lambda some: in_commas(lines_apart(some), name, form, place))

    def made() -> Iterator[bytes]:
        found = pieces()
        for step in steps:
            found = step(found)
        return found

    return TableText(made, as_commas(form) if form.delimiter == " " else form, survey)


def _in_utf8(pieces: Iterator[bytes], encoding: str, name: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in pieces:
            yield decoder.decode(piece).encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError:
        raise not_text_in(name, encoding) from None


def _without_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    first = b""
    for piece in pieces:
        first += piece
        if len(first) >= len(codecs.BOM_UTF8):
            break
    yield first.removeprefix(codecs.BOM_UTF8)
    yield from pieces


def _without_lines(pieces: Iterator[bytes], skip: int) -> Iterator[bytes]:
    """Without so many lines before the table."""
    left = skip
    for piece in pieces:
        rest = piece
        while left and rest:
            _, ended, rest = rest.partition(b"\n")
            left -= bool(ended)
        if not left and rest:
            yield rest
