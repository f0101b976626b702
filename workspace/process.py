"""Settings of this process alone: no core dump, and the same memory reused for one large array after another.

A core dump would carry the key and the data outside the workspace, so dumps are switched off twice. A limit of 0 bytes stops files, but
the kernel ignores it where a program receives the dump (``|`` in core_pattern). A process that is not dumpable has no dump anywhere. Both
end at ``exec``, or may be inherited, so each process calls ``forbid_core_dumps`` for itself.

glibc gives the memory of a large array back to the system at once when freed, and the next one is filled with fresh pages of zeros. For
computations on millions of records that is a fifth of the time. Inside ``reused_memory`` freed memory stays with the process; at the end
all of it goes back. Only the main thread's arrays profit: other threads have arenas of their own, whose large arrays are mapped one by one.

How it could mislead: memory that is free in the process counts as resident while the block lasts, so that peaks include it. A stranger
    gains
nothing: no one reads freed memory. It costs what a trim takes, under a millisecond for a small heap.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

PR_SET_DUMPABLE = 4
_CLEAR_REFS = Path("/proc/self/clear_refs")
_kept: dict[int, int] = {}
"""By process: ``write_clear_refs``, opened while the process still owned it."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
MALLOC_KEEPING_MEMORY = {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: -1}
"""No array is mapped on its own, and no free memory is given back."""
MALLOC_KEEPING_BLOCKS = {M_MMAP_THRESHOLD: 32 << 20, M_TRIM_THRESHOLD: -1}
"""As much as the blocks of a long table take stays; the memory of a larger array is given back."""
MALLOC_DEFAULTS = {M_MMAP_MAX: 65_536, M_MMAP_THRESHOLD: 128 * 1024, M_TRIM_THRESHOLD: 128 * 1024}
"""mallopt(3)."""
_lock = threading.Lock()
_blocks: list[int] = []
"""One entry for each block that runs now."""


def forbid_core_dumps() -> None:
    """Switch core dumps off for this process, for good. Without effect where the system has no such switch."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not sys.platform.startswith("linux") or os.getpid() in _kept:
        return
    _kept[os.getpid()] = _open_clear_refs()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _open_clear_refs() -> int:
    """Open ``write_clear_refs`` and return its handle, or -1: a process that is not dumpable no longer owns its files in /proc."""
    try:
        return os.open(_CLEAR_REFS, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def write_clear_refs(what: bytes) -> None:
    """Write to ``/proc/self/write_clear_refs``. Raises OSError where the file does not exist or cannot be written."""
    handle = _kept.get(os.getpid(), -1)
    if handle >= 0:
        os.write(handle, what)
    else:
        _CLEAR_REFS.write_bytes(what)


@contextlib.contextmanager
def reused_memory(*, of_blocks: bool = False) -> Iterator[None]:
    """Keep freed memory for the next array until the last of the blocks that run at a time ends. Without effect where the system's C library is not glibc.

    With ``of_blocks`` only that of arrays as long as a block of a long table is kept.
    """
    libc = _glibc()
    if libc is None:
        yield
        return
    with _lock:
        _blocks.append(1)
        _set_malloc_options(libc, MALLOC_KEEPING_BLOCKS if of_blocks else MALLOC_KEEPING_MEMORY)
    try:
        yield
    finally:
        with _lock:
            _blocks.pop()
            if not _blocks:
                _set_malloc_options(libc, MALLOC_DEFAULTS)
                libc.malloc_trim(ctypes.c_size_t(0))


def _set_malloc_options(libc: ctypes.CDLL, options: dict[int, int]) -> None:
    for option, value in options.items():
        libc.mallopt(option, value)


@lru_cache(maxsize=1)
def _glibc() -> ctypes.CDLL | None:
    import platform

    if not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc":
        return None
    return ctypes.CDLL(None)
