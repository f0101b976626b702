"""Maintenance of a workspace: removing files that nothing needs, accepting a rollback, and checking all of it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import stat
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun

from ..audit import AuditAct, AuditHead, append_act, read_head
from ..errors import DamagedTable, WorkspaceError
from ..plain_files import check_layout, is_hash
from ..policy.justification import checked_justification
from ..store.heads import describe_head_store
from ..store.keys import KEY_FILE, NoKey, compute_fingerprint
from ..store.ledger import read_charges
from ..store.workspace import Workspace
from .integrity import verify_workspace

AGE_SECONDS = 3_600.0
"""A table younger than this may be that of a task whose result is not recorded yet."""
NETWORK_FILESYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "fuse.sshfs", "9p", "afs"}
LITTLE_SPACE = 1 << 30


def named_table_hashes(workspace: Workspace) -> set[str]:
    """Return the hashes of all tables that the database names."""
    rows = workspace.connection.execute(
        "SELECT table_sha256 FROM dataset UNION SELECT sha256 FROM artefact UNION SELECT sha256 FROM tombstone_table"
    )
    # The marks of people outlive run and project, as the charges do that name them.
    marks = (one.identifiers for one in read_charges(workspace.connection))
    return {row[0] for row in rows} | {sha256 for sha256 in marks if sha256}


def list_table_files(workspace: Workspace, hashes: Collection[str]) -> set[Path]:
    """Return the files of the tables with these hashes, each with its parts; names that are no hash name none.

    Raises DamagedTable where a table is gone or its list of parts has changed, so that nothing says which they are.
    """
    return {path for sha256 in hashes if is_hash(sha256) for path in workspace.tables.files_of(sha256)}


def find_orphans(workspace: Workspace, age: float = AGE_SECONDS) -> list[Path]:
    """List tables and half-written files that no row names and that have not been touched for ``age`` seconds.

    Where a table that a row names is gone or damaged, only half-written files are: any other may be a part of it.
    """
    check_layout(workspace.directory)
    directory = workspace.tables.directory
    files = sorted(directory.iterdir()) if directory.is_dir() else []
    # Ages are read before the names: a table that gets its row in between is then known.
    old = [file for file in files if _age_in_seconds(file) > age]
    try:
        known = list_table_files(workspace, named_table_hashes(workspace))
    except DamagedTable:
        from ..store.tables import ASIDE_PREFIX  # with the libraries that read tables

        return [file for file in old if file.name.startswith(ASIDE_PREFIX)]
    return [file for file in old if file not in known]


def _age_in_seconds(file: Path) -> float:
    """Return the seconds since a file was written; 0 where it is gone."""
    try:
        return time.time() - file.lstat().st_mtime
    except FileNotFoundError:
        return 0.0


def remove_orphans(workspace: Workspace, age: float = AGE_SECONDS) -> int:
    """Remove tables and half-written files that no row names; return how many."""
    with workspace.write_transaction() as connection:
        # Under the write lock, so that no row can come to name one meanwhile.
        found = find_orphans(workspace, age)
        removed = 0
        # A table that is written again is touched: its age is read once more.
        for file in (one for one in found if _age_in_seconds(one) > age):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError, PermissionError):
                file.unlink()
                removed += 1
        if removed:
            append_act(connection, AuditAct.FILES_REMOVED, "workspace", files=removed)
    return removed


def accept_rollback(workspace: Workspace, reason: str) -> AuditHead:
    """Accept the present history of a workspace in place of the one recorded outside it; return its new head.

    The audit log gets a row with the reason. Raises BadInput for a reason without letters and where there is nothing to
    accept, BrokenHistory where the last row has no seal, and NoKey.
    """
    text = checked_justification(reason, "--reason")
    if not workspace.history_problem():
        raise BadInput(
            "accept-rollback", "the audit log is the one recorded outside the workspace; there is nothing to accept"
        )
    known = (place.find_head(None, workspace.directory).head for place in workspace.head_stores())
    recorded = next((str(head) for head in known if head is not None), "")
    with workspace.write_transaction(accept_rollback=True) as connection:
        append_act(connection, AuditAct.ROLLBACK_ACCEPTED, "workspace", reason=text, recorded=recorded)
    return read_head(workspace.connection)


@dataclass(frozen=True, slots=True)
class WorkspaceCheck:
    """Result of one check of ``sfumato doctor``; its fields are the keys of its JSON.

    what: what was checked
    state: ``ok``, ``note`` or ``problem``
    text: result in words
    """

    what: str
    state: Literal["ok", "note", "problem"]
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def check_workspace_health(directory: Path) -> list[WorkspaceCheck]:
    """Check a workspace and return the results; a directory without one is only noted."""
    if not (directory / "workspace.db").is_file():
        return [
            WorkspaceCheck("workspace", "note", f"none yet in {directory}; make one with: sfumato init {directory}")
        ]
    try:
        # Unchecked: a workspace that opening would refuse is the one that must be examined.
        workspace = Workspace.open(directory, unchecked=True)
    except WorkspaceError as error:
        return [WorkspaceCheck("workspace", "problem", str(error))]
    with workspace:
        return list(_iterate_checks(workspace))


def _iterate_checks(workspace: Workspace) -> Iterator[WorkspaceCheck]:
    """Yield the results of all checks of a workspace."""
    if workspace.owner:
        text = (
            f"belongs to {workspace.owner} and is only looked at; for a copy: sfumato adopt {workspace.directory} NEW"
        )
        yield WorkspaceCheck("workspace", "note", text)
    else:
        yield WorkspaceCheck("workspace", "ok", str(workspace.directory))
    yield _check_permissions(workspace.directory)
    yield _check_key_file(workspace)
    yield _check_filesystem(workspace.directory)
    free = shutil.disk_usage(workspace.directory).free
    yield WorkspaceCheck("free disk", "ok" if free > LITTLE_SPACE else "problem", f"{free / (1 << 30):.1f} GiB")
    yield _check_database(workspace)
    yield from _check_stored_tables(workspace)
    yield _check_audit_log(workspace)
    if not workspace.owner:
        for place in workspace.head_stores():
            kept, text = describe_head_store(place, workspace.directory, workspace.connection)
            yield WorkspaceCheck("audit head", "ok" if kept else "note", text)
    yield _check_log_out()


def _check_permissions(directory: Path) -> WorkspaceCheck:
    """Check that only the owner may enter the directory."""
    mode = stat.S_IMODE(directory.stat().st_mode)
    if mode & 0o077:
        return WorkspaceCheck("permissions", "problem", f"others may enter ({mode:04o}); run: chmod 700 {directory}")
    return WorkspaceCheck("permissions", "ok", f"{mode:04o}")


def _check_key_file(workspace: Workspace) -> WorkspaceCheck:
    """Check that the key can be read, by its owner alone, and that it is secret."""
    try:
        key = workspace.read_workspace_key()
    except NoKey as error:
        return WorkspaceCheck("key", "problem", str(error))
    path = workspace.directory / KEY_FILE
    mode = stat.S_IMODE(path.stat().st_mode)
    if not key:
        return WorkspaceCheck(
            "key", "note", "public: whoever has a recipe and its data repeats its runs; for public data only"
        )
    if mode & 0o077:
        return WorkspaceCheck("key", "problem", f"others may read it ({mode:04o}); run: chmod 600 {path}")
    return WorkspaceCheck("key", "ok", f"fingerprint {compute_fingerprint(key)}; keep a copy: sfumato key export FILE")


def _check_filesystem(directory: Path) -> WorkspaceCheck:
    """Check that the workspace lies on no network file system."""
    kind = filesystem_type(directory)
    if kind in NETWORK_FILESYSTEMS:
        return WorkspaceCheck("file system", "problem", f"{kind}: SQLite's log does not work there; use a local disk")
    return WorkspaceCheck("file system", "ok", kind or "unknown")


def filesystem_type(directory: Path) -> str:
    """Return the type of the file system that holds a directory, as Linux names it; empty elsewhere."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    except OSError:
        return ""
    points = {fields[1]: fields[2] for fields in map(str.split, mounts)}
    path = directory.resolve()
    return next((points[str(p)] for p in (path, *path.parents) if str(p) in points), "")


def _check_database(workspace: Workspace) -> WorkspaceCheck:
    """Check the database as SQLite does."""
    try:
        answer = workspace.connection.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        answer = str(error)
    return WorkspaceCheck("database", "ok" if answer == "ok" else "problem", "intact" if answer == "ok" else answer)


def _check_stored_tables(workspace: Workspace) -> Iterator[WorkspaceCheck]:
    """Check that every table is as it was written, and that no file is left over."""
    known = named_table_hashes(workspace)
    damaged = 0
    for sha256 in sorted(map(str, known)):
        try:
            workspace.tables.parse_table(sha256)
        except DamagedTable as error:
            damaged += 1
            yield WorkspaceCheck("table", "problem", str(error))
    if not damaged:
        yield WorkspaceCheck("tables", "ok", f"{len(known)} stored, all as they were written")
    left_over = find_orphans(workspace)
    if left_over:
        text = f"{count_noun(len(left_over), 'file')} that no run needs; remove them with: sfumato doctor --fix"
        yield WorkspaceCheck("orphans", "note", text)


def _check_audit_log(workspace: Workspace) -> WorkspaceCheck:
    """Compare the workspace with its seals."""
    found = verify_workspace(workspace)
    wrong = "; ".join(found.wrong)
    return WorkspaceCheck(
        "audit log", "problem" if wrong else "ok", wrong or f"{count_noun(len(found.rows), 'row')}, none changed"
    )


def _check_log_out() -> WorkspaceCheck:
    """Check that logging out does not end workers."""
    try:
        text = Path("/etc/systemd/logind.conf").read_text("utf-8")
    except OSError:
        text = ""
    if any(line.strip().lower() in ("killuserprocesses=yes", "killuserprocesses=true") for line in text.splitlines()):
        return WorkspaceCheck(
            "log-out", "problem", "KillUserProcesses=yes ends workers at log-out; run: loginctl enable-linger"
        )
    return WorkspaceCheck("log-out", "ok", "workers keep running")
