"""The workspace's SQLite file: how it is opened, and transactions that cannot deadlock."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["DATABASE", "connect", "transaction"]

DATABASE = "workspace.db"


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode: WAL, full synchronisation, foreign keys, five seconds of patience."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=5.0)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A write transaction: takes the lock at once (a deferred one fails when another wrote), rolls back on error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
