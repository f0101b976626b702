"""The words that name runs, for a shell that completes a command: read without a lock, a migration or anything written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from ..errors import WorkspaceError
from ..plain_files import check_layout
from ..store.database import DATABASE
from ..store.run_names import NEWEST, fold

MOST = 200
LONGEST = 200
LONGEST_RECIPE = 1 << 20
MOST_STEPS = 2_000_000
"""Of SQLite's machine: some milliseconds."""


@contextmanager
def _reading(directory: Path) -> Iterator[sqlite3.Connection]:
    check_layout(directory)
    file = directory / DATABASE
    with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, timeout=0.2)) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.set_progress_handler(lambda: 1, MOST_STEPS)  # a table may be a stranger's query without an end
        yield connection


def run_words(directory: Path) -> list[tuple[str, str]]:
    """The names and numbers of the newest runs, each with its recipe's title; empty where there is no workspace that can be read."""
    asked = f"""SELECT CAST(run.id AS TEXT), substr(CAST(title AS TEXT), 1, {LONGEST}) FROM run ORDER BY id DESC LIMIT {MOST}"""
    names = f"SELECT substr(CAST(name AS TEXT), 1, {LONGEST}), CAST(run_id AS TEXT) FROM run_name ORDER BY run_id DESC LIMIT {MOST}"
    try:
        with _reading(directory) as connection:
            numbers = [(str(word), str(said)) for word, said in connection.execute(asked)]
            try:
                named = [(str(word), f"run {run}") for word, run in connection.execute(names) if word]
            except sqlite3.Error:  # a workspace of an earlier version has no names
                named = []
            return [*numbers, *named]
    except (sqlite3.Error, WorkspaceError, OSError, ValueError):
        return []


def recipe_of(directory: Path, word: str) -> str:
    """The text of the recipe of a run that a word names; empty where there is none."""
    of = f"SELECT substr(CAST(recipe AS TEXT), 1, {LONGEST_RECIPE}) FROM run"
    try:
        with _reading(directory) as connection:
            if word == NEWEST:
                row = connection.execute(f"{of} ORDER BY id DESC LIMIT 1").fetchone()
            elif word.isdecimal():
                row = connection.execute(f"{of} WHERE id = ?", (int(word),)).fetchone()
            else:
                row = connection.execute(
                    f"{of} WHERE id = (SELECT run_id FROM run_name WHERE folded = ?)", (fold(word),)
                ).fetchone()
            return "" if row is None else str(row[0])
    except (sqlite3.Error, WorkspaceError, OSError, ValueError, OverflowError):
        return ""
