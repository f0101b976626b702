"""Convergence of several chains: rank-normalised split R-hat and effective sample sizes (Vehtari et al. 2021).

Chains are arrays (chains, steps) of one parameter. R-hat and sample sizes are those of arviz-stats. The autocorrelation
of all chains together (eq. 10) is ours: arviz-stats has it of single chains only. So is the count of ranks for pictures.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import rankdata

__all__ = [
    "autocorrelation",
    "bulk_effective_sample_size",
    "rank_normalised_split_r_hat",
    "rank_places",
    "tail_effective_sample_size",
]

Floats = NDArray[np.float64]


def rank_normalised_split_r_hat(chains: Floats) -> float:
    """The larger of the R-hats of the ranks (location) and of the folded ranks (scale), section 4.

    Infinite for chains of which none ever moves.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = float(_library().rhat(chains, chain_axis=0, draw_axis=1, method="rank"))
    return np.inf if np.isnan(r_hat) else r_hat


def bulk_effective_sample_size(chains: Floats) -> float:
    """Effective sample size of the rank-normalised split chains, sections 3 and 4.1."""
    return _effective_sample_size(chains, "bulk")


def tail_effective_sample_size(chains: Floats) -> float:
    """The smaller of the effective sample sizes of the 5 % and the 95 % quantile, section 4.3."""
    ends = np.quantile(chains, [0.05, 0.95])
    return min(_effective_sample_size((chains <= end).astype(np.float64), "mean") for end in ends)


def _effective_sample_size(chains: Floats, method: Literal["bulk", "mean"]) -> float:
    """That of arviz-stats, which takes one value throughout for independent draws: here it says one thing a chain."""
    if np.ptp(chains) == 0:
        return float(chains.shape[0])
    return float(_library().ess(chains, chain_axis=0, draw_axis=1, method=method))


def _library() -> Any:
    """The functions of arviz-stats that take arrays; imported only where chains are judged."""
    from arviz_stats.base import array_stats

    return array_stats


def autocorrelation(chains: Floats, lags: int) -> Floats:
    """Autocorrelation of the chains together at the lags 0 to ``lags`` - 1, eq. 10: (lags,).

    Where the chains differ it does not fall to 0, as that of a single chain would.
    """
    return _combined_autocorrelation(chains)[:lags]


def rank_places(chains: Floats, bins: int) -> NDArray[np.int64]:
    """For every draw in which ``bins``-th of all draws' ranks it falls, from 0: (chains, steps), section 4.2."""
    ranks = rankdata(chains, method="average").reshape(chains.shape)
    return np.asarray((ranks - 0.5) / chains.size * bins).astype(np.int64)


def _combined_autocorrelation(chains: Floats) -> Floats:
    """(chains, steps) -> (steps,); 1 throughout for chains that never move."""
    steps = chains.shape[1]
    between = np.var(chains.mean(axis=1), ddof=1)
    autocovariance = _autocovariance(chains).mean(axis=0)
    within = autocovariance[0] * steps / (steps - 1)
    whole = within * (steps - 1) / steps + between
    correlation = 1 - (within - autocovariance) / whole if whole > 0 else np.ones(steps)
    correlation[0] = 1.0
    return np.asarray(correlation)


def _autocovariance(chains: Floats) -> Floats:
    steps = chains.shape[1]
    length = next_fast_len(2 * steps)
    spectrum = rfft(chains - chains.mean(axis=1, keepdims=True), length, axis=1)
    return np.asarray(irfft(np.abs(spectrum) ** 2, length, axis=1)[:, :steps] / steps)
