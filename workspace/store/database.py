"""The workspace's SQLite file: how it is opened, and transactions that cannot deadlock."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["DATABASE", "connect", "is_busy", "set_wal", "transaction"]

DATABASE = "workspace.db"
BUSY_SECONDS = 5.0


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode: WAL, full synchronisation, foreign keys, five seconds of patience.

    Where nothing may be written and nobody is writing (there is no log), the database is only read.
    """
    still = not os.access(path.parent, os.W_OK) and path.is_file() and not path.with_name(f"{path.name}-wal").exists()
    name = f"{path.resolve().as_uri()}?immutable=1" if still else str(path)
    connection = sqlite3.connect(name, isolation_level=None, timeout=BUSY_SECONDS, uri=still)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def set_wal(connection: sqlite3.Connection) -> None:
    """Make the database one with a write-ahead log, once and for all.

    SQLite does not wait for the lock that this needs, so we do: others may be making the same workspace.
    """
    patience = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > patience:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A write transaction: takes the lock at once (a deferred one fails when another wrote), rolls back on error."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection held the lock for longer than our patience: trying again may help."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
