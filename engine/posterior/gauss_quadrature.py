"""Gauss quadrature against discrete measures, many at once.

Lanczos' recurrence gives the three-term coefficients of the polynomials that are orthogonal for a measure; the
eigenvalues of their Jacobi matrix are the nodes (Golub and Welsch 1969). m nodes are exact for degree 2m - 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

__all__ = ["gauss_rules", "tilting_error"]

Floats = NDArray[np.float64]


def gauss_rules(x: Floats, weights: Floats, counts: NDArray[np.intp], m: int) -> tuple[Floats, Floats]:
    """Nodes and weights, (n, m) each, of the m-point rules for n measures whose points ``x`` (N,) lie end to end.

    The i-th measure has ``counts[i]`` points, more than m, and ``weights`` that sum to 1.
    """
    starts = np.cumsum(counts) - counts
    diagonal, beside = np.empty((counts.size, m)), np.empty((counts.size, m))
    before, now, last = np.zeros_like(x), np.ones_like(x), np.zeros_like(x)
    for k in range(m):
        diagonal[:, k] = np.add.reduceat(weights * x * now * now, starts)
        following = (x - np.repeat(diagonal[:, k], counts)) * now - last * before
        beside[:, k] = np.sqrt(np.add.reduceat(weights * following * following, starts))
        last = np.repeat(beside[:, k], counts)
        before, now = now, following / last
    jacobi = np.zeros((counts.size, m, m))
    index = np.arange(m)
    jacobi[:, index, index] = diagonal
    jacobi[:, index[1:], index[:-1]] = beside[:, :-1]
    nodes, vectors = np.linalg.eigh(jacobi, UPLO="L")
    return nodes, vectors[:, 0, :] ** 2


def tilting_error(m: int, tilt: Floats, widening: Floats) -> Floats:
    """Error of m Gauss-Hermite nodes for the mean of exp(tilt x + widening x^2 / 2) under a standard normal x.

    The first term that the rule misses is that of x^2m, whose error is m!.
    """
    j = np.arange(m + 1)
    with np.errstate(divide="ignore"):
        log_tilt, log_half = np.log(tilt[..., None]), np.log(widening[..., None] / 2)
    terms = _times(2 * j, log_tilt) - gammaln(2 * j + 1) + _times(m - j, log_half) - gammaln(m - j + 1)
    return np.asarray(np.exp(gammaln(m + 1) + logsumexp(terms, axis=-1)))


def _times(power: NDArray[np.intp], logarithm: Floats) -> Floats:
    """The product, with 0 * -inf = 0."""
    return np.where(power == 0, 0.0, power * np.where(power == 0, 0.0, logarithm))
