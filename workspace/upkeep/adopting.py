"""Adoption of another account's workspace: what can be verified is copied into a new one, which belongs to this user."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from ..audit import AuditAct, append_act, read_head, verify_audit_log, write_head_file
from ..errors import BrokenHistory, DamagedTable, NotAWorkspace
from ..plain_files import ensure_directory, is_hash, read_plain
from ..store.database import DATABASE, immediate_transaction, open_database, set_wal
from ..store.heads import HeadsFolder, store_head_outside
from ..store.workspace import Workspace, begin_seals
from .maintenance import named_table_hashes


@dataclass(frozen=True, slots=True)
class AdoptionResult:
    """Copy of a workspace that was made.

    owner: account that owns the original
    runs, tables: their numbers
    stopped: runs that had not ended and were interrupted
    """

    owner: str
    runs: int
    tables: int
    stopped: int


def adopt_workspace(directory: Path, target: Path) -> AdoptionResult:
    """Copy a workspace into a new directory as this user's own, with a row in its audit log that says so.

    The database must be intact, its audit log whole, and every table as it was stored. Logs, the key and the app's
    state are not copied, and unfinished runs are interrupted. Raises NotAWorkspace, StrangeFile, DamagedTable, and
    BrokenHistory where the history differs from the one recorded outside; then nothing is left in ``target``.
    """
    if target.exists() or target.is_symlink():
        raise NotAWorkspace(f'"{target}" exists already; name a new directory')
    # Unchecked: a workspace that has lost its seals is copied too, since the runs of a copy have none.
    with Workspace.open(directory, read_only=True, unchecked=True) as workspace:
        if not workspace.owner and (wrong := workspace.history_problem()):
            raise BrokenHistory(wrong)
        _check_adoptable(workspace)
        try:
            target.mkdir(mode=0o700)
        except OSError as error:
            raise NotAWorkspace(f'"{target}" cannot be made: {error.strerror}') from None
        try:
            tables = _copy_tables(workspace, target)
            aside = target / f"{DATABASE}.making"
            os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with contextlib.closing(open_database(aside)) as copy:
                workspace.connection.backup(copy)
                set_wal(copy)
                runs, stopped = _change_ownership(copy, target, workspace.owner)
                store_head_outside(target, copy, read_head(copy), [HeadsFolder()], replace=True)
            # The database gets its name last: a copy that was cut off is no workspace.
            aside.replace(target / DATABASE)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        return AdoptionResult(workspace.owner, runs, tables, stopped)


def _check_adoptable(workspace: Workspace) -> None:
    """Raise NotAWorkspace where the database is damaged, acts by itself, or its audit log was changed."""
    try:
        answer = str(workspace.connection.execute("PRAGMA integrity_check").fetchone()[0])
        known = workspace.connection.execute("SELECT name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view')")
        # A trigger of another's would run with this account's rights.
        strange = [str(row[0]) for row in known if row[0] not in ("audit_keeps_UPDATE", "audit_keeps_DELETE")]
        _, wrong = verify_audit_log(workspace.connection, workspace.directory)
    except (sqlite3.DatabaseError, TypeError, ValueError) as error:
        answer, strange, wrong = type(error).__name__, [], ""
    if answer != "ok":
        raise NotAWorkspace(f"the database of {workspace.directory} is damaged ({answer.splitlines()[0]}); not adopted")
    if strange:
        raise NotAWorkspace(f"the database of {workspace.directory} acts by itself (trigger or view); not adopted")
    if wrong:
        raise NotAWorkspace(f"the audit log of {workspace.directory} was changed: {wrong}; not adopted")


def _copy_tables(workspace: Workspace, target: Path) -> int:
    """Copy the tables that the database names and return how many. Raises DamagedTable."""
    known = sorted(map(str, named_table_hashes(workspace)))
    # A name with a path in it would make us read and write files elsewhere.
    if not all(map(is_hash, known)):
        raise DamagedTable("the database names a table by something else than the SHA-256 of its bytes; not adopted")
    directory = ensure_directory(target, "tables")
    for sha256 in known:
        workspace.tables.verify_table(sha256)
    # Equal parts of several tables are one file.
    for source in sorted({path for sha256 in known for path in workspace.tables.files_of(sha256)}):
        with os.fdopen(os.open(directory / source.name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(read_plain(source))
            file.flush()
            os.fsync(file.fileno())
    return len(known)


def _change_ownership(copy: sqlite3.Connection, target: Path, owner: str) -> tuple[int, int]:
    """Make the copied database this user's; return the number of runs and of those that were interrupted."""
    with immediate_transaction(copy):
        now = time.time()
        copy.execute("UPDATE task SET state = 'waiting', worker = NULL, lease_until = NULL WHERE state = 'running'")
        stopped = copy.execute(
            "UPDATE run SET state = 'interrupted', finished = ? WHERE state IN ('queued', 'running')", (now,)
        ).rowcount
        for table in ("seal", "audit_seal"):
            copy.execute(f"DELETE FROM {table}")  # by the other's key, which proves nothing here
        copy.execute("DELETE FROM worker_process")
        copy.execute("DELETE FROM worker")
        runs = int(copy.execute("SELECT count(*) FROM run").fetchone()[0])
        append_act(copy, AuditAct.WORKSPACE_ADOPTED, "workspace", owner=owner, runs=runs, runs_interrupted=stopped)
        begin_seals(copy, target)  # with a key of its own: the other's stays where it is
    write_head_file(target, read_head(copy))
    return runs, stopped
