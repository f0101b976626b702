from __future__ import annotations

import pytest

from sfumato.engine.methods.registry import registry
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.reporting.survey import NOT_WEIGHED, WEIGHED, survey_design_text, weighted_form_text
from sfumato.workspace.reporting.words import params_text, row_settings, settings_text, survey_weight_text


def recipe(role: str, *measures: str) -> Recipe:
    return Recipe.from_table(
        {
            "title": "survey",
            "variables": {
                "w": {"kind": "continuous", "role": role},
                "income": {"kind": "continuous", "role": "sensitive"},
                "sex": {"kind": "binary", "role": "quasi_identifier"},
            },
            "synthesis": [{"target": "income", "method": "cart", "predictors": ["sex"]}],
            "measure": [{"method": key} for key in measures],
        }
    )


def test_a_recipe_says_by_what_its_measures_are_weighted_and_which_are_not() -> None:
    found = survey_design_text(
        recipe("weight", "utility.summary", "utility.propensity", "utility.ecdf", "risk.uniqueness")
    )
    assert found == (
        "weight w; used by utility.summary, utility.ecdf; unweighted: utility.propensity; risks count records"
    )
    assert "no measure of the recipe uses it" in survey_design_text(recipe("weight", "utility.propensity"))
    assert survey_design_text(recipe("other", "utility.summary")) == ""


@pytest.mark.parametrize(
    ("key", "said"),
    [("utility.ecdf", WEIGHED), ("utility.cluster", NOT_WEIGHED), ("risk.uniqueness", ""), ("synthesis.cart", "")],
)
def test_a_method_says_whether_it_has_a_weighted_form(key: str, said: str) -> None:
    assert weighted_form_text(registry()[key]) == said


def test_what_weights_come_to_is_said_in_words() -> None:
    assert survey_weight_text(12000.0, 1.31) == "the records stand for 12,000 people, design effect 1.31"
    assert survey_weight_text(None, None) == "not all values are above 0, as survey weights are"


def test_the_design_stands_behind_what_tells_rows_apart() -> None:
    params = {"estimand": "coefficient", "survey": "weight w, strata area", "term": "age"}
    assert params_text(params) == "estimand coefficient, term age, survey weight w, strata area"
    assert settings_text(params) == "estimand coefficient; term age; survey weight w, strata area"
    assert row_settings("utility.interval_overlap", params) == {"estimand": "coefficient", "term": "age"}
