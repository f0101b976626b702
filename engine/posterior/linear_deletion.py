"""The linear posterior with one record changed, in closed form given sigma.

Given sigma, coefficients and responses are normal, so that a record is removed and another put in its place by the
delete-one formulas of regression diagnostics (Cook & Weisberg 1982, §2.2): with r_i the residual of record i, V the
posterior covariance, and a = x_i V x_i', c = x V x_i', s2 = sigma^2,

    E[x gamma | D_-i] = x m - c r_i / (s2 - a),    Var[x gamma | D_-i] = x V x' + c^2 / (s2 - a).

The remaining integral over log sigma, whose density is smooth, is computed by the trapezoidal rule (Trefethen &
Weideman 2014).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ..data.arrays import Floats
from ..errors import NotComputable
from ..statistics.columns import column_scales
from .bayesian_linear_regression import LinearPosterior

_AT_A_TIME = 2_000_000
_DROP = 60.0
_SPAN = 20.0
_FINE = 4001
_SMALLEST = 1e-11  # of 1 - leverage: what is left of a difference of two numbers near 1
Block = tuple[Floats, Floats, Floats]
"""Design (b, K), responses (b,) and weights (b,), above 0, of some records."""


@dataclass(frozen=True, eq=False)
class DeletionPosterior:
    """A linear posterior at G nodes of sigma, from which single records can be removed.

    posterior: posterior given all records
    log_weight: log weight of each node, (G,)
    variance: sigma^2 at each node, (G,)
    mean, spread: mean and variance of delta at each node, (G, K)
    log_evidence: log p(y | x) up to a constant that does not depend on the records, n fixed
    """

    posterior: LinearPosterior
    log_weight: Floats
    variance: Floats
    mean: Floats
    spread: Floats
    log_evidence: float

    @classmethod
    def from_records(
        cls, posterior: LinearPosterior, x: Floats, y: Floats, weights: Floats | None = None
    ) -> DeletionPosterior:
        """Build from records (n, K) and (n,), of weights (n,) above 0.

        The nodes cover all sigma that the records leave possible, or would with one of them changed to another's
        response.
        """
        weights = np.ones(len(y)) if weights is None else weights
        root = np.sqrt(weights)
        direct = np.asarray(np.linalg.qr(x * root[:, None])[0])
        return cls._with_nodes_for(
            posterior,
            _ExtremeRecords.from_records(
                _central_coefficients(posterior), x, y, weights, direct, direct.T @ (y * root)
            ),
        )

    @classmethod
    def from_blocks(cls, posterior: LinearPosterior, blocks: Iterable[Block], triangle: Floats) -> DeletionPosterior:
        """Build as ``from_records``, from records block by block, given R (K + 1, K + 1) with QR = [X y].

        Rows of X and y are multiplied by the roots of their weights.
        """
        of_x, on_direct = triangle[:-1, :-1], triangle[:-1, -1]
        scales, middle = column_scales(of_x), _central_coefficients(posterior)
        inverse = np.linalg.pinv(of_x / scales) / scales[:, None]
        found: _ExtremeRecords | None = None
        for x, y, weights in blocks:
            one = _ExtremeRecords.from_records(
                middle, x, y, weights, (x * np.sqrt(weights)[:, None]) @ inverse, on_direct
            )
            found = one if found is None else found.merge_extremes(one)
        assert found is not None
        return cls._with_nodes_for(posterior, found)

    @classmethod
    def _with_nodes_for(cls, posterior: LinearPosterior, farthest: _ExtremeRecords) -> DeletionPosterior:
        """Build the posterior at the nodes of sigma that it needs when any record is changed."""
        middle = _median_log_sigma(posterior)
        low, high = middle - _SPAN, middle + _SPAN
        for _ in range(3):
            points = np.linspace(low, high, _FINE)
            density, variance = posterior.log_sigma_density(points), (posterior.unit * np.exp(points)) ** 2
            mean, spread = posterior.delta_given_sigma(np.exp(points))
            one = cls(posterior, density, variance, mean, spread, 0.0)
            possible = [
                density,
                *one._leave_each_out(farthest.x, farthest.y, farthest.weights)[0],
                density + _log_normal_density(farthest.highest - farthest.lowest + farthest.residual, variance),
            ]
            inside = np.flatnonzero(np.max([one - one.max() for one in possible], axis=0) > -_DROP)
            low, high = points[max(inside[0] - 1, 0)], points[min(inside[-1] + 1, _FINE - 1)]
        # A third of the standard deviation of log sigma, about.
        step = 0.3 / np.sqrt(2 * max(posterior.n - 1.0, 1.0))
        nodes = np.linspace(low, high, int(np.clip(np.ceil((high - low) / step), 40, 400)) + 1)
        sigma = np.exp(nodes)
        mean, spread = posterior.delta_given_sigma(sigma)
        log_weight = posterior.log_sigma_density(nodes) + np.log(nodes[1] - nodes[0])
        total = float(logsumexp(log_weight))
        evidence = total + float(np.linalg.slogdet(posterior.back)[1]) - posterior.n * float(np.log(posterior.unit))
        return cls(posterior, log_weight - total, (posterior.unit * sigma) ** 2, mean, spread, evidence)

    def log_ratios(
        self, x_own: Floats, y_own: Floats, x: Floats, y: Floats, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return log ratios for t records that are each replaced by g others.

        The records are (t, K) and (t,) of weights (t,) above 0, the others (t, g or 1, K) and (t, g). Returns log
        p(D_y) - log p(D), (t, g), and of weight 1 log p(y | x, D_-i), (t, g).
        """
        weights = np.ones(len(y)) if weights is None else weights
        found = [np.empty(y.shape), np.empty(y.shape)]
        size = max(1, _AT_A_TIME // (y.shape[1] * len(self.variance)))
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            found[0][rows], found[1][rows] = self._log_ratios_of_block(
                x_own[rows], y_own[rows], x[rows], y[rows], weights[rows]
            )
        return found[0], found[1]

    def _log_ratios_of_block(
        self, x_own: Floats, y_own: Floats, x: Floats, y: Floats, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Return the log ratios of some records, as ``log_ratios`` does."""
        of = self.posterior
        own, other = x_own @ of.back, x @ of.back
        weight, residual, left = self._leave_each_out(x_own, y_own, weights)
        noise = self.variance / weights[:, None]
        total = logsumexp(weight, axis=1)
        # s2 - a is a difference of two numbers that are nearly equal here, and no digit of it is left.
        if ((weight > total[:, None] - 30) & (left < _SMALLEST * noise)).any():
            raise NotComputable(
                "a record alone determines a coefficient, whose prior is too wide to tell what the others say of it; use a smaller "
                "prior_sd"
            )
        c = np.einsum("tgk,tnk->tgn", other, own[:, None, :] * self.spread)
        mean = (x @ of.centre)[..., None] + other @ self.mean.T - c * (residual / left)[:, None, :]
        variance = noise[:, None, :] + other**2 @ self.spread.T + c**2 / left[:, None, :]
        changed = logsumexp(weight[:, None, :] + _log_normal_density(y[..., None] - mean, variance), axis=2)
        return changed, changed - total[:, None]

    def _leave_each_out(self, x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return, for t records, the weights of sigma without each, their residuals, and s2 / w - a, (t, G) each.

        The weights of sigma are up to a factor that a record of the same weight brings back.
        """
        of = self.posterior
        own = x @ of.back
        residual = (y - x @ of.centre)[:, None] - own @ self.mean.T
        noise = self.variance / weights[:, None]
        left = np.maximum(noise - own**2 @ self.spread.T, 1e-16 * noise)
        return (
            self.log_weight - _log_normal_density(residual * noise / left, noise**2 / left),
            residual,
            left,
        )


def _log_normal_density(distance: Floats | float, variance: Floats) -> Floats:
    return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + distance**2 / variance))


def _median_log_sigma(posterior: LinearPosterior) -> float:
    """Return the posterior median of log(sigma / unit)."""
    return float(np.median(posterior.sigma_grid()[0]))


def _central_coefficients(posterior: LinearPosterior) -> Floats:
    """Return the mean coefficients at the median sigma, (K,)."""
    delta = posterior.delta_given_sigma(np.exp(np.array([_median_log_sigma(posterior)])))[0][0]
    return np.asarray(posterior.centre + posterior.back @ delta)


@dataclass(frozen=True, eq=False)
class _ExtremeRecords:
    """Records and responses that bound sigma when one of some records is changed.

    x, y, weights: the record with the largest residual, and the one that a fit without it misses by most, (2, K), (2,),
    (2,)
    sizes: how far these two are off, (2,)
    residual: largest residual
    lowest, highest: lowest and highest response
    """

    x: Floats
    y: Floats
    weights: Floats
    sizes: Floats
    residual: float
    lowest: float
    highest: float

    @classmethod
    def from_records(
        cls, coefficients: Floats, x: Floats, y: Floats, weights: Floats, direct: Floats, on_direct: Floats
    ) -> _ExtremeRecords:
        """Find the extremes among records of ``x`` (n, K), whose fit has these coefficients (K,).

        Rows of ``direct`` (n, K) are the records in an orthonormal basis of all records, ``on_direct`` (K,) the
        responses on that basis.
        """
        root = np.sqrt(weights)
        residual = y - x @ coefficients
        by_itself = y * root - direct @ on_direct
        left = np.maximum(1 - (direct**2).sum(axis=1), 1e-12)
        sizes = np.abs(residual * root), by_itself**2 / left
        worst = [int(np.argmax(one)) for one in sizes]
        largest = np.array([one[i] for one, i in zip(sizes, worst, strict=True)])
        ends = float(y.min()), float(y.max())
        return cls(x[worst], y[worst], weights[worst], largest, float(np.abs(residual).max()), *ends)

    def merge_extremes(self, other: _ExtremeRecords) -> _ExtremeRecords:
        """Return the extremes of two sets of records together."""
        further = other.sizes > self.sizes
        return _ExtremeRecords(
            np.where(further[:, None], other.x, self.x),
            np.where(further, other.y, self.y),
            np.where(further, other.weights, self.weights),
            np.maximum(self.sizes, other.sizes),
            max(self.residual, other.residual),
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
        )
