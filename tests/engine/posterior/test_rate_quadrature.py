from __future__ import annotations

import functools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import kstest

from sfumato.engine.posterior.poisson_lognormal import (
    draw_log_rate,
    log_joint_density,
    mode_and_curvature,
    rate_quadrature,
)
from sfumato.engine.posterior.truncated_poisson import mean_and_variance


@functools.cache
def log_factorials(top: int) -> np.ndarray:
    return gammaln(np.arange(top + 1) + 1.0)


def direct_log_pmfs(y: float, g: np.ndarray, bound: int | None) -> np.ndarray:
    if bound is None:
        return y * g - gammaln(y + 1) - np.exp(g)
    terms = np.multiply.outer(g, np.arange(bound + 1)) - log_factorials(bound)
    largest = terms.max(axis=1)
    return y * g - gammaln(y + 1) - largest - np.log(np.exp(terms - largest[:, None]).sum(axis=1))


def direct_log_integral(y: float, eta: float, tau: float, bound: int | None) -> float:
    """log P(y | eta, tau) by adaptive Gauss-Kronrod integration, split at the best of a coarse grid.

    The integrand is log-concave with curvature at least 1 / tau^2: nothing lies further than 10 tau from its mode.
    """

    def log_integrand(g: np.ndarray) -> np.ndarray:
        return direct_log_pmfs(y, g, bound) - 0.5 * ((g - eta) / tau) ** 2 - np.log(tau * np.sqrt(2 * np.pi))

    far = max(eta, np.log(max(y, 1.0))) + 10 * tau
    low, high = min(eta, np.log(y + 0.1)) - 10 * tau, far
    grid = np.linspace(low, high, 400)
    values = log_integrand(grid)
    top = values.max()
    kept = np.flatnonzero(values > top - 60)
    edges = np.linspace(grid[max(kept[0] - 1, 0)], grid[min(kept[-1] + 1, 399)], 13)
    pieces = [
        quad(
            lambda g: float(np.exp(log_integrand(np.array([g]))[0] - top)), a, b, epsabs=1e-14, epsrel=1e-11, limit=100
        )[0]
        for a, b in pairwise(edges)
    ]
    return float(top + np.log(np.sum(pieces)))


cases = st.tuples(
    st.sampled_from([None, 1, 2, 5, 30, 365]),
    st.floats(-6, 9),
    st.sampled_from([0.01, 0.05, 0.3, 1.0, 2.0, 3.5]),
    st.floats(0, 1),
    st.sampled_from(["zero", "one", "bound", "below bound", "between"]),
)


def count(bound: int | None, share: float, kind: str) -> float:
    top = 700 if bound is None else bound
    return float({"zero": 0, "one": 1, "bound": top, "below bound": top - 1, "between": round(share * top)}[kind])


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(cases)
@example((365, 4.5, 1.5, 0.5, "bound"))
@example((None, 0.0, 3.5, 0.01, "between"))
@example((365, 6.5, 0.01, 0.5, "zero"))
def test_probability_is_the_integral(case: tuple[int | None, float, float, float, str]) -> None:
    bound, eta, tau, share, kind = case
    y = count(bound, share, kind)
    found = rate_quadrature(np.array([y]), np.array([eta]), tau, bound).log_mass[0]
    assert found == pytest.approx(direct_log_integral(y, eta, tau, bound), rel=0, abs=1e-8)


@pytest.mark.parametrize("tau", [0.01, 0.4, 2.0])
@pytest.mark.parametrize("bound", [3, 25])
def test_probabilities_sum_to_one(tau: float, bound: int) -> None:
    y = np.arange(bound + 1.0)
    for eta in (-4.0, 0.3, 3.0, 6.0):
        found = rate_quadrature(y, np.full(y.size, eta), tau, bound)
        assert np.exp(found.log_mass).sum() == pytest.approx(1.0, abs=1e-9)


def test_no_bound_is_a_large_bound() -> None:
    rng = np.random.default_rng(4)
    y, eta = rng.integers(0, 90, 60).astype(float), rng.normal(2, 1, 60)
    free, bounded = (rate_quadrature(y, eta, 0.8, bound).log_mass for bound in (None, 100_000))
    np.testing.assert_allclose(free, bounded, rtol=1e-10)


@pytest.mark.parametrize("bound", [None, 40])
@pytest.mark.parametrize("tau", [0.02, 0.7, 2.5])
def test_derivatives_are_those_of_the_value(bound: int | None, tau: float) -> None:
    rng = np.random.default_rng(6)
    y, eta = np.array([0.0, 0, 1, 3, 17, 39, 40, 40]), rng.normal(2, 1.5, 8)
    step = 1e-4

    def value(shift: float, log_scale: float) -> np.ndarray:
        return rate_quadrature(y, eta + shift, tau * np.exp(log_scale), bound).log_mass_derivatives().value

    found = rate_quadrature(y, eta, tau, bound).log_mass_derivatives()
    e = (value(step, 0) - value(-step, 0)) / (2 * step)
    s = (value(0, step) - value(0, -step)) / (2 * step)
    np.testing.assert_allclose(found.e, e, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.s, s, rtol=1e-5, atol=1e-5)
    shifted = [rate_quadrature(y, eta + d, tau, bound).log_mass_derivatives() for d in (step, -step)]
    scaled = [rate_quadrature(y, eta, tau * np.exp(d), bound).log_mass_derivatives() for d in (step, -step)]
    np.testing.assert_allclose(found.ee, (shifted[0].e - shifted[1].e) / (2 * step), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.es, (shifted[0].s - shifted[1].s) / (2 * step), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.ss, (scaled[0].s - scaled[1].s) / (2 * step), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bound", [None, 0, 1, 5, 365])
@pytest.mark.parametrize("tau", [0.001, 0.1, 2.0, 15.0])
def test_mode_is_where_the_slope_vanishes(bound: int | None, tau: float) -> None:
    """To a tenth of the local standard deviation, which is all that its users need."""
    rng = np.random.default_rng(9)
    eta = rng.uniform(-8, 9, 500)
    y = rng.integers(0, (600 if bound is None else bound) + 1, 500).astype(float)
    y[::3] = 0 if bound is None else bound
    mode, curvature = mode_and_curvature(y, eta, tau, bound)
    slopes = [y - mean_and_variance(g, bound)[0] - (g - eta) / tau**2 for g in _either_side(mode, curvature)]
    assert np.all(slopes[0] > 0)
    assert np.all(slopes[1] < 0)


def _either_side(mode: np.ndarray, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return mode - 0.1 / np.sqrt(curvature), mode + 0.1 / np.sqrt(curvature)


def distribution_function(y: float, eta: float, tau: float, bound: int | None) -> tuple[np.ndarray, np.ndarray]:
    """A fine grid of g and the posterior distribution function on it, by brute force."""
    mode, curvature = mode_and_curvature(np.array([y]), np.array([eta]), tau, bound)
    low, high = mode[0] - 9 * tau, mode[0] + 9 * tau
    near = np.linspace(mode[0] - 12 / np.sqrt(curvature[0]), mode[0] + 12 / np.sqrt(curvature[0]), 1201)
    g = np.unique(np.concatenate([np.linspace(low, high, 1201), near]))
    log_density = direct_log_pmfs(y, g, bound) - 0.5 * ((g - eta) / tau) ** 2
    density = np.exp(log_density - log_density.max())
    cumulative = np.concatenate([[0.0], np.cumsum(np.diff(g) * (density[1:] + density[:-1]) / 2)])
    return g, cumulative / cumulative[-1]


RATES = [
    (0.0, 3.0, 1.5, 365),
    (0.0, -2.0, 0.5, None),
    (1.0, -3.0, 3.0, 30),
    (365.0, 4.0, 1.5, 365),
    (364.0, 7.0, 1.5, 365),
    (120.0, 2.0, 0.05, None),
    (40.0, 3.0, 1.0, None),
]


@pytest.mark.parametrize(("y", "eta", "tau", "bound"), RATES)
def test_drawn_rates_have_the_posterior_distribution(y: float, eta: float, tau: float, bound: int | None) -> None:
    n = 5000
    g = draw_log_rate(np.full(n, y), np.full(n, eta), tau, bound, np.random.default_rng(12))
    grid, cumulative = distribution_function(y, eta, tau, bound)
    assert kstest(g, lambda v: np.interp(v, grid, cumulative)).pvalue > 0.001


@pytest.mark.parametrize(("y", "eta", "tau", "bound"), RATES)
def test_normal_approximation_of_the_rate_is_told_apart(y: float, eta: float, tau: float, bound: int | None) -> None:
    """Negative control: where the posterior is skewed, the normal at the mode fails; else one with a 10 % wrong sd."""
    mode, curvature = mode_and_curvature(np.array([y]), np.array([eta]), tau, bound)
    g = np.random.default_rng(12).normal(mode[0], 1.1 / np.sqrt(curvature[0]), 5000)
    grid, cumulative = distribution_function(y, eta, tau, bound)
    assert kstest(g, lambda v: np.interp(v, grid, cumulative)).pvalue < 0.001


def test_joint_density_integrates_to_the_probability() -> None:
    y, eta, tau = np.array([4.0]), np.array([1.0]), 0.9
    g = np.linspace(-8, 8, 20_001)
    total = np.trapezoid(np.exp(log_joint_density(y, g, eta, tau, 9)), g)
    assert np.exp(rate_quadrature(y, eta, tau, 9).log_mass[0]) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("bound", [None, 12])
def test_every_pair_may_have_a_tau_of_its_own(bound: int | None) -> None:
    rng = np.random.default_rng(8)
    y, eta, tau = rng.integers(0, 13, 40).astype(float), rng.normal(1, 2, 40), np.exp(rng.normal(-0.5, 1, 40))
    together = rate_quadrature(y, eta, tau, bound)
    alone = [rate_quadrature(y[i : i + 1], eta[i : i + 1], float(tau[i]), bound) for i in range(40)]
    assert together.log_mass == pytest.approx([found.log_mass[0] for found in alone], rel=1e-9)
    for part in ("e", "s", "ee", "es", "ss"):
        found = [getattr(one.log_mass_derivatives(), part)[0] for one in alone]
        assert getattr(together.log_mass_derivatives(), part) == pytest.approx(found, rel=1e-6, abs=1e-8)
