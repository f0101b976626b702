"""Searches for a plan that may be released, and the runs of their looks. What a search found follows from these runs."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..audit import AuditAct, append_act
from ..errors import NotFound
from .workspace import Workspace

Item = TypeVar("Item")
MAX_PAUSE_SECONDS = 60.0
"""Longest pause between two tasks, in seconds, that counts as work of a search: it prepares looks and applies the gate then."""


@dataclass(frozen=True, slots=True)
class StoredSearch:
    """A search for a plan, as the database has it.

    id: number
    project_id: its project
    recipe_toml: plan that it began with
    records: number of records that releases are made of
    offered: steps that methods offered for it (``plan.alternatives``)
    created: time of its entry
    """

    id: int
    project_id: int
    recipe_toml: str
    records: int
    offered: tuple[Mapping[str, Any], ...]
    created: float


@dataclass(frozen=True, slots=True)
class StoredLook:
    """A look of a search, as the database has it.

    number: number of the look
    run_id: its run, None where the plan cannot be carried out
    blocks: checks of the gate that block, None before the gate was applied
    reason: why the plan cannot be carried out
    """

    number: int
    run_id: int | None
    blocks: tuple[str, ...] | None
    reason: str


def enter_search(
    workspace: Workspace, project: str, recipe_toml: str, records: int, offered: Sequence[Mapping[str, Any]]
) -> int:
    """Enter a search in a project, made if need be, and return its number."""
    with workspace.write_transaction() as connection:
        project_id = workspace.ensure_project(project)
        cursor = connection.execute(
            "INSERT INTO search (project_id, recipe, records, besides, created) VALUES (?, ?, ?, ?, ?)",
            (project_id, recipe_toml, records, json.dumps(list(offered)), time.time()),
        )
        search_id = int(cursor.lastrowid or 0)
        append_act(connection, AuditAct.SEARCH_ENTERED, f"search {search_id}", project=project_id)
        return search_id


def find_search(workspace: Workspace, search_id: int | None) -> StoredSearch:
    """Return the search with this number, or the newest for None. Raises NotFound."""
    which = "ORDER BY id DESC LIMIT 1" if search_id is None else "WHERE id = ?"
    given = () if search_id is None else (search_id,)
    row = workspace.connection.execute(f"SELECT * FROM search {which}", given).fetchone()
    if row is None:
        raise NotFound("there is no search yet" if search_id is None else f"there is no search {search_id}")
    offered = _parse_stored_list(row["besides"], f"search {row['id']}", dict)
    return StoredSearch(row["id"], row["project_id"], row["recipe"], row["records"], offered, row["created"])


def newest_search_id(workspace: Workspace, project_id: int) -> int | None:
    """Return the number of a project's newest search; None where it has none."""
    query = "SELECT max(id) FROM search WHERE project_id = ?"
    found = workspace.connection.execute(query, (project_id,)).fetchone()[0]
    return None if found is None else int(found)


def stored_looks(workspace: Workspace, search_id: int) -> dict[int, StoredLook]:
    """Return the looks that were begun, by number."""
    # A look whose run was deleted is left out, so that it is begun again.
    rows = workspace.connection.execute(
        """SELECT number, run_id, blocks, reason FROM look WHERE search_id = ?
           AND (reason <> '' OR run_id IN (SELECT id FROM run)) ORDER BY number""",
        (search_id,),
    )
    looks = (
        StoredLook(
            row["number"],
            row["run_id"],
            None if row["blocks"] is None else _parse_stored_list(row["blocks"], f"search {search_id}", str),
            row["reason"],
        )
        for row in rows
    )
    return {look.number: look for look in looks}


def count_ended_looks(workspace: Workspace, search_id: int) -> int:
    """Count the looks of a search that have ended, with those that could not be begun."""
    query = """SELECT count(*) FROM look WHERE search_id = ?
               AND (run_id IS NULL OR run_id IN (SELECT id FROM run WHERE state IN ('done', 'failed')))"""
    return int(workspace.connection.execute(query, (search_id,)).fetchone()[0])


def seconds_worked(workspace: Workspace, search_id: int, look: int | None = None) -> float:
    """Return the seconds of work on a search, or on one look of it, without interruptions."""
    rows = workspace.connection.execute(
        """SELECT started, started + seconds FROM task
           WHERE run_id IN (SELECT run_id FROM look WHERE search_id = ? AND (? IS NULL OR number = ?))
           AND seconds IS NOT NULL AND started IS NOT NULL ORDER BY started""",
        (search_id, look, look),
    )
    worked, until = 0.0, None
    for begun, ended in rows:
        # Short pauses count: the search prepares looks and applies the gate between tasks.
        if until is not None and begun > until and begun - until <= MAX_PAUSE_SECONDS:
            worked += begun - until
        worked += max(0.0, ended - max(begun, until or begun))
        until = max(ended, until or ended)
    return worked


def _parse_stored_list(text: str, what: str, kind: type[Item]) -> tuple[Item, ...]:
    """Return the items of a stored list. Raises NotFound for other contents."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, kind) for one in found):
        raise NotFound(f"{what} cannot be read: the workspace was changed by other means than Sfumato")
    return tuple(found)


def store_look(
    connection: sqlite3.Connection, search_id: int, number: int, run_id: int | None, reason: str = ""
) -> None:
    """Store the run of a look, or the reason why it has none, in the transaction that enters the run."""
    connection.execute(
        "INSERT OR REPLACE INTO look (search_id, number, run_id, blocks, reason) VALUES (?, ?, ?, NULL, ?)",
        (search_id, number, run_id, reason),
    )


def store_blocking_checks(workspace: Workspace, search_id: int, number: int, blocks: Sequence[str]) -> None:
    """Store which checks of the gate block a look's release."""
    query = "UPDATE look SET blocks = ? WHERE search_id = ? AND number = ?"
    with workspace.write_transaction() as connection:
        connection.execute(query, (json.dumps(list(blocks)), search_id, number))
