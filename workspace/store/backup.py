"""A copy of the database, made before a newer version changes it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path

__all__ = ["back_up"]


def back_up(connection: sqlite3.Connection, version: int) -> Path | None:
    """Copy the database to ``NAME.v<version>.backup`` beside it; returns where, None when another has changed it already.

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
            copy.execute("PRAGMA journal_mode = DELETE")
        if copied != version:
            return None
        kept = source.with_name(f"{source.name}.v{version}.backup")
        _synchronise(aside)
        aside.replace(kept)
        return kept
    finally:
        for leftover in source.parent.glob(f"{aside.name}*"):
            leftover.unlink(missing_ok=True)


def _synchronise(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
