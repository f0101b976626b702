"""Maintenance of a workspace: runs and projects deleted, files removed that nothing needs, and checks of all of it."""

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
from sfumato.engine.wording import counted

from ..audit import Act, Head, append, head_of
from ..errors import DamagedTable, NotFound, NotReady, WorkspaceError
from ..integrity import verify_workspace
from ..jobs.run_log import run_log
from ..justification import checked_justification
from ..plain_files import check_layout, is_hash
from ..views.runs import Run, find_run
from .heads import words_for
from .keys import KEY_FILE, NoKey, fingerprint
from .tombstones import IN_AUDIT, Tombstone, keep, released_runs
from .workspace import Workspace

AGE_SECONDS = 3_600.0
"""A table younger than this may be that of a task whose result is not recorded yet."""


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


SETTLED_SECONDS = 60.0
"""A table written this lately may be that of an import whose rows are still to come; ``doctor --fix`` looks again."""


def delete_run(workspace: Workspace, run_id: int) -> int:
    """Delete a run with its released datasets, results and log; returns how many of its tables are left on the disk.

    The audit log says that there was such a run, and its number is never given again. The confidential data stay in the
    project. Of a run that was released a tombstone stays, with the datasets that left the building. Raises NotFound, NotReady while
    the run or a release of it goes on, DamagedTable where a released run cannot be read, and StrangeFile; then nothing is deleted.
    """
    check_layout(workspace.directory)
    left = _tombstones(workspace, [run_id])
    with workspace.writing() as connection:
        run = find_run(workspace, run_id)
        if not run.state.ended:
            raise NotReady(f"run {run.id} is {run.state}; interrupt it first")
        hashes = _artefacts(connection, run.id)
        _forget(connection, run, left.get(run.id))
    return _remove(workspace, [run.id], hashes)


def delete_project(workspace: Workspace, project_id: int) -> int:
    """Delete a project with its runs, its plan and its confidential data; returns how many tables are left on the disk.

    Each run that was released leaves a tombstone, as ``delete_run`` does. Raises NotFound, NotReady while one of its runs or a release
    of one goes on, DamagedTable, and StrangeFile; then nothing is deleted.
    """
    check_layout(workspace.directory)
    tombs = _tombstones(workspace, [int(one[0]) for one in _ids(workspace.connection, "run", project_id)])
    with workspace.writing() as connection:
        row = connection.execute("SELECT name FROM project WHERE id = ?", (project_id,)).fetchone()
        if row is None:
            raise NotFound(f"there is no project {project_id}")
        runs = [find_run(workspace, int(one[0])) for one in _ids(connection, "run", project_id)]
        going = [run.id for run in runs if not run.state.ended]
        if going:
            raise NotReady(f"run {going[0]} of this project goes on; interrupt it first")
        tables = connection.execute("SELECT table_sha256 FROM dataset WHERE project_id = ?", (project_id,))
        hashes = {str(one[0]) for one in tables}
        for run in runs:
            hashes |= _artefacts(connection, run.id)
            _forget(connection, run, tombs.get(run.id))
        for table in ("draft", "dataset"):
            connection.execute(f"DELETE FROM {table} WHERE project_id = ?", (project_id,))
        connection.execute("DELETE FROM project WHERE id = ?", (project_id,))
        append(connection, Act.PROJECT_DELETED, f"project {project_id}", runs=len(runs))
    return _remove(workspace, [run.id for run in runs], hashes)


def _ids(connection: sqlite3.Connection, table: str, project_id: int) -> list[sqlite3.Row]:
    return connection.execute(f"SELECT id FROM {table} WHERE project_id = ? ORDER BY id", (project_id,)).fetchall()


def _artefacts(connection: sqlite3.Connection, run_id: int) -> set[str]:
    return {str(row[0]) for row in connection.execute("SELECT sha256 FROM artefact WHERE run_id = ?", (run_id,))}


def _tombstones(workspace: Workspace, run_ids: Collection[int]) -> dict[int, Tombstone]:
    """What is to stay of those runs that were released; their tables are written before the transaction that needs them."""
    if released_runs(workspace.connection).keys().isdisjoint(run_ids):
        return {}
    workspace.check_own()
    from ..release.earlier import tombstone_of

    made = ((run_id, tombstone_of(workspace, run_id)) for run_id in run_ids)
    return {run_id: one for run_id, one in made if one is not None}


def _forget(connection: sqlite3.Connection, run: Run, left: Tombstone | None) -> None:
    """Delete a run in the database. Raises NotReady while it is being released, or where it was since ``left`` was made."""
    if connection.execute("SELECT EXISTS (SELECT 1 FROM releasing WHERE run_id = ?)", (run.id,)).fetchone()[0]:
        raise NotReady(f"run {run.id} is being released; if that was cut off: sfumato resume {run.id}")
    if released_runs(connection).get(run.id) != (None if left is None else left.manifests):
        raise NotReady(f"run {run.id} was released just now; delete it again")
    connection.execute("INSERT INTO deleted_run (id) VALUES (?)", (run.id,))
    connection.execute("DELETE FROM run WHERE id = ?", (run.id,))
    kept = {} if left is None else {IN_AUDIT: keep(connection, left)}
    append(connection, Act.RUN_DELETED, f"run {run.id}", recipe_sha256=run.recipe_sha256, **kept)


def _remove(workspace: Workspace, run_ids: Collection[int], hashes: Collection[str]) -> int:
    """Remove logs, and the tables that no row names. Under the write lock, so that none comes to be named meanwhile.

    While something is being computed its tables are written before their rows, and might be these: then they stay. A name that
    is no hash names no table of ours, whatever file it may point to.
    """
    for run_id in run_ids:
        log = run_log(workspace.directory, run_id)
        for path in (log, log.with_name(f"{log.name}.1")):
            path.unlink(missing_ok=True)
    with workspace.writing() as connection:
        busy = connection.execute("SELECT EXISTS (SELECT 1 FROM task WHERE state = 'running')").fetchone()[0]
        unneeded = [
            workspace.tables.path(sha256) for sha256 in sorted(set(hashes) - known_tables(workspace)) if is_hash(sha256)
        ]
        left = 0
        for path in unneeded:
            with contextlib.suppress(FileNotFoundError):
                if busy or time.time() - path.lstat().st_mtime < SETTLED_SECONDS:
                    left += 1
                else:
                    path.unlink()
    return left


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


NETWORK_FILESYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "fuse.sshfs", "9p", "afs"}
LITTLE_SPACE = 1 << 30


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "note", "problem"]
    text: str

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON has it."""
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
