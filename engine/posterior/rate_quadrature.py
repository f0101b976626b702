"""Quadrature over the log rate of a Poisson-lognormal count: its probability, and the moments of its rate's posterior.

The integrand is analytic in a strip, so the trapezoidal rule converges geometrically in 1 / step (Trefethen and
Weideman 2014). The strip ends pi / 2 from the real axis for a Poisson, and about 2.8 / sqrt(b) from it near g = log b for
one truncated at b (the zeros of the partial sums of exp, Szegő 1924): hence the limits on the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from .poisson_lognormal import mode_and_curvature
from .truncated_poisson import log_normaliser

__all__ = ["Derivatives", "RateQuadrature", "rate_quadrature"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_DROP = 36.0  # what lies more than this many log units below the mode is left out
_LARGEST_TABLE = 50_000


@dataclass(frozen=True)
class Derivatives:
    """log P(y | eta, tau) and its derivatives by eta (``e``) and s = log tau (``s``), each (n,)."""

    value: Floats
    e: Floats
    s: Floats
    ee: Floats
    es: Floats
    ss: Floats


@dataclass(frozen=True)
class RateQuadrature:
    """Nodes and weights of the posterior of every z = (g - eta) / tau, laid end to end.

    The nodes of the i-th integral are ``z[starts[i] : starts[i] + counts[i]]``, N in all; its weights sum to 1, and its
    integral is exp(log_mass[i]) = P(y_i | eta_i, tau).
    """

    tau: Floats | float
    z: Floats
    weights: Floats
    starts: Indices
    counts: Indices
    log_mass: Floats

    def mean(self, values: Floats) -> Floats:
        """Posterior mean of ``values`` (N,) at the nodes, for every integral: (n,)."""
        return np.add.reduceat(self.weights * values, self.starts)

    def derivatives(self) -> Derivatives:
        """As log N(g; eta, e^s) is -z^2 / 2 - s, the moments of z give all of them."""
        m = self.mean(self.z)
        c = self.z - np.repeat(m, self.counts)
        square = c * c
        c2, c3, c4 = self.mean(square), self.mean(square * c), self.mean(square * square)
        second = c2 + m * m
        variance_of_square = c4 + 4 * m * c3 + 4 * m * m * c2 - c2 * c2
        return Derivatives(
            value=self.log_mass,
            e=m / self.tau,
            s=second - 1,
            ee=(c2 - 1) / self.tau**2,
            es=(c3 + 2 * m * c2 - 2 * m) / self.tau,
            ss=variance_of_square - 2 * second,
        )


def rate_quadrature(y: Floats, eta: Floats, tau: Floats | float, bound: int | None) -> RateQuadrature:
    """The trapezoidal rule for every (y, eta), each (n,), and one tau or n; relative error below 1e-8, mostly far below."""
    mode, curvature = mode_and_curvature(y, eta, tau, bound)
    steps = np.minimum(0.3, 0.65 / np.sqrt(curvature))
    near_bound = np.inf if not bound else 0.6 / np.sqrt(bound)
    lattice = _Lattice.covering(mode, float(np.max(tau)), min(float(steps.min()), near_bound), bound)
    left, right = (_edge(y, eta, tau, lattice, mode, curvature, side) for side in (-1, 1))
    if bound:
        truncated = right * lattice.spacing > np.log(bound) - 5 / np.sqrt(bound)
        steps = np.where(truncated, np.minimum(steps, near_bound), steps)
    stride = np.exp2(np.floor(np.log2(steps / lattice.spacing) + 1e-9))
    first = np.floor(left / stride)
    counts = (np.ceil(right / stride) - first).astype(np.intp) + 1
    return _trapezoidal_rule(y, eta, tau, lattice, first * stride, stride, counts)


def _trapezoidal_rule(
    y: Floats, eta: Floats, tau: Floats | float, lattice: _Lattice, first: Floats, stride: Floats, counts: Indices
) -> RateQuadrature:
    starts = np.cumsum(counts) - counts
    k = np.arange(counts.sum()) * np.repeat(stride, counts) + np.repeat(first - starts * stride, counts)
    g = k * lattice.spacing
    z = (g - np.repeat(eta, counts)) * (1 / tau if np.ndim(tau) == 0 else np.repeat(1 / tau, counts))
    log_terms = np.repeat(y, counts) * g - lattice.log_normaliser(k) - 0.5 * z * z
    peak = np.maximum.reduceat(log_terms, starts)
    terms = np.exp(log_terms - np.repeat(peak, counts))
    total = np.add.reduceat(terms, starts)
    log_step = np.log(stride * lattice.spacing / tau) - 0.5 * np.log(2 * np.pi)
    log_mass = peak - gammaln(y + 1) + np.log(total) + log_step
    return RateQuadrature(tau, z, terms / np.repeat(total, counts), starts, counts, log_mass)


@dataclass(frozen=True)
class _Lattice:
    """The multiples k of one spacing, and A there: from a table, unless the table would be too large."""

    spacing: float
    bound: int | None
    first: float
    table: Floats | None

    @classmethod
    def covering(cls, modes: Floats, tau: float, spacing: float, bound: int | None) -> _Lattice:
        """A lattice on which every mode keeps 9 tau, or 2 spacings, to either side."""
        reach = np.ceil(9 * tau / spacing) + 2
        first, last = np.floor(modes.min() / spacing) - reach, np.ceil(modes.max() / spacing) + reach
        if bound is None or last - first > _LARGEST_TABLE:
            return cls(spacing, bound, first, None)
        return cls(spacing, bound, first, log_normaliser(np.arange(first, last + 1) * spacing, bound))

    def log_normaliser(self, k: Floats) -> Floats:
        """A(k spacing)."""
        if self.table is None:
            return log_normaliser(k * self.spacing, self.bound)
        return self.table[(k - self.first).astype(np.intp)]


def _edge(
    y: Floats, eta: Floats, tau: Floats | float, lattice: _Lattice, mode: Floats, curvature: Floats, side: int
) -> Floats:
    """A lattice point on one side of the mode beyond which the integrand is negligible, and not much further out."""
    height = _height(y, np.rint(mode / lattice.spacing), eta, tau, lattice)
    inner, outer = 1 / np.sqrt(curvature), np.zeros_like(mode) + np.sqrt(2 * _DROP) * tau
    for _ in range(5):
        middle = np.sqrt(inner * outer)
        k = np.rint((mode + side * middle) / lattice.spacing)
        outside = _height(y, k, eta, tau, lattice) < height - _DROP
        inner, outer = np.where(outside, inner, middle), np.where(outside, middle, outer)
    return np.asarray(np.rint((mode + side * outer) / lattice.spacing))


def _height(y: Floats, k: Floats, eta: Floats, tau: Floats | float, lattice: _Lattice) -> Floats:
    g = k * lattice.spacing
    return y * g - lattice.log_normaliser(k) - 0.5 * ((g - eta) / tau) ** 2
