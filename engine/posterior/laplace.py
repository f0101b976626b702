"""Laplace's approximation of a posterior, corrected by importance resampling.

Newton's method finds the mode; a multivariate t with the inverse Hessian's scale proposes; Pareto-smoothed importance
weights correct the approximation, and say whether that was good enough (k-hat at most 0.7: Vehtari et al. 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import numpy as np
from scipy.special import gammaln

from ..data.arrays import Floats
from ..errors import NotConverged
from ..methods.results import LOG_POSTERIOR, Diagnostic, Fit, ImportanceTrace, SamplerDraws, Trace
from ..methods.run import Progress

_SMALLEST_TAIL = 5
_LOG_TINY = float(np.log(np.finfo(float).tiny))
LARGEST_PARETO_K = 0.7
_SATISFACTORY_PARETO_K = 0.5
_MOST_REFITS = 3
_FEWEST_PROPOSALS = 2000
_FREEDOM = 5.0
_BATCH = 500
_MOST_KEPT = 4000


class SmoothLogDensity(Protocol):
    """A smooth log density of theta (d,)."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def start(self) -> Floats:
        """Return the point at which the search for the mode starts, (d,)."""

    def derivatives(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Return log density (-inf outside its support), gradient (d,) and Hessian (d, d)."""

    def density_around(self, centre: Floats, covariance: Floats) -> Callable[[Floats], Floats]:
        """Return a function for the log density of many theta at once, (T, d) -> (T,), made fast around ``centre``."""


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws from a posterior, and how the sampler fared.

    theta: draws, (S, d)
    names: names of the parameters
    diagnostics: diagnostics of the sampler
    trace: what the sampler left for inspection
    chains: all its chains, where requested
    """

    theta: Floats
    names: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    trace: Trace | None = None
    chains: SamplerDraws | None = None


def require_converged(diagnostics: Iterable[Diagnostic], left: Fit, reached: str = "") -> None:
    """Raise NotConverged for the first diagnostic that does not pass.

    The error carries the sampler's result ``left``, and in words how far it got, ``reached``.
    """
    for found in diagnostics:
        if found.passed is False and found.value is not None:
            raise NotConverged(found.parameter, found.name, found.value, f"must be {found.rule}{reached}", left)


# Ours and not arviz-stats', with which a test compares it, because draws depend on the weights: that library raises
# ValueError for a flat tail and for fewer than 25 ratios, divides by zero where all weights but the largest vanish, and
# sorts ties in the machine's order, so that one seed would not draw the same everywhere.
def fit_generalised_pareto(excess: Floats) -> tuple[float, float]:
    """Fit shape k and scale sigma of a generalised Pareto distribution to sorted excesses (n,) over a threshold.

    The profile posterior mean of Zhang and Stephens (2009), with k drawn towards 0.5 as by ten observations
    (Vehtari et al. 2024, appendix G).
    """
    n = excess.size
    m = 30 + int(np.sqrt(n))
    theta = 1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    theta = theta / (3 * excess[int(n / 4 + 0.5) - 1]) + 1 / excess[-1]
    k = np.mean(np.log1p(-theta[:, None] * excess), axis=1)
    profile = n * (np.log(-theta / k) - k - 1)
    weights = np.exp(profile - profile.max())
    weights /= weights.sum()
    best = float(weights @ theta)
    shape = float(np.mean(np.log1p(-best * excess)))
    return (n * shape + 10 * 0.5) / (n + 10), -shape / best


def smooth_weights(log_ratios: Floats) -> tuple[Floats, float]:
    """Return normalised weights (S,) with their upper tail smoothed, and the shape k-hat of that tail.

    k-hat is infinite when fewer than five ratios are left to fit, and minus infinite when the tail is flat.
    """
    log_weights = log_ratios - log_ratios.max()
    # The largest min(S / 5, 3 sqrt(S)) ratios (Vehtari et al. 2024).
    tail = int(min(0.2 * log_weights.size, 3 * np.sqrt(log_weights.size)))
    if tail < _SMALLEST_TAIL:
        return _normalise_weights(log_weights), np.inf
    # Ties keep their order, so that one seed draws the same on every machine.
    order = np.argsort(log_weights, kind="stable")
    largest = order[-tail:]
    threshold = np.exp(max(log_weights[order[-tail - 1]], _LOG_TINY))
    excess = np.maximum(np.exp(log_weights[largest]) - threshold, np.finfo(float).tiny)
    if excess[0] == excess[-1]:
        return _normalise_weights(log_weights), -np.inf
    shape, scale = fit_generalised_pareto(excess)
    # Replaced by the expected order statistics of the fitted distribution, cut at the largest ratio below.
    smoothed = threshold + _pareto_quantile((np.arange(tail) + 0.5) / tail, shape, scale)
    log_weights[largest] = np.minimum(np.log(smoothed), 0.0)
    return _normalise_weights(log_weights), float(shape)


def _normalise_weights(log_weights: Floats) -> Floats:
    """Return weights that sum to 1."""
    weights = np.exp(log_weights)
    return np.asarray(weights / weights.sum())


def _pareto_quantile(p: Floats, shape: float, scale: float) -> Floats:
    # The exponential distribution is the limit at shape 0, where the formula divides by 0.
    """Return quantiles of a generalised Pareto distribution."""
    if abs(shape) < 1e-12:
        return -scale * np.log1p(-p)
    return scale * np.expm1(-shape * np.log1p(-p)) / shape


def weights_sample_size(weights: Floats) -> float:
    """Return the effective sample size 1 / sum w^2 of normalised weights (S,) (Kong 1992)."""
    return float(1 / np.sum(weights**2))


@dataclass(frozen=True)
class DensityMode:
    """The maximum of a log density.

    theta: its place, (d,)
    value: log density there
    covariance: inverse of minus its Hessian there, (d, d)
    """

    theta: Floats
    value: float
    covariance: Floats


def find_mode(target: SmoothLogDensity, *, tolerance: float = 1e-4, most_steps: int = 100) -> DensityMode:
    """Find the mode of a log density by Newton's method with a line search.

    It ends when a step promises less than ``tolerance`` log units. Raises NotConverged when it does not get there.
    """
    theta = target.start()
    value, gradient, hessian = target.derivatives(theta)
    for _ in range(most_steps):
        step = _ascent_direction(gradient, hessian)
        promised = float(gradient @ step)
        if promised < tolerance:
            # A level point may be a saddle, which is left where the density bends up most.
            step = _step_off_saddle(gradient, hessian)
            if not step.any():
                return DensityMode(theta, value, _inverse_information(target, hessian, gradient))
        theta, (value, gradient, hessian) = _line_search(target, theta, value, step, promised)
    worst = int(np.argmax(np.abs(gradient)))
    raise NotConverged(target.names[worst], "gradient", float(gradient[worst]), "must vanish at the mode")


def _ascent_direction(gradient: Floats, hessian: Floats) -> Floats:
    """Return an ascent direction, (d,): the Newton step, with the sizes of the eigenvalues of the Hessian."""
    curvatures, vectors = np.linalg.eigh(-hessian)
    # Where the Hessian is not negative definite the plain Newton step may lead downhill.
    sizes = np.maximum(np.abs(curvatures), 1e-8 * (np.abs(curvatures).max() or 1.0))
    return np.asarray(vectors @ ((vectors.T @ gradient) / sizes))


def _step_off_saddle(gradient: Floats, hessian: Floats) -> Floats:
    """Return a step off a saddle, (d,): one length scale along the direction that bends up most; 0 at a maximum."""
    curvatures, vectors = np.linalg.eigh(-hessian)
    if curvatures[0] > -1e-6 * np.abs(curvatures).max():
        return np.zeros_like(gradient)
    sign = 1.0 if gradient @ vectors[:, 0] >= 0 else -1.0
    return np.asarray(sign * vectors[:, 0] / np.sqrt(-curvatures[0]))


def _line_search(
    target: SmoothLogDensity, theta: Floats, value: float, step: Floats, promised: float
) -> tuple[Floats, tuple[float, Floats, Floats]]:
    """Halve the step until the density rises enough; return the point and its derivatives. Raises NotConverged."""
    length = 1.0
    for _ in range(50):
        there = target.derivatives(theta + length * step)
        # Armijo's rule, with room for rounding, which is all that is left near the mode.
        if there[0] >= value + 1e-4 * length * promised - 1e-10 * abs(value):
            return theta + length * step, there
        length /= 2
    worst = int(np.argmax(np.abs(step)))
    raise NotConverged(target.names[worst], "Newton step", float(step[worst]), "must lead uphill")


def _inverse_information(target: SmoothLogDensity, hessian: Floats, gradient: Floats) -> Floats:
    """Return the inverse of minus the Hessian, (d, d). Raises NotConverged if it is not positive definite."""
    curvatures, vectors = np.linalg.eigh(-hessian)
    if curvatures[0] <= 0:
        flattest = int(np.argmax(np.abs(vectors[:, 0])))
        raise NotConverged(target.names[flattest], "curvature", float(curvatures[0]), "must be positive at the mode")
    return np.asarray((vectors / curvatures) @ vectors.T)


@dataclass(frozen=True)
class MultivariateT:
    """A multivariate t distribution.

    location: its centre, (d,)
    factor: lower Cholesky factor of its scale, (d, d)
    freedom: degrees of freedom
    """

    location: Floats
    factor: Floats
    freedom: float

    def draw_points(self, n: int, rng: np.random.Generator | np.random.RandomState) -> Floats:
        """Draw n points, (n, d)."""
        normal = rng.standard_normal((n, self.location.size))
        spread = np.sqrt(self.freedom / rng.chisquare(self.freedom, n))
        return self.location + spread[:, None] * (normal @ self.factor.T)

    def log_density(self, theta: Floats) -> Floats:
        """Return the log density at theta (n, d), (n,)."""
        d, f = self.location.size, self.freedom
        white = np.linalg.solve(self.factor, (theta - self.location).T)
        constant = gammaln((f + d) / 2) - gammaln(f / 2) - d / 2 * np.log(f * np.pi)
        log_determinant = np.sum(np.log(np.diag(self.factor)))
        return np.asarray(constant - log_determinant - (f + d) / 2 * np.log1p(np.sum(white**2, axis=0) / f))


def sample_laplace(
    target: SmoothLogDensity,
    draws: int,
    rng: np.random.Generator,
    report: Callable[[Progress], None],
    *,
    proposals: int | None = None,
    accept_unconverged: bool = False,
) -> PosteriorDraws:
    """Draw ``draws`` draws, resampled by their importance from a multivariate t around the mode.

    While k-hat is above 0.5 the t is fitted again to the weighted proposals, three times at most. Raises NotConverged
    when the mode is not found, or when k-hat ends above 0.7 unless ``accept_unconverged``.
    """
    mode = find_mode(target)
    log_density = target.density_around(mode.theta, mode.covariance)
    found = draw_weighted_proposals(log_density, mode, proposals or max(_FEWEST_PROPOSALS, 4 * draws), rng, report)
    trace = _importance_trace(found, mode, target.names)
    if not accept_unconverged:
        require_converged(found.diagnostics, Fit({}, found.diagnostics, trace))
    # Without replacement the draws are distinct, but with few effective proposals that would draw improbable ones too.
    few = 10 * draws <= weights_sample_size(found.weights)
    chosen = rng.choice(found.weights.size, draws, replace=not few, p=found.weights)
    return PosteriorDraws(found.thetas[chosen], target.names, found.diagnostics, trace)


@dataclass(frozen=True)
class WeightedDraws:
    """Proposals with their importance weights.

    thetas: proposals, (S, d)
    values: their log densities, (S,)
    weights: normalised weights, (S,)
    diagnostics: how good the weights are
    """

    thetas: Floats
    values: Floats
    weights: Floats
    diagnostics: tuple[Diagnostic, ...]


def draw_weighted_proposals(
    log_density: Callable[[Floats], Floats],
    mode: DensityMode,
    n: int,
    rng: np.random.Generator,
    report: Callable[[Progress], None],
) -> WeightedDraws:
    """Draw ``n`` proposals of a multivariate t around a mode, or near one, with their importance weights.

    While k-hat is above 0.5 the t is fitted again to the weighted proposals, three times at most.
    """
    proposal = MultivariateT(mode.theta, _lower_cholesky(mode.covariance), _FREEDOM)
    for refits in count():
        thetas = proposal.draw_points(n, rng)
        values = _log_densities_in_batches(log_density, thetas, report)
        weights, shape = smooth_weights(values - proposal.log_density(thetas))
        if shape <= _SATISFACTORY_PARETO_K or refits == _MOST_REFITS:
            break
        proposal = _refit_proposal(proposal, thetas, weights)
    return WeightedDraws(thetas, values, weights, _importance_diagnostics(shape, weights_sample_size(weights), refits))


def _importance_trace(found: WeightedDraws, mode: DensityMode, names: tuple[str, ...]) -> ImportanceTrace:
    """Return the trace of the first proposals, at most 4,000."""
    # Proposals are independent, so that the first ones are a sample of all.
    draws = np.column_stack([found.thetas, found.values - found.values.max()])[:_MOST_KEPT]
    weights = found.weights[:_MOST_KEPT]
    weights = weights / max(weights.sum(), np.finfo(float).tiny)
    sds = np.sqrt(np.diag(mode.covariance))
    kept = draws.astype(np.float32), weights.astype(np.float32)
    return ImportanceTrace((*names, LOG_POSTERIOR), *kept, mode.theta, sds)


def _lower_cholesky(scale: Floats) -> Floats:
    return np.asarray(np.linalg.cholesky(scale), dtype=np.float64)


def _log_densities_in_batches(
    log_density: Callable[[Floats], Floats], thetas: Floats, report: Callable[[Progress], None]
) -> Floats:
    """Evaluate the log density of proposals (S, d) in batches, and report the progress: (S,)."""
    values = np.empty(thetas.shape[0])
    for first in range(0, values.size, _BATCH):
        values[first : first + _BATCH] = log_density(thetas[first : first + _BATCH])
        report(Progress(min(first + _BATCH, values.size), values.size, "importance draws"))
    return values


def _refit_proposal(proposal: MultivariateT, thetas: Floats, weights: Floats) -> MultivariateT:
    """Refit location and scale of the proposal to the weighted moments (Cappé et al. 2008)."""
    location = weights @ thetas
    centred = thetas - location
    # A tenth of the old scale is kept: few effective proposals would make it singular or too narrow.
    scale = 0.9 * centred.T @ (weights[:, None] * centred) + 0.1 * proposal.factor @ proposal.factor.T
    return MultivariateT(location, _lower_cholesky(scale), proposal.freedom)


def _importance_diagnostics(shape: float, sample_size: float, refits: int) -> tuple[Diagnostic, ...]:
    """Report k-hat, the effective sample size and the number of refits."""
    passed = shape <= LARGEST_PARETO_K
    return (
        Diagnostic("pareto_k", "all parameters", shape, f"at most {LARGEST_PARETO_K}", passed),
        Diagnostic("effective_sample_size", "all parameters", sample_size),
        Diagnostic("proposals_fitted_again", "all parameters", float(refits)),
    )
