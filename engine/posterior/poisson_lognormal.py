"""The Poisson-lognormal distribution: a (truncated) Poisson count whose log rate g is normal.

    P(y | eta, tau) = integral f(y | g) N(g; eta, tau) dg        (Aitchison and Ho 1989, with f truncated to 0..b)

As f is log-concave in g, so is the integrand, with curvature at least 1 / tau^2: it has one mode, and tangents to its
log lie above it, so that the mode is found and the rate drawn exactly. Quadrature over g gives the probability and the
moments of the rate's posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, gammaln, ndtri, wrightomega

from ..data.arrays import Floats
from ..data.blocks import row_blocks
from ..errors import BadInput
from .truncated_poisson import draw_truncated_poisson, log_normaliser, log_pmf, mean_and_variance

Indices = NDArray[np.intp]
_DROP = 36.0  # what lies more than this many log units below the mode is left out
_LARGEST_TABLE = 50_000
Counts = NDArray[np.int64]
RandomEffect = Literal["new", "record"]
DRAWS_AT_PLACES = 128
"""Draws of a record's count, among which the one at its place is taken."""
SMALLEST = float(np.finfo(np.float64).tiny)


def log_joint_density(y: Floats, g: Floats, eta: Floats, tau: float, bound: int | None) -> Floats:
    """Return log(f(y | g) N(g; eta, tau))."""
    return log_pmf(y, g, bound) - 0.5 * ((g - eta) / tau) ** 2 - float(np.log(tau) + 0.5 * np.log(2 * np.pi))


def mode_and_curvature(y: Floats, eta: Floats, tau: Floats | float, bound: int | None) -> tuple[Floats, Floats]:
    """Return the mode of f(y | g) N(g; eta, tau) in g and minus the second derivative of its log there, each (n,).

    There is one tau, or n.
    """
    if bound == 0:
        return eta.copy(), np.zeros_like(eta) + tau**-2
    # Without truncation the mode is closed, by the Wright omega function.
    mode = eta + tau**2 * y - wrightomega(2 * np.log(tau) + eta + tau**2 * y)
    if bound is not None:
        # Truncation moves the mode up, and only where the bound has probability.
        moved = np.exp(log_pmf(float(bound), mode, bound)) > 1e-6
        taus = tau if np.ndim(tau) == 0 else np.asarray(tau)[moved]
        mode[moved] = _truncated_mode(y[moved], eta[moved], taus, bound, mode[moved])
    return mode, mean_and_variance(mode, bound)[1] + tau**-2


def _truncated_mode(y: Floats, eta: Floats, tau: Floats | float, bound: int, low: Floats) -> Floats:
    # The mode is at most max(eta + 1, log(b + tau^2 b)).
    """Return the mode with truncation, (n,), by Newton's method between ``low`` and an upper bound."""
    high = np.maximum(np.maximum(eta + 1, np.log(bound + tau**2 * bound)), low)
    mode = low
    for _ in range(60):
        mean, variance = mean_and_variance(mode, bound)
        slope = y - mean - (mode - eta) / tau**2
        low, high = np.where(slope > 0, mode, low), np.where(slope > 0, high, mode)
        newton = mode + slope / (variance + tau**-2)
        step = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2) - mode
        mode = mode + step
        if np.all(np.abs(step) * np.sqrt(variance + tau**-2) < 0.05):
            break
    return mode


def draw_log_rate(y: Floats, eta: Floats, tau: float, bound: int | None, rng: np.random.Generator) -> Floats:
    """Draw one exact g from f(y | g) N(g; eta, tau) for every (y, eta), all (n,)."""
    # Rejection under the tangents one standard deviation to either side of the mode: an envelope, as the log density is
    # concave (Gilks and Wild 1992). For a normal density it accepts 76 % of its proposals.
    hull = _LogConcaveEnvelope.from_counts(y, eta, tau, bound)
    g, waiting = np.empty_like(eta), np.arange(eta.size)
    while waiting.size:
        proposal, log_hull = hull.draw_proposals(waiting, rng)
        log_ratio = log_joint_density(y[waiting], proposal, eta[waiting], tau, bound) - log_hull
        accepted = -rng.standard_exponential(waiting.size) < log_ratio
        g[waiting[accepted]] = proposal[accepted]
        waiting = waiting[~accepted]
    return g


@dataclass(frozen=True)
class _LogConcaveEnvelope:
    """Two exponentials above a log-concave density, for n densities.

    Left of the apex it is exp(top + rise (g - apex)), right of it exp(top - fall (g - apex)).

    apex, top: place where the two meet, and the log of the envelope there, (n,)
    rise, fall: slopes on either side, (n,)
    """

    apex: Floats
    top: Floats
    rise: Floats
    fall: Floats

    @classmethod
    def from_counts(cls, y: Floats, eta: Floats, tau: float, bound: int | None) -> _LogConcaveEnvelope:
        """Build from the tangents one standard deviation to either side of the mode."""
        mode, curvature = mode_and_curvature(y, eta, tau, bound)
        left, right = mode - 1 / np.sqrt(curvature), mode + 1 / np.sqrt(curvature)
        (low, rise), (high, fall) = (_log_joint_tangent(y, g, eta, tau, bound) for g in (left, right))
        apex = (high - low + rise * left - fall * right) / (rise - fall)
        return cls(apex, low + rise * (apex - left), rise, -fall)

    def draw_proposals(self, rows: NDArray[np.intp], rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw a proposal for every row, and return it with the log of the envelope there."""
        rise, fall = self.rise[rows], self.fall[rows]
        distance = rng.standard_exponential(rows.size)
        on_the_left = rng.random(rows.size) * (rise + fall) < fall
        step = np.where(on_the_left, -distance / rise, distance / fall)
        return self.apex[rows] + step, self.top[rows] - distance


def _log_joint_tangent(y: Floats, g: Floats, eta: Floats, tau: float, bound: int | None) -> tuple[Floats, Floats]:
    """Return the log of the joint density at g, and its slope."""
    slope = y - mean_and_variance(g, bound)[0] - (g - eta) / tau**2
    return log_joint_density(y, g, eta, tau, bound), slope


@dataclass(frozen=True)
class MassDerivatives:
    """Log P(y | eta, tau) of n pairs and its derivatives by eta and s = log tau.

    value: log P(y | eta, tau), (n,)
    e, s: first derivatives by eta and by s, (n,)
    ee, es, ss: second derivatives, (n,)
    """

    value: Floats
    e: Floats
    s: Floats
    ee: Floats
    es: Floats
    ss: Floats


@dataclass(frozen=True)
class RateQuadrature:
    """Quadrature rules for the posterior of z = (g - eta) / tau in n integrals.

    tau: standard deviation of g, one or (n,)
    z, weights: nodes of all integrals end to end, and their weights, which sum to 1 for each, (N,)
    starts, counts: first node of each integral and number of its nodes, (n,)
    log_mass: log P(y | eta, tau) of each integral, (n,)
    """

    tau: Floats | float
    z: Floats
    weights: Floats
    starts: Indices
    counts: Indices
    log_mass: Floats

    def posterior_mean(self, values: Floats) -> Floats:
        """Return the posterior mean of ``values`` (N,) at the nodes for every integral, (n,)."""
        return np.add.reduceat(self.weights * values, self.starts)

    def log_mass_derivatives(self) -> MassDerivatives:
        """Return the log mass and its derivatives, by the moments of z."""
        # log N(g; eta, e^s) is -z^2 / 2 - s, so that derivatives under the integral are moments of z.
        m = self.posterior_mean(self.z)
        c = self.z - np.repeat(m, self.counts)
        square = c * c
        c2, c3, c4 = self.posterior_mean(square), self.posterior_mean(square * c), self.posterior_mean(square * square)
        second = c2 + m * m
        variance_of_square = c4 + 4 * m * c3 + 4 * m * m * c2 - c2 * c2
        return MassDerivatives(
            value=self.log_mass,
            e=m / self.tau,
            s=second - 1,
            ee=(c2 - 1) / self.tau**2,
            es=(c3 + 2 * m * c2 - 2 * m) / self.tau,
            ss=variance_of_square - 2 * second,
        )


def rate_quadrature(y: Floats, eta: Floats, tau: Floats | float, bound: int | None) -> RateQuadrature:
    """Return the trapezoidal rule for every (y, eta), each (n,), and one tau or n.

    The relative error is below 1e-8, mostly far below.
    """
    mode, curvature = mode_and_curvature(y, eta, tau, bound)
    # The integrand is analytic in a strip, so that the rule converges geometrically in 1 / step (Trefethen and Weideman
    # 2014). The strip ends pi / 2 from the real axis for a Poisson, and about 2.8 / sqrt(b) from it near g = log b for
    # one truncated at b (the zeros of the partial sums of exp, Szegő 1924): hence the limits on the step.
    steps = np.minimum(0.3, 0.65 / np.sqrt(curvature))
    near_bound = np.inf if not bound else 0.6 / np.sqrt(bound)
    lattice = _NodeLattice.from_modes(
        mode, float(np.max(tau)), min(float(steps.min()), near_bound), float(steps.max()), bound
    )
    left, right = (_lattice_edge(y, eta, tau, lattice, mode, curvature, side) for side in (-1, 1))
    if bound:
        truncated = right * lattice.spacing > np.log(bound) - 5 / np.sqrt(bound)
        steps = np.where(truncated, np.minimum(steps, near_bound), steps)
    # Every integral takes every 2^k-th point of one lattice, at which the normaliser is tabulated once.
    stride = np.exp2(np.floor(np.log2(steps / lattice.spacing) + 1e-9))
    first = np.floor(left / stride)
    counts = (np.ceil(right / stride) - first).astype(np.intp) + 1
    return _trapezoidal_rule(y, eta, tau, lattice, first * stride, stride, counts)


def _trapezoidal_rule(
    y: Floats, eta: Floats, tau: Floats | float, lattice: _NodeLattice, first: Floats, stride: Floats, counts: Indices
) -> RateQuadrature:
    """Evaluate the trapezoidal rule of every integral.

    It has ``counts`` (n,) nodes from the lattice point ``first`` (n,) on, ``stride`` (n,) points apart.
    """
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
class _NodeLattice:
    """A lattice of nodes, the multiples k of one spacing, with the normaliser A tabulated on it.

    spacing: distance of neighbouring nodes
    bound: largest count; None without truncation
    first: multiple at the start of the table
    table: A at the nodes; None where the table would be too large or A needs none
    """

    spacing: float
    bound: int | None
    first: float
    table: Floats | None

    @classmethod
    def from_modes(
        cls, modes: Floats, tau: float, spacing: float, largest_step: float, bound: int | None
    ) -> _NodeLattice:
        """Make a lattice on which every mode keeps 9 tau and a step, or 2 spacings, to either side."""
        # An integral begins and ends at a multiple of its own step. Where tau is small and the bound large, a step is
        # hundreds of spacings: nodes beyond the table would raise IndexError, or be read from its other end.
        reach = np.ceil((9 * tau + largest_step) / spacing) + 2
        first, last = np.floor(modes.min() / spacing) - reach, np.ceil(modes.max() / spacing) + reach
        if bound is None or last - first > _LARGEST_TABLE:
            return cls(spacing, bound, first, None)
        return cls(spacing, bound, first, log_normaliser(np.arange(first, last + 1) * spacing, bound))

    def log_normaliser(self, k: Floats) -> Floats:
        """Return A at the nodes k."""
        if self.table is None:
            return log_normaliser(k * self.spacing, self.bound)
        return self.table[(k - self.first).astype(np.intp)]


def _lattice_edge(
    y: Floats, eta: Floats, tau: Floats | float, lattice: _NodeLattice, mode: Floats, curvature: Floats, side: int
) -> Floats:
    """Return a lattice point on one side of the mode beyond which the integrand is negligible, (n,)."""
    height = _log_integrand(y, np.rint(mode / lattice.spacing), eta, tau, lattice)
    inner, outer = 1 / np.sqrt(curvature), np.zeros_like(mode) + np.sqrt(2 * _DROP) * tau
    for _ in range(5):
        middle = np.sqrt(inner * outer)
        k = np.rint((mode + side * middle) / lattice.spacing)
        outside = _log_integrand(y, k, eta, tau, lattice) < height - _DROP
        inner, outer = np.where(outside, inner, middle), np.where(outside, middle, outer)
    return np.asarray(np.rint((mode + side * outer) / lattice.spacing))


def _log_integrand(y: Floats, k: Floats, eta: Floats, tau: Floats | float, lattice: _NodeLattice) -> Floats:
    g = k * lattice.spacing
    return y * g - lattice.log_normaliser(k) - 0.5 * ((g - eta) / tau) ** 2


@dataclass(frozen=True, eq=False)
class PredictedRates:
    """Predictions of a model's parameters for n records.

    eta: mean of the log rate, (n,)
    logit_p: logit of the probability of an inflated zero, (n,)
    tau: standard deviation of the random effect
    """

    eta: Floats
    logit_p: Floats
    tau: float

    @classmethod
    def from_theta(cls, theta: Floats, predictor: Callable[[Floats], Floats]) -> PredictedRates:
        """Predict by theta (2K + 1,), alpha, beta and log tau; ``predictor`` takes coefficients (K,) to x times them,
        (n,).
        """
        k = theta.size // 2
        return cls(predictor(theta[:k]), predictor(theta[k : 2 * k]), float(np.exp(theta[-1])))


def draw_counts(
    predicted: PredictedRates,
    bound: int | None,
    random_effect: RandomEffect,
    rng: np.random.Generator,
    observed_y: ArrayLike | None = None,
    observed: PredictedRates | None = None,
) -> Counts:
    """Draw one synthetic count for every record of ``predicted``, (n,), in 0..bound.

    ``"new"`` draws every random effect from N(0, tau), the posterior predictive of a new record. ``"record"`` draws it
    from its posterior given the record's confidential count ``observed_y`` (n,) and the prediction for its confidential
    design, ``observed``, by default ``predicted``; the zero inflation is drawn independently. Raises BadInput for
    "record" without ``observed_y``.
    """
    n = predicted.eta.size
    if random_effect == "new":
        effects = np.asarray(rng.normal(0.0, predicted.tau, n))
    elif observed_y is None:
        raise BadInput("random_effect", 'needs the observed counts when it is "record"')
    else:
        seen = predicted if observed is None else observed
        effects = draw_random_effects(seen, np.asarray(observed_y, dtype=np.float64), bound, rng)
    at_risk = np.flatnonzero(rng.random(n) >= expit(predicted.logit_p))
    counts = np.zeros(n, dtype=np.int64)
    counts[at_risk] = draw_truncated_poisson((predicted.eta + effects)[at_risk], bound, rng)
    return counts


def _sorted_draws(predicted: PredictedRates, rows: slice, bound: int | None, rng: np.random.Generator) -> Counts:
    """Draw counts of some records without inflated zeros, ascending, (r, DRAWS_AT_PLACES).

    Random effects are drawn one in each part of equal probability.
    """
    eta = predicted.eta[rows]
    parts = (np.arange(DRAWS_AT_PLACES) + rng.random((len(eta), DRAWS_AT_PLACES))) / DRAWS_AT_PLACES
    rates = eta[:, None] + predicted.tau * ndtri(np.maximum(parts, SMALLEST))
    return np.sort(draw_truncated_poisson(rates.ravel(), bound, rng).reshape(rates.shape), axis=1)


def chances_of_counts(predicted: PredictedRates, cuts: Floats, bound: int | None, rng: np.random.Generator) -> Floats:
    """Return the probability of a count up to each cut (c,) for every record, (n, c), estimated by draws."""
    n, zero = predicted.eta.size, expit(predicted.logit_p)
    found = np.empty((n, len(cuts)))
    for rows in row_blocks(n, DRAWS_AT_PLACES):
        drawn = _sorted_draws(predicted, rows, bound, rng)
        # Half a draw more and less, so that no count is impossible.
        for j, cut in enumerate(cuts):
            at_risk = ((drawn <= cut).sum(axis=1) + 0.5) / (DRAWS_AT_PLACES + 1)
            found[rows, j] = zero[rows] + (1 - zero[rows]) * at_risk
    return found


def draw_counts_at(places: Floats, predicted: PredictedRates, bound: int | None, rng: np.random.Generator) -> Counts:
    """Draw the count at each place (n,) of its record's distribution, (n,), in 0..bound.

    Inflated zeros lie lowest. Above them it is the draw at this place among many: whichever place of uniform ones, its
    distribution is that of the draws, and so that of ``draw_counts``.
    """
    zero = expit(predicted.logit_p)
    counts = np.zeros(places.size, dtype=np.int64)
    rest = np.minimum((places - zero) / np.maximum(1 - zero, SMALLEST), 1.0)
    for rows in row_blocks(places.size, DRAWS_AT_PLACES):
        drawn = _sorted_draws(predicted, rows, bound, rng)
        which = np.clip((rest[rows] * DRAWS_AT_PLACES).astype(np.intp), 0, DRAWS_AT_PLACES - 1)
        counts[rows] = np.where(rest[rows] >= 0, np.take_along_axis(drawn, which[:, None], axis=1)[:, 0], 0)
    return counts


def draw_random_effects(seen: PredictedRates, y: Floats, bound: int | None, rng: np.random.Generator) -> Floats:
    """Draw one exact eps from p(eps | y, x, theta) for every record, (n,)."""
    eta, tau = seen.eta, seen.tau
    effects = rng.normal(0.0, tau, y.size)
    zero = np.flatnonzero(y == 0)
    # A zero is an inflated one, which says nothing of eps, with probability p / (p + (1 - p) P(0 | eta, tau)).
    inflated = rng.random(zero.size) < expit(seen.logit_p[zero] - _log_probability_of_zero(eta[zero], tau, bound))
    informed = np.union1d(np.flatnonzero(y > 0), zero[~inflated])
    effects[informed] = draw_log_rate(y[informed], eta[informed], tau, bound, rng) - eta[informed]
    return effects


def _log_probability_of_zero(eta: Floats, tau: float, bound: int | None) -> Floats:
    # Records with the same predictors share an integral.
    """Return log P(0 | eta, tau), (n,)."""
    distinct, place = np.unique(eta, return_inverse=True)
    if distinct.size == 0:
        return eta
    return rate_quadrature(np.zeros_like(distinct), distinct, tau, bound).log_mass[place]
