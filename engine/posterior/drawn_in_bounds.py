"""A linear posterior given a release of responses that were drawn from it within bounds, or as whole numbers.

Given records without bounds, D, and such a release Z, theta = (delta, log(sigma / unit)) of ``LinearPosterior`` has no
closed posterior; its density has all derivatives.
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
class BoundedResponses:
    """Responses (k,) that were drawn within bounds, each known to lie in an interval.

    low, high: interval of each response; equal where it is known exactly, (k,)
    lower, upper: bounds of the draw
    """

    low: Floats
    high: Floats
    lower: float
    upper: float

    def select_rows(self, rows: slice) -> BoundedResponses:
        return BoundedResponses(self.low[rows], self.high[rows], self.lower, self.upper)

    def log_density(self, mean: Floats, sigma: Floats) -> Floats:
        """Return the log densities of the responses given means (..., k) and sigmas (..., 1), (..., k)."""
        # A record drawn in [lower, upper] has the density N(z; mu, sigma^2) / P(lower <= N(mu, sigma^2) <= upper), and
        # one that is rounded the probability of its cell in place of the numerator.
        exact = self.low == self.high
        middle = (self.low - mean) / sigma
        density = -0.5 * middle**2 - np.log(sigma) - _LOG_ROOT
        cell = (
            density
            if exact.all()
            else np.where(exact, density, _log_interval_probability(middle, (self.high - mean) / sigma))
        )
        return np.asarray(cell - self.log_bounds_probability(mean, sigma))

    def log_bounds_probability(self, mean: Floats, sigma: Floats) -> Floats:
        """Return the log probability of the bounds, in the shape of ``mean``."""
        if np.isinf(self.lower) and np.isinf(self.upper):
            return np.zeros_like(mean)
        return _log_interval_probability((self.lower - mean) / sigma, (self.upper - mean) / sigma)

    def log_density_derivatives(self, mean: Floats, sigma: float) -> tuple[float, Floats, Floats]:
        """Return the sum of the log densities, and its first (2, k) and second (3, k) derivatives.

        They are by (mean, log sigma): first m, s, then mm, ms, ss.
        """
        exact = self.low == self.high
        z = (self.low - mean) / sigma
        ones = np.ones_like(z)
        first = np.stack([z / sigma, z * z - 1])
        second = np.stack([-ones / sigma**2, -2 * z / sigma, -2 * z * z])
        if not exact.all():
            first_of_cell, second_of_cell = _log_interval_derivatives(z, (self.high - mean) / sigma, sigma)
            first, second = np.where(exact, first, first_of_cell), np.where(exact, second, second_of_cell)
        inside = _log_interval_derivatives((self.lower - mean) / sigma, (self.upper - mean) / sigma, sigma)
        value = float(self.log_density(mean, np.asarray(sigma)).sum())
        return value, first - inside[0], second - inside[1]


def _log_interval_probability(a: Floats, b: Floats) -> Floats:
    """Return log(Phi(b) - Phi(a)), a <= b."""
    # By the tail in which both are small: a difference of two numbers near 1 has no digits left.
    turned = a + b > 0
    low, high = np.where(turned, -b, a), np.where(turned, -a, b)
    top = log_ndtr(high)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(-np.expm1(np.minimum(log_ndtr(low) - top, 0.0))))


def _log_interval_derivatives(a: Floats, b: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Return first and second derivatives of log(Phi(b) - Phi(a)) by (mean, log sigma).

    a = (low - mean) / sigma, and b likewise.
    """
    log_share = _log_interval_probability(a, b)
    powers = [_scaled_density_power(a, k, log_share) - _scaled_density_power(b, k, log_share) for k in range(4)]
    slope = np.stack([powers[0] / sigma, powers[1]])
    bend = np.stack(
        [
            powers[1] / sigma**2 - slope[0] ** 2,
            -slope[0] + powers[2] / sigma - slope[0] * slope[1],
            powers[3] - slope[1] - slope[1] ** 2,
        ]
    )
    return slope, bend


def _scaled_density_power(a: Floats, k: int, log_share: Floats) -> Floats:
    """Return a^k phi(a) / share, and 0 for an infinite a."""
    finite = np.clip(np.where(np.isfinite(a), a, 0.0), -1e4, 1e4)
    found = finite**k * np.exp(-0.5 * finite**2 - _LOG_ROOT - log_share)
    return np.asarray(np.where(np.isfinite(a), found, 0.0))


@dataclass(frozen=True, eq=False)
class PosteriorGivenRelease:
    """The posterior of (delta, log(sigma / unit)), (K + 1,), given records and a release.

    posterior: posterior given the records
    rows: designs of the k released records
    drawn: their responses
    """

    posterior: LinearPosterior
    rows: RegressionRows
    drawn: BoundedResponses

    @property
    def names(self) -> tuple[str, ...]:
        return (*(f"delta[{k}]" for k in range(len(self.posterior.u))), "log_sigma")

    def start(self) -> Floats:
        """Return the centre of the posterior without the release, (K + 1,)."""
        middle = float(np.median(self.posterior.sigma_grid()[0]))
        return np.append(self.posterior.delta_given_sigma(np.exp(np.array([middle])))[0][0], middle)

    def derivatives(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Return log density, gradient (K + 1,) and Hessian (K + 1, K + 1)."""
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
            own, first, second = self.drawn.select_rows(rows).log_density_derivatives(mean, of.unit * float(np.exp(s)))
            value += own
            gradient += np.append(first[0] @ f, first[1].sum())
            hessian[:-1, -1] += second[1] @ f
            hessian[:-1, :-1] += f.T @ (second[0][:, None] * f)
            hessian[-1, -1] += second[2].sum()
        hessian[-1, :-1] = hessian[:-1, -1]
        return value + float(self._log_posterior(theta[None])[0]), gradient, hessian

    def density_around(self, centre: Floats, covariance: Floats) -> Callable[[Floats], Floats]:
        """Return a function for the log density of many theta (T, K + 1)."""

        def log_density(thetas: Floats) -> Floats:
            """Return the log density of thetas (T, K + 1), (T,)."""
            found = self._log_posterior(thetas)
            for rows, x, _ in self.rows.blocks():
                drawn, size = self.drawn.select_rows(rows), max(1, _AT_A_TIME // len(x))
                for start in range(0, len(thetas), size):
                    some = slice(start, start + size)
                    found[some] += drawn.log_density(*self.means_and_sigmas(thetas[some], x)).sum(axis=1)
            return found

        return log_density

    def means_and_sigmas(self, thetas: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return means (T, r) of records of design (r, K), and sigmas (T, 1)."""
        of = self.posterior
        return x @ of.centre + thetas[:, :-1] @ (x @ of.back).T, of.unit * np.exp(thetas[:, -1:])

    def _log_posterior(self, thetas: Floats) -> Floats:
        """Return the log density given the records alone, (T,), up to a constant."""
        of, delta, s = self.posterior, thetas[:, :-1], thetas[:, -1]
        misfit = of.rss + ((of.u - of.cosine * delta) ** 2).sum(axis=1)
        prior = -0.5 * ((of.sine * delta) ** 2).sum(axis=1) + s - np.log1p(np.exp(2 * s) / of.sigma_scale**2)
        return np.asarray(-of.n * s - 0.5 * misfit * np.exp(-2 * s) + prior)
