"""Measures and limits of disclosure risk as ``sfumato draft`` of the imported version writes them for the people of a case."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.methods.table_profile import profile_table
from sfumato.workspace.plan.drafting import DraftRequest, make_drafted_plan
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.service.draft_data import make_gate_limit

from .entering import Case, recipe_of
from .tables import Frame, Roles


def draft_assessment(title: str, roles: Roles, members: Frame, controls: Frame, frame: Frame) -> dict[str, Any]:
    """Return the sections of measures and limits of a draft that synthesises every column of a file of members and hold-out people.

    Limits of utility are left out: an honest release of a poor model need not meet them, and that says nothing of people.
    """
    recipe = recipe_of(title, roles, Case([frame]))
    everybody = pd.concat([members, controls], ignore_index=True)
    data = conform_to_schema(everybody[list(recipe.schema.names)], recipe.schema)
    # A draft sees one file, holds people out of it, and sets no limit that so few cannot decide.
    table = {**recipe.to_table(), "data": {"file": "people.csv"}}
    wanted = DraftRequest("synthesis", full=True, m=1, holdout=True)
    plan = make_drafted_plan(table, profile_table(data), wanted, make_gate_limit(Policy()))
    steps = [(step.section, dict(step.table)) for step in plan.steps]
    measures = [table for section, table in steps if section == "measure" and is_of_people(table["method"])]
    limits = [table for section, table in steps if section == "threshold" and is_of_people(table["value"])]
    return {"measure": [{"method": "utility.propensity"}, *measures], "threshold": limits}


def is_of_people(key: str) -> bool:
    """Return whether a measure or its value is of disclosure risk, and computable for a file whose rows do not say whose they are."""
    return key.startswith("risk.") and not key.startswith("risk.identification")
