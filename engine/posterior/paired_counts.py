"""Two counts of one record that share its random effect: the confidential y and the released z.

    P(y, z | eta, p, tau) = integral [p 1(y = 0) + (1 - p) f(y | g)] [p 1(z = 0) + (1 - p) f(z | g)] N(g; eta, tau) dg

with f the truncated Poisson of ``truncated_poisson``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from ..data.arrays import Floats
from ..data.rows import distinct_rows
from ..errors import NotComputable
from .truncated_poisson import log_normaliser
from .zero_inflated_poisson import ZeroInflatedPoisson

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

_DROP = 45.0
_MOST_POINTS = 100_000
_LEAST = 1e-300
_SMALLEST_TAU = 0.05
_COARSE = 300
_LARGEST_TABLED = 100_000


def log_pair_probabilities(y: Floats, z: float, eta: Floats, logit_p: Floats, tau: Floats, bound: int | None) -> Floats:
    """Return log P(y, z | eta, p, tau) of counts y (c,) for parameters (S,): (S, c)."""
    # A smaller tau would need ever finer points. Beside the deviation that the counts leave to g it changes a logarithm
    # by 0.001 at most.
    tau = np.maximum(tau, _SMALLEST_TAU / np.sqrt(1 + float(y.max()) + z))
    # Points serve all parameters at once, and must be fine enough for the smallest tau among them.
    octave = np.floor(np.log2(tau))
    found = np.empty((eta.size, y.size))
    for value in np.unique(octave):
        here = octave == value
        found[here] = _log_pairs_of_similar_tau(y, z, eta[here], logit_p[here], tau[here], bound)
    return found


def _log_pairs_of_similar_tau(
    y: Floats, z: float, eta: Floats, logit_p: Floats, tau: Floats, bound: int | None
) -> Floats:
    """Return log P(y, z | eta, p, tau), (S, c), for parameters whose tau lie within a factor of 2."""
    g = _integration_points(y, z, eta, tau, bound)
    p, step = expit(logit_p), g[1] - g[0]
    normal = (g - eta[:, None]) / tau[:, None]
    normal *= normal
    normal *= -0.5
    np.exp(normal, out=normal)
    normal *= (step / np.sqrt(2 * np.pi) / tau)[:, None]
    seen = _log_pmf_at_points(np.array([z]), g, bound)[0]
    highest = 0.0 if z == 0 else float(seen.max())
    weights = np.exp(seen - highest)
    rates = _log_pmf_at_points(y, g, bound)
    top = rates.max(axis=1)
    counts = np.exp(rates - top[:, None]).T
    # For one record and many parameters and guesses the trapezoidal rule is a product of matrices.
    drawn = (1 - p)[:, None] * (normal @ (weights[:, None] * counts))
    alone = (1 - p) * (normal @ weights)
    if z == 0:
        drawn += p[:, None] * (normal @ counts)
        alone += p
    found = np.log(np.maximum((1 - p)[:, None] * drawn, _LEAST)) + top + highest
    inflated = np.log(np.maximum(p * alone, _LEAST)) + highest
    return np.asarray(np.where(y == 0, np.logaddexp(found, inflated[:, None]), found))


def _integration_points(y: Floats, z: float, eta: Floats, tau: Floats, bound: int | None) -> Floats:
    """Return points of g that cover all the integrals, (k,)."""
    widest = float(tau.max())
    low = min(float(eta.min()) - 9 * widest, float(np.log(min(y.min(), z) + 0.5)) - 3)
    high = max(float(eta.max()) + 9 * widest, float(np.log(max(y.max(), z) + 1)) + 1)
    # Log-concave densities have one peak each, which a coarse grid cannot miss.
    g = np.linspace(low, high, _COARSE)
    seen = _log_pmf_at_points(np.array([z]), g, bound)
    heights = _log_pmf_at_points(y, g, bound) + (seen if z > 0 else 0.0)
    rows = np.vstack([seen, heights]) if (y == 0).any() else heights
    reached = []
    for at in (eta.min(), eta.max()):
        for spread in (tau.min(), widest):  # what lies between has its peaks between
            heights = rows - 0.5 * ((g - at) / spread) ** 2
            reached.append(np.flatnonzero((heights > heights.max(axis=1, keepdims=True) - _DROP).any(axis=0))[[0, -1]])
    low, high = float(g[max(int(np.min(reached)) - 1, 0)]), float(g[min(int(np.max(reached)) + 1, _COARSE - 1)])
    step = min(0.3, 0.65 / float(np.sqrt(float(y.max()) + z + float(tau.min()) ** -2)))
    if bound and high > np.log(bound) - 5 / np.sqrt(bound):
        step = min(step, 0.6 / float(np.sqrt(bound)))
    if (high - low) / step > _MOST_POINTS:
        raise NotComputable("a count is too large for the integral over its rate")
    return np.arange(low, high + step, step)


def _log_pmf_at_points(y: Floats, g: Floats, bound: int | None) -> Floats:
    """Return log f(y | g) of counts (c,) at points (k,), (c, k)."""
    normaliser = np.exp(g) if bound is None else _interpolated_normaliser(bound, g)
    return np.asarray(y[:, None] * g - gammaln(y + 1)[:, None] - normaliser)


def _interpolated_normaliser(bound: int, g: Floats) -> Floats:
    """Return the normaliser A at points (k,), from a spline where there is one."""
    if bound > _LARGEST_TABLED:
        return log_normaliser(g, bound)
    table = _normaliser_spline(bound)
    inside = (g > table.x[0]) & (g < table.x[-1])
    found = np.empty_like(g)
    found[inside] = table(g[inside])
    if not inside.all():
        found[~inside] = log_normaliser(g[~inside], bound)
    return found


@lru_cache(maxsize=4)
def _normaliser_spline(bound: int) -> CubicSpline:
    """Return a spline of the normaliser over log rates, accurate to 1e-6."""
    from scipy.interpolate import CubicSpline

    points = np.arange(-12.0, float(np.log(bound + 1)) + 12, 0.1 / np.sqrt(max(bound, 100)))
    return CubicSpline(points, log_normaliser(points, bound))


@dataclass(frozen=True, eq=False)
class PairedCountsPosterior:
    """The posterior of a zero-inflated regression given y and z, drawn with each record's own effect.

    model: posterior given y, whose ``rows`` (u, K) and prior are used
    row, y, z, weight: the distinct (row, y, z) and the number of records of each, (P,)
    """

    model: ZeroInflatedPoisson
    row: Floats
    y: Floats
    z: Floats
    weight: Floats

    @classmethod
    def from_records(
        cls, model: ZeroInflatedPoisson, rows: Floats, row: NDArray[np.intp], y: Floats, z: Floats
    ) -> PairedCountsPosterior:
        """Build from counts y (n,) and z (n,), with the design ``rows[row]``, ``rows`` (u, K) and ``row`` (n,)."""
        own = distinct_rows(rows.T, len(rows))
        assert np.array_equal(rows[own.first], model.rows)
        records = np.stack([own.combination_of[row], y, z])
        distinct = distinct_rows(records, len(row))
        row_of, y_of, z_of = records[:, distinct.first]
        return cls(model, row_of, y_of, z_of, distinct.counts.astype(np.float64))

    def joint_density(self) -> Callable[[Floats], Floats]:
        """Return a function for the log density of many theta (T, 2K + 1), up to a constant."""
        model = self.model

        def log_density(thetas: Floats) -> Floats:
            """Return the log density of thetas (T, 2K + 1), (T,), -inf outside the support."""
            found = np.full(len(thetas), -np.inf)
            inside = model.is_in_support(thetas)
            eta, logit_p, log_tau = model.linear_predictors(thetas[inside])
            tau, total = np.exp(log_tau), model.log_prior(thetas[inside])
            for row, y, z, weight in zip(self.row.astype(np.intp), self.y, self.z, self.weight, strict=True):
                own = log_pair_probabilities(np.array([y]), z, eta[:, row], logit_p[:, row], tau, model.bound)
                total += weight * own[:, 0]
            found[inside] = total
            return found

        return log_density
