"""The posterior of a zero-inflated truncated Poisson regression with a normal random effect.

    y = 0 with probability p, else Poisson(exp(g)) truncated to 0..b,   g = x alpha + eps,  eps ~ N(0, tau)
    logit p = x beta;   alpha, beta ~ N(0, 1);   a Gamma prior on 1 / tau^2 or on tau       (Guo and Hu, eq. 1-5)

Every record's eps is integrated out, so the posterior is smooth in theta = (alpha, beta, log tau), 2K + 1 numbers, and
records with the same x and y are one term with a weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, gammaln

from ..errors import BadInput
from .local_density import LocalDensity
from .mass_table import log_masses, mass_derivatives
from .rate_quadrature import Derivatives

__all__ = ["GammaPrior", "TauScale", "ZeroInflatedPoisson"]

Floats = NDArray[np.float64]
TauScale = Literal["precision", "standard_deviation"]

LOG_TAU_RANGE = (-10.0, 3.0)  # where the posterior is kept: rates that vary by a factor of exp(20) are no data


_TINY = 1e-290  # what is smaller has lost digits


@dataclass(frozen=True, slots=True)
class GammaPrior:
    """Gamma(shape, rate) on 1 / tau^2 ("precision") or on tau ("standard_deviation"), as a density of log tau."""

    on: TauScale = "precision"
    shape: float = 0.001
    rate: float = 0.001

    @property
    def power(self) -> int:
        """The variable with the Gamma distribution is tau to this power."""
        return -2 if self.on == "precision" else 1

    def log_density(self, log_tau: Floats) -> Floats:
        """Log density of log tau, any shape, the Jacobian included."""
        log_variable = self.power * log_tau
        constant = self.shape * np.log(self.rate) - gammaln(self.shape) + np.log(abs(self.power))
        with np.errstate(over="ignore"):
            return np.asarray(constant + self.shape * log_variable - self.rate * np.exp(log_variable))

    def derivatives(self, log_tau: float) -> tuple[float, float]:
        """First and second derivative of the log density by log tau."""
        rated = self.rate * np.exp(self.power * log_tau)
        return float(self.power * (self.shape - rated)), float(-(self.power**2) * rated)


@dataclass(frozen=True)
class ZeroInflatedPoisson:
    """The posterior of theta = (alpha, beta, log tau) given counts and design.

    ``rows`` (u, K) are the distinct rows of the design. The distinct (row, count) pairs are ``row`` (P,), indices into
    ``rows``, ``y`` (P,), and ``weight`` (P,), the number of records that share the pair.
    """

    rows: Floats
    row: NDArray[np.intp]
    y: Floats
    weight: Floats
    bound: int | None
    prior: GammaPrior
    columns: tuple[str, ...]

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        x: ArrayLike,
        bound: int | None,
        tau_prior: TauScale = "precision",
        *,
        gamma_shape: float = 0.001,
        gamma_rate: float = 0.001,
        columns: Sequence[str] | None = None,
    ) -> ZeroInflatedPoisson:
        """The posterior given counts ``y`` (n,) in 0..bound and a design ``x`` (n, K) with its intercept column.

        Raises BadInput for counts that are negative, fractional or above the bound, and for a design that is not finite.
        """
        counts, design = np.asarray(y, dtype=np.float64), np.asarray(x, dtype=np.float64)
        _check(counts, design, bound)
        rows, row = np.unique(design, axis=0, return_inverse=True)
        pairs, weight = np.unique(np.column_stack([row.ravel(), counts.astype(np.int64)]), axis=0, return_counts=True)
        names = tuple(columns) if columns is not None else tuple(str(k) for k in range(design.shape[1]))
        prior = GammaPrior(tau_prior, gamma_shape, gamma_rate)
        return cls(
            rows, pairs[:, 0].astype(np.intp), pairs[:, 1].astype(float), weight.astype(float), bound, prior, names
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the 2K + 1 parameters: ``alpha[column]``, ``beta[column]``, ``log_tau``."""
        groups = [f"{group}[{column}]" for group in ("alpha", "beta") for column in self.columns]
        return (*groups, "log_tau")

    def predictors(self, thetas: Floats) -> tuple[Floats, Floats, Floats]:
        """Eta = x alpha and logit p = x beta of every distinct row, (..., u) each, and log tau (...,)."""
        k = self.rows.shape[1]
        return thetas[..., :k] @ self.rows.T, thetas[..., k : 2 * k] @ self.rows.T, thetas[..., 2 * k]

    def supports(self, thetas: Floats) -> NDArray[np.bool_]:
        """Whether log tau of thetas (..., 2K + 1) lies where the posterior is kept: (...,)."""
        log_tau = thetas[..., -1]
        return np.asarray((log_tau >= LOG_TAU_RANGE[0]) & (log_tau <= LOG_TAU_RANGE[1]))

    def log_prior(self, thetas: Floats) -> Floats:
        """Log prior density of theta (..., 2K + 1): (...,)."""
        coefficients = thetas[..., :-1]
        normal = -0.5 * np.sum(coefficients**2, axis=-1) - 0.5 * np.log(2 * np.pi) * coefficients.shape[-1]
        return np.asarray(normal + self.prior.log_density(thetas[..., -1]))

    @cached_property
    def zero(self) -> NDArray[np.intp]:
        """Indices of the pairs whose count is 0."""
        return np.flatnonzero(self.y == 0)

    @cached_property
    def positive(self) -> NDArray[np.intp]:
        """Indices of the pairs whose count is above 0."""
        return np.flatnonzero(self.y > 0)

    def log_likelihood(self, logit_p: Floats, log_mass: Floats) -> Floats:
        """Sum over the records: from logit p of every distinct row (..., u) and log P(y | eta, tau) of every pair (..., P)."""
        zero, positive = self.zero, self.positive
        of_zeros = log_of_mixture(logit_p[..., self.row[zero]], log_mass[..., zero])
        of_positives = log_mass[..., positive] - _log_one_plus_exp(logit_p[..., self.row[positive]])
        return np.asarray(of_zeros @ self.weight[zero] + of_positives @ self.weight[positive])

    def log_density(self, theta: Floats) -> float:
        """Log posterior density of theta (2K + 1,), up to the constant that is the evidence; -inf outside the support."""
        if not self.supports(theta):
            return -np.inf
        eta, logit_p, log_tau = self.predictors(theta)
        masses = log_masses(self.y, eta[self.row], float(np.exp(log_tau)), self.bound)
        return float(self.log_prior(theta) + self.log_likelihood(logit_p, masses))

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Log density and its gradient (2K + 1,)."""
        value, gradient, _ = self.derivatives(theta)
        return value, gradient

    def derivatives(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Log density, gradient (2K + 1,) and Hessian (2K + 1, 2K + 1), all analytic."""
        if not self.supports(theta):
            return -np.inf, np.zeros(theta.size), np.zeros((theta.size, theta.size))
        eta, logit_p, log_tau = self.predictors(theta)
        rates = mass_derivatives(self.y, eta[self.row], float(np.exp(log_tau)), self.bound)
        value = float(self.log_prior(theta) + self.log_likelihood(logit_p, rates.value))
        gradient, hessian = self._likelihood_derivatives(logit_p[self.row], rates)
        slope, bend = self.prior.derivatives(float(log_tau))
        gradient += np.append(-theta[:-1], slope)
        hessian += np.diag(np.append(np.full(theta.size - 1, -1.0), bend))
        return value, gradient, hessian

    def _likelihood_derivatives(self, zeta: Floats, rates: Derivatives) -> tuple[Floats, Floats]:
        """By the chain rule from (eta, zeta, s) of every pair; r is the probability that a zero is an inflated one."""
        p = expit(zeta)
        r = np.where(self.y == 0, expit(zeta - rates.value), 0.0)
        doubt, w = r * (1 - r), self.weight
        x = self.rows[self.row]
        by_eta, by_zeta, by_s = w * (1 - r) * rates.e, w * (r - p), w * (1 - r) * rates.s
        ee = w * ((1 - r) * rates.ee + doubt * rates.e**2)
        ez, zz = -w * doubt * rates.e, w * (doubt - p * (1 - p))
        es = w * ((1 - r) * rates.es + doubt * rates.e * rates.s)
        zs = -w * doubt * rates.s
        ss = float(np.sum(w * ((1 - r) * rates.ss + doubt * rates.s**2)))
        gradient = np.concatenate([by_eta @ x, by_zeta @ x, [by_s.sum()]])
        a, b, c = (x.T @ (v[:, None] * x) for v in (ee, ez, zz))
        d, e = (es @ x)[:, None], (zs @ x)[:, None]
        return gradient, np.block([[a, b, d], [b.T, c, e], [d.T, e.T, np.full((1, 1), ss)]])

    def near(self, centre: Floats, covariance: Floats) -> LocalDensity:
        """The log density of many theta at once, fast where the posterior around ``centre`` lies."""
        return LocalDensity.around(self, centre, covariance)

    def start(self) -> Floats:
        """Where the search for the mode starts: ridge regression of log y on x among the positive counts, beta = 0."""
        k = self.rows.shape[1]
        positive = self.y > 0
        x, w = self.rows[self.row][positive], self.weight[positive]
        log_y = np.log(self.y[positive])
        alpha = np.linalg.solve(x.T @ (w[:, None] * x) + np.eye(k), x.T @ (w * log_y))
        variance = (1.0 + w @ (log_y - x @ alpha) ** 2) / (1.0 + w.sum())
        return np.concatenate([alpha, np.zeros(k), [0.5 * np.log(variance)]])


def log_of_mixture(logit_p: Floats, log_mass: Floats) -> Floats:
    """log(p + (1 - p) exp(log_mass)), any shape, by exponentials of what is not above 0."""
    smaller, mass = np.exp(-np.abs(logit_p)), np.exp(log_mass)
    share = np.where(logit_p > 0, 1 + mass * smaller, smaller + mass) / (1 + smaller)
    if share.min(initial=1.0) > _TINY:
        return np.asarray(np.log(share))
    return np.asarray(np.logaddexp(logit_p, log_mass) - np.logaddexp(0.0, logit_p))


def _log_one_plus_exp(x: Floats) -> Floats:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def _check(y: Floats, x: Floats, bound: int | None) -> None:
    if x.ndim != 2 or y.shape != x.shape[:1] or y.size == 0:
        raise BadInput("", f"counts of shape {y.shape} do not fit a design of shape {x.shape}")
    if not np.all(np.isfinite(x)):
        raise BadInput("", "the design holds a value that is not finite")
    if not np.all((y >= 0) & (y == np.floor(y)) & np.isfinite(y)):
        raise BadInput("", "a zero-inflated Poisson needs counts: whole numbers, at least 0")
    if bound is not None and np.any(y > bound):
        raise BadInput("", f"a count is above its bound {bound}")
