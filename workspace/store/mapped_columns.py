"""Columns of long tables in files of the disk, mapped into memory: the system takes their memory back when it is short.

Whoever needs a whole column, in whatever order, needs no memory for those that are not used at the moment.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import weakref
from collections import deque
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.blocks import row_blocks
from sfumato.engine.data.row_buckets import OpenFile

MOST_MAPPED_BYTES = 128 << 20
"""Bytes of arrays in memory from which on they are given back."""
MOST_UNUSED_FILES = 8
"""Files of arrays that nobody uses any more, which are kept for the next ones."""


class _Room:
    """File with room for an array of ``size`` bytes, which is closed with the last who uses it."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        """Take all the room from the disk. Raises OSError where it has none."""
        self.file, self.size = file, size
        # a mapped file that the disk has no room for would end the process, so that all of it is taken now
        file.truncate(size)
        _reserve_room(file.fileno(), size)

    def __del__(self) -> None:
        self.file.close()


class MappedArrays:
    """Arrays in files without a name. The file of one that nobody uses any more is that of a later one, or gone."""

    def __init__(self, open_file: OpenFile) -> None:
        """Open no file yet; ``open_file`` opens one on the disk that is gone once it is closed."""
        self._open_file = open_file
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._maps_lock = Lock()  # columns are computed on several threads
        # The system makes the pages of a new file one by one, which takes longer than most columns take to be computed.
        self._unused: deque[_Room] = deque(maxlen=MOST_UNUSED_FILES)
        self._before = _mapped_bytes() or 0

    def new_array(self, rows: int, kind: np.dtype[Any]) -> NDArray[Any]:
        """Return an array of this type to be filled, (rows,). Raises OSError where the disk has no room."""
        size = max(1, rows * kind.itemsize)
        room = self._take_unused(size) or _Room(self._open_file(), size)
        found = mmap.mmap(room.file.fileno(), size)
        weakref.finalize(found, self._unused.append, room).atexit = False
        with self._maps_lock:
            self._maps.add(found)
        return np.frombuffer(found, dtype=kind, count=rows)

    def _take_unused(self, size: int) -> _Room | None:
        """Return an unused file with room for ``size`` bytes, and for no more than twice as many."""
        for _ in range(len(self._unused)):
            # Other threads take files too, and add some.
            with contextlib.suppress(IndexError):
                room = self._unused.popleft()
                if size <= room.size <= 2 * size:
                    return room
                self._unused.append(room)
        return None

    def map_array(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an array (n,) that lies on the disk. Raises OSError."""
        found = self.new_array(len(values), values.dtype)
        found[:] = values
        return found

    def release_pages(self) -> None:
        """Give the memory of all arrays back where it has become much; what is read of them again comes from the disk."""
        now = _mapped_bytes()
        if now is not None and now - self._before < MOST_MAPPED_BYTES:
            return
        with self._maps_lock:
            maps = list(self._maps)
        for one in maps:
            one.madvise(mmap.MADV_DONTNEED)


def _mapped_bytes() -> int | None:
    """Return the bytes of files that are mapped into this process and in memory; None where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[2]) * mmap.PAGESIZE
    except OSError:
        return None


def _reserve_room(handle: int, size: int) -> None:
    """Reserve the room of a file on the disk, where the system can. Raises OSError."""
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise


class GrowingColumn:
    """Column of n values on the disk that comes piece by piece, with a type that holds the values of all pieces."""

    def __init__(self, arrays: MappedArrays, rows: int) -> None:
        self._arrays, self._rows, self._filled = arrays, rows, 0
        self._values: NDArray[Any] | None = None

    def append_values(self, values: NDArray[Any]) -> None:
        """Append a piece (k,). Raises OSError, and ValueError where there are more values than rows."""
        if self._values is None:
            self._values = self._arrays.new_array(self._rows, values.dtype)
        kind = np.result_type(self._values.dtype, values.dtype)
        if kind != self._values.dtype:
            before, self._values = self._values, self._arrays.new_array(self._rows, kind)
            for rows in row_blocks(self._filled):
                self._values[rows] = before[rows]
                self._arrays.release_pages()
        self._values[self._filled : self._filled + len(values)] = values
        self._filled += len(values)

    @property
    def values(self) -> NDArray[Any]:
        """Return the values, (n,)."""
        assert self._values is not None
        assert self._filled == self._rows
        return self._values
