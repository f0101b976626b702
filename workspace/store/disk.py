"""The disk under a workspace: how much a run needs of it, and what its refusals mean."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import WorkspaceError

if TYPE_CHECKING:
    from sfumato.engine.data.microdata import Microdata
    from sfumato.engine.recipe.recipe import Recipe

ALWAYS_BYTES = 32 << 20
RECORD_BYTES = 40
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
CLOSED = {errno.EROFS, errno.EACCES, errno.EPERM}
NO_SPACE = "the workspace's disk is full, or a quota on it is used up; free some space, then resume the run"
NO_RIGHT = "the workspace cannot be written: it is read-only here, or belongs to somebody else"
BAD_DISK = "the workspace's disk reports an input/output error, or is full; look at it with sfumato doctor"
DISK_ERRORS: Mapping[int, str] = {73: NO_SPACE, 74: BAD_DISK, 77: NO_RIGHT}
"""Exit statuses of a worker that its disk has stopped (sysexits.h), and what they mean: its log cannot say it then."""
_DATABASE = {
    sqlite3.SQLITE_FULL: NO_SPACE,
    sqlite3.SQLITE_READONLY: NO_RIGHT,
    sqlite3.SQLITE_CANTOPEN: NO_RIGHT,
    sqlite3.SQLITE_PERM: NO_RIGHT,
    sqlite3.SQLITE_IOERR: BAD_DISK,
}


class NotEnoughDisk(WorkspaceError):
    """The disk has less free space than a run may need."""


def bytes_needed(recipe: Recipe, data: Microdata) -> int:
    """An upper estimate of what a run leaves on the disk.

    The confidential table with its control records and m released ones as they are in memory, the values of single records of every risk
    measure, and room for the database and its log.
    """
    frames = (data.frame, *(() if data.controls is None else (data.controls.frame,)))
    table = sum(int(frame.memory_usage(index=False, deep=True).sum()) for frame in frames)
    by_record = (
        sum(step.method.family == "risk" for step in recipe.measures) * (recipe.m + 1) * len(data) * RECORD_BYTES
    )
    return ALWAYS_BYTES + (recipe.m + 1) * table + by_record


def check_disk(directory: Path, needed: int) -> None:
    """Raises NotEnoughDisk when a workspace's disk has less free space than this many bytes."""
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise NotEnoughDisk(
            f"the run may need {_size(needed)} and the disk of {directory} has {_size(free)} free; nothing was stored. "
            "Free some space, or use a workspace on another disk (--workspace DIR)"
        )


def _size(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MiB"


def disk_error(error: BaseException) -> str:
    """What an error says of the disk, in words; empty when it speaks of something else."""
    if isinstance(error, sqlite3.Error):
        return _DATABASE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")
    if not isinstance(error, OSError):
        return ""
    if error.errno in FULL:
        return NO_SPACE
    return NO_RIGHT if error.errno in CLOSED else BAD_DISK if error.errno == errno.EIO else ""


def status_of(trouble: str) -> int:
    """The exit status that stands for what ``disk_error`` said."""
    return next(status for status, text in DISK_ERRORS.items() if text == trouble)
