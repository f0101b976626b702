"""Summary statistics of each variable of the release, with those of the confidential data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.intervals import AT_LEAST_ONE, NON_NEGATIVE, SHARE
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, compared_variables, value_range
from ..data.table_blocks import OneBlock
from ..design.survey import SurveyDesign
from ..design.survey_estimation import design_effect, weighted_mean, weighted_quantile, weighted_sd, weighted_share
from ..errors import BadInput
from ..execution.combining import BOUNDS, average_within_bounds, stated_bounds
from ..methods.outputs import Label, Output
from ..methods.passes import Finished, NextPass, Partial, measure_blocks
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.ordered_blocks import (
    bounds_of_rank,
    count_values,
    cut_values,
    merge_counts,
    quantile_of_neighbours,
    rank_of_quantile,
)

NO_VALUE, ONE_RECORD = "no record has a value", "one record has no standard deviation"
SUMMARISED = (Kind.COUNT, Kind.CONTINUOUS, Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY)


def _stated_bounds(confidential: Microdata, estimates: Sequence[Estimate]) -> Iterator[Estimate]:
    """Yield the bounds of the variables, for the intervals of their means and quantiles."""
    for found in estimates:
        if found.measure in ("mean", "quantile") and found.value is not None:
            yield from stated_bounds(value_range(confidential.schema[found.target]), found.target, found.params)


def _weighted_estimates(
    confidential: Microdata, data: Microdata, name: str, spec: SummarySpec, weights: tuple[Floats, Floats]
) -> Iterator[Estimate]:
    """Yield the statistics of a variable by the survey weights (n,) and (m,) of both tables, with the share of missing
    values where either has some.
    """
    ours, theirs = weights
    missing = data.missing_mask(name)
    if missing.any() or confidential.missing_mask(name).any():
        yield Estimate("share_missing", weighted_share(missing, theirs), name)
    if missing.all():
        like = _weighted_values(confidential, name, spec, ours)
        yield from (replace(estimate, value=None, reason=NO_VALUE) for estimate in like)
    else:
        yield from _weighted_values(data, name, spec, theirs)


def _weighted_values(data: Microdata, name: str, spec: SummarySpec, weights: Floats) -> Iterator[Estimate]:
    """Yield the statistics of the values of a variable that are present, by survey weights (n,)."""
    kind, values = data.schema[name].kind, data.present_numbers(name)
    own = weights[~data.missing_mask(name)]
    if kind.has_levels:
        for code, level in enumerate(data.column(name).cat.categories):
            yield Estimate("share", weighted_share(values == code, own), name, params={"level": str(level)})
        return
    yield Estimate("mean", weighted_mean(values, own), name)
    if len(values) > 1:
        yield Estimate("sd", weighted_sd(values, own), name)
    else:
        yield Estimate.not_computed("sd", ONE_RECORD, name)
    for q in spec.quantiles:
        yield Estimate("quantile", weighted_quantile(values, own, q), name, params={"q": q})
    if kind is Kind.COUNT:
        yield Estimate("share_of_zeros", weighted_share(values == 0, own), name)


@dataclass(frozen=True)
class _VariableSummary:
    """What is known of a variable of the release.

    present, missing: numbers of records with and without a value
    ours, ours_missing: the same of the confidential records
    levels: records with each level, (levels,); None for a number
    total, largest, zeros: sum, largest absolute value and number of zeros of the values
    between: for each quantile, two values between which it lies
    deviations: sum of squared deviations of the values, in units of ``scale``, from their mean
    quantiles: the quantiles
    """

    present: int
    missing: int
    ours: int
    ours_missing: int
    levels: Integers | None = None
    total: float = 0.0
    largest: float = 0.0
    zeros: int = 0
    between: tuple[tuple[float, float], ...] = ()
    deviations: float = 0.0
    quantiles: tuple[float, ...] = ()

    @property
    def scale(self) -> float:
        """Return what values are divided by, since their squares may overflow."""
        return self.largest or 1.0

    @property
    def sd(self) -> float:
        """Return the standard deviation of at least two values, with divisor n - 1."""
        return float(np.sqrt(self.deviations / (self.present - 1))) * self.scale


@dataclass(frozen=True)
class _SummaryState:
    """What the passes of a summary know.

    confidential, released: both tables without records
    spec: what is asked
    names: variables
    alone: whether there is one block
    known: of each variable, after the first pass
    """

    confidential: Microdata
    released: Microdata
    spec: SummarySpec
    names: tuple[str, ...]
    alone: bool
    known: Mapping[str, _VariableSummary] = field(default_factory=dict)

    @property
    def numeric(self) -> tuple[str, ...]:
        """Return the numeric variables of which some released record has a value, after the first pass."""
        return tuple(name for name, one in self.known.items() if one.levels is None and one.present)


class SummaryPasses:
    """Two passes: counts and sums, then deviations from the means and the values around the quantiles."""

    def suits(self, spec: SummarySpec, schema: Schema) -> bool:
        return True

    def start(self, confidential: Microdata, released: Microdata, spec: SummarySpec, n_blocks: int) -> NextPass:
        names = spec.for_release(confidential.schema, ()).variables
        state = _SummaryState(confidential, released, spec, names, n_blocks == 1)
        return NextPass(state, names, "counts and sums of variables")

    def block(self, state: _SummaryState, confidential: Microdata, released: Microdata) -> Partial:
        if state.known:
            return _deviations_of_block(state, released)
        found: dict[str, NDArray[Any]] = {}
        for name in state.names:
            ours, missing = confidential.missing_mask(name), released.missing_mask(name)
            counts = [len(missing) - int(missing.sum()), int(missing.sum()), int((~ours).sum()), int(ours.sum())]
            found[f"{name}.counts"] = np.array(counts, dtype=np.int64)
            values = released.present_numbers(name)
            if released.schema[name].kind.has_levels:
                levels = len(released.column(name).cat.categories)
                found[f"{name}.levels"] = np.bincount(values.astype(np.int64), minlength=levels)
                continue
            largest = float(np.abs(values).max(initial=0.0))
            found[f"{name}.sums"] = np.array([float(np.sum(values)), largest, float((values == 0).sum())])
            if not state.alone:
                found[f"{name}.cuts"] = cut_values(values)
        return found

    def merge(self, state: _SummaryState, partials: Sequence[Partial]) -> NextPass | Finished[Measure]:
        if state.known:
            known = {**state.known, **{name: _with_deviations(state, name, partials) for name in state.numeric}}
            return Finished(Measure(_all_estimates(replace(state, known=known))))
        state = replace(state, known={name: _summary_of_partials(state, name, partials) for name in state.names})
        if not state.numeric:
            return Finished(Measure(_all_estimates(state)))
        return NextPass(state, state.numeric, "quantiles of variables")


def _summary_of_partials(state: _SummaryState, name: str, partials: Sequence[Partial]) -> _VariableSummary:
    """Return what the first pass says of a variable."""
    totals = np.sum([one[f"{name}.counts"] for one in partials], axis=0).tolist()
    counts = dict(zip(("present", "missing", "ours", "ours_missing"), totals, strict=True))
    if f"{name}.levels" in partials[0]:
        return _VariableSummary(**counts, levels=np.sum([one[f"{name}.levels"] for one in partials], axis=0))
    sums = np.array([one[f"{name}.sums"] for one in partials])
    between = [(-math.inf, math.inf)] * len(state.spec.quantiles)
    if not state.alone and counts["present"]:
        cuts, records = [one[f"{name}.cuts"] for one in partials], [int(one[f"{name}.counts"][0]) for one in partials]
        ranks = [rank_of_quantile(counts["present"], q) for q in state.spec.quantiles]
        between = [bounds_of_rank(cuts, records, rank) for rank in ranks]
    total, zeros = math.fsum(sums[:, 0]), int(sums[:, 2].sum())
    return _VariableSummary(**counts, total=total, largest=float(sums[:, 1].max()), zeros=zeros, between=tuple(between))


def _deviations_of_block(state: _SummaryState, released: Microdata) -> Partial:
    """Return for each numeric variable the moments of a block, and its values around each quantile."""
    found: dict[str, NDArray[Any]] = {}
    for name in state.numeric:
        known, values = state.known[name], released.present_numbers(name)
        scaled = values / known.scale
        mean = float(scaled.mean()) if len(scaled) else 0.0
        scaled -= mean
        found[f"{name}.moments"] = np.array([len(values), mean, float(np.sum(scaled * scaled))])
        for i, (low, high) in enumerate(known.between):
            if state.alone:
                rank = rank_of_quantile(len(values), state.spec.quantiles[i])
                ranks = [rank, min(rank + 1, len(values) - 1)]
                found[f"{name}.near.{i}"] = np.partition(values, ranks)[ranks]
                continue
            near, count = count_values(values[(values >= low) & (values <= high)])
            found |= {f"{name}.near.{i}": near, f"{name}.count.{i}": count}
            found[f"{name}.below.{i}"] = np.array([int((values < low).sum())])
    return found


def _with_deviations(state: _SummaryState, name: str, partials: Sequence[Partial]) -> _VariableSummary:
    """Return what both passes say of a numeric variable."""
    known, mean, deviations, n = state.known[name], 0.0, 0.0, 0.0
    for records, own_mean, own_deviations in (one[f"{name}.moments"].tolist() for one in partials):
        if records:
            # Chan, Golub & LeVeque (1979)
            apart = own_mean - mean if n else 0.0
            deviations += own_deviations + apart * apart * n * records / (n + records)
            mean = mean + apart * records / (n + records) if n else own_mean
            n += records
    quantiles = []
    for i, q in enumerate(state.spec.quantiles):
        if state.alone:
            lower, upper = partials[0][f"{name}.near.{i}"].tolist()
        else:
            near, count = merge_counts([(one[f"{name}.near.{i}"], one[f"{name}.count.{i}"]) for one in partials])
            first = rank_of_quantile(known.present, q) - int(sum(one[f"{name}.below.{i}"][0] for one in partials))
            at = np.searchsorted(np.cumsum(count), [first, first + 1], side="right")
            lower, upper = near[np.minimum(at, len(near) - 1)].tolist()
        quantiles.append(quantile_of_neighbours(lower, upper, known.present, q))
    return replace(known, deviations=deviations, quantiles=tuple(quantiles))


def _all_estimates(state: _SummaryState) -> tuple[Estimate, ...]:
    """Return the estimates of all variables, with the bounds of a release."""
    estimates = [one for name in state.names for one in _variable_estimates(state, name)]
    of_release = state.released.origin != "confidential"
    return (*estimates, *(_stated_bounds(state.confidential, estimates) if of_release else ()))


def _variable_estimates(state: _SummaryState, name: str) -> Iterator[Estimate]:
    """Yield the statistics of a variable, with the share of missing values where either table has some."""
    known = state.known[name]
    if known.missing or known.ours_missing:
        yield Estimate("share_missing", known.missing / (known.present + known.missing), name)
    if known.present:
        yield from _value_estimates(state.released, name, state.spec, known, known.present)
    else:
        like = _value_estimates(state.confidential, name, state.spec, known, known.ours)
        yield from (replace(estimate, value=None, reason=NO_VALUE) for estimate in like)


def _value_estimates(
    head: Microdata, name: str, spec: SummarySpec, known: _VariableSummary, records: int
) -> Iterator[Estimate]:
    """Yield the statistics of the values that are present, of so many records; 0 where no released one is."""
    kind, present = head.schema[name].kind, known.present or 1
    if kind.has_levels:
        levels = head.column(name).cat.categories
        counts = np.zeros(len(levels)) if known.levels is None or not known.present else known.levels
        for count, level in zip(counts.tolist(), levels, strict=True):
            yield Estimate("share", count / present, name, params={"level": str(level)})
        return
    yield Estimate("mean", known.total / present, name)
    if records > 1:
        yield Estimate("sd", known.sd if known.present else 0.0, name)
    else:
        yield Estimate.not_computed("sd", ONE_RECORD, name)
    for i, q in enumerate(spec.quantiles):
        yield Estimate("quantile", known.quantiles[i] if known.present else 0.0, name, params={"q": q})
    if kind is Kind.COUNT:
        yield Estimate("share_of_zeros", known.zeros / present, name)


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
                "Quantile", "A share of {q} of the records has {value} or less of {variable}: that is its {q} quantile."
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
    measure_passes=SummaryPasses(),
)
def summary(confidential: Microdata, released: Microdata, spec: SummarySpec, run: Run) -> Measure:
    """Measure summary statistics of the released data; the confidential data are measured in the same way."""
    design = SurveyDesign.from_schema(confidential.schema)
    if design is None:
        return measure_blocks(SummaryPasses(), OneBlock(confidential), OneBlock(released), spec)
    weights = (design.weights_of(confidential), design.weights_of(released))
    estimates = [
        estimate
        for name in spec.for_release(confidential.schema, ()).variables
        for estimate in _weighted_estimates(confidential, released, name, spec, weights)
    ]
    estimates += [
        Estimate("population", float(weights[1].sum()), design.weight),
        Estimate("design_effect", design_effect(weights[1]), design.weight),
    ]
    return Measure(
        (*estimates, *(_stated_bounds(confidential, estimates) if released.origin != "confidential" else ()))
    )
