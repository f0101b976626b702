"""Summary statistics of each variable of the release, with those of the confidential data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from ..data.arrays import Booleans, Floats
from ..data.intervals import AT_LEAST_ONE, NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, compared_variables, value_range
from ..design.survey import SurveyDesign
from ..design.survey_estimation import design_effect, weighted_mean, weighted_quantile, weighted_sd, weighted_share
from ..errors import BadInput
from ..execution.combining import BOUNDS, average_within_bounds, stated_bounds
from ..methods.outputs import Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec

SUMMARISED = (Kind.COUNT, Kind.CONTINUOUS, Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY)
OptionalTableWeights = tuple[Floats | None, Floats | None]
"""The survey weights of both tables, (n,) and (m,); None without a weight."""


def _stated_bounds(confidential: Microdata, estimates: Sequence[Estimate]) -> Iterator[Estimate]:
    """Yield the bounds of the variables, for the intervals of their means and quantiles."""
    for found in estimates:
        if found.measure in ("mean", "quantile") and found.value is not None:
            yield from stated_bounds(value_range(confidential.schema[found.target]), found.target, found.params)


def _table_weights(confidential: Microdata, released: Microdata, design: SurveyDesign | None) -> OptionalTableWeights:
    """Return the survey weights of both tables, None for each without a design."""
    return (None, None) if design is None else (design.weights_of(confidential), design.weights_of(released))


def _variable_estimates(
    confidential: Microdata, data: Microdata, name: str, spec: SummarySpec, weights: OptionalTableWeights
) -> Iterator[Estimate]:
    """Yield the statistics of a variable, with the share of missing values where either table has some."""
    missing = data.missing_mask(name)
    if missing.any() or confidential.missing_mask(name).any():
        yield Estimate("share_missing", _weighted_share(missing, weights[1]), name)
    if missing.all():
        like = _value_estimates(confidential, name, spec, weights[0])
        yield from (replace(estimate, value=None, reason="no record has a value") for estimate in like)
    else:
        yield from _value_estimates(data, name, spec, weights[1])


def _weighted_share(holds: Booleans, weights: Floats | None) -> float:
    """Return the share of records for which ``holds`` (n,) is true, by survey weights where there are some."""
    return float(np.mean(holds)) if weights is None else weighted_share(holds, weights)


def _value_estimates(data: Microdata, name: str, spec: SummarySpec, weights: Floats | None) -> Iterator[Estimate]:
    """Yield the statistics of the values of a variable that are present."""
    kind, values = data.schema[name].kind, data.present_numbers(name)
    own = None if weights is None else weights[~data.missing_mask(name)]
    if kind.has_levels:
        for code, level in enumerate(data.column(name).cat.categories):
            yield Estimate("share", _weighted_share(values == code, own), name, params={"level": str(level)})
        return
    yield Estimate("mean", float(np.mean(values)) if own is None else weighted_mean(values, own), name)
    if len(values) > 1:
        sd = _standard_deviation(values) if own is None else weighted_sd(values, own)
        yield Estimate("sd", sd, name)
    else:
        yield Estimate.not_computed("sd", "one record has no standard deviation", name)
    for q in spec.quantiles:
        quantile = float(np.quantile(values, q)) if own is None else weighted_quantile(values, own, q)
        yield Estimate("quantile", quantile, name, params={"q": q})
    if kind is Kind.COUNT:
        yield Estimate("share_of_zeros", _weighted_share(values == 0, own), name)


def _standard_deviation(values: Floats) -> float:
    """Return the standard deviation of values (n,), n at least 2, with divisor n - 1."""
    # Squares of the values themselves may overflow.
    scale = float(np.abs(values).max()) or 1.0
    return float(np.std(values / scale, ddof=1)) * scale


@dataclass(frozen=True, kw_only=True, slots=True)
class SummarySpec(Spec):
    """Variables to summarise, and the quantiles of numbers."""

    variables: Annotated[
        tuple[str, ...],
        Param(
            "variables to summarise; the released ones if empty", names="variables", kinds=SUMMARISED, filters_rows=True
        ),
    ] = ()
    quantiles: Annotated[tuple[float, ...], Param("quantiles of numeric variables", ge=0, le=1, filters_rows=True)] = (
        0.25,
        0.5,
        0.75,
        0.9,
    )

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput where no variable is named and only dates are released."""
        if not self.for_release(schema, released).variables:
            raise BadInput(place, "no released variable can be summarised; leave it out")

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with the released variables where none is named."""
        return replace(self, variables=self.variables or compared_variables(schema, released, SUMMARISED))


@measure_method(
    "Summary statistics",
    spec=SummarySpec,
    source="Guo & Hu Supp 1, Table 5",
    outputs=(
        Output(
            "mean",
            "mean of the variable",
            "none",
            label=Label("Mean", "The mean of {variable} is {value}."),
        ),
        Output(
            "sd",
            "standard deviation of the variable",
            "none",
            range=NON_NEGATIVE,
            statbarn="Shape",
            label=Label("Standard deviation", "The standard deviation of {variable} is {value}."),
        ),
        Output(
            "quantile",
            "quantile q of the variable, interpolated between the two nearest values; by survey weights the least value with a "
            "share of q at or below it",
            "none",
            statbarn="Position",
            label=Label(
                "Quantile", "The {q} quantile of {variable} is {value}: that share of the records has it or less."
            ),
        ),
        Output(
            "share_of_zeros",
            "share of the records whose count is 0",
            "none",
            "share",
            range=SHARE,
            label=Label("Share of records with a count of 0", "In {value} of the records, {variable} is 0."),
        ),
        Output(
            "share",
            "share of the records that have the level",
            "none",
            "share",
            range=SHARE,
            label=Label("Share of records with a value", "Of the records, {value} have this value of {variable}."),
        ),
        Output(
            "share_missing",
            "share of the records that have no value; the other statistics are of those that have one",
            "none",
            "share",
            range=SHARE,
            label=Label("Share of records without a value", "Of the records, {value} have no value of {variable}."),
        ),
        Output(
            "population",
            "people that the records stand for: the sum of their survey weights",
            "none",
            range=NON_NEGATIVE,
            statbarn="Frequencies",
            label=Label("People that the records stand for", "The records stand for {value} people."),
        ),
        Output(
            "design_effect",
            "by how much unequal survey weights raise the variance of a mean that they have nothing to do with (Kish)",
            "none",
            range=AT_LEAST_ONE,
            statbarn="Shape",
            label=Label(
                "Design effect of the survey weights",
                "Unequal survey weights raise the variance of a mean {value} times.",
            ),
        ),
        *BOUNDS,
    ),
    confidential=True,
    survey_weighted=True,
    combine=average_within_bounds,
)
def summary(confidential: Microdata, released: Microdata, spec: SummarySpec, run: Run) -> Measure:
    """Measure summary statistics of the released data; the confidential data are measured in the same way."""
    names = spec.for_release(confidential.schema, ()).variables
    design = SurveyDesign.from_schema(confidential.schema)
    weights = _table_weights(confidential, released, design)
    estimates = [
        estimate for name in names for estimate in _variable_estimates(confidential, released, name, spec, weights)
    ]
    if design is not None and weights[1] is not None:
        estimates += [
            Estimate("population", float(weights[1].sum()), design.weight),
            Estimate("design_effect", design_effect(weights[1]), design.weight),
        ]
    return Measure(
        (*estimates, *(_stated_bounds(confidential, estimates) if released.origin != "confidential" else ()))
    )
