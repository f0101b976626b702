"""How much memory and time the reading of a file may take: a small file may hold what does not fit into the machine.

A file may take 24 times its size, and 2 GiB in any case, but never more than three quarters of the machine's memory; one larger than 64 MiB, or a
tenth of the memory, is not held in memory (``sources``). A filter may take a minute and a quarter of the memory, and writes nothing to a disk.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.engine.errors import BadInput

LEAST_BYTES = 2 << 30
TIMES_ITS_SIZE = 24
SHARE = 0.75
FILTER_SHARE = 0.25
FILTER_SECONDS = 60.0
READ_SECONDS = 900.0
"""How long the process that reads a file may take."""
MOST_COLUMNS = 5_000
LARGE_BYTES = 64 << 20
LARGE_SHARE = 0.1
AT_ONCE_SHARE = 1 / 24
"""Of the memory: what the columns may take that are gathered at once, beside those that become records."""

_alone = threading.Lock()


def machine_bytes() -> int:
    """The memory of the machine; 4 GiB where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 4 << 30


def large_bytes() -> int:
    """A larger file is not held in memory."""
    return int(min(LARGE_BYTES, LARGE_SHARE * machine_bytes()))


def at_once_bytes() -> int:
    """How much the columns of a file may take that are gathered at once."""
    return int(AT_ONCE_SHARE * machine_bytes())


def bytes_for(file_bytes: int) -> int:
    """How much memory the reading of a file of this size may take."""
    return int(min(SHARE * machine_bytes(), max(LEAST_BYTES, TIMES_ITS_SIZE * file_bytes)))


@contextmanager
def bounded_memory(file_bytes: int, name: str, place: str) -> Iterator[None]:
    """Within the block the process may not grow by more than ``bytes_for`` the file. Raises BadInput where that does not suffice."""
    allowed = bytes_for(file_bytes)
    try:
        with _limited(allowed) if _alone.acquire(blocking=False) else contextlib.nullcontext():
            yield
    except MemoryError:
        size = f"{allowed / (1 << 30):.1f} GiB"
        raise BadInput(
            place, f'"{name}" does not fit into {size} of memory once it is read; read a part of it'
        ) from None


@contextmanager
def _limited(allowed: int) -> Iterator[None]:
    """Whoever comes here holds ``_alone``: the limit is the process's, not the thread's."""
    try:
        with _soft_limit(allowed):
            yield
    finally:
        _alone.release()


@contextmanager
def _soft_limit(allowed: int) -> Iterator[None]:
    try:
        import resource

        before = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = _data_bytes() + allowed
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


def _data_bytes() -> int:
    """What this process holds now, by Linux's count. Raises OSError where there is none."""
    with open("/proc/self/status", encoding="utf-8") as status:  # noqa: PTH123  (no file of a user)
        line = next((line for line in status if line.startswith("VmData:")), "")
    if not line:
        raise OSError("VmData is not known")
    return int(line.split()[1]) << 10
