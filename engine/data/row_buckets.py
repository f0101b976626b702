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
        self._file = open_file()
        self._pieces: dict[int, list[tuple[int, int]]] = {}
        self._width = 0

    def put_rows(self, bucket: Integers, *columns: Floats | Integers) -> None:
        """Put rows, columns (n,) each, into their buckets (n,); a bucket keeps them in the order in which they came."""
        order = np.argsort(bucket, kind="stable")
        self._width = len(columns)
        ends = np.searchsorted(bucket[order], np.arange(int(bucket.max(initial=-1)) + 2))
        for own in np.flatnonzero(np.diff(ends)).tolist():
            chosen = order[ends[own] : ends[own + 1]]
            self._pieces.setdefault(own, []).append((self._file.seek(0, io.SEEK_END), len(chosen)))
            self._file.write(stack_columns(*(column[chosen] for column in columns)).tobytes())

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
        held, rows = list[Floats](), 0
        for start, number in self._pieces.get(bucket, ()):
            if held and rows + number > most:
                yield np.concatenate(held)
                held, rows = [], 0
            self._file.seek(start)
            content = self._file.read(8 * self._width * number)
            held.append(np.frombuffer(content, dtype=np.float64).reshape(number, self._width))
            rows += number
        if held:
            yield np.concatenate(held)


class BucketRows:
    """Rows of one bucket, which can be read again and again."""

    def __init__(self, buckets: RowBuckets, bucket: int) -> None:
        """Read a bucket of some."""
        self._buckets, self._bucket = buckets, bucket

    def __len__(self) -> int:
        return self._buckets.count_rows(self._bucket)

    def iterate_rows(self, most: int) -> Iterator[Floats]:
        """Yield the rows, (k, width) each, at most ``most`` at a time or those of one block."""
        return self._buckets.iterate_rows(self._bucket, most)

    def read_rows(self) -> Floats:
        """Return all rows, (k, width)."""
        found = list(self.iterate_rows(max(1, len(self))))
        return found[0] if found else np.empty((0, self._buckets._width))
