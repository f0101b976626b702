"""Limits of memory and time for reading a file: a small file may unpack to more than the memory of the machine.

Large files are not held in memory (``sources``). A filter has limits of its own and writes nothing to a disk.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.engine.errors import BadInput

MIN_READ_BYTES = 2 << 30
"""Memory in bytes that the reading of any file may take."""
READ_BYTES_PER_FILE_BYTE = 24
"""Memory that the reading of a file may take, as a multiple of its size."""
READ_MEMORY_SHARE = 0.75
"""Share of the machine's memory that no reading may exceed."""
FILTER_MEMORY_SHARE = 0.25
FILTER_SECONDS = 60.0
READ_SECONDS = 900.0
"""Seconds that the process that reads a file may take."""
MAX_COLUMNS = 5_000
LARGE_FILE_BYTES = 64 << 20
"""Size above which a file is not held in memory, or less on a small machine (LARGE_FILE_MEMORY_SHARE)."""
LARGE_FILE_MEMORY_SHARE = 0.1
COLUMN_BUFFER_SHARE = 1 / 24
"""Share of the memory for the columns that are read together, in addition to those that become records."""

_limit_lock = threading.Lock()


def machine_bytes() -> int:
    """Return the memory of the machine, in bytes; 4 GiB where it is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 4 << 30


def large_file_bytes() -> int:
    """Return the size above which a file is not held in memory, in bytes."""
    return int(min(LARGE_FILE_BYTES, LARGE_FILE_MEMORY_SHARE * machine_bytes()))


def column_buffer_bytes() -> int:
    """Return the memory for columns of a file that are read together, in bytes."""
    return int(COLUMN_BUFFER_SHARE * machine_bytes())


def allowed_read_bytes(file_bytes: int) -> int:
    """Return the memory that the reading of a file of this size may take, in bytes."""
    return int(min(READ_MEMORY_SHARE * machine_bytes(), max(MIN_READ_BYTES, READ_BYTES_PER_FILE_BYTE * file_bytes)))


@contextmanager
def bounded_memory(file_bytes: int, name: str, place: str) -> Iterator[None]:
    """Limit the growth of the process within the block to the file's ``allowed_read_bytes``.

    Raises BadInput where the block needs more.
    """
    allowed = allowed_read_bytes(file_bytes)
    try:
        # the limit is the process's: a second thread that set and restored it would undo the first one's
        with _limit_under_lock(allowed) if _limit_lock.acquire(blocking=False) else contextlib.nullcontext():
            yield
    except MemoryError:
        size = f"{allowed / (1 << 30):.1f} GiB"
        raise BadInput(
            place, f'"{name}" does not fit into {size} of memory once it is read; read a part of it'
        ) from None


@contextmanager
def _limit_under_lock(allowed: int) -> Iterator[None]:
    """Limit the memory of the process within the block and release ``_limit_lock`` afterwards."""
    try:
        with _limit_data_segment(allowed):
            yield
    finally:
        _limit_lock.release()


@contextmanager
def _limit_data_segment(allowed: int) -> Iterator[None]:
    """Limit the data segment of the process within the block, where the system can."""
    try:
        import resource

        before = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = _data_segment_bytes() + allowed
        # a soft limit above the hard one is refused
        if before[1] != resource.RLIM_INFINITY:
            wanted = min(wanted, before[1])
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, before[1]))
    except (ImportError, ValueError, OSError):
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, before)


def _data_segment_bytes() -> int:
    """Return the present size of this process's data segment by Linux's count. Raises OSError where it is unknown."""
    with open("/proc/self/status", encoding="utf-8") as status:  # noqa: PTH123  (no file of a user)
        line = next((line for line in status if line.startswith("VmData:")), "")
    if not line:
        raise OSError("VmData is not known")
    return int(line.split()[1]) << 10
