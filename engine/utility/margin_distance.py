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
from itertools import combinations
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
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
from ..methods.drafting import Case, Offer, drafts
from ..methods.levers import FIDELITY
from ..methods.outputs import Label, Output
from ..methods.passes import Finished, NextPass, Partial, measure_blocks
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import joint_classes
from ..statistics.ordered_blocks import bounds_of_rank, count_values, cut_values, merge_counts

MOST_CELLS = 1 << 22
"""Cells of a margin that are counted in a whole table; of a larger one, those that occur are sorted."""
_LARGEST_CELL = 1 << 62
CellCounts = tuple[Integers, Integers, Integers]
"""Numbers of cells, ascending, and the records of each table in each, (cells,)."""


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


@dataclass(frozen=True)
class _NumberRange:
    """What is known of the confidential values of a number: how many there are, the smallest, the largest, and for each
    cut between bins two values between which it lies.
    """

    present: int
    low: float
    high: float
    between: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class _MarginState:
    """What the passes of the measure know.

    spec: parameters, with variables
    alone: whether there is one block
    hidden: why variables are not compared
    levels: common levels of each variable that has levels
    rules: rule of bins for each number
    ranges: of numbers whose bins follow from the data, after the first pass
    bins: of numbers, once they are known
    """

    spec: MarginDistanceSpec
    alone: bool
    hidden: Mapping[str, str]
    levels: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, BinningRule]
    ranges: Mapping[str, _NumberRange] = field(default_factory=dict)
    bins: Mapping[str, FittedBins] = field(default_factory=dict)

    @property
    def compared_names(self) -> tuple[str, ...]:
        """Return the variables that are compared."""
        return tuple(name for name in self.spec.variables if name not in self.hidden)

    @property
    def margins(self) -> tuple[tuple[str, ...], ...]:
        """Return the variables of each margin that is counted."""
        triples = combinations(self.compared_names, 3) if self.spec.ways == "triples" else ()
        return (*combinations(self.compared_names, 2), *triples)

    def count_pass(self) -> NextPass:
        """Return the pass that counts the margins."""
        return NextPass(self, self.compared_names, "margins")


class MarginPasses:
    """The last pass counts the cells of all margins. Before it, of a table in blocks, two find the bins of numbers: bounds
    of their cuts, and the values between these.
    """

    def suits(self, spec: MarginDistanceSpec, schema: Schema) -> bool:
        return True

    def start(self, confidential: Microdata, released: Microdata, spec: MarginDistanceSpec, n_blocks: int) -> NextPass:
        spec, hidden, levels = spec.for_release(confidential.schema, ()), dict[str, str](), dict[str, tuple[str, ...]]()
        rules: dict[str, BinningRule] = {}
        for name in spec.variables:
            try:
                comparable_categories(confidential, released, name, None)
            except NotComputable as error:
                hidden[name] = error.reason
                continue
            if confidential.schema[name].kind in BINNED:
                rules[name] = spec.bins.get(name, TEN_OF_EQUAL_COUNT)
            else:
                both = (data.column(name).cat.categories for data in (confidential, released))
                levels[name] = tuple(dict.fromkeys(str(level) for own in both for level in own))
        state = _MarginState(spec, n_blocks == 1, hidden, levels, rules)
        sizes = [len(own) + 1 for own in levels.values()] + [_most_categories(rule) for rule in rules.values()]
        largest = sorted(sizes, reverse=True)[: 3 if spec.ways == "triples" else 2]
        if math.prod(largest) >= _LARGEST_CELL and n_blocks > 1:
            raise NotComputable(
                "margins of these variables have too many cells to be counted part by part; compare fewer variables"
            )
        if state.alone or not rules:
            return state.count_pass()
        return NextPass(state, tuple(rules), "bins of numbers")

    def block(self, state: _MarginState, confidential: Microdata, released: Microdata) -> Partial:
        found: dict[str, NDArray[Any]] = {}
        if state.rules and not state.alone and not state.bins:
            for name, rule in state.rules.items():
                values = confidential.present_numbers(name)
                if not state.ranges:
                    ends = [values.min(initial=np.inf), values.max(initial=-np.inf)]
                    found |= {f"{name}.cuts": cut_values(values), f"{name}.ends": np.array([len(values), *ends])}
                    continue
                known = state.ranges[name]
                for i, _ in enumerate(rule.cut_ranks(known.present)):
                    low, high = known.between[i]
                    near, count = count_values(values[(values >= low) & (values <= high)])
                    below = np.array([int((values < low).sum())])
                    found |= {f"{name}.near.{i}": near, f"{name}.count.{i}": count, f"{name}.below.{i}": below}
            return found
        codes, hidden = dict[str, tuple[Integers, Integers]](), dict[str, str]()
        sizes: dict[str, int] = {}
        for name in state.compared_names:
            try:
                bins = state.bins.get(name) or (
                    state.rules[name].fit_bins(confidential.numbers(name)) if name in state.rules else None
                )
            except NotComputable as error:
                hidden[name] = error.reason
                continue
            sizes[name] = 1 + (len(state.levels[name]) if bins is None else len(bins.cuts) + 1)
            codes[name] = (_codes_of(confidential, name, state, bins), _codes_of(released, name, state, bins))
        for j, names in enumerate(state.margins):
            if not any(name in hidden for name in names):
                cells = _count_cells([codes[name] for name in names], [sizes[name] for name in names])
                found |= {f"{j}.cells": cells[0], f"{j}.ours": cells[1], f"{j}.theirs": cells[2]}
        return found | {f"hidden.{name}": np.array(reason) for name, reason in hidden.items()}

    def merge(self, state: _MarginState, partials: Sequence[Partial]) -> NextPass | Finished[Measure]:
        if state.rules and not state.alone and not state.bins:
            if not state.ranges:
                ranges = {name: _range_of(name, rule, partials) for name, rule in state.rules.items()}
                return NextPass(replace(state, ranges=ranges), tuple(state.rules), "bins of numbers")
            bins, hidden = dict[str, FittedBins](), dict(state.hidden)
            for name, rule in state.rules.items():
                try:
                    bins[name] = _bins_of(name, rule, state.ranges[name], partials)
                except NotComputable as error:
                    hidden[name] = error.reason
            rules = {name: rule for name, rule in state.rules.items() if name in bins}
            return replace(state, hidden=hidden, rules=rules, bins=bins).count_pass()
        hidden = {key.partition(".")[2]: str(why) for key, why in partials[0].items() if key.startswith("hidden.")}
        distances = {
            names: total_variation(*_merge_cells(j, partials))
            for j, names in enumerate(state.margins)
            if f"{j}.cells" in partials[0]
        }
        return Finished(_measure_of(state, {**state.hidden, **hidden}, distances))


def _most_categories(rule: BinningRule) -> int:
    """Return the most categories that a rule makes of a number, with that of missing values."""
    return 2 + (MOST_BINS if rule.kind == "width" else max(int(rule.amount), len(rule.cuts)))


def _codes_of(data: Microdata, name: str, state: _MarginState, bins: FittedBins | None) -> Integers:
    """Return the category of each record of a block (n,), from 1; 0 where the value is missing."""
    if bins is not None:
        return bins.bin_codes(data.numbers(name)) + 1
    place = {level: i for i, level in enumerate(state.levels[name])}
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


def _merge_cells(margin: int, partials: Sequence[Partial]) -> tuple[Integers, Integers]:
    """Return the records of both tables in each cell of a margin over all blocks, (cells,)."""
    if len(partials) == 1:
        return partials[0][f"{margin}.ours"], partials[0][f"{margin}.theirs"]
    cells, place = np.unique(np.concatenate([one[f"{margin}.cells"] for one in partials]), return_inverse=True)
    ours, theirs = (
        np.bincount(place, np.concatenate([one[f"{margin}.{table}"] for one in partials]), len(cells)).astype(np.int64)
        for table in ("ours", "theirs")
    )
    return ours, theirs


def _range_of(name: str, rule: BinningRule, partials: Sequence[Partial]) -> _NumberRange:
    """Return what the first pass says of a number."""
    ends = np.array([one[f"{name}.ends"] for one in partials])
    cuts, records = [one[f"{name}.cuts"] for one in partials], ends[:, 0].astype(np.int64).tolist()
    present = sum(records)
    between = tuple(bounds_of_rank(cuts, records, int(rank)) for rank in rule.cut_ranks(present))
    return _NumberRange(present, float(ends[:, 1].min()), float(ends[:, 2].max()), between)


def _bins_of(name: str, rule: BinningRule, known: _NumberRange, partials: Sequence[Partial]) -> FittedBins:
    """Return the bins of a number. Raises NotComputable where they are too many."""
    ranked = []
    for i, rank in enumerate(rule.cut_ranks(known.present)):
        near, count = merge_counts([(one[f"{name}.near.{i}"], one[f"{name}.count.{i}"]) for one in partials])
        below = sum(int(one[f"{name}.below.{i}"][0]) for one in partials)
        ranked.append(near[np.searchsorted(np.cumsum(count), int(rank) - below, side="right")])
    return rule.bins_from_ranks(known.low, known.high, np.array(ranked))


def _measure_of(
    state: _MarginState, hidden: Mapping[str, str], distances: Mapping[tuple[str, ...], tuple[float, float]]
) -> Measure:
    """Return the estimates of all margins."""
    spec, remarks = state.spec, {name: rule for name, rule in state.rules.items() if name not in hidden}
    estimates, pairs = list[Estimate](), list[tuple[float, float]]()
    for a, b in combinations(spec.variables, 2):
        if why := hidden.get(a) or hidden.get(b):
            estimates.append(Estimate.not_computed("pair", why, a, other=b))
            continue
        value, expected = distances[a, b]
        pairs.append((value, expected))
        said = learned_bins_text({name: remarks[name] for name in (a, b) if name in remarks})
        estimates.append(Estimate("pair", value, a, baseline=expected, unit="share", reason=said, params={"other": b}))
    said = learned_bins_text(remarks)
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
    measure_passes=MarginPasses(),
)
@drafts(_draft_offer)
def margin_distance(confidential: Microdata, released: Microdata, spec: MarginDistanceSpec, run: Run) -> Measure:
    """Measure a distance for each pair, with the second variable as the parameter ``other``, and the means over pairs
    and triples.
    """
    return measure_blocks(MarginPasses(), OneBlock(confidential), OneBlock(released), spec)
