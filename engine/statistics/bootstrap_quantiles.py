"""Bootstrap distribution of a quantile: that of infinitely many resamples, computed without resampling (Hutson & Ernst
2000).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, gammaln, xlog1py

from ..data.arrays import Floats, Integers

_NEGLIGIBLE = 1e-10
_WIDEST_GAP = 30


@dataclass(frozen=True)
class BootstrapQuantile:
    """Bootstrap distribution of a quantile.

    values: values that the quantile of a resample can have, in increasing order, (V,)
    probabilities: of the values, (V,)
    """

    values: Floats
    probabilities: Floats

    @property
    def sd(self) -> float:
        """Return the standard deviation of the quantile over resamples."""
        if self.values[0] == self.values[-1]:
            return 0.0
        deviations = self.values - self.probabilities @ self.values
        return float(np.sqrt(self.probabilities @ deviations**2))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the percentile interval: equal tails, each end a value that a resample can have."""
        cdf = np.cumsum(self.probabilities)
        tail = (1 - confidence) / 2
        ends = np.searchsorted(cdf, [tail, 1 - tail])
        lower, upper = self.values[np.minimum(ends, len(cdf) - 1)]
        return float(lower), float(upper)


def bootstrap_quantile(ordered: Floats, p: float, records: int | None = None, first: int = 1) -> BootstrapQuantile:
    """Return the bootstrap distribution of the p-quantile, 0 <= p <= 1, of n sorted values.

    ordered: all of them, or of ``records`` values those from rank ``first``, from 1, that ``needed_ranks`` says
    """
    n = len(ordered) if records is None else records
    # The quantile interpolates as numpy.quantile does, (1 - g) X_(r) + g X_(r+1) with r - 1 + g = (n - 1) p. In a
    # resample these are x_(I) and x_(J), I and J the ceilings of n times order statistics of n uniform variables
    # (Hutson & Ernst 2000).
    r, g = _rank_and_gap(n, p)
    k = np.arange(*_rank_window(n, r))
    if g == 0:
        return _trimmed_distribution(ordered[k - first], _rank_probabilities(k, n, r))
    # J - I is nearly geometric whatever n is, so a narrow band of pairs holds all but a negligible part.
    gaps = np.arange(_WIDEST_GAP + 1)
    lower, upper = ordered[k - first, None], ordered[np.minimum(k[:, None] + gaps, n) - first]
    values = lower + g * (upper - lower)
    return _trimmed_distribution(values.ravel(), _pair_probabilities(k, gaps, n, r).ravel())


def needed_ranks(n: int, p: float) -> Integers:
    """Return the ranks, from 1, of n values that the bootstrap distribution of the p-quantile needs, ascending."""
    first, end = _rank_window(n, _rank_and_gap(n, p)[0])
    return np.arange(first, min(end + _WIDEST_GAP, n + 1))


def _rank_and_gap(n: int, p: float) -> tuple[int, float]:
    """Return the rank, from 1, at or below the p-quantile of n values, and how far it is to the next."""
    whole = int((n - 1) * p)
    return whole + 1, (n - 1) * p - whole


def _rank_window(n: int, r: int) -> tuple[int, int]:
    """Return the ranks that the lower order statistic takes with more than a negligible probability: first and end."""
    low, high = betaincinv(r, n - r + 1, [_NEGLIGIBLE, 1 - _NEGLIGIBLE])
    return max(1, int(np.floor(n * low))), min(n, int(np.ceil(n * high)) + 1) + 1


def _rank_probabilities(k: NDArray[np.int_], n: int, r: int) -> Floats:
    # P(I <= k) = B(k/n; r, n - r + 1), B the beta distribution function.
    return np.asarray(betainc(r, n - r + 1, k / n) - betainc(r, n - r + 1, (k - 1) / n))


def _pair_probabilities(k: NDArray[np.int_], gaps: NDArray[np.int_], n: int, r: int) -> Floats:
    """Return P(I = k, J = k + gap), one row a k and one column a gap."""
    beyond = _tail_probabilities(k[:, None], np.minimum(k[:, None] + gaps, n), n, r)
    return -np.diff(beyond, axis=1, prepend=_rank_probabilities(k, n, r)[:, None])


def _tail_probabilities(k: NDArray[np.int_], last: NDArray[np.int_], n: int, r: int) -> Floats:
    # C(n, r) ((k/n)^r - ((k-1)/n)^r) (1 - last/n)^(n-r), in logarithms because the factors overflow.
    """Return P(I = k, J > last) for ranks k and last."""
    choose = gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)
    with np.errstate(divide="ignore"):
        below = r * np.log(k / n) + np.log1p(-(((k - 1) / k) ** r))
    return np.asarray(np.exp(choose + below + xlog1py(n - r, -last / n)))


def _trimmed_distribution(values: Floats, probabilities: Floats) -> BootstrapQuantile:
    """Return the distribution without its negligible tails."""
    order = np.argsort(values)
    ordered, kept = values[order], np.maximum(probabilities[order], 0.0)
    # Probabilities in the tails are differences of nearly equal numbers, mostly rounding errors.
    first, last = np.searchsorted(np.cumsum(kept) / kept.sum(), [_NEGLIGIBLE, 1 - _NEGLIGIBLE])
    inside = slice(first, last + 1)
    return BootstrapQuantile(ordered[inside], kept[inside] / kept[inside].sum())
