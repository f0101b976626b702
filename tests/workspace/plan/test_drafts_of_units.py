"""Drafts for files whose records come in units: the unit is no variable of a model, and an epsilon is of whole units."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import tomli_w

from sfumato.engine.data.toml import read_toml
from sfumato.engine.execution.tasks import draw_dataset, execute_run, fit_model
from sfumato.engine.methods.privacy import PrivacyAccount
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.budget import privacy_accounts
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import judge_thresholds
from sfumato.workspace.ingest.files import find_source, read_file_microdata
from sfumato.workspace.plan.drafting import DraftRequest
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.service.draft_data import DraftedText, RoleAssignment, draft_file, draft_for_records
from tests.prepared import census
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


def census_draft(folder: Path, table: pd.DataFrame, wanted: DraftRequest, sensitive: str = "income") -> DraftedText:
    """Return the draft for a census whose head, spouse and children stand in the order of their lines."""
    path = folder / "census.csv"
    table.to_csv(path, index=False)
    return draft_file(str(path), {}, wanted, RoleAssignment(("region", "sex", "age"), (sensitive,)))


def test_a_draft_for_households_draws_units_first_and_then_records_by_terms(tmp_path: Path) -> None:
    drafted = census_draft(tmp_path, census.draw_census(1200, 3), DraftRequest(m=1))
    recipe = Recipe.from_toml(drafted.toml)
    assert recipe.form.units == "drawn"
    targets = [step.targets[0] for step in recipe.synthesis]
    by_unit = [step.table is not None and step.table.by_unit for step in recipe.synthesis]
    assert (set(targets[:3]), targets[2], targets[3]) == ({"region", "tenure", "size"}, "size", "line")
    assert by_unit == [True] * 3 + [False] * 5
    steps = {step.targets[0]: step.spec for step in recipe.synthesis}
    assert steps["line"].predictors == ("place",)
    assert {"place", "size", "previous(relation)", "first(relation)"} <= set(steps["relation"].predictors)
    assert {"relation", "first(age)", "previous(age)"} <= set(steps["age"].predictors)
    assert all(len(one.predictors) <= 10 for one in steps.values())
    assert [name for name, one in steps.items() if one.unit_effect] == ["age", "income"]
    # leaves of the records of as many households as those of the table of households
    data = read_file_microdata(find_source(recipe.data.file), recipe.data, recipe.schema, recipe.seed, key=PUBLIC)
    assert data.units is not None
    assert steps["income"].minbucket == pytest.approx(steps["region"].minbucket * data.units.sizes.mean(), rel=0.05)
    assert "every variable is synthesised" in " ".join(drafted.notes)
    assert "Each row is taken for one person" not in drafted.toml


@pytest.mark.slow
def test_households_of_a_draft_have_heads_spouses_and_children_as_the_data_do(tmp_path: Path) -> None:
    own = census.draw_census(3000, 3)
    recipe = Recipe.from_toml(census_draft(tmp_path, own, DraftRequest(m=1)).toml)
    data = read_file_microdata(find_source(recipe.data.file), recipe.data, recipe.schema, recipe.seed, key=PUBLIC)
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    released = draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame
    types = [census.household_types(table) for table in (own, released, shuffle_rows(own))]
    drawn_apart, row_by_row = (census.total_variation(types[0], other) for other in types[1:])
    assert drawn_apart < 0.06
    assert row_by_row > 0.3
    assert census.impossible_households(released) < 0.1 * released["household"].nunique()
    lines = released.groupby("household")["line"].apply(lambda own: sorted(map(int, own)))
    assert all(own == list(range(1, len(own) + 1)) for own in lines)


def shuffle_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the census with people moved between households, as rows that are drawn one by one are."""
    moved = table.sample(frac=1, random_state=1).reset_index(drop=True)
    return moved.assign(household=table["household"].to_numpy())


def test_identifiers_and_survey_weights_are_left_out_where_units_are_drawn(tmp_path: Path) -> None:
    table = census.draw_census(600, 3)
    table.insert(0, "person_id", range(10_001, 10_001 + len(table)))
    path = tmp_path / "census.csv"
    table.assign(weight=table["household"] % 7 + 1.5).to_csv(path, index=False)
    own = read_toml(draft_file(str(path), {}, DraftRequest(m=1), RoleAssignment(("region", "sex"), ("income",))).toml)
    kinds = {"person_id": {"kind": "count", "role": "identifier"}, "weight": {"kind": "continuous", "role": "weight"}}
    table_of_plan = {"data": {"file": str(path)}, "variables": {**own["variables"], **kinds}}
    schema = Recipe.from_table(table_of_plan).schema
    data = read_file_microdata(find_source(str(path)), DataSource(), schema, 1, key=PUBLIC)
    drafted = draft_for_records(tomli_w.dumps(table_of_plan), table_of_plan, data, DraftRequest(m=1), Policy())
    recipe = Recipe.from_toml(drafted.toml)
    assert recipe.form.units == "drawn"
    assert not {"person_id", "weight"} & set(recipe.schema.names)
    assert "weight is left out of the plan" in " ".join(drafted.warnings)


def test_a_column_called_size_is_named_and_rows_are_drawn_one_by_one(tmp_path: Path) -> None:
    table = census.draw_census(600, 3).rename(columns={"tenure": "size"})
    drafted = census_draft(tmp_path, table, DraftRequest(m=1))
    assert Recipe.from_toml(drafted.toml).form.units == ""
    assert "size is the name of a column" in " ".join(drafted.warnings)


def test_a_file_of_one_record_a_household_is_drafted_as_without_the_unit(tmp_path: Path) -> None:
    heads = census.draw_census(600, 3).query("line == 1").drop(columns="line")
    drafted = census_draft(tmp_path, heads, DraftRequest(m=1))
    assert "units" not in Recipe.from_toml(drafted.toml).form.to_table()
