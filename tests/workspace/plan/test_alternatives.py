"""What methods offer in place of the steps of a plan: other methods for a variable, kept variables, other anonymisations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.table_profile import profile_table
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.search.space import SearchLever, apply_choice
from sfumato.workspace.plan.alternatives import (
    ADDED_LEVER,
    BINS,
    COARSENING_LEVER,
    JOINT_LEVER,
    WEIGHTS_LEVER,
    build_levers,
    offered_steps,
)
from sfumato.workspace.plan.drafting import DraftRequest, make_drafted_plan

VARIABLES = variables_of(
    "age: count quasi_identifier",
    "region: categorical quasi_identifier",
    "income: continuous sensitive",
    "sick: binary sensitive",
)
SYNTHESIS: list[dict[str, Any]] = [
    {"method": "cart", "target": "sick", "predictors": ["age", "region"]},
    {"method": "cart", "target": "income", "predictors": ["age", "region", "sick"]},
]


def read(recipe: Recipe, records: int = 400) -> Microdata:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, records),
            "region": rng.choice(["north", "south", "east", "west"], records),
            "income": np.exp(rng.normal(9, 0.5, records)),
            "sick": rng.choice(["no", "yes"], records, p=[0.8, 0.2]),
        }
    )
    return conform_to_schema(frame, recipe.schema)


def levers(table: dict[str, Any]) -> tuple[Recipe, list[SearchLever]]:
    recipe = Recipe.from_table(table)
    return recipe, build_levers(recipe, offered_steps(recipe, read(recipe)))


def labels(found: list[SearchLever]) -> dict[str, list[str]]:
    return {lever.name: [option.label for option in lever.options] for lever in found}


def test_a_variable_may_be_made_by_every_method_that_offers_to():
    table = {"variables": VARIABLES, "synthesis": SYNTHESIS}
    _, found = levers(table)
    said = labels(found)
    assert said["method of income"] == ["cart", "linear_regression"]
    assert said["method of sick"] == ["cart", "multinomial_logistic"]
    assert said["order of synthesis"] == ["as in the plan", "reversed"]
    assert said[ADDED_LEVER] == ["nothing", "age", "age, region"]


def test_every_plan_that_one_lever_makes_is_one():
    table = {"variables": VARIABLES, "synthesis": SYNTHESIS}
    recipe, found = levers(table)
    for at, lever in enumerate(found):
        for to in range(len(lever.options)):
            choice = tuple(to if one == at else other.now for one, other in enumerate(found))
            made = Recipe.from_table(apply_choice(table, found, choice))
            assert set(recipe.released) <= set(made.released)


def test_a_drafted_plan_measures_what_a_lever_synthesises_besides():
    """Else it would look as if that lost nothing, and a search would take it."""
    seen = profile_table(read(Recipe.from_table({"title": "t", "variables": VARIABLES, "synthesis": SYNTHESIS})))
    plan = make_drafted_plan({"title": "t", "variables": VARIABLES}, seen, DraftRequest()).table
    _, found = levers(plan)
    every = [len(lever.options) - 1 if lever.name == ADDED_LEVER else lever.now for lever in found]
    made = Recipe.from_table(apply_choice(plan, found, every))
    assert "age" in made.released
    compared = {
        name
        for step in made.measures
        if step.method.family == "utility"
        for name in getattr(step.spec.for_release(made.schema, made.released), "means", ())
    }
    assert compared == {"age", "income"}


def test_all_that_a_plan_makes_may_be_made_by_one_step_given_what_it_keeps():
    table = {"variables": VARIABLES, "synthesis": SYNTHESIS}
    assert labels(levers(table)[1])[JOINT_LEVER] == ["as in the plan", "margins"], (
        "what samples chains has to be asked for"
    )
    table = {**table, "search": {"levers": {JOINT_LEVER: ["dpmpm", "margins"]}}}
    recipe, found = levers(table)
    said = labels(found)
    assert said[JOINT_LEVER] == ["as in the plan", "dpmpm", "margins"]
    assert said[BINS] == ["as in the plan", "half as many", "a quarter"]

    def apply_levers(**turned: int) -> Recipe:
        choice = tuple(turned.get(lever.name, lever.now) for lever in found)
        return Recipe.from_table(apply_choice(table, found, choice))

    mixture = apply_levers(**{JOINT_LEVER: 1}).synthesis
    assert [(step.method.name, step.targets, step.spec.predictors) for step in mixture] == [
        ("dpmpm", ("sick", "income"), ("age", "region"))
    ]
    besides = apply_levers(**{JOINT_LEVER: 1, ADDED_LEVER: 1}).synthesis[0]
    assert (besides.targets, besides.spec.predictors) == (("age", "sick", "income"), ("region",))
    assert {
        name: rule.written for name, rule in apply_levers(**{JOINT_LEVER: 1, BINS: 2}).synthesis[0].spec.bins.items()
    } == {
        "age": "2 equal count",
        "income": "2 equal count",
    }
    assert apply_levers(**{JOINT_LEVER: 2}).synthesis[0].targets == recipe.schema.names
    assert apply_levers(**{BINS: 2}) == recipe, "a plan without bins has none to make wider"


@pytest.mark.parametrize(
    ("more", "offered"),
    [
        ({}, ["dpmpm", "margins"]),
        ({"threshold": [{"value": "risk.identification.true_match_rate", "max": 0.2}]}, ["dpmpm"]),
        ({"variables": {**VARIABLES, "survey": {"kind": "continuous", "role": "weight"}}}, []),
        ({"synthesis": [{"method": "perturbed_gibbs", "target": ["region", "sick"], "epsilon": 1.0}]}, []),
    ],
    ids=["plain", "limit on people", "survey", "private"],
)
def test_joint_methods_are_offered_where_their_release_can_be_judged_and_no_promise_is_lost(more, offered):
    table = {"variables": VARIABLES, "synthesis": SYNTHESIS, **more}
    if "threshold" in more:
        table["measure"] = [{"method": "risk.identification", "known": ["age", "region"], "synthesised": ["sick"]}]
    recipe = Recipe.from_table(table)
    frame = read(Recipe.from_table({"variables": VARIABLES, "synthesis": SYNTHESIS})).frame
    data = conform_to_schema(frame.assign(survey=1.5)[list(recipe.schema.names)], recipe.schema)
    assert [one[JOINT_LEVER]["method"] for one in offered_steps(recipe, data) if JOINT_LEVER in one] == offered


def test_records_at_risk_have_less_influence_where_every_step_can_weigh_and_no_plan_is_weighed_in_part():
    table = {"variables": VARIABLES, "synthesis": SYNTHESIS}
    _, found = levers(table)
    assert labels(found)[WEIGHTS_LEVER] == ["all alike", "strength 0.5", "strength 1"]

    def weights(**turned: int) -> Any:
        choice = tuple(turned.get(lever.name, lever.now) for lever in found)
        return apply_choice(table, found, choice).get("weights")

    regressions, said = {"method of income": 1, "method of sick": 1}, {"known": ["age", "region"], "strength": 1.0}
    assert weights(**regressions, **{WEIGHTS_LEVER: 2}) == said
    assert weights(**{WEIGHTS_LEVER: 2}) == said, "trees weigh records too"
    assert weights(**{"method of income": 1, WEIGHTS_LEVER: 1}) == {**said, "strength": 0.5}
    assert weights(**regressions, **{JOINT_LEVER: 1, WEIGHTS_LEVER: 2}) is None
    assert weights(**regressions) is None
    in_part = {**table, "synthesis": [{"method": "marginal_bootstrap", "target": "sick"}, SYNTHESIS[1]]}
    found = levers(in_part)[1]
    assert weights(**{WEIGHTS_LEVER: 2}) is None, "one of two steps cannot weigh"
    weighed = {**table, "weights": {"known": ["region"], "strength": 0.25}}
    found = levers(weighed)[1]
    assert labels(found)[WEIGHTS_LEVER] == ["all alike", "strength 0.25", "strength 0.5", "strength 1"]
    assert found[-1].now == 1
    table = weighed
    assert [weights(**{WEIGHTS_LEVER: at}) for at in range(3)] == [
        None,
        weighed["weights"],
        {"known": ["region"], "strength": 0.5},
    ]
    assert weights(**{JOINT_LEVER: 1}) is None, "a plan that cannot weigh weighs none"
    assert weights(**{"method of sick": 1}) == weighed["weights"]
    without = {name: {**one, "role": "other"} for name, one in VARIABLES.items()}
    assert WEIGHTS_LEVER not in labels(levers({"variables": without, "synthesis": SYNTHESIS})[1])


def test_an_anonymisation_may_be_the_lattice_and_then_local_suppression():
    step = {"method": "mondrian", "k": 5, "quasi_identifiers": ["age", "region"]}
    table = {"variables": VARIABLES, "anonymisation": [step]}
    _, found = levers(table)
    said = labels(found)
    assert said["anonymisation"] == [
        "as in the plan",
        "optimal_recoding",
        "local_suppression",
        "optimal_recoding, then local_suppression",
    ]
    assert {"k", "optimal_recoding.objective", "optimal_recoding.max_suppressed"} <= set(said)
    assert said["k"][0] == "5", "no plan promises less"
    made = apply_choice(table, found, tuple(3 if lever.name == "anonymisation" else lever.now for lever in found))
    first, second = Recipe.from_table(made).anonymisation
    assert (first.method.name, second.method.name) == ("optimal_recoding", "local_suppression")
    assert made["anonymisation"][0]["widths"]["age"]


@pytest.mark.parametrize("limit", [{"l": 2.0}, {"t": 0.4}])
def test_what_an_anonymisation_promises_of_sensitive_values_every_other_promises_too(limit):
    step = {"method": "mondrian", "k": 3, "quasi_identifiers": ["region"], "sensitive": ["sick"], **limit}
    variables = {**VARIABLES, "income": {**VARIABLES["income"], "role": "other"}}
    table = {"variables": variables, "anonymisation": [step]}
    recipe = Recipe.from_table(table)
    offered = offered_steps(recipe, read(recipe))
    assert [[one["method"] for one in steps["anonymisation"]] for steps in offered] == [["optimal_recoding"]]
    ((other,),) = (steps["anonymisation"] for steps in offered)
    assert {name: other[name] for name in limit} == limit


def test_a_lever_can_be_left_alone_by_its_name():
    table = {
        "variables": VARIABLES,
        "synthesis": SYNTHESIS,
        "search": {"levers": {"method of income": [], ADDED_LEVER: []}},
    }
    _, found = levers(table)
    assert "method of income" not in labels(found)
    assert ADDED_LEVER not in labels(found)
    with pytest.raises(BadInput, match='did you mean "method of income"'):
        levers({**table, "search": {"levers": {"method of incom": []}}})


KEYS: dict[str, Any] = {
    **VARIABLES,
    "place": {"kind": "categorical", "role": "quasi_identifier"},
    "school": {"kind": "ordinal", "role": "quasi_identifier", "levels": ["1", "2", "3", "4", "5"]},
}


def with_keys() -> tuple[dict[str, Any], Any]:
    """A plan with a quasi-identifier of which three levels are rare, and one whose ends are."""
    table = {"variables": {**KEYS, "age": {**KEYS["age"], "role": "quasi_identifier"}}, "synthesis": SYNTHESIS}
    recipe = Recipe.from_table(table)
    frame = read(Recipe.from_table({"variables": VARIABLES, "synthesis": SYNTHESIS})).frame
    count = len(frame)
    place = ["a"] * (count - 12) + ["d"] * 6 + ["c"] * 4 + ["b"] * 2
    school = ["1"] * 3 + ["2"] * 30 + ["3"] * (count - 39) + ["4"] * 2 + ["5"] * 4
    return table, conform_to_schema(frame.assign(place=place, school=school), recipe.schema)


def test_quasi_identifiers_become_coarser_by_steps_and_by_joining_the_levels_of_few_people():
    table, data = with_keys()
    recipe = Recipe.from_table(table)
    found = {lever.name: lever for lever in build_levers(recipe, offered_steps(recipe, data))}
    place, school = found[COARSENING_LEVER.format("place")], found[COARSENING_LEVER.format("school")]
    assert [option.label for option in place.options] == ["as in the plan", "3 levels as other"]
    assert [option.label for option in school.options][1] == "2 levels as 1 to 2; 3 levels as 3 to 5"
    assert all(lever.later_protects_more and lever.setting == "recode" for lever in (place, school))
    levers = [place, found[COARSENING_LEVER.format("age")]]
    after = apply_choice(table, levers, (1, 2))
    rules = after["release"]["recode"]
    assert rules["place"] == {"other": ["b", "c", "d"]}
    check_steps(Recipe.from_table(after), data)
    assert not any(rules["age"] % width for width in (2, 5) if width <= rules["age"])


def test_steps_of_a_number_that_another_lever_synthesises_are_left_out():
    table, data = with_keys()
    recipe = Recipe.from_table(table)
    levers = build_levers(recipe, offered_steps(recipe, data))
    choice = tuple(
        len(lever.options) - 1 if lever.name in (ADDED_LEVER, COARSENING_LEVER.format("age")) else lever.now
        for lever in levers
    )
    after = apply_choice(table, levers, choice)
    assert "age" in {str(step["target"]) for step in after["synthesis"]}
    assert "age" not in after.get("release", {}).get("recode", {})
    check_steps(Recipe.from_table(after), data)


def test_a_plan_with_steps_is_only_offered_wider_ones():
    table, data = with_keys()
    table = {**table, "release": {"recode": {"age": 10, "place": {"other": ["b", "c", "d"]}}}}
    recipe = Recipe.from_table(table)
    found = {lever.name: lever for lever in build_levers(recipe, offered_steps(recipe, data))}
    assert COARSENING_LEVER.format("place") not in found
    widths = [option.label for option in found[COARSENING_LEVER.format("age")].options[1:]]
    assert widths
    assert all(float(width) > 10 and float(width) % 10 == 0 for width in widths)


def test_nothing_is_made_coarser_where_hardly_anybody_is_alone():
    table, data = with_keys()
    recipe = Recipe.from_table(table)
    few = replace(data, frame=pd.concat([data.frame] * 2, ignore_index=True))
    names = [[one.name for one in build_levers(recipe, offered_steps(recipe, each))] for each in (data, few)]
    assert COARSENING_LEVER.format("place") in names[0]
    assert not [name for name in names[1] if name.startswith(COARSENING_LEVER.format(""))]
