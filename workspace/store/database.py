"""SQLite database of a workspace: connections, transactions that cannot deadlock, and migrations.

Each migration runs once, in one transaction with the record that it ran, after a copy of the database was put beside
it.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from .. import audit
from ..errors import NotAWorkspace
from ..plain_files import sync_to_disk

DATABASE = "workspace.db"
BUSY_SECONDS = 5.0
"""How long a single statement outside of a write transaction waits for a lock."""
PATIENCE_SECONDS = 120.0
"""How long a write transaction waits until it may begin, whatever other processes write meanwhile."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.002, 0.05
_COMPUTED_OBJECT = """SELECT name FROM sqlite_schema WHERE type = 'view' OR sql LIKE '%VIRTUAL TABLE%' OR sql LIKE '%GENERATED%'
               OR (type = 'table' AND sql LIKE '%) AS (%') LIMIT 1"""
_SQLITE_TYPES: Mapping[str, str] = {"INTEGER": "integer", "REAL": "real", "TEXT": "text", "BLOB": "blob"}
UNCHECKED_TABLE = "result"
"""The table whose rows are checked where they are read: it is the only one that may be large."""
_ANY_NUMBER = frozenset({("run", "seed"), ("task", "lease_until"), ("worker", "heartbeat")})
"""Columns without a range: a seed may be any number, and whoever reads a lease or a heartbeat bounds it."""
_ANY_REAL = frozenset({"point", "value"})
Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: list[Migration] = []


def open_database(path: Path) -> sqlite3.Connection:
    """Open a connection in autocommit mode with full synchronisation, foreign keys and a timeout of five seconds.

    Where nothing may be written and no process is writing (there is no log), the database is only read.
    """
    # A database in WAL mode makes a file beside it even to be read, which a read-only directory refuses; immutable does
    # not.
    still = not os.access(path.parent, os.W_OK) and path.is_file() and not path.with_name(f"{path.name}-wal").exists()
    name = f"{path.resolve().as_uri()}?immutable=1" if still else str(path)
    connection = sqlite3.connect(name, isolation_level=None, timeout=BUSY_SECONDS, uri=still)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open a connection to another user's database that never changes it."""
    logged = path.with_name(f"{path.name}-wal")
    # immutable ignores the log: right only while it is empty.
    still = "mode=ro" if logged.exists() and logged.stat().st_size else "immutable=1"
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?{still}", isolation_level=None, timeout=BUSY_SECONDS, uri=True
    )
    connection.row_factory = sqlite3.Row
    # Its schema is somebody else's code: views and triggers may call functions.
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def check_nothing_computed(connection: sqlite3.Connection) -> None:
    """Raise NotAWorkspace where the database has views, virtual tables or generated columns."""
    # Reading what somebody else made computed may never end.
    if row := connection.execute(_COMPUTED_OBJECT).fetchone():
        raise NotAWorkspace(
            f'"{row[0]}" in its database is computed and not stored, so Sfumato did not write it; the workspace is left unchanged'
        )


LARGEST_NUMBER, LATEST_TIME = 1 << 53, 253_402_300_799
"""The largest number of anything, and the last second of the year 9999."""


@lru_cache(maxsize=1)
def _wrong_value_conditions(version: int) -> Mapping[str, Mapping[str, str]]:
    """Return by table and column the SQL condition of a value that no version of Sfumato writes."""
    # From a new database: the schema of the one that is checked may be what was changed.
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        migrate_database(made)
        tables = [row[0] for row in made.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {
            table: {
                row[1]: _wrong_value_condition(table, *row[1:6]) for row in made.execute(f"PRAGMA table_info({table})")
            }
            for table in tables
            if table != UNCHECKED_TABLE
        }


def _wrong_value_condition(table: str, column: str, kind: str, not_null: int, _: object, key: int) -> str:
    """Return the SQL condition of a value of the wrong type or range in a column."""
    name = f'"{column}"'
    wrong = f"typeof({name}) <> '{_SQLITE_TYPES[kind]}'"
    if (table, column) not in _ANY_NUMBER and column not in _ANY_REAL and kind in ("INTEGER", "REAL"):
        wrong += f" OR {name} NOT BETWEEN 0 AND {LARGEST_NUMBER if kind == 'INTEGER' else LATEST_TIME}"
    return f"({wrong})" if not_null or key else f"({name} IS NOT NULL AND ({wrong}))"


def find_wrong_value(connection: sqlite3.Connection) -> str:
    """Return the column and table of a value that no version of Sfumato writes; empty if all are right.

    SQLite keeps whatever a column was given. Raises sqlite3.Error where a table or column is missing.
    """
    # One query for each table, and the columns singly only where it finds something: this is done each time a workspace
    # opens.
    for table, rules in _wrong_value_conditions(len(MIGRATIONS)).items():
        if connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {' OR '.join(rules.values())})").fetchone()[
            0
        ]:
            columns = (
                column
                for column, rule in rules.items()
                if connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {rule})").fetchone()[0]
            )
            return f"{next(columns, '')} of the table {table}"
    return ""


def set_wal(connection: sqlite3.Connection) -> None:
    """Set the database to use a write-ahead log.

    SQLite does not wait for the lock that this needs, so we do: others may be making the same workspace.
    """
    _execute_when_unlocked(connection, "PRAGMA journal_mode = WAL")


def begin_write(connection: sqlite3.Connection) -> None:
    """Begin a write transaction, as soon as no other process is in one. Raises sqlite3.OperationalError after PATIENCE_SECONDS."""
    # A deferred transaction that has read fails at its first write where another has written meanwhile, without
    # waiting.
    _execute_when_unlocked(connection, "BEGIN IMMEDIATE")


def _execute_when_unlocked(connection: sqlite3.Connection, statement: str) -> None:
    """Execute a statement, again and again while another process holds the lock that it needs.

    Raises sqlite3.OperationalError after PATIENCE_SECONDS.
    """
    deadline, pause = time.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE_SECONDS
    timeout = int(connection.execute("PRAGMA busy_timeout").fetchone()[0])
    # SQLite's own waiting polls at fixed times, so that of many processes some never get their turn, and no signal ends it.
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.execute(statement)
            except sqlite3.OperationalError as error:
                if not is_lock_error(error) or time.monotonic() > deadline:
                    raise
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  (a pause is no secret)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            else:
                return
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout}")


@contextmanager
def immediate_transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the block in a write transaction, rolled back on any error."""
    try:
        begin_write(connection)
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_lock_error(error: sqlite3.Error) -> bool:
    """Return whether another connection held the lock for longer than the timeout, so that trying again may help."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def back_up_database(connection: sqlite3.Connection, version: int) -> Path | None:
    """Copy the database to ``NAME.v<version>.backup`` beside it, and return the path; None when another process has
    migrated it.

    Made with SQLite's own backup, so it is whole whatever others write meanwhile.
    """
    source = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    handle, name = tempfile.mkstemp(dir=source.parent, prefix=f"{source.name}.backing-up-")
    os.close(handle)
    aside = Path(name)
    try:
        with contextlib.closing(sqlite3.connect(aside)) as copy:
            connection.backup(copy)
            copied = int(copy.execute("PRAGMA user_version").fetchone()[0])
            # One file: a copy in WAL mode would have its last pages in another.
            copy.execute("PRAGMA journal_mode = DELETE")
        if copied != version:
            return None
        kept = source.with_name(f"{source.name}.v{version}.backup")
        sync_to_disk(aside)
        aside.replace(kept)
        return kept
    finally:
        for leftover in source.parent.glob(f"{aside.name}*"):
            leftover.unlink(missing_ok=True)


def register_migration(func: Migration) -> Migration:
    """Register the next migration; their order is that of this file, and never changes."""
    MIGRATIONS.append(func)
    return func


def database_version(connection: sqlite3.Connection) -> int:
    """Return the number of migrations that the database has had."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_older_version(connection: sqlite3.Connection) -> bool:
    """Return whether a database is of an earlier version than this one."""
    return database_version(connection) < len(MIGRATIONS)


def migrate_database(
    connection: sqlite3.Connection, *, look: bool = False, begin_seals: Migration | None = None
) -> None:
    """Bring a database up to this version; an older one is copied first.

    ``begin_seals`` is called in the transaction that makes the tables of seals, and nowhere else: seals begin once. Raises
    NotAWorkspace when it comes from a newer one, or from an older one that we may only ``look`` at.
    """
    version = database_version(connection)
    if version > len(MIGRATIONS):
        raise NotAWorkspace(
            f"the workspace is of version {version}, this Sfumato knows up to {len(MIGRATIONS)}; use a newer Sfumato"
        )
    if look and version < len(MIGRATIONS):
        raise NotAWorkspace(
            f"the workspace belongs to another user and is of version {version}, not {len(MIGRATIONS)}: it cannot be read "
            "before its owner updates it by opening it"
        )
    if 0 < version < len(MIGRATIONS):
        back_up_database(connection, version)
    for number, step in enumerate(MIGRATIONS, start=1):
        if number > database_version(connection):
            with immediate_transaction(connection):
                # Asked again under the lock: another process may have migrated it meanwhile.
                if number > database_version(connection):
                    step(connection)
                    if step is seals and begin_seals is not None:
                        begin_seals(connection)
                    connection.execute(
                        "INSERT INTO migration (number, name, applied) VALUES (?, ?, ?)",
                        (number, step.__name__, datetime.now(UTC).isoformat(timespec="seconds")),
                    )
                    connection.execute(f"PRAGMA user_version = {number}")


def _execute_script(connection: sqlite3.Connection, text: str) -> None:
    """Execute statements that semicolons separate."""
    # executescript would commit the transaction of the migration.
    for statement in text.split(";"):
        if statement.strip():
            connection.execute(statement)


@register_migration
def first_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of projects, datasets, runs, tasks, and what tasks leave behind."""
    _execute_script(
        connection,
        """
        CREATE TABLE migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied TEXT NOT NULL);
        CREATE TABLE project (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created TEXT NOT NULL);
        CREATE TABLE dataset (
            id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES project, name TEXT NOT NULL,
            origin TEXT NOT NULL, source_sha256 TEXT NOT NULL, table_sha256 TEXT NOT NULL, schema TEXT NOT NULL,
            records INTEGER NOT NULL, dropped INTEGER NOT NULL, created TEXT NOT NULL);
        CREATE TABLE run (
            id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES project,
            dataset_id INTEGER NOT NULL REFERENCES dataset, title TEXT NOT NULL, recipe TEXT NOT NULL,
            recipe_sha256 TEXT NOT NULL, seed INTEGER NOT NULL, versions TEXT NOT NULL, state TEXT NOT NULL,
            created REAL NOT NULL, started REAL, finished REAL, error TEXT NOT NULL DEFAULT '');
        CREATE TABLE task (
            id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, key TEXT NOT NULL,
            kind TEXT NOT NULL, item INTEGER NOT NULL, draw INTEGER, point REAL, state TEXT NOT NULL,
            blockers INTEGER NOT NULL, attempt INTEGER NOT NULL DEFAULT 0, worker TEXT, lease_until REAL,
            done INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0, what TEXT NOT NULL DEFAULT '',
            seconds REAL, peak_bytes INTEGER, error TEXT NOT NULL DEFAULT '', UNIQUE (run_id, key));
        CREATE INDEX task_claim ON task (state, blockers, id);
        CREATE TABLE task_need (
            task_id INTEGER NOT NULL REFERENCES task ON DELETE CASCADE,
            needs_id INTEGER NOT NULL REFERENCES task ON DELETE CASCADE, PRIMARY KEY (needs_id, task_id)) WITHOUT ROWID;
        CREATE TABLE artefact (
            run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, name TEXT NOT NULL, sha256 TEXT NOT NULL,
            PRIMARY KEY (run_id, name)) WITHOUT ROWID;
        CREATE TABLE result (
            id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
            task_id INTEGER NOT NULL REFERENCES task ON DELETE CASCADE, family TEXT NOT NULL, method TEXT NOT NULL,
            measure TEXT NOT NULL, target TEXT NOT NULL, dataset TEXT NOT NULL, draw INTEGER, level REAL, value REAL,
            lower REAL, upper REAL, baseline REAL, unit TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
            params TEXT NOT NULL);
        CREATE INDEX result_of_run ON result (run_id, task_id);
        CREATE TABLE verdict (
            run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, position INTEGER NOT NULL, verdict TEXT NOT NULL,
            PRIMARY KEY (run_id, position)) WITHOUT ROWID;
        CREATE TABLE diagnostic (
            id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, target TEXT NOT NULL,
            name TEXT NOT NULL, parameter TEXT NOT NULL, value REAL, rule TEXT NOT NULL, passed INTEGER);
        CREATE TABLE worker (
            id TEXT PRIMARY KEY, pid INTEGER NOT NULL, started REAL NOT NULL, heartbeat REAL NOT NULL, stopped REAL)
        """,
    )


@register_migration
def companion_runs(connection: sqlite3.Connection) -> None:
    """Create the table of runs that were entered beside another."""
    _execute_script(
        connection,
        """
        CREATE TABLE companion (
            run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, position INTEGER NOT NULL,
            companion_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
            PRIMARY KEY (run_id, position)) WITHOUT ROWID
        """,
    )


@register_migration
def audit_log(connection: sqlite3.Connection) -> None:
    """Create the audit log with its head, the process of each worker, and the start of each task."""
    _execute_script(
        connection,
        """
        CREATE TABLE audit (
            number INTEGER PRIMARY KEY, time TEXT NOT NULL, act TEXT NOT NULL, subject TEXT NOT NULL,
            details TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL);
        CREATE TABLE audit_head (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
        INSERT INTO audit_head VALUES (1, 0, '');
        CREATE TABLE worker_process (
            worker_id TEXT PRIMARY KEY REFERENCES worker ON DELETE CASCADE, host TEXT NOT NULL, birth TEXT NOT NULL);
        ALTER TABLE task ADD COLUMN started REAL
        """,
    )
    for act in ("UPDATE", "DELETE"):
        connection.execute(
            f"""CREATE TRIGGER audit_keeps_{act} BEFORE {act} ON audit
                BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END"""
        )
    runs = int(connection.execute("SELECT count(*) FROM run").fetchone()[0])
    audit.append_act(connection, audit.AuditAct.WORKSPACE_MADE, "workspace", runs_before=runs)


@register_migration
def plans(connection: sqlite3.Connection) -> None:
    """Create the tables of each project's draft plan, and of the records that an import left out for missing values, by
    column.
    """
    _execute_script(
        connection,
        """
        CREATE TABLE draft (
            project_id INTEGER PRIMARY KEY REFERENCES project ON DELETE CASCADE,
            dataset_id INTEGER NOT NULL REFERENCES dataset ON DELETE CASCADE,
            drawn_from TEXT NOT NULL, toml TEXT NOT NULL, revision INTEGER NOT NULL);
        CREATE TABLE missing (
            dataset_id INTEGER NOT NULL REFERENCES dataset ON DELETE CASCADE, name TEXT NOT NULL,
            records INTEGER NOT NULL, of INTEGER NOT NULL, PRIMARY KEY (dataset_id, name)) WITHOUT ROWID
        """,
    )


@register_migration
def deleted_runs(connection: sqlite3.Connection) -> None:
    """Create the table of the numbers of deleted runs, so that none is given again."""
    _execute_script(connection, "CREATE TABLE deleted_run (id INTEGER PRIMARY KEY)")


@register_migration
def keys(connection: sqlite3.Connection) -> None:
    """Create the fingerprint of the workspace's key, empty until it has one, and of the key of each run."""
    # The defaults: runs of earlier versions had no secret key.
    _execute_script(
        connection,
        """
        CREATE TABLE workspace_key (id INTEGER PRIMARY KEY CHECK (id = 1), fingerprint TEXT NOT NULL);
        INSERT INTO workspace_key VALUES (1, '');
        ALTER TABLE run ADD COLUMN key_public INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE run ADD COLUMN key_fingerprint TEXT NOT NULL DEFAULT 'public'
        """,
    )


@register_migration
def seals(connection: sqlite3.Connection) -> None:
    """Create the seals of the audit log's rows and of the parts of each run."""
    _execute_script(
        connection,
        """
        CREATE TABLE audit_seal (number INTEGER PRIMARY KEY, key TEXT NOT NULL, seal TEXT NOT NULL);
        CREATE TABLE seal (
            run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, part TEXT NOT NULL, key TEXT NOT NULL,
            seal BLOB NOT NULL, rows BLOB, PRIMARY KEY (run_id, part)) WITHOUT ROWID
        """,
    )


@register_migration
def releases_in_progress(connection: sqlite3.Connection) -> None:
    """Create the table of releases that have begun and not ended, each with the process that writes it."""
    _execute_script(
        connection,
        """
        CREATE TABLE releasing (
            number INTEGER PRIMARY KEY, run_id INTEGER NOT NULL, aside TEXT NOT NULL, target TEXT NOT NULL, details TEXT NOT NULL,
            manifest_sha256 TEXT NOT NULL, pid INTEGER NOT NULL, host TEXT NOT NULL, birth TEXT NOT NULL, seal TEXT NOT NULL)
        """,
    )


@register_migration
def run_names(connection: sqlite3.Connection) -> None:
    """Create the table of names and notes of runs; ``folded`` is the compared form of a name, null without one."""
    _execute_script(
        connection,
        """
        CREATE TABLE run_name (
            run_id INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE, name TEXT NOT NULL, folded TEXT UNIQUE,
            note TEXT NOT NULL)
        """,
    )


@register_migration
def tombstones(connection: sqlite3.Connection) -> None:
    """Create the table of tombstones of released and deleted runs, as JSON, and of the tables that they name."""
    _execute_script(
        connection,
        """
        CREATE TABLE tombstone (run_id INTEGER PRIMARY KEY, content TEXT NOT NULL);
        CREATE TABLE tombstone_table (
            run_id INTEGER NOT NULL REFERENCES tombstone, sha256 TEXT NOT NULL, PRIMARY KEY (run_id, sha256)) WITHOUT ROWID
        """,
    )


@register_migration
def searches(connection: sqlite3.Connection) -> None:
    """Create the tables of searches for a plan and of their looks; ``reason`` is why a plan could not be carried out."""
    _execute_script(
        connection,
        """
        CREATE TABLE search (
            id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES project ON DELETE CASCADE, recipe TEXT NOT NULL,
            records INTEGER NOT NULL, besides TEXT NOT NULL, created REAL NOT NULL);
        CREATE TABLE look (
            search_id INTEGER NOT NULL REFERENCES search ON DELETE CASCADE, number INTEGER NOT NULL,
            run_id INTEGER REFERENCES run ON DELETE CASCADE, blocks TEXT, reason TEXT NOT NULL,
            PRIMARY KEY (search_id, number)) WITHOUT ROWID
        """,
    )


@register_migration
def dropped_groups(connection: sqlite3.Connection) -> None:
    """Create the table of the groups of which most records were dropped for missing values, beyond chance."""
    _execute_script(
        connection,
        """
        CREATE TABLE dropped_group (
            dataset_id INTEGER PRIMARY KEY REFERENCES dataset ON DELETE CASCADE, variable TEXT NOT NULL, level TEXT NOT NULL,
            records INTEGER NOT NULL, lacking INTEGER NOT NULL, other_records INTEGER NOT NULL,
            other_lacking INTEGER NOT NULL, p REAL NOT NULL)
        """,
    )
