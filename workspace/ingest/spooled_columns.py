"""Columns of a long file on disk while it is imported, so that memory holds some of their rows.

They lie in one file without a name, which the system removes with the process, whatever ends it. It lies on the disk of
the workspace, where the records will be.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engine.data.distinct_values import NO_VALUE_CODE
from sfumato.engine.errors import BadInput

BUCKET_ROWS = 1 << 20
"""Values whose distinct ones are counted at a time."""
MOST_BUCKETS = 1 << 15
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: Knuth (1998), The Art of Computer Programming 3, section 6.4."""


@dataclass(frozen=True, slots=True)
class SpoolPlace:
    """Where the columns of a long file lie while it is read.

    folder: folder on whose disk they lie
    rows: number of records above which a file is long
    """

    folder: Path
    rows: int


class SpoolFile:
    """File without a name to which arrays are appended. ``place`` is the recipe key at which an error is reported."""

    def __init__(self, folder: Path, place: str) -> None:
        self._place, self._end = place, 0
        try:
            # closed by finalize, since several columns share it
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._disk_error(error) from None
        weakref.finalize(self, self._file.close)

    def append_array(self, values: NDArray[Any]) -> int:
        """Append the bytes of an array, and return where they begin. Raises BadInput where the disk is full."""
        start, rest = self._end, np.ascontiguousarray(values).view(np.uint8).data
        try:
            while rest:
                written = os.pwrite(self._file.fileno(), rest, self._end)
                self._end, rest = self._end + written, rest[written:]
        except OSError as error:
            raise self._disk_error(error) from None
        return start

    def read_array(self, start: int, rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return ``rows`` values of a type that begin at byte ``start``, (rows,)."""
        found = np.empty(rows, dtype=dtype)
        rest = found.view(np.uint8).data if rows else memoryview(b"")
        while rest:
            rest, start = rest[(got := os.preadv(self._file.fileno(), [rest], start)) :], start + got
        return found

    def _disk_error(self, error: OSError) -> BadInput:
        """Return the error for a disk that cannot be written to."""
        return BadInput(
            self._place,
            f"the disk of the workspace cannot hold the columns while the file is read ({os.strerror(error.errno or 0)}); "
            "make room there, or choose a workspace on another disk",
        )


@dataclass(frozen=True, slots=True)
class SpooledPiece:
    """Some rows of a column on disk.

    rows: their number
    dtype: their type
    start: where their bytes begin; -1 where no row has a value, and none are stored
    """

    rows: int
    dtype: np.dtype[Any]
    start: int


@dataclass(eq=False)
class SpooledParts:
    """Column of numbers or codes on disk.

    spool: where it lies
    pieces: its pieces, in the order of the rows
    lowest: least number or code, 0 where none is below
    """

    spool: SpoolFile
    pieces: list[SpooledPiece] = field(default_factory=list)
    lowest: int = 0

    def __len__(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type that holds the values of all pieces."""
        return np.result_type(*{piece.dtype for piece in self.pieces}) if self.pieces else np.dtype(np.float64)

    def append_piece(self, values: NDArray[Any]) -> None:
        """Append the next rows (n,)."""
        self.pieces.append(SpooledPiece(len(values), values.dtype, self.spool.append_array(values)))
        if len(values) and values.dtype.kind in "iu":
            self.lowest = min(self.lowest, int(values.min()))

    def append_missing(self, rows: int, dtype: np.dtype[Any]) -> None:
        """Append rows without a value."""
        self.pieces.append(SpooledPiece(rows, dtype, -1))
        self.lowest = min(self.lowest, NO_VALUE_CODE)

    def read_rows(self, first: int, last: int, missing: float = np.nan) -> NDArray[Any]:
        """Return the rows from ``first`` to before ``last``, (last - first,); ``missing`` where no value is stored."""
        found: list[NDArray[Any]] = []
        at = 0
        for piece in self.pieces:
            low, high = max(first, at), min(last, at + piece.rows)
            if low < high and piece.start < 0:
                kind = np.dtype(np.float64) if np.isnan(missing) else np.dtype(np.int8)
                found.append(np.full(high - low, missing, dtype=kind))
            elif low < high:
                begin = piece.start + (low - at) * piece.dtype.itemsize
                found.append(self.spool.read_array(begin, high - low, piece.dtype))
            at += piece.rows
        return np.concatenate(found) if len(found) > 1 else found[0] if found else np.empty(0, dtype=self.dtype)


class GrowingTexts:
    """Distinct texts of the blocks of a column, in order of appearance."""

    def __init__(self) -> None:
        self.texts: pa.Array = pa.array([], pa.large_string())

    def place_texts(self, texts: pa.Array) -> NDArray[np.int64]:
        """Return the place of each of some distinct texts (k,) among all so far, to which new ones are added."""
        texts = texts.cast(pa.large_string())
        found = pc.index_in(texts, value_set=self.texts)
        places: NDArray[np.int64] = found.fill_null(NO_VALUE_CODE).to_numpy(zero_copy_only=False).astype(np.int64)
        new = places < 0
        if new.any():
            places[new] = len(self.texts) + np.arange(int(new.sum()))
            self.texts = pa.concat_arrays([self.texts, texts.filter(pa.array(new))])
        return places


@dataclass(frozen=True, eq=False)
class SpooledColumn:
    """Column of a long file on disk.

    parts: its numbers, or codes of ``values``
    as_series: makes the values of some rows of them
    values: distinct values (k,), some of which may be equal or missing; None for a column of numbers
    """

    parts: SpooledParts
    as_series: Callable[[NDArray[Any]], pd.Series]
    values: pd.Series | None = None

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def n_bytes(self) -> int:
        """Return the memory of the column in bytes: that of its distinct values."""
        return 0 if self.values is None else int(self.values.memory_usage(index=False, deep=True))

    def read_numbers(self, first: int, last: int) -> NDArray[Any]:
        """Return the numbers or codes of the rows from ``first`` to before ``last``."""
        return self.parts.read_rows(first, last, np.nan if self.values is None else NO_VALUE_CODE)

    def read_series(self, first: int, last: int) -> pd.Series:
        """Return the values of the rows from ``first`` to before ``last``, as the whole column has them."""
        return self.as_series(self.read_numbers(first, last))

    def iterate_series(self, rows: int) -> Iterator[pd.Series]:
        """Yield the values, at most ``rows`` at a time."""
        for first in range(0, len(self), rows):
            yield self.read_series(first, min(len(self), first + rows))


def column_of_numbers(parts: SpooledParts, dtype: np.dtype[Any] | None = None) -> SpooledColumn:
    """Return the column whose numbers, converted to a type, are ``parts``; to that of all its pieces for None."""
    kind = parts.dtype if dtype is None else dtype
    return SpooledColumn(parts, lambda numbers: pd.Series(numbers.astype(kind, copy=False)))


def count_distinct_numbers(column: SpooledColumn) -> int:
    """Return how many different numbers a column of numbers has, without the missing ones.

    They are written to the disk by the hash of their bits, so that only those with some hashes are compared at a time.
    """
    parts, records = column.parts, len(column)
    n_buckets = min(MOST_BUCKETS, -(-records // BUCKET_ROWS))
    segments: list[list[tuple[int, int]]] = [[] for _ in range(n_buckets)]
    for first in range(0, records, BUCKET_ROWS):
        bits = _bits_of_numbers(column.read_series(first, min(records, first + BUCKET_ROWS)).to_numpy())
        # 16 bits are sorted by counting
        bucket = (((bits * HASH_FACTOR) >> np.uint64(32)) % np.uint64(n_buckets)).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        edges = np.searchsorted(bucket[order], np.arange(n_buckets + 1))
        start = parts.spool.append_array(bits[order])
        for i in range(n_buckets):
            if edges[i + 1] > edges[i]:
                segments[i].append((start + 8 * int(edges[i]), int(edges[i + 1] - edges[i])))
    kind = np.dtype(np.uint64)
    found = 0
    for own in segments:
        if own:
            rising = np.concatenate([parts.spool.read_array(start, rows, kind) for start, rows in own])
            rising.sort()
            found += 1 + int(np.count_nonzero(rising[1:] != rising[:-1]))
    return found


def _bits_of_numbers(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the bits of the numbers that are not missing, (m,), equal where these are equal."""
    if numbers.dtype.kind == "f":
        wide = numbers.astype(np.float64)
        # adding 0 makes -0.0 the 0.0 that it equals
        return (wide[~np.isnan(wide)] + 0.0).view(np.uint64)
    if numbers.dtype.kind == "M":
        return np.asarray(numbers[~np.isnat(numbers)].view(np.uint64))
    return np.asarray(numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64).view(np.uint64))
