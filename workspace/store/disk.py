"""Disk space of a workspace: how much a run needs, and what disk errors mean."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import WorkspaceError
from . import table_manifests

if TYPE_CHECKING:
    from sfumato.engine.data.microdata import Microdata
    from sfumato.engine.data.table_blocks import TableBlocks
    from sfumato.engine.recipe.recipe import Recipe

BASE_BYTES = 32 << 20
BYTES_PER_RECORD = 40
SCRATCH_BYTES_PER_VALUE = 64
"""Bytes of a value of a long table in files without a name, which two tasks have while they work: rows in buckets."""
SCRATCH_OF_RELEASE = 75
"""Bytes of a value of a long table in such files while a release is examined and written: columns, keys, orders, codes."""
DISK_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
NO_PERMISSION_ERRORS = {errno.EROFS, errno.EACCES, errno.EPERM}
NO_SPACE = "the workspace's disk is full, or a quota on it is used up; free some space, then resume the run"
NO_PERMISSION = "the workspace cannot be written: it is read-only here, or belongs to somebody else"
BAD_DISK = "the workspace's disk reports an input/output error, or is full; look at it with sfumato doctor"
DISK_ERRORS: Mapping[int, str] = {73: NO_SPACE, 74: BAD_DISK, 77: NO_PERMISSION}
"""Messages by exit status of a worker that a disk error has stopped (sysexits.h): its log cannot be written then."""
_MESSAGE_OF_SQLITE_ERROR = {
    sqlite3.SQLITE_FULL: NO_SPACE,
    sqlite3.SQLITE_READONLY: NO_PERMISSION,
    sqlite3.SQLITE_CANTOPEN: NO_PERMISSION,
    sqlite3.SQLITE_PERM: NO_PERMISSION,
    sqlite3.SQLITE_IOERR: BAD_DISK,
}


class NotEnoughDisk(WorkspaceError):
    """Error of a disk that has less free space than a run or a release may need."""


def estimate_run_bytes(recipe: Recipe, data: Microdata | TableBlocks) -> int:
    """Return an upper estimate of the bytes that a run leaves on the disk, and of those that it has there meanwhile."""
    from sfumato.engine.data.microdata import Microdata

    # At their size in memory, which the compressed files stay below.
    own = data if isinstance(data, Microdata) else next(data.iterate_blocks())
    frames = (own.frame, *(() if own.controls is None else (own.controls.frame,)))
    table = sum(int(frame.memory_usage(index=False, deep=True).sum()) for frame in frames)
    table = table * len(data) // max(1, len(own))
    by_record = (
        sum(step.method.family == "risk" for step in recipe.measures) * (recipe.m + 1) * len(data) * BYTES_PER_RECORD
    )
    meanwhile = estimate_scratch_bytes(len(data), len(recipe.schema), SCRATCH_BYTES_PER_VALUE)
    return BASE_BYTES + (recipe.m + 1) * table + by_record + meanwhile


def estimate_scratch_bytes(rows: int, columns: int, by_value: int = SCRATCH_OF_RELEASE) -> int:
    """Return an upper estimate of the bytes that work with a table has meanwhile on the disk; 0 for one of a single part.

    by_value: bytes of a value, by default those of a release
    """
    return by_value * rows * columns if rows > table_manifests.PART_ROWS else 0


def check_disk_space(directory: Path, needed_bytes: int) -> None:
    """Raise NotEnoughDisk when a workspace's disk has less free space than a run needs."""
    another = "use a workspace on another disk (--workspace DIR)"
    _check_free_space(directory, needed_bytes, "the run", "nothing was stored", another)


def check_space_for_release(workspace: Path, scratch_bytes: int, folder: Path, file_bytes: int) -> None:
    """Raise NotEnoughDisk when the disk of a workspace has less free space than the work on a release needs, or that of
    the folder less than its files.
    """
    another = "write the release to a folder on another disk"
    if workspace.stat().st_dev == folder.stat().st_dev:
        _check_free_space(folder, scratch_bytes + file_bytes, "the release", "nothing was released", another)
        return
    _check_free_space(workspace, scratch_bytes, "work on the release", "nothing was released", "move the workspace")
    _check_free_space(folder, file_bytes, "the release", "nothing was released", another)


def _check_free_space(directory: Path, needed_bytes: int, needs: str, outcome: str, another: str) -> None:
    """Raise NotEnoughDisk when a disk has less free space than ``needs`` says is needed."""
    free = shutil.disk_usage(directory).free
    if free < needed_bytes:
        raise NotEnoughDisk(
            f"{needs} may need {_binary_size_text(needed_bytes)} and the disk of {directory} has {_binary_size_text(free)} free; {outcome}. "
            f"Free some space, or {another}"
        )


def _binary_size_text(size: int) -> str:
    """Format a number of bytes in MiB or GiB."""
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MiB"


def disk_error_message(error: BaseException) -> str:
    """Return what an error means for the disk, in words; empty for one about something else."""
    if isinstance(error, sqlite3.Error):
        # The low byte is the primary code; the rest tells apart, say, kinds of input/output errors.
        return _MESSAGE_OF_SQLITE_ERROR.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")
    if not isinstance(error, OSError):
        return ""
    if error.errno in DISK_FULL_ERRORS:
        return NO_SPACE
    return NO_PERMISSION if error.errno in NO_PERMISSION_ERRORS else BAD_DISK if error.errno == errno.EIO else ""


def exit_status_of(trouble: str) -> int:
    """Return the exit status of a worker for a message of ``disk_error_message``."""
    return next(status for status, text in DISK_ERRORS.items() if text == trouble)
