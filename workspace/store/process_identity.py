"""Identity of processes, by host and start time, to know whether one is still running."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def host_identity() -> str:
    """Return the identity of the machine since its start, and of its namespace of process numbers."""
    return " ".join(
        # Process numbers mean something in one namespace and until the next boot: a container has one of its own.
        (platform.node(), _read_proc_file("/proc/sys/kernel/random/boot_id"), _read_proc_link("/proc/self/ns/pid"))
    )


def process_start(pid: int) -> str:
    """Return the start of a process in clock ticks since the boot; empty when it has ended or cannot be seen."""
    # The name of the program is in parentheses and may contain spaces and parentheses itself.
    fields = _read_proc_file(f"/proc/{pid}/stat").rpartition(")")[2].split()
    # A zombie has ended, though its number is still taken.
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""


def has_ended(pid: int, on_host: str, birth: str) -> bool:
    """Return whether a process has certainly ended; False when that cannot be determined."""
    if on_host != host_identity():
        return False
    if birth:
        # The number may have been given to another process since.
        return process_start(pid) != birth
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _read_proc_file(path: str) -> str:
    """Return the text of a file of /proc; empty where it cannot be read."""
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return ""


def _read_proc_link(path: str) -> str:
    """Return the target of a link of /proc; empty where it cannot be read."""
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
