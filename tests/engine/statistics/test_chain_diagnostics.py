from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats

from engine.statistics.diagnostics import bulk_effective_sample_size, rank_normalised_split_r_hat


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


def test_sample_size_of_an_autoregression_is_known() -> None:
    """n (1 - rho) / (1 + rho) for a first-order autoregression."""
    chains = autoregressive(20, 5000, 0.8, 10)
    assert bulk_effective_sample_size(chains) == pytest.approx(100_000 * 0.2 / 1.8, rel=0.1)


@pytest.mark.parametrize("name", ["apart", "drifting", "of other scales"])
def test_chains_that_have_not_mixed_are_told_apart(name: str) -> None:
    assert rank_normalised_split_r_hat(CHAINS["independent"]) < 1.01
    assert rank_normalised_split_r_hat(CHAINS[name]) > 1.05
