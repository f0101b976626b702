"""The bootstrap distribution of a quantile, exactly: what infinitely many resamples would give, without resampling.

The quantile interpolates between two neighbouring order statistics, (1 - g) X_(r) + g X_(r+1) with r - 1 + g = (n - 1) p,
as ``numpy.quantile`` does. Those of a resample are the sorted values x_(I), x_(J) with I and J the ceilings of n times
order statistics of n uniform variables (Hutson & Ernst 2000), so that

    P(I <= k)        = B(k/n; r, n - r + 1),  B the beta distribution function
    P(I = k, J > l)  = C(n, r) ((k/n)^r - ((k-1)/n)^r) (1 - l/n)^(n-r),  l >= k

The gap J - I has nearly a geometric distribution whatever n is, so a narrow band of pairs holds all but a negligible part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, gammaln, xlog1py

__all__ = ["BootstrapQuantile", "bootstrap_quantile"]

Floats = NDArray[np.float64]

_NEGLIGIBLE = 1e-10
_WIDEST_GAP = 30


@dataclass(frozen=True)
class BootstrapQuantile:
    """The values (V,) that the quantile of a resample can have, in increasing order, and their probabilities (V,)."""

    values: Floats
    probabilities: Floats

    @property
    def sd(self) -> float:
        """The bootstrap standard error."""
        if self.values[0] == self.values[-1]:
            return 0.0
        deviations = self.values - self.probabilities @ self.values
        return float(np.sqrt(self.probabilities @ deviations**2))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The percentile interval: equal tails, each end a value that a resample can have."""
        cdf = np.cumsum(self.probabilities)
        tail = (1 - confidence) / 2
        ends = np.searchsorted(cdf, [tail, 1 - tail])
        lower, upper = self.values[np.minimum(ends, len(cdf) - 1)]
        return float(lower), float(upper)


def bootstrap_quantile(ordered: Floats, p: float) -> BootstrapQuantile:
    """The distribution of the p-quantile, 0 <= p <= 1, of n values drawn with replacement from ``ordered`` (n,), sorted."""
    n = len(ordered)
    whole = int((n - 1) * p)
    r, g = whole + 1, (n - 1) * p - whole
    first, last = _window(n, r, g)
    k = np.arange(first, last + 1)
    if g == 0:
        return _distribution(ordered[k - 1], _cells(k, n, r))
    gaps = np.arange(_WIDEST_GAP + 1)
    lower, upper = ordered[k - 1, None], ordered[np.minimum(k[:, None] + gaps, n) - 1]
    values = lower + g * (upper - lower)
    return _distribution(values.ravel(), _pairs(k, gaps, n, r).ravel())


def _window(n: int, r: int, g: float) -> tuple[int, int]:
    """First and last rank that the lower order statistic takes with a probability worth counting."""
    low, high = betaincinv(r, n - r + 1, [_NEGLIGIBLE, 1 - _NEGLIGIBLE])
    return max(1, int(np.floor(n * low))), min(n, int(np.ceil(n * high)) + 1)


def _cells(k: NDArray[np.int_], n: int, r: int) -> Floats:
    """P(I = k)."""
    return np.asarray(betainc(r, n - r + 1, k / n) - betainc(r, n - r + 1, (k - 1) / n))


def _pairs(k: NDArray[np.int_], gaps: NDArray[np.int_], n: int, r: int) -> Floats:
    """P(I = k, J = k + gap), one row a k and one column a gap."""
    beyond = _beyond(k[:, None], np.minimum(k[:, None] + gaps, n), n, r)
    return -np.diff(beyond, axis=1, prepend=_cells(k, n, r)[:, None])


def _beyond(k: NDArray[np.int_], last: NDArray[np.int_], n: int, r: int) -> Floats:
    """P(I = k, J > last)."""
    choose = gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)
    with np.errstate(divide="ignore"):
        below = r * np.log(k / n) + np.log1p(-(((k - 1) / k) ** r))
    return np.asarray(np.exp(choose + below + xlog1py(n - r, -last / n)))


def _distribution(values: Floats, probabilities: Floats) -> BootstrapQuantile:
    """Without the tails, where probabilities are mostly rounding errors."""
    order = np.argsort(values)
    ordered, kept = values[order], np.maximum(probabilities[order], 0.0)
    first, last = np.searchsorted(np.cumsum(kept) / kept.sum(), [_NEGLIGIBLE, 1 - _NEGLIGIBLE])
    inside = slice(first, last + 1)
    return BootstrapQuantile(ordered[inside], kept[inside] / kept[inside].sum())
