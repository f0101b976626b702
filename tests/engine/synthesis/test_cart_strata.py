"""Trees of strata: each level of a variable has a tree of its own, and those of few records share one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.trees.trees import fit_classification_tree, fit_regression_tree, join_trees


def table(n: int = 3000, seed: int = 1) -> pd.DataFrame:
    """Spouses are near the head's age, lodgers of any age with the same mean; guests are few and all 99 years old."""
    rng = np.random.default_rng(seed)
    head = rng.uniform(30, 70, n)
    role = np.where(np.arange(n) < 8, "guest", rng.choice(["spouse", "lodger"], n, p=[0.9, 0.1]))
    age = np.where(role == "spouse", head + rng.normal(0, 2, n), rng.uniform(20, 80, n))
    return pd.DataFrame({"role": role, "head": head, "age": np.where(role == "guest", 99.0, age)})


def recipe_of(**step: Any) -> Recipe:
    variables = {"role": {"kind": "categorical"}, "head": {"kind": "continuous"}, "age": {"kind": "continuous"}}
    own = {"target": "age", "method": "cart", "predictors": ["head", "role"], "minbucket": 40, **step}
    return Recipe.from_table(
        {"variables": variables, "data": {"missing": "keep"}, "release": {"m": 1, "seed": 1}, "synthesis": [own]}
    )


def made(frame: pd.DataFrame, weights: np.ndarray | None = None, **step: Any) -> pd.DataFrame:
    recipe = recipe_of(**step)
    data: Microdata = conform_to_schema(frame, recipe.schema, MissingPolicy.KEEP)
    check_steps(recipe, data)
    data = data if weights is None else data.with_weights(weights)
    return draw_dataset(recipe, 1, data, [fit_model(recipe, 0, data, key=PUBLIC)], key=PUBLIC).frame


def test_groups_of_one_mean_are_told_apart() -> None:
    frame = table()
    spread = {}
    for strata in ({}, {"strata": "role"}):
        spouses = made(frame, **strata).query("role == 'spouse'")
        spread[bool(strata)] = float((spouses["age"] - spouses["head"]).std())
    assert spread[True] == pytest.approx(2, rel=0.1)
    assert spread[False] > 3


def test_a_value_comes_from_its_own_level_and_few_records_share_a_tree() -> None:
    frame = table()
    drawn = made(frame, strata="role")
    for role in ("spouse", "lodger"):
        own = frame.loc[frame["role"] == role, "age"]
        others = frame.loc[frame["role"] != role, "age"]
        # Lodgers and the few guests have one tree.
        allowed = own if role == "spouse" else pd.concat([own, frame.loc[frame["role"] == "guest", "age"]])
        found = drawn.loc[drawn["role"] == role, "age"]
        assert found.isin(allowed).all(), role
        assert len(others) > 0
    # A leaf of guests alone would give all of them away.
    assert set(drawn.loc[drawn["role"] == "guest", "age"]) != {99.0}


def test_a_level_without_a_value_is_a_stratum_and_weights_count() -> None:
    frame = table()
    frame["role"] = frame["role"].mask(np.arange(len(frame)) % 5 == 0)
    frame["age"] = frame["age"].where(frame["role"].notna(), 150.0 + frame.index)
    drawn = made(frame, strata="role")
    assert ((drawn["age"] > 140) == drawn["role"].isna()).all()
    # At a weight of .1 lodgers have no leaf of 40 records of their own.
    lodger = (frame["role"] == "lodger").to_numpy()
    assert 40 < lodger.sum() < 400
    drawn = made(frame, np.where(lodger, 0.1, 1.0), strata="role")
    found = drawn.loc[lodger, "age"]
    assert not found.isin(frame.loc[lodger, "age"]).all()


@pytest.mark.parametrize("proper", [False, True])
def test_levels_are_drawn_within_strata_too(proper: bool) -> None:
    frame = table().assign(role=lambda own: np.where(own["role"] == "guest", "lodger", own["role"]))
    frame["age"] = np.where(frame["age"] > 50, "old", "young")
    frame.loc[frame["role"] == "lodger", "age"] = "any"
    variables = {"role": {"kind": "categorical"}, "head": {"kind": "continuous"}, "age": {"kind": "categorical"}}
    step = {
        "target": "age",
        "method": "cart",
        "predictors": ["head"],
        "minbucket": 40,
        "strata": "role",
        "proper": proper,
    }
    recipe = Recipe.from_table({"variables": variables, "release": {"m": 1, "seed": 1}, "synthesis": [step]})
    data = conform_to_schema(frame, recipe.schema)
    drawn = draw_dataset(recipe, 1, data, [fit_model(recipe, 0, data, key=PUBLIC)], key=PUBLIC).frame
    assert ((drawn["age"] == "any") == (drawn["role"] == "lodger")).all()
    assert (drawn["age"] == frame["age"]).mean() > 0.9


def test_a_joined_tree_leads_each_record_where_the_tree_of_its_level_does() -> None:
    rng = np.random.default_rng(3)
    x, level = rng.normal(size=(900, 2)), rng.integers(0, 4, 900)
    code = rng.integers(0, 3, 900)
    groups = np.array([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]], dtype=bool)
    for kind in ("numbers", "levels"):
        trees = []
        for own in groups:
            rows = own[level]
            if kind == "numbers":
                y = x[rows, 0] + rng.normal(size=rows.sum())
                trees.append(fit_regression_tree(x[rows], y, minbucket=20, cp=0, seed=1))
            else:
                features = np.column_stack([x[rows, 0], code[rows]])
                y = (features[:, 0] + features[:, 1] > 1).astype(float)
                trees.append(fit_classification_tree(features, y, levels=(0, 3), minbucket=20, cp=0))
        features = x if kind == "numbers" else np.column_stack([x[:, 0], code])
        joined = join_trees(trees, groups, 2)
        leaves = joined.find_leaves(0, np.column_stack([features, level]))
        for tree, own in zip(trees, groups, strict=True):
            rows = own[level]
            expected = tree.find_leaves(0, features[rows])
            for found, other in zip(leaves[rows], expected, strict=True):
                assert (
                    joined.donors[joined.start[found] : joined.start[found] + joined.count[found]].tolist()
                    == tree.donors[tree.start[other] : tree.start[other] + tree.count[other]].tolist()
                )


def test_a_number_has_no_strata() -> None:
    with pytest.raises(BadInput) as caught:
        recipe_of(strata="head")
    assert caught.value.place == "synthesis[0].strata"
