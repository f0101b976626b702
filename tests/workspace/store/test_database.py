"""How the database is opened and written."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from sfumato.workspace.store.database import immediate_transaction, is_lock_error, open_database


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


def test_a_lock_held_by_another_is_told_from_other_errors(path: Path) -> None:
    with closing(open_database(path)) as holder, closing(open_database(path)) as waiting:
        waiting.execute("PRAGMA busy_timeout = 1")
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
