"""Total variation of joint distributions of two and three variables: half the sum of the differences between the shares
of each combination of values.

0 where every combination is as frequent in the release as in the confidential data, 1 where none occurs in both: the
share of the records that would have to change. Numbers and dates are values by bins; a missing value is a value of its
own. The baseline is what two samples of one distribution give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, Literal, Self

import numpy as np

from ..data.arrays import Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, compared_variables
from ..design.binning import (
    BINNED,
    TEN_OF_EQUAL_COUNT,
    BinningRule,
    BinsOfCompared,
    check_binning_rules,
    comparable_categories,
    learned_bins_text,
)
from ..errors import BadInput, NotComputable
from ..methods.drafting import Case, Offer, drafts
from ..methods.levers import FIDELITY
from ..methods.outputs import Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import joint_classes

TwoTableCodes = tuple[Integers, Integers]


def _distance_output(name: str, meaning: str, label: Label) -> Output:
    """Return the declaration of an output that is a total variation."""
    return Output(name, meaning, "low", unit="share", range=SHARE, statbarn="StatisticalHypothesisTests", label=label)


def _mean_estimate(
    measure: str, values: Sequence[tuple[float, float]], said: str, hidden: Mapping[str, str]
) -> Estimate:
    """Return the mean of distances and of their baselines, or why it is not computed."""
    if hidden or not values:
        return Estimate.not_computed(measure, next(iter(hidden.values()), "there are too few variables"))
    value, expected = np.mean(np.array(values), axis=0).tolist()
    return Estimate(measure, value, baseline=expected, unit="share", reason=said)


def total_variation(codes: Sequence[TwoTableCodes]) -> tuple[float, float]:
    """Compute the total variation of a joint distribution between two tables, and its expectation for two samples of
    one distribution.

    codes: common codes of each variable in both tables, (n,) and (m,)
    """
    ours, theirs = joint_classes([one for one, _ in codes], [other for _, other in codes])
    size = int(max(ours.max(), theirs.max())) + 1
    n, m = len(ours), len(theirs)
    a, b = np.bincount(ours, minlength=size), np.bincount(theirs, minlength=size)
    pooled = (a + b) / (n + m)
    variance = pooled * (1 - pooled) * (1 / n + 1 / m) * (n + m) / (n + m - 1)
    # Each difference of shares is about normal, whose mean size is sqrt(2 / pi) standard deviations. Sorted, the
    # rounding of the sum does not depend on the order of the records.
    expected = float(np.sort(np.sqrt(2 * variance / np.pi)).sum() / 2)
    return float(np.sort(np.abs(a / n - b / m)).sum() / 2), min(expected, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class MarginDistanceSpec(Spec):
    """Variables whose pairs are compared, and bins."""

    variables: Annotated[
        tuple[str, ...], Param("variables to compare; the released ones if empty", names="variables", filters_rows=True)
    ] = ()
    ways: Annotated[
        Literal["pairs", "triples"], Param("the mean over pairs of variables, or over triples too", filters_rows=True)
    ] = "pairs"
    bins: BinsOfCompared = field(default_factory=dict)

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with the released variables where none is named."""
        return replace(self, variables=self.variables or compared_variables(schema, released, tuple(Kind)))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput for fewer than two variables, or bins of a variable that is not compared."""
        names = self.for_release(schema, released).variables
        if len(names) < 2:
            raise BadInput(place, "a pair needs two variables; name them, or leave the measure out")
        used = {name: schema[name].kind for name in names if schema[name].kind in BINNED}
        check_binning_rules(self.bins, used, f"{place}.bins")


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure for a release drawn from tables of counts; None for others."""
    if case.want != "synthesis" or case.linked or len(case.released) < 2:
        return None
    return Offer(
        "which pairs of variables go together as in the data: those that share a table do, others as far as the tables say"
    )


@measure_method(
    "Distances of margins",
    spec=MarginDistanceSpec,
    source="total variation; McKenna et al. (2022), section 6; Raab (2026)",
    outputs=(
        _distance_output(
            "pair",
            "total variation of the joint distribution of two variables",
            Label(
                "Distance of a pair of variables",
                "The joint distribution of {variable} and another variable differs in {value} of the records.",
                "Lower is better; 0 is the same joint distribution.",
                "The relation of the two variables differs too much.",
                FIDELITY,
            ),
        ),
        _distance_output(
            "mean_pair",
            "the mean of that over all pairs of variables",
            Label(
                "Mean distance of pairs",
                "Joint distributions of two variables differ in {value} of the records on average.",
                "Lower is better; 0 is the same joint distribution of every pair.",
                "Relations between two variables differ too much on average.",
                FIDELITY,
            ),
        ),
        _distance_output(
            "mean_triple",
            "the same over all triples of variables; with ways = triples",
            Label(
                "Mean distance of triples",
                "Joint distributions of three variables differ in {value} of the records on average.",
                "Lower is better; 0 is the same joint distribution of every triple.",
                "Relations between three variables differ too much on average.",
                FIDELITY,
            ),
        ),
    ),
)
@drafts(_draft_offer)
def margin_distance(confidential: Microdata, released: Microdata, spec: MarginDistanceSpec, run: Run) -> Measure:
    """Measure a distance for each pair, with the second variable as the parameter ``other``, and the means over pairs
    and triples.
    """
    spec = spec.for_release(confidential.schema, ())
    found, hidden, remarks = dict[str, TwoTableCodes](), dict[str, str](), dict[str, BinningRule]()
    for name in spec.variables:
        rule = spec.bins.get(name, TEN_OF_EQUAL_COUNT) if confidential.schema[name].kind in BINNED else None
        try:
            found[name] = joint_classes(*([one] for one in comparable_categories(confidential, released, name, rule)))
        except NotComputable as error:
            hidden[name] = error.reason
        else:
            remarks |= {name: rule} if rule else {}
    estimates, pairs = list[Estimate](), list[tuple[float, float]]()
    for a, b in combinations(spec.variables, 2):
        if why := hidden.get(a) or hidden.get(b):
            estimates.append(Estimate.not_computed("pair", why, a, other=b))
            continue
        value, expected = total_variation([found[a], found[b]])
        pairs.append((value, expected))
        said = learned_bins_text({name: remarks[name] for name in (a, b) if name in remarks})
        estimates.append(Estimate("pair", value, a, baseline=expected, unit="share", reason=said, params={"other": b}))
    said = learned_bins_text(remarks)
    estimates.append(_mean_estimate("mean_pair", pairs, said, hidden))
    if spec.ways == "triples":
        triples = [total_variation([found[name] for name in three]) for three in combinations(found, 3)]
        estimates.append(_mean_estimate("mean_triple", triples, said, hidden))
    return Measure(tuple(estimates))
