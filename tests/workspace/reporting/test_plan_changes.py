"""Changes of a plan in words that name variables and methods."""

import pytest

from sfumato.engine.recipe.difference import plan_differences
from sfumato.workspace.reporting.plan_changes import differences_in_words

TREES = {"method": "cart", "predictors": ["age"]}
BEFORE = {
    "title": "Survey",
    "variables": {"age": {"kind": "count", "role": "other"}},
    "synthesis": [{**TREES, "target": "income", "minbucket": 5}, {**TREES, "target": "visits", "minbucket": 5}],
    "measure": [{"method": "utility.propensity"}],
    "threshold": [{"value": "risk.identification.true_rate", "max": 0.01}],
}


def words_of(**changed):
    now = {**BEFORE, **changed}
    return differences_in_words(plan_differences(BEFORE, now), BEFORE, now)


@pytest.mark.quick
def test_equal_changes_of_several_steps_stand_in_one_line_with_their_variables():
    steps = [{**one, "minbucket": 250} for one in BEFORE["synthesis"]]
    assert words_of(synthesis=steps) == [
        "income, visits (Classification and regression trees): minbucket was 5, is 250"
    ]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"variables": {"age": {"kind": "count", "role": "sensitive"}}}, "variable age: role was other, is sensitive"),
        ({"measure": []}, "Propensity score: left out"),
        ({"threshold": [{"value": "risk.identification.true_rate", "max": 0.05}]}, "max was 0.01, is 0.05"),
        (
            {"synthesis": [{**one, "smoothing": True} for one in BEFORE["synthesis"]]},
            "income, visits (Classification and regression trees): smoothing is now true, it was not set before",
        ),
        ({"title": "Another"}, "title: was Survey, is Another"),
    ],
)
def test_a_change_names_its_subject_and_no_key_of_the_recipe(changed, said):
    (words,) = words_of(**changed)
    assert said in words
    assert "[" not in words
    assert "risk." not in words
    assert "utility." not in words


@pytest.mark.quick
def test_the_same_plan_has_no_changes():
    assert words_of() == []
