"""The result of an attack: success rates with Wilson's intervals, and the residual risk over the control."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from sfumato.engine.adversary.power import detectable_excess
from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.methods.rows import Row
from sfumato.engine.risk._attack import (
    NOTHING_LEFT,
    AddedSuccess,
    AttackResult,
    SuccessRate,
    added_risk_limit,
    attack_outputs,
    combine_attacks,
    residual_interval,
    residual_risk,
)

RELEASE = ReleaseProvenance("synthetic", 100, (100, 100), (), ())


@pytest.mark.parametrize(("successes", "guesses"), [(0, 10), (3, 10), (10, 10), (1, 1), (417, 1000), (999, 1000)])
def test_rates_have_the_interval_of_wilson(successes: int, guesses: int) -> None:
    theirs = proportion_confint(successes, guesses, method="wilson")
    assert SuccessRate(successes, guesses).interval == pytest.approx(theirs, abs=1e-12)


def test_residual_risk_is_what_is_left_of_the_way_to_certainty() -> None:
    assert residual_risk(1.0, 0.3) == 1.0
    assert residual_risk(0.3, 0.3) == 0.0
    assert residual_risk(0.65, 0.3) == pytest.approx(0.5)
    assert residual_risk(0.0, 0.5) == -1.0


@pytest.mark.parametrize(
    ("attack", "control"), [((60, 200), (40, 200)), ((150, 400), (80, 300)), ((900, 1000), (300, 500))]
)
def test_its_interval_is_near_the_score_interval_of_the_ratio(
    attack: tuple[int, int], control: tuple[int, int]
) -> None:
    """1 - R is the ratio of the shares that fail."""
    (a, n), (c, k) = attack, control
    low, high = confint_proportions_2indep(n - a, n, k - c, k, compare="ratio", method="score", correction=False)
    assert residual_interval(SuccessRate(a, n), SuccessRate(c, k)) == pytest.approx((1 - high, 1 - low), abs=0.012)


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.02, 0.02), (0.3, 0.3), (0.9, 0.5), (0.95, 0.9)])
def test_its_interval_covers(rates: tuple[float, float]) -> None:
    """Where nothing is ever right it may cover always; intervals of half the width must be found out."""
    rng = np.random.default_rng(1)
    truth, n = residual_risk(*rates), 400
    ends = np.array([residual_interval(*(SuccessRate(int(rng.binomial(n, p)), n) for p in rates)) for _ in range(1500)])
    covers = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
    assert 0.935 <= covers <= (1.0 if rates[0] < 0.1 else 0.965)
    half = ends / 2 + ends.mean(axis=1, keepdims=True) / 2
    assert rates[0] == 0 or ((half[:, 0] <= truth) & (truth <= half[:, 1])).mean() < 0.85


def test_an_attack_has_all_its_estimates() -> None:
    found = {
        one.measure: one
        for one in AttackResult(SuccessRate(8, 10), SuccessRate(1, 10), SuccessRate(3, 10)).estimates("age", kind="x")
    }
    assert set(found) == {
        output.name for output in attack_outputs("attribute inference", "guesses", "are right", ("inference",), ())
    }
    assert (found["attack_success"].value, found["attack_success"].baseline) == (0.8, 0.1)
    assert (found["control_success"].value, found["baseline_success"].value) == (0.3, 0.1)
    assert (found["excess_risk"].value, found["excess_risk"].baseline) == (pytest.approx(0.5 / 0.7), 0.0)
    assert found["guesses"].value == 10
    for one in found.values():
        assert (one.target, one.params) == ("age", {"kind": "x"})
        assert one.lower is None or one.lower <= one.value <= one.upper  # type: ignore[operator]


def test_what_has_no_answer_says_why() -> None:
    sure = {one.measure: one for one in AttackResult(SuccessRate(10, 10), None, SuccessRate(4, 4)).estimates()}
    assert (sure["excess_risk"].value, sure["excess_risk"].reason) == (None, NOTHING_LEFT)
    assert sure["baseline_success"].reason
    none = {
        one.measure: one
        for one in AttackResult(SuccessRate(0, 0), None, SuccessRate(0, 0)).estimates(reason="too small")
    }
    assert {name: one.value for name, one in none.items() if one.value is not None} == {"guesses": 0.0}
    assert none["attack_success"].reason == "too small"


def test_a_perfect_attack_has_an_interval_that_ends_at_1() -> None:
    (low, high) = residual_interval(SuccessRate(100, 100), SuccessRate(7, 100))
    assert high == 1.0
    assert 0.9 < low < 1.0


def test_a_scaled_control_rate_that_may_be_1_has_limits() -> None:
    """Scaled, the upper limit of the control rate is 1, so that nothing limits the ratio of what is left from above."""
    control = SuccessRate(40, 195, scale=939 / 195)
    assert control.value < 1 == control.interval[1]
    low, high = residual_interval(SuccessRate(900, 939), control)
    assert -np.inf < low < 0 < high <= 1


def test_datasets_together_are_as_uncertain_as_one() -> None:
    def row(draw: int, value: float) -> Row:
        return Row("risk", "x", "excess_risk", "", "synthetic", draw, None, value, value - 0.1, value + 0.2)

    (found,) = combine_attacks([row(1, 0.3), row(2, 0.5)], RELEASE)
    assert (found.draw, found.value) == (None, pytest.approx(0.4))
    assert (found.lower, found.upper) == (pytest.approx(0.3), pytest.approx(0.6))


def test_of_several_datasets_the_p_value_is_twice_the_mean() -> None:
    def rows(values: list[float]) -> list[Row]:
        return [
            Row("risk", "x", "excess_p_value", "", "synthetic", draw, None, value)
            for draw, value in enumerate(values, 1)
        ]

    assert [row.value for row in combine_attacks(rows([0.02, 0.04]), RELEASE)] == [pytest.approx(0.06)]
    assert [row.value for row in combine_attacks(rows([0.7, 0.9]), RELEASE)] == [1.0]
    assert [row.value for row in combine_attacks(rows([0.7]), RELEASE)] == [0.7]


def test_an_interval_is_not_above_0_where_the_exact_p_finds_nothing() -> None:
    def lower(p_value: float | None) -> float:
        found = AttackResult(SuccessRate(30, 100), None, SuccessRate(10, 100), p_value=p_value).estimates()
        (low,) = (one.lower for one in found if one.measure == "excess_risk")
        assert low is not None
        return low

    assert lower(None) == lower(0.02) > 0
    assert lower(0.03) == 0


def test_what_is_added_is_the_difference_of_two_means_over_what_is_left() -> None:
    """Each variance counts one person more who differs by one."""
    own, others = np.array([1.0, 0.0, 1.0, 1.0, -1.0, 0.5]), np.array([0.0, 0.25, 0.0, -0.25])
    added = AddedSuccess.from_differences(own, others, np.random.default_rng(1))
    assert added is not None
    variances = [(((one - one.mean()) ** 2).sum() + 1) / len(one) ** 2 for one in (own, others)]
    assert (added.members, added.controls) == pytest.approx((own.mean(), others.mean()))
    assert added.spread == pytest.approx(math.sqrt(sum(variances)))
    for p_value in (None, 0.02, 0.03):
        gain = AddedSuccess(0.6, 0.1, 0.05, p_value)
        result = AttackResult(SuccessRate(7, 10), None, SuccessRate(2, 10), added_success=gain)
        found = {one.measure: one for one in result.estimates()}["added_risk"]
        assert (found.value, found.baseline) == (pytest.approx(0.5 / 0.8), 0.0)
        low, high = (0.5 / 0.8 + sign * norm.ppf(0.975) * 0.05 / 0.8 for sign in (-1, 1))
        assert found.lower == (0 if p_value == 0.03 else pytest.approx(low))
        assert found.upper == pytest.approx(high)
    found = {one.measure: one for one in result.estimates()}["detectable_added_risk"]
    assert found.value == pytest.approx((norm.ppf(0.975) + norm.ppf(0.8)) * 0.05 / 0.8)
    reach = AddedSuccess(1.0, 0.1, 0.05, reach=(0.2, 0.3))
    found = AttackResult(SuccessRate(7, 10), None, SuccessRate(1, 10), added_success=reach).added_risk_estimate(
        "", "", {}
    )
    assert (found.value, found.lower, found.upper) == (1.0, pytest.approx(0.8), 1.0)


@pytest.mark.parametrize("controls", [SuccessRate(4, 4), SuccessRate(0, 0)])
def test_where_controls_leave_nothing_no_figure_is_given(controls: SuccessRate) -> None:
    result = AttackResult(SuccessRate(3, 4), None, controls, added_success=AddedSuccess(0.5, 0.1, 0.1))
    found = {one.measure: one for one in result.estimates()}
    for name in ("excess_risk", "detectable_excess", "added_risk", "detectable_added_risk"):
        assert found[name].value is None
        assert found[name].reason


def test_a_drafted_limit_says_what_a_test_at_five_percent_finds_and_of_several_each_at_sidaks_level() -> None:
    case = SimpleNamespace(controls=300, table=SimpleNamespace(records=800))
    alone = added_risk_limit("inference", case, 0.2)  # type: ignore[arg-type]
    assert alone.detectable == pytest.approx(detectable_excess(0.2, 500, 300, 0.05))
    assert added_risk_limit("inference", case, 0.2, 0.5).detectable == pytest.approx(  # type: ignore[arg-type]
        detectable_excess(0.2, 500, 150, 0.05)
    )
    of_three = added_risk_limit("inference", case, 0.2, series=3)  # type: ignore[arg-type]
    assert of_three.detectable == pytest.approx(detectable_excess(0.2, 500, 300, 1 - 0.95 ** (1 / 3)))
    case.controls = None
    assert added_risk_limit("inference", case, 0.2).detectable is None  # type: ignore[arg-type]
