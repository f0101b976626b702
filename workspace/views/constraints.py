"""Compliance of records with the constraints of a plan, and other rules that all records comply with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engine.data.schema import MissingPolicy, Schema, Variable
from sfumato.engine.data.toml import get_table, read_toml
from sfumato.engine.errors import BadInput

from ..reporting.constraints import RuleLine, RulesView
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.data.microdata import Microdata


def evaluate_rules(data: Microdata, schema: Schema, *, search: bool) -> RulesView:
    """Evaluate the constraints of a schema on a table. Raises BadInput.

    With ``search`` other rules that all records comply with are added.
    """
    from sfumato.engine.constraints.evaluation import check_constraint_levels, count_compliance
    from sfumato.engine.constraints.mining import mine_constraints

    check_constraint_levels(data, schema)
    said = tuple(
        RuleLine(one.constraint.name, one.constraint.text, one.constraint.source, one.broken, one.unknown, one.records)
        for one in count_compliance(data, schema)
    )
    if not search:
        return RulesView(len(data), said)
    known = {one.constraint.rule for one in count_compliance(data, schema)}
    taken = {line.name for line in said}
    found = []
    for suggested in mine_constraints(data):
        if suggested.constraint.rule in known:
            continue
        name, number = suggested.constraint.name, 2
        # a found rule must not replace a declared one of the same name
        while name in taken:
            name, number = f"{suggested.constraint.name}_{number}", number + 1
        taken.add(name)
        found.append(RuleLine(name, suggested.constraint.text, "data", 0, 0, len(data), suggested.support))
    return RulesView(len(data), said, tuple(found))


def evaluate_rules_of_text(workspace: Workspace, dataset_id: int, toml: str, *, search: bool) -> RulesView:
    """Evaluate the constraints in the text of a plan on its stored records. Raises BadInput and DamagedTable."""
    from sfumato.engine.constraints.constraints import read_constraints
    from sfumato.engine.data.microdata import conform_to_schema

    table = read_toml(toml)
    dataset = workspace.find_dataset(dataset_id)
    stored = workspace.read_stored_dataset(dataset)
    planned = get_table(table, "variables")
    named = {name: Variable.from_table(name, one, f"variables.{name}") for name, one in planned.items()}
    schema = Schema(tuple(variable for name, variable in named.items() if name in stored.schema))
    schema = replace(schema, constraints=read_constraints(get_table(table, "constraints"), schema))
    return evaluate_rules(conform_to_schema(stored.frame, schema, MissingPolicy.KEEP), schema, search=search)


def evaluate_rules_of_plan(directory: Path, dataset_id: int, toml: str) -> RulesView:
    """Evaluate the constraints of a plan and search for others, in a workspace that is not open.

    It is meant to be called in a subprocess.
    """
    with Workspace.open(directory) as workspace:
        return evaluate_rules_of_text(workspace, dataset_id, toml, search=True)


def evaluate_project_rules(directory: Path, project_id: int) -> RulesView | None:
    """Evaluate the constraints of a project's plan on its newest records.

    None where the plan has none or cannot be read.
    """
    from ..plan.drafts import find_draft

    with Workspace.open(directory) as workspace:
        draft = find_draft(workspace, project_id)
        newest = workspace.connection.execute(
            "SELECT max(id) FROM dataset WHERE project_id = ? AND origin = 'confidential'", (project_id,)
        ).fetchone()[0]
        if draft is None or newest is None:
            return None
        try:
            if not get_table(read_toml(draft.toml), "constraints"):
                return None
            found = evaluate_rules_of_text(workspace, newest, draft.toml, search=False)
        except BadInput:
            return None
    return found if found.said else None
