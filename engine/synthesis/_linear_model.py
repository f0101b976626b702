"""What a linear regression is given, and the posterior of its coefficients: settings, the scale of its response, and between what bounds that is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..data.schema import Kind, Variable
from ..data.terms import Design, parse_term
from ..design.regression_rows import RegressionRows, held_together, weights_together
from ..methods.spec import Param, Spec
from ..posterior.bayesian_linear_regression import LinearPosterior, Standard, require_more_records

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


def rows_of(data: Microdata, target: str, spec: LinearRegressionSpec, design: Design | None = None) -> RegressionRows:
    """The records as they are regressed, by the levels of ``design``, without one by their own."""
    found = design_of(data, spec) if design is None else design
    return RegressionRows(found, data, lambda block: response_of(block.numbers(target), spec))


def design_of(data: Microdata, spec: LinearRegressionSpec) -> Design:
    return Design.of([parse_term(text, data.schema, text) for text in spec.predictors], data)


def posterior_of(
    tables: Sequence[RegressionRows], spec: LinearRegressionSpec, triangle: Floats, by: Standard | None = None
) -> LinearPosterior:
    """Given the records of these tables, and R of all of them with the response. Standardised ones are decomposed themselves where each table is one block.

    ``by`` is what variables are standardised by where that is not these records. Raises ValueError as ``LinearPosterior`` does.
    """
    weights, records = weights_together(tables), sum(map(len, tables))
    n = float(records if weights is None else weights.sum())
    settings = spec.prior_sd, spec.sigma_scale
    require_more_records(n, records, len(tables[0].design.names), weighted=weights is not None)
    held = held_together(tables)
    if spec.prior == "published":
        return LinearPosterior.of_triangle(triangle, n, *settings, symmetric=held is None)
    if held is not None:
        x, y = held
        return LinearPosterior.scaled(y, x, *settings, by, weights=weights)
    return LinearPosterior.scaled_triangle(triangle, n, *settings, by)


def limits(variable: Variable) -> tuple[float, float]:
    """The variable's bounds, or the largest numbers that its column has room for."""
    largest = LARGEST[variable.kind]
    return (
        -largest if variable.lower is None else variable.lower,
        largest if variable.upper is None else variable.upper,
    )


def drawn_between(variable: Variable, spec: LinearRegressionSpec) -> tuple[float, float]:
    """The bounds of what is drawn: a count is rounded to a whole number within its own."""
    low, high = limits(variable)
    half = 0.5 if variable.kind is Kind.COUNT else 0.0
    return forward(low - half, spec), forward(high + half, spec)


def response_of(values: Floats, spec: LinearRegressionSpec) -> Floats:
    """On the scale on which the variable is normal."""
    return np.asarray(np.log(values)) if spec.transform == "log" else values


def forward(value: float, spec: LinearRegressionSpec) -> float:
    """A bound on the scale of the response."""
    if spec.transform == "identity":
        return value
    return float(np.log(value)) if value > 0 else -np.inf
