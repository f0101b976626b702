"""Trees of tables that are read in passes: the values of the predictors, then a pass a level, then the donors.

A tree is grown from counts (``sfumato.engine.trees.counted_trees``). A predictor with more than ``MOST_VALUES`` different
numbers is split between groups of about as many records. Donors of levels are in the counts. Numbers are brought together leaf by leaf: a leaf with more than
``MOST_DONORS`` different ones keeps as many of its records' numbers, at even distances in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.block_sums import Summands, SummedTable, ask_together
from ..data.microdata import Microdata
from ..data.row_buckets import BUCKET_ROWS, BucketRows, stack_columns
from ..data.schema import Kind
from ..methods.passes import Finished, IntoBuckets, NextPass, Partial
from ..statistics.smoothing import CommonDivisor
from ..statistics.value_groups import group_ends
from ..trees.class_trees import ClassTree, GrowthRules
from ..trees.counted_trees import (
    ClassCriterion,
    GrowingTree,
    NumberCriterion,
    NumberScale,
    NumberSums,
    add_products,
    sum_products,
    walk_nodes,
)
from ..trees.trees import TreeArrays, arrays_of_counted_tree, order_by_means

MOST_VALUES = 1 << 12
"""Different numbers of a predictor, from which on a tree splits between groups of them."""
GROUPS = 1 << 10
"""Groups of about as many records."""
MOST_DONORS = 1000
"""Different numbers of a leaf, from which on some of its records are its donors."""


def missing_as_last_level(data: Microdata, name: str) -> Integers:
    """Return the codes of levels, (n,), with missing as one more level."""
    values: Any = data.column(name).array  # of a categorical; its accessor takes ten times as long
    codes = values.codes.astype(np.int64)
    return np.where(codes < 0, len(values.categories), codes)


def count_levels(data: Microdata, name: str) -> int:
    """Return the number of levels of a variable, without missing."""
    values: Any = data.column(name).array
    return len(values.categories)


def has_no_order(data: Microdata, name: str) -> bool:
    """Return whether a variable has levels without an order of their own."""
    return data.schema[name].kind in (Kind.CATEGORICAL, Kind.BINARY)


@dataclass(frozen=True, eq=False)
class TreePlan:
    """What is grown: a tree of a target by predictors."""

    target: str
    predictors: tuple[str, ...]
    minbucket: int
    cp: float
    prune: bool
    smoothing: bool


class PredictorValues(NamedTuple):
    """Values of a predictor.

    values: numbers that codes stand for, ascending, (size,): places in the order of levels where these have none
    has_missing: whether the first number stands for a missing one
    order: place of each level, of levels without an order, (L,); None of numbers
    is_grouped: whether numbers are the ends of groups
    """

    values: Floats
    has_missing: bool = False
    order: Floats | None = None
    is_grouped: bool = False

    @classmethod
    def from_numbers(cls, found: Floats) -> Self:
        """Return the values of a predictor with these distinct numbers (d,), missing (NaN) among them."""
        present = found[~np.isnan(found)]
        if len(present) == len(found):
            return cls(present)
        # A missing number stands below all others, as where the records are at hand.
        return cls(np.append(np.nextafter(present.min(initial=np.inf), -np.inf), present), has_missing=True)

    @classmethod
    def from_groups(cls, ends: Floats, first: float, *, has_missing: bool) -> Self:
        """Return the values of a predictor whose numbers are in groups with these ends, the least number first."""
        lowest = [np.nextafter(first, -np.inf)] if has_missing else []
        return cls(np.append(lowest, ends), has_missing, is_grouped=True)

    @classmethod
    def from_levels(cls, order: Floats, records: Integers) -> Self:
        """Return the values of a predictor whose levels have an order (L,) and records, (L,); others have no code."""
        return cls(np.sort(order[records > 0]), order=order)

    def codes_of(self, data: Microdata, name: str) -> Integers:
        """Return the codes of a block, (n,)."""
        if self.order is not None:
            return np.searchsorted(self.values, self.order[missing_as_last_level(data, name)])
        numbers = data.numbers(name)
        codes = np.searchsorted(self.values, numbers)
        return np.where(np.isnan(numbers), 0, codes) if self.has_missing else codes


@dataclass(frozen=True, eq=False)
class SmoothingFacts:
    """What smoothing needs to know of all numbers of a table.

    common: numbers that so many records have that they are nobody's own; of a fit those among its donors
    least: the least number
    step: of which all numbers are multiples, 0 without one
    """

    common: Floats
    least: float
    step: float


@dataclass(frozen=True, eq=False)
class GrownTree:
    """Answer of the passes: a tree of the table, or the table where it is one block.

    tree: the tree
    orders: order of the levels of each predictor whose levels have none
    lowest: number that stands for a missing one, of the predictors that lack some
    groups: number of groups between which the tree splits, of the predictors with too many values
    smoothing: where numbers are smoothed
    """

    tree: TreeArrays | None = None
    orders: Mapping[str, Floats] = field(default_factory=dict)
    lowest: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    smoothing: SmoothingFacts | None = None
    data: Microdata | None = None


@dataclass(frozen=True, eq=False)
class TreeTable:
    """How the records of a table are counted, and the tree as far as it is grown.

    values: values of the predictors
    classes: codes of the target's levels that occur, (C,); none of numbers
    growing: the tree
    least, step: of a target of numbers, as in ``SmoothingFacts``
    grown: the whole tree, once there is one
    data: the table, where it is one block
    """

    plan: TreePlan
    values: Mapping[str, PredictorValues] = field(default_factory=dict)
    classes: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    growing: GrowingTree | None = None
    least: float = 0.0
    step: float = 0.0
    grown: ClassTree | None = None
    answer: GrownTree | None = None
    data: Microdata | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the variables that are read."""
        return tuple(dict.fromkeys((*self.plan.predictors, self.plan.target)))

    def codes_of(self, data: Microdata) -> Integers:
        """Return the codes of the predictors of a block, (n, P)."""
        columns = [self.values[name].codes_of(data, name) for name in self.plan.predictors]
        return np.column_stack([np.empty((len(data), 0), np.int64), *columns])

    def count_block(self, data: Microdata) -> Partial:
        """Return what a pass over a level counts in a block."""
        assert self.growing is not None
        y = data.numbers(self.plan.target)
        if len(self.classes):
            y = np.searchsorted(self.classes, missing_as_last_level(data, self.plan.target)).astype(np.float64)
        return self.growing.count_block(self.codes_of(data), y)

    def leaves_of(self, data: Microdata) -> Integers:
        """Return the leaf of each record of a block, (n,)."""
        assert self.grown is not None
        tree = self.grown
        return walk_nodes((tree.feature, tree.cut, tree.left_levels, tree.left, tree.right), self.codes_of(data))

    @property
    def buckets(self) -> Integers:
        """Return the bucket of each node of the whole tree, (V,): leaves that follow each other share one."""
        assert self.grown is not None
        leaf = self.grown.left == np.arange(len(self.grown.left))
        records = np.where(leaf, self.grown.counts[:, 0], 0)
        return np.asarray((np.cumsum(records) - records) // BUCKET_ROWS)

    def with_donors(self, leaf: Integers, donors: Floats, weight: Integers) -> TreeTable:
        """Return the table with its tree as arrays; donors are in the order of leaves and values, (D,)."""
        assert self.grown is not None
        own = [self.values[name] for name in self.plan.predictors]
        levels = [len(one.values) if one.order is not None and len(self.classes) else 0 for one in own]
        values, grouped = [one.values for one in own], [one.is_grouped for one in own]
        tree = arrays_of_counted_tree(self.grown, values, levels, leaf, donors, weight.astype(np.float64), grouped)
        orders = {name: one.order for name, one in self.values.items() if one.order is not None}
        lowest = {name: float(one.values[0]) for name, one in self.values.items() if one.has_missing}
        groups = {name: len(one.values) for name, one in self.values.items() if one.is_grouped}
        return replace(self, answer=GrownTree(tree, orders, lowest, groups))


class PredictorFacts(NamedTuple):
    """What a block says of its variables.

    predictors: distinct numbers, missing ones last, or records of each level and without, of each predictor
    levels: records of each level of the target and without, (L + 1,); none of numbers
    low, high: range of the target's numbers
    common: what these have in common
    """

    predictors: tuple[NDArray[Any], ...]
    levels: Integers
    low: float
    high: float
    common: tuple[int, int]


def describe_table(plan: TreePlan, table: SummedTable) -> TreeTable:
    """Return what a table that is asked for sums says of its variables."""
    if table.n_blocks == 1:
        (data,) = table.ask_sums(lambda data: (data,))
        return TreeTable(plan, data=data)
    facts = PredictorFacts(*table.ask_sums(partial(_describe_block, plan), _join_facts))
    head = table.head
    found = dict(zip(plan.predictors, facts.predictors, strict=True))
    numbers = {name: PredictorValues.from_numbers(own) for name, own in found.items() if not has_no_order(head, name)}
    many = {
        name: partial(group_ends, name, GROUPS)
        for name, own in numbers.items()
        if len(own.values) > MOST_VALUES + own.has_missing
    }
    for name, ends in ask_together(table, many, {}).items():
        numbers[name] = PredictorValues.from_groups(ends, float(found[name][0]), has_missing=numbers[name].has_missing)
    # A missing level is one more where some record has none.
    counts = {name: own[: len(own) - (own[-1] == 0)] for name, own in found.items() if name not in numbers}
    if head.schema[plan.target].kind.has_levels:
        classes = np.flatnonzero(facts.levels)
        every = {name: np.arange(float(len(own))) for name, own in counts.items()}
        values = {**numbers, **{name: PredictorValues(own, order=own) for name, own in every.items()}}
        rules = _growth_rules(plan, values, len(classes))
        root = facts.levels[classes]
        growing = GrowingTree.from_root(ClassCriterion(rules, plan.cp, root, plan.prune), rules, root.tolist())
        return TreeTable(plan, values, classes, growing)
    scale = NumberScale.from_range(*((facts.low, facts.high) if facts.low <= facts.high else (0.0, 0.0)))
    sizes = {name: len(own) for name, own in counts.items()}
    sums, *by_level = table.ask_sums(partial(_sum_block, plan.target, scale, sizes))
    records, total, missing, *products = sums.tolist()
    root_sums = NumberSums(records, missing, total, add_products(*products))
    ordered = {}
    for name, own in zip(counts, by_level, strict=True):
        order = order_by_means(root_sums.standard_means(own), own[:, 0].astype(np.float64))
        ordered[name] = PredictorValues.from_levels(order, own[:, 0])
    values = {**numbers, **ordered}
    rules = _growth_rules(plan, values, 1)
    growing = GrowingTree.from_root(NumberCriterion(rules, plan.cp, scale, root_sums), rules, (records, total, missing))
    step = CommonDivisor(*facts.common).step
    return TreeTable(plan, values, growing=growing, least=facts.low, step=step)


def _growth_rules(plan: TreePlan, values: Mapping[str, PredictorValues], classes: int) -> GrowthRules:
    """Return the rules of growth; a tree for numbers has an order of all levels."""
    own = [values[name] for name in plan.predictors]
    unordered = np.array([one.order is not None and classes > 1 for one in own], dtype=np.bool_)
    return GrowthRules([len(one.values) for one in own], unordered, np.ones((classes, 1)), plan.minbucket)


def _describe_block(plan: TreePlan, data: Microdata) -> Summands:
    """Return the facts of a block."""
    predictors: list[NDArray[Any]] = []
    for name in plan.predictors:
        if has_no_order(data, name):
            predictors.append(np.bincount(missing_as_last_level(data, name), minlength=count_levels(data, name) + 1))
        else:
            predictors.append(_limit_values(np.unique(data.numbers(name))))
    if data.schema[plan.target].kind.has_levels:
        codes, count = missing_as_last_level(data, plan.target), count_levels(data, plan.target) + 1
        return tuple(PredictorFacts(tuple(predictors), np.bincount(codes, minlength=count), 0.0, 0.0, (0, 0)))
    present = data.present_numbers(plan.target)
    low, high = float(present.min(initial=np.inf)), float(present.max(initial=-np.inf))
    common = CommonDivisor.from_numbers(present) if plan.smoothing else (0, 0)
    return tuple(PredictorFacts(tuple(predictors), np.empty(0, np.int64), low, high, (int(common[0]), int(common[1]))))


def _limit_values(values: Floats) -> Floats:
    """Return distinct numbers, ascending, a missing one last; of too many, more than ``MOST_VALUES`` of them, the least
    among them.
    """
    if len(values) <= MOST_VALUES + 2:
        return values
    return np.append(values[:MOST_VALUES], values[-2:])


def _join_facts(parts: Sequence[Summands]) -> Summands:
    """Join the facts of blocks."""
    every = [PredictorFacts(*one) for one in parts]
    predictors = []
    for own in zip(*(one.predictors for one in every), strict=True):
        numbers = own[0].dtype.kind == "f"
        predictors.append(_limit_values(np.unique(np.concatenate(own))) if numbers else np.sum(own, axis=0))
    levels = np.sum([one.levels for one in every], axis=0)
    common = CommonDivisor.of_all([CommonDivisor(*one.common) for one in every])
    low, high = min(one.low for one in every), max(one.high for one in every)
    return tuple(PredictorFacts(tuple(predictors), levels, low, high, (common.decimals, common.divisor)))


def _sum_block(target: str, scale: NumberScale, unordered: Mapping[str, int], data: Microdata) -> Summands:
    """Return the sums over a block that ``NumberSums`` consists of, and records, sums and missing ones of each level."""
    y = data.numbers(target)
    missing = np.isnan(y)
    whole = np.zeros(len(y), dtype=np.int64)
    whole[~missing] = scale.to_whole(y[~missing])
    everybody = np.zeros(len(y), dtype=np.int64)
    products = sum_products(whole[~missing], everybody[~missing], 1)[0]
    sums = np.array([len(y), int(whole.sum()), int(missing.sum()), *products])
    by_level = []
    for name, count in unordered.items():
        codes = missing_as_last_level(data, name)
        columns = (np.bincount(codes, one, count).astype(np.int64) for one in (None, whole, missing))
        by_level.append(np.column_stack(list(columns)))
    return (sums, *by_level)


class CountedTreePasses:
    """Passes of a tree after its variables are described: one for each level, then those of its donors."""

    def next_pass(self, table: TreeTable) -> NextPass | Finished[GrownTree]:
        """Return the pass that follows, or the answer."""
        if table.data is not None:
            return Finished(GrownTree(data=table.data))
        if table.growing is not None and not table.growing.is_grown:
            what = f"tree of {table.plan.target}, level {len(table.growing.depths)}"
            return NextPass(table, table.names, what, fold=_add_tables)
        if table.grown is None:
            assert table.growing is not None
            table = replace(table, growing=None, grown=table.growing.finish())
        assert table.grown is not None
        if table.answer is None and len(table.classes):
            leaf = table.grown.left == np.arange(len(table.grown.left))
            node, place = np.nonzero(table.grown.counts * leaf[:, None])
            codes = table.classes[place].astype(np.float64)
            table = table.with_donors(node, codes, table.grown.counts[node, place])
        if table.answer is None:
            number = int(table.buckets.max()) + 1
            return NextPass(table, table.names, f"donors of {table.plan.target}", IntoBuckets(number, self.find_donors))
        if table.plan.smoothing and not len(table.classes) and table.answer.smoothing is None:
            return NextPass(table, (table.plan.target,), "numbers that many have", fold=_add_tables)
        return Finished(table.answer)

    def block(self, table: TreeTable, data: Microdata) -> Partial:
        """Return the partial answer of a block."""
        if table.grown is None:
            return table.count_block(data)
        if table.answer is None:
            leaf = table.leaves_of(data)
            return {"donors": stack_columns(table.buckets[leaf], leaf, data.numbers(table.plan.target))}
        assert table.answer.tree is not None
        donors = _distinct_donors(table.answer.tree)
        numbers = data.present_numbers(table.plan.target)
        place = np.searchsorted(donors, numbers)
        place = place[donors[np.minimum(place, len(donors) - 1)] == numbers] if len(donors) else place[:0]
        return {"records": np.bincount(place, minlength=len(donors))}

    @staticmethod
    def find_donors(table: TreeTable, rows: Mapping[str, BucketRows]) -> Partial:
        """Return the donors of the leaves of a bucket, in their order: leaf, value and weight, (D,) each."""
        _, leaf, y = rows["donors"].read_rows().T
        order = np.lexsort((y, leaf))
        leaf, y = leaf[order].astype(np.int64), y[order]
        starts = np.flatnonzero(np.append(True, leaf[1:] != leaf[:-1]))
        found = [_spread_donors(own) for own in np.split(y, starts[1:])] if len(y) else []
        sizes = [len(values) for values, _ in found]
        return {
            "leaf": np.repeat(leaf[starts], sizes) if found else leaf,
            "donors": np.concatenate([np.empty(0), *(values for values, _ in found)]),
            "weight": np.concatenate([np.empty(0, np.int64), *(weight for _, weight in found)]),
        }

    def merge(self, table: TreeTable, partials: Sequence[Partial], people: int) -> NextPass | Finished[GrownTree]:
        """Return what follows a pass. ``people`` is the number of records of which a number is common."""
        if table.grown is None:
            assert table.growing is not None
            return self.next_pass(replace(table, growing=table.growing.with_tables(partials[0])))
        if table.answer is None:
            columns = (np.concatenate([one[name] for one in partials]) for name in ("leaf", "donors", "weight"))
            return self.next_pass(table.with_donors(*columns))
        assert table.answer.tree is not None
        common = _distinct_donors(table.answer.tree)[partials[0]["records"] >= people]
        facts = SmoothingFacts(common, table.least, table.step)
        return self.next_pass(replace(table, answer=replace(table.answer, smoothing=facts)))


def _add_tables(one: Partial, other: Partial) -> Partial:
    return {name: values + other[name] for name, values in one.items()}


def _distinct_donors(tree: TreeArrays) -> Floats:
    return np.unique(tree.donors[~np.isnan(tree.donors)])


def _spread_donors(y: Floats) -> tuple[Floats, Integers]:
    """Return the donors of a leaf whose records have numbers y (n,), in order, missing ones last; and their weights."""
    values, weight = np.unique(y, return_counts=True)
    if len(values) <= MOST_DONORS:
        return values, weight
    ends = np.arange(MOST_DONORS + 1) * len(y) // MOST_DONORS
    values, of = np.unique(y[(ends[:-1] + ends[1:]) // 2], return_inverse=True)
    return values, np.bincount(of, np.diff(ends)).astype(np.int64)
