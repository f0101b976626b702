"""Rows of numbers that are put into buckets block by block, and read bucket by bucket.

They are in a file that the caller opens, so that memory is needed for a bucket and not for a table.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import IO

import numpy as np

from .arrays import Floats, Integers

OpenFile = Callable[[], IO[bytes]]
"""Opens an empty file for rows, which is gone once it is closed."""
BUCKET_ROWS = 1 << 20
"""Rows of a bucket, on average."""


def stack_columns(*columns: Floats | Integers) -> Floats:
    """Return columns (n,) of numbers side by side as rows, (n, width)."""
    found = np.empty((len(columns[0]), len(columns)))
    for place, column in enumerate(columns):
        found[:, place] = column
    return found


class RowBuckets:
    """Rows of as many numbers each, in buckets."""

    def __init__(self, open_file: OpenFile = io.BytesIO) -> None:
        """Open the file that keeps them, by default in memory."""
        self.open_file = open_file
        self._file = open_file()
        self._pieces: dict[int, list[tuple[int, int]]] = {}
        self._width = 0

    def put_rows(self, bucket: Integers, *columns: Floats | Integers) -> None:
        """Put rows, columns (n,) each, into their buckets (n,); a bucket keeps them in the order in which they came."""
        self.put_stacked(bucket, stack_columns(*columns))

    def put_stacked(self, bucket: Integers, rows: Floats, first: float | None = None) -> None:
        """Put rows (n, width) into their buckets (n,), as ``put_rows`` does; ``first`` replaces their first column."""
        self._width = rows.shape[1]
        # NumPy sorts numbers of 16 bits by radix, several times faster.
        order = np.argsort(bucket.astype(np.min_scalar_type(int(bucket.max(initial=0)))), kind="stable")
        chosen = rows.take(order, axis=0)
        if first is not None:
            chosen[:, 0] = first
        sizes = np.bincount(bucket)
        ends, place = np.cumsum(sizes), self._file.seek(0, io.SEEK_END)
        for own in np.flatnonzero(sizes).tolist():
            self._pieces.setdefault(own, []).append((place, int(sizes[own])))
            place += self._file.write(chosen[ends[own] - sizes[own] : ends[own]].data)

    def read_bucket(self, bucket: int) -> BucketRows:
        """Return the rows of a bucket."""
        return BucketRows(self, bucket)

    def close(self) -> None:
        """Close the file; the rows are gone then."""
        self._file.close()

    def count_rows(self, bucket: int) -> int:
        """Count the rows of a bucket."""
        return sum(rows for _, rows in self._pieces.get(bucket, ()))

    def iterate_rows(self, bucket: int, most: int) -> Iterator[Floats]:
        """Yield the rows of a bucket, (k, width) each, together as many pieces as have at most ``most`` rows, at least one."""
        together, rows = list[tuple[int, int]](), 0
        for start, number in self._pieces.get(bucket, ()):
            if together and rows + number > most:
                yield self._read_pieces(together, rows)
                together, rows = [], 0
            together.append((start, number))
            rows += number
        if together:
            yield self._read_pieces(together, rows)

    def _read_pieces(self, pieces: list[tuple[int, int]], rows: int) -> Floats:
        """Return the rows of some pieces, (rows, width)."""
        found, first = np.empty((rows, self._width)), 0
        for start, number in pieces:
            self._file.seek(start)
            self._file.readinto(found[first : first + number].data.cast("B"))  # type: ignore[attr-defined]
            first += number
        return found


class BucketRows:
    """Rows of one bucket, which can be read again and again.

    buckets: all buckets
    number: number of this one
    """

    def __init__(self, buckets: RowBuckets, bucket: int) -> None:
        """Read a bucket of some."""
        self.buckets, self.number = buckets, bucket

    def __len__(self) -> int:
        return self.buckets.count_rows(self.number)

    def iterate_rows(self, most: int) -> Iterator[Floats]:
        """Yield the rows, (k, width) each, at most ``most`` at a time or those of one block."""
        return self.buckets.iterate_rows(self.number, most)

    def read_rows(self) -> Floats:
        """Return all rows, (k, width)."""
        found = list(self.iterate_rows(max(1, len(self))))
        return found[0] if found else np.empty((0, self.buckets._width))
