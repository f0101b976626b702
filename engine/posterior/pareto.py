"""Pareto-smoothed importance sampling (Vehtari, Simpson, Gelman, Yao and Gabry 2024).

Weights and k-hat equal those of arviz-stats to rounding where it has any (a test holds that), and stay ours because draws
hang on them: it raises ValueError for a flat tail and for fewer than 25 ratios, divides by zero where all weights but the
largest vanish, and sorts ties in an order that is the machine's, so that one seed would not draw the same everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["generalised_pareto", "smooth_weights", "weights_sample_size"]

Floats = NDArray[np.float64]

_SMALLEST_TAIL = 5
_LOG_TINY = float(np.log(np.finfo(float).tiny))


def generalised_pareto(excess: Floats) -> tuple[float, float]:
    """Shape k and scale sigma of a generalised Pareto distribution fitted to sorted excesses (n,) over a threshold.

    The profile posterior mean of Zhang and Stephens (2009), with k drawn towards 0.5 as by ten observations
    (Vehtari et al. 2024, appendix G).
    """
    n = excess.size
    m = 30 + int(np.sqrt(n))
    theta = 1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    theta = theta / (3 * excess[int(n / 4 + 0.5) - 1]) + 1 / excess[-1]
    k = np.mean(np.log1p(-theta[:, None] * excess), axis=1)
    profile = n * (np.log(-theta / k) - k - 1)
    weights = np.exp(profile - profile.max())
    weights /= weights.sum()
    best = float(weights @ theta)
    shape = float(np.mean(np.log1p(-best * excess)))
    return (n * shape + 10 * 0.5) / (n + 10), -shape / best


def smooth_weights(log_ratios: Floats) -> tuple[Floats, float]:
    """Normalised weights (S,) with their upper tail smoothed, and the shape k-hat of that tail.

    The tail is the largest min(S / 5, 3 sqrt(S)) ratios; they are replaced by the expected order statistics of the
    fitted distribution, cut at the largest ratio. k-hat is infinite when fewer than five are left to fit, and minus
    infinite when the tail is flat.
    """
    log_weights = log_ratios - log_ratios.max()
    tail = int(min(0.2 * log_weights.size, 3 * np.sqrt(log_weights.size)))
    if tail < _SMALLEST_TAIL:
        return _normalised(log_weights), np.inf
    order = np.argsort(log_weights, kind="stable")
    largest = order[-tail:]
    threshold = np.exp(max(log_weights[order[-tail - 1]], _LOG_TINY))
    excess = np.maximum(np.exp(log_weights[largest]) - threshold, np.finfo(float).tiny)
    if excess[0] == excess[-1]:
        return _normalised(log_weights), -np.inf
    shape, scale = generalised_pareto(excess)
    smoothed = threshold + _quantile((np.arange(tail) + 0.5) / tail, shape, scale)
    log_weights[largest] = np.minimum(np.log(smoothed), 0.0)
    return _normalised(log_weights), float(shape)


def _normalised(log_weights: Floats) -> Floats:
    weights = np.exp(log_weights)
    return np.asarray(weights / weights.sum())


def _quantile(p: Floats, shape: float, scale: float) -> Floats:
    if abs(shape) < 1e-12:
        return -scale * np.log1p(-p)
    return scale * np.expm1(-shape * np.log1p(-p)) / shape


def weights_sample_size(weights: Floats) -> float:
    """Effective sample size 1 / sum w^2 of normalised weights (S,) (Kong 1992)."""
    return float(1 / np.sum(weights**2))
