"""The Poisson distribution truncated to 0..b, as an exponential family in the log rate g.

f(y | g) = exp(y g - log y! - A(g)),    A(g) = log sum_{k=0..b} exp(k g) / k!

A is convex, so log f(y | g) is concave in g for every y; A'(g) and A''(g) are the mean and the variance. Without a
bound A(g) = exp(g).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln

from ..data.arrays import Floats
from ..errors import NotComputable

Counts = NDArray[np.int64]

_LARGEST_RATE = 9.0e18  # NumPy's Poisson generator answers in int64


def log_normaliser(g: Floats, bound: int | None) -> Floats:
    """Return A(g) = log sum_{k=0..bound} exp(k g) / k!, any shape."""
    with np.errstate(over="ignore"):
        rate = np.exp(g)
    if bound is None:
        return rate
    answer = rate.copy()
    near, above = _is_near_bound(rate, bound), _is_far_above_bound(rate, bound)
    # Never from 1 - cdf, which loses all digits where the cdf is near 1 or 0.
    answer[near] += np.log(gammaincc(bound + 1.0, rate[near]))
    # Far above the bound the cdf itself underflows: the sum is taken from its largest term down.
    answer[above] = bound * g[above] - gammaln(bound + 1.0) + np.log(_sums_from_bound_down(rate[above], bound)[0])
    return answer


def _is_near_bound(rate: Floats, bound: int) -> NDArray[np.bool_]:
    """Return which rates are near enough to the bound for truncation to matter, and not far above it."""
    # Further below the bound, P(Y > bound) is less than 1e-17.
    return np.asarray(rate > bound + 1 - 9 * np.sqrt(bound + 1.0)) & ~_is_far_above_bound(rate, bound)


def _is_far_above_bound(rate: Floats, bound: int) -> NDArray[np.bool_]:
    """Return which rates are so far above the bound that the cdf would underflow."""
    return np.asarray(rate > bound + 20 * np.sqrt(bound + 1.0))


def _sums_from_bound_down(rate: Floats, bound: int) -> tuple[Floats, Floats, Floats]:
    """Return sum_k k^r t_k for r = 0, 1, 2, with t_k = bound! / (bound - k)! rate^-k, the weight of y = bound - k."""
    term, powers = np.ones_like(rate), np.array([[1.0], [0.0], [0.0]])
    sums = powers * term
    for k in range(1, bound + 1):
        term = term * ((bound - k + 1) / rate)
        powers = np.array([[1.0], [k], [k * k]])
        sums += powers * term
        if not np.any(k * k * term > 1e-17):
            break
    return sums[0], sums[1], sums[2]


def log_pmf(y: Floats | float, g: Floats, bound: int | None) -> Floats:
    """Return log f(y | g); y and g broadcast against each other."""
    return np.asarray(y * g - gammaln(y + 1.0) - log_normaliser(g, bound))


def mean_and_variance(g: Floats, bound: int | None) -> tuple[Floats, Floats]:
    """Return A'(g) = rate (1 - f(b | g)) and A''(g) = A'(g) - rate f(b | g) (b - A'(g)), each the shape of g."""
    with np.errstate(over="ignore"):
        rate = np.exp(g)
    if bound is None:
        return rate, rate
    above = _is_far_above_bound(rate, bound)
    total, first, second = _sums_from_bound_down(rate[above], bound)
    rate = np.where(above, 0.0, rate)
    at_bound = np.exp(log_pmf(float(bound), g, bound))
    mean = rate * (1 - at_bound)
    variance = np.maximum(mean - rate * at_bound * (bound - mean), 0.0)
    mean[above] = bound - first / total
    variance[above] = second / total - (first / total) ** 2
    return mean, variance


def draw_truncated_poisson(g: Floats, bound: int | None, rng: np.random.Generator) -> Counts:
    """Draw exactly one count in 0..bound for every log rate g (n,), (n,).

    Raises NotComputable for rates above 9e18 without a bound.
    """
    if bound is None and np.any(g > np.log(_LARGEST_RATE)):
        raise NotComputable("a drawn rate is larger than 9e18; give the variable an upper bound")
    if bound is None:
        return rng.poisson(np.exp(g))
    counts = np.empty(g.shape, dtype=np.int64)
    with np.errstate(divide="ignore"):
        low = g <= np.log(bound)
    # Up to the bound rejection accepts at least every other draw; above it hardly any, but inversion from the bound
    # downwards ends soon.
    counts[low] = _draw_by_rejection(np.exp(g[low]), bound, rng)
    counts[~low] = _draw_by_inversion(g[~low], bound, rng)
    return counts


def _draw_by_rejection(rate: Floats, bound: int, rng: np.random.Generator) -> Counts:
    """Draw Poisson counts, again until they are within the bound."""
    counts = rng.poisson(rate)
    waiting = np.flatnonzero(counts > bound)
    while waiting.size:
        counts[waiting] = rng.poisson(rate[waiting])
        waiting = waiting[counts[waiting] > bound]
    return counts


def _draw_by_inversion(g: Floats, bound: int, rng: np.random.Generator) -> Counts:
    """Draw counts by inversion of the cdf, from the bound downwards."""
    log_top = bound * g - gammaln(bound + 1.0) - log_normaliser(g, bound)
    shortfall = np.zeros(g.shape, dtype=np.int64)
    left = rng.random(g.shape)
    waiting, term, inverse_rate = np.arange(g.size), np.exp(log_top), np.exp(-g)
    for k in range(bound):
        left[waiting] -= term
        going_on = left[waiting] >= 0
        waiting, term, inverse_rate = waiting[going_on], term[going_on], inverse_rate[going_on]
        if waiting.size == 0:
            break
        shortfall[waiting] = k + 1
        term = term * (bound - k) * inverse_rate
    return bound - shortfall
