"""Linear regression of a variable, or of its logarithm, drawn from its posterior predictive distribution.

Guo & Hu §2.2, eq. 6-8: coefficients ~ Normal(0, 2), sigma ~ half-t with 1 df and scale 1. The m posterior draws are exact
and independent (``sfumato.engine.posterior.bayesian_linear_regression``).

Those priors were made for the logarithm of a price. For a variable in large units Normal(0, 2) outweighs the records;
the diagnostics ``prior_shift`` and ``prior_weight`` then fail, and ``prior = "scaled"`` is what to use.

What a release says of a single record is closed but for sigma (``sfumato.engine.posterior.linear_deletion``); where bounds cut the drawn
values, or whole numbers are coarse beside sigma, the posterior given a release is drawn from, and its draws are weighed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np

from ..arrays import Floats
from ..checks import require_complete, require_full_rank
from ..drafting import drafts
from ..errors import BadInput, NotComputable, NotConverged
from ..guesses import Guesses, Plausibility
from ..methods import method
from ..microdata import Microdata
from ..posterior.bayesian_linear_regression import (
    LinearPosterior,
    Moments,
    Standard,
    require_more_records,
    truncated_normal,
)
from ..posterior.drawn_in_bounds import Drawn, WithDrawn
from ..posterior.laplace import find_mode, weighted_draws
from ..posterior.linear_deletion import DeletedRecords
from ..posterior.reweighting import LeftOut, together
from ..results import Diagnostic, Fit, NoTrace
from ..run import Progress, Run, silent
from ..schema import Kind, Variable
from ..spec import Param, Spec
from ..statistics.design_triangle import design_triangle, in_one_block
from ..statistics.linear_predictor import linear_predictor
from ..terms import Design, parse_term
from ..weighting import WEIGHTS_KNOWN
from ..wording import counted
from ._drafted_regression import offer

EXACT = "its posterior draws are exact and independent"
LARGEST_SHIFT = 0.5  # standard errors; a 95 % interval that is moved so far covers in 92 %
LARGEST_WEIGHT = 0.5  # above, the prior says more than the records
LARGEST = {Kind.COUNT: 2.0**53, Kind.CONTINUOUS: 1e300}


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearRegressionSpec(Spec):
    """Predictors, scale of the response, and priors."""

    predictors: Annotated[tuple[str, ...], Param("terms of the regression", names="terms")] = ()
    transform: Annotated[Literal["identity", "log"], Param("scale on which the variable is normal")] = "identity"
    prior_sd: Annotated[float, Param("prior standard deviation of every coefficient", gt=0)] = 2.0
    sigma_scale: Annotated[float, Param("scale of the half-t prior (1 df) of sigma", gt=0)] = 1.0
    prior: Annotated[
        Literal["published", "scaled"],
        Param("priors in the variables' units (Guo & Hu), or on standardised variables, which suits any unit"),
    ] = "published"


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
    own = data.counted
    design = _design(own, spec)
    triangle = design_triangle(design, own, lambda block: _response(block.numbers(target), spec))
    known = triangle[:-1, :-1] if own.weights is None and len(triangle) == triangle.shape[1] else None
    require_full_rank(own, spec.predictors, f"{place}.predictors", known)
    try:
        return _posterior(own, design, target, spec, triangle)
    except ValueError as error:
        raise BadInput(f"{place}.predictors", str(error)) from None


def _posterior(
    data: Microdata, design: Design, target: str, spec: LinearRegressionSpec, triangle: Floats
) -> LinearPosterior:
    """Given the triangle of all records. Standardised records of one block are decomposed themselves."""
    n = float(len(data) if data.weights is None else data.weights.sum())
    settings = spec.prior_sd, spec.sigma_scale
    require_more_records(n, len(data), len(design.names), weighted=data.weights is not None)
    small = in_one_block(design, data, 1)
    if spec.prior == "published":
        return LinearPosterior.of_triangle(triangle, n, *settings, symmetric=not small)
    if small:
        y, x = _response(data.numbers(target), spec), design.matrix(data)
        return LinearPosterior.scaled(y, x, *settings, weights=data.weights)
    return LinearPosterior.scaled_triangle(triangle, n, *settings)


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
    mean = linear_predictor(_design(confidential, spec), released, fit.arrays["coefficients"][index])
    low, high = _limits(variable)
    lower, upper = _drawn_between(variable, spec)
    values = truncated_normal(mean, sigma, lower, upper, rng)
    if spec.transform == "log":
        np.exp(values, out=values)
    if variable.kind is Kind.COUNT:
        np.rint(values, out=values)
    return np.clip(values, low, high, out=values)


WITHOUT, WITH = 2000, 4000
"""Posterior draws by which records are weighed where that is not closed: given the data alone, and given a dataset too."""
NEGLIGIBLE = 1e-3
"""Of a release: the logarithm of the probability that bounds cut away from all its records, and the share of sigma^2 that rounding adds."""


@dataclass(frozen=True, eq=False)
class RegressedRelease:
    """A release of this model as an intruder weighs it.

    Without bounds that matter log p(Z | D_y) is closed but for an integral over sigma, and exact; priors on standardised
    variables, which one record more moves a little, are held where the data put them. With bounds it is a mean over draws of the posterior, with a Monte Carlo error of
    about 0.01 in the logarithm.

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
        """The one variable."""
        return (self.target,)

    @property
    def absolute(self) -> bool:
        """Whether all is closed."""
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
        return _design(self.data, self.spec)

    @cached_property
    def _believed(self) -> RegressedRelease:
        """The same of all records at full weight: what it predicts is believed before."""
        return replace(self, data=replace(self.data, weights=None))

    @cached_property
    def _own(self) -> tuple[Floats, Floats]:
        return self._design.matrix(self.data), _response(self.data.numbers(self.target), self.spec)

    @cached_property
    def _counted(self) -> tuple[Floats, Floats, Floats | None]:
        """The records that say something, and their weights."""
        x, y = self._own
        counted = self.data.influence > 0
        return x[counted], y[counted], None if self.data.weights is None else self.data.weights[counted]

    @cached_property
    def _tables(self) -> tuple[tuple[Floats, Floats], ...]:
        return tuple((self._design.matrix(one), one.numbers(self.target)) for one in self.releases)

    def _posterior(self, x: Floats, y: Floats, weights: Floats | None) -> LinearPosterior:
        """Given these records, under the prior that the confidential data make."""
        settings = self.spec.prior_sd, self.spec.sigma_scale
        try:
            if self.spec.prior == "published":
                return LinearPosterior.of(y, x, *settings, weights=weights)
            own = self._counted
            standard = Standard.of(own[1], own[0], own[2])
            return LinearPosterior.scaled(y, x, *settings, standard, weights=weights)
        except ValueError as error:
            raise NotComputable(f"{self.target}: {error}") from None

    @cached_property
    def _without(self) -> DeletedRecords:
        x, y, weights = self._counted
        return DeletedRecords.of(self._posterior(x, y, weights), x, y, weights)

    @cached_property
    def _with(self) -> tuple[DeletedRecords, ...]:
        """Given the data and each dataset, drawn without bounds."""
        found = []
        own_x, own_y, own = self._counted
        for x, z in self._tables:
            both = np.vstack([own_x, x]), np.append(own_y, _response(z, self.spec))
            weights = None if own is None else np.append(own, np.ones(len(z)))
            found.append(DeletedRecords.of(self._posterior(*both, weights), *both, weights))
        return tuple(found)

    def _drawn(self, values: Floats) -> Drawn:
        """What is known of a normal that was released as these values."""
        half = 0.5 if self.data.schema[self.target].kind is Kind.COUNT else 0.0
        variable = self.data.schema[self.target]
        lower, upper = _drawn_between(variable, self.spec)
        lower, upper = -np.inf if variable.lower is None else lower, np.inf if variable.upper is None else upper
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (_response(values + side * half, self.spec) for side in (-1, 1))
        return Drawn(np.where(np.isnan(low), -np.inf, low), high, lower, upper)

    @cached_property
    def _bounded(self) -> bool:
        """Whether bounds or rounding matter for what the release says."""
        of = self._without
        weight = np.exp(of.log_weight)
        sigma, delta = float(np.sqrt(weight @ of.variance)), weight @ of.mean
        for x, z in self._tables:
            drawn = self._drawn(z)
            mean = x @ of.posterior.centre + x @ of.posterior.back @ delta
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
        for index, (x, z) in enumerate(self._tables):
            target = WithDrawn(self._without.posterior, x, self._drawn(z))
            try:
                mode = find_mode(target)
            except NotConverged as error:
                raise NotComputable(f"{self.target}, dataset {index + 1}: {error}") from None
            rng = np.random.default_rng([*self.seed, index])
            drawn = weighted_draws(target.near(mode.theta, mode.covariance), mode, WITH, rng, silent)
            found.append((target, drawn.thetas, drawn.weights))
        return tuple(found)

    def nearer(self, guesses: Guesses) -> Floats:
        """As ``weigh``."""
        return self.weigh(guesses).likelihood

    def weigh(self, guesses: Guesses) -> Plausibility:
        """All guesses at once."""
        columns = {column for term in self._design.terms for column in term.columns}
        few, place = guesses.distinct({self.target, *columns})
        return self._weighed(few, self._design.matrix(few.table(self.data)) if few.changes(columns) else None).spread(
            place
        )

    def _weighed(self, guesses: Guesses, design: Floats | None) -> Plausibility:
        """``design`` (t * g, K) of guesses that change it."""
        of = self._without
        x_own, y_own = self._own[0][guesses.records], self._own[1][guesses.records]
        x = x_own[:, None, :] if design is None else design.reshape(*guesses.shape, -1)
        values = guesses.values[self.target]
        y = _response(values, self.spec)
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
                distance = _response(values[rows], self.spec)[..., None] - mean.T.reshape(*x[rows].shape[:2], -1)
                log_guess = weight[rows, None, None] * _log_normal(distance, sd[:, 0])
                likelihood[rows, :, index] = left.log_mean(log_guess) - without[rows]
                heavy[rows] |= left.heavy
        if self.spec.transform == "log" and self.data.schema[self.target].kind is not Kind.COUNT:
            prior -= _response(values, self.spec)
        return Plausibility(likelihood, prior, heavy)


def _log_normal(distance: Floats, sigma: Floats) -> Floats:
    return np.asarray(-0.5 * (distance / sigma) ** 2 - np.log(sigma))


def release_model(
    data: Microdata, targets: tuple[str, ...], spec: LinearRegressionSpec, releases: Sequence[Microdata], run: Run
) -> RegressedRelease:
    """The releases as an intruder weighs them."""
    (target,) = targets
    return RegressedRelease(data, target, spec, releases, tuple(map(int, run.rng.integers(2**63, size=4))))


@method(
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
    names = _design(data, spec).names
    arrays = {"coefficients": coefficients, "sigma": sigma}
    return Fit(arrays, _diagnostics(posterior, names), NoTrace(EXACT))


def _design(data: Microdata, spec: LinearRegressionSpec) -> Design:
    return Design.of([parse_term(text, data.schema, text) for text in spec.predictors], data)


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


def _limits(variable: Variable) -> tuple[float, float]:
    largest = LARGEST[variable.kind]
    return (
        -largest if variable.lower is None else variable.lower,
        largest if variable.upper is None else variable.upper,
    )


def _drawn_between(variable: Variable, spec: LinearRegressionSpec) -> tuple[float, float]:
    """The bounds of what is drawn: a count is rounded to a whole number within its own."""
    low, high = _limits(variable)
    half = 0.5 if variable.kind is Kind.COUNT else 0.0
    return _forward(low - half, spec), _forward(high + half, spec)


def _response(values: Floats, spec: LinearRegressionSpec) -> Floats:
    """On the scale on which the variable is normal."""
    return np.asarray(np.log(values)) if spec.transform == "log" else values


def _forward(value: float, spec: LinearRegressionSpec) -> float:
    if spec.transform == "identity":
        return value
    return float(np.log(value)) if value > 0 else -np.inf
