"""What becomes of a threshold: exact and estimated values, inside, outside and across the limit, with and without power."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.engine.data.intervals import AT_MOST_ONE, SHARE, Range
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe import thresholds
from sfumato.engine.recipe.outcomes import WORST_FIRST, current_outcome, worst_outcome
from sfumato.engine.recipe.thresholds import Threshold, Verdict, judge_thresholds

RISK = "risk.attack.excess_risk"


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Declare what the output is that every threshold of the test names."""

    def declared(estimated: bool = True, detectable: str = "", within: Range = SHARE) -> None:
        output = Output("excess_risk", "a risk", "low", range=within, estimated=estimated, detectable=detectable)
        monkeypatch.setattr(thresholds, "threshold_output", lambda value: output)

    return declared


def row(value: float | None, *ends: float, measure: str = "excess_risk", **changes: Any) -> Row:
    low, high = ends or (None, None)
    plain = Row("risk", "attack", measure, "", "synthetic", None, None, value, low, high)
    return replace(plain, **changes)


def one(rows: list[Row], bound: Any = "max", limit: float = 0.05) -> Verdict:
    (verdict,) = judge_thresholds([Threshold(RISK, bound, limit)], rows)
    return verdict


INSIDE, ACROSS, OUTSIDE = (0.02, 0.01, 0.05), (0.04, 0.01, 0.12), (0.09, 0.06, 0.12)


def test_an_estimate_of_datasets_that_were_looked_at_whole_is_compared_like_an_exact_value(declare: Any) -> None:
    """Its average has the spread over the datasets, which decides nothing; of one dataset that was sampled it does."""
    declare()
    average, alone = (
        row(0.04, 0.01, 0.12),
        [row(value, value, value, draw=draw) for draw, value in ((1, 0.03), (2, 0.05))],
    )
    assert one([average, *alone]).outcome == "met"
    assert one([average, *alone], limit=0.039).outcome == "not met"
    assert (one([average, *alone]).lower, one([average, *alone]).upper) == (None, None)
    assert one([row(0.04), row(0.04, 0.04, 0.04, draw=1)]).outcome == "met"
    assert one([average, alone[0], row(0.05, 0.04, 0.05, draw=2)]).outcome == "undecided"
    assert one([average]).outcome == "undecided"


def test_an_undecided_estimate_without_an_interval_says_what_its_row_says(declare: Any) -> None:
    declare()
    assert one([row(0.04, reason="on a sample")]).reason == "estimated without an interval; on a sample"


@pytest.mark.parametrize(
    ("found", "estimated", "power", "outcome", "reason"),
    [
        (INSIDE, False, None, "met", ""),
        (ACROSS, False, None, "met", ""),
        (OUTSIDE, False, None, "not met", ""),
        ((0.06, 0.01, 0.12), False, None, "not met", ""),
        (INSIDE, True, None, "met", ""),
        (ACROSS, True, None, "undecided", "the interval 0.01 to 0.12 contains the limit 0.05"),
        (OUTSIDE, True, None, "not met", ""),
        ((0.02,), True, None, "undecided", "estimated without an interval"),
        ((0.90,), True, None, "undecided", "estimated without an interval"),
        (INSIDE, True, 0.05, "met", ""),
        (INSIDE, True, 0.09, "undecided", "the measure finds a leak of 0.09 or more only; limit 0.05"),
        (OUTSIDE, True, 0.09, "not met", ""),
        (ACROSS, True, 0.01, "undecided", "the interval 0.01 to 0.12 contains the limit 0.05"),
    ],
)
def test_an_exact_value_is_compared_and_an_estimate_is_judged_by_its_whole_interval_and_its_power(
    declare: Any, found: tuple[float, ...], estimated: bool, power: float | None, outcome: str, reason: str
) -> None:
    declare(estimated, "detectable_excess" if power is not None else "")
    rows = [row(*found), *([row(power, measure="detectable_excess")] if power is not None else [])]
    verdict = one(rows)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert verdict.margin == pytest.approx(0.05 - found[0])
    assert (verdict.lower, verdict.upper) == (found[1:] if estimated and len(found) > 1 else (None, None))


def test_a_power_that_was_not_computed_leaves_the_verdict_undecided(declare: Any) -> None:
    declare(detectable="detectable_excess")
    missing = row(None, measure="detectable_excess", reason="too few controls")
    assert one([row(*INSIDE)]).reason == "the smallest leak that the measure would find is not known"
    assert one([row(*INSIDE), missing]).reason.endswith("is not known: too few controls")
    assert {one([row(*INSIDE)]).outcome, one([row(*INSIDE), missing]).outcome} == {"undecided"}
    assert one([row(*OUTSIDE)]).outcome == "not met", "what is seen needs no power"


def test_power_is_that_of_the_same_use(declare: Any) -> None:
    """The control: the power of another target, of other settings or of another level is not its own."""
    declare(detectable="detectable_excess")
    power = row(0.01, measure="detectable_excess")
    for other in ({"target": "income"}, {"params": {"known": ["age"]}}, {"level": 0.1}, {"draw": 1}):
        assert one([row(*INSIDE), replace(power, **other)]).outcome == "undecided"  # type: ignore[arg-type]
    assert one([row(*INSIDE), power]).outcome == "met"


def test_a_least_value_needs_no_power(declare: Any) -> None:
    declare(detectable="detectable_excess")
    assert one([row(0.9, 0.8, 0.95)], "min", 0.7).outcome == "met"
    assert one([row(0.9, 0.8, 0.95)], "min", 0.85).outcome == "undecided"
    assert one([row(0.9, 0.8, 0.95)], "min", 0.96).outcome == "not met"


@pytest.mark.parametrize(
    ("value", "own", "max_ratio", "max_increase"),
    [
        (0.9, -0.01, "not computed", "not met"),
        (-0.28, -0.09, "not computed", "met"),
        (0.2, 0.15, "not computed", "not met"),
    ],
)
def test_no_ratio_is_formed_of_values_that_may_be_negative(
    declare: Any, value: float, own: float, max_ratio: str, max_increase: str
) -> None:
    """-.28 against -.09 failed as 3.1 times, and .9 against -.01 passed as -90 times."""
    declare(estimated=False, within=AT_MOST_ONE)
    rows = [row(value), row(own, dataset="confidential")]
    ratio, increase = one(rows, "max_ratio", 1.0), one(rows, "max_increase", 0.0)
    assert (ratio.outcome, ratio.observed) == (max_ratio, None)
    assert ratio.reason.endswith("use max_increase in place of max_ratio")
    assert (increase.outcome, increase.observed) == (max_increase, pytest.approx(value - own))


def test_an_increase_without_a_value_to_compare_with_is_not_computed(declare: Any) -> None:
    declare(estimated=False)
    assert one([row(0.1)], "max_increase").outcome == "not computed"
    assert "no value to compare with" in one([row(0.1)], "max_increase").reason


@pytest.mark.parametrize(
    ("bound", "limit", "outcome"),
    [
        ("max_increase", 0.2, "met"),
        ("max_increase", 0.1, "undecided"),
        ("max_increase", -0.05, "not met"),
        ("max_ratio", 2.5, "met"),
        ("max_ratio", 1.5, "undecided"),
        ("max_ratio", 0.9, "not met"),
    ],
)
def test_the_interval_of_an_increase_and_of_a_ratio_has_the_uncertainty_of_both(
    declare: Any, bound: str, limit: float, outcome: str
) -> None:
    declare()
    rows = [row(0.3, 0.25, 0.35), row(0.2, 0.16, 0.24, dataset="confidential")]
    assert one(rows, bound, limit).outcome == outcome
    without = [rows[0], replace(rows[1], lower=None, upper=None)]
    assert one(without, bound, limit).reason == "estimated without an interval", "it is not certain either"


@pytest.mark.parametrize(("bound", "limit"), [("max_increase", 0.3), ("max_ratio", 2.0)])
def test_power_is_compared_with_the_largest_value_that_the_limit_allows(declare: Any, bound: str, limit: float) -> None:
    """0.2 + 0.3 = 0.5, and 2 x 0.2 = 0.4."""
    declare(detectable="detectable_excess")
    rows = [row(0.1, 0.05, 0.15), row(0.2, 0.16, 0.24, dataset="confidential")]
    assert one([*rows, row(0.39, measure="detectable_excess")], bound, limit).outcome == "met"
    assert one([*rows, row(0.51, measure="detectable_excess")], bound, limit).outcome == "undecided"


def test_an_interval_of_several_series_stays_in_the_range_and_says_how_many_they_are(declare: Any) -> None:
    declare()
    rows = [row(0.04, 0.001, 0.049, target=name) for name in "abc"]
    verdicts = judge_thresholds([Threshold(RISK, "max", 0.05)], rows)
    assert {one.outcome for one in verdicts} == {"undecided"}
    assert verdicts[0].lower == 0.0
    assert "(simultaneous over 3 series)" in verdicts[0].reason
    assert judge_thresholds([Threshold(RISK, "max", 0.05, "a")], rows)[0].outcome == "met", (
        "the control: one series alone"
    )


def test_series_without_a_value_do_not_widen_the_others(declare: Any) -> None:
    declare()
    rows = [row(0.04, 0.001, 0.049, target="a"), *(row(None, target=name, reason="no guess") for name in "bc")]
    assert [one.outcome for one in judge_thresholds([Threshold(RISK, "max", 0.05)], rows)] == [
        "met",
        "not computed",
        "not computed",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("series", [3, 12])
def test_simultaneous_intervals_cover_all_series_at_once(declare: Any, series: int) -> None:
    """2,000 sets of independent normal estimates: 95 % of the sets lie wholly in their intervals; not without widening."""
    declare(within=(None, None))
    rng = np.random.default_rng(7)
    sets, half = 2000, float(norm.ppf(0.975))
    together = alone = 0
    for drawn in rng.standard_normal((sets, series)):
        rows = [row(value, value - half, value + half, target=f"v{i}") for i, value in enumerate(drawn)]
        verdicts = judge_thresholds([Threshold(RISK, "max", 0.0)], rows)
        together += all(
            one.lower is not None and one.upper is not None and one.lower <= 0 <= one.upper for one in verdicts
        )
        alone += bool((np.abs(drawn) <= half).all())
    assert 0.93 < together / sets < 0.97
    assert alone / sets < 0.90


def test_older_words_are_read_as_todays() -> None:
    assert [current_outcome(one) for one in ("pass", "fail", "not computed", "undecided")] == [
        "met", "not met", "not computed", "undecided",
    ]  # fmt: skip
    assert worst_outcome(["met", "undecided", "not met"]) == WORST_FIRST[0] == "not met"
    assert worst_outcome([]) == "met"
