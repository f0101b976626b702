"""Bytes of a Parquet file whose hash is known: the file is read once from beginning to end, and only what is asked for stays in memory.

What is hashed is what is parsed: the bytes that stay are those that went into the hash, whatever becomes of the file meanwhile.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

PIECE = 1 << 22
FOOTER = 1 << 16
"""How much the library reads at the end of a file before it knows how long the footer is."""

Span = tuple[int, int]


class HashingFile:
    """A file that is written from beginning to end, and the SHA-256 of what was."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._found = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The hash of what was written so far."""
        return self._found.hexdigest()

    @property
    def closed(self) -> bool:
        """Whether the file is."""
        return self._file.closed

    def write(self, content: Any) -> int:
        """Add to file and hash; how many bytes. Raises OSError."""
        self._found.update(content)
        return self._file.write(content)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._file.tell()

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._file.flush()

    def close(self) -> None:
        """Leave the file to whoever opened it."""


def same_hash(file: BufferedReader, sha256: str) -> bool:
    """Whether this is the hash of a file. Raises OSError."""
    return hashlib.file_digest(file, "sha256").hexdigest() == sha256


@dataclass(frozen=True)
class Part:
    """What is read of a Parquet file: the columns of these names (None: all), and the row groups that have some of these ``rows``, from 0 (None: all)."""

    columns: Collection[str] | None = None
    rows: Collection[int] | None = None

    def groups(self, found: pq.FileMetaData) -> list[int]:
        """The row groups in question."""
        if self.rows is None:
            return list(range(found.num_row_groups))
        holding = np.searchsorted(_ends(found), np.fromiter(self.rows, dtype=np.int64), side="right")
        return [int(i) for i in np.unique(holding) if i < found.num_row_groups]

    def held(self, found: pq.FileMetaData) -> NDArray[np.int64]:
        """All rows that the row groups in question have, from 0, ascending."""
        edges = [0, *_ends(found)]
        return np.concatenate(
            [np.zeros(0, dtype=np.int64), *(np.arange(edges[i], edges[i + 1]) for i in self.groups(found))]
        )


def _ends(found: pq.FileMetaData) -> NDArray[np.int64]:
    """Where each row group ends, in rows."""
    return np.cumsum([found.row_group(i).num_rows for i in range(found.num_row_groups)], dtype=np.int64)


WHOLE = Part()


def verified_parquet(file: BufferedReader, size: int, sha256: str, part: Part = WHOLE) -> pa.Buffer | None:
    """A Parquet file of so many bytes with this hash, as far as it is needed to read a part of it, zeros elsewhere; None where the hash is another.

    Zeros take no memory. Raises OSError.
    """
    spans = [(0, size)] if part == WHOLE else _spans(file, size, part)
    memory = mmap.mmap(-1, max(1, size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    found, at = hashlib.sha256(), 0
    for piece in _pieces(file):
        found.update(piece)
        for low, high in spans:
            begin, end = max(low, at), min(high, at + len(piece), size)
            if begin < end:
                memory[begin:end] = piece[begin - at : end - at]
        at += len(piece)
    if found.hexdigest() != sha256:
        return None
    buffer = pa.py_buffer(memory)[:size]
    return buffer if part == WHOLE or spans == _spans(pa.BufferReader(buffer), size, part) else None


def _pieces(file: BufferedReader) -> Iterator[memoryview]:
    """The bytes from the beginning, a piece at a time in the same memory."""
    file.seek(0)
    room = bytearray(PIECE)
    while length := file.readinto(room):
        yield memoryview(room)[:length]


def _spans(file: Any, size: int, part: Part) -> list[Span]:
    """From where to where a part and the footer lie; the whole file where it is none of plain columns."""
    file.seek(0)
    try:
        found = pq.read_metadata(file)
    except (pa.ArrowException, OSError):
        return [(0, size)]
    names = found.schema.to_arrow_schema().names
    if len(names) != found.num_columns:
        return [(0, size)]
    wanted = [i for i, name in enumerate(names) if part.columns is None or name in part.columns]
    footer = max(FOOTER, found.serialized_size + 8)
    spans = [(max(0, size - footer), size), (0, 4)]
    for group in part.groups(found):
        for i in wanted:
            chunk = found.row_group(group).column(i)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page:
                start = min(start, chunk.dictionary_page_offset)
            spans.append((start, start + chunk.total_compressed_size))
    return _joined(spans)


def _joined(spans: list[Span]) -> list[Span]:
    """The same bytes in as few spans as there can be, in order."""
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found
