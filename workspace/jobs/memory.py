"""How much memory tasks may have: what the machine, or the container that this runs in, has left, or what its user says."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from .settings import MEMORY, memory_given, parse_memory

SHARE = 0.8
"""Of the memory that is left, tasks get so much: estimates are estimates, and others work too."""
ALWAYS = 512_000_000
"""A task that needs no more is started wherever there is room for a process at all."""
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60
"""From here on a limit of a control group is none: version 1 says so by a number of this size."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Bytes that tasks may have together, None without a limit, and where that comes from, in words."""

    bytes: int | None
    said: str = ""
    fixed: bool = False
    """Whether somebody gave it: it does not change with what the machine has left."""

    def refuses(self, needed: int) -> bool:
        """Whether a task that needs so many bytes cannot be started, were it alone."""
        return self.bytes is not None and needed > max(self.bytes, ALWAYS)


def given_limit() -> MemoryLimit | None:
    """What somebody gave; None where nobody did. Raises BadInput."""
    given = memory_given()
    return MemoryLimit(parse_memory(given, MEMORY), "the limit that was given", fixed=True) if given else None


def memory_limit() -> MemoryLimit:
    """What tasks on this machine may have now. Raises BadInput where ``SFUMATO_MEMORY`` says nothing that can be read."""
    if (given := given_limit()) is not None:
        return given
    left = available()
    if left is None:
        return MemoryLimit(None)
    return MemoryLimit(int(SHARE * left), f"{SHARE:.0%} of what this machine has left")


def available() -> int | None:
    """Bytes that new processes can have here; None where the system does not say.

    The least of what the kernel says is available and what each control group above this process has left (versions 1 and 2 of them;
    what a group only caches counts as left). Without /proc, half of the machine's memory.
    """
    known = [found for found in (_available_here(), _left_in_groups()) if found is not None]
    if known:
        return min(known)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError):
        return None


def _available_here() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (PROC / "meminfo").read_text("utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _left_in_groups() -> int | None:
    """What the tightest control group of this process, or one above it, has left; None where none has a limit."""
    try:
        lines = (PROC / "self" / "cgroup").read_text("utf-8").splitlines()
    except OSError:
        return None
    left: list[int] = []
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
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
            if (found := _left_in(group, *names)) is not None:
                left.append(found)
    return min(left, default=None)


def _left_in(group: Path, limit: str, usage: str, cached: str) -> int | None:
    try:
        most = int((group / f"memory.{limit}").read_text("utf-8"))
        used = int((group / f"memory.{usage}").read_text("utf-8"))
    except (OSError, ValueError):  # no such group, or "max"
        return None
    if most >= UNLIMITED:
        return None
    with contextlib.suppress(OSError, ValueError):
        stat = dict(line.split() for line in (group / "memory.stat").read_text("utf-8").splitlines())
        used -= int(stat.get(cached, 0))
    return max(0, most - max(0, used))


def size_text(size: float) -> str:
    """``about 0.4 GB``; of more than 10 GB whole ones."""
    giga = size / 1e9
    return f"about {giga:.0f} GB" if giga >= 10 else f"about {giga:.1f} GB"
