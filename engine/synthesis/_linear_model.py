"""Settings of the linear regression, the posterior of its coefficients, and the scale and bounds of its response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..data.schema import Kind, Variable
from ..design.design_matrix import Design
from ..design.regression_rows import RegressionRows, stack_blocks, stack_weights
from ..methods.spec import Param, Spec
from ..posterior.bayesian_linear_regression import LinearPosterior, Standardisation, require_more_records

# Beyond 2^53 whole numbers are no longer exact as floats; 1e300 is near the largest float.
LARGEST = {Kind.COUNT: 2.0**53, Kind.CONTINUOUS: 1e300}


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearRegressionSpec(Spec):
    """Settings of the linear regression: predictors, scale of the response, and priors."""

    predictors: Annotated[tuple[str, ...], Param("terms of the regression", names="terms")] = ()
    transform: Annotated[Literal["identity", "log"], Param("scale on which the variable is normal")] = "identity"
    prior_sd: Annotated[float, Param("prior standard deviation of every coefficient", gt=0)] = 2.0
    sigma_scale: Annotated[float, Param("scale of the half-t prior (1 df) of sigma", gt=0)] = 1.0
    prior: Annotated[
        Literal["published", "scaled"],
        Param("priors in the variables' units (Guo & Hu), or on standardised variables, which suits any unit"),
    ] = "published"


def make_regression_rows(
    data: Microdata, target: str, spec: LinearRegressionSpec, design: Design | None = None
) -> RegressionRows:
    """Return the records as rows of the regression, by the levels of ``design`` or, without one, by their own."""
    found = Design.from_texts(spec.predictors, data) if design is None else design
    return RegressionRows(found, data, lambda block: transform_response(block.numbers(target), spec))


def regression_posterior(
    tables: Sequence[RegressionRows], spec: LinearRegressionSpec, triangle: Floats, by: Standardisation | None = None
) -> LinearPosterior:
    """Return the posterior given the records of these tables.

    ``triangle`` is R of all of them with the response. ``by`` is the standardisation where that is not of these
    records. Raises ValueError as ``LinearPosterior`` does.
    """
    weights, records = stack_weights(tables), sum(map(len, tables))
    n = float(records if weights is None else weights.sum())
    settings = spec.prior_sd, spec.sigma_scale
    require_more_records(n, records, len(tables[0].design.names), weighted=weights is not None)
    held = stack_blocks(tables)
    if spec.prior == "published":
        return LinearPosterior.from_triangle(triangle, n, *settings, symmetric=held is None)
    if held is not None:
        x, y = held
        return LinearPosterior.from_records_scaled(y, x, *settings, by, weights=weights)
    return LinearPosterior.from_triangle_scaled(triangle, n, *settings, by)


def value_limits(variable: Variable) -> tuple[float, float]:
    """Return the bounds of the variable, or the largest numbers that its column can hold."""
    largest = LARGEST[variable.kind]
    return (
        -largest if variable.lower is None else variable.lower,
        largest if variable.upper is None else variable.upper,
    )


def response_limits(variable: Variable, spec: LinearRegressionSpec) -> tuple[float, float]:
    """Return the bounds of the drawn response, on its scale."""
    low, high = value_limits(variable)
    # A count is rounded, so that half a unit beyond its bounds still becomes the bound.
    half = 0.5 if variable.kind is Kind.COUNT else 0.0
    return transform_bound(low - half, spec), transform_bound(high + half, spec)


def transform_response(values: Floats, spec: LinearRegressionSpec) -> Floats:
    """Return values on the scale on which the variable is normal."""
    return np.asarray(np.log(values)) if spec.transform == "log" else values


def transform_bound(value: float, spec: LinearRegressionSpec) -> float:
    """Return a bound on the scale of the response."""
    if spec.transform == "identity":
        return value
    return float(np.log(value)) if value > 0 else -np.inf
