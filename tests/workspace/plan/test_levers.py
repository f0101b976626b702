"""Levers as changes of a plan: what is changed is what the words name, and nothing else."""

import pytest

from sfumato.engine.data.toml import read_toml
from sfumato.engine.methods import levers as texts
from sfumato.engine.methods.registry import registry
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.plan.levers import CHANGES, find_levers

PLAN = """title = "Ten"
[data]
file = "a.csv"
[variables]
a = { kind = "categorical", role = "quasi_identifier" }
b = { kind = "categorical", role = "sensitive" } # kept
c = { kind = "categorical", role = "sensitive" }
[release]
m = 5
seed = 1
[[synthesis]]
target = "b"
method = "cart"
predictors = ["a"]
minbucket = 7
[[synthesis]]
target = "c"
method = "cart"
predictors = ["a"]
"""


def verdict(value, target="", outcome="not met"):
    return Verdict(value, target, None, "max", 0.1, 0.3, -0.2, outcome)


def lever_changes(value, target=""):
    return {one.text: read_toml(one.toml) for one in find_levers(verdict(value, target), PLAN) if one.toml}


def test_fewer_datasets_are_half_as_many_and_all_else_stays():
    before = read_toml(PLAN)
    found = lever_changes("risk.identification.true_match_rate")["release fewer datasets (m)"]
    assert found == {**before, "release": {**before["release"], "m": 3}}
    (lever,) = (
        one
        for one in find_levers(verdict("risk.identification.true_match_rate"), PLAN)
        if "(m)" in one.text and one.toml
    )
    assert lever.lines == ("- m = 5", "+ m = 3")
    assert "# kept" in lever.toml


def test_coarser_quasi_identifiers_are_steps_of_whole_numbers_that_are_kept_and_then_twice_as_wide():
    plan = PLAN.replace(
        "[release]",
        'age = { kind = "count", role = "quasi_identifier" }\nsize = { kind = "continuous", role = "quasi_identifier" }\n[release]',
    )
    text = "make the quasi-identifiers coarser, and group their rare values ([release] recode)"

    def turned(toml):
        (lever,) = (
            one for one in find_levers(verdict("risk.identification.true_match_rate"), toml) if one.text == text
        )
        return lever.toml

    once = turned(plan)
    assert read_toml(once)["release"] == {"m": 5, "seed": 1, "recode": {"age": 5}}
    assert read_toml(turned(once))["release"]["recode"] == {"age": 10}
    assert not turned(PLAN)  # which levels are joined, a person says
    made = plan.replace('target = "b"', 'target = "age"')
    assert not turned(made)


def test_larger_leaves_are_those_of_the_variable_that_is_judged():
    leaves = "synthesise the sensitive variables, with larger leaves or fewer predictors"
    (of_b,) = (found for text, found in lever_changes("risk.attribute.risk", "b").items() if text == leaves)
    assert [step.get("minbucket") for step in of_b["synthesis"]] == [14, None]
    (of_all,) = (found for text, found in lever_changes("risk.attribute.risk").items() if text == leaves)
    assert of_all["synthesis"][0]["minbucket"] == 14


def test_what_a_person_has_to_decide_changes_nothing():
    by_hand = [one for one in find_levers(verdict("risk.identification.true_match_rate"), PLAN) if not one.toml]
    assert "synthesise more of the variables that an intruder knows" in {one.text for one in by_hand}
    assert all(one.lines == () for one in by_hand)


def test_a_verdict_that_is_met_has_no_levers_and_one_dataset_cannot_be_fewer():
    assert find_levers(verdict("risk.identification.true_match_rate", outcome="met"), PLAN) == []
    one = PLAN.replace("m = 5", "m = 1")
    assert not [lever for lever in find_levers(verdict("risk.identification.true_match_rate"), one) if lever.toml]


@pytest.mark.parametrize("toml", ["[[synthesis]\n", "m = ", "[release]\nm = 'many'\n"])
def test_a_plan_that_cannot_be_read_is_not_changed(toml):
    assert all(not lever.toml for lever in find_levers(verdict("risk.identification.true_match_rate"), toml))


def test_a_measure_of_another_version_has_no_levers():
    assert find_levers(verdict("risk.gone.away"), PLAN) == []


def test_every_setting_that_an_advice_turns_is_one_of_some_method_or_m():
    advice = [
        one for group in vars(texts).values() if isinstance(group, tuple) for one in group if hasattr(one, "turns")
    ]
    known = {info.name for method in registry().values() for info in method.spec.params()}
    known |= {"m", "recode", "kept", "method", "weights"}  # of the whole plan; a search turns the last three
    turned = {(setting, turn) for one in advice for setting, turn in one.turns.items()}
    assert {setting for setting, _ in turned} <= known
    assert {turn for _, turn in turned} == set(CHANGES)
    assert {"m", "recode", "minbucket", "smoothing", "k", "epsilon", "draws", "kept", "method", "weights"} == {
        setting for setting, _ in turned
    }
    assert ("minbucket", "less") in turned
