from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import digamma, gammaln, polygamma
from scipy.stats import kstest, multivariate_t
from scipy.stats import t as student

from sfumato.engine.errors import NotConverged
from sfumato.engine.methods.results import ImportanceTrace
from sfumato.engine.methods.run import Progress
from sfumato.engine.posterior.laplace import MultivariateT, find_mode, sample_laplace


@dataclass(frozen=True)
class LogGamma:
    """Logarithms of independent Gamma(shape, 1) variables: skewed, with known mode, moments and evidence."""

    shapes: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"log_gamma[{k}]" for k in range(self.shapes.size))

    def start(self) -> np.ndarray:
        return np.zeros(self.shapes.size)

    def derivatives(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        rate = np.exp(theta)
        return float(self.density_around(theta, np.eye(2))(theta[None])[0]), self.shapes - rate, -np.diag(rate)

    def density_around(self, centre: np.ndarray, covariance: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda thetas: (thetas * self.shapes - np.exp(thetas) - gammaln(self.shapes)).sum(axis=1)


@dataclass(frozen=True)
class HeavyTailed:
    """A multivariate t with 0.2 degrees of freedom: tails that a t with five does not cover, however it is scaled."""

    dimension: int
    freedom: float = 0.2

    @property
    def power(self) -> float:
        return (self.dimension + self.freedom) / 2

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"t[{k}]" for k in range(self.dimension))

    def start(self) -> np.ndarray:
        return np.full(self.dimension, 0.1)

    def derivatives(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        c, r = 2 * self.power / self.freedom, 1 + theta @ theta / self.freedom
        bend = np.outer(theta, theta) * 2 / (self.freedom * r**2)
        return -self.power * np.log(r), -c * theta / r, -c * (np.eye(theta.size) / r - bend)

    def density_around(self, centre: np.ndarray, covariance: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda thetas: -self.power * np.log1p(np.sum(thetas**2, axis=1) / self.freedom)


def silent(progress: Progress) -> None:
    pass


GAMMAS = LogGamma(np.array([2.0, 7.0, 40.0]))


def test_mode_and_covariance_are_the_closed_ones() -> None:
    mode = find_mode(GAMMAS, tolerance=1e-12)
    np.testing.assert_allclose(mode.theta, np.log(GAMMAS.shapes), atol=1e-4)
    np.testing.assert_allclose(mode.covariance, np.diag(1 / GAMMAS.shapes), rtol=1e-3, atol=1e-12)


def test_resampled_draws_have_the_moments_of_the_target() -> None:
    draws = sample_laplace(GAMMAS, 20_000, np.random.default_rng(1), silent, proposals=100_000).theta
    sds = np.sqrt(polygamma(1, GAMMAS.shapes))
    assert np.all(np.abs(draws.mean(axis=0) - digamma(GAMMAS.shapes)) < 4 * sds / np.sqrt(15_000))
    np.testing.assert_allclose(draws.std(axis=0), sds, rtol=0.03)


def test_the_approximation_alone_does_not() -> None:
    """Negative control: without the weights the means are those of the mode."""
    sds = np.sqrt(polygamma(1, GAMMAS.shapes))
    off = np.abs(np.log(GAMMAS.shapes) - digamma(GAMMAS.shapes))
    assert np.all(off > 4 * sds / np.sqrt(15_000))


def test_diagnostics_say_how_good_the_proposals_were() -> None:
    posterior = sample_laplace(GAMMAS, 10, np.random.default_rng(1), silent)
    by_name = {found.name: found for found in posterior.diagnostics}
    assert by_name["pareto_k"].passed
    assert 500 < by_name["effective_sample_size"].value < 2000
    assert by_name["proposals_fitted_again"].value <= 3
    assert posterior.theta.shape == (10, 3)
    assert posterior.names == GAMMAS.names


def test_the_trace_has_the_weighted_proposals_and_the_normal_approximation() -> None:
    trace = sample_laplace(GAMMAS, 10, np.random.default_rng(1), silent, proposals=6000).trace
    assert isinstance(trace, ImportanceTrace)
    assert trace.parameters == (*GAMMAS.names, "log posterior")
    assert trace.draws.shape == (4000, 4)
    assert trace.weights.sum() == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(trace.mode, np.log(GAMMAS.shapes), atol=0.01)
    np.testing.assert_allclose(trace.sd, GAMMAS.shapes**-0.5, rtol=1e-2)
    sds = np.sqrt(polygamma(1, GAMMAS.shapes))
    off = np.abs(trace.weights @ trace.draws[:, :3] - digamma(GAMMAS.shapes)) / sds
    assert np.all(off < 0.1)
    assert np.abs(trace.mode - digamma(GAMMAS.shapes))[0] / sds[0] > 0.2, "the mode alone is off"


def test_tails_that_the_proposals_miss_are_an_error() -> None:
    with pytest.raises(NotConverged, match="pareto_k") as caught:
        sample_laplace(HeavyTailed(20), 10, np.random.default_rng(1), silent)
    assert caught.value.value > 0.7
    posterior = sample_laplace(HeavyTailed(20), 10, np.random.default_rng(1), silent, accept_unconverged=True)
    assert [found.passed for found in posterior.diagnostics if found.name == "pareto_k"] == [False]


def test_no_draw_is_repeated_when_few_are_wanted_and_they_are_reproducible() -> None:
    one, other = (sample_laplace(GAMMAS, 50, np.random.default_rng(4), silent).theta for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert np.unique(one, axis=0).shape[0] == 50


def test_a_density_without_a_mode_is_an_error() -> None:
    @dataclass(frozen=True)
    class Ridge(LogGamma):
        def derivatives(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            return float(theta[0]), np.array([1.0, 0.0, 0.0]), np.zeros((3, 3))

    with pytest.raises(NotConverged, match=r"log_gamma\[0\]"):
        find_mode(Ridge(GAMMAS.shapes))


def test_progress_is_reported_and_may_cancel() -> None:
    seen: list[Progress] = []
    sample_laplace(GAMMAS, 10, np.random.default_rng(1), seen.append)
    assert seen[-1].done == seen[-1].total
    assert len(seen) > 2


def test_student_t_is_a_multivariate_t() -> None:
    factor = np.linalg.cholesky(np.array([[2.0, 0.3], [0.3, 0.5]]))
    ours = MultivariateT(np.array([1.0, -1.0]), factor, 6.0)
    theirs = multivariate_t(loc=[1.0, -1.0], shape=factor @ factor.T, df=6)
    draws = ours.draw_points(4000, np.random.default_rng(3))
    np.testing.assert_allclose(ours.log_density(draws[:50]), theirs.logpdf(draws[:50]), rtol=1e-10)
    assert kstest((draws[:, 0] - 1) / np.sqrt(2), student(6).cdf).pvalue > 0.001
    assert kstest((draws[:, 0] - 1) / np.sqrt(2), student(2).cdf).pvalue < 0.001


def test_the_search_does_not_end_on_a_saddle() -> None:
    """a^2 / 2 - a^4 / 4 - b^2 / 2 is level at 0, where the search starts, and has its modes at a = 1 and -1."""

    @dataclass(frozen=True)
    class TwoHills(LogGamma):
        def derivatives(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            a, b = theta
            return a**2 / 2 - a**4 / 4 - b**2 / 2, np.array([a - a**3, -b]), np.diag([1 - 3 * a**2, -1.0])

    mode = find_mode(TwoHills(np.ones(2)), tolerance=1e-10)
    assert np.abs(mode.theta) == pytest.approx([1.0, 0.0], abs=1e-4)
    assert mode.covariance == pytest.approx(np.diag([0.5, 1.0]), abs=1e-3)
