"""Classification and regression trees as arrays: grown, stored, and walked without what grew them.

Breiman, Friedman, Olshen & Stone (1984). Growth and pruning follow rpart (Therneau & Atkinson 2019): leaves
of at least ``minbucket`` records, no split of fewer than 3 ``minbucket``, depth at most 30, and no branch that saves less
than ``cp`` of what the root has for each of its splits: of squared error where the target is a number (grown by scikit-learn,
whose ``ccp_alpha`` is ``cp`` x root variance), of misclassified records where it is a class
(``sfumato.engine.trees.class_trees``). A split after which the leaves differ in their class shares but not in
their majority saves nothing and goes, as in rpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from ..data.blocks import row_blocks
from .class_trees import DEEPEST, ClassTree, class_trees


@dataclass(frozen=True)
class Trees:
    """T trees with V nodes in all. A record at node v goes to ``left[v]`` if x[feature[v]] <= threshold[v].

    Where ``chosen[v]`` is not -1 the feature is a level without an order, and a record goes left if ``sets[chosen[v], level]``.
    A leaf leads to itself. The target's values in a leaf are ``donors[start[v] : start[v] + count[v]]``, in the order of the
    records that it grew on until ``with_sorted_donors``; other nodes have a count of 0. ``root`` is (T,), ``donors`` (T n,), ``sets`` (S, L), the others (V,).
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
        leaf = np.repeat(np.arange(len(self.count)), self.count)
        return replace(self, donors=self.donors[np.lexsort((self.donors, leaf))])

    def draw(self, tree: int, x: Floats, rng: np.random.Generator) -> Floats:
        """For each record of ``x`` (n, P) one of its leaf's donors at random, (n,)."""
        leaf = self.leaves(tree, x)
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
    return Trees(*(np.concatenate([getattr(t, field.name) for t in shifted]) for field in fields(Trees)))


def grow(x: Floats, y: Floats, *, minbucket: int, cp: float, seed: int) -> Trees:
    """One tree for numbers ``y`` (n,) by ``x`` (n, P); ``seed`` decides between equal splits, and nothing else.

    Numbers may be missing (NaN): such records donate NaN, and the tree is that of two responses, the number and whether it
    is missing, whose shares of unexplained variance are averaged (Segal 1992; De'ath 2002). The tree sees ranks, so that it
    does not depend on units and scikit-learn's single precision loses nothing; a threshold is the middle between two
    neighbouring values of ``x``.
    """
    if _cannot_split(x, y, minbucket):
        return _stump(y)
    values, ranks = [], np.empty(x.shape, np.float32)
    for j, column in enumerate(x.T):
        points, ranks[:, j] = np.unique(column, return_inverse=True)
        values.append(points)
    tree = _fit(ranks, y, minbucket, cp, seed)
    here, inner = np.arange(tree.node_count), tree.children_left >= 0
    feature = np.where(inner, tree.feature, 0)
    return Trees(
        np.zeros(1, np.int64),
        feature,
        _thresholds(feature, np.floor(tree.threshold).astype(np.int64), inner, values),
        np.where(inner, tree.children_left, here),
        np.where(inner, tree.children_right, here),
        *_donors(tree.apply(ranks), y, tree.node_count),
        np.full(tree.node_count, -1),
        np.zeros((0, 0), np.bool_),
    )


def grow_classes(x: Floats, y: Floats, *, levels: Sequence[int], minbucket: int, cp: float) -> Trees:
    """One tree for codes of classes ``y`` (n,) by ``x`` (n, P).

    Columns that hold codes of levels without an order have their number in ``levels`` (P,), others 0.
    """
    return grow_classes_together([x], [y], levels=levels, minbucket=minbucket, cp=cp)[0]


def grow_classes_together(
    x: Sequence[Floats], y: Sequence[Floats], *, levels: Sequence[int], minbucket: int, cp: float
) -> list[Trees]:
    """The trees that ``grow_classes`` grows of each of several tables, those of as many records and classes all together."""
    found: list[Trees | None] = [
        _stump(own) if _cannot_split(of, own, minbucket) else None for of, own in zip(x, y, strict=True)
    ]
    groups: dict[tuple[int, int], list[int]] = {}
    values, codes, classes = {}, {}, {}
    for k in (k for k, tree in enumerate(found) if tree is None):
        values[k] = [
            np.arange(float(count)) if count else np.unique(c) for c, count in zip(x[k].T, levels, strict=True)
        ]
        codes[k] = np.column_stack([np.searchsorted(points, c) for points, c in zip(values[k], x[k].T, strict=True)])
        classes[k] = np.unique(y[k], return_inverse=True)[1]
        groups.setdefault((len(y[k]), int(classes[k].max())), []).append(k)
    for some in groups.values():
        grown = class_trees(
            [codes[k] for k in some], [classes[k] for k in some], levels=levels, minbucket=minbucket, cp=cp
        )
        for k, tree in zip(some, grown, strict=True):
            found[k] = _of_classes(tree, y[k], values[k], levels)
    return [tree for tree in found if tree is not None]


def _of_classes(tree: ClassTree, y: Floats, values: Sequence[Floats], levels: Sequence[int]) -> Trees:
    inner = tree.left != np.arange(len(tree.left))
    by_set = inner & (np.asarray(levels) > 0)[tree.feature]
    return Trees(
        np.zeros(1, np.int64),
        tree.feature,
        _thresholds(tree.feature, tree.cut, inner & ~by_set, values),
        tree.left,
        tree.right,
        *_donors(tree.leaf, y, len(tree.left)),
        np.where(by_set, np.cumsum(by_set) - 1, -1),
        tree.members[by_set],
    )


def _cannot_split(x: Floats, y: Floats, minbucket: int) -> bool:
    return not x.shape[1] or len(y) < max(3 * minbucket, 2) or len(np.unique(y)) < 2


def _donors(leaf: Integers, y: Floats, nodes: int) -> tuple[Integers, Integers, Floats]:
    """Where the donors of each node start, how many they are, (nodes,), and the donors (n,) by leaf (n,)."""
    count = np.bincount(leaf, minlength=nodes)
    return np.cumsum(count) - count, count, y[np.argsort(leaf, kind="stable")]


def _stump(y: Floats) -> Trees:
    zero, no_set = np.zeros(1, np.int64), np.zeros((0, 0), np.bool_)
    return Trees(zero, zero, np.zeros(1), zero, zero, zero, np.array([len(y)]), y.copy(), zero - 1, no_set)


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


def _standardised(y: Floats) -> Floats:
    """Numbers (n,) with mean 0 and variance 1; with missing ones (n, 1 or 2): those, missing at 0, and who is missing."""
    missing = np.isnan(y)
    if missing.any():
        filled = np.where(missing, y[~missing].mean(), y)
        return np.column_stack([_standardised(column) for column in (filled, missing * 1.0) if np.ptp(column) > 0])
    scaled = y / np.abs(y).max()
    return np.asarray((scaled - scaled.mean()) / scaled.std())


def _thresholds(feature: Integers, below: Integers, split: NDArray[np.bool_], values: Sequence[Floats]) -> Floats:
    """Thresholds (V,) between the values of ranks ``below`` and the next, where there is a ``split``; 0 elsewhere."""
    thresholds = np.zeros(len(feature))
    for j, points in enumerate(values):
        of_feature = split & (feature == j)
        low, high = points[below[of_feature]], points[below[of_feature] + 1]
        middle = low / 2 + high / 2
        thresholds[of_feature] = np.where((low <= middle) & (middle < high), middle, low)
    return thresholds


def level_order(codes: Integers, levels: int, y: Floats) -> Floats:
    """The place of each level, (levels,), in the order in which splits between neighbours suffice.

    That is the order of the means of ``y`` (n,): the best of all 2^(L-1) - 1 splits of the levels is between neighbours
    (Fisher 1958; Breiman et al. 1984). For numbers of which some are missing (NaN) it is the order along the first
    principal component of the two responses of ``grow``. The order is found once, at the root (Wright & König 2019). A level
    without records stands at the overall mean.
    """
    rows = np.bincount(codes, minlength=levels)
    seen = rows > 0
    target = _level_response(y)
    centred = target - target.mean(axis=0)
    sums = np.column_stack([np.bincount(codes, column, levels) for column in centred.T])
    means = np.where(seen[:, None], sums / np.maximum(rows, 1)[:, None], 0.0)
    axis = np.linalg.eigh(means.T @ (rows[:, None] * means))[1][:, -1]
    axis = axis * np.sign(axis[np.abs(axis).argmax()])
    places = np.empty(levels)
    places[np.argsort(means @ axis, kind="stable")] = np.arange(levels)
    return places


def _level_response(y: Floats) -> Floats:
    """What levels are ordered by, (n, q)."""
    if np.isnan(y).any():
        return _standardised(y).reshape(len(y), -1) if len(np.unique(y)) > 1 else np.zeros((len(y), 1))
    return np.asarray((y / (np.abs(y).max() or 1.0))[:, None])
