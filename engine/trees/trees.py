"""Classification and regression trees as arrays: grown, stored, and walked without what grew them.

Breiman, Friedman, Olshen & Stone (1984). Growth and pruning follow rpart (Therneau & Atkinson 2019): leaves
of at least ``minbucket`` records, no split of fewer than 3 ``minbucket``, depth at most 30, and no branch that saves less
than ``cp`` of what the root has for each of its splits: of squared error where the target is a number (grown by scikit-learn,
whose ``ccp_alpha`` is ``cp`` x root variance), of misclassified records where it is a class
(``sfumato.engine.trees.class_trees``). A split after which the leaves differ in their class shares but not in
their majority saves nothing and goes, as in rpart.

Records may weigh less than 1. Impurity, errors and ``minbucket`` then count what they weigh: a tree of records at weights is that of so many
records. A leaf of five records' weight has five records or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.blocks import row_blocks
from .class_trees import DEEPEST, ClassTree, class_trees, without

FINEST = 15
"""Bits of a weight behind the point: fewer where records are many, so that the sum of all is exact."""


@dataclass(frozen=True)
class Trees:
    """T trees with V nodes in all. A record at node v goes to ``left[v]`` if x[feature[v]] <= threshold[v].

    Where ``chosen[v]`` is not -1 the feature is a level without an order, and a record goes left if ``sets[chosen[v], level]``.
    A leaf leads to itself. The target's values in a leaf are ``donors[start[v] : start[v] + count[v]]``, in the order of the
    records that it grew on until ``with_sorted_donors``; other nodes have a count of 0. ``root`` is (T,), ``donors`` (T n,), ``sets`` (S, L), the others (V,).

    Of records at weights the donors are the different values of each leaf, sorted, and ``weight`` (the same shape) is what the records that have one weigh;
    None where all records weigh 1.
    """

    root: Integers
    feature: Integers
    threshold: Floats
    left: Integers
    right: Integers
    start: Integers
    count: Integers
    donors: Floats
    chosen: Integers
    sets: NDArray[np.bool_]
    weight: Floats | None = None

    @property
    def sizes(self) -> Floats:
        """What the records of each leaf weigh, (V,): how many they are where all weigh 1; 0 at other nodes."""
        if self.weight is None:
            return self.count.astype(np.float64)
        return np.asarray(np.bincount(self.leaf_of_donors, self.weight, len(self.count)), dtype=np.float64)

    @property
    def leaf_of_donors(self) -> Integers:
        """The leaf of each donor, (D,)."""
        return np.repeat(np.arange(len(self.count)), self.count)

    def leaves(self, tree: int, x: Floats) -> Integers:
        """The leaf of ``tree`` that each record of ``x`` (n, P) falls in, (n,)."""
        blocks = [self._leaves(tree, x[rows]) for rows in row_blocks(len(x), x.shape[1])]
        return np.concatenate([np.empty(0, np.int64), *blocks])

    def _leaves(self, tree: int, x: Floats) -> Integers:
        node = np.full(len(x), self.root[tree])
        walking = np.flatnonzero(self.left[node] != node)
        while len(walking):
            at = node[walking]
            value, chosen = x[walking, self.feature[at]], self.chosen[at]
            goes_left = value <= self.threshold[at]
            by_set = chosen >= 0
            goes_left[by_set] = self.sets[chosen[by_set], value[by_set].astype(np.int64)]
            node[walking] = np.where(goes_left, self.left[at], self.right[at])
            walking = walking[self.count[node[walking]] == 0]
        return node

    def with_sorted_donors(self) -> Trees:
        """The same trees with the donors of each leaf sorted by value, missing ones last.

        The place of a donor then says which of the leaf's values it is, and no more of whose: no draw can be traced to a
        record, even by who knows all its random numbers and the order of the file.
        """
        if self.weight is not None:
            return self
        return replace(self, donors=self.donors[np.lexsort((self.donors, self.leaf_of_donors))])

    def draw(self, tree: int, x: Floats, rng: np.random.Generator) -> Floats:
        """For each record of ``x`` (n, P) one of its leaf's donors at random, as probable as it weighs, (n,)."""
        leaf = self.leaves(tree, x)
        if self.weight is not None:
            upto = np.cumsum(self.weight)
            first = np.append(0.0, upto)[self.start[leaf]]
            place = np.searchsorted(upto, first + rng.random(len(x)) * self.sizes[leaf], side="right")
            return np.asarray(self.donors[np.minimum(place, (self.start + self.count - 1)[leaf])])
        return np.asarray(self.donors[self.start[leaf] + rng.integers(self.count[leaf])])


def joined(trees: Sequence[Trees]) -> Trees:
    """The same trees in one value, in this order."""
    nodes, donors, sets = (
        np.cumsum([0] + [len(part) for part in parts])
        for parts in ([t.left for t in trees], [t.donors for t in trees], [t.sets for t in trees])
    )
    widest = max(tree.sets.shape[1] for tree in trees)
    shifted = [
        Trees(
            t.root + v,
            t.feature,
            t.threshold,
            t.left + v,
            t.right + v,
            t.start + d,
            t.count,
            t.donors,
            np.where(t.chosen < 0, -1, t.chosen + s),
            np.pad(t.sets, ((0, 0), (0, widest - t.sets.shape[1]))),
        )
        for t, v, d, s in zip(trees, nodes, donors, sets, strict=False)
    ]
    weights = [t.weight for t in trees if t.weight is not None]
    parts = (np.concatenate([getattr(t, field.name) for t in shifted]) for field in fields(Trees)[:-1])
    return replace(Trees(*parts), weight=np.concatenate(weights) if weights else None)


def grow(x: Floats, y: Floats, *, minbucket: int, cp: float, seed: int, weights: Floats | None = None) -> Trees:
    """One tree for numbers ``y`` (n,) by ``x`` (n, P); ``seed`` decides between equal splits, and nothing else.

    ``weights`` (n,) are what records weigh, above 0 and at most 1; all 1 where there are none.

    Numbers may be missing (NaN): such records donate NaN, and the tree is that of two responses, the number and whether it
    is missing, whose shares of unexplained variance are averaged (Segal 1992; De'ath 2002). The tree sees ranks, so that it
    does not depend on units and scikit-learn's single precision loses nothing; a threshold is the middle between two
    neighbouring values of ``x``.
    """
    own = None if weights is None else _Weights.of(weights)
    if _cannot_split(x, y, minbucket, own):
        return _stump(y, own)
    values, ranks = [], np.empty(x.shape, np.float32)
    for j, column in enumerate(x.T):
        points, ranks[:, j] = np.unique(column, return_inverse=True)
        values.append(points)
    if own is not None:
        return _of_classes(_weighed_fit(ranks, y, minbucket, cp, seed, own), y, values, [0] * x.shape[1], own)
    tree = _fit(ranks, y, minbucket, cp, seed)
    here, inner = np.arange(tree.node_count), tree.children_left >= 0
    feature = np.where(inner, tree.feature, 0)
    return Trees(
        np.zeros(1, np.int64),
        feature,
        _thresholds(feature, np.floor(tree.threshold).astype(np.int64), inner, values),
        np.where(inner, tree.children_left, here),
        np.where(inner, tree.children_right, here),
        *_donors(tree.apply(ranks), y, tree.node_count)[:3],
        np.full(tree.node_count, -1),
        np.zeros((0, 0), np.bool_),
    )


def grow_classes(
    x: Floats, y: Floats, *, levels: Sequence[int], minbucket: int, cp: float, weights: Floats | None = None
) -> Trees:
    """One tree for codes of classes ``y`` (n,) by ``x`` (n, P).

    Columns that hold codes of levels without an order have their number in ``levels`` (P,), others 0. ``weights`` are those of ``grow``.
    """
    if weights is None:
        return grow_classes_together([x], [y], levels=levels, minbucket=minbucket, cp=cp)[0]
    own = _Weights.of(weights)
    if _cannot_split(x, y, minbucket, own):
        return _stump(y, own)
    coded = _Coded.of(x, y, levels)
    fewest = minbucket * own.whole
    (tree,) = class_trees(coded.codes, [coded.classes], levels=levels, minbucket=fewest, cp=cp, units=own.units)
    return _of_classes(tree, y, coded.values, levels, own)


def grow_classes_together(
    x: Sequence[Floats], y: Sequence[Floats], *, levels: Sequence[int], minbucket: int, cp: float
) -> list[Trees]:
    """The trees that ``grow_classes`` grows of each of several tables, those of as many records and classes all together."""
    found: list[Trees | None] = [
        _stump(own) if _cannot_split(of, own, minbucket) else None for of, own in zip(x, y, strict=True)
    ]
    groups: dict[tuple[int, int], list[int]] = {}
    coded = {k: _Coded.of(x[k], y[k], levels) for k, tree in enumerate(found) if tree is None}
    for k, one in coded.items():
        groups.setdefault((len(y[k]), int(one.classes.max())), []).append(k)
    for some in groups.values():
        grown = class_trees(
            [coded[k].codes for k in some],
            [coded[k].classes for k in some],
            levels=levels,
            minbucket=minbucket,
            cp=cp,
        )
        for k, tree in zip(some, grown, strict=True):
            found[k] = _of_classes(tree, y[k], coded[k].values, levels)
    return [tree for tree in found if tree is not None]


class _Coded(NamedTuple):
    """Predictors as codes (n, P) of the values of each, (P,), and classes from 0, (n,)."""

    codes: Integers
    values: list[Floats]
    classes: Integers

    @classmethod
    def of(cls, x: Floats, y: Floats, levels: Sequence[int]) -> _Coded:
        values = [np.arange(float(count)) if count else np.unique(c) for c, count in zip(x.T, levels, strict=True)]
        codes = np.column_stack([np.searchsorted(points, c) for points, c in zip(values, x.T, strict=True)])
        return cls(codes, values, np.unique(y, return_inverse=True)[1])


class _Weights(NamedTuple):
    """What records weigh in whole ``units`` (n,), of which a weight of 1 has so many as ``whole`` says: a power of two."""

    units: Integers
    whole: int

    @classmethod
    def of(cls, weights: Floats) -> _Weights:
        """Weights (n,) to the nearest of 2^-15 or a coarser power of two, none of them 0: fewer than 2^31 units in all."""
        whole = 1 << max(0, min(FINEST, 30 - len(weights).bit_length()))
        return cls(np.maximum(np.rint(weights * whole), 1).astype(np.int64), whole)

    @property
    def numbers(self) -> Floats:
        return np.asarray(self.units / self.whole)


def _of_classes(
    tree: ClassTree, y: Floats, values: Sequence[Floats], levels: Sequence[int], weights: _Weights | None = None
) -> Trees:
    inner = tree.left != np.arange(len(tree.left))
    by_set = inner & (np.asarray(levels) > 0)[tree.feature]
    start, count, donors, weight = _donors(tree.leaf, y, len(tree.left), weights)
    return Trees(
        np.zeros(1, np.int64),
        tree.feature,
        _thresholds(tree.feature, tree.cut, inner & ~by_set, values),
        tree.left,
        tree.right,
        start,
        count,
        donors,
        np.where(by_set, np.cumsum(by_set) - 1, -1),
        tree.members[by_set],
        weight,
    )


def _cannot_split(x: Floats, y: Floats, minbucket: int, weights: _Weights | None = None) -> bool:
    size = len(y) if weights is None else weights.units.sum() / weights.whole
    return not x.shape[1] or size < max(3 * minbucket, 2) or len(np.unique(y)) < 2


def _donors(
    leaf: Integers, y: Floats, nodes: int, weights: _Weights | None = None
) -> tuple[Integers, Integers, Floats, Floats | None]:
    """Where the donors of each node start, how many they are, (nodes,), the donors (D,) by leaf (n,), and what they weigh."""
    weight = None
    if weights is None:
        y = y[np.argsort(leaf, kind="stable")]
    else:
        order = np.lexsort((y, leaf))
        leaf, y, units = leaf[order], y[order], weights.units[order]
        same = (y[1:] == y[:-1]) | (np.isnan(y[1:]) & np.isnan(y[:-1]))
        starts = np.append(0, np.flatnonzero(~same | (leaf[1:] != leaf[:-1])) + 1)
        leaf, y, weight = leaf[starts], y[starts], np.add.reduceat(units, starts) / weights.whole
    count = np.bincount(leaf, minlength=nodes)
    return np.cumsum(count) - count, count, y, weight


def _stump(y: Floats, weights: _Weights | None = None) -> Trees:
    zero, no_set = np.zeros(1, np.int64), np.zeros((0, 0), np.bool_)
    start, count, donors, weight = _donors(np.zeros(len(y), np.int64), y, 1, weights)
    return Trees(zero, zero, np.zeros(1), zero, zero, start, count, donors, zero - 1, no_set, weight)


def _fit(ranks: NDArray[np.float32], y: Floats, minbucket: int, cp: float, seed: int) -> Any:
    from sklearn.tree import DecisionTreeRegressor

    model = DecisionTreeRegressor(
        min_samples_leaf=minbucket,
        min_samples_split=max(3 * minbucket, 2),
        max_depth=DEEPEST,
        ccp_alpha=cp,
        random_state=seed,
    )
    return model.fit(ranks, _standardised(y)).tree_


def _weighed_fit(
    ranks: NDArray[np.float32], y: Floats, minbucket: int, cp: float, seed: int, weights: _Weights
) -> ClassTree:
    """The same of records at weights. scikit-learn counts records where it asks whether a node may split, so nodes that weigh too little are made leaves,
    and the tree is pruned, afterwards.
    """
    from sklearn.tree import DecisionTreeRegressor

    fewest, all_units = minbucket * weights.whole, int(weights.units.sum())
    model = DecisionTreeRegressor(
        min_weight_fraction_leaf=(fewest - 0.5) / all_units, max_depth=DEEPEST, random_state=seed
    )
    response = _standardised(y, weights.numbers)
    tree = model.fit(ranks, response, sample_weight=weights.units.astype(np.float64)).tree_
    here, inner = np.arange(tree.node_count), tree.children_left >= 0
    grown = ClassTree(
        np.where(inner, tree.feature, 0),
        np.where(inner, np.floor(tree.threshold), 0).astype(np.int64),
        np.zeros((len(here), 0), np.bool_),
        np.where(inner, tree.children_left, here),
        np.where(inner, tree.children_right, here),
        np.zeros((len(here), 0), np.int64),
        tree.apply(ranks),
    )
    size = tree.weighted_n_node_samples
    split = inner & (size > 3 * fewest - 0.5)
    return without(grown, ~_worth_keeping(grown, split, tree.impurity * (size / all_units), cp))


def _worth_keeping(tree: ClassTree, split: NDArray[np.bool_], error: Floats, cp: float) -> NDArray[np.bool_]:
    """Which nodes stay split, (V,), of those that may be, where each leaf more must save ``cp`` of the error (V,), shares of the root's: the smallest of the trees
    that are best by error and leaves together (Breiman et al. 1984, theorem 3.10); all that may be where nothing needs to be saved.
    """
    if not cp:
        return split
    best, stays = error + cp, split.copy()
    for node in np.flatnonzero(split)[::-1]:
        branch = best[tree.left[node]] + best[tree.right[node]]
        stays[node] = branch < best[node]
        best[node] = min(branch, best[node])
    return stays


def _standardised(y: Floats, weights: Floats | None = None) -> Floats:
    """Numbers (n,) with mean 0 and variance 1; with missing ones (n, 1 or 2): those, missing at 0, and who is missing."""
    missing = np.isnan(y)
    if missing.any():
        own = None if weights is None else weights[~missing]
        filled = np.where(missing, np.average(y[~missing], weights=own), y)
        parts = (column for column in (filled, missing * 1.0) if np.ptp(column) > 0)
        return np.column_stack([_standardised(column, weights) for column in parts])
    scaled = y / np.abs(y).max()
    if weights is None:
        return np.asarray((scaled - scaled.mean()) / scaled.std())
    centred = scaled - np.average(scaled, weights=weights)
    return np.asarray(centred / np.sqrt(np.average(centred**2, weights=weights)))


def _thresholds(feature: Integers, below: Integers, split: NDArray[np.bool_], values: Sequence[Floats]) -> Floats:
    """Thresholds (V,) between the values of ranks ``below`` and the next, where there is a ``split``; 0 elsewhere."""
    thresholds = np.zeros(len(feature))
    for j, points in enumerate(values):
        of_feature = split & (feature == j)
        low, high = points[below[of_feature]], points[below[of_feature] + 1]
        middle = low / 2 + high / 2
        thresholds[of_feature] = np.where((low <= middle) & (middle < high), middle, low)
    return thresholds


def level_order(codes: Integers, levels: int, y: Floats, weights: Floats | None = None) -> Floats:
    """The place of each level, (levels,), in the order in which splits between neighbours suffice.

    That is the order of the means of ``y`` (n,): the best of all 2^(L-1) - 1 splits of the levels is between neighbours
    (Fisher 1958; Breiman et al. 1984). For numbers of which some are missing (NaN) it is the order along the first
    principal component of the two responses of ``grow``. The order is found once, at the root (Wright & König 2019). A level
    without records stands at the overall mean. ``weights`` (n,) are what records weigh, above 0.
    """
    rows = np.bincount(codes, weights, levels)
    seen = rows > 0
    target = _level_response(y, weights)
    centred = target - np.average(target, axis=0, weights=weights)
    of_each = 1.0 if weights is None else weights
    sums = np.column_stack([np.bincount(codes, column * of_each, levels) for column in centred.T])
    means = np.where(seen[:, None], sums / np.where(seen, rows, 1)[:, None], 0.0)
    axis = np.linalg.eigh(means.T @ (rows[:, None] * means))[1][:, -1]
    axis = axis * np.sign(axis[np.abs(axis).argmax()])
    places = np.empty(levels)
    places[np.argsort(means @ axis, kind="stable")] = np.arange(levels)
    return places


def _level_response(y: Floats, weights: Floats | None) -> Floats:
    """What levels are ordered by, (n, q)."""
    if np.isnan(y).any():
        return _standardised(y, weights).reshape(len(y), -1) if len(np.unique(y)) > 1 else np.zeros((len(y), 1))
    return np.asarray((y / (np.abs(y).max() or 1.0))[:, None])
