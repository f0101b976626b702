from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Threshold, judge_thresholds
from sfumato.workspace.reporting.words import limit_text

SCHEMA = Schema((Variable("price", Kind.CONTINUOUS), Variable("days", Kind.COUNT)))
JUDGED = [
    (find_method("utility.ecdf", ""), {}),
    (find_method("utility.propensity", ""), {"model": "cart", "permutations": 9}),
]
GAP = "utility.ecdf.max_abs_difference"


@pytest.mark.parametrize(
    "table",
    [
        {"value": GAP, "max": 0.1},
        {"value": GAP, "min": 1.0},
        {"value": GAP, "max_ratio": 0.5},
        {"value": GAP, "max_increase": 0.0},
        {"value": GAP, "max_increase": 0.05},
        {"value": GAP, "target": "price", "level": 0.05, "max": 0.1},
        {"value": GAP, "level": 0.0, "max": 0.1},
        {"value": "utility.propensity.pmse", "params": {"model": "cart"}, "max": 0.1},
        {"value": "utility.propensity.pmse", "params": {"permutations": 9, "cp": 1e-8, "own": "x"}, "max": 0.1},
    ],
)
def test_a_threshold_comes_back_the_same(table: dict[str, Any]) -> None:
    threshold = Threshold.from_table(table, "threshold[0]", JUDGED, SCHEMA)
    assert threshold.to_table() == table


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({"max": 1}, "t.value", '"" is not measured'),
        ({"value": "utility.ecdf.max_abs_diference", "max": 1}, "t.value", f'did you mean "{GAP}"?'),
        ({"value": "zzz", "max": 1}, "t.value", f"measured: {GAP}"),
        ({"value": GAP}, "t", "Enter a limit: one of max, min, max_ratio, max_increase"),
        ({"value": GAP, "max": 1, "min": 0}, "t", "has max and min; keep one"),
        ({"value": GAP, "max": "1"}, "t.max", "'1' must be a number"),
        ({"value": GAP, "max": True}, "t.max", "True must be a number"),
        ({"value": GAP, "max": float("nan")}, "t.max", "must be a number"),
        ({"value": GAP, "max": 1, "target": "prices"}, "t.target", 'did you mean "price"?'),
        ({"value": GAP, "max": 1, "level": "low"}, "t.level", "must be a number"),
        ({"value": GAP, "maximum": 1}, "t.maximum", "unknown key"),
        ({"value": GAP, "max": 1, "params": "cart"}, "t.params", "must be a table"),
        ({"value": GAP, "max": 1, "params": {"points": "distinct"}}, "t.params.points", "there is pooled"),
        (
            {"value": "utility.propensity.pmse", "max": 1, "params": {"model": "logit"}},
            "t.params.model",
            "no step of utility.propensity in this recipe has model = logit; there is cart",
        ),
    ],
)
def test_a_threshold_that_cannot_be_is_refused(table: dict[str, Any], place: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        Threshold.from_table(table, "t", JUDGED, SCHEMA)
    assert caught.value.place == place
    assert message in caught.value.message


def test_an_intermediate_output_is_no_value_to_hold_a_threshold_against() -> None:
    judged = [(find_method("utility.interval_overlap", ""), {})]
    with pytest.raises(BadInput, match="is not measured by this recipe"):
        Threshold.from_table({"value": "utility.interval_overlap.size_ratio", "max": 1}, "t", judged, SCHEMA)


def test_a_recipe_that_measures_nothing_says_so() -> None:
    with pytest.raises(BadInput, match="measured: nothing"):
        Threshold.from_table({"value": GAP, "max": 1}, "t", [], SCHEMA)


def row(value: float | None, **changes: Any) -> Row:
    plain = Row("utility", "ecdf", "max_abs_difference", "price", "synthetic", None, None, value)
    if value is None:
        plain = replace(plain, status="not computed", reason="no records")
    return replace(plain, **changes)


@pytest.mark.parametrize(
    ("bound", "limit", "value", "outcome", "margin"),
    [
        ("max", 0.1, 0.05, "met", 0.05),
        ("max", 0.1, 0.1, "met", 0.0),
        ("max", 0.1, 0.15, "not met", -0.05),
        ("min", 0.9, 0.95, "met", 0.05),
        ("min", 0.9, 0.9, "met", 0.0),
        ("min", 0.9, 0.8, "not met", -0.1),
        ("max", 0.1, None, "not computed", None),
        ("min", 0.1, None, "not computed", None),
    ],
)
def test_a_value_is_held_against_its_bound(
    bound: Any, limit: float, value: float | None, outcome: str, margin: float | None
) -> None:
    (verdict,) = judge_thresholds([Threshold(GAP, bound, limit)], [row(value)])
    assert (verdict.outcome, verdict.observed) == (outcome, value)
    assert verdict.margin == (None if margin is None else pytest.approx(margin))
    assert verdict.reason == ("no records" if value is None else "")


@pytest.mark.parametrize(
    ("own", "observed", "outcome", "reason"),
    [
        (0.4, 0.5, "met", ""),
        (0.1, 2.0, "not met", ""),
        (0.0, None, "not computed", "the confidential data's own value is 0; use max_increase in place of max_ratio"),
        (None, None, "not computed", "the confidential data have no value to compare with"),
    ],
)
def test_a_ratio_is_to_the_confidential_datas_own_value(
    own: float | None, observed: float | None, outcome: str, reason: str
) -> None:
    rows = [row(0.2), row(own, dataset="confidential")]
    (verdict,) = judge_thresholds([Threshold(GAP, "max_ratio", 0.5)], rows)
    assert (verdict.observed, verdict.outcome, verdict.reason) == (observed, outcome, reason)


def test_a_ratio_without_a_confidential_row_is_not_computed() -> None:
    (verdict,) = judge_thresholds([Threshold(GAP, "max_ratio", 0.5)], [row(0.2)])
    assert verdict.outcome == "not computed"


def test_only_averages_of_the_release_are_judged() -> None:
    rows = [row(0.9, draw=1), row(0.9, dataset="confidential"), row(0.9, measure="mean_squared_difference"), row(0.05)]
    verdicts = judge_thresholds([Threshold(GAP, "max", 0.1)], rows)
    assert [verdict.observed for verdict in verdicts] == [0.05]


@pytest.mark.parametrize(
    ("target", "level", "observed"),
    [
        ("", None, [0.1, 0.2, 0.3]),
        ("price", None, [0.1, 0.2]),
        ("days", None, [0.3]),
        ("", 0.5, [0.2]),
        ("price", 0.7, [None]),
    ],
)
def test_target_and_level_choose_the_rows(target: str, level: float | None, observed: list[float | None]) -> None:
    rows = [row(0.1), row(0.2, level=0.5), row(0.3, target="days")]
    verdicts = judge_thresholds([Threshold(GAP, "max", 1.0, target, level)], rows)
    assert [verdict.observed for verdict in verdicts] == observed


def test_a_value_that_no_row_has_is_no_pass() -> None:
    (verdict,) = judge_thresholds([Threshold(GAP, "max", 1.0)], [])
    assert (verdict.outcome, verdict.reason) == ("not computed", "the run has no such row")
    assert verdict.to_dict()["outcome"] == "not computed"


R = "risk.bayesian_posterior.posterior_risk"


@pytest.mark.parametrize(
    ("value", "before", "outcome", "observed", "reason"),
    [
        (0.30, 0.25, "met", 1.2, ""),
        (0.31, 0.25, "not met", 1.24, ""),
        (0.31, 0.0, "not computed", None, "the value before the release is 0; use max_increase in place of max_ratio"),
        (0.31, None, "not computed", None, "the value before the release is not known"),
    ],
)
def test_a_ratio_of_what_an_intruder_guesses_is_held_against_what_was_guessed_before(
    value: float, before: float | None, outcome: str, observed: float | None, reason: str
) -> None:
    exact = (value, value, value)
    of = Row("risk", "bayesian_posterior", "posterior_risk", "", "synthetic", None, None, *exact, baseline=before)
    (verdict,) = judge_thresholds([Threshold(R, "max_ratio", 1.2)], [of])
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert verdict.observed == (None if observed is None else pytest.approx(observed))
    assert limit_text(verdict.bound, verdict.limit, verdict.value) == "at most 120 % of that before the release"


def test_a_ratio_of_any_other_measure_is_held_against_the_confidential_data() -> None:
    """The control: a baseline is no confidential value."""
    own = Row("risk", "bayesian_posterior", "prior_risk", "", "synthetic", None, None, 0.3, baseline=0.25)
    (verdict,) = judge_thresholds([Threshold("risk.bayesian_posterior.prior_risk", "max_ratio", 1.2)], [own])
    assert verdict.outcome == "not computed"
    assert limit_text(verdict.bound, verdict.limit, verdict.value) == "at most 120 % of the confidential value"
