"""Steps of a plan in words: names of methods and numbers, settings to the last digit, nothing left out."""

import pytest
from prepared_tables import variables_of

from sfumato.engine.methods.registry import registry
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.reporting.plan_steps import describe_plan_head, describe_step, exact_value_text, plan_facts

PLAN = {
    "title": "Survey",
    "data": {"file": "a.csv", "holdout": 0.2},
    "variables": variables_of(
        "age: count quasi_identifier",
        "sex: binary quasi_identifier",
        "income: continuous sensitive",
        "town: categorical",
    ),
    "release": {"m": 5, "seed": 3},
    "synthesis": [
        {"method": "cart", "target": "income", "predictors": ["age", "sex"], "minbucket": 7, "smoothing": True}
    ],
    "measure": [{"method": "risk.identification", "radius": {"income": "10%", "age": 1}}],
    "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.012345678, "target": "income"}],
}


def words(section, index=0, plan=PLAN):
    return describe_step(section, plan[section][index], plan)


def test_a_step_is_called_by_its_method_and_says_every_setting():
    found = words("synthesis")
    assert found.name == "Classification and regression trees"
    assert found.settings == "income; predictors age, sex; leaves of at least 7 records; smoothing yes"
    facts = dict(found.facts)
    assert (facts["replaces"], facts["predictors"], facts["key"]) == ("income", "age, sex", "synthesis.cart")
    assert "complexity (cp) 1e-08" in facts["defaults"]
    assert "minbucket" not in facts["defaults"]
    assert facts["minbucket"] == "7: fewest records in a leaf; a split needs three times as many"
    assert dict(found.meanings)["cp"].startswith("complexity")
    assert "minbucket" not in dict(found.meanings), "it is explained where its value stands"


def test_what_an_intruder_knows_is_said_where_the_plan_leaves_it_to_the_roles():
    facts = dict(words("measure").facts)
    assert facts["known"] == "age, sex (all quasi-identifiers)"
    assert facts["radius"] == "income 10%, age 1"
    assert "People found for certain: at most 1.2" in facts["limit"]
    told = {**PLAN, "measure": [{"method": "risk.identification", "known": ["sex"]}]}
    assert dict(words("measure", plan=told).facts)["known"] == "sex"


def test_a_limit_says_for_which_people_it_is():
    step = {
        "value": "risk.attribute_inference.advantage",
        "target": "income",
        "max": 0.2,
        "params": {"people": "random", "guesses": "all"},
    }
    assert words("threshold", plan={**PLAN, "threshold": [step]}).settings.endswith(
        "; income; people drawn at random; every guess counts"
    )
    easiest = {**step, "params": {"people": "vulnerable", "guesses": "surest"}}
    assert words("threshold", plan={**PLAN, "threshold": [easiest]}).settings.endswith(
        "; income; people easiest to find; surest guesses"
    )


def test_a_limit_is_called_by_its_number():
    found = words("threshold")
    assert found.name == "People found for certain"
    assert found.settings.endswith("; income")
    facts = dict(found.facts)
    assert facts["measured by"] == "Identification risk"
    assert "release fewer datasets (m)" in facts["what to change"]


@pytest.mark.parametrize(
    ("section", "step"),
    [
        ("synthesis", {}),
        ("synthesis", {"method": "no_such", "target": 3}),
        ("measure", {"method": ["risk"], "known": "all"}),
        ("threshold", {"max": 1}),
        ("threshold", {"value": 7, "max": "much"}),
        ("threshold", {"value": "risk.identification.true_match_rate", "max": 0.1, "min": 0.2}),
        ("threshold", {"value": "no.such.thing", "max": True}),
    ],
)
def test_what_cannot_be_read_is_shown_as_it_is_written(section, step):
    found = describe_step(section, step, {"threshold": [step], "variables": 3, "data": 4})
    for value in step.values():
        assert exact_value_text(value) in f"{found.name} {found.settings} {found.facts}"


def test_values_keep_every_digit():
    assert exact_value_text(0.012345678901234) == "0.012345678901234"
    assert exact_value_text([[1, 2], ["a"]]) == "(1, 2), (a)"
    assert exact_value_text({"a": False, "b": None}) == "a no, b "


def test_the_head_says_data_release_and_the_roles_of_all_variables():
    found = describe_plan_head(PLAN)
    assert (found.name, found.settings) == ("a.csv", "5 datasets; seed 3; 20 % kept back")
    assert dict(found.facts)["quasi-identifier"] == "age, sex"
    assert dict(found.facts)["other"] == "town"
    assert {name for names in dict(found.facts).values() for name in names.split(", ")} >= set(PLAN["variables"])


@pytest.mark.parametrize("name", ["randhie", "ce", "acs"])
def test_a_plan_in_words_names_every_variable_method_and_limit_of_a_recipe(name):
    table = find_recipe(name).table
    said = "\n".join(text for _, text in plan_facts(table))
    for variable in table["variables"]:
        assert variable in said
    for section in ("synthesis", "anonymisation", "measure", "study"):
        for step in table.get(section, []):
            method = registry().get(step["method"]) or registry()[f"{section}.{step['method']}"]
            assert method.title in said
    assert len(table.get("threshold", [])) <= said.count("at most") + said.count("at least")
    assert "at most" not in "\n".join(text for _, text in plan_facts(table, limits=False))


@pytest.mark.parametrize("threshold", [3, "x", [4], [{"value": ["a"], "max": [1]}], [{"params": {}}]])
def test_a_plan_that_is_half_typed_is_said_as_far_as_it_goes(threshold):
    table = {**PLAN, "threshold": threshold, "study": [3], "release": "m", "weights": [1]}
    assert words("measure", plan=table).name == "Identification risk"
    assert ("studies", "") not in plan_facts(table)
