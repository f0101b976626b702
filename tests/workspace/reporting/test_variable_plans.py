"""What a plan does to each variable, in words."""

import pytest

from sfumato.workspace.reporting.variable_plans import describe_variable_plans, treatment_lines

PLAN = {
    "title": "Survey",
    "variables": {
        "id": {"kind": "categorical", "role": "identifier"},
        "age": {"kind": "count", "role": "quasi_identifier"},
        "town": {"kind": "categorical", "role": "other"},
        "income": {"kind": "continuous", "role": "sensitive"},
    },
    "release": {"m": 2, "seed": 1},
    "synthesis": [{"target": "income", "method": "cart", "predictors": ["age"]}],
    "measure": [{"method": "risk.identification", "radius": {"income": "5%"}}, {"method": "utility.ecdf"}],
    "threshold": [{"value": "utility.ecdf.max_abs_difference", "target": "income", "max": 0.05}],
}


@pytest.mark.quick
def test_each_variable_is_drawn_unchanged_or_left_out():
    plans = describe_variable_plans(PLAN)
    assert {name: plan.treatment for name, plan in plans.items()} == {
        "id": "left out",
        "age": "unchanged",
        "town": "unchanged",
        "income": "drawn",
    }
    assert plans["income"].text == "drawn by Classification and regression trees, given age"
    assert "everybody keeps their own value" in plans["town"].text


@pytest.mark.quick
def test_who_could_know_a_variable_and_what_limits_it():
    plans = describe_variable_plans(PLAN)
    assert plans["age"].attacks == ("Identification risk",)
    assert plans["income"].attacks == ()
    assert "wants to learn" in plans["income"].reason
    assert plans["income"].limits == ("Largest gap between distributions: at most 5 %",)
    assert "still tells people apart" in plans["town"].reason, "kept variables are never called safe"


@pytest.mark.quick
def test_what_is_released_unchanged_stands_first_and_is_marked():
    lines = treatment_lines(describe_variable_plans(PLAN))
    assert lines[0] == ("unchanged", "! age, town: everybody keeps their own value")
    assert [name for name, _ in lines] == ["unchanged", "drawn", "left out"]


@pytest.mark.quick
def test_a_plan_that_is_no_recipe_describes_nothing():
    assert describe_variable_plans({**PLAN, "synthesis": [{"target": "nothing", "method": "cart"}]}) == {}
    assert treatment_lines({}) == []
