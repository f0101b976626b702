"""Draws by emcee's ensemble sampler, convergence statistics of its chains, and their trace.

Chains are arrays (chains, steps) of one parameter. Sections and equations without a source are those of Vehtari et al.
(2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import emcee
import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from ..data.arrays import Floats
from ..methods.chains import chain_storage_bytes
from ..methods.results import LOG_POSTERIOR, ChainTrace, Diagnostic, Fit, SamplerDraws
from ..methods.run import Progress, legacy_state
from .continued import geometric_lengths, run_until_converged
from .laplace import MultivariateT, PosteriorDraws, SmoothLogDensity, find_mode, require_converged

MOST_POINTS = 500
MOST_CHAINS = 4
GROUPS = 2
RANK_BINS = 20
VALUE_BINS = 96
MOST_LAGS = 200
BAND = (0.05, 0.5, 0.95)
LARGEST_R_HAT = 1.01
SMALLEST_SIZE = 400.0
MOST_STEPS = 20_000
_BURN_IN = 0.2
_BLOCK = 50
_FIRST_CHECK = 400
_BETWEEN_CHECKS = 1.4


def rank_normalised_split_r_hat(chains: Floats) -> float:
    """Return the rank-normalised split R-hat (section 4), the larger one of ranks (location) and folded ranks (scale).

    Infinite for chains of which none ever moves.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = float(_array_stats().rhat(chains, chain_axis=0, draw_axis=1, method="rank"))
    return np.inf if np.isnan(r_hat) else r_hat


def bulk_effective_sample_size(chains: Floats) -> float:
    """Return the effective sample size of the rank-normalised split chains, sections 3 and 4.1."""
    return _effective_sample_size(chains, "bulk")


def tail_effective_sample_size(chains: Floats) -> float:
    """Return the smaller of the effective sample sizes of the 5 % and the 95 % quantile, section 4.3."""
    ends = np.quantile(chains, [0.05, 0.95])
    return min(_effective_sample_size((chains <= end).astype(np.float64), "mean") for end in ends)


def _effective_sample_size(chains: Floats, method: Literal["bulk", "mean"]) -> float:
    """Return the effective sample size of arviz-stats; a constant counts as one draw for each chain."""
    # arviz-stats takes a constant for as many independent draws, but a chain that never moves has explored nothing.
    if np.ptp(chains) == 0:
        return float(chains.shape[0])
    return float(_array_stats().ess(chains, chain_axis=0, draw_axis=1, method=method))


def _array_stats() -> Any:
    """Return the functions of arviz-stats that take arrays."""
    # A heavy import, which only waits for chains to be judged.
    from arviz_stats.base import array_stats

    return array_stats


# Ours: arviz-stats has the autocorrelation of single chains only, and no count of ranks for plots.
def joint_autocorrelation(chains: Floats, lags: int) -> Floats:
    """Return the autocorrelation of the chains together at the lags 0 to ``lags`` - 1, eq. 10: (lags,).

    Where the chains differ it does not fall to 0, as that of a single chain would.
    """
    return _combined_autocorrelation(chains)[:lags]


def rank_bins(chains: Floats, bins: int) -> NDArray[np.int64]:
    """Return the bin of each draw by its rank among all draws, from 0, (chains, steps); section 4.2."""
    from scipy.stats import rankdata

    ranks = rankdata(chains, method="average").reshape(chains.shape)
    return np.asarray((ranks - 0.5) / chains.size * bins).astype(np.int64)


def _combined_autocorrelation(chains: Floats) -> Floats:
    """Return the autocorrelation of all chains (chains, steps) together, (steps,); 1 for chains that never move."""
    steps = chains.shape[1]
    between = np.var(chains.mean(axis=1), ddof=1)
    autocovariance = _autocovariance(chains).mean(axis=0)
    within = autocovariance[0] * steps / (steps - 1)
    whole = within * (steps - 1) / steps + between
    correlation = 1 - (within - autocovariance) / whole if whole > 0 else np.ones(steps)
    correlation[0] = 1.0
    return np.asarray(correlation)


def _autocovariance(chains: Floats) -> Floats:
    """Return the autocovariance of each chain at every lag, (chains, steps)."""
    steps = chains.shape[1]
    # Padded to twice the length, or the Fourier transform would wrap the chain's end to its start.
    length = next_fast_len(2 * steps)
    spectrum = rfft(chains - chains.mean(axis=1, keepdims=True), length, axis=1)
    return np.asarray(irfft(np.abs(spectrum) ** 2, length, axis=1)[:, :steps] / steps)


def chain_trace(
    theta: Floats, log_density: Floats, names: Sequence[str], burn_in: int, density: str = LOG_POSTERIOR
) -> ChainTrace:
    """Make the trace of chains ``theta`` (steps, chains, d).

    ``log_density`` (steps, chains) is theirs, and is named ``density``. At most 500 steps are kept, evenly spaced up to
    the last: all chains as a band of quantiles at every step, and four by themselves. Ranks are counted in split
    groups: every other walker together, the first half of the steps apart from the second.
    """
    whole = np.concatenate([theta, log_density[..., None] - log_density.max()], axis=2)
    every = -(-whole.shape[0] // MOST_POINTS)
    kept = np.arange((whole.shape[0] - 1) % every, whole.shape[0], every)
    # An ensemble has too many walkers to draw, each moved by the others (Foreman-Mackey et al. 2013, section 2). By
    # their mean log posterior the lowest is chosen too, so that a walker left behind is among the four.
    chosen = _choose_chains(log_density[burn_in:].mean(axis=0))
    settled = whole[burn_in:]
    names_of_groups, groups = _split_groups(*settled.shape[:2])
    low, high = settled.min(axis=(0, 1)), settled.max(axis=(0, 1))
    parameters = range(whole.shape[2])
    return ChainTrace(
        (*names, density),
        whole.shape[1],
        burn_in,
        kept + 1,
        chosen + 1,
        whole[np.ix_(kept, chosen)].transpose(1, 0, 2).astype(np.float32),
        np.quantile(whole[kept], BAND, axis=1).astype(np.float32),
        names_of_groups,
        _stack_parameters(
            [_count_by_group(rank_bins(settled[..., j].T, RANK_BINS), groups, RANK_BINS) for j in parameters]
        ),
        _stack_parameters(
            [_count_by_group(_value_bins(settled[..., j].T, low[j], high[j]), groups, VALUE_BINS) for j in parameters]
        ),
        low,
        high,
        _stack_parameters([_trace_autocorrelation(settled[..., j].T) for j in parameters]).astype(np.float32),
    )


def _choose_chains(height: Floats) -> NDArray[np.intp]:
    """Choose four chains to keep by their mean log posterior (C,): the lowest, the highest, and two evenly between."""
    order = np.argsort(height, kind="stable")
    return order[np.unique(np.rint(np.linspace(0, order.size - 1, MOST_CHAINS)).astype(np.intp))]


def _split_groups(steps: int, chains: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the names of the split groups, and the group of each draw, (chains, steps)."""
    number = min(GROUPS, chains)
    late = (np.arange(steps) >= steps // 2).astype(np.int64)
    names = tuple(f"{i + 1} {half}" for i in range(number) for half in ("early", "late"))
    return names, 2 * (np.arange(chains)[:, None] % number) + late


def _value_bins(values: Floats, low: float, high: float) -> NDArray[np.int64]:
    """Return the bin of each value between the lowest and the highest, from 0; the middle one if they are equal."""
    scaled = (values - low) / (high - low) if high > low else np.full(values.shape, 0.5)
    return np.minimum((scaled * VALUE_BINS).astype(np.int64), VALUE_BINS - 1)


def _count_by_group(place: NDArray[np.int64], group: NDArray[np.int64], bins: int) -> NDArray[np.uint32]:
    """Count the draws of each group in each bin, (groups, bins)."""
    groups = int(group.max()) + 1
    counts = np.bincount((group * bins + place).ravel(), minlength=groups * bins)
    return counts.reshape(groups, bins).astype(np.uint32)


def _trace_autocorrelation(chains: Floats) -> Floats:
    return joint_autocorrelation(chains, min(MOST_LAGS, chains.shape[1] // 2))


def _stack_parameters(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.stack(columns, axis=-1)


def sample_emcee(
    target: SmoothLogDensity,
    draws: int,
    rng: np.random.Generator,
    report: Callable[[Progress], None],
    *,
    walkers: int | None = None,
    most_steps: int = MOST_STEPS,
    independence: float = 0.5,
    accept_unconverged: bool = False,
    keep_chains: bool = False,
) -> PosteriorDraws:
    """Draw ``draws`` draws from an ensemble that is run until it has converged, or for ``most_steps`` steps.

    ``walkers`` is by default ``default_walkers``; ``independence`` is the share of the steps that propose from the
    mode's approximation. Converged means R-hat at most 1.01 and effective sample sizes of bulk and tails of at least
    400 (Vehtari et al. 2021), every walker a chain, the first fifth of the steps left out. Raises NotConverged with the
    worst parameter, unless ``accept_unconverged``. With ``keep_chains`` every step of every walker is returned too.
    """
    mode = find_mode(target)
    factor = np.linalg.cholesky(mode.covariance)
    density = target.density_around(mode.theta, mode.covariance)
    sampler = emcee.EnsembleSampler(
        walkers or default_walkers(mode.theta.size),
        mode.theta.size,
        lambda white: density(mode.theta + white @ factor.T),
        vectorize=True,
        moves=_proposal_moves(mode.theta.size, independence),
    )
    state = emcee.State(_first_positions(sampler, rng), random_state=legacy_state(rng))
    whole = WhitenedEnsemble(sampler, mode.theta, np.asarray(factor), target.names)
    diagnostics = _run_until_converged(whole, state, most_steps, report)
    theta = whole.thetas
    trace = chain_trace(theta, sampler.get_log_prob(), target.names, whole.burn_in)
    chains = whole.full_chains if keep_chains else None
    if not accept_unconverged:
        require_converged(
            sorted(diagnostics, key=_doubt_order, reverse=True),
            Fit({}, diagnostics, trace, chains),
            f" after {sampler.iteration:,} steps; raise most_steps",
        )
    settled = theta[whole.burn_in :].reshape(-1, theta.shape[2])
    chosen = rng.choice(settled.shape[0], draws, replace=draws > settled.shape[0])
    return PosteriorDraws(settled[chosen], target.names, diagnostics, trace, chains)


def default_walkers(dimension: int) -> int:
    """Return the default number of walkers: twice the dimension plus 6."""
    return 2 * dimension + 6


def most_chain_bytes(dimension: int, walkers: int | None, most_steps: int) -> int:
    """Return the largest size in bytes of all chains of an ensemble that runs to its last step."""
    return chain_storage_bytes(walkers or default_walkers(dimension), most_steps, dimension)


@dataclass(frozen=True)
class WhitenedEnsemble:
    """An ensemble of emcee in white coordinates: theta = mode + factor white.

    sampler: sampler of emcee
    mode: mode of the density, (d,)
    factor: Cholesky factor of the covariance at the mode, (d, d)
    names: names of the parameters
    """

    sampler: Any
    mode: Floats
    factor: Floats
    names: tuple[str, ...]

    @property
    def thetas(self) -> Floats:
        """Return the parameters at every step so far, (steps, walkers, d)."""
        return np.asarray(self.mode + self.sampler.get_chain() @ self.factor.T)

    @property
    def full_chains(self) -> SamplerDraws:
        """Return every step of every walker, each walker a chain."""
        values = np.ascontiguousarray(self.thetas.transpose(1, 0, 2))
        density = np.ascontiguousarray(self.sampler.get_log_prob().T)
        return SamplerDraws(self.names, values, density, LOG_POSTERIOR, self.burn_in, f"emcee {emcee.__version__}")

    @property
    def burn_in(self) -> int:
        """Return the number of steps at the start that are left out."""
        return int(_BURN_IN * self.sampler.iteration)


def _proposal_moves(dimension: int, independence: float) -> list[tuple[Any, float]]:
    # In white coordinates the posterior is about standard normal; the t has heavier tails, as an independence proposal
    # must.
    """Return emcee's moves and their shares: differential evolution, and independent draws of a multivariate t."""
    proposal = MultivariateT(np.zeros(dimension), np.eye(dimension), 10.0)

    def independent(white: Floats, random: np.random.RandomState) -> tuple[Floats, Floats]:
        proposed = proposal.draw_points(white.shape[0], random)
        return proposed, proposal.log_density(white) - proposal.log_density(proposed)

    steps = [(emcee.moves.DEMove(), 1 - independence), (emcee.moves.MHMove(independent), independence)]
    return [(move, share) for move, share in steps if share > 0]


def _first_positions(sampler: Any, rng: np.random.Generator) -> Floats:
    """Draw the walkers' first positions from the normal approximation, inside the support."""
    white = rng.standard_normal((sampler.nwalkers, sampler.ndim))
    outside = ~np.isfinite(sampler.log_prob_fn(white))
    while np.any(outside):
        # Halved towards the mode, which lies in the support.
        white[outside] /= 2
        outside = ~np.isfinite(sampler.log_prob_fn(white))
    return white


def _run_until_converged(
    whole: WhitenedEnsemble, state: Any, most_steps: int, report: Callable[[Progress], None]
) -> tuple[Diagnostic, ...]:
    """Run the ensemble until it has converged, and return its diagnostics."""
    sampler, latest = whole.sampler, state

    def run_to(length: int) -> tuple[Diagnostic, ...]:
        """Run the ensemble to a number of steps, and return its diagnostics."""
        nonlocal latest
        while sampler.iteration < length:
            latest = sampler.run_mcmc(latest, min(_BLOCK, length - sampler.iteration), skip_initial_state_check=True)
            report(Progress(sampler.iteration, most_steps, "ensemble steps"))
        return _ensemble_diagnostics(whole)

    def converged(diagnostics: tuple[Diagnostic, ...]) -> bool:
        return all(found.passed is not False for found in diagnostics)

    # Checked ever more rarely, as each check costs more.
    diagnostics, steps = run_until_converged(
        run_to, converged, geometric_lengths(_FIRST_CHECK, most_steps, _BETWEEN_CHECKS)
    )
    return (*diagnostics, Diagnostic("steps_used", "all parameters", float(steps)))


def _ensemble_diagnostics(whole: WhitenedEnsemble) -> tuple[Diagnostic, ...]:
    """Report R-hat, sample sizes and autocorrelation time (in steps) of every parameter, and the acceptance."""
    chain = whole.thetas[whole.burn_in :]
    times = emcee.autocorr.integrated_time(chain, tol=0, quiet=True)
    found = [Diagnostic("acceptance", "all parameters", float(whole.sampler.acceptance_fraction.mean()))]
    for i, name in enumerate(whole.names):
        chains = np.ascontiguousarray(chain[:, :, i].T)
        r_hat = rank_normalised_split_r_hat(chains)
        found += [
            Diagnostic("r_hat", name, r_hat, f"at most {LARGEST_R_HAT}", r_hat <= LARGEST_R_HAT),
            _size_diagnostic("effective_sample_size", name, bulk_effective_sample_size(chains)),
            _size_diagnostic("tail_effective_sample_size", name, tail_effective_sample_size(chains)),
            Diagnostic("autocorrelation_time", name, float(times[i])),
        ]
    return tuple(found)


def _size_diagnostic(statistic: str, name: str, size: float) -> Diagnostic:
    return Diagnostic(statistic, name, size, f"at least {SMALLEST_SIZE:.0f}", size >= SMALLEST_SIZE)


def _doubt_order(found: Diagnostic) -> tuple[bool, float]:
    """Return a sorting key for how much a diagnostic speaks against convergence: R-hats highest, then small sizes."""
    value = found.value or 0.0
    return found.name == "r_hat", value if found.name == "r_hat" else -value
