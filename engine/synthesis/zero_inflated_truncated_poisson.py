"""Counts with too many zeros and an upper bound: a zero-inflated truncated Poisson regression with random effects.

Guo & Hu §2.1, eq. 1-5. The random effects are integrated out of the posterior
(``sfumato.engine.posterior.zero_inflated_poisson``), which leaves 2K + 1 smooth parameters for either sampler.

``unit_effect`` makes members of a unit alike: their counts lie at like places of the distributions that the model gives
them, zeros lowest, and each record's distribution stays what it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.blocks import row_blocks
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata
from ..data.provenance import FitUncertainty
from ..data.schema import Kind, Schema, Variable
from ..design.design_matrix import Design
from ..errors import BadInput, NotComputable, NotConverged
from ..methods.chains import KEEP_CHAINS, require_room_for_chains
from ..methods.drafting import SUITED, Case, Offer, drafts
from ..methods.registry import ReleaseModelDeclaration, synthesis_method
from ..methods.release_models import IntruderGuesses, Plausibility
from ..methods.results import Diagnostic, Fit
from ..methods.run import Run, ignore_progress
from ..methods.spec import Param, Spec
from ..methods.table_profile import VariableProfile
from ..posterior.gamma_prior import GammaPrior, TauScale
from ..posterior.laplace import DensityMode, PosteriorDraws, WeightedDraws, draw_weighted_proposals, find_mode
from ..posterior.paired_counts import PairedCountsPosterior, log_pair_probabilities
from ..posterior.poisson_lognormal import PredictedRates, chances_of_counts, draw_counts, draw_counts_at
from ..posterior.reweighting import LeaveOneOutWeights, records_at_once
from ..posterior.zero_inflated_poisson import ZeroInflatedPoisson
from ..recipe.checks import require_complete, require_full_rank
from ..statistics.unit_effects import choose_cuts, draw_places, share_of_places
from ..wording import agreeing_word, count_noun

LARGEST_COUNT = 1e9
DRAWS = 2000
"""Posterior draws by which records are weighed, given the data alone and given each dataset too; half as many where
effects are the records' own, whose densities take longer, and a release says more of a record than of them.
"""
REMEDIES = {
    "laplace": 'a few extreme values of "{target}" or of a predictor may cause it: use sampler = "emcee", fewer '
    "predictors, or recode the extreme values",
    "emcee": 'raise most_steps, use fewer predictors, or recode a few extreme values of "{target}" or of a predictor',
}
"""What helps where a sampler has not converged."""
RECORDS_OFFERED = (200, 20_000)
"""As few and as many records as a drafted regression is fitted to."""


def check_data(data: Microdata, target: str, spec: ZeroInflatedSpec, place: str) -> None:
    """Raise BadInput where the model cannot be fitted to the data or settings contradict each other.

    That is where values are missing, the design is aliased, no record is 0 or all are, a count is huge, or the bound is
    not a whole number.
    """
    require_complete(data, target, spec.predictors, place)
    if data.weights is not None and spec.random_effect == "record":
        raise BadInput(
            f"{place}.random_effect",
            '"record" carries the value of each record into the release whatever its weight; use "new"',
        )
    data = data.with_positive_weight
    y = data.numbers(target)
    if not (y == 0).any():
        raise BadInput(f"{place}.target", f'no record has "{target}" = 0, so nothing tells how many zeros are inflated')
    if large := int((y >= LARGEST_COUNT).sum()):
        raise BadInput(
            f"{place}.target",
            f'{count_noun(large, "record")} {agreeing_word(large, "has", "have")} a "{target}" of a thousand millions or more, where a Poisson count has no spread of its '
            "own; use cart, or linear_regression of a continuous variable",
        )
    if spec.walkers is not None and spec.sampler == "emcee":
        fewest = 4 * len(Design.from_texts(spec.predictors, data).names) + 4
        if spec.walkers < fewest or spec.walkers % 2:
            raise BadInput(f"{place}.walkers", f"{spec.walkers} must be an even number, at least {fewest}")
    if spec.keep_chains and spec.sampler != "emcee":
        raise BadInput(
            f"{place}.keep_chains",
            f'sampler = "{spec.sampler}" draws no chains: its draws are independent and weighted; use sampler = "emcee", or leave it out',
        )
    require_room_for_chains(spec.chain_bytes(data), place)
    _whole_upper_bound(data.schema[target], f"variables.{target}.bounds")
    require_full_rank(data, spec.predictors, f"{place}.predictors")


def draw(
    fit: Fit,
    spec: ZeroInflatedSpec,
    target: str,
    confidential: Microdata,
    released: Microdata,
    index: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw synthetic counts (n,) from posterior draw ``index``, in 0..bound (Guo & Hu §2.3)."""
    design, theta = Design.from_texts(spec.predictors, confidential), fit.arrays["theta"][index]
    predicted = PredictedRates.from_theta(theta, partial(design.predict, released))
    bound = _whole_upper_bound(confidential.schema[target], target)
    share = float(fit.arrays["unit_share"][0]) if spec.unit_effect else 0.0
    if share:
        return draw_counts_at(draw_places(released, share, rng), predicted, bound, rng)
    if spec.random_effect == "new":
        return draw_counts(predicted, bound, "new", rng)
    observed = PredictedRates.from_theta(theta, partial(design.predict, confidential))
    return draw_counts(predicted, bound, "record", rng, confidential.numbers(target), observed)


@dataclass(frozen=True)
class _DrawsRequest:
    """A request for posterior draws, compared by the names of all inputs that they depend on.

    names: names of the inputs
    make_draws: function that makes the draws
    """

    names: tuple[str, ...]
    make_draws: Callable[[], tuple[WeightedDraws, ...]] = field(compare=False, repr=False)


# Several measures ask for the same draws, each through a release of its own.
@lru_cache(maxsize=2)
def _cached_draws(asked: _DrawsRequest) -> tuple[WeightedDraws, ...]:
    return asked.make_draws()


@dataclass(frozen=True, eq=False)
class ZeroInflatedRelease:
    """A release of this model as an intruder weighs it, by draws of the posterior.

    They are given the data, and given each dataset too. Monte Carlo error of a logarithm of a likelihood: about 0.02.
    """

    data: Microdata
    target: str
    spec: ZeroInflatedSpec
    releases: Sequence[Microdata]
    seed: tuple[int, ...] = field(repr=False)
    absolute: bool = False
    approximate: bool = False

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.target,)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return how the release is weighed."""
        return (f"{self.target}: draws of the posterior weigh the release",)

    def refit(self, data: Microdata) -> ZeroInflatedRelease:
        """Return the same model of other confidential data."""
        return replace(self, data=data)

    @cached_property
    def _design(self) -> Design:
        return Design.from_texts(self.spec.predictors, self.data)

    @property
    def _count_bound(self) -> int | None:
        return _whole_upper_bound(self.data.schema[self.target], self.target)

    @cached_property
    def _posterior_draws(self) -> tuple[WeightedDraws, ...]:
        """Return draws given the data first, then given the data and each dataset."""
        tables = [one.sha256 for one in (self.data, *self.releases)]
        return _cached_draws(
            _DrawsRequest((*tables, self.target, repr(self.spec), *map(str, self.seed)), self._draw_posteriors)
        )

    @cached_property
    def _data_posterior(self) -> ZeroInflatedPoisson:
        return self._posterior_given()

    def _posterior_given(self, *releases: Microdata) -> ZeroInflatedPoisson:
        """Return the posterior given the data, and these datasets if any."""
        return _regression_posterior(self._design, (self.data, *releases), self.target, self.spec)

    def _draw_posteriors(self) -> tuple[WeightedDraws, ...]:
        """Draw from the posterior given the data, then from that given the data and each dataset."""
        try:
            mode = find_mode(self._data_posterior)
            found = [self._draw_weighted(self._data_posterior.density_around(mode.theta, mode.covariance), mode, 0)]
            for index, release in enumerate(self.releases, start=1):
                if self.spec.random_effect == "record":
                    release.require_linked()
                    if not _has_same_design(self._design, self.data, release):
                        raise NotComputable(
                            f"{self.target} has effects of its records and predictors that are synthesised"
                        )
                    found.append(self._draw_weighted(self._paired_posterior(release).joint_density(), mode, index))
                    continue
                both = self._posterior_given(release)
                at = find_mode(both)
                found.append(self._draw_weighted(both.density_around(at.theta, at.covariance), at, index))
        except NotConverged as error:
            raise NotComputable(f"{self.target}: {error}") from None
        return tuple(found)

    def _paired_posterior(self, release: Microdata) -> PairedCountsPosterior:
        """Return the posterior given the data and the released count of each record."""
        rows, row = _distinct_design_rows(self._design, (self.data,))
        return PairedCountsPosterior.from_records(
            self._data_posterior, rows, row, *(one.numbers(self.target) for one in (self.data, release))
        )

    def _draw_weighted(self, log_density: Callable[[Floats], Floats], mode: DensityMode, index: int) -> WeightedDraws:
        """Draw weighted parameters around a mode, from a seed of their own for each ``index``."""
        draws = DRAWS // 2 if index and self.spec.random_effect == "record" else DRAWS
        return draw_weighted_proposals(
            log_density, mode, draws, np.random.default_rng([*self.seed, index]), ignore_progress
        )

    def refined_log_likelihoods(self, guesses: IntruderGuesses) -> Floats:
        return self.plausibility_of(guesses).likelihood

    def plausibility_of(self, guesses: IntruderGuesses) -> Plausibility:
        """Weigh guesses by draws of the posterior, those given each dataset against those given the data."""
        columns = {column for term in self._design.terms for column in term.columns}
        few, place = guesses.distinct_guesses({self.target, *columns})
        own = few.true_records(self.data)
        y = np.column_stack([few.values[self.target], own.numbers(self.target)])  # the record's own last
        x = self._design.build_matrix(own)[:, None, :]
        if few.involve_columns(columns):
            x = np.concatenate(
                [self._design.build_matrix(few.guessed_table(self.data)).reshape(*few.shape, -1), x], axis=1
            )
        likelihood, prior = np.empty((*few.shape, len(self.releases))), np.empty(few.shape)
        heavy = np.full(
            few.shape[0], any(note.passed is False for one in self._posterior_draws for note in one.diagnostics)
        )
        size = records_at_once(y.shape[1], DRAWS)
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            for index, draws in enumerate(self._posterior_draws):
                inside = draws.weights > 0
                thetas, weights = draws.thetas[inside], draws.weights[inside]
                if index and self.spec.random_effect == "record":
                    z = self.releases[index - 1].numbers(self.target)[few.records[rows]]
                    # With an effect of their own, released counts z_i depend on y_i not by the parameters alone: P(y,
                    # z_i | theta) takes the place of P(y | theta).
                    logs = self._log_pair_probabilities(thetas, x[rows, 0], y[rows], z)
                else:
                    logs = self._log_guess_probabilities(thetas, weights, x[rows], y[rows])
                left = LeaveOneOutWeights.from_log_densities(logs[:, -1], weights)
                found = left.log_weighted_mean(logs[:, :-1])
                heavy[rows] |= left.heavy
                if index:
                    likelihood[rows, :, index - 1] = found - prior[rows]
                else:
                    prior[rows] = found
        return Plausibility(likelihood, prior, heavy).expand_to(place)

    def _log_guess_probabilities(self, thetas: Floats, weights: Floats, x: Floats, y: Floats) -> Floats:
        """Return log P(y | x, theta) of designs (t, c or 1, K) and counts (t, c): (t, c, S)."""
        t, c = y.shape
        row = np.arange(t * c) if x.shape[1] == c else np.repeat(np.arange(t), c)
        pairs = replace(
            self._data_posterior, rows=x.reshape(-1, x.shape[2]), row=row, y=y.ravel(), weight=np.ones(t * c)
        )
        centre = weights @ thetas
        spread = (thetas - centre).T @ (weights[:, None] * (thetas - centre))
        return pairs.density_around(centre, spread).log_probabilities(thetas).T.reshape(t, c, -1)

    def _log_pair_probabilities(self, thetas: Floats, x: Floats, y: Floats, z: Floats) -> Floats:
        """Return log P(y, z | x, theta) of designs (t, K), counts (t, c) and released ones (t,): (t, c, S)."""
        k = x.shape[1]
        eta, logit_p, tau = x @ thetas[:, :k].T, x @ thetas[:, k : 2 * k].T, np.exp(thetas[:, -1])
        return np.stack(
            [log_pair_probabilities(y[i], z[i], eta[i], logit_p[i], tau, self._count_bound).T for i in range(len(x))]
        )


def release_model(
    data: Microdata, targets: tuple[str, ...], spec: ZeroInflatedSpec, releases: Sequence[Microdata], run: Run
) -> ZeroInflatedRelease:
    """Return the model by which an intruder's guesses are weighed by the releases."""
    (target,) = targets
    return ZeroInflatedRelease(data, target, spec, releases, tuple(map(int, run.rng.integers(2**63, size=4))))


MORE_ZEROS, LARGEST_BOUND, MOST_TERMS, MOST_LEVELS = 0.05, 10_000, 4, 6


def _is_offered_term(seen: VariableProfile) -> bool:
    """Return whether a predictor is complete and has few levels."""
    kind = seen.variable.kind
    return not seen.missing and kind is not Kind.DATE and not (kind.has_levels and seen.distinct > MOST_LEVELS)


def _sample_posterior(model: ZeroInflatedPoisson, spec: ZeroInflatedSpec, run: Run, draws: int) -> PosteriorDraws:
    """Draw from the posterior by the sampler of the settings."""
    if spec.sampler == "laplace":
        from ..posterior.laplace import sample_laplace

        return sample_laplace(model, draws, run.rng, run.report, accept_unconverged=spec.accept_unconverged)
    from ..posterior.ensemble import sample_emcee

    return sample_emcee(
        model,
        draws,
        run.rng,
        run.report,
        walkers=spec.walkers,
        most_steps=spec.most_steps,
        accept_unconverged=spec.accept_unconverged,
        keep_chains=spec.keep_chains,
    )


def _draw_moments(posterior: PosteriorDraws) -> list[Diagnostic]:
    """Report mean and standard deviation of the draws of each parameter; nothing of a single draw."""
    if len(posterior.theta) < 2:
        return []
    means, sds = posterior.theta.mean(axis=0), posterior.theta.std(axis=0, ddof=1)
    return [
        Diagnostic(statistic, name, float(value))
        for name, mean, sd in zip(posterior.names, means, sds, strict=True)
        for statistic, value in (("mean_of_draws", mean), ("sd_of_draws", sd))
    ]


def _distinct_design_rows(design: Design, tables: Sequence[Microdata]) -> tuple[Floats, NDArray[np.intp]]:
    """Return the distinct rows of the design, (u, K), and the row of each record of all tables, (n,)."""
    rows, row, before = [], [], 0
    for data in tables:
        design.check_domains(data)
        distinct = distinct_records(data, design.columns)
        rows.append(design.build_matrix(representative_records(distinct, data)))
        row.append(distinct.combination_of + before if before else distinct.combination_of)
        before += len(distinct)
    return (np.vstack(rows), np.concatenate(row)) if len(rows) > 1 else (rows[0], row[0])


def _regression_posterior(
    design: Design, tables: Sequence[Microdata], target: str, spec: ZeroInflatedSpec, weights: Floats | None = None
) -> ZeroInflatedPoisson:
    """Return the posterior given the records of these tables, with these ``weights`` (n,) if given."""
    counts = np.concatenate([data.numbers(target) for data in tables])
    bound, prior = _whole_upper_bound(tables[0].schema[target], target), GammaPrior(spec.tau_prior)
    return ZeroInflatedPoisson.from_rows(
        counts, *_distinct_design_rows(design, tables), bound, prior, columns=design.names, weights=weights
    )


def _has_same_design(design: Design, data: Microdata, other: Microdata) -> bool:
    """Return whether two tables have the same design, record by record."""
    return len(data) == len(other) and all(
        np.array_equal(design.build_matrix(data.select_rows(rows)), design.build_matrix(other.select_rows(rows)))
        for rows in row_blocks(len(data), len(design.names))
    )


def _whole_upper_bound(variable: Variable, place: str) -> int | None:
    """Return the upper bound as an int, None without one. Raises BadInput if the bounds do not suit counts from 0."""
    if variable.lower not in (None, 0.0):
        raise BadInput(place, f"{variable.lower:g} must be 0: the model is of counts from 0")
    if variable.upper is not None and not float(variable.upper).is_integer():
        raise BadInput(place, f"{variable.upper:g} must be a whole number")
    return None if variable.upper is None else int(variable.upper)


@dataclass(frozen=True, kw_only=True, slots=True)
class ZeroInflatedSpec(Spec):
    """Settings of the model: predictors of both parts, the random effect, the prior of tau, and the sampler."""

    predictors: Annotated[
        tuple[str, ...], Param("terms of the log rate and of the logit of a zero", names="terms")
    ] = ()
    random_effect: Annotated[
        Literal["new", "record"],
        Param("a new effect for every record, or the record's own, which carries its value into the release"),
    ] = "new"
    sampler: Annotated[Literal["laplace", "emcee"], Param("importance resampling around the mode, or an ensemble")] = (
        "laplace"
    )
    tau_prior: Annotated[TauScale, Param("what has the Gamma(0.001, 0.001) prior: 1 / tau^2, or tau")] = "precision"
    walkers: Annotated[int | None, Param("emcee: walkers; left out, twice the parameters plus 6", ge=4)] = None
    most_steps: Annotated[int, Param("emcee: steps after which it gives up", ge=100)] = 20_000
    accept_unconverged: Annotated[bool, Param("release draws of a sampler that has not converged")] = False
    keep_chains: Annotated[bool, Param(f"emcee: {KEEP_CHAINS}", changes_no_data=True)] = False
    unit_effect: Annotated[
        bool, Param("with [release] units: records of a unit share what predictors do not tell of their counts")
    ] = False

    @property
    def uses_own_record(self) -> bool:
        """Return whether random effects are the records' own, which depend on their values."""
        return self.random_effect == "record"

    def chain_bytes(self, data: Microdata) -> int:
        """Return the bytes that all parameters of every walker and step take if the ensemble runs to its last step."""
        if not self.keep_chains:
            return 0
        from ..posterior.ensemble import most_chain_bytes

        return most_chain_bytes(
            2 * len(Design.from_texts(self.predictors, data).names) + 1, self.walkers, self.most_steps
        )


def _draft_offer(case: Case) -> Offer | None:
    """Offer a model for a bounded count that has more zeros and more variance than a Poisson count of its mean."""
    seen = case.target
    if case.want != "synthesis" or seen is None or seen.variable.kind is not Kind.COUNT or seen.missing:
        return None
    upper, mean, variance = seen.variable.upper, seen.mean, seen.variance
    if upper is None or upper > LARGEST_BOUND or mean is None or variance is None or seen.variable.lower:
        return None
    few, many = RECORDS_OFFERED
    excess = seen.zeros - math.exp(-mean)
    if not few <= case.table.records <= many or excess < MORE_ZEROS or variance <= mean or seen.zeros > 1 - MORE_ZEROS:
        return None
    names = [name for name in case.predictors if _is_offered_term(case.table[name])][:MOST_TERMS]
    if not names:
        return None
    why = (
        f"{seen.zeros:.0%} of the counts are 0, where a Poisson count of this mean has {math.exp(-mean):.0%}, and none may exceed {upper:g}: zeros have a "
        "model of their own, and the bound is kept (Guo & Hu)"
    )
    return Offer(why, {"predictors": names}, SUITED)


def fit_uncertainty(spec: ZeroInflatedSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return that each dataset has parameters of its own, drawn from their posterior.

    Those of records that are alike would be drawn as if each told something new, and too near each other.
    """
    return FitUncertainty("unknown" if spec.unit_effect else "drawn")


@synthesis_method(
    "Zero-inflated truncated Poisson regression",
    spec=ZeroInflatedSpec,
    source="Guo & Hu §2.1, eq. 1-5",
    draw=draw,
    targets=(Kind.COUNT,),
    check=check_data,
    weighted=True,
    release_model=ReleaseModelDeclaration(release_model),
    fit_uncertainty=fit_uncertainty,
    draws_by_block=True,
)
@drafts(_draft_offer)
def zero_inflated_truncated_poisson(data: Microdata, target: str, spec: ZeroInflatedSpec, run: Run, draws: int) -> Fit:
    """Draw from the posterior: ``theta`` (draws, 2K + 1) has alpha, beta and log tau.

    With ``unit_effect`` there is ``unit_share`` (1,). The sampler's diagnostics and trace are kept.

    Raises:
        BadInput: what ``check_data`` refuses.
        NotConverged: the sampler's draws must not be used, unless ``accept_unconverged``.
    """
    check_data(data, target, spec, target)
    data = data.with_positive_weight
    design = Design.from_texts(spec.predictors, data)
    model = _regression_posterior(design, (data,), target, spec, data.weights)
    try:
        posterior = _sample_posterior(model, spec, run, draws)
    except NotConverged as error:
        parameter = f"{target}: {error.parameter}"
        rule = f"{error.rule}; {REMEDIES[spec.sampler].format(target=target)}"
        raise NotConverged(parameter, error.statistic, error.value, rule, error.left) from None
    said = (*posterior.diagnostics, *_draw_moments(posterior))
    arrays = {"theta": posterior.theta}
    if spec.unit_effect:
        share = _unit_share(data, design, target, posterior.theta.mean(axis=0), run.rng)
        arrays["unit_share"] = np.array([share])
        said = (*said, Diagnostic("unit_share", target, share))
    return Fit(arrays, said, posterior.trace, posterior.chains)


def _unit_share(data: Microdata, design: Design, target: str, theta: Floats, rng: np.random.Generator) -> float:
    """Return the share by which records of a unit are alike in the places of their counts."""
    if data.units is None:
        return 0.0
    values, predicted = data.numbers(target), PredictedRates.from_theta(theta, partial(design.predict, data))
    cuts = choose_cuts(values)
    below = chances_of_counts(predicted, cuts, _whole_upper_bound(data.schema[target], target), rng)
    return share_of_places(values, cuts, below, data)
