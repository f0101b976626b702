"""Whether a process that signed on is still there: its host, and when it was started."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def host() -> str:
    """The machine since it was started, and its space of process numbers: a container has one of its own."""
    return " ".join((platform.node(), _read("/proc/sys/kernel/random/boot_id"), _link("/proc/self/ns/pid")))


def birth_of(pid: int) -> str:
    """When a process was started, in clock ticks since the machine was; empty when it is gone or cannot be seen."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""


def gone(pid: int, on_host: str, birth: str) -> bool:
    """Whether a process of this host has certainly ended; False when there is no way to tell."""
    if on_host != host():
        return False
    if birth:
        return birth_of(pid) != birth
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
