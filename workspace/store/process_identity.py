"""Identity of processes, by host and start time, to know whether one is still running."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def host_identity() -> str:
    """Return the identity of the machine since it was started, and of its space of process numbers: a container has one of its own."""
    return " ".join(
        (platform.node(), _read_proc_file("/proc/sys/kernel/random/boot_id"), _read_proc_link("/proc/self/ns/pid"))
    )


def process_start(pid: int) -> str:
    """Return when a process was started, in clock ticks since the machine was; empty when it is gone or cannot be seen."""
    fields = _read_proc_file(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""


def has_ended(pid: int, on_host: str, birth: str) -> bool:
    """Return whether a process of this host has certainly ended; False when that cannot be determined."""
    if on_host != host_identity():
        return False
    if birth:
        return process_start(pid) != birth
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _read_proc_file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return ""


def _read_proc_link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
