"""Concentrated privacy compared with the exact privacy loss of Gaussian noise, and with a grid over all orders."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.engine.margins.zcdp import (
    delta_of_rho,
    epsilon_of_choice,
    epsilon_of_rho,
    largest_rho,
    rho_of_choice,
    rho_of_epsilon,
    rho_of_gaussian,
    sigma_of_rho,
)
from sfumato.engine.methods.privacy import ConcentratedCost, PrivacyAccount, sum_accounts


def gaussian_delta(sigma: float, epsilon: float) -> float:
    """The exact delta of one number with noise of sigma (Balle & Wang 2018, Theorem 8)."""
    a, b = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
    return float(norm.cdf(a) - math.exp(epsilon) * norm.cdf(b))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_what_is_claimed_is_above_the_exact_loss_and_not_far(epsilon: float, delta: float) -> None:
    rho = largest_rho(epsilon, delta)
    assert epsilon_of_rho(rho, delta) == pytest.approx(epsilon, rel=1e-6)
    sigma = sigma_of_rho(rho)
    assert rho_of_gaussian(sigma) == pytest.approx(rho)
    assert gaussian_delta(sigma, epsilon) <= delta
    assert gaussian_delta(sigma / 1.2, epsilon) > delta, "the control: a sixth less noise breaks the promise"


def test_the_smallest_delta_is_that_of_the_best_order() -> None:
    alphas = 1 + np.exp(np.linspace(-9, 12, 400_001))
    for rho, epsilon in [(0.01, 0.9), (1.0, 9.0), (0.0002, 0.12), (3.0, 30.0)]:
        exponents = (alphas - 1) * (alphas * rho - epsilon) + alphas * np.log1p(-1 / alphas) - np.log(alphas - 1)
        assert delta_of_rho(rho, epsilon) == pytest.approx(float(np.exp(exponents.min())), rel=1e-4)


def test_costs_of_choices_and_pure_steps() -> None:
    assert epsilon_of_choice(rho_of_choice(0.3)) == pytest.approx(0.3)
    assert rho_of_choice(0.3) == pytest.approx(0.3**2 / 8)
    assert rho_of_epsilon(0.4) == pytest.approx(0.08)
    assert delta_of_rho(0.0, 1.0) == 0.0
    assert epsilon_of_rho(0.0, 1e-9) == 0.0


def test_steps_of_both_kinds_are_composed_in_the_better_way() -> None:
    noisy = PrivacyAccount.from_rho(ConcentratedCost(largest_rho(1.0, 1e-9), 3 * largest_rho(1.0, 1e-9), 1e-9))
    twice = sum_accounts([noisy, noisy])
    assert 1.4 < twice.noise < 1.5, "noise adds up by its squares"
    one = sum_accounts([noisy, PrivacyAccount(0.5, 1, 1)])
    assert one.noise == pytest.approx(1.5)
    many = sum_accounts([noisy, *[PrivacyAccount(0.01, 1, 1)] * 100])
    assert 1.0 < many.noise < 1.5, "many small steps cost less as rho than added"
    assert noisy.substitution is not None
    assert noisy.release is not None
    assert noisy.release < noisy.substitution < 2 * noisy.release
    assert sum_accounts([PrivacyAccount(0.5, 2, 1)]).noise == 1.0
