from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import binomtest, chisquare, kstest, norm

from sfumato.engine.errors import BadInput
from sfumato.engine.posterior.poisson_lognormal import PredictedRates, draw_counts, draw_random_effects

THETA = np.array([1.2, 0.5, -0.8, 0.6, np.log(0.9)])


def simulated(n: int, bound: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, design and random effects of THETA, drawn record by record from the definition of the model."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.integers(0, 3, n)])
    effects = rng.normal(0, 0.9, n)
    k = np.arange(bound + 1)
    log_mass = (x @ THETA[:2] + effects)[:, None] * k - gammaln(k + 1)
    cumulative = np.exp(log_mass - logsumexp(log_mass, axis=1, keepdims=True)).cumsum(axis=1)
    y = np.argmax(cumulative > rng.random(n)[:, None], axis=1)
    return np.where(rng.random(n) < expit(x @ THETA[2:4]), 0, y), x, effects


def same_distribution(one: np.ndarray, other: np.ndarray) -> bool:
    """A chi-square test at 0.001 of two samples of small counts."""
    size = max(one.max(), other.max()) + 1
    table = np.array([np.bincount(one, minlength=size), np.bincount(other, minlength=size)])
    table = table[:, table.sum(axis=0) > 10]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return bool(chisquare(table.ravel(), expected.ravel(), ddof=table.shape[1]).pvalue > 0.001)


def effect_distribution(y: int, eta: float, zeta: float, tau: float, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """A grid of eps and p(eps <= . | y) on it, by brute force from prior times likelihood."""
    eps = np.linspace(-9 * tau, 9 * tau, 4001)
    k = np.arange(bound + 1)
    log_total = logsumexp(k * (eta + eps)[:, None] - gammaln(k + 1), axis=1)
    likelihood = (1 - expit(zeta)) * np.exp(y * (eta + eps) - gammaln(y + 1) - log_total) + (y == 0) * expit(zeta)
    density = likelihood * norm.pdf(eps, 0, tau)
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return eps, cumulative / cumulative[-1]


CASES = [(0, 1.5, -0.5, 30), (0, 4.0, -3.0, 30), (1, 1.5, 0.0, 30), (12, 1.5, 0.0, 30), (30, 2.0, 0.0, 30)]


@pytest.mark.parametrize(("y", "eta", "zeta", "bound"), CASES)
def test_random_effect_of_a_record_has_its_posterior(y: int, eta: float, zeta: float, bound: int) -> None:
    theta, n = np.array([eta, zeta, np.log(0.9)]), 5000
    effects = draw_random_effects(
        PredictedRates.from_theta(theta, np.ones((n, 1)).dot), np.full(n, float(y)), bound, np.random.default_rng(2)
    )
    eps, cumulative = effect_distribution(y, eta, zeta, 0.9, bound)
    assert kstest(effects, lambda v: np.interp(v, eps, cumulative)).pvalue > 0.001


@pytest.mark.parametrize(("y", "eta", "zeta", "bound"), CASES)
def test_random_effect_of_another_count_is_told_apart(y: int, eta: float, zeta: float, bound: int) -> None:
    theta, n, other = np.array([eta, zeta, np.log(0.9)]), 5000, float(y + 1 if y < bound else y - 1)
    effects = draw_random_effects(
        PredictedRates.from_theta(theta, np.ones((n, 1)).dot), np.full(n, other), bound, np.random.default_rng(2)
    )
    eps, cumulative = effect_distribution(y, eta, zeta, 0.9, bound)
    assert kstest(effects, lambda v: np.interp(v, eps, cumulative)).pvalue < 0.001


def test_posterior_effects_of_simulated_records_have_the_prior_distribution() -> None:
    """Averaged over data from the model, the posterior is the prior (Talts et al. 2018)."""
    y, x, _ = simulated(6000, 25, 3)
    effects = draw_random_effects(
        PredictedRates.from_theta(THETA, x.dot), y.astype(float), 25, np.random.default_rng(4)
    )
    assert kstest(effects, norm(0, 0.9).cdf).pvalue > 0.001
    wrong = THETA.copy()
    wrong[2] = -8.0
    effects = draw_random_effects(
        PredictedRates.from_theta(wrong, x.dot), y.astype(float), 25, np.random.default_rng(4)
    )
    assert kstest(effects, norm(0, 0.9).cdf).pvalue < 0.001


@pytest.mark.parametrize("effect", ["new", "record"])
def test_synthetic_counts_of_simulated_records_have_their_distribution(effect: str) -> None:
    y, x, _ = simulated(6000, 25, 5)
    synthetic = draw_counts(PredictedRates.from_theta(THETA, x.dot), 25, effect, np.random.default_rng(6), y)
    assert synthetic.dtype == np.int64
    assert same_distribution(y, synthetic)
    wrong = THETA.copy()
    wrong[-1] = np.log(0.6)
    assert not same_distribution(
        y, draw_counts(PredictedRates.from_theta(wrong, x.dot), 25, "new", np.random.default_rng(6))
    )


def test_a_record_keeps_its_effect_and_not_its_zero_inflation() -> None:
    n = 4000
    theta, x = np.array([3.0, -1.0, np.log(1.5)]), np.ones((4000, 1))
    synthetic = draw_counts(
        PredictedRates.from_theta(theta, x.dot), 365, "record", np.random.default_rng(7), np.full(n, 300)
    )
    positive = synthetic[synthetic > 0]
    assert abs(np.mean(positive) - 300) < 6
    assert binomtest(n - positive.size, n, expit(-1.0)).pvalue > 0.001


def test_effect_comes_from_the_confidential_row_and_the_rest_from_the_synthetic_one() -> None:
    """An effect of 0 is enforced by a tiny tau, then one seen through another design."""
    seen, released = np.tile([1.0, 0.0], (3000, 1)), np.tile([1.0, 1.0], (3000, 1))
    theta = np.array([3.0, 0.7, -9.0, -9.0, np.log(1e-4)])
    synthetic = draw_counts(
        PredictedRates.from_theta(theta, released.dot),
        None,
        "record",
        np.random.default_rng(8),
        np.full(3000, 20),
        PredictedRates.from_theta(theta, seen.dot),
    )
    assert np.mean(synthetic) == pytest.approx(np.exp(3.7), abs=0.5)
    theta[-1] = np.log(5.0)
    synthetic = draw_counts(
        PredictedRates.from_theta(theta, released.dot),
        None,
        "record",
        np.random.default_rng(8),
        np.full(3000, 400),
        PredictedRates.from_theta(theta, seen.dot),
    )
    assert np.mean(synthetic) == pytest.approx(400 * np.exp(0.7), rel=0.02)


@pytest.mark.parametrize("effect", ["new", "record"])
def test_draws_are_reproducible_within_bounds_and_finite_at_extremes(effect: str) -> None:
    x, y = np.ones((50, 1)), np.array([0, 365] * 25)
    for alpha in (-30.0, 0.0, 30.0):
        for log_tau in (-9.0, 2.5):
            theta = np.array([alpha, 0.0, log_tau])
            one, other = (
                draw_counts(PredictedRates.from_theta(theta, x.dot), 365, effect, np.random.default_rng(9), y)
                for _ in range(2)
            )
            np.testing.assert_array_equal(one, other)
            assert one.min() >= 0
            assert one.max() <= 365


def test_a_records_own_effect_needs_its_count() -> None:
    with pytest.raises(BadInput, match="observed"):
        draw_counts(PredictedRates.from_theta(THETA, np.ones((3, 2)).dot), 25, "record", np.random.default_rng(1))
