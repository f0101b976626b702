"""Older spellings of units in a recipe, read as what they mean today.

Earlier versions named the unit in each step of ``synthesis.margins``, with the most records that it counted:

    [[synthesis]]
    method = "margins"
    unit = "household"
    person_records = 3

They are read as ``household = { role = "unit" }`` and ``[data] largest_unit = 3``. Where ``person_records`` stands alone
no variable numbers units, and the bound is taken on trust.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import BadInput

METHODS = ("margins", "synthesis.margins")
KEYS = ("unit", "person_records")


def read_older_units(table: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return a recipe's table in today's spelling, and a sentence that says it for a recipe that has an older one.

    Raises BadInput where a recipe has both.
    """
    steps = table.get("synthesis")
    older = {i: step for i, step in enumerate(steps) if older_unit_settings(step)} if isinstance(steps, list) else {}
    if not older:
        return table, ()
    data, variables, name = _section(table, "data"), dict(_section(table, "variables")), ""
    for i, step in older.items():
        if "largest_unit" in data:
            place = f"synthesis[{i}].{next(iter(older_unit_settings(step)))}"
            raise BadInput(place, "largest_unit under [data] says the same; leave one of them out")
        if "unit" in step:
            name = str(step["unit"])
            if not isinstance(variables.get(name), Mapping):
                raise BadInput(
                    f"synthesis[{i}].unit", f'no column "{name}"; give the one that numbers units the role "unit"'
                )
            variables[name] = {**variables[name], "role": "unit"}
    # Several steps may have bounds of their own: noise for the largest protects all of them. Rounded counts had none.
    bounds = [step.get("person_records", 1) for step in older.values() if "epsilon" in step]
    bound = (
        {"largest_unit": max(bounds) if all(isinstance(one, int) for one in bounds) else bounds[0]} if bounds else {}
    )
    made = {
        **table,
        "data": {**data, **bound},
        "variables": variables,
        "synthesis": [_without_older_settings(step) for step in table["synthesis"]],
    }
    now = [
        *([f'the role "unit" of "{name}"'] if name else []),
        *(f"{key} = {value} under [data]" for key, value in bound.items()),
    ]
    instead = f"write {' and '.join(now)} instead" if now else "leave them out"
    return made, (f"unit and person_records of margins are older spellings; {instead}",)


def _section(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name, {})
    return found if isinstance(found, Mapping) else {}


def older_unit_settings(step: object) -> dict[str, Any]:
    """Return what a step of margins says of units in the older spelling; empty for every other step."""
    if not isinstance(step, Mapping) or step.get("method") not in METHODS:
        return {}
    return {name: step[name] for name in KEYS if name in step}


def _without_older_settings(step: Mapping[str, Any]) -> dict[str, Any]:
    older = older_unit_settings(step)
    return {name: value for name, value in step.items() if name not in older}
