"""Bounds of the privacy loss: limits against scipy's, and mechanisms whose loss is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from sfumato.engine.adversary.audit_bounds import (
    best_bound_thresholds,
    bounds_at_thresholds,
    clopper_pearson_limits,
    epsilon_bound_from_guesses,
    privacy_loss_bounds,
)


@pytest.mark.parametrize(("hits", "cases"), [(0, 10), (3, 10), (10, 10), (57, 200)])
def test_limits_are_clopper_pearsons(hits: int, cases: int) -> None:
    found = binomtest(hits, cases).proportion_ci(0.95, method="exact")
    low, high = clopper_pearson_limits(np.array([hits]), cases, 0.025)
    assert (low[0], high[0]) == pytest.approx((found.low, found.high))


def test_a_perfect_attack_on_few_releases_proves_little() -> None:
    low, high = 0.025 ** (1 / 50), 1 - 0.025 ** (1 / 50)
    epsilon, mu = privacy_loss_bounds(np.array([50, 5]), 50, np.array([0, 6]), 50)
    assert epsilon == pytest.approx([np.log(low / high), 0])
    assert mu == pytest.approx([norm.ppf(low) - norm.ppf(high), 0])


def audited(draw: np.ndarray, member: np.ndarray) -> tuple[float, float]:
    half = len(draw) // 2
    at = best_bound_thresholds(draw[:half], member[:half])
    return bounds_at_thresholds(draw[half:], member[half:], at)


@pytest.mark.slow
def test_a_randomised_answer_of_epsilon_one_is_bounded_below_it_and_one_of_three_is_not() -> None:
    rng = np.random.default_rng(5)

    def share_above(epsilon: float) -> tuple[float, float]:
        found = []
        for _ in range(60):
            member = rng.random(1000) < 0.5
            truth = rng.random(1000) < np.exp(epsilon) / (1 + np.exp(epsilon))
            found.append(audited(np.where(truth, member, ~member).astype(float), member)[0])
        return float(np.mean(np.array(found) > 1.0)), float(np.median(found))

    above, middle = share_above(1.0)
    assert above <= 0.12
    assert middle > 0.5
    assert share_above(3.0)[0] == 1.0


@pytest.mark.slow
def test_a_gaussian_answer_is_bounded_below_its_mu() -> None:
    rng = np.random.default_rng(6)
    found = []
    for _ in range(40):
        member = rng.random(2000) < 0.5
        found.append(audited(rng.normal(size=2000) + member, member)[1])
    assert np.mean(np.array(found) > 1.0) <= 0.12
    assert np.median(found) > 0.5


def test_guesses_at_many_coins_bound_the_epsilon_of_the_answers() -> None:
    rng = np.random.default_rng(7)

    def above(epsilon: float) -> list[float]:
        share = np.exp(epsilon) / (1 + np.exp(epsilon))
        return [epsilon_bound_from_guesses(int(rng.binomial(400, share)), 400) for _ in range(200)]

    assert np.mean(np.array(above(1.0)) > 1.0) < 0.1
    assert np.median(above(1.0)) > 0.7
    assert np.mean(np.array(above(2.0)) > 1.0) > 0.9  # the control: a claim of 1 that does not hold
    assert epsilon_bound_from_guesses(0, 0) == 0
    assert epsilon_bound_from_guesses(10, 20) == 0
