"""Simulation-based calibration of the zero-inflated Poisson posterior (Talts et al. 2018; Modrák et al. 2023).

theta is drawn from a proper prior, data from the model at theta, draws from the posterior given the data. Then theta's
rank among the draws is uniform, and intervals cover it as often as they say. The data are simulated by brute force,
without the code under test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import binomtest, chisquare

from sfumato.engine.methods.run import Progress
from sfumato.engine.posterior.ensemble import sample_emcee
from sfumato.engine.posterior.laplace import sample_laplace
from sfumato.engine.posterior.zero_inflated_poisson import ZeroInflatedPoisson

pytestmark = pytest.mark.slow

N, BOUND, DRAWS, BINS = 100, 8, 99, 10
SHAPE, RATE = 4.0, 4.0
X = np.column_stack([np.ones(N), np.tile([-1.0, -0.4, 0.2, 0.8], N // 4)])


def prior(rng: np.random.Generator) -> np.ndarray:
    """N(0, 1) coefficients and Gamma(4, 4) precision, as (alpha, beta, log tau)."""
    return np.append(rng.normal(size=4), -0.5 * np.log(rng.gamma(SHAPE, 1 / RATE)))


def simulate(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    k = np.arange(BOUND + 1)
    g = X @ theta[:2] + np.exp(theta[-1]) * rng.normal(size=N)
    log_mass = g[:, None] * k - gammaln(k + 1)
    cumulative = np.exp(log_mass - logsumexp(log_mass, axis=1, keepdims=True)).cumsum(axis=1)
    y = np.argmax(cumulative > rng.random(N)[:, None], axis=1)
    return np.where(rng.random(N) < expit(X @ theta[2:4]), 0, y)


def silent(progress: Progress) -> None:
    pass


def laplace(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    model = ZeroInflatedPoisson.from_design(y, X, BOUND, gamma_shape=SHAPE, gamma_rate=RATE)
    return sample_laplace(model, DRAWS, rng, silent, proposals=1500).theta


def ensemble(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    model = ZeroInflatedPoisson.from_design(y, X, BOUND, gamma_shape=SHAPE, gamma_rate=RATE)
    return sample_emcee(model, DRAWS, rng, silent).theta


def without_random_effect(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Negative control: a posterior in which tau is held near 0.03."""
    model = ZeroInflatedPoisson.from_design(y, X, BOUND, gamma_shape=1e5, gamma_rate=100.0)
    return sample_laplace(model, DRAWS, rng, silent, proposals=1500).theta


@dataclass(frozen=True)
class Replicates:
    """``theta`` (R, d) drawn from the prior and ``draws`` (R, S, d) from the posterior of data simulated at each."""

    theta: np.ndarray
    draws: np.ndarray

    @classmethod
    def of(cls, replicates: int, seed: int, sampler: Callable[..., np.ndarray] = laplace) -> Replicates:
        thetas, draws = [], []
        for rng in np.random.default_rng(seed).spawn(replicates):
            thetas.append(prior(rng))
            draws.append(sampler(simulate(thetas[-1], rng), rng))
        return cls(np.array(thetas), np.array(draws))

    def squeezed(self, factor: float) -> Replicates:
        """Negative control: the same draws, their spread around their mean multiplied by ``factor``."""
        centre = self.draws.mean(axis=1, keepdims=True)
        return Replicates(self.theta, centre + factor * (self.draws - centre))

    def shifted(self, by: float) -> Replicates:
        """Negative control: the same draws, moved by ``by`` of their standard deviations."""
        return Replicates(self.theta, self.draws + by * self.draws.std(axis=1, keepdims=True))

    @property
    def ranks(self) -> np.ndarray:
        """Number of draws below theta, (R, d), in 0..S."""
        return np.sum(self.draws < self.theta[:, None, :], axis=1)

    def rank_p_values(self) -> np.ndarray:
        """Chi-square tests of uniform ranks, one for each parameter."""
        bins = self.ranks * BINS // (self.draws.shape[1] + 1)
        return np.array([chisquare(np.bincount(b, minlength=BINS)).pvalue for b in bins.T])

    def coverage_p_values(self) -> np.ndarray:
        """Exact binomial tests of the 50, 80 and 95 % intervals, (3, d)."""
        answer = []
        for level in (0.5, 0.8, 0.95):
            low, high = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2], axis=1, method="weibull")
            covered = np.sum((low <= self.theta) & (self.theta <= high), axis=0)
            answer.append([binomtest(int(c), self.theta.shape[0], level).pvalue for c in covered])
        return np.array(answer)

    def calibrated(self, level: float = 0.01) -> bool:
        """Neither ranks nor coverage are rejected, each by Bonferroni at ``level``."""
        ranks, coverage = self.rank_p_values(), self.coverage_p_values()
        return bool(ranks.min() > level / ranks.size and coverage.min() > level / coverage.size)


@pytest.mark.study
def test_laplace_posterior_is_calibrated_and_what_is_not_is_rejected() -> None:
    found = Replicates.of(70, 20)
    assert found.calibrated()
    assert found.squeezed(0.5).rank_p_values().min() < 1e-4
    assert found.squeezed(0.5).coverage_p_values().min() < 1e-4
    assert not found.squeezed(2.0).calibrated()
    assert not found.shifted(0.7).calibrated()


@pytest.mark.study
def test_laplace_posterior_is_calibrated_over_a_thousand_replicates() -> None:
    found = Replicates.of(1000, 21)
    assert found.calibrated()
    assert not found.squeezed(0.85).calibrated()
    assert not found.shifted(0.2).calibrated()


@pytest.mark.study
def test_ensemble_posterior_is_calibrated() -> None:
    assert Replicates.of(60, 22, ensemble).calibrated()


@pytest.mark.study
def test_ignoring_the_random_effect_is_rejected() -> None:
    assert not Replicates.of(60, 23, without_random_effect).calibrated()
