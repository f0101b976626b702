"""Which plans a search may look at: declared levers, guarantees that are kept, plans that differ."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import variables_of

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.search.space import (
    LeverOption,
    SearchLever,
    apply_choice,
    canonical_choice,
    declared_levers,
    describe_choice,
    neighbouring_choices,
    order_lever,
    spread_choices,
)

VARIABLES = variables_of("age: count quasi_identifier", "sex: binary quasi_identifier", "income: continuous sensitive")
SYNTHESIS = {
    "variables": VARIABLES,
    "release": {"m": 2},
    "synthesis": [{"method": "cart", "target": "income", "predictors": ["age", "sex"], "minbucket": 20}],
}
ANONYMISATION = {"variables": VARIABLES, "anonymisation": [{"method": "mondrian", "k": 7}]}


def levers_of(table: dict[str, object]) -> dict[str, SearchLever]:
    return {lever.name: lever for lever in declared_levers(Recipe.from_table(table), {})}


def labels(lever: SearchLever) -> list[str]:
    return [option.label for option in lever.options]


def test_levers_come_from_the_methods_of_the_plan():
    found = levers_of(SYNTHESIS)
    assert set(found) == {"m", "cart.minbucket", "cart.smoothing"}
    assert labels(found["cart.minbucket"]) == ["5", "10", "20", "40", "80", "160"]
    assert found["cart.minbucket"].now == 2
    assert labels(found["m"]) == ["5", "3", "2", "1"]


def test_a_setting_of_numbers_is_no_lever_of_steps_that_make_levels():
    sex = {"method": "cart", "target": "sex", "predictors": ["age"]}
    assert "cart.smoothing" not in levers_of({**SYNTHESIS, "synthesis": [sex]})
    both = [sex, {**SYNTHESIS["synthesis"][0], "smoothing": True}]
    assert labels(levers_of({**SYNTHESIS, "synthesis": both})["cart.smoothing"]) == ["no", "yes"]


def test_no_plan_promises_less_than_the_analyst_asked_for():
    k = levers_of(ANONYMISATION)["mondrian.k"]
    assert labels(k)[0] == "7"
    assert k.now == 0


def test_a_choice_changes_every_step_of_the_method_and_nothing_else():
    levers = declared_levers(Recipe.from_table(SYNTHESIS), {})
    now = tuple(lever.now for lever in levers)
    assert apply_choice(SYNTHESIS, levers, now) == SYNTHESIS
    assert describe_choice(levers, now) == "unchanged"
    at = [lever.name for lever in levers].index("cart.minbucket")
    choice = (*now[:at], 4, *now[at + 1 :])
    table = apply_choice(SYNTHESIS, levers, choice)
    assert table["synthesis"][0]["minbucket"] == 80
    assert {**table, "synthesis": SYNTHESIS["synthesis"]} == SYNTHESIS
    assert describe_choice(levers, choice) == "cart.minbucket 80"
    assert SYNTHESIS["synthesis"][0]["minbucket"] == 20


def test_the_family_may_stand_before_the_name_of_a_method():
    table = {**SYNTHESIS, "synthesis": [{**SYNTHESIS["synthesis"][0], "method": "synthesis.cart"}]}
    levers = declared_levers(Recipe.from_table(table), {})
    at = [lever.name for lever in levers].index("cart.minbucket")
    choice = tuple(lever.now if number != at else 0 for number, lever in enumerate(levers))
    assert apply_choice(table, levers, choice)["synthesis"][0]["minbucket"] == 5


@pytest.mark.parametrize(
    ("narrowed", "said"),
    [
        ({"cart.minbuckets": [5]}, 'did you mean "cart.minbucket"'),
        ({"cart.minbucket": [7]}, "7 is no value that a search tries"),
    ],
)
def test_a_lever_that_there_is_not_is_refused_by_name(narrowed, said):
    with pytest.raises(BadInput, match=said):
        declared_levers(Recipe.from_table(SYNTHESIS), narrowed)


def test_levers_can_be_narrowed_and_left_alone():
    found = declared_levers(Recipe.from_table(SYNTHESIS), {"cart.minbucket": [40], "m": [], "cart.smoothing": []})
    assert [(lever.name, labels(lever)) for lever in found] == [("cart.minbucket", ["20", "40"])]


def made_of(sizes: list[int]) -> list[SearchLever]:
    return [
        SearchLever(f"l{at}", tuple(LeverOption(str(i), lambda _: None) for i in range(size)), min(1, size - 1))
        for at, size in enumerate(sizes)
    ]


@given(st.lists(st.integers(2, 6), min_size=1, max_size=5), st.integers(2, 60), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_plans_are_different_and_the_plan_as_it_is_comes_first(sizes, count, seed):
    levers = made_of(sizes)
    plans = spread_choices(levers, count, seed)
    space = 1
    for size in sizes:
        space *= size
    assert len(plans) == len(set(plans)) == min(count, space)
    assert plans[0] == tuple(lever.now for lever in levers)
    assert all(0 <= at < size for plan in plans for at, size in zip(plan, sizes, strict=True))
    assert plans == spread_choices(levers, count, seed)


@given(st.lists(st.integers(2, 4), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_moves_are_all_plans_one_step_away_the_safer_first(sizes):
    levers = made_of(sizes)
    now = tuple(lever.now for lever in levers)
    found = list(neighbouring_choices(levers, now, safer=True))
    assert len(found) == len(set(found))
    assert all(sum(abs(a - b) for a, b in zip(now, to, strict=True)) == 1 for to in found)
    rising = [sum(to) > sum(now) for to in found]
    assert rising == sorted(rising, reverse=True)


CHAIN = {
    "variables": VARIABLES,
    "synthesis": [
        {"method": "cart", "target": "sex", "predictors": ["age"]},
        {"method": "linear_regression", "target": "income", "predictors": ["log1p(age)", "sex"]},
    ],
}


def test_of_two_variables_the_first_predicts_the_second_in_any_order():
    order = order_lever(Recipe.from_table(CHAIN))
    assert order is not None
    assert labels(order) == ["as in the plan", "reversed"]
    table = apply_choice(CHAIN, [order], (1,))
    assert [(step["target"], step["predictors"]) for step in table["synthesis"]] == [
        ("income", ["log1p(age)"]),
        ("sex", ["age", "income"]),
    ]
    Recipe.from_table(table)
    assert order_lever(Recipe.from_table(SYNTHESIS)) is None


def test_settings_that_change_nothing_beside_the_others_are_no_other_plan():
    """Leaves of trees in a plan whose trees another lever has replaced."""

    def replaced(table):
        table["synthesis"] = [{"method": "linear_regression", "target": "income", "predictors": ["age"]}]

    levers = [
        SearchLever(
            "method",
            (LeverOption("cart", lambda _: None), LeverOption("regression", replaced)),
            0,
            later_protects_more=False,
        ),
        *declared_levers(Recipe.from_table(SYNTHESIS), {"m": [], "cart.smoothing": []}),
    ]
    assert canonical_choice(SYNTHESIS, levers, (1, 4)) == (1, 2)
    assert canonical_choice(SYNTHESIS, levers, (0, 4)) == (0, 4)
    plans = spread_choices(levers, 12, 1, lambda choice: canonical_choice(SYNTHESIS, levers, choice))
    assert len(plans) == len(set(plans)) == 7
    assert len({str(apply_choice(SYNTHESIS, levers, one)) for one in plans}) == 7


def test_a_guarantee_of_several_methods_is_one_lever():
    local = {"method": "local_suppression", "k": 5}
    recoded = {"method": "optimal_recoding", "k": 5, "below": "keep", "max_suppressed": 0.1}
    found = levers_of({"variables": VARIABLES, "anonymisation": [recoded, local]})
    assert set(found) == {"k", "optimal_recoding.objective", "optimal_recoding.max_suppressed"}
    assert not found["optimal_recoding.objective"].later_protects_more
    table = {"anonymisation": [dict(recoded), dict(local)]}
    found["k"].options[1].change(table)
    assert {step["k"] for step in table["anonymisation"]} == {7}


def test_a_lever_without_an_order_moves_to_any_of_its_options():
    levers = [SearchLever("a", made_of([4])[0].options, 2, later_protects_more=False), made_of([3])[0]]
    assert list(neighbouring_choices(levers, (2, 1), safer=True)) == [(2, 2), (0, 1), (1, 1), (3, 1), (2, 0)]
    assert next(neighbouring_choices(levers, (2, 1), safer=True, asks=(((1, -1),),))) == (2, 0)


def test_a_setting_that_a_plan_leaves_out_is_no_lever_and_a_promise_is_never_weaker():
    step = {"method": "margins", "target": ["age", "sex"], "bins": {"age": "width 10"}}
    coarsened = levers_of({**SYNTHESIS, "synthesis": [{**step, "limit": 10}]})
    assert "margins.epsilon" not in coarsened
    assert labels(coarsened["margins.limit"]) == ["10", "20", "30"]
    noisy = levers_of({**SYNTHESIS, "synthesis": [{**step, "epsilon": 1.0}]})
    assert labels(noisy["margins.epsilon"]) == ["1", "0.3", "0.1"]
