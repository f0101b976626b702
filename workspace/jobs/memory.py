"""The memory that a task has needed at its peak."""

from __future__ import annotations

import contextlib
import resource
import sys
from pathlib import Path

__all__ = ["forget_peak", "peak_bytes"]

RESET_PEAK = "5"
"""Written to ``clear_refs``, sets the peak to what is in use now (proc_pid_clear_refs(5))."""


def forget_peak() -> None:
    """Let ``peak_bytes`` count from now on, where the system can: Linux, with /proc."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)


def peak_bytes() -> int:
    """The most memory that was resident since ``forget_peak``; without /proc, in this process's life."""
    try:
        status = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
