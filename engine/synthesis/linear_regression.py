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

import numpy as np

from ..arrays import Floats
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..design.linear_predictor import linear_predictor
from ..design.regression_rows import triangle_together
from ..errors import BadInput
from ..methods.drafting import drafts
from ..methods.registry import method
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Progress, Run
from ..posterior.bayesian_linear_regression import LinearPosterior, Moments, truncated_normal
from ..recipe.checks import require_complete, require_full_rank
from ..wording import counted
from ._drafted_regression import offer
from ._linear_model import LinearRegressionSpec, design_of, drawn_between, limits, posterior_of, rows_of
from ._regressed_release import RegressedRelease

EXACT = "its posterior draws are exact and independent"
LARGEST_SHIFT = 0.5  # standard errors; a 95 % interval that is moved so far covers in 92 %
LARGEST_WEIGHT = 0.5  # above, the prior says more than the records


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
    names = design_of(data, spec).names
    arrays = {"coefficients": coefficients, "sigma": sigma}
    return Fit(arrays, _diagnostics(posterior, names), NoTrace(EXACT))


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
