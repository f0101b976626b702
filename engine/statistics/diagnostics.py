"""Convergence of several chains: rank-normalised split R-hat and effective sample sizes (Vehtari et al. 2021).

Chains are arrays (chains, steps) of one parameter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
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
    """The larger of the R-hats of the ranks (location) and of the folded ranks (scale), section 4."""
    halves = _split(chains)
    folded = np.abs(halves - np.median(halves))
    return max(_r_hat(_rank_normalised(halves)), _r_hat(_rank_normalised(folded)))


def bulk_effective_sample_size(chains: Floats) -> float:
    """Effective sample size of the rank-normalised split chains, section 3 and 4.1."""
    return _effective_sample_size(_rank_normalised(_split(chains)))


def tail_effective_sample_size(chains: Floats) -> float:
    """The smaller of the effective sample sizes of the 5 % and the 95 % quantile, section 4.3."""
    ends = np.quantile(chains, [0.05, 0.95])
    return min(_effective_sample_size(_split((chains <= end).astype(np.float64))) for end in ends)


def autocorrelation(chains: Floats, lags: int) -> Floats:
    """Autocorrelation of the chains together at the lags 0 to ``lags`` - 1, eq. 10: (lags,).

    Where the chains differ it does not fall to 0, as that of a single chain would.
    """
    return _combined_autocorrelation(chains)[:lags]


def rank_places(chains: Floats, bins: int) -> NDArray[np.int64]:
    """For every draw in which ``bins``-th of all draws' ranks it falls, from 0: (chains, steps), section 4.2."""
    ranks = rankdata(chains, method="average").reshape(chains.shape)
    return np.asarray((ranks - 0.5) / chains.size * bins).astype(np.int64)


def _effective_sample_size(halves: Floats) -> float:
    time = -1 + 2 * _initial_monotone_sum(_combined_autocorrelation(halves))
    return float(halves.size / max(time, 1 / np.log10(halves.size)))


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


def _initial_monotone_sum(correlation: Floats) -> float:
    """Sum of the pairs of neighbouring correlations, while positive and made to decrease (Geyer 1992)."""
    pairs = correlation[: correlation.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    last = negative[0] if negative.size else pairs.size
    # the first correlation of the pair that ends the sequence still counts when positive
    extra = max(correlation[2 * last], 0.0) / 2 if last < pairs.size else 0.0
    return float(np.minimum.accumulate(pairs[:last]).sum() + extra)


def _split(chains: Floats) -> Floats:
    half = chains.shape[1] // 2
    return np.vstack([chains[:, :half], chains[:, -half:]])


def _rank_normalised(chains: Floats) -> Floats:
    ranks = rankdata(chains, method="average").reshape(chains.shape)
    return np.asarray(ndtri((ranks - 0.375) / (chains.size + 0.25)))


def _r_hat(chains: Floats) -> float:
    steps = chains.shape[1]
    within = np.mean(np.var(chains, axis=1, ddof=1))
    between = np.var(chains.mean(axis=1), ddof=1)
    if within == 0:
        return np.inf
    return float(np.sqrt((steps - 1) / steps + between / within))


def _autocovariance(chains: Floats) -> Floats:
    steps = chains.shape[1]
    length = next_fast_len(2 * steps)
    spectrum = rfft(chains - chains.mean(axis=1, keepdims=True), length, axis=1)
    return np.asarray(irfft(np.abs(spectrum) ** 2, length, axis=1)[:, :steps] / steps)
