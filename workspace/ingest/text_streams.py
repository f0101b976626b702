"""The bytes of a file of text as they stream by: in UTF-8, with the ends of lines that pandas knows, without what stands before the table.

Untrusted: the bytes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.text_format import TextFormat

from .sources import Survey, surveyed
from .text_files import as_commas, in_commas, lines_apart, not_text_in, not_utf8

Pieces = Callable[[], Iterator[bytes]]


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
