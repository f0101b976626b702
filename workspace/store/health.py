"""Checks of a workspace: database, tables, permissions, disk, and whether workers survive a log-out."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..audit import verify
from ..errors import DamagedTable, WorkspaceError
from .orphans import known_tables, orphans
from .workspace import Workspace

__all__ = ["Finding", "workspace_findings"]

NETWORK_FILESYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "fuse.sshfs", "9p", "afs"}
LITTLE_SPACE = 1 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "note", "problem"]
    text: str

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON has it."""
        return asdict(self)


def workspace_findings(directory: Path) -> list[Finding]:
    """What is right and wrong with a workspace; a directory without one is only noted."""
    if not (directory / "workspace.db").is_file():
        return [Finding("workspace", "note", f"none yet in {directory}; make one with: sfumato init {directory}")]
    try:
        workspace = Workspace.open(directory)
    except WorkspaceError as error:
        return [Finding("workspace", "problem", str(error))]
    with workspace:
        return list(_findings(workspace))


def _findings(workspace: Workspace) -> Iterator[Finding]:
    yield Finding("workspace", "ok", str(workspace.directory))
    yield _permissions(workspace.directory)
    yield _filesystem(workspace.directory)
    free = shutil.disk_usage(workspace.directory).free
    yield Finding("free disk", "ok" if free > LITTLE_SPACE else "problem", f"{free / (1 << 30):.1f} GiB")
    yield _integrity(workspace)
    yield from _tables(workspace)
    yield _audit(workspace)
    yield _log_out()


def _permissions(directory: Path) -> Finding:
    mode = stat.S_IMODE(directory.stat().st_mode)
    if mode & 0o077:
        return Finding("permissions", "problem", f"others may enter ({mode:04o}); run: chmod 700 {directory}")
    return Finding("permissions", "ok", f"{mode:04o}")


def _filesystem(directory: Path) -> Finding:
    kind = filesystem_of(directory)
    if kind in NETWORK_FILESYSTEMS:
        return Finding("file system", "problem", f"{kind}: SQLite's log does not work there; use a local disk")
    return Finding("file system", "ok", kind or "unknown")


def filesystem_of(directory: Path) -> str:
    """The type of the file system that holds a directory, as Linux names it; empty elsewhere."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    except OSError:
        return ""
    points = {fields[1]: fields[2] for fields in map(str.split, mounts)}
    path = directory.resolve()
    return next((points[str(p)] for p in (path, *path.parents) if str(p) in points), "")


def _integrity(workspace: Workspace) -> Finding:
    try:
        answer = workspace.connection.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        answer = str(error)
    return Finding("database", "ok" if answer == "ok" else "problem", "intact" if answer == "ok" else answer)


def _tables(workspace: Workspace) -> Iterator[Finding]:
    known = known_tables(workspace)
    damaged = 0
    for sha256 in sorted(known):
        try:
            workspace.tables.read(sha256)
        except DamagedTable as error:
            damaged += 1
            yield Finding("table", "problem", str(error))
    if not damaged:
        yield Finding("tables", "ok", f"{len(known)} stored, all as they were written")
    left_over = orphans(workspace)
    if left_over:
        text = f"{len(left_over)} files that no run needs; remove them with: sfumato doctor --fix"
        yield Finding("orphans", "note", text)


def _audit(workspace: Workspace) -> Finding:
    rows, wrong = verify(workspace.connection, workspace.directory)
    return Finding("audit log", "problem" if wrong else "ok", wrong or f"{len(rows)} rows, none changed")


def _log_out() -> Finding:
    try:
        text = Path("/etc/systemd/logind.conf").read_text("utf-8")
    except OSError:
        text = ""
    if any(line.strip().lower() in ("killuserprocesses=yes", "killuserprocesses=true") for line in text.splitlines()):
        return Finding(
            "log-out", "problem", "KillUserProcesses=yes ends workers at log-out; run: loginctl enable-linger"
        )
    return Finding("log-out", "ok", "workers go on")
