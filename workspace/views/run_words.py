"""Names and numbers of runs for shell completion, read without a lock, a migration or anything written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from ..errors import WorkspaceError
from ..plain_files import check_layout
from ..store.database import DATABASE
from ..store.run_names import NEWEST_RUN, fold_name

MOST_RUNS = 200
LONGEST_NAME = 200
LONGEST_RECIPE = 1 << 20
MOST_STEPS = 2_000_000
"""Most instructions of SQLite's virtual machine for a query: some milliseconds."""


@contextmanager
def _open_read_only(directory: Path) -> Iterator[sqlite3.Connection]:
    """Open the database of a workspace for reading within the block, with limits."""
    check_layout(directory)
    file = directory / DATABASE
    # a shell that completes a word cannot wait for a lock
    with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, timeout=0.2)) as connection:
        # the database may be a stranger's, whose views and triggers could call functions
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.set_progress_handler(lambda: 1, MOST_STEPS)  # a table may be a stranger's query without an end
        yield connection


def run_completions(directory: Path) -> list[tuple[str, str]]:
    """Return the names and numbers of the newest runs, each with its title; empty where no workspace can be read."""
    # SQLite's columns may hold values of any type and length, whatever the schema says
    asked = f"""SELECT CAST(run.id AS TEXT), substr(CAST(title AS TEXT), 1, {LONGEST_NAME}) FROM run ORDER BY id DESC LIMIT {MOST_RUNS}"""
    names = f"SELECT substr(CAST(name AS TEXT), 1, {LONGEST_NAME}), CAST(run_id AS TEXT) FROM run_name ORDER BY run_id DESC LIMIT {MOST_RUNS}"
    try:
        with _open_read_only(directory) as connection:
            numbers = [(str(word), str(said)) for word, said in connection.execute(asked)]
            try:
                named = [(str(word), f"run {run}") for word, run in connection.execute(names) if word]
            except sqlite3.Error:  # a workspace of an earlier version has no names
                named = []
            return [*numbers, *named]
    except (sqlite3.Error, WorkspaceError, OSError, ValueError):
        return []


def recipe_text_of_run(directory: Path, word: str) -> str:
    """Return the recipe's text of the run with this name or number; empty if there is no such run."""
    of = f"SELECT substr(CAST(recipe AS TEXT), 1, {LONGEST_RECIPE}) FROM run"
    try:
        with _open_read_only(directory) as connection:
            if word == NEWEST_RUN:
                row = connection.execute(f"{of} ORDER BY id DESC LIMIT 1").fetchone()
            elif word.isdecimal():
                row = connection.execute(f"{of} WHERE id = ?", (int(word),)).fetchone()
            else:
                row = connection.execute(
                    f"{of} WHERE id = (SELECT run_id FROM run_name WHERE folded = ?)", (fold_name(word),)
                ).fetchone()
            return "" if row is None else str(row[0])
    except (sqlite3.Error, WorkspaceError, OSError, ValueError, OverflowError):
        return ""
