"""Forms of a plan whose records come in units: the bound of an account, and older spellings that an edit keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.plan.plan_forms import check_settings, settings_fields, settings_form, settings_sections, step_form
from sfumato.workspace.plan.edits import StepPlace, parse_plan

PLAN = """
[variables]
household = { kind = "count", role = "ROLE" }
area = { kind = "binary", levels = ["0", "1"] }

[[synthesis]]
method = "margins"
target = ["area"]
epsilon = 1.0
OLDER

[release]
m = 1
seed = 1
records = 10
"""
OLDER = 'unit = "household"\nperson_records = 3'


def plan_text(role: str, older: str = "") -> str:
    return PLAN.replace("ROLE", role).replace("OLDER", older)


def keep_edits(toml: str) -> tuple[list[str], Callable[..., None]]:
    """A list that gets the text after each edit, and the function that edits."""
    found: list[str] = []

    def edit(change: Callable[[str], str], place: str | None) -> None:
        found.append(change(toml))

    return found, edit


def test_the_form_of_the_data_asks_for_the_bound_where_a_variable_numbers_units() -> None:
    view = parse_plan(plan_text("unit"))
    names = [one.name for one in settings_fields(dict(view.table))]
    assert {"order", "largest_unit"} <= set(names)
    assert "largest_unit" not in [one.name for one in settings_fields(dict(parse_plan(plan_text("other")).table))]
    found, edit = keep_edits(view.toml)
    _, apply = settings_form(view, edit)
    answers: dict[str, Any] = {"m": 1, "seed": 1, "records": 10, "largest_unit": 4}
    apply(answers)
    assert Recipe.from_toml(found[-1]).data.largest_unit == 4
    with pytest.raises(BadInput, match="at least 1"):
        check_settings(view.toml, settings_sections({**answers, "largest_unit": 0}, view.table))


def test_a_step_that_is_edited_keeps_what_it_says_of_units_in_an_older_spelling() -> None:
    view = parse_plan(plan_text("identifier", OLDER))
    assert "older spellings" in view.warnings[0]
    found, edit = keep_edits(view.toml)
    _, apply = step_form(view, StepPlace("synthesis", 0), view.table["synthesis"][0], edit)
    answers: dict[str, Any] = {"target": ["area"], "epsilon": 2.0}
    apply(answers)
    after = Recipe.from_toml(found[-1])
    assert (after.data.largest_unit, after.schema.unit) == (3, "household")
    assert after.synthesis[0].spec.to_table()["epsilon"] == 2.0
