"""Differences between empirical distribution functions, variable by variable (Woo et al. 2009; Guo & Hu §3.1).

With F_c and F_s the empirical cdfs of the confidential and the released values and z_i the N = n + m pooled points:
``max_abs_difference`` max_i |F_c(z_i) - F_s(z_i)| and ``mean_squared_difference`` sum_i (F_c(z_i) - F_s(z_i))^2 / N.
Where values are missing, F_c and F_s are of the values present. With ``points = "distinct"`` the mean is over the
distinct values, each once, as in the figures that Guo & Hu publish, where a third of the records share one value.

With a survey weight F_c and F_s are shares of the population, each table's by its own weights; the N points count by
their weights too, and the expectations are those of Kish's effective sample sizes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, compared_variables
from ..data.table_blocks import OneBlock
from ..design.survey import SurveyDesign
from ..design.survey_estimation import effective_sample_size
from ..errors import BadInput
from ..methods.drafting import OURS, Case, Offer, OfferedLimit, drafts
from ..methods.levers import FIDELITY
from ..methods.outputs import FigureOfCounts, Label, Output
from ..methods.passes import Finished, NextPass, Partial, measure_blocks
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.columns import missing_values_text
from ..statistics.ordered_blocks import ValueCounts, count_values, cuts_of_counts, merge_counts, range_edges
from ..wording import count_noun

ORDERED = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.ORDINAL, Kind.BINARY)
LARGEST_GAP = 0.05
FEW_VALUES = 4096
"""Distinct values of a block that are kept by its first pass."""
MOST_VALUES = 1 << 22
"""Values of both tables, of all variables of a pass, that are counted at a time: 64 MB."""


@dataclass(frozen=True, slots=True)
class EcdfDifference:
    """Differences of two empirical cdfs, with their expectations for two samples of one distribution.

    max_abs: largest absolute difference
    mean_squared: mean squared difference
    expected_max_abs, expected_mean_squared: their expectations
    """

    max_abs: float
    mean_squared: float
    expected_max_abs: float
    expected_mean_squared: float


def ecdf_difference(
    confidential: Floats,
    released: Floats,
    *,
    distinct: bool = False,
    weights: tuple[Floats, Floats] | None = None,
) -> EcdfDifference:
    """Compute the differences between the empirical cdfs of (n,) and (m,) values.

    distinct: whether the squared difference is averaged over distinct values
    weights: survey weights of both tables, (n,) and (m,), by default 1; both expectations are then approximate
    """
    weights = weights or (np.ones(len(confidential)), np.ones(len(released)))
    points, place = np.unique(np.concatenate([confidential, released]), return_inverse=True)
    rows = place[: len(confidential)], place[len(confidential) :]
    here, there = (np.bincount(of, own, points.size).astype(np.float64) for of, own in zip(rows, weights, strict=True))
    sizes = effective_sample_size(weights[0]), effective_sample_size(weights[1])
    sums = float(weights[0].sum()), float(weights[1].sum())
    gaps = _gaps_in_range(here, there, (0.0, 0.0), sizes, sums, distinct=distinct, is_last=True)
    return _difference_of_ranges([gaps], sizes, distinct=distinct)


def _counts_at_points(ours: ValueCounts, theirs: ValueCounts) -> tuple[Floats, Floats]:
    """Return the records of each table at each of the ascending pooled values: (points,) each."""
    points = np.union1d(ours[0], theirs[0])
    here, there = np.zeros((2, points.size))
    for records, (distinct, count) in zip((here, there), (ours, theirs), strict=True):
        records[np.searchsorted(points, distinct)] = count
    return here, there


@dataclass(frozen=True, slots=True)
class _RangeGaps:
    """Gaps between both cdfs at the pooled values of a range.

    points: number of distinct pooled values
    largest: largest absolute gap
    squared, variance: sums of squared gaps and of their expectations by records, or their means over the distinct values
    """

    points: int
    largest: float
    squared: float
    variance: float


def _gaps_in_range(
    here: Floats,
    there: Floats,
    before: tuple[float, float],
    sizes: tuple[float, float],
    sums: tuple[float, float],
    *,
    distinct: bool,
    is_last: bool,
) -> _RangeGaps:
    """Compute the gaps at consecutive pooled values from the records or weights of each table there, (points,) each.

    before: records or weights of each table at all smaller values
    sizes, sums: effective sample size of each table, and its records or weights together
    """
    (n, m), total = sizes, sums[0] + sums[1]
    difference = (np.cumsum(here) + before[0]) / sums[0] - (np.cumsum(there) + before[1]) / sums[1]
    if is_last:
        # Rounding may leave the cumulative shares at a little more or less than 1.
        difference[-1] = 0.0
    repeats = (here + there) / total
    pooled = (np.cumsum(here + there) + (before[0] + before[1])) / total
    # Exact given the pooled values, ties included: every split of them into n and m is equally likely.
    variance = pooled * (1 - pooled) * (1 / n + 1 / m) * (n + m) / (n + m - 1)
    averaged = np.full(here.size, 1 / here.size) if distinct else repeats
    return _RangeGaps(
        here.size, float(np.abs(difference).max()), float(averaged @ difference**2), float(averaged @ variance)
    )


def _difference_of_ranges(
    ranges: Sequence[_RangeGaps], sizes: tuple[float, float], *, distinct: bool
) -> EcdfDifference:
    """Return the differences given the gaps in ranges that together hold all pooled values."""
    points = sum(one.points for one in ranges)
    shares = [one.points / points if distinct else 1.0 for one in ranges]
    return EcdfDifference(
        max(one.largest for one in ranges),
        math.fsum(one.squared * share for one, share in zip(ranges, shares, strict=True)),
        # The mean of Kolmogorov's limit, for continuous variables; with ties the maximum is smaller.
        math.sqrt(math.pi / 2) * math.log(2) * math.sqrt(1 / sizes[0] + 1 / sizes[1]),
        math.fsum(one.variance * share for one, share in zip(ranges, shares, strict=True)),
    )


def largest_gap(confidential: Floats, released: Floats) -> float:
    """Return the largest gap between the cumulative shares of two tables, from their counts (k,) in ordered cells."""
    # Times n this is max_z |C(z) - n F(z)|, with C the confidential cumulative counts and F the released shares. One
    # record more changes C(z) by 0 or 1 and n by 1, so that its sensitivity is max(F, 1 - F) <= 1.
    shares = [np.cumsum(counts) / max(float(counts.sum()), 1.0) for counts in (confidential, released)]
    return float(np.abs(shares[0] - shares[1]).max(initial=0.0))


def _variable_estimates(
    name: str, found: EcdfDifference | None, counts: Sequence[tuple[int, int]]
) -> Iterator[Estimate]:
    """Yield the estimates of both differences for one variable, None where no released record has a value.

    ``counts`` has for each table the records with and without a value.
    """
    if found is None:
        for measure in ("max_abs_difference", "mean_squared_difference"):
            yield Estimate.not_computed(measure, "no released record has a value", name)
        return
    reason = "; ".join(
        f"{table}: {missing_values_text(missing, present + missing)}"
        for table, (present, missing) in zip(("confidential", "released"), counts, strict=True)
        if missing
    )
    yield Estimate("max_abs_difference", found.max_abs, name, baseline=found.expected_max_abs, reason=reason)
    expected = found.expected_mean_squared
    yield Estimate("mean_squared_difference", found.mean_squared, name, baseline=expected, reason=reason)


def _weighted_estimates(
    confidential: Microdata, released: Microdata, name: str, spec: EcdfSpec, design: SurveyDesign
) -> Iterator[Estimate]:
    """Yield the estimates of both differences for one variable, by survey weights."""
    tables, found = (confidential, released), None
    ours, theirs = (data.present_numbers(name) for data in tables)
    first, second = (design.weights_of(data)[~data.missing_mask(name)] for data in tables)
    if len(theirs):
        found = ecdf_difference(ours, theirs, distinct=spec.points == "distinct", weights=(first, second))
    counts = [(len(own), len(data) - len(own)) for data, own in zip(tables, (ours, theirs), strict=True)]
    yield from _variable_estimates(name, found, counts)


@dataclass(frozen=True)
class _VariableProgress:
    """What the passes have found of a variable.

    counts: for each table, records with and without a value
    edges: edges of the ranges of values that later passes count one after the other
    before: records of each table at values below the next range
    ranges: gaps in the ranges so far
    """

    counts: tuple[tuple[int, int], tuple[int, int]]
    edges: tuple[float, ...] = ()
    before: tuple[float, float] = (0.0, 0.0)
    ranges: tuple[_RangeGaps, ...] = ()

    @property
    def sizes(self) -> tuple[float, float]:
        """Return the number of values of each table."""
        return float(self.counts[0][0]), float(self.counts[1][0])

    @property
    def next_range(self) -> tuple[float, float] | None:
        """Return the ends of the next range to count; None where all are."""
        at = len(self.ranges)
        return (self.edges[at], self.edges[at + 1]) if at + 1 < len(self.edges) else None

    @property
    def values_a_range(self) -> float:
        """Return about how many values of both tables a range has."""
        return sum(self.sizes) / max(1, len(self.edges) - 1)

    def to_difference(self, *, distinct: bool) -> EcdfDifference | None:
        """Return the differences, of a variable whose ranges are all counted; None where a table has no value."""
        return _difference_of_ranges(self.ranges, self.sizes, distinct=distinct) if self.ranges else None

    def with_range(self, ours: ValueCounts, theirs: ValueCounts, *, distinct: bool) -> _VariableProgress:
        """Return the same with the counts of the values of the next range."""
        here, there = _counts_at_points(ours, theirs)
        is_last = len(self.ranges) + 2 == len(self.edges)
        if not here.size:
            return replace(self, ranges=(*self.ranges, _RangeGaps(0, 0.0, 0.0, 0.0)))
        gaps = _gaps_in_range(here, there, self.before, self.sizes, self.sizes, distinct=distinct, is_last=is_last)
        before = self.before[0] + float(here.sum()), self.before[1] + float(there.sum())
        return replace(self, before=before, ranges=(*self.ranges, gaps))


@dataclass(frozen=True)
class _EcdfState:
    """What the passes of the measure know: the variables and how far each is, and the ranges that this pass counts."""

    spec: EcdfSpec
    names: tuple[str, ...]
    alone: bool
    known: Mapping[str, _VariableProgress] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)


class EcdfPasses:
    """One pass over variables of few values, or in memory. For others, the first pass finds ranges of values, and further
    passes count the values of one range after another.
    """

    def suits(self, spec: EcdfSpec, schema: Schema) -> bool:
        return True

    def start(self, confidential: Microdata, released: Microdata, spec: EcdfSpec, n_blocks: int) -> NextPass:
        names = spec.for_release(confidential.schema, ()).variables
        return NextPass(_EcdfState(spec, names, n_blocks == 1), names, "distributions")

    def block(self, state: _EcdfState, confidential: Microdata, released: Microdata) -> Partial:
        found: dict[str, NDArray[Any]] = {}
        for table, data in (("ours", confidential), ("theirs", released)):
            for name, (low, high) in state.ranges.items():
                values = data.present_numbers(name)
                own = count_values(values[(values >= low) & (values < high)])
                found |= {f"{name}.{table}": own[0], f"{name}.{table}.count": own[1]}
            for name in () if state.ranges else state.names:
                values = data.present_numbers(name)
                found[f"{name}.{table}.records"] = np.array([len(values), len(data) - len(values)])
                own = count_values(values)
                if state.alone or len(own[0]) <= FEW_VALUES:
                    found |= {f"{name}.{table}": own[0], f"{name}.{table}.count": own[1]}
                else:
                    found[f"{name}.{table}.cuts"] = cuts_of_counts(own)
        return found

    def merge(self, state: _EcdfState, partials: Sequence[Partial]) -> NextPass | Finished[Measure]:
        distinct = state.spec.points == "distinct"
        known = dict(state.known) or {name: _first_progress(name, partials, distinct=distinct) for name in state.names}
        for name in state.ranges:
            known[name] = known[name].with_range(*_counts_of_partials(name, partials), distinct=distinct)
        ranges, values = dict[str, tuple[float, float]](), 0.0
        for name, one in known.items():
            if (wanted := one.next_range) is not None and (not ranges or values + one.values_a_range <= MOST_VALUES):
                ranges[name], values = wanted, values + one.values_a_range
        if ranges:
            left = sum(max(0, len(one.edges) - 1 - len(one.ranges)) for one in known.values())
            what = f"distributions, {count_noun(left, 'range')} of values left"
            return NextPass(replace(state, known=known, ranges=ranges), tuple(ranges), what)
        differences = {name: one.to_difference(distinct=distinct) for name, one in known.items()}
        return Finished(
            Measure(
                tuple(
                    one
                    for name in state.names
                    for one in _variable_estimates(name, differences[name], known[name].counts)
                )
            )
        )


def _counts_of_partials(name: str, partials: Sequence[Partial]) -> tuple[ValueCounts, ValueCounts]:
    """Return the counts of the values of each table over all blocks."""
    ours, theirs = (
        merge_counts([(one[f"{name}.{table}"], one[f"{name}.{table}.count"]) for one in partials])
        for table in ("ours", "theirs")
    )
    return ours, theirs


def _first_progress(name: str, partials: Sequence[Partial], *, distinct: bool) -> _VariableProgress:
    """Return what the first pass finds of a variable: all of it where no block has many values, else ranges."""
    tables = ("ours", "theirs")
    ours, theirs = (
        tuple(np.sum([one[f"{name}.{table}.records"] for one in partials], axis=0).tolist()) for table in tables
    )
    found = _VariableProgress((ours, theirs))
    if not ours[0] or not theirs[0]:
        return found
    if all(f"{name}.{table}.cuts" not in one for one in partials for table in tables):
        whole = replace(found, edges=(-math.inf, math.inf))
        return whole.with_range(*_counts_of_partials(name, partials), distinct=distinct)
    cuts, records = [], []
    for one in partials:
        for table in tables:
            key = f"{name}.{table}"
            known = one.get(f"{key}.cuts")
            cuts.append(cuts_of_counts((one[key], one[f"{key}.count"])) if known is None else known)
            records.append(int(one[f"{key}.records"][0]))
    return replace(found, edges=tuple(range_edges(cuts, records, MOST_VALUES).tolist()))


@dataclass(frozen=True, kw_only=True, slots=True)
class EcdfSpec(Spec):
    """Variables to compare, and the points over which the squared difference is averaged."""

    variables: Annotated[
        tuple[str, ...],
        Param("variables to compare; the released ones if empty", names="variables", kinds=ORDERED, filters_rows=True),
    ] = ()
    points: Annotated[
        Literal["pooled", "distinct"],
        Param("what the squared difference is averaged over: the values of all records, or every distinct value once"),
    ] = "pooled"

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput where no variable is named and no released one has an order."""
        if not self.for_release(schema, released).variables:
            raise BadInput(place, f"no released variable is {', '.join(ORDERED[:-1])} or {ORDERED[-1]}; leave it out")

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with the released variables that have an order where none is named."""
        return replace(self, variables=self.variables or compared_variables(schema, released, ORDERED))


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure for a synthesis of ordered variables, with a limit that two samples rarely exceed."""
    if case.want == "anonymisation" or not any(case.table[name].variable.kind in ORDERED for name in case.released):
        return None
    # 1.63 sqrt(1/n + 1/m) is the 99th percentile of the Kolmogorov-Smirnov distance, here rounded up to a percent.
    by_chance = math.ceil(163 * math.sqrt(2 / case.table.records)) / 100
    limit = min(1.0, max(LARGEST_GAP, by_chance))
    source = (
        OURS
        if limit == LARGEST_GAP
        else "the difference that two samples of this size exceed once in a hundred (Kolmogorov-Smirnov)"
    )
    return Offer(
        "whether each variable alone is distributed as in the data",
        limits=(OfferedLimit("max_abs_difference", "max", limit, source),),
    )


@measure_method(
    "Empirical distribution functions",
    spec=EcdfSpec,
    source="Woo et al. (2009); Guo & Hu §3.1",
    outputs=(
        Output(
            "max_abs_difference",
            "largest gap between the confidential and the released cumulative shares; that of a fresh sample is stated too "
            "high for a variable of few values",
            "low",
            range=SHARE,
            public=FigureOfCounts(largest_gap, sensitivity=1),
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Largest gap between distributions",
                "The share of records up to a value of {variable} differs between release and data, at most by {value} of all records.",
                "Lower is better; good is no more than a fresh sample of the same size would differ.",
                "The distribution of the variable differs too much.",
                FIDELITY,
                counts="share",
                baseline="a fresh sample of the same size",
            ),
        ),
        Output(
            "mean_squared_difference",
            "squared gap between the confidential and the released cumulative shares, averaged over all values of both, "
            "or over the distinct ones",
            "low",
            range=SHARE,
            statbarn="StatisticalHypothesisTests",
            label=Label(
                "Mean squared gap between distributions",
                "Between release and data the share of records up to a value of {variable} typically differs by {root}; squared, by {value} on average.",
                "Lower is better; good is no more than a fresh sample of the same size would differ.",
                "The distribution of the variable differs too much.",
                FIDELITY,
                baseline="a fresh sample of the same size",
            ),
        ),
    ),
    survey_weighted=True,
    measure_passes=EcdfPasses(),
)
@drafts(_draft_offer)
def ecdf(confidential: Microdata, released: Microdata, spec: EcdfSpec, run: Run) -> Measure:
    """Measure both differences for each variable, with their expectations for two samples of one distribution."""
    design = SurveyDesign.from_schema(confidential.schema)
    if design is None:
        return measure_blocks(EcdfPasses(), OneBlock(confidential), OneBlock(released), spec)
    names = spec.for_release(confidential.schema, ()).variables
    return Measure(
        tuple(one for name in names for one in _weighted_estimates(confidential, released, name, spec, design))
    )
