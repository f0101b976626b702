"""How the database is opened and written."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from sfumato.workspace.audit import AuditAct, audit_rows, chain_problem, read_head
from sfumato.workspace.store import database
from sfumato.workspace.store.database import immediate_transaction, is_lock_error, open_database
from sfumato.workspace.store.workspace import Workspace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(open_database(tmp_path / "some.db")) as connection:
        connection.execute("CREATE TABLE number (value INTEGER UNIQUE)")
    return tmp_path / "some.db"


def values(connection: sqlite3.Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT value FROM number ORDER BY value")]


def test_a_transaction_is_written_whole(path: Path) -> None:
    with closing(open_database(path)) as writer, closing(open_database(path)) as reader:
        with immediate_transaction(writer):
            writer.execute("INSERT INTO number VALUES (1)")
            assert values(reader) == []
        assert values(reader) == [1]


def test_a_transaction_that_fails_leaves_nothing_and_the_next_one_works(path: Path) -> None:
    with closing(open_database(path)) as connection:
        with pytest.raises(sqlite3.IntegrityError), immediate_transaction(connection):
            connection.executemany("INSERT INTO number VALUES (?)", [(1,), (1,)])
        with immediate_transaction(connection):
            connection.execute("INSERT INTO number VALUES (2)")
        assert values(connection) == [2]


def test_a_commit_that_fails_is_rolled_back(path: Path) -> None:
    with closing(open_database(path)) as connection:
        connection.execute("CREATE TABLE child (value REFERENCES number (value) DEFERRABLE INITIALLY DEFERRED)")
        with pytest.raises(sqlite3.IntegrityError), immediate_transaction(connection):
            connection.execute("INSERT INTO child VALUES (99)")
        assert not connection.in_transaction
        with immediate_transaction(connection):
            connection.execute("INSERT INTO number VALUES (3)")


def test_a_signal_in_the_midst_of_a_transaction_leaves_none_open(path: Path) -> None:
    with closing(open_database(path)) as connection:
        for when in range(40):
            with pytest.raises(SystemExit), ends_after(when), immediate_transaction(connection):
                connection.execute("INSERT INTO number VALUES (?)", (when,))
            assert not connection.in_transaction
        assert set(values(connection)) <= set(range(40))


@contextmanager
def ends_after(lines: int) -> Iterator[None]:
    """SystemExit at the n-th line that is executed in the database's module, or after the block: as a signal may come."""
    left = lines

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith("workspace/store/database.py"):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise SystemExit(0)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
    raise SystemExit(0)


def test_foreign_keys_are_held_and_every_commit_reaches_the_disk(path: Path) -> None:
    with closing(open_database(path)) as connection:
        assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_a_lock_held_by_another_is_told_from_other_errors(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.01)
    with closing(open_database(path)) as holder, closing(open_database(path)) as waiting:
        with (
            immediate_transaction(holder),
            pytest.raises(sqlite3.OperationalError) as locked,
            immediate_transaction(waiting),
        ):
            pass
        with pytest.raises(sqlite3.OperationalError) as absent:
            waiting.execute("SELECT * FROM nothing")
    assert is_lock_error(locked.value)
    assert not is_lock_error(absent.value)


WRITER = """
import sys
from pathlib import Path
from sfumato.workspace.audit import AuditAct, append_act
from sfumato.workspace.store import database
from sfumato.workspace.store.workspace import Workspace

directory, name, times, patience = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
if patience:
    database.PATIENCE_SECONDS = float(patience)
for number in range(times):
    with Workspace.open(directory) as workspace, workspace.write_transaction() as connection:
        append_act(connection, AuditAct.FILES_REMOVED, f"{name} {number}")
"""
"""What each of several processes does: it opens a workspace and writes in it, many times."""


def run_writers(directory: Path, writers: int, times: int, patience: str) -> list[int]:
    """Start processes that write in one workspace, and return their exit statuses."""
    command = [sys.executable, "-c", WRITER, str(directory)]
    running = [
        subprocess.Popen([*command, f"writer {i}", str(times), patience], stderr=subprocess.DEVNULL)
        for i in range(writers)
    ]
    return [process.wait() for process in running]


@pytest.mark.slow
def test_many_processes_write_and_none_gives_up_or_loses_a_row(tmp_path: Path) -> None:
    directory = tmp_path / "workspace"
    Workspace.create(directory).close()
    assert run_writers(directory, 8, 12, "") == [0] * 8
    with Workspace.open(directory) as workspace:
        rows = audit_rows(workspace.connection)
        assert chain_problem(rows, read_head(workspace.connection)) == ""
        written = Counter(row.subject.rpartition(" ")[0] for row in rows if row.act == AuditAct.FILES_REMOVED)
    assert written == {f"writer {i}": 12 for i in range(8)}
    assert any(run_writers(directory, 8, 12, "0")), "the control: without patience one of them gives up"


def test_a_writer_outwaits_a_lock_that_a_single_statement_does_not(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    with closing(open_database(path)) as holder, closing(open_database(path)) as waiting:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            waiting.execute("INSERT INTO number VALUES (1)")
        # In a thread: a connection stays in the one that opened it.
        writer = threading.Thread(target=write_number, args=(path,))
        writer.start()
        writer.join(0.1)
        assert writer.is_alive()
        holder.execute("COMMIT")
        writer.join(10)
        assert values(holder) == [7]
        assert waiting.execute("PRAGMA busy_timeout").fetchone()[0] == 10


def write_number(path: Path) -> None:
    """Write a number in a transaction."""
    with closing(open_database(path)) as connection, immediate_transaction(connection):
        connection.execute("INSERT INTO number VALUES (7)")
