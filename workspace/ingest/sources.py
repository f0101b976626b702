"""Source files of any size: name, bytes, and properties of all bytes. Untrusted: the file."""

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

PIECE_BYTES = 1 << 22
SOURCE_HEAD_BYTES = 1 << 23
SOURCE_TAIL_BYTES = 1 << 16
MINUS_ZERO = re.compile(rb"-(?<![0-9A-Za-z]-)0+(?![0-9.eE])")
"""Bytes that may be a cell ``-0``."""
# the zero comes first, since a search for one byte is ten times as fast as one for what stands before it
LEADING_ZERO = re.compile(rb"0(?<![0-9A-Za-z.+:/-]0)(?<![0-9A-Za-z.] 0)[0-9]")
"""Bytes that may begin a cell such as ``01001``, but not another word of one, such as that of ``region 01``."""
OPEN_FILES_FOLDER = Path("/proc/self/fd")
"""Folder in which the system lists the files that a process has open."""


@dataclass(frozen=True, slots=True)
class ByteSurvey:
    """Properties of all bytes of a text, known before it is parsed.

    is_utf8: all are valid UTF-8
    is_ascii: all are ASCII
    has_null_bytes: some byte is 0
    has_line_feeds: some line ends with a line feed
    may_have_minus_zero: a cell may be ``-0``, which is 0 in a column of whole numbers and -0.0 in others
    may_have_leading_zeros: a cell may be a code such as ``01001``, which a number would not keep
    """

    is_utf8: bool = True
    is_ascii: bool = True
    has_null_bytes: bool = False
    has_line_feeds: bool = False
    may_have_minus_zero: bool = False
    may_have_leading_zeros: bool = False


@dataclass
class ByteScanner:
    """Scanner that surveys bytes given piece by piece, in order."""

    _decoder: Any = field(default_factory=codecs.getincrementaldecoder("utf-8"))
    _utf8: bool = True
    _plain: bool = True
    _zeros: bool = False
    _lines: bool = False
    _minus_zero: bool = False
    _leading_zero: bool = False
    _last: bytes = b""

    def scan_piece(self, piece: bytes) -> None:
        """Scan the next bytes."""
        plain = piece.isascii()
        self._plain &= plain
        # ASCII is valid UTF-8 unless a character is unfinished, so it need not be decoded
        if self._utf8 and not (plain and self._decoder.getstate()[0] == b""):
            self._decode(piece)
        self._zeros |= b"\0" in piece
        self._lines |= b"\n" in piece
        # With the last bytes before: a piece may end between the sign and the 0, and what stands before either decides
        # whether it begins a cell.
        joined, first = self._last + piece, max(0, len(self._last) - 1)
        self._minus_zero = self._minus_zero or MINUS_ZERO.search(joined, first) is not None
        self._leading_zero = self._leading_zero or LEADING_ZERO.search(joined, first) is not None
        self._last = joined[-3:]

    def _decode(self, piece: bytes, *, final: bool = False) -> None:
        """Decode a piece and note whether it is valid UTF-8."""
        try:
            self._decoder.decode(piece, final=final)
        except UnicodeDecodeError:
            self._utf8 = False

    def finish_survey(self) -> ByteSurvey:
        """Return the survey once all bytes have been scanned."""
        if self._utf8:
            self._decode(b"", final=True)
        return ByteSurvey(self._utf8, self._plain, self._zeros, self._lines, self._minus_zero, self._leading_zero)


def survey_bytes(pieces: Iterable[bytes]) -> ByteSurvey:
    """Return the survey of bytes given in pieces."""
    surveyor = ByteScanner()
    for piece in pieces:
        surveyor.scan_piece(piece)
    return surveyor.finish_survey()


class OpenedFile:
    """File that is opened once, so that all readers read the same file even if its name later refers to another."""

    def __init__(self, file: BufferedReader) -> None:
        self._file, self._stamp = file, _file_stamp(file)
        self.size = self._stamp[0]
        weakref.finalize(self, file.close)  # who reads the file no more closes it

    @property
    def path(self) -> Path:
        """Return the path at which the opened file can be read, if there is one."""
        return OPEN_FILES_FOLDER / str(self._file.fileno())

    def read_at(self, start: int, size: int) -> bytes:
        """Read at most ``size`` bytes from ``start``, independent of other readers."""
        # a position of its own, since several readers share the open file
        return os.pread(self._file.fileno(), size, start)

    @property
    def has_changed(self) -> bool:
        """Return whether the file has changed since it was opened."""
        return _file_stamp(self._file) != self._stamp


def _file_stamp(file: BufferedReader) -> tuple[int, ...]:
    """Return the size and the times of change of an open file."""
    found = os.fstat(file.fileno())
    # the time of the last status change cannot be set back, that of the last write can
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


@dataclass(frozen=True)
class SourceFile:
    """Name and bytes of a file; the bytes that are hashed are the bytes that are parsed.

    name: name of the file
    data: its bytes, or a large file that stays open and must not change
    """

    name: str
    data: bytes | OpenedFile

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return len(self.data) if isinstance(self.data, bytes) else self.data.size

    @property
    def content(self) -> bytes:
        """Return all bytes. Raises BadInput."""
        if isinstance(self.data, bytes):
            return self.data
        content = b"".join(self.iterate_pieces())
        self.check_unchanged()
        return content

    def iterate_pieces(self) -> Iterator[bytes]:
        """Yield the bytes from the beginning, at most PIECE_BYTES at a time."""
        at = 0
        while piece := self._read_at(at, PIECE_BYTES):
            yield piece
            at += len(piece)

    def _read_at(self, start: int, size: int) -> bytes:
        """Return at most ``size`` bytes from ``start``."""
        return self.data[start : start + size] if isinstance(self.data, bytes) else self.data.read_at(start, size)

    @property
    def head(self) -> bytes:
        """Return the bytes that decide how the file is read: all, or the whole lines among the first SOURCE_HEAD_BYTES."""
        head = self._read_at(0, SOURCE_HEAD_BYTES)
        return head if self.size <= len(head) else head[: head.rfind(b"\n") + 1] or head

    @property
    def tail(self) -> bytes:
        """Return the last bytes, at most SOURCE_TAIL_BYTES, from the beginning of a line."""
        start = max(0, self.size - SOURCE_TAIL_BYTES)
        tail = self._read_at(start, SOURCE_TAIL_BYTES)
        return tail[tail.find(b"\n") + 1 :] if start else tail

    @cached_property
    def _hash_and_survey(self) -> tuple[str, ByteSurvey]:
        """Return the SHA-256 of the bytes and their survey, found in one pass."""
        found, surveyor = hashlib.sha256(), ByteScanner()
        for piece in self.iterate_pieces():
            found.update(piece)
            surveyor.scan_piece(piece)
        self.check_unchanged()
        return found.hexdigest(), surveyor.finish_survey()

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the bytes, in hexadecimal."""
        return self._hash_and_survey[0]

    @property
    def survey(self) -> ByteSurvey:
        """Return the properties of all bytes."""
        return self._hash_and_survey[1]

    @property
    def text_class(self) -> str:
        """Return the class of the bytes: "ascii", "utf-8" or "other"."""
        return "ascii" if self.survey.is_ascii else "utf-8" if self.survey.is_utf8 else "other"

    def open_with_arrow(self) -> pa.NativeFile:
        """Open the bytes as a file of pyarrow. Raises OSError."""
        import pyarrow as pa

        return pa.BufferReader(self.data) if isinstance(self.data, bytes) else pa.OSFile(str(self.data.path))

    def check_unchanged(self) -> None:
        """Raise BadInput where the file has changed since it was opened."""
        if not isinstance(self.data, bytes) and self.data.has_changed:
            raise BadInput("data.file", f'"{self.name}" changed while it was read; read it again when it is written')
