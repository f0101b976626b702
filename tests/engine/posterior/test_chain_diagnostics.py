from __future__ import annotations

import subprocess
import sys
from statistics import NormalDist, fmean, median, variance

import numpy as np
import pytest
from scipy.stats import chisquare

from sfumato.engine.posterior.ensemble import (
    bulk_effective_sample_size,
    joint_autocorrelation,
    rank_bins,
    rank_normalised_split_r_hat,
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


MIXED = ["independent", "correlated", "antithetic", "many short", "Cauchy", "rounded"]
Halves = list[list[float]]


def halves_of(chains: np.ndarray) -> Halves:
    half = chains.shape[1] // 2
    return [list(chain[:half]) for chain in chains] + [list(chain[-half:]) for chain in chains]


def normal_scores(halves: Halves) -> Halves:
    """Vehtari et al. (2021), eq. 14, ties with the mean of their ranks."""
    places: dict[float, list[int]] = {}
    for rank, value in enumerate(sorted(value for half in halves for value in half), start=1):
        places.setdefault(value, []).append(rank)
    n = sum(map(len, halves))
    score = {value: NormalDist().inv_cdf((fmean(ranks) - 3 / 8) / (n + 1 / 4)) for value, ranks in places.items()}
    return [[score[value] for value in half] for half in halves]


def r_hat_of(halves: Halves) -> float:
    """Eq. 1 to 4."""
    n = len(halves[0])
    within = fmean(variance(half) for half in halves)
    between = n * variance([fmean(half) for half in halves])
    return (((n - 1) / n * within + between / n) / within) ** 0.5


def sample_size_of(halves: Halves) -> float:
    """Eq. 10 to 13, with the first correlation of the pair that ends Geyer's sequence where it is positive."""
    n = len(halves[0])
    within = fmean(variance(half) for half in halves)
    whole = (n - 1) / n * within + variance([fmean(half) for half in halves])
    centred = [np.array(half) - fmean(half) for half in halves]

    def correlation(lag: int) -> float:
        products = fmean(float(half[: n - lag] @ half[lag:]) / n for half in centred)
        return 1.0 if lag == 0 else 1 - (within - products) / whole

    pairs: list[float] = []
    last = 0.0
    for lag in range(0, n - 1, 2):
        pair = correlation(lag) + correlation(lag + 1)
        if pair < 0:
            last = max(correlation(lag), 0.0) / 2
            break
        pairs.append(min([pair, *pairs[-1:]]))
    return len(halves) * n / max(2 * (sum(pairs) + last) - 1, 1 / np.log10(len(halves) * n))


@pytest.mark.parametrize("name", CHAINS)
def test_r_hat_is_the_definition(name: str) -> None:
    halves = halves_of(CHAINS[name])
    middle = median(value for half in halves for value in half)
    folded = [[abs(value - middle) for value in half] for half in halves]
    expected = max(r_hat_of(normal_scores(halves)), r_hat_of(normal_scores(folded)))
    assert rank_normalised_split_r_hat(CHAINS[name]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", CHAINS)
def test_sample_sizes_are_the_definition(name: str) -> None:
    """To the last digit where chains mix; the correlations of others end with the chain, where programs differ."""
    chains = CHAINS[name]
    exact = 1e-9 if name in MIXED else 0.03
    assert bulk_effective_sample_size(chains) == pytest.approx(
        sample_size_of(normal_scores(halves_of(chains))), rel=exact
    )
    tails = [sample_size_of(halves_of((chains <= np.quantile(chains, end)).astype(float))) for end in (0.05, 0.95)]
    assert tail_effective_sample_size(chains) == pytest.approx(min(tails), rel=exact)


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
    found = joint_autocorrelation(autoregressive(20, 5000, rho, 12), 15)
    np.testing.assert_allclose(found, rho ** np.arange(15), atol=0.03)


def test_autocorrelation_of_chains_apart_does_not_fall_to_nought() -> None:
    assert joint_autocorrelation(CHAINS["apart"], 100)[-1] > 0.3
    assert abs(joint_autocorrelation(CHAINS["independent"], 100)[-1]) < 0.1


def test_ranks_are_those_of_all_draws_together() -> None:
    chains = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    np.testing.assert_array_equal(rank_bins(chains, 4), [[0, 0, 1, 1], [2, 2, 3, 3]])
    np.testing.assert_array_equal(rank_bins(np.exp(chains), 4), rank_bins(chains, 4))


@pytest.mark.parametrize(("name", "uniform"), [("independent", True), ("apart", False), ("drifting", False)])
def test_rank_histograms_are_uniform_where_chains_have_mixed(name: str, uniform: bool) -> None:
    places = rank_bins(CHAINS[name], 10)
    halves = np.vstack(np.split(places, 2, axis=1))
    pvalues = [chisquare(np.bincount(half, minlength=10)).pvalue for half in halves]
    assert (min(pvalues) > 1e-3) == uniform


def test_chains_that_never_move_are_not_converged() -> None:
    stuck = np.repeat([[1.0], [2.0]], 50, axis=1)
    assert rank_normalised_split_r_hat(stuck) == np.inf
    assert bulk_effective_sample_size(stuck) < 5
    assert tail_effective_sample_size(stuck) < 5


def test_chains_of_one_value_are_worth_one_draw_each_and_not_converged() -> None:
    """arviz-stats by itself says 400 draws of 400."""
    stuck = np.full((4, 100), 3.0)
    assert rank_normalised_split_r_hat(stuck) == np.inf
    assert bulk_effective_sample_size(stuck) == tail_effective_sample_size(stuck) == 4


@pytest.mark.slow
def test_the_sampler_is_imported_without_the_library_that_judges_it() -> None:
    script = "import sys, sfumato.engine.posterior.ensemble; assert 'arviz_stats' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
