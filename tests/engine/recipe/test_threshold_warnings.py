"""Limits that can hardly be meant: each output's own direction and range decide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.intervals import AT_LEAST_ONE, NON_NEGATIVE, SHARE, UNBOUNDED
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.threshold_warnings import (
    beyond_range_warning,
    natural_bound,
    never_computed_warning,
    never_fails_warning,
    threshold_warnings,
    wrong_side_warning,
)
from sfumato.engine.recipe.thresholds import BOUNDS, Threshold, judge_thresholds, threshold_output

K = Output("k", "records in the smallest class", "high", "records", range=AT_LEAST_ONE)
RISK = Output("rate", "records that are found", "low", "share", range=SHARE)
GAP = Output("gap", "how far apart", "low", range=NON_NEGATIVE)
EITHER = Output("mean", "the mean", "none", range=UNBOUNDED)
OUTPUTS = st.sampled_from([K, RISK, GAP, EITHER])


def test_at_most_5_is_no_limit_of_a_k_that_should_be_large() -> None:
    assert "higher is better" in wrong_side_warning(K, "max")
    assert wrong_side_warning(K, "max").endswith("mean min?")
    assert wrong_side_warning(K, "min") == ""
    assert "higher is better" in wrong_side_warning(K, "max_ratio")


def test_at_least_is_no_limit_of_a_risk() -> None:
    assert "lower is better" in wrong_side_warning(RISK, "min")
    assert wrong_side_warning(RISK, "max") == wrong_side_warning(RISK, "max_ratio") == ""


def test_what_has_no_better_direction_may_be_limited_on_either_side() -> None:
    assert not any(wrong_side_warning(EITHER, bound) for bound in BOUNDS)


def test_50_of_a_share_was_meant_in_per_cent() -> None:
    assert beyond_range_warning(RISK, "max", 50) == "a share is between 0 and 1: 0.5?"
    assert beyond_range_warning(RISK, "max", -0.1) == "a share is between 0 and 1, not -0.1"
    assert beyond_range_warning(RISK, "max", 101) == "a share is between 0 and 1, not 101"
    assert beyond_range_warning(K, "min", 0) == "this value is at least 1, not 0"
    assert beyond_range_warning(RISK, "max_ratio", 50) == "", "50 times the confidential data's own share is a limit"
    assert beyond_range_warning(RISK, "max_ratio", -1) != ""


def test_an_increase_is_no_larger_than_the_range() -> None:
    assert beyond_range_warning(RISK, "max_increase", 50) == "two values between 0 and 1 differ by at most 1: 0.5?"
    assert beyond_range_warning(RISK, "max_increase", -0.1) == beyond_range_warning(GAP, "max_increase", 50) == ""
    assert "never fails" in never_fails_warning(RISK, "max_increase", 1.0)


def test_a_ratio_of_values_that_may_be_negative_is_warned_of() -> None:
    assert "use max_increase" in never_computed_warning(EITHER, "max_ratio")
    assert never_computed_warning(RISK, "max_ratio") == never_computed_warning(EITHER, "max_increase") == ""


@pytest.mark.parametrize(
    ("output", "bound", "limit"), [(RISK, "max", 1.0), (RISK, "min", 0.0), (K, "min", 1.0), (GAP, "min", 0.0)]
)
def test_a_limit_at_the_end_of_the_range_never_fails(output: Output, bound: str, limit: float) -> None:
    assert "never fails" in never_fails_warning(output, bound, limit)  # type: ignore[arg-type]


@given(OUTPUTS, st.sampled_from(["max", "min"]), st.floats(-3, 3), st.floats(-3, 3))
def test_what_is_said_is_true_of_every_value_of_the_range(
    output: Output, bound: str, limit: float, value: float
) -> None:
    """A value in the range that keeps to the limit, and one that does not, by the judge itself."""
    low, high = output.range
    if (low is not None and value < low) or (high is not None and value > high):
        return
    row = Row("x", "y", output.name, "", "synthetic", None, None, value)
    [verdict] = judge_thresholds([Threshold(row.key, bound, limit)], [row])  # type: ignore[arg-type]
    if never_fails_warning(output, bound, limit):  # type: ignore[arg-type]
        assert verdict.outcome == "met"
    if beyond_range_warning(output, bound, limit):  # type: ignore[arg-type]
        always = (bound == "max" and high is not None and limit > high) or (
            bound == "min" and low is not None and limit < low
        )
        assert verdict.outcome == ("met" if always else "not met")


def test_the_thresholds_of_a_recipe_are_told_of_with_their_places() -> None:
    found = threshold_warnings(
        [
            Threshold("risk.identification.true_match_rate", "max", 0.1),
            Threshold("risk.anonymity.k", "max", 5.0),
            Threshold("risk.identification.true_match_rate", "max", 50.0),
            Threshold("risk.identification.true_match_rate", "max", 1.0),
            Threshold("gone.method.value", "max", 1.0),
        ]
    )
    assert [one.partition(":")[0] for one in found] == ["threshold[1].max", "threshold[2].max", "threshold[3].max"]


def test_every_output_has_a_natural_side_that_nothing_speaks_against() -> None:
    for method in registry().values():
        for output in method.result_outputs:
            assert threshold_output(f"{method.key}.{output.name}") == output
            assert wrong_side_warning(output, natural_bound(output)) == ""
