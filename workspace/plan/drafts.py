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
from functools import lru_cache
from typing import Any

import tomli_w

from ..audit import AuditAct, append_act
from ..errors import NotFound, NotReady
from ..store.runs import Run, find_run
from ..store.workspace import Workspace

ORDER = (
    "title", "label", "description", "companions", "data", "weights", "variables", "constraints", "release", "synthesis", "anonymisation",
    "measure", "study", "threshold", "published", "search",
)  # fmt: skip


def plan_text(table: Mapping[str, Any]) -> str:
    """The table as TOML: single values first, then tables, keys in a recipe's order and unknown ones at the end."""
    known = {key: table[key] for key in ORDER if key in table}
    ordered = {**known, **{key: value for key, value in table.items() if key not in known}}
    single = {key: value for key, value in ordered.items() if not isinstance(value, Mapping) and not _steps(value)}
    parts = [_lines(single)] if single else []
    for key, value in ordered.items():
        if isinstance(value, Mapping):
            parts.append(f"[{_key(key)}]\n{_lines(value)}")
        elif _steps(value):
            parts += [f"[[{_key(key)}]]\n{_lines(step)}" for step in value]
    return "\n".join(parts)


def _steps(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {inline(value)}\n" for key, value in table.items())


@lru_cache(maxsize=1 << 12)
def _key(key: str) -> str:
    return tomli_w.dumps({key: 0}).removesuffix(" = 0\n")


def inline(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {inline(item)}' for key, item in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    return _word(value) if isinstance(value, str) else _single(value)


def _single(value: object) -> str:
    return tomli_w.dumps({"x": value}).removeprefix("x = ").removesuffix("\n")


@lru_cache(maxsize=1 << 12)
def _word(word: str) -> str:
    return _single(str(word))


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan: ``toml`` may be unfinished. ``dataset_id`` holds the records that ``drawn_from`` gave: a recipe's ``[data]``,
    and its seed where that chose records.

    ``revision`` counts the edits that were stored; 0 when there was none.
    """

    project_id: int
    dataset_id: int
    drawn_from: str
    toml: str
    revision: int = 0

    def saying(self, toml: str) -> Draft:
        return replace(self, toml=toml)

    def is_drawn_from(self, table: Mapping[str, Any]) -> bool:
        """Whether a recipe's table asks for the file, filter, sample and controls that were stored."""
        return _data_key(table) == self.drawn_from


def _data_key(table: Mapping[str, Any]) -> str:
    data, release = table.get("data", {}), table.get("release", {})
    asked = (
        {key: value for key, value in data.items() if key != "missing"} if isinstance(data, dict) else {"data": data}
    )
    drawn = "sample" in asked or "screen" in asked or isinstance(asked.get("holdout"), int | float)
    seed = {"seed": release.get("seed", 1)} if drawn and isinstance(release, dict) else {}
    return json.dumps({**asked, **seed}, sort_keys=True, default=str)


def draft_of(workspace: Workspace, project_id: int) -> Draft | None:
    """The plan of a project; None when the project has neither data nor runs."""
    row = workspace.connection.execute("SELECT * FROM draft WHERE project_id = ?", (project_id,)).fetchone()
    if row is not None:
        return Draft(**dict(row))
    newest = "SELECT max(id) FROM run WHERE project_id = ? AND id NOT IN (SELECT run_id FROM look WHERE run_id > 0)"
    run_id = workspace.connection.execute(newest, (project_id,)).fetchone()[0]
    if run_id is not None:
        return draft_of_run(workspace, run_id)
    return _of_search(workspace, project_id) or _of_data(workspace, project_id)


def _of_search(workspace: Workspace, project_id: int) -> Draft | None:
    """The plan that the newest search of a project began with, on the records of its last run; None without one."""
    row = workspace.connection.execute(
        """SELECT search.recipe AS toml, look.run_id AS run_id FROM search JOIN look ON look.search_id = search.id
           WHERE project_id = ? AND look.run_id > 0 ORDER BY search.id DESC, look.number DESC LIMIT 1""",
        (project_id,),
    ).fetchone()
    if row is None:
        return None
    run = find_run(workspace, row["run_id"])
    return Draft(project_id, run.dataset_id, _data_key(tomllib.loads(run.recipe_toml)), row["toml"])


def draft_of_run(workspace: Workspace, run_id: int, weights: Mapping[str, Any] | None = None) -> Draft:
    """A plan that does what a run did, on its records; with these ``[weights]`` where there are any. Raises NotFound."""
    run: Run = find_run(workspace, run_id)
    table = {**tomllib.loads(run.recipe_toml), **({} if weights is None else {"weights": dict(weights)})}
    return Draft(run.project_id, run.dataset_id, _data_key(table), plan_text(table))


def draft_of_import(project_id: int, dataset_id: int, toml: str) -> Draft:
    """The plan that an import starts with: a recipe for the file that was just stored."""
    return Draft(project_id, dataset_id, _data_key(tomllib.loads(toml)), toml)


def _of_data(workspace: Workspace, project_id: int) -> Draft | None:
    row = workspace.connection.execute(
        """SELECT dataset.id, dataset.name, schema, project.name AS title FROM dataset JOIN project
           ON project.id = project_id WHERE project_id = ? AND origin = 'confidential' ORDER BY dataset.id DESC LIMIT 1""",
        (project_id,),
    ).fetchone()
    if row is None:
        return None
    release = {"m": 5, "seed": 1}
    variables = json.loads(row["schema"])
    table = {"title": row["title"], "data": {"file": row["name"]}, "variables": variables, "release": release}
    return Draft(project_id, row["id"], _data_key(table), plan_text(table))


def save_draft(workspace: Workspace, draft: Draft, after: int | None = None) -> Draft:
    """Store an edit of a plan; returns the draft with its new revision. Raises NotFound when the project is gone.

    With ``after`` it is an edit of the plan of that revision: raises NotReady where another was stored since.
    """
    with workspace.writing() as connection:
        known = connection.execute("SELECT 1 FROM project WHERE id = ?", (draft.project_id,)).fetchone()
        if known is None:
            raise NotFound(f"there is no project {draft.project_id}")
        stored = connection.execute("SELECT revision FROM draft WHERE project_id = ?", (draft.project_id,)).fetchone()
        if after is not None and (0 if stored is None else stored[0]) != after:
            raise NotReady("it was edited elsewhere meanwhile, and is shown now as it is stored")
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
    append_act(
        connection, AuditAct.PLAN_EDITED, f"project {draft.project_id}", dataset=draft.dataset_id, toml_sha256=sha256
    )
    return replace(draft, revision=revision)


def keep_missing(connection: sqlite3.Connection, dataset_id: int, counts: Mapping[str, int], records: int) -> None:
    """Keep how many of a file's records had no value, by column, before such records were left out."""
    rows = [(dataset_id, name, count, records) for name, count in counts.items()]
    connection.executemany("INSERT OR REPLACE INTO missing VALUES (?, ?, ?, ?)", rows)


def missing_of(workspace: Workspace, dataset_id: int) -> dict[str, float]:
    """The share of the file's records without a value, by column, where the import counted them."""
    rows = workspace.connection.execute("SELECT name, records, of FROM missing WHERE dataset_id = ?", (dataset_id,))
    return {row["name"]: row["records"] / row["of"] for row in rows}
