"""Two counts of one record that share its random effect: the confidential y, and z that was drawn with the effect that y has in the posterior.

    P(y, z | eta, p, tau) = integral [p 1(y = 0) + (1 - p) f(y | g)] [p 1(z = 0) + (1 - p) f(z | g)] N(g; eta, tau) dg

with f the truncated Poisson of ``truncated_poisson``. For one record and many parameters and guesses of y it is a product of matrices:
by the trapezoidal rule over g, on points that serve all of them, as fine as in ``poisson_lognormal``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..arrays import Floats
from ..errors import NotComputable
from .truncated_poisson import log_pmf
from .zero_inflated_poisson import ZeroInflatedPoisson

_DROP = 45.0
_MOST_POINTS = 100_000
_LEAST = 1e-300
_SMALLEST_TAU = 0.05


def log_pairs(y: Floats, z: float, eta: Floats, logit_p: Floats, tau: Floats, bound: int | None) -> Floats:
    """Log P(y, z | eta, p, tau) of counts y (c,) for parameters (S,): (S, c).

    A tau below ``_SMALLEST_TAU`` of the deviation that the counts leave to g is that large, which changes a logarithm by 0.001 at most.
    """
    tau = np.maximum(tau, _SMALLEST_TAU / np.sqrt(1 + float(y.max()) + z))
    octave = np.floor(np.log2(tau))
    found = np.empty((eta.size, y.size))
    for value in np.unique(octave):
        here = octave == value
        found[here] = _log_pairs(y, z, eta[here], logit_p[here], tau[here], bound)
    return found


def _log_pairs(y: Floats, z: float, eta: Floats, logit_p: Floats, tau: Floats, bound: int | None) -> Floats:
    g = _points(y, z, eta, tau, bound)
    p, step = expit(logit_p)[:, None], g[1] - g[0]
    normal = np.exp(-0.5 * ((g - eta[:, None]) / tau[:, None]) ** 2) * (step / np.sqrt(2 * np.pi) / tau[:, None])
    seen = log_pmf(z, g, bound)
    highest = 0.0 if z == 0 else float(seen.max())
    known = normal * ((1 - p) * np.exp(seen - highest) + (p if z == 0 else 0.0))
    rates = log_pmf(y[:, None], g, bound)
    top = rates.max(axis=1)
    found = np.log(np.maximum((1 - p) * (known @ np.exp(rates - top[:, None]).T), _LEAST)) + top + highest
    inflated = np.log(np.maximum(p[:, 0] * known.sum(axis=1), _LEAST)) + highest
    return np.asarray(np.where(y == 0, np.logaddexp(found, inflated[:, None]), found))


def _points(y: Floats, z: float, eta: Floats, tau: Floats, bound: int | None) -> Floats:
    """Points of g that cover what any of the integrals has, (k,)."""
    largest, widest = float(max(y.max(), z)), float(tau.max())
    curvature = float(y.max()) + z + float(tau.min()) ** -2
    step = min(0.3, 0.65 / float(np.sqrt(curvature)))
    low = min(float(eta.min()) - 9 * widest, float(np.log(min(y.min(), z) + 0.5)) - 3)
    high = max(float(eta.max()) + 9 * widest, float(np.log(largest + 1)) + 1)
    if bound and high > np.log(bound) - 5 / np.sqrt(bound):
        step = min(step, 0.6 / float(np.sqrt(bound)))
    if (high - low) / step > _MOST_POINTS:
        raise NotComputable("a count is too large for the integral over its rate")
    g = np.arange(low, high + step, step)
    middle = float(eta.mean())
    prior = -0.5 * ((g - middle) / widest) ** 2
    seen = np.zeros_like(g) if z == 0 else log_pmf(z, g, bound)
    heights = np.vstack([seen, seen + log_pmf(y[:, None], g, bound)]) + prior
    inside = np.flatnonzero((heights > heights.max(axis=1, keepdims=True) - _DROP).any(axis=0))
    reach = int(np.ceil(float(np.abs(eta - middle).max()) / step)) + 2
    return np.asarray(g[max(inside[0] - reach, 0) : inside[-1] + reach + 1])


@dataclass(frozen=True, eq=False)
class PairedCounts:
    """The posterior of a zero-inflated regression given y and, drawn with each record's own effect, z.

    The distinct (row, y, z) are ``row``, ``y``, ``z`` and ``weight``, (P,) each; ``rows`` (u, K) and the prior are those of ``model``.
    """

    model: ZeroInflatedPoisson
    row: Floats
    y: Floats
    z: Floats
    weight: Floats

    @classmethod
    def of(cls, model: ZeroInflatedPoisson, x: Floats, y: Floats, z: Floats) -> PairedCounts:
        """Of records with design (n, K) and counts (n,) and (n,)."""
        rows, row = np.unique(x, axis=0, return_inverse=True)
        distinct, weight = np.unique(np.column_stack([row.ravel(), y, z]), axis=0, return_counts=True)
        assert np.array_equal(rows, model.rows)
        row_of, y_of, z_of = distinct.T
        return cls(model, row_of, y_of, z_of, weight.astype(np.float64))

    def near(self) -> Callable[[Floats], Floats]:
        """The log density of many theta (T, 2K + 1), up to a constant."""
        model = self.model

        def log_density(thetas: Floats) -> Floats:
            found = np.full(len(thetas), -np.inf)
            inside = model.supports(thetas)
            eta, logit_p, log_tau = model.predictors(thetas[inside])
            tau, total = np.exp(log_tau), model.log_prior(thetas[inside])
            for row, y, z, weight in zip(self.row.astype(np.intp), self.y, self.z, self.weight, strict=True):
                own = log_pairs(np.array([y]), z, eta[:, row], logit_p[:, row], tau, model.bound)
                total += weight * own[:, 0]
            found[inside] = total
            return found

        return log_density
