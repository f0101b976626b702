"""Power: of simulated attacks with an excess of the detectable size four in five find it; an area by its standard error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from sfumato.engine.adversary.power import (
    controls_needed,
    detectable_excess,
    detectable_excess_from_error,
    detectable_family_area,
    detectable_share,
    detectable_standard_errors,
    null_area_error,
)
from sfumato.engine.risk._attack import AttackResult, SuccessRate, residual_interval


@pytest.mark.slow
@pytest.mark.parametrize(
    ("control", "targets", "controls"), [(0.3, 2000, 2000), (0.1, 2000, 500), (0.6, 300, 100), (0.02, 500, 125)]
)
def test_an_excess_of_the_detectable_size_is_found_four_times_in_five(
    control: float, targets: int, controls: int
) -> None:
    rng = np.random.default_rng(1)
    excess = np.mean([detectable_excess(x / controls, targets, controls) for x in rng.binomial(controls, control, 300)])
    share = control + (1 - control) * float(excess)
    counts = zip(rng.binomial(targets, share, 600), rng.binomial(controls, control, 600), strict=True)
    found = np.mean(
        [residual_interval(SuccessRate(int(a), targets), SuccessRate(int(c), controls))[0] > 0 for a, c in counts]
    )
    assert 0.68 <= found <= 0.88


def test_more_people_detect_less_and_no_controls_detect_nothing() -> None:
    sizes = [detectable_excess(0.2, n, n) for n in (10, 100, 1000, 10_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert detectable_share(0.5, 3, 2) == 1
    assert detectable_excess_from_error(10) == 1


def test_the_controls_that_are_needed_are_the_fewest() -> None:
    needed = controls_needed(0.05, 0.2, 2000)
    assert detectable_excess(0.2, 2000, needed) <= 0.05 < detectable_excess(0.2, 2000, needed - 1.5)
    assert controls_needed(0.001, 0.2, 2000) == math.inf


def test_the_error_of_an_area_is_that_of_all_orders() -> None:
    """Three targets and two controls in each of the ten orders: the variance of the share of pairs."""
    from itertools import combinations

    areas = [
        sum(own > other for own in some for other in set(range(5)) - set(some)) / 6
        for some in combinations(range(5), 3)
    ]
    assert null_area_error(3, 2) == pytest.approx(np.std(areas))


def test_an_attack_says_what_it_would_have_found() -> None:
    def reported_excess(result: AttackResult) -> float | None:
        return {e.measure: e.value for e in result.estimates()}["detectable_excess"]

    assert reported_excess(AttackResult(SuccessRate(30, 100), None, SuccessRate(20, 80))) == detectable_excess(
        0.25, 100, 80
    )
    assert reported_excess(AttackResult(SuccessRate(30, 100), None, SuccessRate(20, 80), (-0.1, 0.1))) == pytest.approx(
        2.8016 / 1.96 * 0.1, abs=1e-4
    )
    assert reported_excess(AttackResult(SuccessRate(0, 0), None, SuccessRate(20, 80))) is None
    assert reported_excess(AttackResult(SuccessRate(9, 9), None, SuccessRate(9, 9))) is None


def wilson_limits(share: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's limits by their definition: the shares that are z of their own standard errors away."""

    def score_equation(theta: float) -> float:
        return (share - theta) ** 2 - z * z * theta * (1 - theta) / n

    low = 0.0 if share == 0 else brentq(score_equation, 0.0, share)
    return float(low), 1.0 if share == 1 else float(brentq(score_equation, max(share, 1e-9), 1.0))


@pytest.mark.parametrize(("control", "targets", "controls"), [(0.3, 2000, 500), (0.1, 60, 200), (0.0, 300, 100)])
@pytest.mark.parametrize(("level", "power"), [(0.05, 0.8), (0.01, 0.9), (0.2, 0.5)])
def test_the_detectable_share_is_that_of_the_module_s_formula(
    control: float, targets: int, controls: int, level: float, power: float
) -> None:
    z = norm.ppf(1 - level / 2)
    above = wilson_limits(control, controls, z)[1] - control

    def gap(share: float) -> float:
        return share - control - math.sqrt((share - wilson_limits(share, targets, z)[0]) ** 2 + above**2)

    start = brentq(gap, control + 1e-12, 1.0)
    error = math.sqrt(start * (1 - start) / targets + control * (1 - control) / controls)
    expected = min(1.0, start + norm.ppf(power) * error)
    found = detectable_share(control, targets, controls, level, power)
    assert found == pytest.approx(expected, abs=1e-9)
    assert detectable_excess(control, targets, controls, level, power) == pytest.approx(
        (expected - control) / (1 - control)
    )
    assert detectable_standard_errors(level, power) == pytest.approx(z + norm.ppf(power))
    assert detectable_excess_from_error(0.1, level, power) == pytest.approx(0.1 * (z + norm.ppf(power)))


def test_the_area_that_a_family_detects_is_a_multiple_of_that_of_one_attacker() -> None:
    one = (norm.ppf(0.975) + norm.ppf(0.8)) * null_area_error(200, 50)
    assert detectable_family_area(200, 50) == pytest.approx(0.5 + 1.65 * one)
    assert detectable_family_area(3, 2) == 1.0
