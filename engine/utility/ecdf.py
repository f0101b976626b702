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
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import product
from typing import Annotated, Literal, Self

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.block_sums import KnownSums, Summands, WorkOfBuckets
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.row_buckets import BucketRows
from ..data.schema import Kind, Schema, compared_variables
from ..data.table_blocks import OneBlock
from ..design.survey import SurveyDesign
from ..design.survey_estimation import effective_sample_size
from ..errors import BadInput
from ..methods.asked_passes import SummedPasses
from ..methods.drafting import OURS, Case, Offer, OfferedLimit, drafts
from ..methods.levers import FIDELITY
from ..methods.outputs import FigureOfCounts, Label, Output
from ..methods.passes import NextPass, measure_blocks
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.columns import missing_values_text
from ..statistics.ordered_blocks import (
    ValueRanges,
    count_values,
    cuts_of_counts,
    merge_counts,
    range_edges,
)

ORDERED = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.ORDINAL, Kind.BINARY)
LARGEST_GAP = 0.05
FEW_VALUES = 4096
"""Distinct values of a block that are kept by its first pass."""
MOST_VALUES = 1 << 21
"""Values of both tables that are counted at a time."""
TABLES = ("ours", "theirs")


def largest_gap(confidential: Floats, released: Floats) -> float:
    """Return the largest gap between the cumulative shares of two tables, from their counts (k,) in ordered cells."""
    # Times n this is max_z |C(z) - n F(z)|, with C the confidential cumulative counts and F the released shares. One
    # record more changes C(z) by 0 or 1 and n by 1, so that its sensitivity is max(F, 1 - F) <= 1.
    shares = [np.cumsum(counts) / max(float(counts.sum()), 1.0) for counts in (confidential, released)]
    return float(np.abs(shares[0] - shares[1]).max(initial=0.0))


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


@dataclass(frozen=True)
class _VariableSizes:
    """Sizes of both tables by a variable, and ranges of its values.

    counts: for each table, records with and without a value
    sizes: effective sample size of each table, the number of its values without survey weights
    sums: number of values of each table, or their weights together
    edges: edges of the ranges of values that are counted one after the other; none where no range is needed
    """

    counts: Sequence[tuple[int, int]]
    sizes: tuple[float, float]
    sums: tuple[float, float]
    edges: Sequence[float] = ()

    def gaps_of_range(
        self, both: Sequence[tuple[Floats, Integers]], before: Sequence[float], *, is_last: bool, distinct: bool
    ) -> _RangeGaps:
        """Return the gaps in a range, given the records or weights at its values in both tables, and those at values
        below it, (2,).
        """
        points = np.union1d(both[0][0], both[1][0])
        if not points.size:
            return _RangeGaps(0, 0.0, 0.0, 0.0)
        here, there = np.zeros((2, points.size))
        for records, (values, count) in zip((here, there), both, strict=True):
            records[np.searchsorted(points, values)] = count
        (n, m), sums = self.sizes, self.sums
        difference = (np.cumsum(here) + before[0]) / sums[0] - (np.cumsum(there) + before[1]) / sums[1]
        if is_last:
            # Rounding may leave the last cumulative shares at a little more or less than 1.
            difference[-1] = 0.0
        repeats = (here + there) / (sums[0] + sums[1])
        pooled = (np.cumsum(here + there) + (before[0] + before[1])) / (sums[0] + sums[1])
        # Exact given the pooled values, ties included: every split of them into n and m is equally likely.
        variance = pooled * (1 - pooled) * (1 / n + 1 / m) * (n + m) / (n + m - 1)
        averaged = np.full(here.size, 1 / here.size) if distinct else repeats
        largest, squared = float(np.abs(difference).max()), float(averaged @ difference**2)
        return _RangeGaps(here.size, largest, squared, float(averaged @ variance))

    def to_estimates(self, name: str, ranges: Sequence[_RangeGaps], *, distinct: bool) -> Iterator[Estimate]:
        """Yield the estimates of both differences for the variable, given the gaps in all ranges."""
        if not ranges:
            for measure in ("max_abs_difference", "mean_squared_difference"):
                yield Estimate.not_computed(measure, "no released record has a value", name)
            return
        reason = "; ".join(
            f"{table}: {missing_values_text(missing, present + missing)}"
            for table, (present, missing) in zip(("confidential", "released"), self.counts, strict=True)
            if missing
        )
        points = sum(one.points for one in ranges)
        shares = [one.points / points if distinct else 1.0 for one in ranges]
        squared = math.fsum(one.squared * share for one, share in zip(ranges, shares, strict=True))
        variance = math.fsum(one.variance * share for one, share in zip(ranges, shares, strict=True))
        # The mean of Kolmogorov's limit, for continuous variables; with ties the maximum is smaller.
        expected = math.sqrt(math.pi / 2) * math.log(2) * math.sqrt(1 / self.sizes[0] + 1 / self.sizes[1])
        largest = max(one.largest for one in ranges)
        yield Estimate("max_abs_difference", largest, name, baseline=expected, reason=reason)
        yield Estimate("mean_squared_difference", squared, name, baseline=variance, reason=reason)


class EcdfPasses(SummedPasses):
    """One pass over variables of few values, or in memory. For others, the first pass finds ranges of values, and the
    second brings the values of each range together in a bucket.
    """

    def suits(self, spec: EcdfSpec, schema: Schema) -> bool:
        """Return whether records count alike."""
        return SurveyDesign.from_schema(schema) is None

    def start(self, confidential: Microdata, released: Microdata, spec: EcdfSpec, n_blocks: int) -> NextPass:
        spec = spec.for_release(confidential.schema, ())
        design, distinct = SurveyDesign.from_schema(confidential.schema), spec.points == "distinct"
        compute = partial(_measure_of_sums, spec.variables, design, distinct)
        return self.first_pass(compute, confidential, n_blocks, spec.variables, "distributions")


def _measure_of_sums(names: Sequence[str], design: SurveyDesign | None, distinct: bool, both: KnownSums) -> Measure:
    """Return the measure of two tables that are asked for sums together."""
    first = both.ask_sums(partial(_values_of_block, names, design, both.n_blocks == 1), partial(_first_gaps, distinct))
    found: dict[str, tuple[_VariableSizes, Sequence[_RangeGaps]]] = dict(zip(names, first, strict=True))
    ranged = {name: sizes for name, (sizes, _) in found.items() if len(sizes.edges)}
    if ranged:
        names, sizes = tuple(ranged), list(ranged.values())
        ranges = ValueRanges(names, [one.edges for one in sizes])
        buckets = WorkOfBuckets(ranges.starts[-1], partial(_gaps_of_bucket, ranges.starts, sizes, distinct))
        rows_of = ranges.to_rows
        (gaps,) = both.ask_buckets(lambda *two: dict(zip(TABLES, map(rows_of, two), strict=True)), buckets, names)
        for name, start, end in zip(names, ranges.starts, ranges.starts[1:], strict=False):
            found[name] = ranged[name], [_RangeGaps(int(k), *rest) for k, *rest in np.array(gaps[start:end]).tolist()]
    return Measure(
        tuple(row for name, (one, gaps) in found.items() for row in one.to_estimates(name, gaps, distinct=distinct))
    )


def _values_of_block(names: Sequence[str], design: SurveyDesign | None, alone: bool, *tables: Microdata) -> Summands:
    """Return for each variable and both tables of a block the records with and without a value, the effective sample
    size and the sum of weights; and the counts of its values, or by a survey ``design`` their weights, or cuts of them
    where these are many and the block is not ``alone``.
    """
    found = []
    for name, data in product(names, tables):
        values = data.present_numbers(name)
        counts, sums = count_values(values), (float(len(values)),) * 2
        if design is not None and len(values):
            weights = design.weights_of(data)[~data.missing_mask(name)]
            counts = counts[0], np.bincount(np.searchsorted(counts[0], values), weights)
            sums = effective_sample_size(weights), float(weights.sum())
        has_few = alone or len(counts[0]) <= FEW_VALUES
        records = np.array([len(values), len(data) - len(values), *sums])
        found.append((records, *counts) if has_few else (records, cuts_of_counts(counts)))
    return tuple(zip(found[::2], found[1::2], strict=True))


def _first_gaps(distinct: bool, parts: Sequence[Summands]) -> Summands:
    """Return what the first pass finds of each variable: its sizes, with the gaps where no block has many values."""
    found = []
    for own in zip(*parts, strict=True):
        records = np.sum([[one[0] for one in both] for both in own], axis=0)
        effective, sums = records[:, 2:].T.tolist()
        sizes = _VariableSizes(records[:, :2].astype(int).tolist(), effective, sums)
        gaps = list[_RangeGaps]()
        every = [one for both in own for one in both]
        if records[:, 0].all() and all(len(one) == 3 for one in every):
            both = [merge_counts(of) for of in zip(*[[one[1:] for one in both] for both in own], strict=True)]
            gaps.append(sizes.gaps_of_range(both, (0.0, 0.0), is_last=True, distinct=distinct))
        elif records[:, 0].all():
            cuts = [one[1] if len(one) == 2 else cuts_of_counts(one[1:]) for one in every]
            sizes = replace(sizes, edges=range_edges(cuts, [int(one[0][0]) for one in every], MOST_VALUES).tolist())
        found.append((sizes, gaps))
    return tuple(found)


def _gaps_of_bucket(
    starts: Sequence[int],
    sizes: Sequence[_VariableSizes],
    distinct: bool,
    rows: Mapping[str, BucketRows],
) -> Summands:
    """Return the gaps in a range, (4,); ``starts`` are the first ranges of the variables."""
    both = []
    for table in TABLES:
        # So many records may share one value that they do not fit into memory.
        pieces = [count_values(some[:, 1]) for some in rows[table].iterate_rows(MOST_VALUES)]
        both.append(merge_counts(pieces or [count_values(np.empty(0))]))
    number = rows[TABLES[0]].number
    of = int(np.searchsorted(starts, number, side="right")) - 1
    before = [sum(map(rows[table].buckets.count_rows, range(starts[of], number))) for table in TABLES]
    gaps = sizes[of].gaps_of_range(both, before, is_last=number + 1 == starts[of + 1], distinct=distinct)
    return (np.array(astuple(gaps)),)


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
    return measure_blocks(EcdfPasses(), OneBlock(confidential), OneBlock(released), spec)
