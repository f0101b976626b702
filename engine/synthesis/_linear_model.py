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
from ..design.design_triangle import triangle_of_blocks
from ..design.regression_rows import RegressionRows, stack_blocks, stack_weights
from ..methods.spec import Param, Spec
from ..posterior.bayesian_linear_regression import LinearPosterior, Standardisation, require_more_records
from ..statistics.unit_effects import shared_variance

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
    unit_effect: Annotated[
        bool, Param("with [release] units: records of a unit share a part of the residual, an effect of their own")
    ] = False


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
    return posterior_of_triangle(triangle, spec, n, records, stack_blocks(tables), weights, by)


def posterior_of_triangle(
    triangle: Floats,
    spec: LinearRegressionSpec,
    n: float,
    records: int,
    held: tuple[Floats, Floats] | None = None,
    weights: Floats | None = None,
    by: Standardisation | None = None,
) -> LinearPosterior:
    """Return the posterior given ``records`` records, whose weights sum to ``n``.

    ``triangle`` is R (K + 1, K + 1) of their design and response, ``held`` both where they are one block, ``weights``
    theirs, (records,). Raises ValueError as ``LinearPosterior`` does.
    """
    settings = spec.prior_sd, spec.sigma_scale
    require_more_records(n, records, triangle.shape[1] - 1, weighted=weights is not None)
    if spec.prior == "published":
        return LinearPosterior.from_triangle(triangle, n, *settings, symmetric=held is None)
    if held is not None:
        x, y = held
        return LinearPosterior.from_records_scaled(y, x, *settings, by, weights=weights)
    return LinearPosterior.from_triangle_scaled(triangle, n, *settings, by)


def posterior_of_units(
    rows: RegressionRows, spec: LinearRegressionSpec, triangle: Floats
) -> tuple[LinearPosterior, float]:
    """Return the posterior with residuals that records of a unit share, and their share of the variance.

    The variance is sigma^2, of which the share is the intraclass correlation of the residuals of least squares. Given
    it, rows less a part of their unit's mean have independent residuals (Fuller & Battese 1973).
    """
    k, n = len(rows.design.names), float(rows.data.effective_weights.sum())
    require_more_records(n, len(rows), k, weighted=rows.data.weights is not None)
    coefficients = np.linalg.solve(triangle[:k, :k], triangle[:k, k])
    residuals = np.empty(len(rows))
    for some, x, y in rows.blocks():
        residuals[some] = y - x @ coefficients
    share, units = shared_variance(residuals, rows.data), rows.data.units
    if units is None or not share:
        return regression_posterior([rows], spec, triangle), 0.0
    weights = rows.data.effective_weights
    size = np.bincount(units.unit_of, weights)
    means = np.zeros((len(units), k + 1))
    for some, x, y in rows.blocks():
        for j, column in enumerate(np.column_stack([x, y]).T):
            means[:, j] += np.bincount(units.unit_of[some], column * weights[some], len(units))
    part = 1.0 - np.sqrt((1.0 - share) / (1.0 - share + size * share))
    means *= (part / size)[:, None]
    root = np.sqrt(weights / (1.0 - share))
    whitened = triangle_of_blocks(
        (np.column_stack([x, y]) - means[units.unit_of[some]]) * root[some, None] for some, x, y in rows.blocks()
    )
    settings = spec.prior_sd, spec.sigma_scale
    if spec.prior == "published":
        return LinearPosterior.from_triangle(whitened, n, *settings), share
    by = Standardisation.from_triangle(triangle, n)
    return LinearPosterior.from_triangle_scaled(whitened, n, *settings, by), share


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
