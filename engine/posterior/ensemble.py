"""Ensemble sampling of a posterior with emcee (Foreman-Mackey et al. 2013), started from the mode.

Coordinates are whitened by the mode's normal approximation. Two moves alternate at random: differential evolution
(ter Braak 2006; Nelson et al. 2014), which learns from the ensemble alone, and an independence proposal from a
multivariate t around the mode. emcee's own snooker move is not used: in emcee 3.1.6 it samples a 17-dimensional normal
with variance 0.58 (mended upstream after that release).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import emcee
import numpy as np
from numpy.typing import NDArray

from ..results import Diagnostic, Fit
from ..run import Progress, legacy_state
from .chain_trace import chain_trace
from .diagnostics import bulk_effective_sample_size, rank_normalised_split_r_hat, tail_effective_sample_size
from .laplace import StudentT, find_mode
from .posterior import Posterior, Target, require_converged

__all__ = ["LARGEST_R_HAT", "SMALLEST_SIZE", "sample_emcee"]

Floats = NDArray[np.float64]

LARGEST_R_HAT = 1.01
SMALLEST_SIZE = 400.0
_BURN_IN = 0.2
_BLOCK = 50
_FIRST_CHECK = 400


def sample_emcee(
    target: Target,
    draws: int,
    rng: np.random.Generator,
    report: Callable[[Progress], None],
    *,
    walkers: int | None = None,
    most_steps: int = 20_000,
    independence: float = 0.5,
    accept_unconverged: bool = False,
) -> Posterior:
    """``draws`` draws from an ensemble that is run until it has converged, or for ``most_steps`` steps.

    ``walkers`` is by default the smallest even number above twice the dimension plus 5; ``independence`` is the share
    of the steps that propose from the mode's approximation. Converged means R-hat at most 1.01 and effective sample
    sizes of bulk and tails of at least 400 (Vehtari et al. 2021), every walker a chain, the first fifth of the steps left
    out. Raises NotConverged, naming the worst parameter, unless ``accept_unconverged``.
    """
    mode = find_mode(target)
    factor = np.linalg.cholesky(mode.covariance)
    density = target.near(mode.theta, mode.covariance)
    sampler = emcee.EnsembleSampler(
        walkers or 2 * mode.theta.size + 6,
        mode.theta.size,
        lambda white: density(mode.theta + white @ factor.T),
        vectorize=True,
        moves=_moves(mode.theta.size, independence),
    )
    state = emcee.State(_first_positions(sampler, rng), random_state=legacy_state(rng))
    whole = Ensemble(sampler, mode.theta, np.asarray(factor), target.names)
    diagnostics = _run_until_converged(whole, state, most_steps, report)
    theta = whole.theta
    trace = chain_trace(theta, sampler.get_log_prob(), target.names, whole.burn_in)
    if not accept_unconverged:
        require_converged(sorted(diagnostics, key=_doubt, reverse=True), Fit({}, diagnostics, trace))
    settled = theta[whole.burn_in :].reshape(-1, theta.shape[2])
    chosen = rng.choice(settled.shape[0], draws, replace=draws > settled.shape[0])
    return Posterior(settled[chosen], target.names, diagnostics, trace)


@dataclass(frozen=True)
class Ensemble:
    """emcee's sampler with what leads back from its white coordinates: theta = mode + factor white."""

    sampler: Any
    mode: Floats
    factor: Floats
    names: tuple[str, ...]

    @property
    def theta(self) -> Floats:
        """Every step so far, (steps, walkers, d)."""
        return np.asarray(self.mode + self.sampler.get_chain() @ self.factor.T)

    @property
    def burn_in(self) -> int:
        """How many steps at the start are left out."""
        return int(_BURN_IN * self.sampler.iteration)


def _moves(dimension: int, independence: float) -> list[tuple[Any, float]]:
    proposal = StudentT(np.zeros(dimension), np.eye(dimension), 10.0)

    def independent(white: Floats, random: np.random.RandomState) -> tuple[Floats, Floats]:
        proposed = proposal.draw(white.shape[0], random)
        return proposed, proposal.log_density(white) - proposal.log_density(proposed)

    steps = [(emcee.moves.DEMove(), 1 - independence), (emcee.moves.MHMove(independent), independence)]
    return [(move, share) for move, share in steps if share > 0]


def _first_positions(sampler: Any, rng: np.random.Generator) -> Floats:
    """Draws of the normal approximation, drawn in towards the mode where they leave the support."""
    white = rng.standard_normal((sampler.nwalkers, sampler.ndim))
    outside = ~np.isfinite(sampler.log_prob_fn(white))
    while np.any(outside):
        white[outside] /= 2
        outside = ~np.isfinite(sampler.log_prob_fn(white))
    return white


def _run_until_converged(
    whole: Ensemble, state: Any, most_steps: int, report: Callable[[Progress], None]
) -> tuple[Diagnostic, ...]:
    """Steps in blocks; looks at convergence ever more rarely, as each look costs more."""
    sampler, check, latest = whole.sampler, min(_FIRST_CHECK, most_steps), state
    while True:
        latest = sampler.run_mcmc(latest, min(_BLOCK, check - sampler.iteration), skip_initial_state_check=True)
        report(Progress(sampler.iteration, most_steps, "ensemble steps"))
        if sampler.iteration == check:
            diagnostics = _diagnostics(whole)
            if check == most_steps or all(found.passed is not False for found in diagnostics):
                return diagnostics
            check = min(int(1.4 * check), most_steps)


def _diagnostics(whole: Ensemble) -> tuple[Diagnostic, ...]:
    """R-hat, sample sizes and autocorrelation time (in steps) of every parameter, and the ensemble's acceptance."""
    chain = whole.theta[whole.burn_in :]
    times = emcee.autocorr.integrated_time(chain, tol=0, quiet=True)
    found = [Diagnostic("acceptance", "all parameters", float(whole.sampler.acceptance_fraction.mean()))]
    for i, name in enumerate(whole.names):
        chains = np.ascontiguousarray(chain[:, :, i].T)
        r_hat = rank_normalised_split_r_hat(chains)
        found += [
            Diagnostic("r_hat", name, r_hat, f"at most {LARGEST_R_HAT}", r_hat <= LARGEST_R_HAT),
            _size("effective_sample_size", name, bulk_effective_sample_size(chains)),
            _size("tail_effective_sample_size", name, tail_effective_sample_size(chains)),
            Diagnostic("autocorrelation_time", name, float(times[i])),
        ]
    return tuple(found)


def _size(statistic: str, name: str, size: float) -> Diagnostic:
    return Diagnostic(statistic, name, size, f"at least {SMALLEST_SIZE:.0f}", size >= SMALLEST_SIZE)


def _doubt(found: Diagnostic) -> tuple[bool, float]:
    """Orders diagnostics by how much they speak against convergence: R-hats first, then small sample sizes."""
    value = found.value or 0.0
    return found.name == "r_hat", value if found.name == "r_hat" else -value
