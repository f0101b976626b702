"""Deletion of runs and projects: rows, logs and tables are removed; tombstones keep what later checks need."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Collection
from pathlib import Path

from ..audit import AuditAct, append_act
from ..errors import DamagedTable, NotFound, NotReady
from ..gate.earlier import write_tombstone_tables
from ..plain_files import check_layout, is_hash
from ..store.kept_partials import remove_partials_of_run
from ..store.run_log import run_log_path
from ..store.runs import StoredRun, find_run
from ..store.tombstones import TOMBSTONE_KEY, Tombstone, released_run_manifests, store_tombstone
from ..store.workspace import Workspace
from ..upkeep.maintenance import list_table_files, named_table_hashes

SETTLED_SECONDS = 60.0
"""A table written this lately may be that of an import whose rows are still to come; ``doctor --fix`` looks again."""


def pending_removal_text(tables: int) -> str:
    """Return a remark on tables that could not be removed at once; empty for none."""
    if not tables:
        return ""
    return f"; {tables} of its tables are too young to remove: sfumato doctor --fix does so in an hour"


def delete_run(workspace: Workspace, run_id: int) -> int:
    """Delete a run with its released datasets, results and log; return how many of its tables are left on the disk.

    The audit log keeps that the run existed; its number is never given again, and the confidential data stay in the
    project. A released run leaves a tombstone with its released datasets. Raises NotFound, NotReady while the run or a
    release of it is in progress, DamagedTable where a released run cannot be read, and StrangeFile; then nothing is
    deleted.
    """
    check_layout(workspace.directory)
    # Before the transaction, which takes the write lock: a tombstone's tables take long to write.
    left = _write_tombstones(workspace, [run_id])
    with workspace.write_transaction() as connection:
        run = find_run(workspace, run_id)
        if not run.state.is_final:
            raise NotReady(f"run {run.id} is {run.state}; interrupt it first")
        hashes = _artefact_hashes(connection, run.id)
        _delete_run_rows(connection, run, left.get(run.id))
    return _remove_files(workspace, [run.id], hashes)


def delete_project(workspace: Workspace, project_id: int) -> int:
    """Delete a project with its runs, its plan and its confidential data; return how many tables are left on the disk.

    Each released run leaves a tombstone, as in ``delete_run``. Raises NotFound, NotReady while one of its runs or a
    release of one is in progress, DamagedTable, and StrangeFile; then nothing is deleted.
    """
    check_layout(workspace.directory)
    tombs = _write_tombstones(
        workspace, [int(one[0]) for one in _ids_in_project(workspace.connection, "run", project_id)]
    )
    with workspace.write_transaction() as connection:
        row = connection.execute("SELECT name FROM project WHERE id = ?", (project_id,)).fetchone()
        if row is None:
            raise NotFound(f"there is no project {project_id}")
        runs = [find_run(workspace, int(one[0])) for one in _ids_in_project(connection, "run", project_id)]
        going = [run.id for run in runs if not run.state.is_final]
        if going:
            raise NotReady(f"run {going[0]} of this project is not finished; interrupt it first")
        tables = connection.execute("SELECT table_sha256 FROM dataset WHERE project_id = ?", (project_id,))
        hashes = {str(one[0]) for one in tables}
        for run in runs:
            hashes |= _artefact_hashes(connection, run.id)
            _delete_run_rows(connection, run, tombs.get(run.id))
        for table in ("draft", "dataset"):
            connection.execute(f"DELETE FROM {table} WHERE project_id = ?", (project_id,))
        connection.execute("DELETE FROM project WHERE id = ?", (project_id,))
        append_act(connection, AuditAct.PROJECT_DELETED, f"project {project_id}", runs=len(runs))
    return _remove_files(workspace, [run.id for run in runs], hashes)


def _ids_in_project(connection: sqlite3.Connection, table: str, project_id: int) -> list[sqlite3.Row]:
    """Return the rows with the ids of a project's rows in a table, lowest first."""
    return connection.execute(f"SELECT id FROM {table} WHERE project_id = ? ORDER BY id", (project_id,)).fetchall()


def _artefact_hashes(connection: sqlite3.Connection, run_id: int) -> set[str]:
    """Return the hashes of the tables that a run has left."""
    return {str(row[0]) for row in connection.execute("SELECT sha256 FROM artefact WHERE run_id = ?", (run_id,))}


def _write_tombstones(workspace: Workspace, run_ids: Collection[int]) -> dict[int, Tombstone]:
    """Write the tables of the tombstones of released runs; return the tombstones by run. Raises NotReady."""
    if released_run_manifests(workspace.connection).keys().isdisjoint(run_ids):
        return {}
    for run_id in run_ids:
        # A run that cannot be deleted is refused first, so that no table of a tombstone is left behind.
        _check_no_release_in_progress(workspace.connection, run_id)
    workspace.check_own()
    made = ((run_id, write_tombstone_tables(workspace, run_id)) for run_id in run_ids)
    return {run_id: one for run_id, one in made if one is not None}


def _delete_run_rows(connection: sqlite3.Connection, run: StoredRun, tombstone: Tombstone | None) -> None:
    """Delete a run in the database. Raises NotReady while it is being released."""
    _check_no_release_in_progress(connection, run.id)
    # The tombstone was made outside this transaction: a release since then would be lost.
    if released_run_manifests(connection).get(run.id) != (None if tombstone is None else tombstone.manifests):
        raise NotReady(f"run {run.id} was released just now; delete it again")
    connection.execute("INSERT INTO deleted_run (id) VALUES (?)", (run.id,))
    connection.execute("DELETE FROM run WHERE id = ?", (run.id,))
    kept = {} if tombstone is None else {TOMBSTONE_KEY: store_tombstone(connection, tombstone)}
    append_act(connection, AuditAct.RUN_DELETED, f"run {run.id}", recipe_sha256=run.recipe_sha256, **kept)


def _check_no_release_in_progress(connection: sqlite3.Connection, run_id: int) -> None:
    """Raise NotReady while a release of the run is in progress."""
    if connection.execute("SELECT EXISTS (SELECT 1 FROM releasing WHERE run_id = ?)", (run_id,)).fetchone()[0]:
        raise NotReady(f"run {run_id} is being released; if that was cut off: sfumato resume {run_id}")


def _files_of_one_part(workspace: Workspace, hashes: Collection[str]) -> set[Path]:
    """Return the files that are whole tables with these hashes."""
    return {workspace.tables.path_of(one) for one in hashes if is_hash(one) and not workspace.tables.has_parts(one)}


def _list_known_files(workspace: Workspace, hashes: Collection[str]) -> tuple[set[Path], bool]:
    """Return the files of those tables that are there, each with its parts, and whether that is all of them.

    A name that is no hash names no table of ours, whatever file it may point to.
    """
    found, are_all_known = set[Path](), True
    for one in hashes:
        try:
            found |= list_table_files(workspace, [one])
        except DamagedTable:
            are_all_known = False
    return found, are_all_known


def _remove_files(workspace: Workspace, run_ids: Collection[int], hashes: Collection[str]) -> int:
    """Remove the logs of runs, and those tables that no row names any more; return how many tables are left."""
    for run_id in run_ids:
        remove_partials_of_run(workspace.tables.directory, run_id)
        log = run_log_path(workspace.directory, run_id)
        for path in (log, log.with_name(f"{log.name}.1")):
            path.unlink(missing_ok=True)
    # Under the write lock, so that no row can come to name one of these tables meanwhile.
    with workspace.write_transaction() as connection:
        busy = connection.execute("SELECT EXISTS (SELECT 1 FROM task WHERE state = 'running')").fetchone()[0]
        named = named_table_hashes(workspace)
        unneeded, _ = _list_known_files(workspace, set(hashes) - named)
        needed, are_all_known = _list_known_files(workspace, named)
        if not are_all_known:
            # A part may be one of a table whose list of parts cannot be read: then it stays.
            unneeded &= _files_of_one_part(workspace, set(hashes) - named)
        unneeded -= needed
        left = 0
        for path in sorted(unneeded):
            with contextlib.suppress(FileNotFoundError):
                # A running task or an import writes tables before their rows, and they might be these: then they stay.
                if busy or time.time() - path.lstat().st_mtime < SETTLED_SECONDS:
                    left += 1
                else:
                    path.unlink()
    return left
