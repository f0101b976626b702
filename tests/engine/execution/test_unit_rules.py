"""Rules of whole units: what they say of a table, and units that are drawn again until they keep to them."""

from __future__ import annotations

from typing import Any

import census
import numpy as np
import pandas as pd
import pytest

from sfumato.engine.constraints.evaluation import check_constraint_levels, count_compliance, evaluate_constraint
from sfumato.engine.constraints.redraw_counts import RedrawCounts
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput, ConstraintsUnmet
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

RULES = census.RULES


def census_with(rules: dict[str, str], table: pd.DataFrame, units: str = "drawn", **release: Any) -> tuple[Recipe, Any]:
    recipe = Recipe.from_table({**census.census_recipe(10, units, **release), "constraints": rules})
    return recipe, conform_to_schema(table, recipe.schema)


def draw(recipe: Recipe, data: Microdata) -> tuple[pd.DataFrame, tuple[RedrawCounts, ...]]:
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    counts: list[tuple[RedrawCounts, ...]] = []
    released = draw_dataset(recipe, 1, data, fits, key=PUBLIC, note=counts.append)
    return released.frame, counts[0]


SMALL = pd.DataFrame(
    {
        "home": [1, 1, 1, 2, 2, 3, 4, 4],
        "line": [2, 1, 3, 1, 2, 1, 2, 1],
        "job": ["a", "b", "a", "b", None, "a", "b", "b"],
        "age": [30.0, 20, 50, 40, None, 70, 10, 60],
    }
)
SMALL_RULES = {
    'count(job = "a") >= 1': [1, 1, 1, 0, 0, 1, 0, 0],
    "count(age >= 30) = 2": [1, 1, 1, 0, 0, 0, 0, 0],
    "first(age) < 50": [1, 1, 1, 1, 1, 0, 0, 0],
    'first(job) = "b"': [1, 1, 1, 1, 1, 0, 1, 1],
    "age >= first(age)": [1, 1, 1, 1, None, 1, 0, 1],
    "least(age) >= 20": [1, 1, 1, 1, 1, 1, 0, 0],
    "largest(age) - least(age) <= 30": [1, 1, 1, 1, 1, 1, 0, 0],
    'largest(age, job = "a") >= 60': [0, 0, 0, None, None, 1, None, None],
    "mean(age) > 35": [0, 0, 0, 1, 1, 1, 0, 0],
    "size <= 2": [0, 0, 0, 1, 1, 1, 1, 1],
    'size = 3 -> count(job = "b") = 1': [1, 1, 1, 1, 1, 1, 1, 1],
}


def test_rules_of_units_say_of_each_record_what_can_be_counted_by_hand() -> None:
    """1 holds, 0 is broken, None is unknown."""
    table = {
        "variables": {
            "home": {"kind": "count", "role": "unit"}, "line": {"kind": "count"},
            "job": {"kind": "categorical", "levels": ["a", "b"]}, "age": {"kind": "continuous"},
        },
        "data": {"order": "line", "missing": "keep"},
        "constraints": {f"rule {i}": rule for i, rule in enumerate(SMALL_RULES)},
    }  # fmt: skip
    recipe = Recipe.from_table(table)
    assert Recipe.from_toml(recipe.to_toml()).schema.constraints == recipe.schema.constraints
    data = conform_to_schema(SMALL, recipe.schema, MissingPolicy.KEEP)
    check_constraint_levels(data, recipe.schema)
    for rule, expected in zip(recipe.schema.constraints, SMALL_RULES.values(), strict=True):
        found = evaluate_constraint(rule, data, recipe.schema)
        told = np.where(found.unknown, -1, found.holds)
        assert told.tolist() == [-1 if one is None else one for one in expected], rule.text
    assert [one.broken for one in count_compliance(data, recipe.schema)] == [
        own.count(0) for own in SMALL_RULES.values()
    ]


@pytest.mark.parametrize("units", ["drawn", "kept"])
def test_households_that_break_a_rule_are_drawn_again_and_none_is_left(units: str) -> None:
    table = census.draw_census(3000, 1)
    free, data = census_with({}, table, units)
    bound, _ = census_with(RULES, table, units)
    broken = census.impossible_households(draw(free, data)[0])
    frame, counts = draw(bound, data)
    assert broken > 0
    assert census.impossible_households(frame) == 0
    of_units = {one.constraint: one for one in counts if one.step == "units"}
    # No random number of the first draw depends on the rules, so that as many are drawn again as would have been broken.
    assert of_units[""].records == broken
    assert (of_units[""].of, of_units[""].left) == (3000, 0)
    assert counts[-1].of == len(frame)
    assert counts[-1].records >= broken


def test_a_rule_of_records_that_one_cannot_keep_alone_is_kept_by_another_unit() -> None:
    """A record whose predictors leave it no way out is drawn again with all before it."""
    table = census.draw_census(1500, 2)
    recipe, data = census_with({"near": 'relation = "spouse" -> first(age) - age <= 2'}, table, redraws=30)
    frame, counts = draw(recipe, data)
    spouses = frame[frame["relation"] == "spouse"].merge(
        frame[frame["relation"] == "head"][["household", "age"]], on="household", suffixes=("", "_head")
    )
    assert (spouses["age_head"] - spouses["age"]).max() <= 2
    assert len(spouses) > 100
    assert counts[-1].left == 0


def test_after_the_limit_sizes_are_drawn_again_too() -> None:
    table = census.draw_census(300, 3)
    recipe, data = census_with({"few": "size <= 3"}, table, redraws=5)
    frame, _ = draw(recipe, data)
    assert set(frame.groupby("household").size()) == {1, 2, 3}


def test_what_no_unit_can_keep_is_counted_in_units_or_left_in() -> None:
    table = census.draw_census(300, 3)
    rules = {"none": 'count(relation = "head") = 0'}
    recipe, data = census_with(rules, table, redraws=1)
    with pytest.raises(ConstraintsUnmet, match="constraint none: 300 of 300 units, after 2 redraws"):
        draw(recipe, data)
    recipe, data = census_with(rules, table, redraws=1, unmet="keep")
    frame, counts = draw(recipe, data)
    assert counts[-1].left == len(frame)
    assert frame["household"].nunique() == 300


@pytest.mark.parametrize(
    ("rule", "units", "says"),
    [
        ("previous(age) < 5", "drawn", "use first, least, largest"),
        ("least(relation) = 5", "drawn", "has levels, not numbers"),
        ("count(relatoin = 'head') = 1", "drawn", 'no column "relatoin"'),
        ("count(relation = 'head') = 1", "", "is of a whole unit"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_at_its_place(rule: str, units: str, says: str) -> None:
    table = census.census_recipe(10, "kept")
    table["release"]["units"] = units
    if not units:
        del table["release"]["units"]
        table["synthesis"] = [{"target": "relation", "method": "cart"}]
    with pytest.raises(BadInput, match=says) as caught:
        Recipe.from_table({**table, "constraints": {"odd": rule}})
    assert caught.value.place == "constraints.odd"


def test_a_misspelt_level_of_a_count_is_refused() -> None:
    recipe, data = census_with({"one": "count(relation = 'haed') = 1"}, census.draw_census(50, 1))
    with pytest.raises(BadInput, match="haed"):
        check_constraint_levels(data, recipe.schema)
