"""The plan of a project while it is edited: a recipe's text beside the stored records that it is for.

A project that was imported or that has runs has a plan from the start: the import's draft, else the newest run's
recipe, else the description of its newest dataset. It is stored with the first edit.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import tomli_w

from .audit import Act, append
from .errors import NotFound
from .queries import Connected, Run, find_run

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["Draft", "draft_of", "draft_of_import", "draft_of_run", "keep_missing", "missing_of", "save_draft", "store_draft"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan: ``toml`` may be unfinished. ``dataset_id`` holds the records that the ``[data]`` table ``drawn_from`` gave.

    ``revision`` counts the edits that were stored; 0 when there was none.
    """

    project_id: int
    dataset_id: int
    drawn_from: str
    toml: str
    revision: int = 0

    def saying(self, toml: str) -> Draft:
        """The same with another text."""
        return replace(self, toml=toml)

    def is_drawn_from(self, data: Mapping[str, Any]) -> bool:
        """Whether the stored records are those that a recipe's ``[data]`` table asks for; how it treats missing values
        aside: the records that were stored have none.
        """
        return _data_key(data) == self.drawn_from


def _data_key(data: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in data.items() if key != "missing"}, sort_keys=True)


def draft_of(workspace: Connected, project_id: int) -> Draft | None:
    """The plan of a project; None when the project has neither data nor runs."""
    row = workspace.connection.execute("SELECT * FROM draft WHERE project_id = ?", (project_id,)).fetchone()
    if row is not None:
        return Draft(**dict(row))
    newest = "SELECT max(id) FROM run WHERE project_id = ?"
    run_id = workspace.connection.execute(newest, (project_id,)).fetchone()[0]
    return _of_data(workspace, project_id) if run_id is None else draft_of_run(workspace, run_id)


def draft_of_run(workspace: Connected, run_id: int) -> Draft:
    """A plan that does what a run did, on its records. Raises NotFound."""
    run: Run = find_run(workspace, run_id)
    data = tomllib.loads(run.recipe_toml).get("data", {})
    return Draft(run.project_id, run.dataset_id, _data_key(data), run.recipe_toml)


def draft_of_import(project_id: int, dataset_id: int, toml: str) -> Draft:
    """The plan that an import starts with: a recipe for the file that was just stored."""
    return Draft(project_id, dataset_id, _data_key(tomllib.loads(toml).get("data", {})), toml)


def _of_data(workspace: Connected, project_id: int) -> Draft | None:
    row = workspace.connection.execute(
        """SELECT dataset.id, dataset.name, schema, project.name AS title FROM dataset JOIN project
           ON project.id = project_id WHERE project_id = ? AND origin = 'confidential' ORDER BY dataset.id DESC LIMIT 1""",
        (project_id,),
    ).fetchone()
    if row is None:
        return None
    data = {"file": row["name"]}
    table = {"title": row["title"], "data": data, "variables": json.loads(row["schema"]), "release": {"m": 5, "seed": 1}}
    return Draft(project_id, row["id"], _data_key(data), tomli_w.dumps(table))


def save_draft(workspace: Workspace, draft: Draft) -> Draft:
    """Store an edit of a plan; returns the draft with its new revision. Raises NotFound when the project is gone."""
    with workspace.writing() as connection:
        known = connection.execute("SELECT 1 FROM project WHERE id = ?", (draft.project_id,)).fetchone()
        if known is None:
            raise NotFound(f"there is no project {draft.project_id}")
        return store_draft(connection, draft)


def store_draft(connection: sqlite3.Connection, draft: Draft) -> Draft:
    """``save_draft`` inside a transaction that does more."""
    revision = connection.execute(
        """INSERT INTO draft VALUES (?, ?, ?, ?, 1) ON CONFLICT (project_id) DO UPDATE SET
           dataset_id = excluded.dataset_id, drawn_from = excluded.drawn_from, toml = excluded.toml,
           revision = revision + 1 RETURNING revision""",
        (draft.project_id, draft.dataset_id, draft.drawn_from, draft.toml),
    ).fetchone()[0]
    sha256 = hashlib.sha256(draft.toml.encode()).hexdigest()
    append(connection, Act.PLAN_EDITED, f"project {draft.project_id}", dataset=draft.dataset_id, toml_sha256=sha256)
    return replace(draft, revision=revision)


def keep_missing(connection: sqlite3.Connection, dataset_id: int, counts: Mapping[str, int], records: int) -> None:
    """Keep how many of a file's records had no value, by column, before such records were left out."""
    rows = [(dataset_id, name, count, records) for name, count in counts.items()]
    connection.executemany("INSERT OR REPLACE INTO missing VALUES (?, ?, ?, ?)", rows)


def missing_of(workspace: Connected, dataset_id: int) -> dict[str, float]:
    """The share of the file's records without a value, by column, where the import counted them."""
    rows = workspace.connection.execute("SELECT name, records, of FROM missing WHERE dataset_id = ?", (dataset_id,))
    return {row["name"]: row["records"] / row["of"] for row in rows}
