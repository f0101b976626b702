"""Runs and projects are deleted: their rows, logs and tables go, and tombstones keep what later checks need."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Collection

from ..audit import Act, append
from ..errors import NotFound, NotReady
from ..gate.earlier import tombstone_of
from ..plain_files import check_layout, is_hash
from ..store.run_log import run_log
from ..store.runs import Run, find_run
from ..store.tombstones import IN_AUDIT, Tombstone, keep, released_runs
from ..store.workspace import Workspace
from ..upkeep.maintenance import known_tables

SETTLED_SECONDS = 60.0
"""A table written this lately may be that of an import whose rows are still to come; ``doctor --fix`` looks again."""


def pending_removal_text(tables: int) -> str:
    """What to say of tables that could not be removed at once."""
    if not tables:
        return ""
    return f"; {tables} of its tables are too young to remove: sfumato doctor --fix does so in an hour"


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
    """What is to stay of those runs that were released; their tables are written before the transaction that needs them.

    A run that cannot go is refused before, so that no table is left of it. Raises NotReady.
    """
    if released_runs(workspace.connection).keys().isdisjoint(run_ids):
        return {}
    for run_id in run_ids:
        _check_not_on_its_way(workspace.connection, run_id)
    workspace.check_own()
    made = ((run_id, tombstone_of(workspace, run_id)) for run_id in run_ids)
    return {run_id: one for run_id, one in made if one is not None}


def _forget(connection: sqlite3.Connection, run: Run, left: Tombstone | None) -> None:
    """Delete a run in the database. Raises NotReady while it is being released, or where it was since ``left`` was made."""
    _check_not_on_its_way(connection, run.id)
    if released_runs(connection).get(run.id) != (None if left is None else left.manifests):
        raise NotReady(f"run {run.id} was released just now; delete it again")
    connection.execute("INSERT INTO deleted_run (id) VALUES (?)", (run.id,))
    connection.execute("DELETE FROM run WHERE id = ?", (run.id,))
    kept = {} if left is None else {IN_AUDIT: keep(connection, left)}
    append(connection, Act.RUN_DELETED, f"run {run.id}", recipe_sha256=run.recipe_sha256, **kept)


def _check_not_on_its_way(connection: sqlite3.Connection, run_id: int) -> None:
    """Raises NotReady while a release of the run goes on."""
    if connection.execute("SELECT EXISTS (SELECT 1 FROM releasing WHERE run_id = ?)", (run_id,)).fetchone()[0]:
        raise NotReady(f"run {run_id} is being released; if that was cut off: sfumato resume {run_id}")


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
