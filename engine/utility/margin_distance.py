"""Total variation of joint distributions of two and three variables: half the sum of the differences between the shares
of each combination of values.

0 where every combination is as frequent in the release as in the confidential data, 1 where none occurs in both: the
share of the records that would have to change. Numbers and dates are values by bins; a missing value is a value of its
own. The baseline is what two samples of one distribution give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Annotated, Literal, Self

import numpy as np

from ..data.arrays import Integers
from ..data.block_sums import Summands, SummedTable, keep_parts
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.record_keys import KeyNumbers
from ..data.schema import Kind, Schema, compared_variables
from ..data.table_blocks import OneBlock
from ..design.binning import (
    BINNED,
    MOST_BINS,
    TEN_OF_EQUAL_COUNT,
    BinningRule,
    BinsOfCompared,
    FittedBins,
    check_binning_rules,
    comparable_categories,
    learned_bins_text,
)
from ..errors import BadInput, NotComputable
from ..methods.asked_passes import SummedPasses
from ..methods.drafting import Case, Offer, drafts
from ..methods.levers import FIDELITY
from ..methods.outputs import TWO_SAMPLES, Label, Output
from ..methods.passes import NextPass, measure_blocks
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import joint_classes
from ..statistics.ordered_blocks import bounds_of_rank, cut_values, values_at_ranks, values_between

MOST_CELLS = 1 << 22
"""Cells of a margin that are counted in a whole table; of a larger one, those that occur are sorted."""
_LARGEST_CELL = 1 << 62
CellCounts = tuple[Integers, Integers, Integers]
"""Numbers of cells, ascending, and the records of each table in each, (cells,)."""


def _distance_output(name: str, meaning: str, title: str, says: str, good: str, fails: str) -> Output:
    """Return the declaration of an output that is a total variation, with the texts of its label."""
    label = Label(title, says, good, fails, FIDELITY, baseline=TWO_SAMPLES)
    return Output(name, meaning, "low", unit="share", range=SHARE, statbarn="StatisticalHypothesisTests", label=label)


def _mean_estimate(
    measure: str, values: Sequence[tuple[float, float]], said: str, hidden: Mapping[str, str]
) -> Estimate:
    """Return the mean of distances and of their baselines, or why it is not computed."""
    if hidden or not values:
        return Estimate.not_computed(measure, next(iter(hidden.values()), "there are too few variables"))
    value, expected = np.mean(np.array(values), axis=0).tolist()
    return Estimate(measure, value, baseline=expected, unit="share", reason=said)


def total_variation(ours: Integers, theirs: Integers) -> tuple[float, float]:
    """Compute the total variation of a joint distribution between two tables, and its expectation for two samples of
    one distribution.

    ours, theirs: records of both tables in each cell that occurs in either, (cells,)
    """
    n, m = int(ours.sum()), int(theirs.sum())
    pooled = (ours + theirs) / (n + m)
    variance = pooled * (1 - pooled) * (1 / n + 1 / m) * (n + m) / (n + m - 1)
    # Each difference of shares is about normal, whose mean size is sqrt(2 / pi) standard deviations. Sorted, the
    # rounding of the sum does not depend on the order of the cells.
    expected = float(np.sort(np.sqrt(2 * variance / np.pi)).sum() / 2)
    return float(np.sort(np.abs(ours / n - theirs / m)).sum() / 2), min(expected, 1.0)


Categories = tuple[str, ...] | FittedBins
"""The common levels of a variable, or the bins of a number."""


class MarginPasses(SummedPasses):
    """The last pass counts the cells of all margins. Before it two find the bins of numbers: bounds of their cuts, and the
    values between these.
    """

    def start(self, confidential: Microdata, released: Microdata, spec: MarginDistanceSpec, n_blocks: int) -> NextPass:
        spec, hidden, rules = spec.for_release(confidential.schema, ()), dict[str, str](), dict[str, BinningRule]()
        for name in spec.variables:
            try:
                comparable_categories(confidential, released, name, None)
            except NotComputable as error:
                hidden[name] = error.reason
                continue
            if confidential.schema[name].kind in BINNED:
                rules[name] = spec.bins.get(name, TEN_OF_EQUAL_COUNT)
        compared = [name for name in spec.variables if name not in hidden]
        levels = KeyNumbers.from_tables(compared, [confidential, released]).levels
        sizes = [_category_count(own) for own in levels.values()] + [_most_categories(rule) for rule in rules.values()]
        largest = sorted(sizes, reverse=True)[: 3 if spec.ways == "triples" else 2]
        if math.prod(largest) >= _LARGEST_CELL and n_blocks > 1:
            raise NotComputable(
                "margins of these variables have too many cells to be counted part by part; compare fewer variables"
            )
        compute = partial(_measure_of_sums, spec, hidden, levels, rules)
        return self.first_pass(compute, confidential, n_blocks, [*levels, *rules], "margins")


def _measure_of_sums(
    spec: MarginDistanceSpec,
    hidden: Mapping[str, str],
    levels: Mapping[str, Categories],
    rules: Mapping[str, BinningRule],
    both: SummedTable,
) -> Measure:
    """Return the measure of two tables that are asked for sums together.

    hidden: why variables are not compared
    levels: common levels of each variable that has levels
    rules: rule of bins for each number
    """
    bins, too_many = _fit_bins(rules, both) if rules else ({}, {})
    fitted, hidden = {**levels, **bins}, {**hidden, **too_many}
    categories = {name: fitted[name] for name in spec.variables if name in fitted}
    triples = combinations(categories, 3) if spec.ways == "triples" else ()
    margins = [*combinations(categories, 2), *triples]
    parts = both.ask_sums(partial(_cells_of_block, categories, margins), keep_parts, tuple(categories))
    distances = {
        names: total_variation(*_merge_cells(cells)) for names, cells in zip(margins, parts, strict=bool(parts))
    }
    return _measure_of(spec, {name: rule for name, rule in rules.items() if name in bins}, hidden, distances)


def _fit_bins(rules: Mapping[str, BinningRule], both: SummedTable) -> tuple[dict[str, Categories], dict[str, str]]:
    """Return the bins of numbers, and of which numbers there are none and why."""
    names = tuple(rules)
    parts = both.ask_sums(partial(_ends_of_block, names), keep_parts, names)
    ends, between = {name: tuple(zip(*own, strict=True)) for name, own in zip(names, parts, strict=True)}, {}
    for name, (records, _, _, cuts) in ends.items():
        between[name] = [bounds_of_rank(cuts, records, int(rank)) for rank in rules[name].cut_ranks(sum(records))]
    parts = both.ask_sums(partial(_values_of_block, between), keep_parts, names)
    bins, hidden = dict[str, Categories](), dict[str, str]()
    for (name, rule), own in zip(rules.items(), parts, strict=True):
        records, low, high, _ = ends[name]
        near = zip(rule.cut_ranks(sum(records)), zip(*own, strict=True), strict=True)
        ranked = np.array([values_at_ranks(values, rank) for rank, values in near])
        try:
            bins[name] = rule.bins_from_ranks(min(low), max(high), ranked)
        except NotComputable as error:
            hidden[name] = error.reason
    return bins, hidden


def _ends_of_block(names: Sequence[str], confidential: Microdata, released: Microdata) -> Summands:
    """Return for each number how many confidential values a block has, the smallest, the largest, and cuts of them."""
    of = {name: confidential.present_numbers(name) for name in names}
    return tuple(
        (len(values), float(values.min(initial=np.inf)), float(values.max(initial=-np.inf)), cut_values(values))
        for values in of.values()
    )


def _values_of_block(
    between: Mapping[str, Sequence[tuple[float, float]]], confidential: Microdata, released: Microdata
) -> Summands:
    """Return for each number the confidential values of a block around each cut between bins."""
    return tuple(values_between(confidential.present_numbers(name), ends) for name, ends in between.items())


def _cells_of_block(
    categories: Mapping[str, Categories],
    margins: Sequence[tuple[str, ...]],
    confidential: Microdata,
    released: Microdata,
) -> Summands:
    """Return the counts of the cells of each margin in a block."""
    codes = {
        name: (_codes_of(confidential, name, own), _codes_of(released, name, own)) for name, own in categories.items()
    }
    return tuple(
        _count_cells([codes[name] for name in names], [_category_count(categories[name]) for name in names])
        for names in margins
    )


def _category_count(categories: Categories) -> int:
    """Return the number of categories, with that of missing values."""
    return 1 + (len(categories.cuts) + 1 if isinstance(categories, FittedBins) else len(categories))


def _most_categories(rule: BinningRule) -> int:
    """Return the most categories that a rule makes of a number, with that of missing values."""
    return 2 + (MOST_BINS if rule.kind == "width" else max(int(rule.amount), len(rule.cuts)))


def _codes_of(data: Microdata, name: str, categories: Categories) -> Integers:
    """Return the category of each record of a block (n,), from 1; 0 where the value is missing."""
    if isinstance(categories, FittedBins):
        return categories.bin_codes(data.numbers(name)) + 1
    place = {level: i for i, level in enumerate(categories)}
    own = data.column(name).cat
    codes = np.array([*(place[str(level)] for level in own.categories), -1], dtype=np.int64)
    return codes[own.codes.to_numpy()] + 1


def _count_cells(codes: Sequence[tuple[Integers, Integers]], sizes: Sequence[int]) -> CellCounts:
    """Count the records of both tables in each cell of a margin that occurs in either.

    codes: categories of each variable in both tables, (n,) and (m,)
    sizes: number of categories of each variable
    """
    cells = math.prod(sizes)
    if cells >= _LARGEST_CELL:
        ours, theirs = joint_classes([own for own, _ in codes], [other for _, other in codes])
        cells, codes = int(max(ours.max(), theirs.max())) + 1, [(ours, theirs)]
    ours, theirs = codes[0]
    for (own, other), size in zip(codes[1:], sizes[1:], strict=True):
        ours, theirs = ours * size + own, theirs * size + other
    if cells <= MOST_CELLS:
        here, there = np.bincount(ours, minlength=cells), np.bincount(theirs, minlength=cells)
        occurs = np.flatnonzero(here + there)
        return occurs, here[occurs], there[occurs]
    occurs, place = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    n = len(ours)
    return occurs, np.bincount(place[:n], minlength=len(occurs)), np.bincount(place[n:], minlength=len(occurs))


def _merge_cells(parts: Sequence[CellCounts]) -> tuple[Integers, Integers]:
    """Return the records of both tables in each cell of a margin over all blocks, (cells,)."""
    if len(parts) == 1:
        return parts[0][1:]
    every, *tables = (np.concatenate(of) for of in zip(*parts, strict=True))
    cells, place = np.unique(every, return_inverse=True)
    ours, theirs = (np.bincount(place, records, len(cells)).astype(np.int64) for records in tables)
    return ours, theirs


def _measure_of(
    spec: MarginDistanceSpec,
    rules: Mapping[str, BinningRule],
    hidden: Mapping[str, str],
    distances: Mapping[tuple[str, ...], tuple[float, float]],
) -> Measure:
    """Return the estimates of all margins."""
    estimates, pairs = list[Estimate](), list[tuple[float, float]]()
    for a, b in combinations(spec.variables, 2):
        if why := hidden.get(a) or hidden.get(b):
            estimates.append(Estimate.not_computed("pair", why, a, other=b))
            continue
        value, expected = distances[a, b]
        pairs.append((value, expected))
        said = learned_bins_text({name: rules[name] for name in (a, b) if name in rules})
        estimates.append(Estimate("pair", value, a, baseline=expected, unit="share", reason=said, params={"other": b}))
    said = learned_bins_text(rules)
    # By variable, so that the first reason is that of the first one.
    ordered = {name: hidden[name] for name in spec.variables if name in hidden}
    estimates.append(_mean_estimate("mean_pair", pairs, said, ordered))
    if spec.ways == "triples":
        triples = [own for names, own in distances.items() if len(names) == 3]
        estimates.append(_mean_estimate("mean_triple", triples, said, ordered))
    return Measure(tuple(estimates))


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
            "Distance of a pair of variables",
            "The joint distribution of {variable} and another variable differs in {value} of the records.",
            "Lower is better; 0 is the same joint distribution.",
            "The relation of the two variables differs too much.",
        ),
        _distance_output(
            "mean_pair",
            "the mean of that over all pairs of variables",
            "Mean distance of pairs",
            "Joint distributions of two variables differ in {value} of the records on average.",
            "Lower is better; 0 is the same joint distribution of every pair.",
            "Relations between two variables differ too much on average.",
        ),
        _distance_output(
            "mean_triple",
            "the same over all triples of variables; with ways = triples",
            "Mean distance of triples",
            "Joint distributions of three variables differ in {value} of the records on average.",
            "Lower is better; 0 is the same joint distribution of every triple.",
            "Relations between three variables differ too much on average.",
        ),
    ),
    measure_passes=MarginPasses(),
)
@drafts(_draft_offer)
def margin_distance(confidential: Microdata, released: Microdata, spec: MarginDistanceSpec, run: Run) -> Measure:
    """Measure a distance for each pair, with the second variable as the parameter ``other``, and the means over pairs
    and triples.
    """
    return measure_blocks(MarginPasses(), OneBlock(confidential), OneBlock(released), spec)
