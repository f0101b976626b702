"""Summary statistics of each variable of the release, with those of the confidential data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Annotated, Any, Self

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.block_sums import Summands, SummedTable, keep_parts
from ..data.intervals import AT_LEAST_ONE, NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, compared_variables, value_range
from ..data.table_blocks import OneBlock
from ..design.survey import SurveyDesign
from ..design.survey_estimation import design_effect, weighted_mean, weighted_quantiles, weighted_sd, weighted_share
from ..errors import BadInput
from ..execution.combining import BOUNDS, average_within_bounds, stated_bounds
from ..methods.asked_passes import SummedPasses
from ..methods.outputs import Label, Output
from ..methods.passes import NextPass, measure_blocks
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.number_facts import NumberFacts
from ..statistics.ordered_blocks import (
    bounds_of_rank,
    cut_values,
    quantile_of_neighbours,
    rank_of_quantile,
    values_at_ranks,
    values_between,
)

NO_VALUE, ONE_RECORD = "no record has a value", "one record has no standard deviation"
SUMMARISED = (Kind.COUNT, Kind.CONTINUOUS, Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY)


@dataclass(frozen=True, slots=True)
class _ValueStatistics:
    """Statistics of the values of a variable that are present.

    shares: shares of the levels, (levels,); none of a number
    mean, sd: mean and standard deviation of a number; no standard deviation of one value
    quantiles: its quantiles
    share_of_zeros: share of its values that are 0
    """

    shares: Sequence[float] = ()
    mean: float = 0.0
    sd: float | None = None
    quantiles: Sequence[float] = ()
    share_of_zeros: float = 0.0

    @classmethod
    def from_weights(cls, data: Microdata, name: str, spec: SummarySpec, weights: Floats) -> Self | None:
        """Return the statistics by survey weights (n,); None where no value is present."""
        values, own = data.present_numbers(name), weights[~data.missing_mask(name)]
        if not len(values):
            return None
        if data.schema[name].kind.has_levels:
            levels = range(len(data.column(name).cat.categories))
            return cls([weighted_share(values == code, own) for code in levels])
        return cls(
            mean=weighted_mean(values, own),
            sd=weighted_sd(values, own) if len(values) > 1 else None,
            quantiles=weighted_quantiles(values, own, spec.quantiles).tolist(),
            share_of_zeros=weighted_share(values == 0, own),
        )


def _variable_estimates(
    tables: tuple[Microdata, Microdata],
    name: str,
    spec: SummarySpec,
    share_missing: float | None,
    found: _ValueStatistics | None,
) -> Iterator[Estimate]:
    """Yield the statistics of a variable, None where no released record has a value, with the share of missing values
    where either of both ``tables`` has some.
    """
    if share_missing is not None:
        yield Estimate("share_missing", share_missing, name)
    data, rows = tables[0] if found is None else tables[1], list[tuple[str, float | None, dict[str, Any]]]()
    of, kind = found or _ValueStatistics(), data.schema[name].kind
    if kind.has_levels:
        levels = [str(level) for level in data.column(name).cat.categories]
        rows += [("share", share, {"level": level}) for level, share in zip_longest(levels, of.shares)]
    else:
        rows += [("mean", of.mean, {}), ("sd", of.sd, {})]
        rows += [("quantile", value, {"q": q}) for q, value in zip_longest(spec.quantiles, of.quantiles)]
        rows += [("share_of_zeros", of.share_of_zeros, {})] if kind is Kind.COUNT else []
    for measure, value, params in rows:
        if found is None or value is None:
            yield Estimate.not_computed(measure, NO_VALUE if found is None else ONE_RECORD, name, **params)
        else:
            yield Estimate(measure, value, name, params=params)


@dataclass(frozen=True)
class _VariableSums:
    """What the first pass says of a variable of the release.

    present, missing: numbers of records with and without a value
    has_gaps: whether a record of either table has no value
    levels: records with each level, (levels,); None for a number
    total, largest, zeros: sum, largest absolute value and number of zeros of the values
    between: for each quantile, two values between which it lies
    """

    present: int
    missing: int
    has_gaps: bool
    levels: Integers | None = None
    total: float = 0.0
    largest: float = 0.0
    zeros: int = 0
    between: tuple[tuple[float, float], ...] = ()

    @classmethod
    def from_parts(cls, parts: Sequence[Summands], quantiles: Sequence[float]) -> Self:
        """Join what blocks say (``_sums_of_block``)."""
        counts, rest = [one[0] for one in parts], [one[1:] for one in parts]
        present, missing, our_missing = np.sum(counts, axis=0).tolist()
        first = cls(present, missing, bool(missing or our_missing))
        if len(rest[0]) == 1:
            return replace(first, levels=np.sum([levels for (levels,) in rest], axis=0))
        totals, largest, zeros, cuts = zip(*rest, strict=True)
        ranks = [rank_of_quantile(present, q) for q in quantiles] if present else []
        records = [int(one[0]) for one in counts]
        between = tuple(bounds_of_rank(cuts, records, rank) for rank in ranks)
        return replace(first, total=math.fsum(totals), largest=max(largest), zeros=sum(zeros), between=between)

    @property
    def share_missing(self) -> float | None:
        """Return the share of released records without a value; None where all records of both tables have one."""
        return self.missing / (self.present + self.missing) if self.has_gaps else None

    @property
    def scale(self) -> float:
        """Return what values are divided by, since their squares may overflow."""
        return self.largest or 1.0

    def to_statistics(self, deviations: Sequence[Summands], quantiles: Sequence[float]) -> _ValueStatistics | None:
        """Return the statistics, given what the second pass says of each block (``_deviations_of_block``)."""
        if not self.present:
            return None
        if self.levels is not None:
            return _ValueStatistics((self.levels / self.present).tolist())
        moments, *near = zip(*deviations, strict=True)
        facts = NumberFacts.from_blocks(moments)
        found = []
        for q, own in zip(quantiles, near, strict=True):
            rank = rank_of_quantile(self.present, q)
            lower, upper = values_at_ranks(own, np.array([rank, rank + 1])).tolist()
            found.append(quantile_of_neighbours(lower, upper, self.present, q))
        sd = facts.standard_deviation(ddof=1) * self.scale if self.present > 1 else None
        return _ValueStatistics((), self.total / self.present, sd, found, self.zeros / self.present)


class SummaryPasses(SummedPasses):
    """Two passes: counts and sums, then deviations from the means and the values around the quantiles."""

    def start(self, confidential: Microdata, released: Microdata, spec: SummarySpec, n_blocks: int) -> NextPass:
        spec = spec.for_release(confidential.schema, ())
        compute = partial(_measure_of_sums, (confidential, released), spec)
        return self.first_pass(compute, confidential, n_blocks, spec.variables, "statistics of variables")


def _measure_of_sums(heads: tuple[Microdata, Microdata], spec: SummarySpec, both: SummedTable) -> Measure:
    """Return the measure of two tables that are asked for sums together."""
    parts = both.ask_sums(partial(_sums_of_block, spec.variables), keep_parts)
    known = {
        name: _VariableSums.from_parts(own, spec.quantiles) for name, own in zip(spec.variables, parts, strict=True)
    }
    numeric = {name: one for name, one in known.items() if one.levels is None and one.present}
    deviations: dict[str, Sequence[Summands]] = {}
    if numeric:
        found = both.ask_sums(partial(_deviations_of_block, numeric), keep_parts, tuple(numeric))
        deviations = dict(zip(numeric, found, strict=True))
    return _measure_of_estimates(
        *heads,
        [
            estimate
            for name, one in known.items()
            for estimate in _variable_estimates(
                heads, name, spec, one.share_missing, one.to_statistics(deviations.get(name, ()), spec.quantiles)
            )
        ],
    )


def _sums_of_block(names: Sequence[str], confidential: Microdata, released: Microdata) -> Summands:
    """Return for each variable of a block the released records with and without a value and the confidential ones
    without; and the records of each level, or sum, largest size, zeros and cuts of the values.
    """
    found = list[Summands]()
    for name in names:
        values, missing = released.present_numbers(name), [int(confidential.missing_mask(name).sum())]
        counts = np.array([len(values), len(released) - len(values), *missing], dtype=np.int64)
        if released.schema[name].kind.has_levels:
            levels = len(released.column(name).cat.categories)
            found.append((counts, np.bincount(values.astype(np.int64), minlength=levels)))
            continue
        largest = float(np.abs(values).max(initial=0.0))
        found.append((counts, float(np.sum(values)), largest, int((values == 0).sum()), cut_values(values)))
    return tuple(found)


def _deviations_of_block(known: Mapping[str, _VariableSums], confidential: Microdata, released: Microdata) -> Summands:
    """Return for each numeric variable the moments of a block, in units of its scale, and its values around each
    quantile.
    """
    found = []
    for name, one in known.items():
        values = released.present_numbers(name)
        found.append((NumberFacts.from_values(values / one.scale).as_array, *values_between(values, one.between)))
    return tuple(found)


def _measure_of_estimates(confidential: Microdata, released: Microdata, estimates: Sequence[Estimate]) -> Measure:
    """Return the measure, with the bounds of the variables for the intervals of a release's means and quantiles."""
    bounds = [
        bound
        for found in estimates
        if released.origin != "confidential" and found.measure in ("mean", "quantile") and found.value is not None
        for bound in stated_bounds(value_range(confidential.schema[found.target]), found.target, found.params)
    ]
    return Measure((*estimates, *bounds))


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
            label=Label("Quantile", "{part} of the records have {value} or less of {variable}, its {q} quantile."),
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
            label=Label(
                "Share of records with a value", "Of the records, {value} have {level} as their value of {variable}."
            ),
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
            label=Label(
                "People that the records stand for",
                "The records stand for {value} people.",
                bad="another number than in the data: totals that users compute are wrong by the same share",
            ),
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
                bad="higher than in the data: means that users compute are then less exact",
            ),
        ),
        *BOUNDS,
    ),
    confidential=True,
    survey_weighted=True,
    combine=average_within_bounds,
    measure_passes=SummaryPasses(),
)
def summary(confidential: Microdata, released: Microdata, spec: SummarySpec, run: Run) -> Measure:
    """Measure summary statistics of the released data; the confidential data are measured in the same way."""
    design = SurveyDesign.from_schema(confidential.schema)
    if design is None:
        return measure_blocks(SummaryPasses(), OneBlock(confidential), OneBlock(released), spec)
    weights, estimates = design.weights_of(released), list[Estimate]()
    for name in spec.for_release(confidential.schema, ()).variables:
        missing, share = released.missing_mask(name), None
        if missing.any() or confidential.missing_mask(name).any():
            share = weighted_share(missing, weights)
        found = _ValueStatistics.from_weights(released, name, spec, weights)
        estimates += _variable_estimates((confidential, released), name, spec, share, found)
    estimates += [
        Estimate("population", float(weights.sum()), design.weight),
        Estimate("design_effect", design_effect(weights), design.weight),
    ]
    return _measure_of_estimates(confidential, released, estimates)
