"""Trees that are grown from counts of the values at their nodes, which add up over blocks of records.

What a split needs of the records of a node is how many have each value of each predictor and, of these, how many are in
each class, or the sum of a number. Such tables are added up whatever the order of the blocks, and a level of the tree is
split from those of its nodes, as many at a time as ``MOST_CELLS`` allow. All sums are of whole numbers: a number is a
multiple of a power of two, of which 2^29 reach from the middle of its range to either end. So the tree is the same for
any blocks.

Splits are those of ``trees.fit_classification_tree`` and ``trees.fit_regression_tree``. Of equally good splits the first
one of the first predictor is taken, also where the target is a number: scikit-learn takes one by its seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from .class_trees import (
    MAX_DEPTH,
    MIN_RELATIVE_GAIN,
    BestSplits,
    ClassTree,
    CodedPredictor,
    GrowthRules,
    SplittableNodes,
    TreeLevel,
    collapse_nodes,
    find_best_splits,
    level_of_leaves,
    may_be_split,
    misclassified_weight,
    separate_trees,
    split_nodes,
    splits_to_keep,
)
from .trees import splits_worth_cost

MOST_CELLS = 1 << 23
"""Whole numbers of the tables of a pass, unless one node has more."""
_BITS = 29
_HALF = 15
"""Bits of the lower half of a number, so that sums of squares of 2^32 records have 64 bits."""
Tables = Mapping[str, NDArray[Any]]
"""Tables of some nodes: by the place of a predictor (nodes, values, width), and ``nodes`` (nodes, k)."""


class Criterion(Protocol):
    """What of a target is counted, and how nodes are split by it.

    width: whole numbers of a cell; the first ones are those of a node, ``TreeLevel.counts``
    """

    @property
    def width(self) -> int: ...

    def count_cells(self, cell: Integers, cells: int, y: Floats) -> Integers:
        """Return the sums of records y (n,) in cells (n,), (cells, width)."""

    def describe_nodes(self, slot: Integers, nodes: int, y: Floats) -> Integers:
        """Return further sums of the records of each node, (nodes, k)."""

    def may_be_split(self, counts: Integers) -> Booleans:
        """Return which nodes (A, width) may be split, (A,)."""

    def best_splits(self, tables: Sequence[Integers], counts: Integers, nodes: Integers) -> BestSplits:
        """Return the best split of each of A nodes; ``left_counts`` are (width, A)."""

    def least_gain(self, largest: float) -> float:
        """Return above which gain a node is split, given the largest one so far."""

    def prune(self, tree: ClassTree) -> ClassTree:
        """Return the tree without splits that save too little."""


@dataclass(frozen=True, eq=False)
class ClassCriterion:
    """Classes, which are codes from 0.

    rules: how the tree is grown
    cp: share of the errors of the root that a split must save
    root: records of each class, (C,)
    pruned: whether splits are removed that save too little
    """

    rules: GrowthRules
    cp: float
    root: Integers
    pruned: bool

    @property
    def width(self) -> int:
        return len(self.root)

    @property
    def _alpha(self) -> Floats:
        return self.cp * misclassified_weight(self.root[:, None] * self.rules.class_weights)

    def count_cells(self, cell: Integers, cells: int, y: Floats) -> Integers:
        key = cell * self.width + y.astype(np.int64)
        return np.bincount(key, minlength=cells * self.width).reshape(cells, self.width)

    def describe_nodes(self, slot: Integers, nodes: int, y: Floats) -> Integers:
        return np.zeros((nodes, 0), dtype=np.int64)

    def may_be_split(self, counts: Integers) -> Booleans:
        return may_be_split(counts, self._alpha, self.rules)

    def best_splits(self, tables: Sequence[Integers], counts: Integers, nodes: Integers) -> BestSplits:
        predictors = []
        padding = self.rules.padded_classes - self.width
        for table, size, plain in zip(tables, self.rules.sizes, self.rules.is_unordered, strict=True):
            # Two classes are one number, as where the records are at hand.
            padded = np.pad(table, ((0, 0), (0, 0), (0, padding))).astype(np.int32)
            none = np.empty(0, dtype=np.int32)
            predictors.append(
                CodedPredictor(
                    none, size, self.rules.padded_classes, bool(plain), np.ascontiguousarray(padded).view(np.int64)
                )
            )
        none_there = np.empty(0, dtype=np.int64)
        splittable = SplittableNodes(none_there, counts.T.astype(np.float64), self.rules.class_weights)
        return find_best_splits(predictors, splittable, self.rules)

    def least_gain(self, largest: float) -> float:
        return MIN_RELATIVE_GAIN * largest

    def prune(self, tree: ClassTree) -> ClassTree:
        if not self.pruned:
            return tree
        weights = self.rules.class_weights
        errors = misclassified_weight(tree.counts.T * weights)
        return collapse_nodes(tree, ~splits_to_keep(tree, errors, weights, float(self._alpha[0])))


class NumberScale(NamedTuple):
    """Whole numbers in place of numbers: (y / step - middle), rounded.

    step: a power of two
    middle: the middle of the range, in steps
    """

    step: float
    middle: float

    @classmethod
    def from_range(cls, low: float, high: float) -> Self:
        """Return the scale of numbers within a range."""
        half = high / 2 - low / 2
        step = math.ldexp(1.0, max(math.frexp(half)[1] - _BITS, -1000)) if half > 0 else 1.0
        return cls(step, float(np.rint(low / step / 2 + high / step / 2)))

    def to_whole(self, y: Floats) -> Integers:
        """Return numbers (n,) that are not missing as whole ones."""
        return np.rint(y / self.step - self.middle).astype(np.int64)


def sum_products(whole: Integers, slot: Integers, nodes: int) -> Integers:
    """Return the sums of the products of the upper and lower halves of whole numbers (n,) at nodes (n,), (nodes, 3)."""
    upper, lower = np.divmod(whole, 1 << _HALF)
    products = (upper * upper, upper * lower, lower * lower)
    return np.column_stack([np.bincount(slot, one, nodes).astype(np.int64) for one in products])


def add_products(upper: int, mixed: int, lower: int) -> int:
    """Return the sum of squares that sums of products are of, which may need more than 64 bits."""
    return (upper << 2 * _HALF) + (mixed << _HALF + 1) + lower


@dataclass(frozen=True, eq=False)
class NumberSums:
    """Sums of numbers over all records.

    records, missing: records, and those without a number
    total, squares: of the numbers as whole ones
    """

    records: int
    missing: int
    total: int
    squares: int

    @property
    def mean(self) -> float:
        """Return the mean of the present numbers."""
        return self.total / max(self.records - self.missing, 1)

    @property
    def variances(self) -> tuple[float, float]:
        """Return the variances of the numbers, missing ones at the mean, and of whether they are missing."""
        present, share = self.records - self.missing, self.missing / self.records
        return (present * self.squares - self.total**2) / max(present, 1) / self.records, share * (1 - share)

    def standard_means(self, counts: Integers) -> Floats:
        """Return the means of groups (k, 3) in standard deviations from the mean: (k, 1), or (k, 2) with missing ones."""
        records, sums, missing = counts.T.astype(np.float64)
        centred = (sums - self.mean * (records - missing), missing - self.missing / self.records * records)
        some = [one / math.sqrt(of) for one, of in zip(centred, self.variances, strict=True) if of > 0]
        return np.asarray(np.column_stack([np.zeros((len(counts), 0)), *some]) / np.maximum(records, 1)[:, None])


@dataclass(frozen=True, eq=False)
class NumberCriterion:
    """Numbers, of which some may be missing; a cell has the records, the sum of the numbers, and the missing ones.

    rules: how the tree is grown
    cp: share of the root's squared error that a split must save
    scale: whole numbers in place of the numbers
    root: sums over all records
    """

    rules: GrowthRules
    cp: float
    scale: NumberScale
    root: NumberSums
    width: int = 3

    def count_cells(self, cell: Integers, cells: int, y: Floats) -> Integers:
        missing = np.isnan(y)
        whole = self.scale.to_whole(np.where(missing, self.scale.middle * self.scale.step, y))
        whole[missing] = 0
        columns = (None, whole, missing)
        # Sums over a block are whole numbers below 2^53.
        return np.column_stack([np.bincount(cell, one, cells).astype(np.int64) for one in columns])

    def describe_nodes(self, slot: Integers, nodes: int, y: Floats) -> Integers:
        """Return the sums of the products of the upper and lower halves of the numbers, (nodes, 3)."""
        present = ~np.isnan(y)
        return sum_products(self.scale.to_whole(y[present]), slot[present], nodes)

    def may_be_split(self, counts: Integers) -> Booleans:
        return np.asarray(counts[:, 0] >= max(3 * self.rules.minbucket, 2))

    def best_splits(self, tables: Sequence[Integers], counts: Integers, nodes: Integers) -> BestSplits:
        shape = len(tables), len(counts)
        gain, cut = np.full(shape, -np.inf), np.zeros(shape, dtype=np.int64)
        left: NDArray[Any] = np.zeros((self.width, *shape), dtype=np.int64)
        whole = self._explained_error(counts)
        for j, table in enumerate(tables):
            upto = np.cumsum(table, axis=1)
            there = table[:, :, 0] > 0
            allowed = there & (upto[:, :, 0] >= self.rules.minbucket)
            allowed &= counts[:, None, 0] - upto[:, :, 0] >= self.rules.minbucket
            node, value = np.nonzero(allowed)
            if not len(node):
                continue
            before = upto[node, value]
            own = self._explained_error(before) + self._explained_error(counts[node] - before) - whole[node]
            gains = np.full(there.shape, -np.inf)
            gains[node, value] = np.maximum(own, 0.0)
            best = gains.argmax(axis=1)
            gain[j] = gains[np.arange(len(best)), best]
            left[:, j] = upto[np.arange(len(best)), best].T
            cut[j] = _middle_cuts(there, best)
        gain[:, self._have_one_value(counts, nodes)] = -np.inf
        feature, each = gain.argmax(axis=0), np.arange(len(counts))
        members = np.zeros((len(counts), 1), dtype=np.bool_)
        return BestSplits(gain[feature, each], feature, cut[feature, each], members, left[:, feature, each])

    def _explained_error(self, counts: Integers) -> Floats:
        """Return by how much of the root's squared error the means of groups (k, width) are from the root's mean, (k,)."""
        means = self.root.standard_means(counts)
        squares = (means * means).sum(axis=1) / max(means.shape[1], 1)
        return np.asarray(squares * counts[:, 0] / self.root.records)

    def _have_one_value(self, counts: Integers, nodes: Integers) -> Booleans:
        """Return which nodes have one number, or none, in all of their records, (A,)."""
        found = []
        for (records, total, missing), (upper, mixed, lower) in zip(counts.tolist(), nodes.tolist(), strict=True):
            squares = add_products(upper, mixed, lower)
            found.append(missing == records or (not missing and records * squares == total * total))
        return np.array(found, dtype=np.bool_)

    def least_gain(self, largest: float) -> float:
        return -np.inf

    def prune(self, tree: ClassTree) -> ClassTree:
        # The squared error of a node is that of its records less what its mean explains; the former is that of its
        # children together, so that it can be left out.
        error = -self._explained_error(tree.counts)
        split = tree.left != np.arange(len(tree.left))
        return collapse_nodes(tree, ~splits_worth_cost(tree, split, error, self.cp))


def _middle_cuts(there: Booleans, before: Integers) -> Integers:
    """Return the largest code that goes left if nodes are cut in the middle between a code, (A,), and the next one there.

    ``there`` (A, size) marks codes that the node's records have.
    """
    later = there & (np.arange(there.shape[1]) > before[:, None])
    return np.asarray((before + later.argmax(axis=1)) // 2)


class _CountedSplits(NamedTuple):
    """Best splits of nodes of a level, and which levels of the predictor of each their records have."""

    best: BestSplits
    seen: Booleans


@dataclass(frozen=True, eq=False)
class GrowingTree:
    """A tree of which some levels are grown.

    criterion: what is counted
    sizes: number of values of each predictor, (P,)
    depths: levels so far
    at: nodes of the last level that may be split, (A,)
    counted: what is known of the first ones of these
    largest: the largest gain of the levels before
    """

    criterion: Criterion
    sizes: tuple[int, ...]
    depths: tuple[TreeLevel, ...]
    at: Integers
    counted: tuple[_CountedSplits, ...] = ()
    largest: float = 0.0

    @classmethod
    def from_root(cls, criterion: Criterion, rules: GrowthRules, root: Sequence[int]) -> GrowingTree:
        """Return a tree that is its root, with these counts (width,)."""
        none = np.zeros(1, dtype=np.int64)
        level = level_of_leaves(0, none, none, np.array([root]), rules.most_unordered_levels)
        at = np.flatnonzero(criterion.may_be_split(level.counts)) if rules.sizes else np.empty(0, np.int64)
        return cls(criterion, tuple(rules.sizes), (level,), at)

    @property
    def is_grown(self) -> bool:
        return not len(self.at)

    @property
    def _next_nodes(self) -> Integers:
        """Return the nodes that the next pass counts."""
        done = sum(len(one.seen) for one in self.counted)
        cells = max(1, sum(self.sizes) * self.criterion.width)
        return self.at[done : done + max(1, MOST_CELLS // cells)]

    def count_block(self, codes: Integers, y: Floats) -> dict[str, NDArray[Any]]:
        """Return the tables of the nodes of the next pass, of records with these codes (n, P) and targets (n,)."""
        level, now = self.depths[-1], self._next_nodes
        place = np.full(level.first + len(level.counts), -1)
        place[level.first + now] = np.arange(len(now))
        slot = place[walk_nodes(self._split_arrays(), codes)]
        some = np.flatnonzero(slot >= 0)
        slot, y = slot[some], y[some]
        found = {
            str(j): self.criterion.count_cells(slot * size + codes[some, j], len(now) * size, y)
            for j, size in enumerate(self.sizes)
        }
        return {**found, "nodes": self.criterion.describe_nodes(slot, len(now), y)}

    def _split_arrays(self) -> tuple[NDArray[Any], ...]:
        """Return feature, cut, levels that go left, left and right child of all nodes, by number."""
        parts = ("feature", "cut", "members", "left", "right")
        return tuple(np.concatenate([getattr(level, part) for level in self.depths]) for part in parts)

    def with_tables(self, tables: Tables) -> GrowingTree:
        """Return the tree after the pass that counted these tables."""
        now, level = self._next_nodes, self.depths[-1]
        own: list[NDArray[Any]] = [
            tables[str(j)].reshape(len(now), size, self.criterion.width) for j, size in enumerate(self.sizes)
        ]
        best = self.criterion.best_splits(own, level.counts[now], tables["nodes"])
        widest = level.members.shape[1]
        seen = np.zeros((len(now), widest), dtype=np.bool_)
        for j, size in enumerate(self.sizes):
            if size <= widest:
                chosen = np.flatnonzero(best.feature == j)
                seen[chosen, :size] = np.any(own[j], axis=2)[chosen]
        counted = (*self.counted, _CountedSplits(best, seen))
        if sum(len(one.seen) for one in counted) < len(self.at):
            return replace(self, counted=counted)
        return self._with_level(
            *(np.concatenate([one.seen for one in counted]), _join_splits([one.best for one in counted]))
        )

    def _with_level(self, seen: Booleans, found: BestSplits) -> GrowingTree:
        """Return the tree with the children of the last level."""
        last = self.depths[-1]
        # A pass may be merged again, so that what is known of it stays as it is.
        copies: Any = map(np.copy, last[1:])
        level = TreeLevel(last.first, *copies)
        largest = max(self.largest, float(found.gain.max(initial=0.0)))
        split = np.flatnonzero(found.gain > self.criterion.least_gain(largest))
        by_set = np.asarray(found.left_levels.any(axis=1))
        # A level that no record of the node has goes where most of its records go.
        mostly = 2 * found.left_counts.sum(axis=0) > level.counts[self.at].sum(axis=1)
        level.members[self.at] = (found.left_levels | ~seen & mostly[:, None]) & by_set[:, None]
        depths = (*self.depths[:-1], level, split_nodes(level, self.at, found, split, level.members.shape[1]))
        at = np.empty(0, dtype=np.int64)
        if len(depths) <= MAX_DEPTH:
            at = np.flatnonzero(self.criterion.may_be_split(depths[-1].counts))
        return GrowingTree(self.criterion, self.sizes, depths, at, largest=largest)

    def finish(self) -> ClassTree:
        """Return the pruned tree, without the leaves of records."""
        (tree,) = separate_trees(self.depths, np.empty((1, 0), dtype=np.int64), 1)
        return self.criterion.prune(tree)


def _join_splits(parts: Sequence[BestSplits]) -> BestSplits:
    first, *_ = parts
    if len(parts) == 1:
        return first
    gain, feature, cut, members = (np.concatenate([one[i] for one in parts]) for i in range(len(first) - 1))
    return BestSplits(gain, feature, cut, members, np.concatenate([one.left_counts for one in parts], axis=1))


def walk_nodes(splits: Sequence[NDArray[Any]], codes: Integers) -> Integers:
    """Return the node that each record with codes (n, P) comes to, (n,).

    splits: feature, cut, levels that go left, left and right child of each node; a leaf leads to itself
    """
    feature, cut, members, left, right = splits
    by_set, inner = np.asarray(members.any(axis=1)), left != np.arange(len(left))
    node = np.zeros(len(codes), dtype=np.int64)
    walking = np.arange(len(codes)) if inner[0] else np.empty(0, dtype=np.int64)
    while len(walking):
        at = node[walking]
        code = codes[walking, feature[at]]
        goes_left = code <= cut[at]
        sets = np.flatnonzero(by_set[at])
        goes_left[sets] = members[at[sets], code[sets]]
        node[walking] = np.where(goes_left, left[at], right[at])
        walking = walking[inner[node[walking]]]
    return node
