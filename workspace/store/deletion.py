"""Runs and projects taken out of a workspace: their rows in one transaction, then the files that nothing needs any more."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Collection

from ..audit import Act, append
from ..errors import NotFound, NotReady
from ..jobs.run_log import run_log
from ..views.runs import find_run
from .orphans import known_tables
from .workspace import Workspace

__all__ = ["delete_project", "delete_run"]

SETTLED_SECONDS = 60.0
"""A table written this lately may be that of an import whose rows are still to come; ``doctor --fix`` looks again."""


def delete_run(workspace: Workspace, run_id: int) -> int:
    """Delete a run with its released datasets, results and log; returns how many of its tables are left on the disk.

    The audit log says that there was such a run, and its number is never given again. The confidential data stay in the
    project. Raises NotFound, and NotReady while the run goes on.
    """
    with workspace.writing() as connection:
        run = find_run(workspace, run_id)
        if not run.state.ended:
            raise NotReady(f"run {run.id} is {run.state}; interrupt it first")
        hashes = _artefacts(connection, run.id)
        _forget(connection, run.id, run.recipe_sha256)
    return _remove(workspace, [run.id], hashes)


def delete_project(workspace: Workspace, project_id: int) -> int:
    """Delete a project with its runs, its plan and its confidential data; returns how many tables are left on the disk.

    Raises NotFound, and NotReady while one of its runs goes on.
    """
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
            _forget(connection, run.id, run.recipe_sha256)
        for table in ("draft", "dataset"):
            connection.execute(f"DELETE FROM {table} WHERE project_id = ?", (project_id,))
        connection.execute("DELETE FROM project WHERE id = ?", (project_id,))
        append(connection, Act.PROJECT_DELETED, f"project {project_id}", runs=len(runs))
    return _remove(workspace, [run.id for run in runs], hashes)


def _ids(connection: sqlite3.Connection, table: str, project_id: int) -> list[sqlite3.Row]:
    return connection.execute(f"SELECT id FROM {table} WHERE project_id = ? ORDER BY id", (project_id,)).fetchall()


def _artefacts(connection: sqlite3.Connection, run_id: int) -> set[str]:
    return {str(row[0]) for row in connection.execute("SELECT sha256 FROM artefact WHERE run_id = ?", (run_id,))}


def _forget(connection: sqlite3.Connection, run_id: int, recipe_sha256: str) -> None:
    connection.execute("INSERT INTO deleted_run (id) VALUES (?)", (run_id,))
    connection.execute("DELETE FROM run WHERE id = ?", (run_id,))
    append(connection, Act.RUN_DELETED, f"run {run_id}", recipe_sha256=recipe_sha256)


def _remove(workspace: Workspace, run_ids: Collection[int], hashes: Collection[str]) -> int:
    """Remove logs, and the tables that no row names. Under the write lock, so that none comes to be named meanwhile.

    While something is being computed its tables are written before their rows, and might be these: then they stay.
    """
    for run_id in run_ids:
        log = run_log(workspace.directory, run_id)
        for path in (log, log.with_name(f"{log.name}.1")):
            path.unlink(missing_ok=True)
    with workspace.writing() as connection:
        busy = connection.execute("SELECT EXISTS (SELECT 1 FROM task WHERE state = 'running')").fetchone()[0]
        unneeded = [workspace.tables.path(sha256) for sha256 in sorted(set(hashes) - known_tables(workspace))]
        left = 0
        for path in unneeded:
            with contextlib.suppress(FileNotFoundError):
                if busy or time.time() - path.stat().st_mtime < SETTLED_SECONDS:
                    left += 1
                else:
                    path.unlink()
    return left
