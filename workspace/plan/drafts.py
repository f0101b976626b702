"""Plan of a project while it is edited: a recipe's text beside the stored records that it is for.

A project that was imported or that has runs has a plan from the start: the import's draft, else the newest run's
recipe, else the description of its newest dataset. It is stored with the first edit.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import tomli_w

from sfumato.engine.data.toml import read_toml

from ..audit import AuditAct, append_act
from ..errors import NotFound, NotReady
from ..store.runs import StoredRun, find_run
from ..store.workspace import Workspace

SECTION_ORDER = (
    "title", "label", "description", "companions", "data", "population", "weights", "variables", "constraints", "release", "synthesis", "anonymisation",
    "measure", "study", "threshold", "published", "search", "table", "tables",
)  # fmt: skip


def write_plan(table: Mapping[str, Any]) -> str:
    """Return a recipe's table as TOML: single values first, then tables, in a recipe's order, unknown keys last."""
    known = {key: table[key] for key in SECTION_ORDER if key in table}
    ordered = {**known, **{key: value for key, value in table.items() if key not in known}}
    single = {
        key: value for key, value in ordered.items() if not isinstance(value, Mapping) and not _is_step_list(value)
    }
    parts = [_toml_lines(single)] if single else []
    for key, value in ordered.items():
        if isinstance(value, Mapping):
            parts.append(f"[{_quote_key(key)}]\n{_toml_lines(value)}")
        elif _is_step_list(value):
            parts += [f"[[{_quote_key(key)}]]\n{_toml_lines(step)}" for step in value]
    return "\n".join(parts)


def _is_step_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _toml_lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_quote_key(key)} = {inline_toml(value)}\n" for key, value in table.items())


@lru_cache(maxsize=1 << 12)
def _quote_key(key: str) -> str:
    # tomli_w decides whether a key needs quotes; cached, since each edit of a plan writes the same keys again.
    return tomli_w.dumps({key: 0}).removesuffix(" = 0\n")


def inline_toml(value: object) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, Mapping):
        return (
            f"{{ {', '.join(f'{_quote_key(key)} = {inline_toml(item)}' for key, item in value.items())} }}"
            if value
            else "{}"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(inline_toml, value))}]"
    return _toml_string(value) if isinstance(value, str) else _toml_scalar(value)


def _toml_scalar(value: object) -> str:
    return tomli_w.dumps({"x": value}).removeprefix("x = ").removesuffix("\n")


@lru_cache(maxsize=1 << 12)
def _toml_string(word: str) -> str:
    return _toml_scalar(str(word))


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """Plan of a project, perhaps unfinished.

    project_id: its project
    dataset_id: dataset of its records
    drawn_from: a recipe's ``[data]`` by which these were read, and its seed where that chose records
    toml: text of the plan
    revision: number of edits that were stored, 0 when there was none
    """

    project_id: int
    dataset_id: int
    drawn_from: str
    toml: str
    revision: int = 0

    def with_text(self, toml: str) -> PlanDraft:
        """Return the same with another text."""
        return replace(self, toml=toml)

    def uses_same_data(self, table: Mapping[str, Any]) -> bool:
        """Return whether a recipe's table reads the file, filter, sample and controls that were stored."""
        return _data_identity(table) == self.drawn_from


def _data_identity(table: Mapping[str, Any]) -> str:
    """Return a text that is equal for recipes that read the same records: ``[data]``, the seed where it draws any, and
    the units.
    """
    data, release = table.get("data", {}), table.get("release", {})
    asked = (
        # The policy for missing values is applied to the stored records again, so it may differ.
        {key: value for key, value in data.items() if key not in ("missing", "complete_cases")}
        if isinstance(data, dict)
        else {"data": data}
    )
    drawn = "sample" in asked or "screen" in asked or isinstance(asked.get("holdout"), int | float)
    seed = {"seed": release.get("seed", 1)} if drawn and isinstance(release, dict) else {}
    units = _units_identity(table, chosen=drawn or "holdout" in asked)
    return json.dumps({**asked, **seed, **units}, sort_keys=True, default=str)


def _units_identity(table: Mapping[str, Any], *, chosen: bool) -> dict[str, Any]:
    """Return what numbers the units, and the columns that are checked to be theirs; nothing where records are read alike.

    ``chosen`` tells whether some records are drawn or held out, which takes whole units.
    """
    variables = table.get("variables", {})
    declared = (
        [(n, one) for n, one in variables.items() if isinstance(one, dict)] if isinstance(variables, dict) else []
    )
    numbers = {name: one.get("runs_of", []) for name, one in declared if one.get("role") == "unit"}
    level = sorted(name for name, one in declared if one.get("level") == "unit")
    return {"units": numbers, "unit_level": level} if numbers and (chosen or level or any(numbers.values())) else {}


def find_draft(workspace: Workspace, project_id: int) -> PlanDraft | None:
    """Return the plan of a project; None when the project has neither data nor runs."""
    row = workspace.connection.execute("SELECT * FROM draft WHERE project_id = ?", (project_id,)).fetchone()
    if row is not None:
        return PlanDraft(**dict(row))
    # Runs of a search are trials of plans, not plans that somebody has chosen.
    newest = "SELECT max(id) FROM run WHERE project_id = ? AND id NOT IN (SELECT run_id FROM look WHERE run_id > 0)"
    run_id = workspace.connection.execute(newest, (project_id,)).fetchone()[0]
    if run_id is not None:
        return draft_of_run(workspace, run_id)
    return _draft_of_search(workspace, project_id) or _draft_of_data(workspace, project_id)


def _draft_of_search(workspace: Workspace, project_id: int) -> PlanDraft | None:
    """Return the plan that the newest search of a project began with, on the records of its last run.

    None without a search.
    """
    row = workspace.connection.execute(
        """SELECT search.recipe AS toml, look.run_id AS run_id FROM search JOIN look ON look.search_id = search.id
           WHERE project_id = ? AND look.run_id > 0 ORDER BY search.id DESC, look.number DESC LIMIT 1""",
        (project_id,),
    ).fetchone()
    if row is None:
        return None
    run = find_run(workspace, row["run_id"])
    return PlanDraft(project_id, run.dataset_id, _data_identity(read_toml(run.recipe_toml)), row["toml"])


def draft_of_run(workspace: Workspace, run_id: int, weights: Mapping[str, Any] | None = None) -> PlanDraft:
    """Return a plan that repeats a run on its records, with other ``[weights]`` where they are given. Raises NotFound."""
    run: StoredRun = find_run(workspace, run_id)
    table = {**run.recipe_table, **({} if weights is None else {"weights": dict(weights)})}
    return PlanDraft(run.project_id, run.dataset_id, _data_identity(table), write_plan(table))


def draft_of_import(project_id: int, dataset_id: int, toml: str) -> PlanDraft:
    """Return the plan that an import starts with: a recipe for the file that was just stored."""
    return PlanDraft(project_id, dataset_id, _data_identity(read_toml(toml)), toml)


def _draft_of_data(workspace: Workspace, project_id: int) -> PlanDraft | None:
    """Return a plan with the variables of a project's newest confidential dataset and no steps; None without a dataset."""
    row = workspace.connection.execute(
        """SELECT dataset.id, dataset.name, schema, project.name AS title, dropped = 0 AND EXISTS (
             SELECT 1 FROM missing WHERE dataset_id = dataset.id AND missing.records > 0) AS lacks_values FROM dataset JOIN project
           ON project.id = project_id WHERE project_id = ? AND origin = 'confidential' ORDER BY dataset.id DESC LIMIT 1""",
        (project_id,),
    ).fetchone()
    if row is None:
        return None
    release = {"m": 5, "seed": 1}
    variables = json.loads(row["schema"])
    data = {"file": row["name"], **({"missing": "keep"} if row["lacks_values"] else {})}
    table = {"title": row["title"], "data": data, "variables": variables, "release": release}
    return PlanDraft(project_id, row["id"], _data_identity(table), write_plan(table))


def save_draft(workspace: Workspace, draft: PlanDraft, expected_revision: int | None = None) -> PlanDraft:
    """Store an edit of a plan and return the draft with its new revision. Raises NotFound when the project is gone.

    ``expected_revision`` is the revision that was edited: raises NotReady where another one was stored since.
    """
    with workspace.write_transaction() as connection:
        known = connection.execute("SELECT 1 FROM project WHERE id = ?", (draft.project_id,)).fetchone()
        if known is None:
            raise NotFound(f"there is no project {draft.project_id}")
        stored = connection.execute("SELECT revision FROM draft WHERE project_id = ?", (draft.project_id,)).fetchone()
        if expected_revision is not None and (0 if stored is None else stored[0]) != expected_revision:
            raise NotReady("it was edited elsewhere meanwhile; the stored version is shown now")
        return store_draft(connection, draft)


def store_draft(connection: sqlite3.Connection, draft: PlanDraft) -> PlanDraft:
    """Store a draft in the transaction of ``connection``, with a row in the audit log; return it with its new revision."""
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


def store_missing_counts(
    connection: sqlite3.Connection, dataset_id: int, counts: Mapping[str, int], records: int
) -> None:
    """Store how many of a file's records had no value, by column, before such records were left out."""
    rows = [(dataset_id, name, count, records) for name, count in counts.items()]
    connection.executemany("INSERT OR REPLACE INTO missing VALUES (?, ?, ?, ?)", rows)


def missing_shares(workspace: Workspace, dataset_id: int) -> dict[str, float]:
    """Return the share of the file's records without a value, by column, where the import counted them."""
    rows = workspace.connection.execute("SELECT name, records, of FROM missing WHERE dataset_id = ?", (dataset_id,))
    return {row["name"]: row["records"] / row["of"] for row in rows}
