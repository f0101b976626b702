"""Two lists of rows side by side: joined by hand, judged by the goal, told apart by SciPy's Welch test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

from sfumato.engine.execution.comparison import ComparedNumber, compare_rows, compare_verdicts, goal_of
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.results import Goal
from sfumato.engine.methods.rows import Row, average_series
from sfumato.engine.recipe.thresholds import Verdict

RATE = Row("risk", "identification", "true_match_rate", "", "synthetic", None, None, None, params={"known": ["a", "b"]})


def rows_of(values: Sequence[float | None], confidential: float | None = 0.6, **changes: Any) -> list[Row]:
    """The confidential row, the average and the datasets' rows of one measure."""
    base = replace(RATE, **changes)
    draws = [
        replace(base, draw=draw, value=value, reason="" if value is not None else "no match", baseline=confidential)
        for draw, value in enumerate(values, start=1)
    ]
    own = replace(base, dataset="confidential", value=confidential)
    return [own, replace(average_series(draws), baseline=confidential), *draws]


def one(first: list[Row], second: list[Row], goal: Goal = "low") -> ComparedNumber:
    (found,) = compare_rows(first, second, lambda row: goal)
    return found


def test_a_row_has_both_values_and_welchs_interval() -> None:
    first, second = [0.1, 0.2, 0.4], [0.5, 0.7, 0.6, 0.8]
    found = one(rows_of(first), rows_of(second))
    assert found.first is not None
    assert found.second is not None
    assert (found.first.value, found.second.value) == pytest.approx((0.7 / 3, 0.65))
    assert (found.confidential_value, found.first.baseline, found.second.baseline) == (0.6, 0.6, 0.6)
    interval = ttest_ind(second, first, equal_var=False).confidence_interval()
    assert (found.difference, found.lower, found.upper) == pytest.approx((0.65 - 0.7 / 3, interval.low, interval.high))
    assert (found.distinguishable, found.better_run) == (True, "first")


@pytest.mark.parametrize(("goal", "better"), [("low", "second"), ("high", "first"), ("one", "second"), ("none", None)])
def test_the_goal_says_which_is_better(goal: Goal, better: str | None) -> None:
    assert one(rows_of([3.0, 3.1]), rows_of([1.0, 1.1]), goal).better_run == better


@pytest.mark.parametrize(
    ("values", "better"), [((0.0, 1.5), "second"), ((2.0, 0.2), "first"), ((0.5, 2.0), None), ((0.9, 0.2), "first")]
)
def test_where_1_is_best_a_copy_is_worse_than_a_model(values: tuple[float, float], better: str | None) -> None:
    first, second = ([value] * 2 for value in values)
    assert one(rows_of(first), rows_of(second), "one").better_run == better
    assert one(rows_of(first), rows_of(second), "low").better_run != better


def test_an_interval_that_covers_0_is_not_distinguishable() -> None:
    assert one(rows_of([1.0, 3.0]), rows_of([1.5, 3.5])).distinguishable is False
    assert one(rows_of([1.0, 1.1]), rows_of([1.5, 1.6])).distinguishable is True


@pytest.mark.slow
def test_runs_of_the_same_models_are_told_apart_5_times_in_100_and_of_others_nearly_always() -> None:
    """The second half is the negative control of the first."""
    rng = np.random.default_rng(3)

    def row_settings(shift: float) -> int:
        pairs = [(rng.normal(0, 1, 10), rng.normal(shift, 3, 10)) for _ in range(400)]
        return sum(bool(one(rows_of(list(a)), rows_of(list(b))).distinguishable) for a, b in pairs)

    assert 8 <= row_settings(0.0) <= 34
    assert row_settings(10.0) > 390


def test_equal_values_are_equal_whatever_the_rounding_of_their_means() -> None:
    found = one(rows_of([0.1] * 3), rows_of([0.1] * 10))
    assert (found.difference, found.better_run, found.distinguishable) == (0, None, False)


def test_one_dataset_has_no_interval_and_says_so() -> None:
    found = one(rows_of([0.1]), rows_of([0.2, 0.3]))
    assert (found.lower, found.distinguishable, found.better_run) == (None, None, "first")
    assert "two datasets" in found.reason


def test_a_value_that_is_no_average_of_its_datasets_has_no_interval() -> None:
    rows = rows_of([0.1, 0.3])
    own_rule = [replace(row, value=0.25) if row.draw is None and row.dataset == "synthetic" else row for row in rows]
    found = one(own_rule, rows_of([0.5, 0.6]))
    assert found.difference == pytest.approx(0.3)
    assert found.distinguishable is None
    assert "rule of its own" in found.reason
    assert one(rows, rows_of([0.5, 0.6])).distinguishable is not None


def test_what_one_run_could_not_compute_has_its_reason() -> None:
    found = one(rows_of([None, None]), rows_of([0.5, 0.6]))
    assert (found.difference, found.better_run, found.distinguishable, found.reason) == (None, None, None, "no match")


def test_datasets_without_a_value_are_left_out_of_the_interval() -> None:
    assert (
        one(rows_of([0.1, None, 0.2]), rows_of([0.5, 0.6])).upper == one(rows_of([0.1, 0.2]), rows_of([0.5, 0.6])).upper
    )


def test_rows_are_joined_on_key_target_params_and_level() -> None:
    first = [
        *rows_of([1.0, 2.0], level=0.1),
        *rows_of([1.0, 2.0], target="price"),
        *rows_of([1.0, 2.0], params={"q": 1}),
    ]
    second = [
        *rows_of([1.0, 2.0], level=0.2),
        *rows_of([1.0, 2.0], target="price"),
        *rows_of([1.0, 2.0], params={"q": 2}),
    ]
    found = compare_rows(first, second, lambda row: "low")
    assert [(row.level, row.target, row.first is None, row.second is None) for row in found] == [
        (0.1, "", False, True),
        (None, "price", False, False),
        (None, "", False, True),
        (0.2, "", True, False),
        (None, "", True, False),
    ]


def test_variables_may_be_listed_in_any_order_but_must_be_the_same() -> None:
    first = rows_of([1.0, 2.0])
    assert len(compare_rows(first, rows_of([1.0, 2.0], params={"known": ["b", "a"]}))) == 1
    assert len(compare_rows(first, rows_of([1.0, 2.0], params={"known": ["b", "c"]}))) == 2


def test_confidential_values_that_differ_are_not_given_as_one() -> None:
    found = one(rows_of([1.0, 2.0], confidential=0.6), rows_of([1.0, 2.0], confidential=0.7))
    assert found.confidential_value is None
    assert found.first is not None
    assert found.first.confidential == 0.6


def test_the_goal_is_the_methods_own() -> None:
    for method in registry().values():
        for output in method.outputs:
            row = replace(RATE, family=method.family, method=method.name, measure=output.name)
            assert goal_of(row) == output.goal
    assert goal_of(replace(RATE, measure="unheard_of")) == "none"
    assert goal_of(replace(RATE, method="unheard_of")) == "none"


def test_a_row_is_json() -> None:
    table = json.loads(json.dumps(one(rows_of([0.1, 0.2]), rows_of([0.5, 0.6])).to_dict(), allow_nan=False))
    assert (table["value"], table["better"], table["distinguishable"]) == (
        "risk.identification.true_match_rate",
        "first",
        True,
    )
    assert (table["first"]["datasets"], table["confidential"]) == (2, 0.6)


def verdict(value: str, limit: float, outcome: Any, **changes: Any) -> Verdict:
    return replace(Verdict(value, "", None, "max", limit, 0.1, 0.0, outcome), **changes)


def test_verdicts_stand_side_by_side_whatever_their_limits() -> None:
    found = compare_verdicts(
        [verdict("a", 0.1, "met"), verdict("b", 1, "not met"), verdict("c", 1, "met", level=0.5)],
        [verdict("b", 2, "met"), verdict("a", 0.2, "not met"), verdict("a", 0.3, "met"), verdict("c", 1, "met")],
    )
    assert [(v.value, v.level, v.first and v.first.limit, v.second and v.second.limit) for v in found] == [
        ("a", None, 0.1, 0.2),
        ("b", None, 1, 2),
        ("c", 0.5, 1, None),
        ("a", None, None, 0.3),
        ("c", None, None, 1),
    ]


def test_a_number_of_all_datasets_together_has_no_interval_and_says_why() -> None:
    together = [replace(row, value=value) for row, value in zip(rows_of([0.1, 0.2])[1:2] * 2, (0.1, 0.3), strict=True)]
    found = one(together[:1], together[1:])
    assert (found.difference, found.lower) == (pytest.approx(0.2), None)
    assert "all datasets together" in found.reason
    assert "two datasets" not in found.reason
