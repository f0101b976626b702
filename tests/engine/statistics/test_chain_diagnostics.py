from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import chisquare

from engine.statistics.diagnostics import (
    autocorrelation,
    bulk_effective_sample_size,
    rank_normalised_split_r_hat,
    rank_places,
    tail_effective_sample_size,
)


def autoregressive(chains: int, steps: int, correlation: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.empty((chains, steps))
    values[:, 0] = rng.normal(size=chains)
    for t in range(1, steps):
        values[:, t] = correlation * values[:, t - 1] + np.sqrt(1 - correlation**2) * rng.normal(size=chains)
    return values


CHAINS = {
    "independent": autoregressive(4, 500, 0.0, 1),
    "correlated": autoregressive(4, 1001, 0.9, 2),
    "antithetic": autoregressive(6, 400, -0.5, 3),
    "many short": autoregressive(40, 120, 0.7, 4),
    "apart": autoregressive(4, 300, 0.5, 5) + np.arange(4)[:, None],
    "drifting": autoregressive(4, 300, 0.5, 6) + np.linspace(0, 2, 300),
    "of other scales": autoregressive(4, 300, 0.5, 7) * np.array([[1], [1], [1], [4]]),
    "Cauchy": np.random.default_rng(8).standard_cauchy((4, 600)),
    "rounded": np.round(autoregressive(4, 300, 0.6, 9)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_r_hat_and_sample_size_agree_with_arviz(name: str) -> None:
    chains = CHAINS[name]
    r_hat = float(array_stats.rhat(chains, chain_axis=0, draw_axis=1))
    assert rank_normalised_split_r_hat(chains) == pytest.approx(r_hat, rel=1e-9)
    size = float(array_stats.ess(chains, chain_axis=0, draw_axis=1, method="bulk"))
    assert bulk_effective_sample_size(chains) == pytest.approx(size, rel=0.03)
    tail = float(array_stats.ess(chains, chain_axis=0, draw_axis=1, method="tail", prob=(0.05, 0.95)))
    assert tail_effective_sample_size(chains) == pytest.approx(tail, rel=0.03)


def test_sample_size_of_an_autoregression_is_known() -> None:
    """n (1 - rho) / (1 + rho) for a first-order autoregression."""
    chains = autoregressive(20, 5000, 0.8, 10)
    assert bulk_effective_sample_size(chains) == pytest.approx(100_000 * 0.2 / 1.8, rel=0.1)


@pytest.mark.parametrize("name", ["apart", "drifting", "of other scales"])
def test_chains_that_have_not_mixed_are_told_apart(name: str) -> None:
    assert rank_normalised_split_r_hat(CHAINS["independent"]) < 1.01
    assert rank_normalised_split_r_hat(CHAINS[name]) > 1.05
    assert bulk_effective_sample_size(CHAINS["independent"]) > 400
    assert bulk_effective_sample_size(CHAINS["apart"]) < 400


def test_tails_that_are_visited_seldom_have_a_smaller_sample_size() -> None:
    """Negative control of the bulk: a chain that stays long in either tail, and moves freely between them."""
    rng = np.random.default_rng(11)
    chains = rng.uniform(-1, 1, (4, 2000))
    chains[:, 300:500], chains[:, 1400:1600] = 2.0, -2.0
    chains += rng.normal(0, 0.01, chains.shape)
    assert tail_effective_sample_size(chains) < 0.2 * bulk_effective_sample_size(CHAINS["independent"])
    assert tail_effective_sample_size(chains) < 100


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_autocorrelation_of_an_autoregression_is_a_power(rho: float) -> None:
    found = autocorrelation(autoregressive(20, 5000, rho, 12), 15)
    np.testing.assert_allclose(found, rho ** np.arange(15), atol=0.03)


def test_autocorrelation_of_chains_apart_does_not_fall_to_nought() -> None:
    assert autocorrelation(CHAINS["apart"], 100)[-1] > 0.3
    assert abs(autocorrelation(CHAINS["independent"], 100)[-1]) < 0.1


def test_ranks_are_those_of_all_draws_together() -> None:
    chains = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    np.testing.assert_array_equal(rank_places(chains, 4), [[0, 0, 1, 1], [2, 2, 3, 3]])
    np.testing.assert_array_equal(rank_places(np.exp(chains), 4), rank_places(chains, 4))


@pytest.mark.parametrize(("name", "uniform"), [("independent", True), ("apart", False), ("drifting", False)])
def test_rank_histograms_are_uniform_where_chains_have_mixed(name: str, uniform: bool) -> None:
    places = rank_places(CHAINS[name], 10)
    halves = np.vstack(np.split(places, 2, axis=1))
    pvalues = [chisquare(np.bincount(half, minlength=10)).pvalue for half in halves]
    assert (min(pvalues) > 1e-3) == uniform


def test_chains_that_never_move_are_not_converged() -> None:
    stuck = np.repeat([[1.0], [2.0]], 50, axis=1)
    assert rank_normalised_split_r_hat(stuck) == np.inf
    assert bulk_effective_sample_size(stuck) < 5
    assert tail_effective_sample_size(stuck) < 5
