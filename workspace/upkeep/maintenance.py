"""Maintenance of a workspace: files removed that nothing needs, a rollback accepted, and checks of all of it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import counted

from ..audit import Act, Head, append, head_of
from ..errors import DamagedTable, WorkspaceError
from ..plain_files import check_layout
from ..policy.justification import checked_justification
from ..store.heads import words_for
from ..store.keys import KEY_FILE, NoKey, fingerprint
from ..store.workspace import Workspace
from .integrity import verify_workspace

AGE_SECONDS = 3_600.0
"""A table younger than this may be that of a task whose result is not recorded yet."""
NETWORK_FILESYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "fuse.sshfs", "9p", "afs"}
LITTLE_SPACE = 1 << 30


def known_tables(workspace: Workspace) -> set[str]:
    """Hashes of all tables that the database speaks of."""
    rows = workspace.connection.execute(
        "SELECT table_sha256 FROM dataset UNION SELECT sha256 FROM artefact UNION SELECT sha256 FROM tombstone_table"
    )
    return {row[0] for row in rows}


def orphans(workspace: Workspace, age: float = AGE_SECONDS) -> list[Path]:
    """Tables and half-written files that no row names and that have not been touched for ``age`` seconds."""
    check_layout(workspace.directory)
    directory = workspace.tables.directory
    files = sorted(directory.iterdir()) if directory.is_dir() else []
    old = [file for file in files if _age(file) > age]
    known = known_tables(workspace)
    return [file for file in old if file.stem not in known]


def _age(file: Path) -> float:
    try:
        return time.time() - file.lstat().st_mtime
    except FileNotFoundError:
        return 0.0


def remove_orphans(workspace: Workspace, age: float = AGE_SECONDS) -> int:
    """Remove them; returns how many.

    Under the write lock, so that no row can come to name one meanwhile; a table that is written again is touched.
    """
    with workspace.writing() as connection:
        found = orphans(workspace, age)
        removed = 0
        for file in (one for one in found if _age(one) > age):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError, PermissionError):
                file.unlink()
                removed += 1
        if removed:
            append(connection, Act.FILES_REMOVED, "workspace", files=removed)
    return removed


def accept_rollback(workspace: Workspace, reason: str) -> Head:
    """Accept the history that a workspace has now in place of the one recorded outside it, with a row in its audit log that says why.

    Returns the new head. Raises BadInput for a reason without letters and where there is nothing to accept, BrokenHistory where
    the last row has no seal, and NoKey.
    """
    text = checked_justification(reason, "--reason")
    if not workspace.history_problem():
        raise BadInput(
            "accept-rollback", "the audit log is the one recorded outside the workspace; there is nothing to accept"
        )
    known = (place.find(None, workspace.directory).head for place in workspace.places())
    recorded = next((str(head) for head in known if head is not None), "")
    with workspace.writing(accept_rollback=True) as connection:
        append(connection, Act.ROLLBACK_ACCEPTED, "workspace", reason=text, recorded=recorded)
    return head_of(workspace.connection)


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    state: Literal["ok", "note", "problem"]
    text: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def workspace_checks(directory: Path) -> list[Check]:
    """What is right and wrong with a workspace; a directory without one is only noted."""
    if not (directory / "workspace.db").is_file():
        return [Check("workspace", "note", f"none yet in {directory}; make one with: sfumato init {directory}")]
    try:
        workspace = Workspace.open(directory, unchecked=True)
    except WorkspaceError as error:
        return [Check("workspace", "problem", str(error))]
    with workspace:
        return list(_findings(workspace))


def _findings(workspace: Workspace) -> Iterator[Check]:
    if workspace.owner:
        text = (
            f"belongs to {workspace.owner} and is only looked at; for a copy: sfumato adopt {workspace.directory} NEW"
        )
        yield Check("workspace", "note", text)
    else:
        yield Check("workspace", "ok", str(workspace.directory))
    yield _permissions(workspace.directory)
    yield _key(workspace)
    yield _filesystem(workspace.directory)
    free = shutil.disk_usage(workspace.directory).free
    yield Check("free disk", "ok" if free > LITTLE_SPACE else "problem", f"{free / (1 << 30):.1f} GiB")
    yield _integrity(workspace)
    yield from _tables(workspace)
    yield _audit(workspace)
    if not workspace.owner:
        for place in workspace.places():
            kept, text = words_for(place, workspace.directory, workspace.connection)
            yield Check("audit head", "ok" if kept else "note", text)
    yield _log_out()


def _permissions(directory: Path) -> Check:
    mode = stat.S_IMODE(directory.stat().st_mode)
    if mode & 0o077:
        return Check("permissions", "problem", f"others may enter ({mode:04o}); run: chmod 700 {directory}")
    return Check("permissions", "ok", f"{mode:04o}")


def _key(workspace: Workspace) -> Check:
    try:
        key = workspace.key()
    except NoKey as error:
        return Check("key", "problem", str(error))
    path = workspace.directory / KEY_FILE
    mode = stat.S_IMODE(path.stat().st_mode)
    if not key:
        return Check("key", "note", "public: whoever has a recipe and its data repeats its runs; for public data only")
    if mode & 0o077:
        return Check("key", "problem", f"others may read it ({mode:04o}); run: chmod 600 {path}")
    return Check("key", "ok", f"fingerprint {fingerprint(key)}; keep a copy: sfumato key export FILE")


def _filesystem(directory: Path) -> Check:
    kind = filesystem_of(directory)
    if kind in NETWORK_FILESYSTEMS:
        return Check("file system", "problem", f"{kind}: SQLite's log does not work there; use a local disk")
    return Check("file system", "ok", kind or "unknown")


def filesystem_of(directory: Path) -> str:
    """The type of the file system that holds a directory, as Linux names it; empty elsewhere."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    except OSError:
        return ""
    points = {fields[1]: fields[2] for fields in map(str.split, mounts)}
    path = directory.resolve()
    return next((points[str(p)] for p in (path, *path.parents) if str(p) in points), "")


def _integrity(workspace: Workspace) -> Check:
    try:
        answer = workspace.connection.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        answer = str(error)
    return Check("database", "ok" if answer == "ok" else "problem", "intact" if answer == "ok" else answer)


def _tables(workspace: Workspace) -> Iterator[Check]:
    known = known_tables(workspace)
    damaged = 0
    for sha256 in sorted(map(str, known)):
        try:
            workspace.tables.read(sha256)
        except DamagedTable as error:
            damaged += 1
            yield Check("table", "problem", str(error))
    if not damaged:
        yield Check("tables", "ok", f"{len(known)} stored, all as they were written")
    left_over = orphans(workspace)
    if left_over:
        text = f"{counted(len(left_over), 'file')} that no run needs; remove them with: sfumato doctor --fix"
        yield Check("orphans", "note", text)


def _audit(workspace: Workspace) -> Check:
    found = verify_workspace(workspace)
    wrong = "; ".join(found.wrong)
    return Check("audit log", "problem" if wrong else "ok", wrong or f"{counted(len(found.rows), 'row')}, none changed")


def _log_out() -> Check:
    try:
        text = Path("/etc/systemd/logind.conf").read_text("utf-8")
    except OSError:
        text = ""
    if any(line.strip().lower() in ("killuserprocesses=yes", "killuserprocesses=true") for line in text.splitlines()):
        return Check("log-out", "problem", "KillUserProcesses=yes ends workers at log-out; run: loginctl enable-linger")
    return Check("log-out", "ok", "workers go on")
