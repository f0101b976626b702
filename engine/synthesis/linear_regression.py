"""Linear regression of a variable, or of its logarithm, drawn from its posterior predictive distribution.

Guo & Hu §2.2, eq. 6-8: coefficients ~ Normal(0, 2), sigma ~ half-t with 1 df and scale 1. The m posterior draws are exact
and independent (``sfumato.engine.posterior.bayesian_linear_regression``).

Those priors were made for the logarithm of a price. For a variable in large units Normal(0, 2) outweighs the records;
the diagnostics ``prior_shift`` and ``prior_weight`` then fail, and ``prior = "scaled"`` is what to use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from ..arrays import Floats
from ..checks import require_complete, require_full_rank
from ..errors import BadInput
from ..methods import method
from ..microdata import Microdata
from ..posterior.bayesian_linear_regression import LinearPosterior, Moments, truncated_normal
from ..results import Diagnostic, Fit, NoTrace
from ..run import Progress, Run
from ..schema import Kind, Variable
from ..spec import Param, Spec
from ..terms import Design, parse_term

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
    require_complete(data, target, spec.predictors, place)
    y = data.numbers(target)
    if spec.transform == "log" and (outside := int(np.sum(y <= 0))):
        raise BadInput(
            f"{place}.transform",
            f'"log" is undefined for {outside:,} records where "{target}" is 0 or below; use "identity", or leave '
            "them out with [data] where",
        )
    require_full_rank(data.counted, spec.predictors, f"{place}.predictors")
    try:
        _posterior(data, target, spec)
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
    mean = _design(confidential, spec).matrix(released) @ fit.arrays["coefficients"][index]
    low, high = _limits(variable)
    half = 0.5 if variable.kind is Kind.COUNT else 0.0
    lower, upper = _forward(low - half, spec), _forward(high + half, spec)
    values = truncated_normal(mean, sigma, lower, upper, rng)
    if spec.transform == "log":
        values = np.exp(values)
    if variable.kind is Kind.COUNT:
        values = np.rint(values)
    return np.clip(values, low, high)


@method(
    "Bayesian linear regression",
    spec=LinearRegressionSpec,
    source="Guo & Hu §2.2, eq. 6-8",
    draw=draw,
    targets=(Kind.COUNT, Kind.CONTINUOUS),
    check=check,
    weighted=True,
)
def linear_regression(data: Microdata, target: str, spec: LinearRegressionSpec, run: Run, draws: int) -> Fit:
    """Posterior draws ``coefficients`` (draws, K) and ``sigma`` (draws,), with posterior means and sds as diagnostics.

    Where the prior rules, ``prior_shift`` or ``prior_weight`` of a coefficient does not pass.

    Raises:
        BadInput: what ``check`` refuses.
    """
    check(data, target, spec, target)
    posterior = _posterior(data, target, spec)
    coefficients, sigma = posterior.sample(draws, run.rng)
    run.report(Progress(1, 1, f"regression of {target}"))
    names = _design(data, spec).names
    arrays = {"coefficients": coefficients, "sigma": sigma}
    return Fit(arrays, _diagnostics(posterior, names), NoTrace(EXACT))


def _posterior(data: Microdata, target: str, spec: LinearRegressionSpec) -> LinearPosterior:
    data = data.counted
    y = data.numbers(target)
    response = np.log(y) if spec.transform == "log" else y
    posterior_of = LinearPosterior.scaled if spec.prior == "scaled" else LinearPosterior.of
    x = _design(data, spec).matrix(data)
    return posterior_of(response, x, spec.prior_sd, spec.sigma_scale, weights=data.weights)


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


def _forward(value: float, spec: LinearRegressionSpec) -> float:
    if spec.transform == "identity":
        return value
    return float(np.log(value)) if value > 0 else -np.inf
