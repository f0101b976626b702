"""No core dump of a process that holds the key or the data: a dump would carry both outside the workspace.

A dump is switched off twice. A limit of 0 bytes stops files, but the kernel ignores it where a program receives the dump
(``|`` in core_pattern). A process that is not dumpable has no dump anywhere. Both end at ``exec``, or may be inherited, so each
process calls ``forbid_core_dumps`` for itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
from pathlib import Path

PR_SET_DUMPABLE = 4
_CLEAR_REFS = Path("/proc/self/clear_refs")
_kept: dict[int, int] = {}
"""By process: ``clear_refs``, opened while the process still owned it."""


def forbid_core_dumps() -> None:
    """Switch core dumps off for this process, for good. Without effect where the system has no such switch."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not sys.platform.startswith("linux") or os.getpid() in _kept:
        return
    _kept[os.getpid()] = _opened_clear_refs()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _opened_clear_refs() -> int:
    """A process that is not dumpable no longer owns its files in /proc: this one is opened before, or -1."""
    try:
        return os.open(_CLEAR_REFS, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def clear_refs(what: bytes) -> None:
    """Write to ``/proc/self/clear_refs``. Raises OSError where there is none, or it cannot be written."""
    handle = _kept.get(os.getpid(), -1)
    if handle >= 0:
        os.write(handle, what)
    else:
        _CLEAR_REFS.write_bytes(what)
