"""Memory limit of tasks: what the machine, or the container, has left, or what the user sets."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from .settings import MEMORY_VARIABLE, memory_setting, parse_memory

FREE_MEMORY_SHARE = 0.8
"""Share of the free memory that tasks get: estimates are uncertain, and other programs need memory too."""
ALWAYS_ALLOWED_BYTES = 512_000_000
"""A task that needs no more is started wherever there is room for a process at all."""
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
UNLIMITED_FROM = 1 << 60
"""From here on a limit of a control group means no limit: version 1 writes such a large number instead."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Limit of the memory of tasks.

    max_bytes: bytes that tasks may have together, None without a limit
    source_text: where the limit comes from, in words
    is_fixed: a user gave it, so it does not change with what the machine has left
    """

    max_bytes: int | None
    source_text: str = ""
    is_fixed: bool = False
    """Whether somebody gave it: it does not change with what the machine has left."""

    def refuses(self, needed: int) -> bool:
        """Return whether a task that needs this many bytes cannot run even alone."""
        return self.max_bytes is not None and needed > max(self.max_bytes, ALWAYS_ALLOWED_BYTES)


def user_memory_limit() -> MemoryLimit | None:
    """Return the limit that the user set; None where none is set. Raises BadInput."""
    given = memory_setting()
    return (
        MemoryLimit(parse_memory(given, MEMORY_VARIABLE), "the limit that was given", is_fixed=True) if given else None
    )


def local_memory_limit() -> MemoryLimit:
    """Return the present memory limit of tasks on this machine. Raises BadInput where ``SFUMATO_MEMORY`` cannot be
    parsed.
    """
    if (given := user_memory_limit()) is not None:
        return given
    left = available_bytes()
    if left is None:
        return MemoryLimit(None)
    return MemoryLimit(int(FREE_MEMORY_SHARE * left), f"{FREE_MEMORY_SHARE:.0%} of the free memory of this machine")


def available_bytes() -> int | None:
    """Return the bytes that new processes can have on this machine; None where the system does not tell.

    This is the least of the kernel's available memory and of what is left in each control group of this process.
    Without /proc it is half of the machine's memory.
    """
    known = [found for found in (_kernel_available_bytes(), _bytes_left_in_groups()) if found is not None]
    if known:
        return min(known)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError):
        return None


def _kernel_available_bytes() -> int | None:
    """Return the kernel's estimate of available memory; None without /proc."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (PROC / "meminfo").read_text("utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _bytes_left_in_groups() -> int | None:
    """Return the least memory left in the control groups of this process and those above; None where none has a limit."""
    try:
        lines = (PROC / "self" / "cgroup").read_text("utf-8").splitlines()
    except OSError:
        return None
    left: list[int] = []
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        # Version 1 has a hierarchy for each controller, version 2 one with an empty list of controllers.
        first = "memory" in controllers.split(",")
        if not (first or controllers == ""):
            continue
        names = (
            ("limit_in_bytes", "usage_in_bytes", "total_inactive_file")
            if first
            else ("max", "current", "inactive_file")
        )
        mount = CGROUPS / "memory" if first else CGROUPS
        own = mount / path.lstrip("/")
        for group in (own, *own.parents):
            if not group.is_relative_to(mount):
                break
            if (found := _bytes_left_in_group(group, *names)) is not None:
                left.append(found)
    return min(left, default=None)


def _bytes_left_in_group(group: Path, limit: str, usage: str, cached: str) -> int | None:
    """Return the memory left in a control group, of version 1 or 2; None without a limit."""
    try:
        most = int((group / f"memory.{limit}").read_text("utf-8"))
        used = int((group / f"memory.{usage}").read_text("utf-8"))
    except (OSError, ValueError):  # no such group, or "max"
        return None
    if most >= UNLIMITED_FROM:
        return None
    with contextlib.suppress(OSError, ValueError):
        stat = dict(line.split() for line in (group / "memory.stat").read_text("utf-8").splitlines())
        # Cached file contents are counted as used and given back on demand.
        used -= int(stat.get(cached, 0))
    return max(0, most - max(0, used))


def memory_text(size: float) -> str:
    """Format a number of bytes in GB, with one decimal below 10: ``about 0.4 GB``."""
    giga = size / 1e9
    return f"about {giga:.0f} GB" if giga >= 10 else f"about {giga:.1f} GB"
