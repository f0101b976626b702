"""Linear regression of a variable, or of its logarithm, drawn from its posterior predictive distribution.

Guo & Hu §2.2, eq. 6-8: coefficients ~ Normal(0, 2), sigma ~ half-t with 1 df and scale 1. The m posterior draws are exact
and independent (``sfumato.engine.posterior.bayesian_linear_regression``).

Those priors were made for the logarithm of a price. For a variable in large units Normal(0, 2) outweighs the records;
the diagnostics ``prior_shift`` and ``prior_weight`` then fail, and ``prior = "scaled"`` is what to use.

What a release says of a single record is closed but for sigma (``sfumato.engine.posterior.linear_deletion``); where bounds cut the drawn
values, or whole numbers are coarse beside sigma, the posterior given a release is drawn from, and its draws are weighed.

When a draft takes a regression for a continuous variable, and by which terms.

A release of linear regressions as an intruder weighs it.

Likelihoods are closed but for sigma (``sfumato.engine.posterior.linear_deletion``) unless bounds or rounding matter for what was released; then posteriors are
drawn from. Designs are formed block by block where a table is more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..data.terms import Design
from ..design.linear_predictor import linear_predictor
from ..design.regression_rows import RegressionRows, held_together, triangle_together, weights_together
from ..errors import BadInput, NotComputable, NotConverged
from ..methods.drafting import SUITED, Case, Offer, drafts
from ..methods.registry import synthesis_method
from ..methods.release_models import Guesses, Plausibility
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Progress, Run, silent
from ..posterior.bayesian_linear_regression import LinearPosterior, Moments, Standard, truncated_normal
from ..posterior.drawn_in_bounds import Drawn, WithDrawn
from ..posterior.laplace import find_mode, weighted_draws
from ..posterior.linear_deletion import DeletedRecords
from ..posterior.reweighting import LeftOut, together
from ..recipe.checks import require_complete, require_full_rank
from ..recipe.weights import WEIGHTS_KNOWN
from ..wording import counted
from ._linear_model import LinearRegressionSpec, design_of, drawn_between, limits, posterior_of, response_of, rows_of

WITHOUT, WITH = 2000, 4000
"""Posterior draws by which records are weighed where that is not closed: given the data alone, and given a dataset too."""
NEGLIGIBLE = 1e-3
"""Of a release: the logarithm of the probability that bounds cut away from all its records, and the share of sigma^2 that rounding adds."""
HEAP = 0.05
"""A value that such a share of the records have is a heap, which no normal distribution has."""
SYMMETRIC = 1.0
"""The largest skewness at which a drafted regression takes values, or their logarithms, as normal."""
EXACT = "its posterior draws are exact and independent"
LARGEST_SHIFT = 0.5  # standard errors; a 95 % interval that is moved so far covers in 92 %
LARGEST_WEIGHT = 0.5  # above, the prior says more than the records


@dataclass(frozen=True, eq=False)
class RegressedRelease:
    """A release of this model as an intruder weighs it.

    Without bounds that matter log p(Z | D_y) is closed but for an integral over sigma, and exact; priors on standardised
    variables, which one record more moves a little, are held where the data put them. With bounds it is a mean over draws of the posterior, with a Monte Carlo error in the
    logarithm of about 0.01, up to 0.1 for single records of a few hundred.

    Where records have weights, their likelihood is to that power. The intruder knows the weights; what is believed before the release comes
    from all other records at full weight.
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
        return self.spec.prior == "published" and not self._bounded

    @property
    def approximate(self) -> bool:
        """Whether the priors should move with the data."""
        return self.spec.prior == "scaled"

    @property
    def remarks(self) -> tuple[str, ...]:
        """That bounds or whole numbers are weighed by draws, and that nobody draws conclusions from weights."""
        said = [f"{self.target}: {WITH:,} draws of the posterior weigh a release in bounds or of whole numbers"]
        return (*(said if self._bounded else ()), *(() if self.data.weights is None else (WEIGHTS_KNOWN,)))

    def refitted(self, data: Microdata) -> RegressedRelease:
        """The same of other confidential data."""
        return RegressedRelease(data, self.target, self.spec, self.releases, self.seed)

    @cached_property
    def _design(self) -> Design:
        return design_of(self.data, self.spec)

    @cached_property
    def _believed(self) -> RegressedRelease:
        """The same of all records at full weight: what it predicts is believed before."""
        return replace(self, data=replace(self.data, weights=None))

    @cached_property
    def _counted(self) -> RegressionRows:
        """The records that say something."""
        return rows_of(self.data.counted, self.target, self.spec, self._design)

    @cached_property
    def _tables(self) -> tuple[RegressionRows, ...]:
        return tuple(rows_of(one, self.target, self.spec, self._design) for one in self.releases)

    @cached_property
    def _triangle(self) -> Floats:
        return triangle_together([self._counted])

    @cached_property
    def _standard(self) -> Standard | None:
        """What the priors of all are put on."""
        if self.spec.prior == "published":
            return None
        weights, held = self._counted.data.weights, held_together([self._counted])
        try:
            if held is not None:
                return Standard.of(held[1], held[0], weights)
            return Standard.of_triangle(self._triangle, float(self._counted.data.influence.sum()))
        except ValueError as error:
            raise NotComputable(f"{self.target}: {error}") from None

    def _given(self, *tables: RegressionRows) -> DeletedRecords:
        """The posterior given the records of these tables, under the prior that the confidential data make."""
        alone = tables == (self._counted,)
        triangle = self._triangle if alone else triangle_together(tables)
        try:
            posterior = posterior_of(tables, self.spec, triangle, None if alone else self._standard)
        except ValueError as error:
            raise NotComputable(f"{self.target}: {error}") from None
        held = held_together(tables)
        if held is not None:
            return DeletedRecords.of(posterior, *held, weights_together(tables))
        blocks = ((x, y, one.data.influence[rows]) for one in tables for rows, x, y in one.blocks())
        return DeletedRecords.of_blocks(posterior, blocks, triangle)

    @cached_property
    def _without(self) -> DeletedRecords:
        return self._given(self._counted)

    @cached_property
    def _with(self) -> tuple[DeletedRecords, ...]:
        """Given the data and each dataset, drawn without bounds."""
        return tuple(self._given(self._counted, one) for one in self._tables)

    def _drawn(self, values: Floats) -> Drawn:
        """What is known of a normal that was released as these values."""
        half = 0.5 if self.data.schema[self.target].kind is Kind.COUNT else 0.0
        variable = self.data.schema[self.target]
        lower, upper = drawn_between(variable, self.spec)
        lower, upper = -np.inf if variable.lower is None else lower, np.inf if variable.upper is None else upper
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (response_of(values + side * half, self.spec) for side in (-1, 1))
        return Drawn(np.where(np.isnan(low), -np.inf, low), high, lower, upper)

    @cached_property
    def _bounded(self) -> bool:
        """Whether bounds or rounding matter for what the release says."""
        of = self._without
        weight = np.exp(of.log_weight)
        sigma, delta = float(np.sqrt(weight @ of.variance)), weight @ of.mean
        for table in self._tables:
            drawn = self._drawn(table.data.numbers(self.target))
            mean = table.times(of.posterior.centre + of.posterior.back @ delta)
            if -drawn.log_inside(mean, np.asarray(1.2 * sigma)).sum() > NEGLIGIBLE:
                return True
            with np.errstate(over="ignore"):
                if np.mean(((drawn.high - drawn.low) / sigma) ** 2) / 12 > NEGLIGIBLE:
                    return True
        return False

    @cached_property
    def _draws(self) -> tuple[tuple[WithDrawn, Floats, Floats], ...]:
        """Weighted draws (S, K + 1) and (S,) given the data and each dataset."""
        found = []
        for index, table in enumerate(self._tables):
            target = WithDrawn(self._without.posterior, table, self._drawn(table.data.numbers(self.target)))
            try:
                mode = find_mode(target)
            except NotConverged as error:
                raise NotComputable(f"{self.target}, dataset {index + 1}: {error}") from None
            rng = np.random.default_rng([*self.seed, index])
            drawn = weighted_draws(target.near(mode.theta, mode.covariance), mode, WITH, rng, silent)
            found.append((target, drawn.thetas, drawn.weights))
        return tuple(found)

    def nearer(self, guesses: Guesses) -> Floats:
        return self.weigh(guesses).likelihood

    def weigh(self, guesses: Guesses) -> Plausibility:
        columns = {column for term in self._design.terms for column in term.columns}
        few, place = guesses.distinct({self.target, *columns})
        return self._weighed(few, self._design.matrix(few.table(self.data)) if few.changes(columns) else None).spread(
            place
        )

    def _weighed(self, guesses: Guesses, design: Floats | None) -> Plausibility:
        """``design`` (t * g, K) of guesses that change it."""
        of = self._without
        own = guesses.own(self.data)
        x_own, y_own = self._design.matrix(own), response_of(own.numbers(self.target), self.spec)
        x = x_own[:, None, :] if design is None else design.reshape(*guesses.shape, -1)
        values = guesses.values[self.target]
        y = response_of(values, self.spec)
        influence = self.data.influence[guesses.records]
        weight = np.where(influence > 0, influence, 1.0)
        without, predicted = of.log_ratios(x_own, y_own, x, y, weight)
        if self._bounded:
            alone = predicted if self.data.weights is None else without
            found = self._weighed_by_draws(x_own, y_own, weight, x, values, alone)
        else:
            likelihood = np.empty((*guesses.shape, len(self.releases)))
            for index, both in enumerate(self._with):
                given = both.log_ratios(x_own, y_own, x, y, weight)[0]
                likelihood[..., index] = given - without + (both.log_evidence - of.log_evidence)
            found = Plausibility(likelihood, predicted - (y if self.spec.transform == "log" else 0.0))
        if self.data.weights is None:
            return found
        # of a record of weight 0 the release says nothing
        told = np.where((influence > 0)[:, None, None], found.likelihood, 0.0)
        return replace(found, likelihood=told, prior=self._believed._weighed(guesses, design).prior)

    def _weighed_by_draws(
        self, x_own: Floats, y_own: Floats, weight: Floats, x: Floats, values: Floats, without: Floats
    ) -> Plausibility:
        """``without`` (t, g) is the mean over the posterior without record and release of what the likelihood is the mean of with it, up to
        what a record's guesses have in common.
        """
        of, shape = self._without.posterior, values.shape
        rng = np.random.default_rng([*self.seed, len(self.releases)])
        coefficients, sigma = of.sample(WITHOUT, rng)
        likelihood, prior = np.empty((*shape, len(self.releases))), np.empty(shape)
        heavy = np.zeros(shape[0], dtype=np.bool_)
        size = together(shape[1], WITHOUT)
        for start in range(0, shape[0], size):
            rows = slice(start, start + size)
            own = weight[rows, None] * _log_normal(y_own[rows, None] - x_own[rows] @ coefficients.T, sigma)
            left = LeftOut.of(own, np.full(WITHOUT, 1 / WITHOUT))
            drawn = self._drawn(values[rows, :, None])
            prior[rows] = left.log_mean(drawn.log_density(x[rows] @ coefficients.T, sigma))
            heavy[rows] |= left.heavy
            for index, (target, thetas, weights) in enumerate(self._draws):
                design = x[rows].reshape(-1, x.shape[2])
                mean, sd = target.moments(thetas, design)
                centre = target.moments(thetas, x_own[rows])[0]
                log_own = weight[rows, None] * _log_normal(y_own[rows, None] - centre.T, sd[:, 0])
                left = LeftOut.of(log_own, weights)
                distance = response_of(values[rows], self.spec)[..., None] - mean.T.reshape(*x[rows].shape[:2], -1)
                log_guess = weight[rows, None, None] * _log_normal(distance, sd[:, 0])
                likelihood[rows, :, index] = left.log_mean(log_guess) - without[rows]
                heavy[rows] |= left.heavy
        if self.spec.transform == "log" and self.data.schema[self.target].kind is not Kind.COUNT:
            prior -= response_of(values, self.spec)
        return Plausibility(likelihood, prior, heavy)


def _log_normal(distance: Floats, sigma: Floats) -> Floats:
    return np.asarray(-0.5 * (distance / sigma) ** 2 - np.log(sigma))


FEWEST_RECORDS, MOST_TERMS, MOST_LEVELS = 100, 6, 10


def _terms(case: Case) -> tuple[str, ...]:
    """The most telling predictors that are complete, as terms: logarithms of those with a long tail."""
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


def check(data: Microdata, target: str, spec: LinearRegressionSpec, place: str) -> None:
    """BadInput where values are missing, the logarithm is undefined, terms are aliased, or predictors determine the target."""
    _checked(data, target, spec, place)


def _checked(data: Microdata, target: str, spec: LinearRegressionSpec, place: str) -> LinearPosterior:
    """The posterior of data that pass ``check``."""
    require_complete(data, target, spec.predictors, place)
    if spec.transform == "log" and (outside := int(np.sum(data.numbers(target) <= 0))):
        raise BadInput(
            f"{place}.transform",
            f'"log" is undefined for {counted(outside, "record")} where "{target}" is 0 or below; use "identity", or leave '
            "them out with [data] where",
        )
    own = rows_of(data.counted, target, spec)
    triangle = triangle_together([own])
    known = triangle[:-1, :-1] if own.data.weights is None and len(triangle) == triangle.shape[1] else None
    require_full_rank(own.data, spec.predictors, f"{place}.predictors", known)
    try:
        return posterior_of([own], spec, triangle)
    except ValueError as error:
        raise BadInput(f"{place}.predictors", str(error)) from None


def draw(
    fit: Fit,
    spec: LinearRegressionSpec,
    target: str,
    confidential: Microdata,
    released: Microdata,
    index: int,
    rng: np.random.Generator,
) -> Floats:
    """Synthetic values (n,) from posterior draw ``index``: normal around X gamma, truncated to the variable's bounds.

    A count is the normal rounded to whole numbers, given that the rounded value lies within the bounds.
    """
    variable = confidential.schema[target]
    sigma = float(fit.arrays["sigma"][index])
    mean = linear_predictor(design_of(confidential, spec), released, fit.arrays["coefficients"][index])
    low, high = limits(variable)
    lower, upper = drawn_between(variable, spec)
    values = truncated_normal(mean, sigma, lower, upper, rng)
    if spec.transform == "log":
        np.exp(values, out=values)
    if variable.kind is Kind.COUNT:
        np.rint(values, out=values)
    return np.clip(values, low, high, out=values)


def release_model(
    data: Microdata, targets: tuple[str, ...], spec: LinearRegressionSpec, releases: Sequence[Microdata], run: Run
) -> RegressedRelease:
    """The releases as an intruder weighs them."""
    (target,) = targets
    return RegressedRelease(data, target, spec, releases, tuple(map(int, run.rng.integers(2**63, size=4))))


def _diagnostics(posterior: LinearPosterior, names: tuple[str, ...]) -> tuple[Diagnostic, ...]:
    """Posterior moments, and what the prior does to every coefficient.

    ``prior_shift`` is how many standard errors the posterior mean lies from least squares; ``prior_weight``, the ratio of
    posterior to prior variance, is the share of what is known that comes from the prior.
    """
    moments = posterior.moments()
    shifts = _shifts(posterior, moments)
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


def _shifts(posterior: LinearPosterior, moments: Moments) -> Floats:
    """Distance of the posterior means from least squares in standard errors of least squares, (K,)."""
    without_prior, errors = posterior.least_squares()
    return np.asarray(np.abs(moments.mean - without_prior) / errors)


def offer(case: Case) -> Offer | None:
    """A continuous variable without gaps or heaps whose values, or their logarithms, lie about evenly around their mean."""
    seen = case.target
    if case.want != "synthesis" or seen is None or seen.variable.kind is not Kind.CONTINUOUS:
        return None
    if seen.missing or seen.commonest >= HEAP or case.table.records < FEWEST_RECORDS:
        return None
    straight = seen.skewness is not None and abs(seen.skewness) <= SYMMETRIC
    log = not straight and seen.log_skewness is not None and abs(seen.log_skewness) <= SYMMETRIC
    terms = _terms(case)
    if not (straight or log) or not terms:
        return None
    skew = seen.log_skewness if log else seen.skewness
    why = (
        f"{'the logarithms' if log else 'the values'} lie about evenly around their mean (skewness {skew:.1f}), no value is frequent and none is "
        "missing: a regression draws new numbers and has no donors; priors on standardised variables, which suit any unit"
    )
    settings = {"predictors": list(terms), "transform": "log" if log else "identity", "prior": "scaled"}
    return Offer(why, settings, SUITED)


@synthesis_method(
    "Bayesian linear regression",
    spec=LinearRegressionSpec,
    source="Guo & Hu §2.2, eq. 6-8",
    draw=draw,
    targets=(Kind.COUNT, Kind.CONTINUOUS),
    check=check,
    weighted=True,
    release_model=release_model,
    weighted_release_model=True,
)
@drafts(offer)
def linear_regression(data: Microdata, target: str, spec: LinearRegressionSpec, run: Run, draws: int) -> Fit:
    """Posterior draws ``coefficients`` (draws, K) and ``sigma`` (draws,), with posterior means and sds as diagnostics.

    Where the prior rules, ``prior_shift`` or ``prior_weight`` of a coefficient does not pass.

    Raises:
        BadInput: what ``check`` refuses.
    """
    posterior = _checked(data, target, spec, target)
    coefficients, sigma = posterior.sample(draws, run.rng)
    run.report(Progress(1, 1, f"regression of {target}"))
    names = design_of(data, spec).names
    arrays = {"coefficients": coefficients, "sigma": sigma}
    return Fit(arrays, _diagnostics(posterior, names), NoTrace(EXACT))
