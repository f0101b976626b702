"""The description of how a release comes about follows from its recipe, the sizes of the data and the methods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sfumato.engine.methods.registry import OWN, registry
from sfumato.engine.recipe.provenance import UNDECLARED_NOISE, fit_uncertainty_of_step, release_provenance
from sfumato.engine.recipe.recipe import Recipe

VARIABLES: dict[str, Any] = {
    "sex": {"kind": "binary", "levels": ["f", "m"]},
    "ill": {"kind": "binary", "levels": ["no", "yes"]},
    "age": {"kind": "count"},
    "home": {"kind": "categorical", "role": "unit"},
}
TREE = {"target": "age", "method": "cart", "predictors": ["sex"]}
LOGITS = {"target": ["sex", "ill"], "method": "sequential_logistic"}
TABLES = {"target": ["sex", "ill", "age"], "method": "margins", "bins": {"age": "width 5"}}


def recipe(*steps: dict[str, Any], **release: Any) -> Recipe:
    measure = [] if steps else [{"method": "utility.ecdf"}]
    return Recipe.from_table({"variables": VARIABLES, "release": release, "synthesis": [*steps], "measure": measure})


def test_every_synthesis_method_of_ours_declares_how_uncertain_its_fit_is() -> None:
    own = [one for one in registry().values() if one.family == "synthesis" and one.package == OWN]
    assert own
    assert [one.key for one in own if one.synthesis.fit_uncertainty is None] == []


def test_rows_and_kept_variables_follow_from_the_recipe() -> None:
    found = release_provenance(recipe(TREE, m=3), 100)
    assert (found.rows, found.size_ratios, found.kept) == ((100, 100, 100), (1, 1, 1), ("sex", "ill"))
    assert not found.is_full_synthesis
    assert found.select_datasets([1, 3]).rows == (100, 100)
    full = release_provenance(recipe(LOGITS, TREE, m=2), 100)
    assert full.is_full_synthesis
    assert full.parameters == "unknown", "the logits draw coefficients, and one tree serves both datasets"
    larger = release_provenance(recipe({**TABLES, "epsilon": 1.0}, m=2, records=400), 100)
    assert larger.size_ratios == (4, 4)
    given = release_provenance(recipe(m=2, released=["age"]), 100, [90, 110])
    assert (given.rows, given.kept, given.parameters, given.steps) == ((90, 110), ("sex", "ill"), "unknown", ())


@pytest.mark.parametrize(
    ("step", "parameters"),
    [
        (TREE, "estimated"),
        ({**TREE, "proper": True}, "drawn"),
        (LOGITS, "drawn"),
        ({**LOGITS, "parameters": "mle"}, "estimated"),
        ({"target": "ill", "method": "multinomial_logistic", "groups": {"all": ["no", "yes"]}}, "unknown"),
    ],
)
def test_parameters_follow_from_the_settings_of_the_step(step: dict[str, Any], parameters: str) -> None:
    assert release_provenance(recipe(step, m=2), 100).parameters == parameters


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({}, "counts were rounded once, to multiples of 10"),
        ({"limit": 5}, "counts were rounded once, to multiples of 5"),
        ({"epsilon": 1.0}, "noise was added to the tables once"),
        ({"protection": "exact"}, ""),
    ],
)
def test_protection_of_tables_is_an_error_that_all_datasets_share(settings: dict[str, Any], error: str) -> None:
    found = release_provenance(recipe({**TABLES, **settings}, m=2), 100)
    assert found.shared_errors == ((error,) if error else ())
    assert found.noisy_domain == (("age",) if "epsilon" in settings else ())
    assert found.published == ("protected tables",)


def test_a_method_with_an_account_that_declares_nothing_shares_an_unknown_noise() -> None:
    plan = recipe({**TABLES, "epsilon": 1.0}, m=2)
    (step,) = plan.synthesis
    silent = replace(step, method=replace(step.method, synthesis=replace(step.method.synthesis, fit_uncertainty=None)))
    assert fit_uncertainty_of_step(plan, silent).shared_error == UNDECLARED_NOISE


def test_designs_and_weights_are_part_of_the_description() -> None:
    plain = release_provenance(recipe(TREE, m=2), 100)
    assert (plain.has_survey_design, plain.has_record_weights) == (False, False)
    weighted = {**VARIABLES, "w": {"kind": "continuous", "role": "weight"}}
    survey = Recipe.from_table({"variables": weighted, "release": {"m": 2}, "synthesis": [TREE]})
    assert release_provenance(survey, 100).has_survey_design
    less = Recipe.from_table({"variables": VARIABLES, "release": {"m": 2}, "synthesis": [TREE], "weights": {"run": 1}})
    assert release_provenance(less, 100).has_record_weights
