"""A file of any size: its name, its bytes, and what is to be known of all of them. Untrusted: the file."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = 1 << 22
HEAD_BYTES = 1 << 23
MINUS_ZERO = re.compile(rb"-(?<![0-9A-Za-z]-)0+(?![0-9.eE])")
OPENED = Path("/proc/self/fd")
"""Where the system names the files that a process has open."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is to be known of all bytes of a text before the first is read as a table.

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


class OpenedFile:
    """A plain file that was opened once: whoever reads it reads what is opened, whatever its name says then."""

    def __init__(self, file: BufferedReader) -> None:
        self._file, self._stamp = file, _stamp(file)
        self.size = self._stamp[0]
        weakref.finalize(self, file.close)  # who reads the file no more closes it

    @property
    def path(self) -> Path:
        """Where what is opened can be read, if there is such a place."""
        return OPENED / str(self._file.fileno())

    def at(self, start: int, size: int) -> bytes:
        """At most so many bytes from ``start``, wherever another reader is."""
        return os.pread(self._file.fileno(), size, start)

    @property
    def changed(self) -> bool:
        return _stamp(self._file) != self._stamp


def _stamp(file: BufferedReader) -> tuple[int, ...]:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


@dataclass(frozen=True)
class Source:
    """A file's name and bytes, so that what is hashed is what is parsed: in memory, or in a large file that stays open and must not change."""

    name: str
    held: bytes | OpenedFile

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.held) if isinstance(self.held, bytes) else self.held.size

    @property
    def content(self) -> bytes:
        """All of its bytes. Raises BadInput."""
        if isinstance(self.held, bytes):
            return self.held
        content = b"".join(self.pieces())
        self.check_unchanged()
        return content

    def pieces(self) -> Iterator[bytes]:
        """The bytes from the beginning, some at a time."""
        at = 0
        while piece := self._at(at, PIECE):
            yield piece
            at += len(piece)

    def _at(self, start: int, size: int) -> bytes:
        return self.held[start : start + size] if isinstance(self.held, bytes) else self.held.at(start, size)

    @property
    def head(self) -> bytes:
        """The bytes by which it is known how to read the file: all of them, of more than ``HEAD_BYTES`` the whole lines among the first."""
        head = self._at(0, HEAD_BYTES)
        return head if self.size <= len(head) else head[: head.rfind(b"\n") + 1] or head

    @cached_property
    def _passed(self) -> tuple[str, Survey]:
        found, surveyor = hashlib.sha256(), Surveyor()
        for piece in self.pieces():
            found.update(piece)
            surveyor.see(piece)
        self.check_unchanged()
        return found.hexdigest(), surveyor.done()

    @property
    def sha256(self) -> str:
        """The hash of the bytes."""
        return self._passed[0]

    @property
    def survey(self) -> Survey:
        """What is to be known of all of the bytes."""
        return self._passed[1]

    @property
    def whole(self) -> str:
        """What all of the bytes are: "ascii", "utf-8" or "other"."""
        return "ascii" if self.survey.plain else "utf-8" if self.survey.utf8 else "other"

    def opened(self) -> pa.NativeFile:
        """The bytes as a file of Arrow's. Raises OSError."""
        import pyarrow as pa

        return pa.BufferReader(self.held) if isinstance(self.held, bytes) else pa.OSFile(str(self.held.path))

    def check_unchanged(self) -> None:
        """Hold that the file is the one that was opened. Raises BadInput."""
        if not isinstance(self.held, bytes) and self.held.changed:
            raise BadInput("data.file", f'"{self.name}" changed while it was read; read it again when it is written')
