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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

import numpy as np

from ..data.arrays import Floats
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, compared_variables
from ..design.survey import SurveyDesign
from ..design.survey_estimation import effective_sample_size
from ..errors import BadInput
from ..methods.drafting import OURS, Case, Offer, OfferedLimit, drafts
from ..methods.levers import FIDELITY
from ..methods.outputs import FigureOfCounts, Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.columns import missing_values_text

ORDERED = (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE, Kind.ORDINAL, Kind.BINARY)
LARGEST_GAP = 0.05


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
    weights: survey weights of both tables, (n,) and (m,); both expectations are then approximate
    """
    ours, theirs = (np.ones(len(confidential)), np.ones(len(released))) if weights is None else weights
    n, m, total = effective_sample_size(ours), effective_sample_size(theirs), float(ours.sum() + theirs.sum())
    points, here, there = _totals_at_points(confidential, released, weights)
    difference = np.cumsum(here) / ours.sum() - np.cumsum(there) / theirs.sum()
    # Rounding may leave the cumulative shares at a little more or less than 1.
    difference[-1] = 0.0
    repeats = (here + there) / total
    pooled = np.cumsum(here + there) / total
    # Exact given the pooled values, ties included: every split of them into n and m is equally likely.
    variance = pooled * (1 - pooled) * (1 / n + 1 / m) * (n + m) / (n + m - 1)
    averaged = np.full(points.size, 1 / points.size) if distinct else repeats
    return EcdfDifference(
        float(np.abs(difference).max()),
        float(averaged @ difference**2),
        # The mean of Kolmogorov's limit, for continuous variables; with ties the maximum is smaller.
        math.sqrt(math.pi / 2) * math.log(2) * math.sqrt(1 / n + 1 / m),
        float(averaged @ variance),
    )


def _totals_at_points(
    confidential: Floats, released: Floats, weights: tuple[Floats, Floats] | None
) -> tuple[Floats, Floats, Floats]:
    """Return the ascending pooled points, and the records or weights of each table at each of them: (points,) each."""
    if weights is not None:
        points, place = np.unique(np.concatenate([confidential, released]), return_inverse=True)
        n = len(confidential)
        parts = zip((place[:n], place[n:]), weights, strict=True)
        here, there = (np.bincount(rows, own, points.size).astype(np.float64) for rows, own in parts)
        return points, here, there
    counted = [np.unique(values, return_counts=True) for values in (confidential, released)]
    points = np.union1d(counted[0][0], counted[1][0])
    here, there = np.zeros((2, points.size))
    for records, (distinct, count) in zip((here, there), counted, strict=True):
        records[np.searchsorted(points, distinct)] = count
    return points, here, there


def largest_gap(confidential: Floats, released: Floats) -> float:
    """Return the largest gap between the cumulative shares of two tables, from their counts (k,) in ordered cells."""
    # Times n this is max_z |C(z) - n F(z)|, with C the confidential cumulative counts and F the released shares. One
    # record more changes C(z) by 0 or 1 and n by 1, so that its sensitivity is max(F, 1 - F) <= 1.
    shares = [np.cumsum(counts) / max(float(counts.sum()), 1.0) for counts in (confidential, released)]
    return float(np.abs(shares[0] - shares[1]).max(initial=0.0))


def _variable_estimates(confidential: Microdata, released: Microdata, name: str, spec: EcdfSpec) -> Iterator[Estimate]:
    """Yield the estimates of both differences for one variable."""
    ours, theirs = confidential.present_numbers(name), released.present_numbers(name)
    if not len(theirs):
        for measure in ("max_abs_difference", "mean_squared_difference"):
            yield Estimate.not_computed(measure, "no released record has a value", name)
        return
    weights = _present_weights(confidential, released, name)
    found = ecdf_difference(ours, theirs, distinct=spec.points == "distinct", weights=weights)
    lacking = (("confidential", confidential, ours), ("released", released, theirs))
    said = [
        f"{table}: {missing_values_text(len(data) - len(own), len(data))}"
        for table, data, own in lacking
        if len(own) < len(data)
    ]
    reason = "; ".join(said)
    yield Estimate("max_abs_difference", found.max_abs, name, baseline=found.expected_max_abs, reason=reason)
    expected = found.expected_mean_squared
    yield Estimate("mean_squared_difference", found.mean_squared, name, baseline=expected, reason=reason)


def _present_weights(confidential: Microdata, released: Microdata, name: str) -> tuple[Floats, Floats] | None:
    """Return the survey weights of the records with a value, of each table; None without a survey weight."""
    design = SurveyDesign.from_schema(confidential.schema)
    if design is None:
        return None
    ours, theirs = (design.weights_of(data)[~data.missing_mask(name)] for data in (confidential, released))
    return ours, theirs


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
                "The share of records up to each value of {variable} differs between release and data; the squares of these gaps are {value} on average.",
                "Lower is better; 0 is the same distribution.",
                "The distribution of the variable differs too much.",
                FIDELITY,
                baseline="a fresh sample of the same size",
            ),
        ),
    ),
    survey_weighted=True,
)
@drafts(_draft_offer)
def ecdf(confidential: Microdata, released: Microdata, spec: EcdfSpec, run: Run) -> Measure:
    """Measure both differences for each variable, with their expectations for two samples of one distribution."""
    names = spec.for_release(confidential.schema, ()).variables
    return Measure(
        tuple(estimate for name in names for estimate in _variable_estimates(confidential, released, name, spec))
    )
