"""What differs between two plans: nothing where they are equal, something wherever they are not, each said once."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.recipe.difference import NOTHING, STEPS, PlanDifference, plan_differences, same_value

PLAN: dict[str, Any] = {
    "title": "Visits",
    "data": {"file": "visits.csv", "where": "age > 0"},
    "variables": {"age": {"kind": "count"}, "a.b": {"kind": "count", "bounds": [0, 9]}},
    "release": {"m": 5, "seed": 1},
    "synthesis": [
        {"target": "visits", "method": "cart", "predictors": ["age"]},
        {"target": "cost", "method": "cart", "predictors": ["age", "visits"], "minbucket": 5},
    ],
    "measure": [
        {"method": "risk.identification", "radius": {"cost": "5%"}},
        {"method": "risk.identification", "radius": {"cost": "20%"}},
    ],
    "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.02}],
}


def changed_plan(**sections: Any) -> dict[str, Any]:
    return {**copy.deepcopy(PLAN), **sections}


def only(found: tuple[PlanDifference, ...]) -> PlanDifference:
    assert len(found) == 1, found
    return found[0]


def test_equal_plans_have_no_difference_in_whatever_order_their_tables_stand() -> None:
    turned = {
        key: dict(reversed(value.items())) if isinstance(value, dict) else value
        for key, value in reversed(PLAN.items())
    }
    assert plan_differences(PLAN, turned) == ()


def test_a_setting_is_named_by_its_step_and_key() -> None:
    now = copy.deepcopy(PLAN)
    now["synthesis"][1]["minbucket"] = 7
    assert only(plan_differences(PLAN, now)) == PlanDifference("changed", "synthesis", 1, "cost", "minbucket", 5, 7)
    now = copy.deepcopy(PLAN)
    now["variables"]["a.b"]["bounds"] = [0, 10]
    assert only(plan_differences(PLAN, now)) == PlanDifference(
        "changed", "variables", None, "", '"a.b".bounds', [0, 9], [0, 10]
    )
    assert only(plan_differences(PLAN, changed_plan(data={"file": "visits.csv"}))) == PlanDifference(
        "removed", "data", None, "", "where", "age > 0", NOTHING
    )
    assert only(plan_differences(PLAN, changed_plan(title="Other"))) == PlanDifference(
        "changed", "title", None, "", "", "Visits", "Other"
    )


def test_a_step_put_in_front_is_one_difference_and_not_one_of_every_step_behind_it() -> None:
    new = {"method": "utility.ecdf"}
    found = only(plan_differences(PLAN, changed_plan(measure=[new, *PLAN["measure"]])))
    assert (found.kind, found.place, found.about, found.now) == ("added", 0, "utility.ecdf", new)
    back = only(plan_differences(changed_plan(measure=[new, *PLAN["measure"]]), PLAN))
    assert (back.kind, back.place, back.before, back.now) == ("removed", 0, new, NOTHING)


def test_two_uses_of_a_method_stay_apart() -> None:
    now = changed_plan(measure=[PLAN["measure"][1], {"method": "risk.identification", "radius": {"cost": "6%"}}])
    found = plan_differences(PLAN, now)
    assert [(one.kind, one.place, one.key, one.before, one.now) for one in found if one.kind == "changed"] == [
        ("changed", 1, "radius.cost", "5%", "6%")
    ]
    moved = next(one for one in found if one.kind == "moved")
    assert (moved.before, moved.now) == (
        ["risk.identification [0]", "risk.identification [1]"],
        ["risk.identification [1]", "risk.identification [0]"],
    )


def test_the_order_of_steps_is_a_difference_of_its_own() -> None:
    found = only(plan_differences(PLAN, changed_plan(synthesis=PLAN["synthesis"][::-1])))
    assert (found.kind, found.section, found.before, found.now) == (
        "moved", "synthesis", ["visits", "cost"], ["cost", "visits"]
    )  # fmt: skip


def test_another_method_for_a_variable_is_a_change_of_its_step() -> None:
    now = changed_plan(synthesis=[{**PLAN["synthesis"][0], "method": "linear_regression"}, PLAN["synthesis"][1]])
    found = only(plan_differences(PLAN, now))
    assert (found.about, found.key, found.before, found.now) == ("visits", "method", "cart", "linear_regression")


@pytest.mark.parametrize(
    ("one", "other"), [(True, 1), (False, 0), ("1", 1), ([], {}), ([1], [[1]]), ("", []), (0.1 + 0.2, 0.3)]
)
def test_what_looks_alike_and_is_not_differs(one: Any, other: Any) -> None:
    assert not same_value(one, other)
    assert plan_differences({"release": {"a": one}}, {"release": {"a": other}})
    assert plan_differences({"measure": [{"method": "a", "b": one}]}, {"measure": [{"method": "a", "b": other}]})


def test_numbers_are_told_by_their_value() -> None:
    assert plan_differences({"release": {"m": 5}}, {"release": {"m": 5.0}}) == ()
    nan = float("nan")
    assert plan_differences({"release": {"m": nan}}, {"release": {"m": float("nan")}}) == ()


values = st.recursive(
    st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0]) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y", "x.y"]), inner, max_size=2),
    max_leaves=4,
)
steps = st.lists(st.dictionaries(st.sampled_from(["method", "target", "value", "k"]), values, max_size=3), max_size=4)
plans = st.fixed_dictionaries(
    {}, optional={"data": values, "title": values, "release": values, **dict.fromkeys([*STEPS][:3], steps)}
)


def without_empty_lists(plan: dict[str, Any]) -> dict[str, Any]:
    """A section without steps is no section."""
    return {key: value for key, value in plan.items() if not (key in STEPS and value == [])}


@pytest.mark.slow
@given(plans, plans)
def test_there_is_a_difference_exactly_where_the_plans_are_not_equal(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    equal = same_value(without_empty_lists(one), without_empty_lists(other))
    assert (plan_differences(one, other) == ()) == equal
    assert plan_differences(one, copy.deepcopy(one)) == ()


@pytest.mark.slow
@given(plans, plans)
def test_the_differences_back_are_as_many(one: dict[str, Any], other: dict[str, Any]) -> None:
    forward, back = plan_differences(one, other), plan_differences(other, one)
    kinds = {"added": "removed", "removed": "added", "changed": "changed", "moved": "moved"}
    whole = [d for d in forward if not d.key and d.place is not None]
    assert sorted(kinds[d.kind] for d in whole) == sorted(d.kind for d in back if not d.key and d.place is not None)


def test_thousands_of_steps_are_no_work() -> None:
    one = {"measure": [{"method": "a", "k": k} for k in range(4_000)]}
    other = {"measure": [{"method": "a", "k": k + 0.5} for k in range(4_000)]}
    assert len(plan_differences(one, other)) == 4_000
