"""Classification and regression trees as arrays: grown by scikit-learn, stored and walked without it.

Breiman, Friedman, Olshen & Stone (1984). Growth and pruning follow rpart (Therneau & Atkinson 2019): leaves
of at least ``minbucket`` records, no split of fewer than 3 ``minbucket``, depth at most 30, and no branch that lowers
the impurity by less than ``cp`` times the root's for each of its splits, which is scikit-learn's ``ccp_alpha`` = ``cp``
x root impurity. rpart prunes classification trees by errors; here by Gini impurity, as they are grown: a split after
which the leaves differ in their probabilities, though not in their majority, is kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Trees", "grow", "joined", "level_order"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DEEPEST = 30


@dataclass(frozen=True)
class Trees:
    """T trees with V nodes in all. A record at node v goes to ``left[v]`` if x[feature[v]] <= threshold[v].

    A leaf leads to itself. The target's values in a leaf are ``donors[start[v] : start[v] + count[v]]``; other nodes
    have a count of 0. ``root`` is (T,), ``donors`` (T n,), the others (V,).
    """

    root: Integers
    feature: Integers
    threshold: Floats
    left: Integers
    right: Integers
    start: Integers
    count: Integers
    donors: Floats

    def leaves(self, tree: int, x: Floats) -> Integers:
        """The leaf of ``tree`` that each record of ``x`` (n, P) falls in, (n,)."""
        node = np.full(len(x), self.root[tree])
        walking = np.flatnonzero(self.left[node] != node)
        while len(walking):
            at = node[walking]
            goes_left = x[walking, self.feature[at]] <= self.threshold[at]
            node[walking] = np.where(goes_left, self.left[at], self.right[at])
            walking = walking[self.count[node[walking]] == 0]
        return node

    def draw(self, tree: int, x: Floats, rng: np.random.Generator) -> Floats:
        """For each record of ``x`` (n, P) one of its leaf's donors at random, (n,)."""
        leaf = self.leaves(tree, x)
        return np.asarray(self.donors[self.start[leaf] + rng.integers(self.count[leaf])])


def joined(trees: Sequence[Trees]) -> Trees:
    """The same trees in one value, in this order."""
    nodes = np.cumsum([0] + [len(tree.left) for tree in trees])
    donors = np.cumsum([0] + [len(tree.donors) for tree in trees])
    shifted = [
        (t.root + v, t.feature, t.threshold, t.left + v, t.right + v, t.start + d, t.count, t.donors)
        for t, v, d in zip(trees, nodes, donors, strict=False)
    ]
    return Trees(*(np.concatenate(column) for column in zip(*shifted, strict=True)))


def grow(x: Floats, y: Floats, *, classes: bool, minbucket: int, cp: float, seed: int) -> Trees:
    """One tree for ``y`` (n,), codes of classes or numbers, by ``x`` (n, P); ``seed`` decides between equal splits.

    Numbers may be missing (NaN): such records donate NaN, and the tree is that of two responses, the number and whether it
    is missing, whose shares of unexplained variance are averaged (Segal 1992; De'ath 2002). The tree sees ranks, so that it does not depend on units and scikit-learn's single precision loses nothing; a
    threshold is the middle between two neighbouring values of ``x``.
    """
    if not x.shape[1] or len(y) < max(3 * minbucket, 2) or len(np.unique(y)) < 2:
        return _stump(y)
    values, places = zip(*(np.unique(column, return_inverse=True) for column in x.T), strict=True)
    ranks = np.column_stack(places).astype(np.float32)
    tree = _fit(ranks, y, classes, minbucket, cp, seed)
    here, inner = np.arange(tree.node_count), tree.children_left >= 0
    leaf = tree.apply(ranks)
    count = np.bincount(leaf, minlength=tree.node_count)
    return Trees(
        np.zeros(1, np.int64),
        np.where(inner, tree.feature, 0),
        _thresholds(tree, values),
        np.where(inner, tree.children_left, here),
        np.where(inner, tree.children_right, here),
        np.cumsum(count) - count,
        count,
        y[np.argsort(leaf, kind="stable")],
    )


def _stump(y: Floats) -> Trees:
    zero = np.zeros(1, np.int64)
    return Trees(zero, zero, np.zeros(1), zero, zero, zero, np.array([len(y)]), y.copy())


def _fit(ranks: NDArray[np.float32], y: Floats, classes: bool, minbucket: int, cp: float, seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    shares = np.unique(y, return_counts=True)[1] / len(y)
    model = (DecisionTreeClassifier if classes else DecisionTreeRegressor)(
        min_samples_leaf=minbucket,
        min_samples_split=max(3 * minbucket, 2),
        max_depth=DEEPEST,
        ccp_alpha=cp * (1 - shares @ shares if classes else 1.0),
        random_state=seed,
    )
    response = y.astype(np.int64) if classes else _standardised(y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        return model.fit(ranks, response).tree_


def _standardised(y: Floats) -> Floats:
    """Numbers (n,) with mean 0 and variance 1; with missing ones (n, 1 or 2): those, missing at 0, and who is missing."""
    missing = np.isnan(y)
    if missing.any():
        filled = np.where(missing, y[~missing].mean(), y)
        return np.column_stack([_standardised(column) for column in (filled, missing * 1.0) if np.ptp(column) > 0])
    scaled = y / np.abs(y).max()
    return np.asarray((scaled - scaled.mean()) / scaled.std())


def _thresholds(tree: Any, values: Sequence[Floats]) -> Floats:
    """The thresholds (V,) that scikit-learn found between ranks, as thresholds between values; 0 in leaves."""
    thresholds = np.zeros(tree.node_count)
    for j, points in enumerate(values):
        split = (tree.children_left >= 0) & (tree.feature == j)
        below = np.floor(tree.threshold[split]).astype(np.int64)
        low, high = points[below], points[below + 1]
        middle = low / 2 + high / 2
        thresholds[split] = np.where((low <= middle) & (middle < high), middle, low)
    return thresholds


def level_order(codes: Integers, levels: int, y: Floats, classes: bool) -> Floats:
    """The place of each level, (levels,), in the order in which splits between neighbours suffice.

    For a numeric ``y`` (n,) the order of its means: then the best of all 2^(L-1) - 1 splits of the levels is between
    neighbours (Fisher 1958; Breiman et al. 1984). For classes the order along the first principal component of
    their probabilities (Coppersmith, Hong & Hosking 1999), which for two classes is that of the probability; for numbers of
    which some are missing (NaN) along that of the two responses of ``grow``. The order is found once, at the root (Wright &
    König 2019). A level without records stands at the overall mean.
    """
    rows = np.bincount(codes, minlength=levels)
    seen = rows > 0
    target = _level_response(y, classes)
    centred = target - target.mean(axis=0)
    sums = np.column_stack([np.bincount(codes, column, levels) for column in centred.T])
    means = np.where(seen[:, None], sums / np.maximum(rows, 1)[:, None], 0.0)
    axis = np.linalg.eigh(means.T @ (rows[:, None] * means))[1][:, -1]
    axis = axis * np.sign(axis[np.abs(axis).argmax()])
    places = np.empty(levels)
    places[np.argsort(means @ axis, kind="stable")] = np.arange(levels)
    return places


def _level_response(y: Floats, classes: bool) -> Floats:
    """What levels are ordered by, (n, q)."""
    if classes:
        return np.equal(y[:, None], np.unique(y)) * 1.0
    if np.isnan(y).any():
        return _standardised(y).reshape(len(y), -1) if len(np.unique(y)) > 1 else np.zeros((len(y), 1))
    return np.asarray((y / (np.abs(y).max() or 1.0))[:, None])
