from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp
from scipy.stats import chisquare, poisson

from sfumato.engine.errors import NotComputable
from sfumato.engine.posterior.truncated_poisson import (
    draw_truncated_poisson,
    log_normaliser,
    log_pmf,
    mean_and_variance,
)


def brute_force(g: float, bound: int) -> tuple[float, float, float]:
    """Log normaliser, mean and variance by summing over 0..bound."""
    k = np.arange(bound + 1)
    terms = k * g - gammaln(k + 1.0)
    total = float(logsumexp(terms))
    weights = np.exp(terms - total)
    mean = float(weights @ k)
    return total, mean, float(weights @ (k - mean) ** 2)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(g=st.floats(-30, 30), bound=st.sampled_from([0, 1, 2, 7, 30, 365, 2500]))
def test_normaliser_mean_and_variance_are_the_sums(g: float, bound: int) -> None:
    total, mean, variance = brute_force(g, bound)
    assert log_normaliser(np.array([g]), bound)[0] == pytest.approx(total, rel=1e-12, abs=1e-12)
    found_mean, found_variance = mean_and_variance(np.array([g]), bound)
    assert found_mean[0] == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert found_variance[0] == pytest.approx(variance, rel=1e-5, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 30, 365, 2500])
def test_normaliser_around_the_bound_where_the_cdf_falls_away(bound: int) -> None:
    g = np.log(bound) + np.linspace(-1.5, 1.5, 301)
    expected = [brute_force(v, bound)[0] for v in g]
    np.testing.assert_allclose(log_normaliser(g, bound), expected, rtol=1e-13, atol=1e-12)


def test_without_a_bound_it_is_the_poisson() -> None:
    y, g = np.arange(50.0), np.linspace(-3, 4, 50)
    np.testing.assert_allclose(log_pmf(y, g, None), poisson.logpmf(y, np.exp(g)), rtol=1e-12)
    np.testing.assert_allclose(log_pmf(y, g, 10_000), poisson.logpmf(y, np.exp(g)), rtol=1e-12)


def counts_fit(counts: np.ndarray, g: float, bound: int) -> bool:
    """A chi-square test at 0.001 against the truncated Poisson, cells of expectation below 5 joined."""
    expected = np.exp(log_pmf(np.arange(bound + 1.0), np.full(bound + 1, g), bound)) * counts.size
    observed = np.bincount(counts, minlength=bound + 1)
    large = expected >= 5
    f_exp = np.append(expected[large], expected[~large].sum())
    f_obs = np.append(observed[large], observed[~large].sum())
    if f_exp[-1] < 1e-9:
        f_exp, f_obs = f_exp[:-1], f_obs[:-1]
    return bool(f_exp.size == 1 or chisquare(f_obs, f_exp * f_obs.sum() / f_exp.sum()).pvalue > 0.001)


@pytest.mark.parametrize(
    ("rate", "bound"),
    [(400.0, 365), (366.0, 365), (364.0, 365), (5e3, 365), (1e9, 365), (20.0, 365), (11.0, 10), (3.0, 1), (2.0, 0)],
)
def test_draws_have_the_truncated_distribution(rate: float, bound: int) -> None:
    rng = np.random.default_rng(8)
    counts = draw_truncated_poisson(np.full(40_000, np.log(rate)), bound, rng)
    assert counts.min() >= 0
    assert counts.max() <= bound
    assert counts_fit(counts, np.log(rate), bound)


def test_clipped_poisson_draws_are_told_apart() -> None:
    clipped = np.minimum(np.random.default_rng(8).poisson(366.0, 40_000), 365)
    assert not counts_fit(clipped, np.log(366.0), 365)


def test_draws_keep_the_order_of_the_rates() -> None:
    g = np.array([-40.0, 30.0, -40.0, 30.0])
    np.testing.assert_array_equal(draw_truncated_poisson(g, 365, np.random.default_rng(1)), [0, 365, 0, 365])


def test_a_rate_beyond_the_integers_is_not_computable() -> None:
    with pytest.raises(NotComputable, match="upper bound"):
        draw_truncated_poisson(np.array([50.0]), None, np.random.default_rng(1))
    assert draw_truncated_poisson(np.array([800.0]), 12, np.random.default_rng(1))[0] == 12
