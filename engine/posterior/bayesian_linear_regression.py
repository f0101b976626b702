"""Bayesian linear regression with independent normal coefficients and a half-Cauchy standard deviation.

    y | gamma, sigma ~ Normal(X gamma, sigma^2 I);  gamma_k ~ Normal(0, s) independent;  sigma ~ half-t with 1 df and
    scale a

Guo & Hu §2.2, eq. 6-8, where s = 2 and a = 1. Draws are exact and independent: with the coefficients integrated out, a
density of sigma alone is left. X enters through X = Q1 T, the first half of the decomposition [X; I/s] = [Q1; Q2] T,
and the cosines and sines Q1 = U C V', Q2'Q2 = V S^2 V'. With delta = V' T gamma the posterior precision given sigma is
diagonal, w = C^2 / sigma^2 + S^2.

Those priors are mild for variables whose sizes are near 1. The ``_scaled`` constructors put them on (y - mean(y)) /
sd(y) and (x_j - mean(x_j)) / sd(x_j) instead (Gelman, Jakulin, Pittau and Su 2008, section 2), so that units and
origins do not matter. A record of weight w has its likelihood to the power w: rows of y and X times root(w), and the
sum of the weights in place of n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from ..data.arrays import Floats
from ..data.blocks import row_blocks

_DROP = 45.0
_POINTS = 2001
_SHARED = 64
"""Arrays of a block of draws that are held at a time: few enough to stay in the processor's cache."""


@dataclass(frozen=True)
class PosteriorMoments:
    """Exact posterior means and standard deviations.

    mean, sd: of the coefficients, (K,)
    sigma_mean, sigma_sd: of sigma
    """

    mean: Floats
    sd: Floats
    sigma_mean: float
    sigma_sd: float


@dataclass(frozen=True)
class Standardisation:
    """Means and standard deviations by which variables are standardised.

    response_mean, response_sd: of the response
    column_means, column_sds: of the columns of the design, 0 and 1 for the intercept, (K,)
    """

    response_mean: float
    response_sd: float
    column_means: Floats
    column_sds: Floats

    @classmethod
    def from_records(cls, y: Floats, x: Floats, weights: Floats | None = None) -> Standardisation:
        """Compute from responses (n,) and design (n, K), by the records' weights.

        Raises ValueError when y or a column does not vary.
        """
        middle, unit = map(float, _mean_and_sd(y, weights))
        of_means, of_sds = _mean_and_sd(x[:, 1:], weights)
        return cls._require_varying(middle, unit, np.append(0.0, of_means), np.append(1.0, of_sds))

    @classmethod
    def from_triangle(cls, triangle: Floats, n: float) -> Standardisation:
        """Compute as ``from_records``, given R (K + 1, K + 1) with QR = [X y].

        Rows of X and y are multiplied by the roots of their weights, which sum to ``n``.
        """
        # The first column is the intercept, so the first row of R holds sums and the others deviations from means.
        means, sds = triangle[0] / triangle[0, 0], np.linalg.norm(triangle[1:], axis=0) / np.sqrt(n)
        means[0], sds[0] = 0.0, 1.0
        return cls._require_varying(float(means[-1]), float(sds[-1]), means[:-1], sds[:-1])

    @classmethod
    def _require_varying(cls, middle: float, unit: float, means: Floats, sds: Floats) -> Standardisation:
        """Build the standardisation. Raises ValueError if the response or a column does not vary."""
        if not unit > 1e-12 * abs(middle) or not np.all(sds > 0):
            raise ValueError("the response is a linear function of the predictors, without error")
        return cls(middle, unit, means, sds)


@dataclass(frozen=True)
class LinearPosterior:
    """The posterior of (gamma, sigma) given records; build it with ``from_records``.

    n: number of records, or sum of their weights
    rss: sum of squared residuals of least squares
    cosine, sine, u: C, S and U'y of the module's text, (K,)
    back: matrix that takes delta to gamma, (K, K)
    sigma_scale: scale of sigma's prior, in ``unit``
    centre: gamma at delta = 0, (K,)
    unit: unit of sigma
    prior_sds: prior standard deviations of the coefficients, (K,)
    turn: rotation of the standard normals that delta is drawn with, (K, K)
    """

    n: float
    rss: float
    cosine: Floats
    sine: Floats
    u: Floats
    back: Floats
    sigma_scale: float
    centre: Floats
    unit: float
    prior_sds: Floats
    turn: Floats

    @classmethod
    def from_records(
        cls,
        y: Floats,
        x: Floats,
        prior_sd: float = 2.0,
        sigma_scale: float = 1.0,
        *,
        weights: Floats | None = None,
        symmetric: bool = False,
    ) -> LinearPosterior:
        """Compute the posterior given responses y (n,) and design x (n, K), n > K.

        ``weights`` (n,) are above 0, and their sum is above K. ``symmetric`` draws T gamma by the symmetric root of its
        covariance.

        Raises:
            ValueError: when there are no more records than coefficients, or y is a linear function of x.
        """
        n: float = len(x)
        if weights is not None:
            n, root = float(weights.sum()), np.sqrt(weights)
            y, x = y * root, x * root[:, None]
        require_more_records(n, *x.shape, weighted=weights is not None)
        triangle = np.asarray(np.linalg.qr(np.column_stack([x, y]), mode="r"))
        return cls.from_triangle(triangle, n, prior_sd, sigma_scale, symmetric=symmetric)

    @classmethod
    def from_triangle(
        cls, triangle: Floats, n: float, prior_sd: float = 2.0, sigma_scale: float = 1.0, *, symmetric: bool = False
    ) -> LinearPosterior:
        """Compute as ``from_records``, given R (K + 1, K + 1) with QR = [X y].

        Rows of X and y are multiplied by the roots of their weights, which sum to ``n``.

        Raises:
            ValueError: when y is a linear function of x.
        """
        k = triangle.shape[1] - 1
        z, rss = triangle[:k, k], float(triangle[k, k] ** 2)
        if rss <= 1e-24 * float(triangle[:, k] @ triangle[:, k]):
            raise ValueError("the response is a linear function of the predictors, without error")
        # This decomposition does not depend on the scale of the columns, unlike X'X.
        q, t = np.linalg.qr(np.vstack([triangle[:k, :k], np.eye(k) / prior_sd]))
        u, cosine, vt = np.linalg.svd(q[:k])
        sine = np.linalg.norm(q[k:] @ vt.T, axis=0)
        # Signs and order of U and V are arbitrary and may differ between machines; the symmetric root does not depend
        # on them.
        back, turn = np.linalg.solve(t, vt.T), vt if symmetric else np.eye(k)
        return cls(n, rss, cosine, sine, u.T @ z, back, sigma_scale, np.zeros(k), 1.0, np.full(k, prior_sd), turn)

    @classmethod
    def from_records_scaled(
        cls,
        y: Floats,
        x: Floats,
        prior_sd: float = 2.0,
        sigma_scale: float = 1.0,
        by: Standardisation | None = None,
        *,
        weights: Floats | None = None,
    ) -> LinearPosterior:
        """Compute the posterior with priors on the standardised variables; the first column of x is the intercept.

        ``by`` is the standardisation where that is not of these records, by their weights.

        Raises:
            ValueError: as ``from_records``, and when y or a column does not vary.
        """
        by = Standardisation.from_records(y, x, weights) if by is None else by
        standard = (y - by.response_mean) / by.response_sd, (x - by.column_means) / by.column_sds
        return cls.from_records(*standard, prior_sd, sigma_scale, weights=weights, symmetric=True)._in_given_units(
            by, prior_sd
        )

    @classmethod
    def from_triangle_scaled(
        cls,
        triangle: Floats,
        n: float,
        prior_sd: float = 2.0,
        sigma_scale: float = 1.0,
        by: Standardisation | None = None,
    ) -> LinearPosterior:
        """Compute as ``from_records_scaled``, given R (K + 1, K + 1) with QR = [X y] as in ``from_triangle``.

        Raises:
            ValueError: as ``from_triangle``, and when y or a column does not vary.
        """
        own = by is None
        by = Standardisation.from_triangle(triangle, n) if by is None else by
        units = np.append(by.column_sds, by.response_sd)
        standard = triangle / units
        middle = np.append(by.column_means, by.response_mean)[1:]
        # The first row holds sums over all records: variables standardised by these records sum to 0, by others to the
        # differences of their means.
        standard[0, 1:] = 0.0 if own else (triangle[0, 1:] - triangle[0, 0] * middle) / units[1:]
        return cls.from_triangle(standard, n, prior_sd, sigma_scale, symmetric=True)._in_given_units(by, prior_sd)

    def _in_given_units(self, by: Standardisation, prior_sd: float) -> LinearPosterior:
        """Return the posterior of standardised variables in their original units."""
        # gamma_j ~ Normal(0, s sd(y) / sd(x_j)), gamma_0 + sum_j gamma_j mean(x_j) ~ Normal(mean(y), s sd(y)), sigma
        # has scale a sd(y).
        given = np.diag(by.response_sd / by.column_sds)
        given[0] -= by.response_sd * by.column_means / by.column_sds
        centre = np.append(by.response_mean, np.zeros(by.column_sds.size - 1))
        prior_sds = prior_sd * np.linalg.norm(given, axis=1)
        return replace(self, back=given @ self.back, centre=centre, unit=by.response_sd, prior_sds=prior_sds)

    def log_sigma_density(self, log_sigma: Floats) -> Floats:
        """Return the log marginal posterior density of log(sigma / unit) at the points (G,), up to a constant: (G,)."""
        variance = np.exp(2 * log_sigma)[:, None]
        # log p(y | sigma) = -n log sigma - sum(log w) / 2 - (rss + sum(u^2 S^2 sigma^2 / (C^2 + S^2 sigma^2))) / (2
        # sigma^2), up to a constant, with u = U'y and rss the residual sum of squares.
        shrunk = self.cosine**2 + self.sine**2 * variance
        misfit = self.rss / variance[:, 0] + np.sum(self.u**2 * self.sine**2 / shrunk, axis=1)
        likelihood = -self.n * log_sigma - 0.5 * np.sum(np.log(shrunk / variance), axis=1) - 0.5 * misfit
        return np.asarray(likelihood + log_sigma - np.log1p(variance[:, 0] / self.sigma_scale**2))

    def sigma_grid(self) -> tuple[Floats, Floats]:
        """Return points of log(sigma / unit), (G,), and the posterior cdf at them, (G,).

        They cover all but a negligible part of the posterior.
        """
        total = self.rss + float(self.u @ self.u)
        low = 0.5 * np.log(self.rss / self.n) - 3
        high = max(0.5 * np.log(total / self.n), np.log(self.sigma_scale)) + 3 + _DROP / (self.n - len(self.u))
        # From every sigma that the data could support, narrowed to where the density is within exp(-45) of its maximum,
        # until that is at least half of the points.
        for _ in range(20):
            points = np.linspace(low, high, _POINTS)
            log_density = self.log_sigma_density(points)
            inside = np.flatnonzero(log_density > log_density.max() - _DROP)
            first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, _POINTS - 1)
            if last - first > _POINTS // 2:
                break
            low, high = points[first], points[last]
        density = np.exp(log_density - log_density.max())
        cdf = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
        return points, cdf / cdf[-1]

    def draw_parameters(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw independently from the posterior: coefficients (draws, K) and sigma (draws,)."""
        points, cdf = self.sigma_grid()
        sigma = np.exp(np.interp(rng.random(draws), cdf, points))
        mean, variance = self.delta_given_sigma(sigma)
        delta = mean + np.sqrt(variance) * (rng.standard_normal(mean.shape) @ self.turn.T)
        return self.centre + delta @ self.back.T, self.unit * sigma

    def posterior_moments(self) -> PosteriorMoments:
        """Return posterior means and standard deviations, by the law of total variance over the grid of sigma."""
        points, cdf = self.sigma_grid()
        middle, weight = np.exp(0.5 * (points[1:] + points[:-1])), np.diff(cdf)
        mean, variance = self.delta_given_sigma(middle)
        centre = weight @ mean
        spread = (mean - centre).T @ ((mean - centre) * weight[:, None]) + np.diag(weight @ variance)
        sd = np.sqrt(np.einsum("ij,jk,ik->i", self.back, spread, self.back))
        sigma_mean = float(weight @ middle)
        sigma_sd = float(np.sqrt(weight @ (middle - sigma_mean) ** 2))
        return PosteriorMoments(self.centre + self.back @ centre, sd, self.unit * sigma_mean, self.unit * sigma_sd)

    def least_squares(self) -> tuple[Floats, Floats]:
        """Return the coefficients without a prior and their standard errors, (K,) each."""
        mean = self.centre + self.back @ (self.u / self.cosine)
        variance = self.rss / (self.n - self.u.size)
        return mean, np.sqrt(variance * np.sum((self.back / self.cosine) ** 2, axis=1))

    def delta_given_sigma(self, sigma: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of delta given each sigma / unit (G,), (G, K) each."""
        square = (sigma**2)[:, None]
        shrunk = self.cosine**2 + self.sine**2 * square
        return self.cosine * self.u / shrunk, square / shrunk


def require_more_records(n: float, rows: int, coefficients: int, *, weighted: bool) -> None:
    """Raise ValueError if ``rows`` records, whose weights sum to ``n``, are not more than the coefficients."""
    if min(n, rows) <= coefficients:
        weighing = ", by their weights," if weighted else ""
        raise ValueError(
            f"{n:g} records{weighing} cannot determine {coefficients} coefficients and a standard deviation"
        )


def _mean_and_sd(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of values (n,), or of each column (n, k), by ``weights`` (n,) if given."""
    if weights is None:
        return np.asarray(values.mean(axis=0)), np.asarray(values.std(axis=0))
    means = np.average(values, axis=0, weights=weights)
    return np.asarray(means), np.sqrt(np.average((values - means) ** 2, axis=0, weights=weights))


def draw_truncated_normal(
    mean: Floats, sd: Floats | float, lower: float, upper: float, rng: np.random.Generator
) -> Floats:
    """Draw one value from each Normal(mean, sd^2) restricted to [lower, upper], (n,); either end may be infinite."""
    found = np.empty(len(mean))
    for rows in row_blocks(len(mean), _SHARED):
        own = sd if np.ndim(sd) == 0 else np.asarray(sd)[rows]
        found[rows] = _truncated_normal_quantile(mean[rows], own, lower, upper, rng.random(rows.stop - rows.start))
    return found


def _truncated_normal_quantile(mean: Floats, sd: Floats | float, lower: float, upper: float, u: Floats) -> Floats:
    """Return the value below which a share ``u`` (n,) of the probability between the bounds lies, (n,)."""
    a, b = (lower - mean) / sd, (upper - mean) / sd
    # An interval above the mean is reflected below it, where the logarithm of the cdf keeps its accuracy however far
    # out it lies.
    above = a > 0
    low, high = np.where(above, -b, a), np.where(above, -a, b)
    top = log_ndtr(high)
    z = ndtri_exp(top + np.log(u + (1 - u) * np.exp(log_ndtr(low) - top)))
    return np.asarray(np.clip(mean + sd * np.where(above, -z, z), lower, upper))
