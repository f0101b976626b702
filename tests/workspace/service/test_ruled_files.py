"""A file of data and its rules: records that break them are counted, rules that hold are found, nothing is stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.plan.drafts import find_draft, save_draft, write_plan
from sfumato.workspace.plan.edits import replace_sections
from sfumato.workspace.reporting.constraints import (
    compliance_text,
    constraints_section,
    declared_rules_table,
    suggested_rules_table,
)
from sfumato.workspace.reporting.tables import format_table
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.service.ruled_files import evaluate_rules_of_file
from sfumato.workspace.store.workspace import Workspace

RECIPE = """
[data]
file = "people.csv"

[variables]
married = { kind = "categorical" }
age = { kind = "count" }
wage = { kind = "count" }
rent = { kind = "count" }
income = { kind = "count" }

[constraints]
adult = "married = 'yes' -> age >= 15"
total = "income = wage + rent"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two people of 300 break a rule, one of them both."""
    rng = np.random.default_rng(1)
    age, wage, rent = rng.integers(0, 90, 300), rng.integers(0, 5000, 300), rng.integers(0, 900, 300)
    married = np.where((age >= 15) & (rng.random(300) < 0.6), "yes", "no")
    frame = pd.DataFrame({"married": married, "age": age, "wage": wage, "rent": rent, "income": wage + rent})
    frame.to_csv(tmp_path / "good.csv", index=False)
    frame.loc[:1, ["married", "age"]] = ["yes", 3]
    frame.loc[0, "income"] += 1
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.toml").write_text(RECIPE)
    return tmp_path


def test_records_that_break_a_rule_are_counted_by_rule(folder: Path) -> None:
    view = evaluate_rules_of_file(str(folder / "people.toml"), None, recipe=True, search=False)
    assert compliance_text(view) == "300 records; 2 of 2 rules broken (adult: 2, total: 1)"
    assert [" ".join(line.split()[1:3]) for line in format_table(declared_rules_table(view.said)).splitlines()[2:]] == [
        "broken adult",
        "broken total",
    ]
    good = evaluate_rules_of_file(str(folder / "people.toml"), str(folder / "good.csv"), recipe=True, search=False)
    assert compliance_text(good) == "300 records; none breaks one of 2 rules"
    assert sorted(path.name for path in folder.iterdir()) == ["good.csv", "people.csv", "people.toml"]


def test_rules_of_a_file_alone_are_found_and_can_be_put_into_a_recipe(folder: Path) -> None:
    view = evaluate_rules_of_file(str(folder / "good.csv"), None, recipe=False, search=True)
    assert {"income = wage + rent", "married = 'yes' -> age >= 15"} <= {line.text for line in view.found}
    assert "income = wage + rent" in format_table(suggested_rules_table(view.found))
    read = Recipe.from_toml(
        RECIPE.partition("[constraints]")[0] + write_plan({"constraints": constraints_section(view.found)})
    )
    assert {one.source for one in read.schema.constraints} == {"data"}
    assert [one.text for one in read.schema.constraints] == [line.text for line in view.found]


def test_rules_that_a_recipe_has_are_not_suggested_again_nor_their_names_taken(folder: Path) -> None:
    view = evaluate_rules_of_file(str(folder / "people.toml"), str(folder / "good.csv"), recipe=True, search=True)
    assert [line.name for line in view.said] == ["adult", "total"]
    assert view.found
    assert not {line.text for line in view.found} & {line.text for line in view.said}
    assert not {line.name for line in view.found} & {line.name for line in view.said}


def test_a_misspelt_level_is_refused_at_its_place(folder: Path) -> None:
    (folder / "people.toml").write_text(RECIPE.replace("'yes'", "'yse'"))
    with pytest.raises(BadInput, match='"married" has no level "yse"; did you mean "yes"') as refused:
        evaluate_rules_of_file(str(folder / "people.toml"), None, recipe=True, search=False)
    assert refused.value.place == "constraints.adult"


def test_an_import_into_a_project_says_how_many_records_break_its_rules(folder: Path) -> None:
    first = import_file(folder / "workspace", str(folder / "good.csv"), "People")
    assert not [note for note in first.notes if "constraints" in note]
    rules = {"adult": "married = 'yes' -> age >= 15", "total": "income = wage + rent"}
    with Workspace.open(folder / "workspace") as workspace:
        draft = find_draft(workspace, first.project_id)
        assert draft is not None
        save_draft(workspace, draft.with_text(replace_sections(draft.toml, {"constraints": rules})))
    again = import_file(folder / "workspace", str(folder / "people.csv"), "People")
    assert again.notes == ("constraints of the plan: 300 records; 2 of 2 rules broken (adult: 2, total: 1)",)
