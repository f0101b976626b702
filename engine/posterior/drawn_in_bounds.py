"""A linear posterior together with responses that were drawn from it within bounds, or as whole numbers.

A record drawn in [low, high] has the density N(z; mu, sigma^2) / P(low <= N(mu, sigma^2) <= high), and one that is rounded the probability of
its cell in the numerator's place. Given records without bounds, D, and such a release Z, theta = (delta, log(sigma / unit)) of
``LinearPosterior`` has no closed posterior; its density has all derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from ..data.arrays import Floats
from ..design.regression_rows import RegressionRows
from .bayesian_linear_regression import LinearPosterior

_AT_A_TIME = 1_000_000
_LOG_ROOT = 0.5 * float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Drawn:
    """Responses (k,) that were drawn: each is known to lie in [``low``, ``high``], both (k,), which are equal where it is known exactly.

    ``least`` and ``most`` are the bounds.
    """

    low: Floats
    high: Floats
    least: float
    most: float

    def within(self, rows: slice) -> Drawn:
        return Drawn(self.low[rows], self.high[rows], self.least, self.most)

    def log_density(self, mean: Floats, sigma: Floats) -> Floats:
        """Given means (..., k) and sigmas (..., 1)."""
        exact = self.low == self.high
        middle = (self.low - mean) / sigma
        density = -0.5 * middle**2 - np.log(sigma) - _LOG_ROOT
        cell = density if exact.all() else np.where(exact, density, _log_share(middle, (self.high - mean) / sigma))
        return np.asarray(cell - self.log_inside(mean, sigma))

    def log_inside(self, mean: Floats, sigma: Floats) -> Floats:
        """The logarithm of the probability of the bounds."""
        if np.isinf(self.least) and np.isinf(self.most):
            return np.zeros_like(mean)
        return _log_share((self.least - mean) / sigma, (self.most - mean) / sigma)

    def derivatives(self, mean: Floats, sigma: float) -> tuple[float, Floats, Floats]:
        """The sum of the log densities, and by (mean, log sigma) the first (2, k) and second (3, k) derivatives: mm, ms, ss."""
        exact = self.low == self.high
        z = (self.low - mean) / sigma
        ones = np.ones_like(z)
        first = np.stack([z / sigma, z * z - 1])
        second = np.stack([-ones / sigma**2, -2 * z / sigma, -2 * z * z])
        if not exact.all():
            first_of_cell, second_of_cell = _share_derivatives(z, (self.high - mean) / sigma, sigma)
            first, second = np.where(exact, first, first_of_cell), np.where(exact, second, second_of_cell)
        inside = _share_derivatives((self.least - mean) / sigma, (self.most - mean) / sigma, sigma)
        value = float(self.log_density(mean, np.asarray(sigma)).sum())
        return value, first - inside[0], second - inside[1]


def _log_share(a: Floats, b: Floats) -> Floats:
    """log(Phi(b) - Phi(a)), a <= b, by the tail in which both are small."""
    turned = a + b > 0
    low, high = np.where(turned, -b, a), np.where(turned, -a, b)
    top = log_ndtr(high)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(-np.expm1(np.minimum(log_ndtr(low) - top, 0.0))))


def _share_derivatives(a: Floats, b: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Of log(Phi(b) - Phi(a)) with a = (low - mean) / sigma and b so, by (mean, log sigma)."""
    log_share = _log_share(a, b)
    powers = [_power(a, k, log_share) - _power(b, k, log_share) for k in range(4)]
    slope = np.stack([powers[0] / sigma, powers[1]])
    bend = np.stack(
        [
            powers[1] / sigma**2 - slope[0] ** 2,
            -slope[0] + powers[2] / sigma - slope[0] * slope[1],
            powers[3] - slope[1] - slope[1] ** 2,
        ]
    )
    return slope, bend


def _power(a: Floats, k: int, log_share: Floats) -> Floats:
    """a^k phi(a) / share; 0 at infinity."""
    finite = np.clip(np.where(np.isfinite(a), a, 0.0), -1e4, 1e4)
    found = finite**k * np.exp(-0.5 * finite**2 - _LOG_ROOT - log_share)
    return np.asarray(np.where(np.isfinite(a), found, 0.0))


@dataclass(frozen=True, eq=False)
class WithDrawn:
    """The posterior of (delta, log(sigma / unit)), (K + 1,), given the records of ``posterior`` and a release of k records with these ``rows``."""

    posterior: LinearPosterior
    rows: RegressionRows
    drawn: Drawn

    @property
    def names(self) -> tuple[str, ...]:
        return (*(f"delta[{k}]" for k in range(len(self.posterior.u))), "log_sigma")

    def start(self) -> Floats:
        """The posterior's centre without the release."""
        middle = float(np.median(self.posterior.grid()[0]))
        return np.append(self.posterior.given(np.exp(np.array([middle])))[0][0], middle)

    def derivatives(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Log density, gradient (K + 1,) and Hessian (K + 1, K + 1)."""
        of, delta, s = self.posterior, theta[:-1], float(theta[-1])
        slack, inverse, scale = of.u - of.cosine * delta, float(np.exp(-2 * s)), of.sigma_scale**2
        misfit = of.rss + float(slack @ slack)
        square = float(np.exp(2 * s))
        gradient = np.append(
            of.cosine * slack * inverse - of.sine**2 * delta,
            -of.n + misfit * inverse + 1 - 2 * square / (scale + square),
        )
        hessian = np.diag(
            np.append(
                -(of.cosine**2) * inverse - of.sine**2,
                -2 * misfit * inverse - 4 * scale * square / (scale + square) ** 2,
            )
        )
        hessian[:-1, -1] = -2 * of.cosine * slack * inverse
        value = 0.0
        for rows, x, _ in self.rows.blocks():
            f = x @ of.back
            mean = x @ of.centre + f @ delta
            own, first, second = self.drawn.within(rows).derivatives(mean, of.unit * float(np.exp(s)))
            value += own
            gradient += np.append(first[0] @ f, first[1].sum())
            hessian[:-1, -1] += second[1] @ f
            hessian[:-1, :-1] += f.T @ (second[0][:, None] * f)
            hessian[-1, -1] += second[2].sum()
        hessian[-1, :-1] = hessian[:-1, -1]
        return value + float(self._log_posterior(theta[None])[0]), gradient, hessian

    def near(self, centre: Floats, covariance: Floats) -> Callable[[Floats], Floats]:
        """The log density of many theta (T, K + 1)."""

        def log_density(thetas: Floats) -> Floats:
            found = self._log_posterior(thetas)
            for rows, x, _ in self.rows.blocks():
                drawn, size = self.drawn.within(rows), max(1, _AT_A_TIME // len(x))
                for start in range(0, len(thetas), size):
                    some = slice(start, start + size)
                    found[some] += drawn.log_density(*self.moments(thetas[some], x)).sum(axis=1)
            return found

        return log_density

    def moments(self, thetas: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Means (T, r) of records of design (r, K), and sigmas (T, 1)."""
        of = self.posterior
        return x @ of.centre + thetas[:, :-1] @ (x @ of.back).T, of.unit * np.exp(thetas[:, -1:])

    def _log_posterior(self, thetas: Floats) -> Floats:
        """Given the records alone, (T,), up to a constant."""
        of, delta, s = self.posterior, thetas[:, :-1], thetas[:, -1]
        misfit = of.rss + ((of.u - of.cosine * delta) ** 2).sum(axis=1)
        prior = -0.5 * ((of.sine * delta) ** 2).sum(axis=1) + s - np.log1p(np.exp(2 * s) / of.sigma_scale**2)
        return np.asarray(-of.n * s - 0.5 * misfit * np.exp(-2 * s) + prior)
