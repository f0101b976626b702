"""Workspaces that a stranger might send, each made from a good one by one change; what they try is said by their names."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

Change = Callable[[Path, Path], None]
"""Change the workspace in a directory; the second path is a file outside, which nothing may touch."""
DEEP = "[" * 100_000
LOOP = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i"


def table_of(directory: Path) -> Path:
    return sorted((directory / "tables").iterdir())[0]


def linked(name: str) -> Change:
    def change(directory: Path, outside: Path) -> None:
        path = table_of(directory) if name == "a table" else directory / name
        target = outside.parent if path.is_dir() else outside
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(target)

    return change


def piped(name: str) -> Change:
    def change(directory: Path, _: Path) -> None:
        path = table_of(directory) if name == "a table" else directory / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        os.mkfifo(path)

    return change


def a_directory(name: str) -> Change:
    def change(directory: Path, _: Path) -> None:
        path = table_of(directory) if name == "a table" else directory / name
        path.unlink(missing_ok=True)
        path.mkdir()

    return change


def holding(name: str, content: bytes) -> Change:
    return lambda directory, _: (directory / name).write_bytes(content) and None


def sql(*statements: str) -> Change:
    """By other means than ours: without triggers and foreign keys."""

    def change(directory: Path, outside: Path) -> None:
        with contextlib.closing(sqlite3.connect(directory / "workspace.db", isolation_level=None)) as connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                connection.execute(
                    statement.replace("OUTSIDE", str(outside)), {"deep": DEEP} if ":deep" in statement else {}
                )

    return change


def replaced(table: str, query: str) -> Change:
    return sql(f"ALTER TABLE {table} RENAME TO old_{table}", f"CREATE VIEW {table} AS {query}")


def truncated(directory: Path, _: Path) -> None:
    path = directory / "workspace.db"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def another_log(directory: Path, _: Path) -> None:
    """The write-ahead log of another database, whose frames are whole."""
    other = directory.parent / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE run (id, title)")
    connection.execute("INSERT INTO run VALUES (1, 'another')")
    connection.commit()
    shutil.copy(f"{other}-wal", directory / "workspace.db-wal")
    connection.close()
    other.unlink()


WAITING = "UPDATE run SET state = 'queued' WHERE id = 2"


def hostile_workspaces() -> Iterator[tuple[str, Change]]:
    """Every one by its name."""
    for name in ("tables", "logs", "a table", "key", "policy.toml", "assessment.toml", "workspace.db", "workspace.db-wal",
                 "audit.head", "app-state.json", "workspace.db.v6.backup"):  # fmt: skip
        yield f"{name} is a link", linked(name)
    for name in ("a table", "key", "policy.toml", "assessment.toml", "workspace.db-wal", "audit.head", "app-state.json",
                 "logs/run-2.log"):  # fmt: skip
        yield f"{name} is a pipe", piped(name)
    for name in ("a table", "key", "policy.toml", "workspace.db-shm", "audit.head"):
        yield f"{name} is a directory", a_directory(name)
    yield "a policy that is no TOML", holding("policy.toml", b"\xff\xfe[[[")
    yield "a policy of 2 MB", holding("policy.toml", b"#" * 2_000_000)
    yield "a policy that nests deeply", holding("policy.toml", b"name = " + DEEP.encode())
    yield "a policy that seals by a file in here", holding("policy.toml", b'[seal]\nkey = "/proc/self/environ"\n')
    yield "a head that is no head", holding("audit.head", b"9" * 4000 + b":x")
    yield "a key of a megabyte", holding("key", bytes(1_000_000))
    yield "no database at all", holding("workspace.db", b"")
    yield "a text for a database", holding("workspace.db", b"SQLite, said the stranger\n" * 500)
    yield "half a database", truncated
    yield "a log of noise", holding("workspace.db-wal", bytes(range(256)) * 500)
    yield "a log of another database", another_log
    yield "a journal of noise", holding("workspace.db-journal", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(5000))
    for table in ("dataset SET table_sha256", "artefact SET sha256"):
        yield f"{table} to a path outside", sql(f"UPDATE {table} = '../../OUTSIDE'")
        yield f"{table} to a blob", sql(f"UPDATE {table} = x'00ff'")
    yield "a title of 64 MB", sql("UPDATE run SET title = hex(zeroblob(32000000))")
    yield "a reason of 64 MB", sql("UPDATE result SET reason = hex(zeroblob(32000000)) WHERE id = 1")
    yield "zeros in texts", sql("UPDATE run SET title = 'a' || char(0) || 'b', error = char(0)")
    for column in ("run SET seed", "run SET created", "run SET state", "run SET versions", "run SET recipe", "run SET key_public",
                   "task SET attempt", "task SET kind", "task SET seconds", "task SET item", "result SET draw", "result SET value",
                   "result SET params", "dataset SET records", "dataset SET schema", "dataset SET origin",
                   "verdict SET verdict", "artefact SET name"):  # fmt: skip
        unique = " || rowid" if column == "task SET key" else ""
        where = " WHERE name = 'draw/1'" if column.startswith("artefact") else ""
        yield f"{column} to words", sql(f"UPDATE {column} = 'words'{unique}{where}")
    for column in ("run SET versions", "result SET params", "dataset SET schema", "verdict SET verdict"):
        yield f"{column} to what nests deeply", sql(f"UPDATE {column} = :deep")
        yield f"{column} to a list", sql(f"UPDATE {column} = '[1]'")
    yield (
        "a recipe of 10 MB",
        sql("UPDATE run SET recipe = recipe || hex(zeroblob(0)) || '# ' || hex(zeroblob(5000000))"),
    )
    yield "a recipe that nests deeply", sql("UPDATE run SET recipe = 'x = ' || :deep")
    yield "tasks that need each other", sql(
        WAITING, "INSERT OR IGNORE INTO task_need SELECT a.id, b.id FROM task a, task b WHERE a.run_id = 2 AND b.run_id = 2",
        "UPDATE task SET blockers = 1 WHERE run_id = 2")  # fmt: skip
    yield "a task that is never ready", sql(WAITING, "UPDATE task SET blockers = 7 WHERE run_id = 2")
    yield "failed tasks of a run that waits", sql(WAITING, "UPDATE task SET state = 'failed' WHERE run_id = 2")
    yield "a run without tasks", sql(WAITING, "DELETE FROM task WHERE run_id = 2")
    yield (
        "tasks of a kind that is none",
        sql(WAITING, "UPDATE task SET kind = 'shell', key = 'rm ' || id WHERE run_id = 2"),
    )
    yield "numbers below zero", sql("UPDATE run SET id = -id", "UPDATE dataset SET id = -id")
    yield "a run of no dataset", sql("UPDATE run SET dataset_id = 99, project_id = 99")
    yield "tasks of no run", sql("UPDATE task SET run_id = 99 WHERE run_id = 1", "UPDATE result SET run_id = 98")
    yield "a number of the largest", sql("UPDATE run SET id = 9223372036854775807 WHERE id = 2")
    yield "a version to come", sql("PRAGMA user_version = 99")
    yield "a version below zero", sql("PRAGMA user_version = -4")
    yield "the first version again", sql("PRAGMA user_version = 1")
    yield "a version of its own, with a backup in the way", sql("PRAGMA user_version = 6")
    yield "a trigger", sql("CREATE TRIGGER t AFTER INSERT ON audit BEGIN DELETE FROM run; END")
    yield (
        "a trigger that attaches",
        sql("CREATE TRIGGER t AFTER UPDATE ON run BEGIN SELECT load_extension('OUTSIDE'); END"),
    )
    yield "runs that never end", replaced("run", LOOP)
    yield "results that never end", replaced("result", LOOP)
    yield "a log that never ends", replaced("audit", LOOP)
    yield (
        "a column that is computed",
        sql("ALTER TABLE run ADD COLUMN x TEXT GENERATED ALWAYS AS (hex(zeroblob(1000000000)))"),
    )
    yield "a table that is virtual", sql("CREATE VIRTUAL TABLE more USING fts5(a)")
    yield "an index on a function", sql("CREATE INDEX i ON run (hex(title))")
    yield "a table that is gone", sql("DROP TABLE verdict")
    yield "a column that is gone", sql("ALTER TABLE result DROP COLUMN unit")
    yield (
        "names that are reserved",
        sql("PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET sql = 'CREATE TABLE run (id)' WHERE name = 'run'"),
    )
    yield (
        "a schema that is no SQL",
        sql("PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET sql = 'nothing' WHERE name = 'task'"),
    )
    yield (
        "a release on its way to elsewhere",
        sql("INSERT INTO releasing VALUES (1, 1, 'OUTSIDE', 'OUTSIDE', '{}', '', 1, 'x', 'y', 'z')"),
    )
    yield (
        "a worker of the first process",
        sql("INSERT INTO worker VALUES ('x', 1, 0, 9e99, NULL)", "INSERT INTO worker_process VALUES ('x', 'y', 'z')"),
    )
