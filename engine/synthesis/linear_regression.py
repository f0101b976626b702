"""Linear regression of a variable, or of its logarithm, drawn from its posterior predictive distribution.

Guo & Hu §2.2, eq. 6-8: coefficients ~ Normal(0, 2), sigma ~ half-t with 1 df and scale 1. The m posterior draws are
exact and independent (``sfumato.engine.posterior.bayesian_linear_regression``). The module also has the rule by which a
draft takes a regression for a continuous variable, and the release as an intruder weighs it. Its likelihoods are closed
but for sigma (``sfumato.engine.posterior.linear_deletion``); where bounds cut the drawn values, or whole numbers are
coarse beside sigma, the posterior given a release is drawn from, and its draws are weighed.

``unit_effect`` splits sigma^2 into what records of a unit share and what they have of their own. The share is the
intraclass correlation of the residuals; the coefficients and sigma are drawn given it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..data.provenance import FitUncertainty
from ..data.schema import Kind, Schema
from ..data.table_blocks import OneBlock
from ..design.design_matrix import Design
from ..design.design_triangle import design_triangle
from ..design.regression_rows import RegressionRows, joint_triangle, stack_blocks, stack_triangles, stack_weights
from ..errors import BadInput, NotComputable, NotConverged
from ..methods.drafting import SUITED, Case, Offer, drafts
from ..methods.passes import Finished, NextPass, Partial, run_passes
from ..methods.registry import ReleaseModelDeclaration, synthesis_method
from ..methods.release_models import IntruderGuesses, Plausibility
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Progress, Run, ignore_progress
from ..posterior.bayesian_linear_regression import (
    LinearPosterior,
    PosteriorMoments,
    Standardisation,
    draw_truncated_normal,
)
from ..posterior.drawn_in_bounds import BoundedResponses, PosteriorGivenRelease
from ..posterior.laplace import draw_weighted_proposals, find_mode
from ..posterior.linear_deletion import DeletionPosterior
from ..posterior.reweighting import LeaveOneOutWeights, records_at_once
from ..recipe.checks import require_complete, require_full_rank
from ..recipe.weights import WEIGHTS_KNOWN
from ..statistics.unit_effects import effect_of_unit
from ..wording import count_noun
from ._linear_model import (
    LinearRegressionSpec,
    make_regression_rows,
    posterior_of_triangle,
    posterior_of_units,
    regression_posterior,
    response_limits,
    transform_response,
    value_limits,
)

WITHOUT, WITH = 2000, 4000
"""Posterior draws by which records are weighed where that is not closed: given the data alone, and given a dataset too.
"""
NEGLIGIBLE = 1e-3
"""Of a release: the logarithm of the probability that bounds cut away from all its records, and the share of sigma^2
that rounding adds.
"""
HEAP_SHARE = 0.05
"""A value that such a share of the records have is a heap, which no normal distribution has."""
SYMMETRIC = 1.0
"""The largest skewness at which a drafted regression takes values, or their logarithms, as normal."""
EXACT = "its posterior draws are exact and independent"
LARGEST_SHIFT = 0.5  # standard errors; a 95 % interval that is moved so far covers in 92 %
LARGEST_WEIGHT = 0.5  # above, the prior says more than the records


@dataclass(frozen=True, eq=False)
class LinearRegressionRelease:
    """A release of this model as an intruder weighs it.

    Without bounds that matter log p(Z | D_y) is closed but for an integral over sigma, and exact. With bounds it is a
    mean over draws of the posterior, with a Monte Carlo error in the logarithm of about 0.01, up to 0.1 for single
    records of a few hundred. Where records have weights, their likelihood is to that power. The intruder knows the
    weights; the belief before the release comes from all other records at full weight.
    """

    data: Microdata
    target: str
    spec: LinearRegressionSpec
    releases: Sequence[Microdata]
    seed: tuple[int, ...] = field(repr=False)

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.target,)

    @property
    def absolute(self) -> bool:
        return self.spec.prior == "published" and not self._has_relevant_bounds

    @property
    def approximate(self) -> bool:
        """Return whether likelihoods are approximate: priors on standardised variables should move with the data."""
        # One record more moves the standardisation a little; the priors are held where the data put them.
        return self.spec.prior == "scaled"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return remarks on the release: that draws weigh it, and that weights give an intruder no information."""
        said = [f"{self.target}: {WITH:,} draws of the posterior weigh a release in bounds or of whole numbers"]
        return (*(said if self._has_relevant_bounds else ()), *(() if self.data.weights is None else (WEIGHTS_KNOWN,)))

    def refit(self, data: Microdata) -> LinearRegressionRelease:
        """Return the same model of other confidential data."""
        return LinearRegressionRelease(data, self.target, self.spec, self.releases, self.seed)

    @cached_property
    def _design(self) -> Design:
        return Design.from_texts(self.spec.predictors, self.data)

    @cached_property
    def _full_weight_model(self) -> LinearRegressionRelease:
        """Return the model of all records at full weight: its predictions are the beliefs before the release."""
        return replace(self, data=replace(self.data, weights=None))

    @cached_property
    def _counted_rows(self) -> RegressionRows:
        """Return the rows of the records with a weight above 0."""
        return make_regression_rows(self.data.with_positive_weight, self.target, self.spec, self._design)

    @cached_property
    def _released_rows(self) -> tuple[RegressionRows, ...]:
        return tuple(make_regression_rows(one, self.target, self.spec, self._design) for one in self.releases)

    @cached_property
    def _data_triangle(self) -> Floats:
        return joint_triangle([self._counted_rows])

    @cached_property
    def _prior_standardisation(self) -> Standardisation | None:
        """Return the standardisation that all priors use; None for priors in the variables' own units."""
        if self.spec.prior == "published":
            return None
        weights, held = self._counted_rows.data.weights, stack_blocks([self._counted_rows])
        try:
            if held is not None:
                return Standardisation.from_records(held[1], held[0], weights)
            return Standardisation.from_triangle(
                self._data_triangle, float(self._counted_rows.data.effective_weights.sum())
            )
        except ValueError as error:
            raise NotComputable(f"{self.target}: {error}") from None

    def _posterior_given(self, *tables: RegressionRows) -> DeletionPosterior:
        """Return the posterior given the records of these tables, under the prior that the confidential data set."""
        alone = tables == (self._counted_rows,)
        triangle = self._data_triangle if alone else joint_triangle(tables)
        try:
            posterior = regression_posterior(
                tables, self.spec, triangle, None if alone else self._prior_standardisation
            )
        except ValueError as error:
            raise NotComputable(f"{self.target}: {error}") from None
        held = stack_blocks(tables)
        if held is not None:
            return DeletionPosterior.from_records(posterior, *held, stack_weights(tables))
        blocks = ((x, y, one.data.effective_weights[rows]) for one in tables for rows, x, y in one.blocks())
        return DeletionPosterior.from_blocks(posterior, blocks, triangle)

    @cached_property
    def _posterior_without_release(self) -> DeletionPosterior:
        return self._posterior_given(self._counted_rows)

    @cached_property
    def _posteriors_with_release(self) -> tuple[DeletionPosterior, ...]:
        """Return the posterior given the data and each dataset, as if that were drawn without bounds."""
        return tuple(self._posterior_given(self._counted_rows, one) for one in self._released_rows)

    def _bounded_responses(self, values: Floats) -> BoundedResponses:
        """Return the intervals in which the normal draws lay that were released as these values."""
        half = 0.5 if self.data.schema[self.target].kind is Kind.COUNT else 0.0
        variable = self.data.schema[self.target]
        lower, upper = response_limits(variable, self.spec)
        lower, upper = -np.inf if variable.lower is None else lower, np.inf if variable.upper is None else upper
        with np.errstate(divide="ignore", invalid="ignore"):
            # A released count stands for all that is rounded to it. Half below 0 has no logarithm: NaN, which becomes
            # -inf.
            low, high = (transform_response(values + side * half, self.spec) for side in (-1, 1))
        return BoundedResponses(np.where(np.isnan(low), -np.inf, low), high, lower, upper)

    @cached_property
    def _has_relevant_bounds(self) -> bool:
        """Return whether bounds or rounding change the likelihood of a release more than negligibly."""
        of = self._posterior_without_release
        weight = np.exp(of.log_weight)
        sigma, delta = float(np.sqrt(weight @ of.variance)), weight @ of.mean
        for table in self._released_rows:
            drawn = self._bounded_responses(table.data.numbers(self.target))
            mean = table.multiply(of.posterior.centre + of.posterior.back @ delta)
            if -drawn.log_bounds_probability(mean, np.asarray(1.2 * sigma)).sum() > NEGLIGIBLE:
                return True
            with np.errstate(over="ignore"):
                # Rounding to a step adds step^2 / 12 to the variance (Sheppard).
                if np.mean(((drawn.high - drawn.low) / sigma) ** 2) / 12 > NEGLIGIBLE:
                    return True
        return False

    @cached_property
    def _posterior_draws(self) -> tuple[tuple[PosteriorGivenRelease, Floats, Floats], ...]:
        """Draw parameters (S, K + 1) with weights (S,) from the posterior given the data and each dataset."""
        found = []
        for index, table in enumerate(self._released_rows):
            target = PosteriorGivenRelease(
                self._posterior_without_release.posterior,
                table,
                self._bounded_responses(table.data.numbers(self.target)),
            )
            try:
                mode = find_mode(target)
            except NotConverged as error:
                raise NotComputable(f"{self.target}, dataset {index + 1}: {error}") from None
            rng = np.random.default_rng([*self.seed, index])
            drawn = draw_weighted_proposals(
                target.density_around(mode.theta, mode.covariance), mode, WITH, rng, ignore_progress
            )
            found.append((target, drawn.thetas, drawn.weights))
        return tuple(found)

    def refined_log_likelihoods(self, guesses: IntruderGuesses) -> Floats:
        return self.plausibility_of(guesses).likelihood

    def plausibility_of(self, guesses: IntruderGuesses) -> Plausibility:
        """Weigh guesses; those that are equal in target and predictors are weighed once."""
        columns = {column for term in self._design.terms for column in term.columns}
        few, place = guesses.distinct_guesses({self.target, *columns})
        return self._weigh_distinct(
            few, self._design.build_matrix(few.guessed_table(self.data)) if few.involve_columns(columns) else None
        ).expand_to(place)

    def _weigh_distinct(self, guesses: IntruderGuesses, design: Floats | None) -> Plausibility:
        """Weigh distinct guesses; ``design`` (t * g, K) is theirs, None if no guess changes a predictor."""
        of = self._posterior_without_release
        own = guesses.true_records(self.data)
        x_own, y_own = self._design.build_matrix(own), transform_response(own.numbers(self.target), self.spec)
        x = x_own[:, None, :] if design is None else design.reshape(*guesses.shape, -1)
        values = guesses.values[self.target]
        y = transform_response(values, self.spec)
        influence = self.data.effective_weights[guesses.records]
        # Any weight will do for a record of weight 0, whose likelihood is replaced below.
        weight = np.where(influence > 0, influence, 1.0)
        without, predicted = of.log_ratios(x_own, y_own, x, y, weight)
        if self._has_relevant_bounds:
            alone = predicted if self.data.weights is None else without
            found = self._weigh_by_draws(x_own, y_own, weight, x, values, alone)
        else:
            likelihood = np.empty((*guesses.shape, len(self.releases)))
            for index, both in enumerate(self._posteriors_with_release):
                given = both.log_ratios(x_own, y_own, x, y, weight)[0]
                likelihood[..., index] = given - without + (both.log_evidence - of.log_evidence)
            # The belief is about values, not logarithms: the density changes by 1 / value.
            found = Plausibility(likelihood, predicted - (y if self.spec.transform == "log" else 0.0))
        if self.data.weights is None:
            return found
        # of a record of weight 0 the release says nothing
        told = np.where((influence > 0)[:, None, None], found.likelihood, 0.0)
        return replace(found, likelihood=told, prior=self._full_weight_model._weigh_distinct(guesses, design).prior)

    def _weigh_by_draws(
        self, x_own: Floats, y_own: Floats, weight: Floats, x: Floats, values: Floats, without: Floats
    ) -> Plausibility:
        """Weigh guesses by posterior draws.

        ``without`` (t, g) is the log mean of the likelihood over the posterior without record and release. The mean
        with the release is computed here, up to a constant of a record's guesses.
        """
        of, shape = self._posterior_without_release.posterior, values.shape
        rng = np.random.default_rng([*self.seed, len(self.releases)])
        coefficients, sigma = of.draw_parameters(WITHOUT, rng)
        likelihood, prior = np.empty((*shape, len(self.releases))), np.empty(shape)
        heavy = np.zeros(shape[0], dtype=np.bool_)
        size = records_at_once(shape[1], WITHOUT)
        for start in range(0, shape[0], size):
            rows = slice(start, start + size)
            own = weight[rows, None] * _log_normal_kernel(y_own[rows, None] - x_own[rows] @ coefficients.T, sigma)
            left = LeaveOneOutWeights.from_log_densities(own, np.full(WITHOUT, 1 / WITHOUT))
            drawn = self._bounded_responses(values[rows, :, None])
            prior[rows] = left.log_weighted_mean(drawn.log_density(x[rows] @ coefficients.T, sigma))
            heavy[rows] |= left.heavy
            for index, (target, thetas, weights) in enumerate(self._posterior_draws):
                design = x[rows].reshape(-1, x.shape[2])
                mean, sd = target.means_and_sigmas(thetas, design)
                centre = target.means_and_sigmas(thetas, x_own[rows])[0]
                log_own = weight[rows, None] * _log_normal_kernel(y_own[rows, None] - centre.T, sd[:, 0])
                left = LeaveOneOutWeights.from_log_densities(log_own, weights)
                distance = transform_response(values[rows], self.spec)[..., None] - mean.T.reshape(
                    *x[rows].shape[:2], -1
                )
                log_guess = weight[rows, None, None] * _log_normal_kernel(distance, sd[:, 0])
                likelihood[rows, :, index] = left.log_weighted_mean(log_guess) - without[rows]
                heavy[rows] |= left.heavy
        if self.spec.transform == "log" and self.data.schema[self.target].kind is not Kind.COUNT:
            prior -= transform_response(values, self.spec)
        return Plausibility(likelihood, prior, heavy)


def _log_normal_kernel(distance: Floats, sigma: Floats) -> Floats:
    return np.asarray(-0.5 * (distance / sigma) ** 2 - np.log(sigma))


FEWEST_RECORDS, MOST_TERMS, MOST_LEVELS = 100, 6, 10


def _offered_terms(case: Case) -> tuple[str, ...]:
    """Return the most informative complete predictors as terms: logarithms of those with a long tail."""
    found = []
    for name in case.predictors:
        seen = case.table[name]
        kind = seen.variable.kind
        if seen.missing or kind is Kind.DATE or (kind.has_levels and seen.distinct > MOST_LEVELS):
            continue
        low = -1.0 if seen.smallest is None else seen.smallest
        logged = "log" if low > 0 else "log1p" if low == 0 else ""
        found.append(
            f"{logged}({name})" if logged and seen.long_tailed and f"{logged}({name})" not in case.table else name
        )
    return tuple(found[:MOST_TERMS])


def check_data(data: Microdata, target: str, spec: LinearRegressionSpec, place: str) -> None:
    """Raise BadInput where the regression cannot be fitted.

    That is where values are missing, the logarithm is undefined, terms are aliased, or predictors determine the target.
    """
    _check_and_fit(data, target, spec, place)


def _check_and_fit(
    data: Microdata, target: str, spec: LinearRegressionSpec, place: str
) -> tuple[LinearPosterior, float]:
    """Check the data as ``check_data`` does, and return the posterior and the share of the variance of units."""
    if not spec.unit_effect:
        passes = RegressionPasses(place)
        first = passes.start(data.select_rows(slice(0, 0)), target, spec, 1)
        return run_passes(first, [OneBlock(data)], passes.block, passes.merge), 0.0
    own = _checked_rows(data, target, spec, place)
    triangle = joint_triangle([own])
    require_full_rank(own.data, spec.predictors, f"{place}.predictors", _known_design_triangle(own, triangle))
    try:
        return posterior_of_units(own, spec, triangle)
    except ValueError as error:
        raise BadInput(f"{place}.predictors", str(error)) from None


def _checked_rows(data: Microdata, target: str, spec: LinearRegressionSpec, place: str) -> RegressionRows:
    """Return the records of positive weight as rows of the regression. Raises BadInput for values that have none."""
    require_complete(data, target, spec.predictors, place)
    if spec.transform == "log" and (outside := int(np.sum(data.numbers(target) <= 0))):
        raise BadInput(
            f"{place}.transform",
            f'"log" is undefined for {count_noun(outside, "record")} where "{target}" is 0 or below; use "identity", or leave '
            "them out with [data] where",
        )
    return make_regression_rows(data.with_positive_weight, target, spec)


def _known_design_triangle(own: RegressionRows, triangle: Floats) -> Floats | None:
    """Return R of the design without its weights where the triangle with the response has it, else None."""
    # R of the design is at hand then, and the rank needs no second decomposition.
    return triangle[:-1, :-1] if own.data.weights is None and len(triangle) == triangle.shape[1] else None


@dataclass(frozen=True)
class _RegressionState:
    """What a block of a regression needs to know.

    head: the table without records
    target, spec: of the regression
    alone: whether there is one block
    """

    head: Microdata
    target: str
    spec: LinearRegressionSpec
    alone: bool


@dataclass(frozen=True)
class RegressionPasses:
    """One pass: R of QR = [X y] of each block, and of all of them stacked in their order.

    place: place in the recipe for error messages; the target where it is empty
    """

    checks_data: ClassVar[bool] = True
    place: str = ""

    def suits(self, spec: LinearRegressionSpec, schema: Schema) -> bool:
        return not spec.unit_effect

    def start(self, head: Microdata, target: str, spec: LinearRegressionSpec, n_blocks: int) -> NextPass:
        names = dict.fromkeys((target, *Design.from_texts(spec.predictors, head).columns))
        return NextPass(_RegressionState(head, target, spec, n_blocks == 1), tuple(names), f"regression of {target}")

    def block(self, state: _RegressionState, data: Microdata) -> Partial:
        """Return R of the block, and of a table of one block its rows too. Raises BadInput as ``check_data`` does."""
        own = _checked_rows(data, state.target, state.spec, self.place or state.target)
        triangle = joint_triangle([own])
        found = {"triangle": triangle, "records": np.array([own.data.effective_weights.sum(), len(own)])}
        if not state.alone:
            return found
        if own.data.weights is not None:
            found["weights"] = own.data.weights
        if _known_design_triangle(own, triangle) is None:
            found["design"] = design_triangle(own.design, replace(own.data, weights=None))
        if own.single_block is not None:
            found["x"], found["y"] = own.single_block
        return found

    def merge(self, state: _RegressionState, partials: Sequence[Partial]) -> Finished[LinearPosterior]:
        """Return the posterior given all records. Raises BadInput as ``check_data`` does."""
        place, first, alone = f"{self.place or state.target}.predictors", partials[0], len(partials) == 1
        triangle = first["triangle"] if alone else stack_triangles([one["triangle"] for one in partials])
        n, records = np.sum([one["records"] for one in partials], axis=0).tolist()
        require_full_rank(state.head, state.spec.predictors, place, first.get("design", triangle[:-1, :-1]))
        held = (first["x"], first["y"]) if "x" in first else None
        try:
            found = posterior_of_triangle(triangle, state.spec, n, int(records), held, first.get("weights"))
        except ValueError as error:
            raise BadInput(place, str(error)) from None
        return Finished(found)

    def fit(
        self, answer: LinearPosterior, head: Microdata, target: str, spec: LinearRegressionSpec, run: Run, draws: int
    ) -> Fit:
        return _fit_of_posterior(answer, 0.0, head, target, spec, run, draws)


def draw(
    fit: Fit,
    spec: LinearRegressionSpec,
    target: str,
    confidential: Microdata,
    released: Microdata,
    index: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw synthetic values (n,) from posterior draw ``index``: normal around X gamma, within the variable's bounds."""
    variable = confidential.schema[target]
    sigma = float(fit.arrays["sigma"][index])
    mean = Design.from_texts(spec.predictors, confidential).predict(released, fit.arrays["coefficients"][index])
    low, high = value_limits(variable)
    lower, upper = response_limits(variable, spec)
    if spec.unit_effect:
        effect, own = effect_of_unit(released, float(fit.arrays["unit_share"][0]))
        mean, sigma = mean + sigma * effect, sigma * own
    values = draw_truncated_normal(mean, sigma, lower, upper, rng)
    if spec.transform == "log":
        np.exp(values, out=values)
    if variable.kind is Kind.COUNT:
        # The bounds were widened by half a unit, so that the rounded value lies within the variable's own.
        np.rint(values, out=values)
    return np.clip(values, low, high, out=values)


def release_model(
    data: Microdata, targets: tuple[str, ...], spec: LinearRegressionSpec, releases: Sequence[Microdata], run: Run
) -> LinearRegressionRelease:
    """Return the model by which an intruder's guesses are weighed by the releases."""
    (target,) = targets
    return LinearRegressionRelease(data, target, spec, releases, tuple(map(int, run.rng.integers(2**63, size=4))))


def _regression_diagnostics(posterior: LinearPosterior, names: tuple[str, ...]) -> tuple[Diagnostic, ...]:
    """Report posterior moments, and the effect of the prior on every coefficient.

    ``prior_shift`` is the distance of the posterior mean from least squares in standard errors; ``prior_weight``, the
    ratio of posterior to prior variance, is the share of the information that comes from the prior.
    """
    moments = posterior.posterior_moments()
    # Guo & Hu's priors were made for the logarithm of a price. For a variable in large units Normal(0, 2) outweighs the
    # records: these diagnostics then fail, and ``prior = "scaled"`` helps.
    shifts = _prior_shifts(posterior, moments)
    weights = (moments.sd / posterior.prior_sds) ** 2
    found = []
    for name, mean, sd, shift, weight in zip(names, moments.mean, moments.sd, shifts, weights, strict=True):
        found += [
            Diagnostic("posterior_mean", name, float(mean)),
            Diagnostic("posterior_sd", name, float(sd)),
            Diagnostic("prior_shift", name, float(shift), f"at most {LARGEST_SHIFT}", bool(shift <= LARGEST_SHIFT)),
            Diagnostic(
                "prior_weight", name, float(weight), f"at most {LARGEST_WEIGHT}", bool(weight <= LARGEST_WEIGHT)
            ),
        ]
    sigma = {"posterior_mean": moments.sigma_mean, "posterior_sd": moments.sigma_sd}
    return (*found, *(Diagnostic(statistic, "sigma", value) for statistic, value in sigma.items()))


def _prior_shifts(posterior: LinearPosterior, moments: PosteriorMoments) -> Floats:
    """Return the distance of the posterior means from least squares in standard errors of least squares, (K,)."""
    without_prior, errors = posterior.least_squares()
    return np.asarray(np.abs(moments.mean - without_prior) / errors)


def draft_offer(case: Case) -> Offer | None:
    """Offer a regression for a continuous variable that is about symmetric, itself or its logarithm.

    Variables with missing values or heaps get no offer.
    """
    seen = case.target
    if case.want != "synthesis" or seen is None or seen.variable.kind is not Kind.CONTINUOUS:
        return None
    if seen.missing or seen.commonest >= HEAP_SHARE or case.table.records < FEWEST_RECORDS:
        return None
    straight = seen.skewness is not None and abs(seen.skewness) <= SYMMETRIC
    log = not straight and seen.log_skewness is not None and abs(seen.log_skewness) <= SYMMETRIC
    terms = _offered_terms(case)
    if not (straight or log) or not terms:
        return None
    skew = seen.log_skewness if log else seen.skewness
    why = (
        f"{'the logarithms' if log else 'the values'} lie about evenly around their mean (skewness {skew:.1f}), no value is frequent and none is "
        "missing: a regression draws new numbers and has no donors; priors on standardised variables, which suit any unit"
    )
    settings = {"predictors": list(terms), "transform": "log" if log else "identity", "prior": "scaled"}
    return Offer(why, settings, SUITED)


def fit_uncertainty(spec: LinearRegressionSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return that each dataset has coefficients of its own, drawn from their posterior."""
    return FitUncertainty("drawn")


@synthesis_method(
    "Bayesian linear regression",
    spec=LinearRegressionSpec,
    source="Guo & Hu §2.2, eq. 6-8",
    draw=draw,
    targets=(Kind.COUNT, Kind.CONTINUOUS),
    check=check_data,
    weighted=True,
    release_model=ReleaseModelDeclaration(release_model, is_weighted=True),
    fit_uncertainty=fit_uncertainty,
    fit_passes=RegressionPasses(),
    draws_by_block=True,
)
@drafts(draft_offer)
def linear_regression(data: Microdata, target: str, spec: LinearRegressionSpec, run: Run, draws: int) -> Fit:
    """Draw from the posterior: ``coefficients`` (draws, K) and ``sigma`` (draws,).

    Diagnostics are posterior means and standard deviations.

    Where the prior dominates, ``prior_shift`` or ``prior_weight`` of a coefficient does not pass.

    Raises:
        BadInput: what ``check_data`` refuses.
    """
    posterior, share = _check_and_fit(data, target, spec, target)
    return _fit_of_posterior(posterior, share, data, target, spec, run, draws)


def _fit_of_posterior(
    posterior: LinearPosterior,
    share: float,
    head: Microdata,
    target: str,
    spec: LinearRegressionSpec,
    run: Run,
    draws: int,
) -> Fit:
    """Return the fit with draws from the posterior. ``head`` has the variables and levels of the table."""
    coefficients, sigma = posterior.draw_parameters(draws, run.rng)
    run.report(Progress(1, 1, f"regression of {target}"))
    names = Design.from_texts(spec.predictors, head).names
    arrays, said = {"coefficients": coefficients, "sigma": sigma}, _regression_diagnostics(posterior, names)
    if spec.unit_effect:
        arrays["unit_share"] = np.array([share])
        said = (*said, Diagnostic("unit_share", target, share))
    return Fit(arrays, said, NoTrace(EXACT))
