"""Drafts for files whose records come in units: the unit is no variable of a model, and an epsilon is of whole units."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.privacy import PrivacyAccount
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.budget import privacy_accounts
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import judge_thresholds
from sfumato.workspace.ingest.files import find_source, read_file_microdata
from sfumato.workspace.plan.drafting import DraftRequest
from sfumato.workspace.service.draft_data import RoleAssignment, draft_file
from tests.prepared.unit_tables import make_households, make_panel

ROLES = RoleAssignment(("region", "sex", "age"), ("rent",))


def household_file(folder: Path) -> str:
    """Write a file of households and return its path."""
    path = folder / "households.csv"
    make_households(600).to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize(
    "wanted", [DraftRequest(m=2), DraftRequest("anonymisation", k=3)], ids=["synthesis", "anonymisation"]
)
def test_a_draft_for_households_runs_and_models_no_number_of_one(tmp_path: Path, wanted: DraftRequest) -> None:
    drafted = draft_file(household_file(tmp_path), {}, wanted, ROLES)
    recipe = Recipe.from_toml(drafted.toml)
    assert recipe.schema.unit == "household"
    assert recipe.schema.order == "line"
    assert "household" not in recipe.released
    named = [column for step in recipe.synthesis for _, column, _ in step.spec.referenced_columns(recipe.schema, "")]
    assert "household" not in named
    data = read_file_microdata(find_source(recipe.data.file), recipe.data, recipe.schema, recipe.seed, key=PUBLIC)
    found = execute_run(recipe, data, key=PUBLIC)
    assert found.rows


def test_limits_of_a_draft_hold_by_unit_too_and_the_draft_says_so(tmp_path: Path) -> None:
    drafted = draft_file(household_file(tmp_path), {}, DraftRequest("anonymisation", k=3), ROLES)
    assert "by unit too" in " ".join(drafted.toml.replace("\n#", "").split())
    recipe = Recipe.from_toml(drafted.toml)
    data = read_file_microdata(find_source(recipe.data.file), recipe.data, recipe.schema, recipe.seed, key=PUBLIC)
    rows = execute_run(recipe, data, key=PUBLIC).rows
    verdicts = [one for one in judge_thresholds(recipe.thresholds, rows) if one.value == "risk.anonymity.k"]
    by = {((one.params or {}).get("by", "record"), (one.params or {}).get("counted", "")): one for one in verdicts}
    assert by["record", ""].outcome == "met"
    # households that nobody else is composed like
    assert by["unit", ""].observed == 1
    assert by["unit", ""].outcome == "not met"


def test_a_draft_for_households_compares_their_units(tmp_path: Path) -> None:
    for wanted, expected in ((DraftRequest(m=2), True), (DraftRequest("anonymisation", k=3), False)):
        recipe = Recipe.from_toml(draft_file(household_file(tmp_path), {}, wanted, ROLES).toml)
        assert ("utility.units" in [step.method.key for step in recipe.measures]) == expected


def test_a_private_draft_for_households_bounds_the_records_of_one(tmp_path: Path) -> None:
    drafted = draft_file(household_file(tmp_path), {}, DraftRequest(tables=True, epsilon=30.0), ROLES)
    assert "Of each household 5 records are counted, the first by line" in " ".join(drafted.warnings)
    recipe = Recipe.from_toml(drafted.toml)
    assert recipe.data.largest_unit == 5
    data = read_file_microdata(find_source(recipe.data.file), recipe.data, recipe.schema, recipe.seed, key=PUBLIC)
    ((_, account),) = privacy_accounts(recipe, data, secret=True)
    assert isinstance(account, PrivacyAccount)


def test_a_draft_for_a_panel_without_a_number_holds_out_people(tmp_path: Path) -> None:
    path = tmp_path / "panel.csv"
    frame = make_panel()
    frame.drop(columns=["id", "year"]).to_csv(path, index=False)
    drafted = draft_file(str(path), {}, DraftRequest(m=2), RoleAssignment(("sex", "town"), ("visits",)))
    recipe = Recipe.from_toml(drafted.toml)
    assert recipe.schema.unit == "unit"
    data = read_file_microdata(find_source(recipe.data.file), recipe.data, recipe.schema, recipe.seed, key=PUBLIC)
    assert data.controls is not None
    assert set(data.numbers("unit")).isdisjoint(data.controls.numbers("unit"))
