"""Guided start of a study of the smallest sufficient sample: four answers make a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun

from ..plan.drafts import find_draft
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.recipe.recipe import Recipe

    from ..store.workspace import Workspace
    from .prepare import PreparedRun

SEED = 1
KNOWN = ("quasi_identifier", "known")
"""The role of variables that an intruder knows, in its current and its older word."""


@dataclass(frozen=True)
class ProjectTable:
    """Confidential table of a project.

    id: number of the dataset
    project, name: names of the project and of the file
    records: number of records
    variables: its variables as recipes describe them
    known: variables that its plan declares quasi-identifiers
    """

    id: int
    project: str
    name: str
    records: int
    variables: Mapping[str, Mapping[str, Any]]
    known: Sequence[str]


def list_project_tables(workspace: Workspace, project_id: int) -> list[ProjectTable]:
    """List the confidential tables of a project, newest first."""
    rows = workspace.connection.execute(
        """SELECT dataset.id, project.name AS project, dataset.name, records, schema
           FROM dataset JOIN project ON project.id = project_id
           WHERE project_id = ? AND origin = 'confidential' ORDER BY dataset.id DESC""",
        (project_id,),
    )
    draft = find_draft(workspace, project_id)
    planned = {} if draft is None else {draft.dataset_id: _roles_in_plan(draft.toml)}
    return [_project_table_from_row(row, planned.get(row["id"], {})) for row in rows]


def _project_table_from_row(row: Mapping[str, Any], planned: Mapping[str, str]) -> ProjectTable:
    """Return a project's table from its row in the database; roles are the plan's where it has them."""
    variables = json.loads(row["schema"])
    roles = {name: planned.get(name, table.get("role", "other")) for name, table in variables.items()}
    known = tuple(name for name, role in roles.items() if role in KNOWN)
    return ProjectTable(row["id"], row["project"], row["name"], row["records"], variables, known)


def _roles_in_plan(toml: str) -> dict[str, str]:
    """Return the roles in a plan that may be unfinished, by variable."""
    try:
        tables = read_toml(toml).get("variables", {})
    except BadInput:
        return {}
    found = tables.items() if isinstance(tables, dict) else ()
    return {name: str(table["role"]) for name, table in found if isinstance(table, dict) and "role" in table}


def minimisation_recipe(data: ProjectTable, answers: Mapping[str, Any]) -> Recipe:
    """Return the recipe for the answers: the study, and an anonymisation of the whole table with its measures.

    Raises BadInput. The answers are ``known`` (the quasi-identifiers), ``k``, ``n`` and ``r`` (number of sub-samples of
    that size).
    """
    from sfumato.engine.errors import BadInput
    from sfumato.engine.recipe.recipe import Recipe

    names = [str(name) for name in answers.get("known", ())]
    variables = _variables_with_known(data, names)
    study = {"method": "studies.minimisation", "quasi_identifiers": names, "k": answers.get("k", 5),
             "n": answers.get("n", data.records // 2), "subsamples": answers.get("r", 5)}  # fmt: skip
    recipe = Recipe.from_table(
        {
            "title": f"Smallest sufficient sample of {data.name}",
            "data": {"file": data.name},
            "variables": variables,
            "release": {"seed": SEED},
            "anonymisation": [{"method": "mondrian", "k": study["k"], "quasi_identifiers": names, "means": "exact"}],
            "measure": _measure_steps(variables, names),
            "study": [study],
        }
    )
    n, k = study["n"], study["k"]
    if 2 * n > data.records:
        raise BadInput(
            "n",
            f"at most {data.records // 2:,}: samples of up to 2 n are drawn from {count_noun(data.records, 'record')}",
        )
    if n < k:
        raise BadInput("n", f"at least k, which is {k:,}")
    return recipe


def _variables_with_known(data: ProjectTable, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the table of variables with the quasi-identifiers ``names``, without identifiers. Raises BadInput."""
    from sfumato.engine.errors import BadInput, near_miss_hint

    if not names:
        raise BadInput("known", "name at least one variable")
    for name in names:
        if name not in data.variables:
            raise BadInput("known", f'there is no "{name}"{near_miss_hint(name, list(data.variables))}')
        if data.variables[name].get("role") == "identifier":
            raise BadInput("known", f'"{name}" is an identifier: it is not released at all')
    others = {name: table.get("role", "other") for name, table in data.variables.items()}
    roles = {name: "other" if role in KNOWN else role for name, role in others.items()} | dict.fromkeys(
        names, "quasi_identifier"
    )
    kept = {name: table for name, table in data.variables.items() if roles[name] != "identifier"}
    return {name: {**table, "role": roles[name]} for name, table in kept.items()}


def _measure_steps(variables: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the steps that measure the anonymised table: loss of information, suppression, correlations of numbers."""
    from sfumato.engine.partition.pairs import NUMBERS

    numbers = [name for name in names if variables[name]["kind"] in NUMBERS]
    of_numbers = [{"method": f"quality.{name}", "variables": numbers} for name in ("pearson", "nmi_v1") if numbers]
    rilm = {"method": "quality.rilm", "variables": list(names), "quasi_identifiers": list(names)}
    return [*of_numbers, rilm, {"method": "quality.non_suppressed"}]


def prepare_minimisation(workspace: Workspace, data: ProjectTable, answers: Mapping[str, Any]) -> PreparedRun:
    """Prepare the run of the study on the stored records without identifiers.

    Records without a value of a quasi-identifier are dropped. Raises BadInput, NotFound, DamagedTable.
    """
    from sfumato.engine.data.microdata import conform_to_schema
    from sfumato.engine.data.schema import MissingPolicy, Role, Schema
    from sfumato.engine.recipe.checks import check_steps
    from sfumato.engine.recipe.recipe import Recipe

    from .prepare import PreparedRun, StoredSource

    recipe = minimisation_recipe(data, answers)
    dataset = workspace.find_dataset(data.id)
    schema = Schema(tuple(variable for variable in dataset.schema if variable.name in recipe.schema))
    stored = workspace.read_stored_dataset(dataset)
    if any(stored.missing_mask(name).any() for name in schema.names):
        known = recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)
        lacking = [name for name in known if stored.missing_mask(name).any()]
        table = recipe.to_table()
        recipe = Recipe.from_table({**table, "data": {**table["data"], "missing": "keep", "complete_cases": lacking}})
    records = conform_to_schema(
        stored.frame, schema, MissingPolicy.KEEP, tags=stored.kinds, complete_cases=recipe.data.complete_cases
    ).dropped_after(stored)
    check_steps(recipe, records)
    return PreparedRun(recipe, StoredSource(dataset.name, b"", dataset.source_sha256), records)
