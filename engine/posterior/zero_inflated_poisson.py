"""The posterior of a zero-inflated truncated Poisson regression with a normal random effect.

    y = 0 with probability p, else Poisson(exp(g)) truncated to 0..b,   g = x alpha + eps,  eps ~ N(0, tau)
    logit p = x beta;   alpha, beta ~ N(0, 1);   a Gamma prior on 1 / tau^2 or on tau       (Guo and Hu, eq. 1-5)

Every record's eps is integrated out, so the posterior is smooth in theta = (alpha, beta, log tau), 2K + 1 numbers, and
records with the same x and y are one term with a weight. Around a reference the density is computed for many theta at
once, by Gauss rules that are fixed there; theta outside the region where the rules hold are answered by the full
quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from ..data.arrays import Floats
from ..data.blocks import row_blocks
from ..data.rows import dense_ranks, distinct_rows
from ..errors import BadInput
from .gamma_prior import GammaPrior, TauScale
from .mass_table import MassSurface, gauss_rules, log_masses, mass_derivatives, shared_counts, tilting_error
from .poisson_lognormal import MassDerivatives, RateQuadrature, rate_quadrature

Indices = NDArray[np.intp]

_FEWEST_NODES, _MOST_NODES = 3, 16
_LARGEST_TILT = 2.0  # in standard deviations of g; 16 nodes are exact to 1e-12 there
_TOLERANCE = 1e-11
_DEVIATIONS = 8.0  # the region: this many posterior standard deviations of every eta and of log tau
_RUNG = 0.15  # largest distance in log tau from a rule's reference
_MOST_RULES = 24
_CHUNK = 16
_DEVIATIONS_OF_TABLE = 8.0, 6.0  # the same of what is tabulated, of every eta and of log tau
_MOST_INTEGRALS = 5000  # at a time
_LARGEST_DESIGN = 500_000  # numbers in the rows of all pairs
_FEWEST_SHARING = 500  # pairs of one count from which its mass is tabulated
LOG_TAU_RANGE = (-10.0, 3.0)  # where the posterior is kept: rates that vary by a factor of exp(20) are no data
_TINY = 1e-290  # what is smaller has lost digits


@dataclass(frozen=True)
class GaussRateRules:
    """Gauss rules of some of the pairs at one reference tau, sorted so that those with a k-th node come first.

    pairs: indices of the pairs
    nodes, log_weights: k-th node and log weight of the pairs that have one
    offset: log mass and log tau at the reference, of each pair
    centres: eta of each pair at the reference
    reach: distance of eta from the centre up to which a rule holds
    """

    pairs: Indices
    nodes: tuple[Floats, ...]
    log_weights: tuple[Floats, ...]
    offset: Floats
    centres: Floats
    reach: Floats

    @classmethod
    def from_reference(
        cls,
        y: Floats,
        bound: int | None,
        pairs: Indices,
        eta: Floats,
        log_tau: float,
        wanted: Floats,
        half_width: float,
    ) -> GaussRateRules:
        """Compute rules for ``pairs`` (n,) of the counts y (P,) at a reference ``eta`` (n,) and ``log_tau``.

        They hold for eta within ``wanted`` (n,) of the reference, or less (``reach``), and for log tau within
        ``half_width``.
        """
        tau = float(np.exp(log_tau))
        # P(y | eta, tau) = P(y | eta', tau') E[N(g; eta, tau) / N(g; eta', tau') | y, eta', tau'] with the primes at
        # the reference. The ratio is the exponential of a gentle quadratic, so that few nodes of a Gauss rule against
        # that posterior suffice.
        exact = rate_quadrature(y[pairs], eta, tau, bound)
        mean = exact.posterior_mean(exact.z)
        deviation = np.sqrt(exact.posterior_mean((exact.z - np.repeat(mean, exact.counts)) ** 2))
        tilt = wanted * deviation / tau
        sizes = _nodes_needed(np.minimum(tilt, _LARGEST_TILT), np.expm1(2 * half_width) * deviation**2)
        order, z, log_weights = _compress_rules(exact, sizes)
        reach = wanted * np.minimum(1.0, _LARGEST_TILT / np.maximum(tilt, 1e-300))
        centres = eta[order]
        nodes = tuple(centres[: column.size] + tau * column for column in z)
        return cls(pairs[order], nodes, log_weights, (exact.log_mass + log_tau)[order], eta[order], reach[order])

    def is_within_reach(self, eta: Floats) -> NDArray[np.bool_]:
        """Return which rows of eta (T, n) lie within the reach of the rules of all pairs, (T,)."""
        return np.asarray(np.all(np.abs(eta - self.centres) <= self.reach, axis=1))

    def log_mass(self, eta: Floats, tau: Floats) -> Floats:
        """Return log P(y | eta, tau) of every pair in ``pairs``, for eta (T, n) and tau (T,): (T, n)."""
        scale = -0.5 / tau[:, None] ** 2
        total = np.zeros_like(eta)
        for nodes, log_weights in zip(self.nodes, self.log_weights, strict=True):
            term = nodes - eta[:, : nodes.size]
            term *= term
            term *= scale
            term += log_weights
            total[:, : nodes.size] += np.exp(term, out=term)
        return np.log(total) + self.offset - np.log(tau)[:, None]


def _nodes_needed(tilt: Floats, widening: Floats) -> NDArray[np.intp]:
    """Return the fewest nodes with which the rule of each pair keeps to the tolerance, (n,)."""
    needed = np.full(tilt.shape, _MOST_NODES)
    undecided = np.arange(tilt.size)
    for m in range(_FEWEST_NODES, _MOST_NODES):
        enough = tilting_error(m, tilt[undecided], widening[undecided]) < _TOLERANCE
        needed[undecided[enough]] = m
        undecided = undecided[~enough]
    return needed


def _compress_rules(
    exact: RateQuadrature, sizes: NDArray[np.intp]
) -> tuple[NDArray[np.intp], tuple[Floats, ...], tuple[Floats, ...]]:
    """Compress the quadrature of each pair to a Gauss rule of ``sizes`` (n,) nodes.

    Returns the order of the pairs, largest rule first, and the k-th z and log (weight exp(z^2 / 2)) of the pairs that
    have one.
    """
    order = np.argsort(-sizes, kind="stable")
    z, log_weights = np.full((2, sizes.max(), sizes.size), np.nan)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    for m in np.unique(sizes):
        chosen = np.repeat(sizes == m, exact.counts)
        x, w = gauss_rules(exact.z[chosen], exact.weights[chosen], exact.counts[sizes == m], int(m))
        z[:m, place[sizes == m]] = x.T
        with np.errstate(divide="ignore"):
            log_weights[:m, place[sizes == m]] = np.log(w.T) + 0.5 * x.T**2
    lengths = [int(np.count_nonzero(sizes > k)) for k in range(int(sizes.max()))]
    return (
        order,
        tuple(z[k, :n] for k, n in enumerate(lengths)),
        tuple(log_weights[k, :n] for k, n in enumerate(lengths)),
    )


@dataclass(frozen=True)
class LocalDensity:
    """Log posterior density of arrays of theta, fast within a region around a centre.

    model: the posterior
    log_taus: reference log tau of each rule
    half_width: distance in log tau up to which a rule holds
    others: pairs without a surface, (n,), answered by rules, or, where theta is out of their reach, by the full
    quadrature
    rules: Gauss rules at each reference
    surfaces: pairs of a count that many share, with its tabulated mass
    """

    model: ZeroInflatedPoisson
    log_taus: Floats
    half_width: float
    others: Indices
    rules: tuple[GaussRateRules, ...]
    surfaces: tuple[tuple[Indices, MassSurface], ...]

    @classmethod
    def from_centre(cls, model: ZeroInflatedPoisson, centre: Floats, covariance: Floats) -> LocalDensity:
        """Compute rules around ``centre`` (2K + 1,) for a posterior with roughly this covariance."""
        eta, _, log_tau = model.linear_predictors(centre)
        wanted = _DEVIATIONS * _eta_deviations(model.rows, covariance)
        half_range = _DEVIATIONS * float(np.sqrt(covariance[-1, -1]))
        n_rules = min(_MOST_RULES, int(np.ceil(half_range / _RUNG)))
        half_width = min(_RUNG, half_range / n_rules)
        log_taus = float(log_tau) + half_width * np.arange(1.0 - n_rules, n_rules, 2.0)
        shared = shared_counts(model.y, _FEWEST_SHARING)
        surfaces = tuple((pairs, _make_surface(model, pairs, centre, covariance)) for pairs in shared)
        others = np.setdiff1d(np.arange(model.y.size), np.concatenate([np.empty(0, dtype=np.intp), *shared]))
        row = model.row[others]
        references = log_taus if others.size else log_taus[:0]
        rules = tuple(
            GaussRateRules.from_reference(model.y, model.bound, others, eta[row], float(s), wanted[row], half_width)
            for s in references
        )
        return cls(model, log_taus, half_width, others, rules, surfaces)

    def __call__(self, thetas: Floats) -> Floats:
        """Return the log density of thetas (T, 2K + 1), (T,).

        The value of a theta does not depend on the others, up to rounding.
        """
        answer = np.full(thetas.shape[0], -np.inf)
        supported = np.flatnonzero(self.model.is_in_support(thetas))
        rung = np.rint((thetas[:, -1] - self.log_taus[0]) / (2 * self.half_width))
        for value in np.unique(rung[supported]):
            here = supported[rung[supported] == value]
            for chunk in np.split(here, range(_CHUNK, here.size, _CHUNK)):
                answer[chunk] = self._log_density_by_rule(int(value), thetas[chunk])
        return answer

    def log_probabilities(self, thetas: Floats) -> Floats:
        """Return log P(y | x, theta) of every pair for thetas (T, 2K + 1) of the support: (T, P)."""
        answer = np.empty((len(thetas), self.model.y.size))
        rung = np.rint((thetas[:, -1] - self.log_taus[0]) / (2 * self.half_width))
        for value in np.unique(rung):
            here = np.flatnonzero(rung == value)
            for chunk in np.split(here, range(_CHUNK, here.size, _CHUNK)):
                logit_p, log_mass = self._masses_by_rule(int(value), thetas[chunk])
                logit_p = logit_p[:, self.model.row]
                answer[chunk] = log_mass - _log_one_plus_exp(logit_p)
                zero = self.model.zero_pairs
                answer[np.ix_(chunk, zero)] = log_zero_mixture(logit_p[:, zero], log_mass[:, zero])
        return answer

    def _log_density_by_rule(self, rung: int, thetas: Floats) -> Floats:
        """Return the log density, (T,), of thetas (T, 2K + 1) whose log tau is nearest to that of rule ``rung``.

        There may be no such rule: then it is computed by full quadrature.
        """
        return self.model.log_prior(thetas) + self.model.log_likelihood(*self._masses_by_rule(rung, thetas))

    def _masses_by_rule(self, rung: int, thetas: Floats) -> tuple[Floats, Floats]:
        """Return logit p of every distinct row, (T, u), and log P(y | eta, tau) of every pair, (T, P)."""
        eta, logit_p, log_tau = self.model.linear_predictors(thetas)
        log_mass = np.empty((log_tau.size, self.model.y.size))
        near = np.zeros(log_tau.size, dtype=bool)
        if 0 <= rung < len(self.rules):
            rule = self.rules[rung]
            at = eta[:, self.model.row[rule.pairs]]
            near = rule.is_within_reach(at)
            log_mass[np.ix_(near, rule.pairs)] = rule.log_mass(at[near], np.exp(log_tau[near]))
        log_mass[np.ix_(~near, self.others)] = self._masses_by_quadrature(
            eta[~near][:, self.model.row[self.others]], log_tau[~near]
        )
        for pairs, surface in self.surfaces:
            rows = self.model.row[pairs]
            for i in range(log_tau.size):
                log_mass[i, pairs] = surface.log_mass(eta[i, rows], float(log_tau[i]))
        return logit_p, log_mass

    def _masses_by_quadrature(self, eta: Floats, log_tau: Floats) -> Floats:
        """Return log P(y | eta, tau) of the other pairs by full quadrature, (T, n), for eta (T, n) and log tau (T,)."""
        answer = np.empty_like(eta)
        together = max(_MOST_INTEGRALS // max(self.others.size, 1), 1)
        for first in range(0, answer.shape[0] if self.others.size else 0, together):
            block = eta[first : first + together]
            tau = np.repeat(np.exp(log_tau[first : first + together]), self.others.size)
            y = np.tile(self.model.y[self.others], block.shape[0])
            found = rate_quadrature(y, block.ravel(), tau, self.model.bound).log_mass
            answer[first : first + together] = found.reshape(block.shape)
        return answer


def _eta_deviations(rows: Floats, covariance: Floats) -> Floats:
    """Return the standard deviation of eta of every row of the design, (u,)."""
    k = rows.shape[1]
    return np.asarray(np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance[:k, :k], rows)))


def _make_surface(model: ZeroInflatedPoisson, pairs: Indices, centre: Floats, covariance: Floats) -> MassSurface:
    """Make a surface for pairs of one count, over the part of the posterior that is often evaluated."""
    rows = model.rows[np.unique(model.row[pairs])]
    eta, reach = rows @ centre[: rows.shape[1]], _DEVIATIONS_OF_TABLE[0] * _eta_deviations(rows, covariance)
    half_range = _DEVIATIONS_OF_TABLE[1] * float(np.sqrt(covariance[-1, -1]))
    etas = float(np.min(eta - reach)), float(np.max(eta + reach))
    log_taus = float(centre[-1]) - half_range, float(centre[-1]) + half_range
    return MassSurface(float(model.y[pairs[0]]), etas, log_taus, model.bound)


@dataclass(frozen=True)
class ZeroInflatedPoisson:
    """The posterior of theta = (alpha, beta, log tau) given counts and design.

    rows: distinct rows of the design, (u, K)
    row, y: the distinct (row, count) pairs, row as an index into ``rows``, (P,)
    weight: records that share the pair, or the sum of their weights, (P,)
    bound: largest count; None without truncation
    prior: Gamma prior of tau
    columns: names of the design's columns
    """

    rows: Floats
    row: NDArray[np.intp]
    y: Floats
    weight: Floats
    bound: int | None
    prior: GammaPrior
    columns: tuple[str, ...]

    @classmethod
    def from_design(
        cls,
        y: ArrayLike,
        x: ArrayLike,
        bound: int | None,
        tau_prior: TauScale = "precision",
        *,
        gamma_shape: float = 0.001,
        gamma_rate: float = 0.001,
        columns: Sequence[str] | None = None,
        weights: Floats | None = None,
    ) -> ZeroInflatedPoisson:
        """Build the posterior given counts ``y`` (n,) in 0..bound and a design ``x`` (n, K) with its intercept column.

        ``weights`` (n,), above 0, are the powers of the records' likelihoods; left out, 1. Raises BadInput for counts
        that are negative, fractional or above the bound, and for a design that is not finite.
        """
        design = np.asarray(x, dtype=np.float64)
        if design.ndim != 2 or np.shape(y) != design.shape[:1] or not len(design):
            raise BadInput("", f"counts of shape {np.shape(y)} do not fit a design of shape {design.shape}")
        prior = GammaPrior(tau_prior, gamma_shape, gamma_rate)
        return cls.from_rows(y, design, np.arange(len(design)), bound, prior, columns=columns, weights=weights)

    @classmethod
    def from_rows(
        cls,
        y: ArrayLike,
        rows: Floats,
        row: NDArray[np.intp],
        bound: int | None,
        prior: GammaPrior,
        *,
        columns: Sequence[str] | None = None,
        weights: Floats | None = None,
    ) -> ZeroInflatedPoisson:
        """Build as ``from_design``, from records whose design is ``rows[row]``: ``rows`` (u, K), ``row`` (n,)."""
        counts = np.asarray(y, dtype=np.float64)
        _check_counts(counts, rows, bound)
        different = distinct_rows(rows.T, len(rows))
        distinct = rows[different.first]
        each, largest = counts.astype(np.int64), int(counts.max()) + 1
        each += different.combination_of[row] * largest
        # Row and count are one whole number, whose distinct values are the pairs.
        pair, size = dense_ranks(each, len(distinct) * largest)
        pairs = np.empty(size, dtype=np.int64)
        pairs[pair] = each
        weight = np.bincount(pair, weights, size).astype(np.float64)
        names = tuple(columns) if columns is not None else tuple(str(k) for k in range(rows.shape[1]))
        return cls(
            distinct, (pairs // largest).astype(np.intp), (pairs % largest).astype(float), weight, bound, prior, names
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the 2K + 1 parameters: ``alpha[column]``, ``beta[column]``, ``log_tau``."""
        groups = [f"{group}[{column}]" for group in ("alpha", "beta") for column in self.columns]
        return (*groups, "log_tau")

    def linear_predictors(self, thetas: Floats) -> tuple[Floats, Floats, Floats]:
        """Return eta = x alpha and logit p = x beta of every distinct row, (..., u) each, and log tau (...,)."""
        k = self.rows.shape[1]
        return thetas[..., :k] @ self.rows.T, thetas[..., k : 2 * k] @ self.rows.T, thetas[..., 2 * k]

    def is_in_support(self, thetas: Floats) -> NDArray[np.bool_]:
        """Return whether log tau of thetas (..., 2K + 1) lies where the posterior is kept: (...,)."""
        log_tau = thetas[..., -1]
        return np.asarray((log_tau >= LOG_TAU_RANGE[0]) & (log_tau <= LOG_TAU_RANGE[1]))

    def log_prior(self, thetas: Floats) -> Floats:
        """Return the log prior density of theta (..., 2K + 1): (...,)."""
        coefficients = thetas[..., :-1]
        normal = -0.5 * np.sum(coefficients**2, axis=-1) - 0.5 * np.log(2 * np.pi) * coefficients.shape[-1]
        return np.asarray(normal + self.prior.log_density(thetas[..., -1]))

    @cached_property
    def zero_pairs(self) -> NDArray[np.intp]:
        """Return the indices of the pairs whose count is 0."""
        return np.flatnonzero(self.y == 0)

    @cached_property
    def positive_pairs(self) -> NDArray[np.intp]:
        """Return the indices of the pairs whose count is above 0."""
        return np.flatnonzero(self.y > 0)

    @property
    def has_large_design(self) -> bool:
        """Return whether the design is so large that values of pairs are summed by row before they multiply it."""
        return bool(self.row.size * self.rows.shape[1] > _LARGEST_DESIGN)

    @cached_property
    def _positive_weights(self) -> Floats:
        """Return the weight of the records with a count above 0 in each distinct row, (u,)."""
        return self._design_with_sums(self.positive_pairs)[1](self.weight[self.positive_pairs])

    def _design_with_sums(self, pairs: Indices | None = None) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Return rows of the design, and a function that sums values of all or some pairs, (P,), by these rows.

        The rows are those of every pair or, with a large design, the distinct ones.
        """
        row = self.row if pairs is None else self.row[pairs]
        if not self.has_large_design:
            return self.rows[row], lambda values: values
        return self.rows, lambda values: np.bincount(row, values, len(self.rows)).astype(np.float64)

    def log_likelihood(self, logit_p: Floats, log_mass: Floats) -> Floats:
        """Return the log likelihood of all records, (...,).

        ``logit_p`` (..., u) is that of every distinct row, ``log_mass`` (..., P) the log P(y | eta, tau) of every pair.
        """
        zero, positive = self.zero_pairs, self.positive_pairs
        of_zeros = log_zero_mixture(logit_p[..., self.row[zero]], log_mass[..., zero])
        if self.has_large_design:
            of_positives = (
                log_mass[..., positive] @ self.weight[positive] - _log_one_plus_exp(logit_p) @ self._positive_weights
            )
        else:
            each = log_mass[..., positive] - _log_one_plus_exp(logit_p[..., self.row[positive]])
            of_positives = each @ self.weight[positive]
        return np.asarray(of_zeros @ self.weight[zero] + of_positives)

    def log_density(self, theta: Floats) -> float:
        """Return the log posterior density of theta (2K + 1,), without the evidence; -inf outside the support."""
        if not self.is_in_support(theta):
            return -np.inf
        eta, logit_p, log_tau = self.linear_predictors(theta)
        masses = log_masses(self.y, eta[self.row], float(np.exp(log_tau)), self.bound)
        return float(self.log_prior(theta) + self.log_likelihood(logit_p, masses))

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient (2K + 1,)."""
        value, gradient, _ = self.derivatives(theta)
        return value, gradient

    def derivatives(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Return log density, gradient (2K + 1,) and Hessian (2K + 1, 2K + 1), all analytic."""
        if not self.is_in_support(theta):
            return -np.inf, np.zeros(theta.size), np.zeros((theta.size, theta.size))
        eta, logit_p, log_tau = self.linear_predictors(theta)
        rates = mass_derivatives(self.y, eta[self.row], float(np.exp(log_tau)), self.bound)
        value = float(self.log_prior(theta) + self.log_likelihood(logit_p, rates.value))
        gradient, hessian = self._likelihood_derivatives(logit_p[self.row], rates)
        slope, bend = self.prior.log_density_derivatives(float(log_tau))
        gradient += np.append(-theta[:-1], slope)
        hessian += np.diag(np.append(np.full(theta.size - 1, -1.0), bend))
        return value, gradient, hessian

    def _likelihood_derivatives(self, zeta: Floats, rates: MassDerivatives) -> tuple[Floats, Floats]:
        """Return gradient and Hessian of the log likelihood by the chain rule from (eta, zeta, s) of every pair."""
        p = expit(zeta)
        # The probability that a zero is an inflated one.
        r = np.where(self.y == 0, expit(zeta - rates.value), 0.0)
        doubt, w = r * (1 - r), self.weight
        x, added = self._design_with_sums()
        by_eta, by_zeta, by_s = w * (1 - r) * rates.e, w * (r - p), w * (1 - r) * rates.s
        ee = w * ((1 - r) * rates.ee + doubt * rates.e**2)
        ez, zz = -w * doubt * rates.e, w * (doubt - p * (1 - p))
        es = w * ((1 - r) * rates.es + doubt * rates.e * rates.s)
        zs = -w * doubt * rates.s
        ss = float(np.sum(w * ((1 - r) * rates.ss + doubt * rates.s**2)))
        gradient = np.concatenate([added(by_eta) @ x, added(by_zeta) @ x, [by_s.sum()]])
        a, b, c = (_weighted_cross_product(x, added(v)) for v in (ee, ez, zz))
        d, e = (added(es) @ x)[:, None], (added(zs) @ x)[:, None]
        return gradient, np.block([[a, b, d], [b.T, c, e], [d.T, e.T, np.full((1, 1), ss)]])

    def density_around(self, centre: Floats, covariance: Floats) -> LocalDensity:
        """Return a function for the log density of many theta at once, fast around ``centre``."""
        return LocalDensity.from_centre(self, centre, covariance)

    def start(self) -> Floats:
        """Return the start of the search for the mode: ridge regression of log y on x, and beta = 0.

        The regression is of the positive counts.
        """
        k = self.rows.shape[1]
        x, added = self._design_with_sums(self.positive_pairs)
        w, log_y = self.weight[self.positive_pairs], np.log(self.y[self.positive_pairs])
        alpha = np.linalg.solve(_weighted_cross_product(x, added(w)) + np.eye(k), x.T @ added(w * log_y))
        predicted = (x @ alpha)[self.row[self.positive_pairs]] if self.has_large_design else x @ alpha
        variance = (1.0 + w @ (log_y - predicted) ** 2) / (1.0 + w.sum())
        return np.concatenate([alpha, np.zeros(k), [0.5 * np.log(variance)]])


def _weighted_cross_product(x: Floats, weights: Floats) -> Floats:
    """Return X'WX of rows (n, K) with weights (n,), in blocks: (K, K)."""
    found = np.zeros((x.shape[1], x.shape[1]))
    for rows in row_blocks(*x.shape):
        found += x[rows].T @ (weights[rows, None] * x[rows])
    return found


def log_zero_mixture(logit_p: Floats, log_mass: Floats) -> Floats:
    """Return log(p + (1 - p) exp(log_mass)), any shape."""
    # Exponentials of numbers that are not above 0 cannot overflow.
    smaller, mass = np.exp(-np.abs(logit_p)), np.exp(log_mass)
    share = np.where(logit_p > 0, 1 + mass * smaller, smaller + mass) / (1 + smaller)
    if share.min(initial=1.0) > _TINY:
        return np.asarray(np.log(share))
    return np.asarray(np.logaddexp(logit_p, log_mass) - np.logaddexp(0.0, logit_p))


def _log_one_plus_exp(x: Floats) -> Floats:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def _check_counts(y: Floats, x: Floats, bound: int | None) -> None:
    """Raise BadInput for counts outside 0..bound or fractional, and for a design that is not finite."""
    if not np.all(np.isfinite(x)):
        raise BadInput("", "the design holds a value that is not finite")
    if not np.all((y >= 0) & (y == np.floor(y)) & np.isfinite(y)):
        raise BadInput("", "a zero-inflated Poisson needs counts: whole numbers, at least 0")
    if bound is not None and np.any(y > bound):
        raise BadInput("", f"a count is above its bound {bound}")
