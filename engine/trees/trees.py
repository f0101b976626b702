"""Classification and regression trees as arrays: grown, stored, and walked without the library that grew them.

Breiman, Friedman, Olshen & Stone (1984). Growth and pruning follow rpart (Therneau & Atkinson 2019): leaves of at least
``minbucket`` records, no split of fewer than 3 ``minbucket``, depth at most 30, and no branch that saves less than
``cp`` of the root's impurity for each of its splits: of squared error where the target is a number (grown by
scikit-learn, whose ``ccp_alpha`` is ``cp`` x root variance), of misclassified records where it is a class
(``sfumato.engine.trees.class_trees``). A split after which the leaves differ in their class shares but not in their
majority saves nothing and is removed, as in rpart.

Records may have weights below 1. Impurity, errors and ``minbucket`` then sum the weights: a leaf of five records'
weight has five records or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.blocks import row_blocks
from .class_trees import MAX_DEPTH, ClassTree, collapse_nodes, grow_class_trees

MOST_WEIGHT_BITS = 15
"""Bits of a weight behind the point: fewer where records are many, so that the sum of all is exact."""


@dataclass(frozen=True)
class TreeArrays:
    """T regression or classification trees with V nodes in all, as arrays. A leaf leads to itself.

    A record at node v goes to ``left[v]`` if x[feature[v]] <= threshold[v]; where ``chosen[v]`` is not -1 the feature
    is a level without an order, and a record goes left if ``sets[chosen[v], level]``.

    root: root node of each tree, (T,)
    feature, threshold, left, right: split of each node, (V,)
    start, count: the target's values in a leaf are ``donors[start[v] : start[v] + count[v]]``; other nodes have a count
    of 0, (V,)
    donors: values of the target, (T n,), in the order of the records that the tree grew on until
    ``with_sorted_donors``; of weighted records the distinct values of each leaf, sorted
    chosen: row of ``sets``, or -1, (V,)
    sets: levels that go left, (S, L)
    weight: weight of the records that have each donor value, of the shape of ``donors``; None where all records weigh 1
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
    def leaf_weights(self) -> Floats:
        """Return the weight of the records of each leaf, (V,): their number where all weigh 1; 0 at other nodes."""
        if self.weight is None:
            return self.count.astype(np.float64)
        return np.asarray(np.bincount(self.leaf_of_donor, self.weight, len(self.count)), dtype=np.float64)

    @property
    def leaf_of_donor(self) -> Integers:
        """Return the leaf of each donor, (D,)."""
        return np.repeat(np.arange(len(self.count)), self.count)

    def find_leaves(self, tree: int, x: Floats) -> Integers:
        """Return the leaf of ``tree`` that each record of ``x`` (n, P) falls in, (n,)."""
        blocks = [self._find_leaves_in_block(tree, x[rows]) for rows in row_blocks(len(x), x.shape[1])]
        return np.concatenate([np.empty(0, np.int64), *blocks])

    def _find_leaves_in_block(self, tree: int, x: Floats) -> Integers:
        """Walk the records of one block down the tree together, level by level, and return their leaves, (n,)."""
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

    def with_sorted_donors(self) -> TreeArrays:
        """Return the same trees with the donors of each leaf sorted by value, missing ones last."""
        # Weighted donors are distinct values that are sorted already.
        if self.weight is not None:
            return self
        # The place of a donor then tells nothing of its record: no draw can be traced to one, even by whoever knows all
        # random numbers and the order of the file.
        return replace(self, donors=self.donors[np.lexsort((self.donors, self.leaf_of_donor))])

    def draw_donors(self, tree: int, x: Floats, rng: np.random.Generator) -> Floats:
        """Draw one donor of its leaf for each record of ``x`` (n, P), with probability proportional to its weight:
        (n,).
        """
        leaf = self.find_leaves(tree, x)
        if self.weight is not None:
            upto = np.cumsum(self.weight)
            first = np.append(0.0, upto)[self.start[leaf]]
            place = np.searchsorted(upto, first + rng.random(len(x)) * self.leaf_weights[leaf], side="right")
            # Rounding of the running sum may point behind the last donor of the leaf.
            return np.asarray(self.donors[np.minimum(place, (self.start + self.count - 1)[leaf])])
        return np.asarray(self.donors[self.start[leaf] + rng.integers(self.count[leaf])])

    def draw_donors_at(self, leaf: Integers, quantiles: Floats, rng: np.random.Generator) -> Floats:
        """Draw the donors at ``quantiles`` (n,) of the leaves (n,), whose donors are sorted: (n,).

        A record has as good a chance to have no value (NaN) as the leaf's donors, whatever its quantile.
        """
        weight = np.ones(len(self.donors)) if self.weight is None else self.weight
        present = ~np.isnan(self.donors)
        all_of_leaf = np.bincount(self.leaf_of_donor, weight, len(self.count))
        present_of_leaf = np.bincount(self.leaf_of_donor[present], weight[present], len(self.count))
        upto = np.append(0.0, np.cumsum(weight))
        place = np.searchsorted(upto[1:], upto[self.start[leaf]] + quantiles * present_of_leaf[leaf], side="right")
        # Missing donors are the last of a leaf; rounding may point behind the last value.
        values = np.bincount(self.leaf_of_donor[present], minlength=len(self.count))
        last = self.start[leaf] + np.maximum(values[leaf], 1) - 1
        found = np.asarray(self.donors[np.minimum(place, last)])
        missing = rng.random(len(leaf)) * all_of_leaf[leaf] >= present_of_leaf[leaf]
        return np.where(missing, np.nan, found)


def concatenate_trees(trees: Sequence[TreeArrays]) -> TreeArrays:
    """Concatenate trees into one set of arrays, in this order."""
    nodes, donors, sets = (
        np.cumsum([0] + [len(part) for part in parts])
        for parts in ([t.left for t in trees], [t.donors for t in trees], [t.sets for t in trees])
    )
    widest = max(tree.sets.shape[1] for tree in trees)
    shifted = [
        TreeArrays(
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
    parts = (np.concatenate([getattr(t, field.name) for t in shifted]) for field in fields(TreeArrays)[:-1])
    return replace(TreeArrays(*parts), weight=np.concatenate(weights) if weights else None)


def join_trees(trees: Sequence[TreeArrays], groups: NDArray[np.bool_], feature: int) -> TreeArrays:
    """Join S trees of one variable to one, above which records are sorted by a level that is their last ``feature``.

    ``groups`` (S, L) marks the levels of each tree; every level is of one.
    """
    joined, above = concatenate_trees(trees), len(trees) - 1
    if not above:
        return joined
    nodes, sets = len(joined.left), joined.sets
    wide = max(sets.shape[1], groups.shape[1])
    chain, none = nodes + np.arange(above), np.zeros(above, dtype=np.int64)
    more = {
        "root": chain[:1],
        "feature": np.append(joined.feature, none + feature),
        "threshold": np.append(joined.threshold, np.zeros(above)),
        "left": np.append(joined.left, joined.root[:-1]),
        "right": np.concatenate([joined.right, chain[1:], joined.root[-1:]]),
        "start": np.append(joined.start, none),
        "count": np.append(joined.count, none),
        "chosen": np.append(joined.chosen, len(sets) + np.arange(above)),
        "sets": np.vstack([np.pad(one, ((0, 0), (0, wide - one.shape[1]))) for one in (sets, groups[:-1])]),
    }
    return replace(joined, **more)


def fit_regression_tree(
    x: Floats, y: Floats, *, minbucket: int, cp: float, seed: int, weights: Floats | None = None
) -> TreeArrays:
    """Fit one tree for numbers ``y`` (n,) by ``x`` (n, P).

    ``seed`` decides between equal splits, and nothing else. ``weights`` (n,) are the weights of records, above 0 and at
    most 1; all 1 by default. Numbers may be missing (NaN): such records donate NaN, and the tree is that of two
    responses, the number and whether it is missing, whose shares of unexplained variance are averaged (Segal 1992;
    De'ath 2002). The tree sees ranks, so it does not depend on units; a threshold is the middle between two
    neighbouring values of ``x``.
    """
    own = None if weights is None else _WeightUnits.from_weights(weights)
    if _is_too_small_to_split(x, y, minbucket, own):
        return _single_leaf_tree(y, own)
    # scikit-learn stores predictors in single precision, which holds ranks exactly but merges close numbers.
    values, ranks = [], np.empty(x.shape, np.float32)
    for j, column in enumerate(x.T):
        points, ranks[:, j] = np.unique(column, return_inverse=True)
        values.append(points)
    if own is not None:
        return _arrays_from_class_tree(
            _fit_weighted_with_sklearn(ranks, y, minbucket, cp, seed, own), y, values, [0] * x.shape[1], own
        )
    tree = _fit_with_sklearn(ranks, y, minbucket, cp, seed)
    here, inner = np.arange(tree.node_count), tree.children_left >= 0
    feature = np.where(inner, tree.feature, 0)
    return TreeArrays(
        np.zeros(1, np.int64),
        feature,
        _split_thresholds(feature, np.floor(tree.threshold).astype(np.int64), inner, values),
        np.where(inner, tree.children_left, here),
        np.where(inner, tree.children_right, here),
        *_group_donors(tree.apply(ranks), y, tree.node_count)[:3],
        np.full(tree.node_count, -1),
        np.zeros((0, 0), np.bool_),
    )


def fit_classification_tree(
    x: Floats,
    y: Floats,
    *,
    levels: Sequence[int],
    minbucket: int,
    cp: float,
    weights: Floats | None = None,
    prune: bool = True,
) -> TreeArrays:
    """Fit one tree for codes of classes ``y`` (n,) by ``x`` (n, P).

    Columns that hold codes of levels without an order have their number in ``levels`` (P,), others 0. ``weights`` are
    those of ``fit_regression_tree``. Without ``prune`` every split stays by which the shares of the classes differ.
    """
    if weights is None:
        return fit_classification_trees([x], [y], levels=levels, minbucket=minbucket, cp=cp, prune=prune)[0]
    own = _WeightUnits.from_weights(weights)
    if _is_too_small_to_split(x, y, minbucket, own):
        return _single_leaf_tree(y, own)
    coded = _CodedTable.from_values(x, y, levels)
    fewest = minbucket * own.per_record
    (tree,) = grow_class_trees(
        coded.codes, [coded.class_keys], levels=levels, minbucket=fewest, cp=cp, units=own.units, prune=prune
    )
    return _arrays_from_class_tree(tree, y, coded.values, levels, own)


def fit_classification_trees(
    x: Sequence[Floats], y: Sequence[Floats], *, levels: Sequence[int], minbucket: int, cp: float, prune: bool = True
) -> list[TreeArrays]:
    """Fit a tree for each of several tables, as ``fit_classification_tree`` does.

    Trees of tables with equally many records and classes are grown together, which is quicker.
    """
    found: list[TreeArrays | None] = [
        _single_leaf_tree(own) if _is_too_small_to_split(of, own, minbucket) else None
        for of, own in zip(x, y, strict=True)
    ]
    groups: dict[tuple[int, int], list[int]] = {}
    coded = {k: _CodedTable.from_values(x[k], y[k], levels) for k, tree in enumerate(found) if tree is None}
    for k, one in coded.items():
        groups.setdefault((len(y[k]), int(one.class_keys.max())), []).append(k)
    for some in groups.values():
        grown = grow_class_trees(
            [coded[k].codes for k in some],
            [coded[k].class_keys for k in some],
            levels=levels,
            minbucket=minbucket,
            cp=cp,
            prune=prune,
        )
        for k, tree in zip(some, grown, strict=True):
            found[k] = _arrays_from_class_tree(tree, y[k], coded[k].values, levels)
    return [tree for tree in found if tree is not None]


class _CodedTable(NamedTuple):
    """Predictors and classes as codes.

    codes: codes of the predictors, (n, P)
    values: values that the codes of each predictor stand for, (P,)
    class_keys: classes from 0, (n,)
    """

    codes: Integers
    values: list[Floats]
    class_keys: Integers

    @classmethod
    def from_values(cls, x: Floats, y: Floats, levels: Sequence[int]) -> _CodedTable:
        """Code predictors (n, P) and classes (n,)."""
        values = [np.arange(float(count)) if count else np.unique(c) for c, count in zip(x.T, levels, strict=True)]
        codes = np.column_stack([np.searchsorted(points, c) for points, c in zip(values, x.T, strict=True)])
        return cls(codes, values, np.unique(y, return_inverse=True)[1])


class _WeightUnits(NamedTuple):
    """Weights of records in whole units.

    units: units of each record, (n,)
    per_record: units of a weight of 1, a power of two
    """

    units: Integers
    per_record: int

    @classmethod
    def from_weights(cls, weights: Floats) -> _WeightUnits:
        """Round weights (n,) to multiples of 2^-15, or of a coarser power of two; none is rounded to 0."""
        # Coarser where records are many: all units together stay below 2^31, for which the class trees count in 32
        # bits.
        whole = 1 << max(0, min(MOST_WEIGHT_BITS, 30 - len(weights).bit_length()))
        return cls(np.maximum(np.rint(weights * whole), 1).astype(np.int64), whole)

    @property
    def as_floats(self) -> Floats:
        """Return the rounded weights, (n,)."""
        return np.asarray(self.units / self.per_record)


def _arrays_from_class_tree(
    tree: ClassTree, y: Floats, values: Sequence[Floats], levels: Sequence[int], weights: _WeightUnits | None = None
) -> TreeArrays:
    """Return a classification tree as arrays, its thresholds between values, with the targets of its leaves as
    donors.
    """
    inner = tree.left != np.arange(len(tree.left))
    by_set = inner & (np.asarray(levels) > 0)[tree.feature]
    start, count, donors, weight = _group_donors(tree.leaf, y, len(tree.left), weights)
    return TreeArrays(
        np.zeros(1, np.int64),
        tree.feature,
        _split_thresholds(tree.feature, tree.cut, inner & ~by_set, values),
        tree.left,
        tree.right,
        start,
        count,
        donors,
        np.where(by_set, np.cumsum(by_set) - 1, -1),
        tree.left_levels[by_set],
        weight,
    )


def arrays_of_counted_tree(
    tree: ClassTree,
    values: Sequence[Floats],
    levels: Sequence[int],
    leaf: Integers,
    donors: Floats,
    weight: Floats,
    grouped: Sequence[bool],
) -> TreeArrays:
    """Return a tree as arrays, its thresholds between the ``values`` of each predictor's codes.

    levels: number of levels of a predictor without an order, else 0, (P,)
    leaf, donors, weight: leaf, value and weight of each donor, in the order of leaves and values, (D,)
    grouped: whether codes stand for groups of numbers, and values are their ends, (P,)
    """
    inner = tree.left != np.arange(len(tree.left))
    by_set = inner & (np.asarray(levels, dtype=np.int64)[tree.feature] > 0 if len(levels) else False)
    count = np.bincount(leaf, minlength=len(inner))
    thresholds = _split_thresholds(tree.feature, tree.cut, inner & ~by_set, values)
    for j, ends in enumerate(values):
        # Between the end of a group and that of the next lie numbers of the next.
        own = inner & (tree.feature == j) & grouped[j]
        thresholds[own] = ends[tree.cut[own]]
    return TreeArrays(
        np.zeros(1, np.int64),
        tree.feature,
        thresholds,
        tree.left,
        tree.right,
        np.cumsum(count) - count,
        count,
        donors,
        np.where(by_set, np.cumsum(by_set) - 1, -1),
        tree.left_levels[by_set],
        weight,
    )


def _is_too_small_to_split(x: Floats, y: Floats, minbucket: int, weights: _WeightUnits | None = None) -> bool:
    """Return whether the root stays a leaf: no predictors, too few records, or one value of the target."""
    size = len(y) if weights is None else weights.units.sum() / weights.per_record
    return not x.shape[1] or size < max(3 * minbucket, 2) or len(np.unique(y)) < 2


def _group_donors(
    leaf: Integers, y: Floats, nodes: int, weights: _WeightUnits | None = None
) -> tuple[Integers, Integers, Floats, Floats | None]:
    """Group the target's values by leaf (n,).

    Returns where the donors of each node start and how many they are, (nodes,), the donors (D,), and their weights,
    None without weights.
    """
    weight = None
    if weights is None:
        y = y[np.argsort(leaf, kind="stable")]
    else:
        # Equal values of a leaf become one donor with their summed weight.
        order = np.lexsort((y, leaf))
        leaf, y, units = leaf[order], y[order], weights.units[order]
        # NaN is missing and equals NaN here.
        same = (y[1:] == y[:-1]) | (np.isnan(y[1:]) & np.isnan(y[:-1]))
        starts = np.append(0, np.flatnonzero(~same | (leaf[1:] != leaf[:-1])) + 1)
        leaf, y, weight = leaf[starts], y[starts], np.add.reduceat(units, starts) / weights.per_record
    count = np.bincount(leaf, minlength=nodes)
    return np.cumsum(count) - count, count, y, weight


def _single_leaf_tree(y: Floats, weights: _WeightUnits | None = None) -> TreeArrays:
    """Return the tree that is a leaf of all records."""
    zero, no_set = np.zeros(1, np.int64), np.zeros((0, 0), np.bool_)
    start, count, donors, weight = _group_donors(np.zeros(len(y), np.int64), y, 1, weights)
    return TreeArrays(zero, zero, np.zeros(1), zero, zero, start, count, donors, zero - 1, no_set, weight)


def _fit_with_sklearn(ranks: NDArray[np.float32], y: Floats, minbucket: int, cp: float, seed: int) -> Any:
    """Fit and prune the tree of unweighted records with scikit-learn."""
    from sklearn.tree import DecisionTreeRegressor

    model = DecisionTreeRegressor(
        min_samples_leaf=minbucket,
        min_samples_split=max(3 * minbucket, 2),
        max_depth=MAX_DEPTH,
        ccp_alpha=cp,
        random_state=seed,
    )
    return model.fit(ranks, _standardise(y)).tree_


def _fit_weighted_with_sklearn(
    ranks: NDArray[np.float32], y: Floats, minbucket: int, cp: float, seed: int, weights: _WeightUnits
) -> ClassTree:
    """Fit the tree of weighted records with scikit-learn and prune it."""
    from sklearn.tree import DecisionTreeRegressor

    fewest, all_units = minbucket * weights.per_record, int(weights.units.sum())
    model = DecisionTreeRegressor(
        # Half a unit less, since the fraction is rounded and a leaf of just the fewest units must stay allowed.
        min_weight_fraction_leaf=(fewest - 0.5) / all_units,
        max_depth=MAX_DEPTH,
        random_state=seed,
    )
    response = _standardise(y, weights.as_floats)
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
    # scikit-learn counts records, not weights, where it checks whether a node may split.
    split = inner & (size > 3 * fewest - 0.5)
    return collapse_nodes(grown, ~splits_worth_cost(grown, split, tree.impurity * (size / all_units), cp))


def splits_worth_cost(tree: ClassTree, split: NDArray[np.bool_], error: Floats, cp: float) -> NDArray[np.bool_]:
    """Return which nodes stay split, (V,), if each further leaf must save ``cp`` of the root's error.

    ``error`` (V,) are shares of the root's. The result is the smallest of the trees that are best by error and leaves
    together (Breiman et al. 1984, theorem 3.10); without ``cp`` all ``split`` nodes stay.
    """
    if not cp:
        return split
    best, stays = error + cp, split.copy()
    # Backwards, children come before their parents.
    for node in np.flatnonzero(split)[::-1]:
        branch = best[tree.left[node]] + best[tree.right[node]]
        stays[node] = branch < best[node]
        best[node] = min(branch, best[node])
    return stays


def _standardise(y: Floats, weights: Floats | None = None) -> Floats:
    """Standardise numbers (n,) to mean 0 and variance 1.

    With missing numbers two columns are returned, (n, 2): the numbers, missing ones at the mean, and whether they are
    missing. A column that does not vary is left out.
    """
    missing = np.isnan(y)
    if missing.any():
        own = None if weights is None else weights[~missing]
        filled = np.where(missing, np.average(y[~missing], weights=own), y)
        parts = (column for column in (filled, missing * 1.0) if np.ptp(column) > 0)
        return np.column_stack([_standardise(column, weights) for column in parts])
    # Squares of large numbers would overflow.
    scaled = y / np.abs(y).max()
    if weights is None:
        return np.asarray((scaled - scaled.mean()) / scaled.std())
    centred = scaled - np.average(scaled, weights=weights)
    return np.asarray(centred / np.sqrt(np.average(centred**2, weights=weights)))


def _split_thresholds(feature: Integers, below: Integers, split: NDArray[np.bool_], values: Sequence[Floats]) -> Floats:
    """Return thresholds (V,) between the values of ranks ``below`` and the next, where there is a ``split``; 0
    elsewhere.
    """
    thresholds = np.zeros(len(feature))
    for j, points in enumerate(values):
        of_feature = split & (feature == j)
        low, high = points[below[of_feature]], points[below[of_feature] + 1]
        # The sum of the two may overflow. Between neighbouring floats the middle rounds to one of them, and ``high``
        # must go right.
        middle = low / 2 + high / 2
        thresholds[of_feature] = np.where((low <= middle) & (middle < high), middle, low)
    return thresholds


def order_levels(codes: Integers, levels: int, y: Floats, weights: Floats | None = None) -> Floats:
    """Return the place of each level, (levels,), in the order in which splits between neighbours suffice.

    That is the order of the means of ``y`` (n,). For numbers of which some are missing (NaN) it is the order along the
    first principal component of the two responses of ``fit_regression_tree``. The order is found once, at the root
    (Wright & König 2019). A level without records has the overall mean. ``weights`` (n,) are the weights of records,
    above 0.
    """
    rows = np.bincount(codes, weights, levels)
    seen = rows > 0
    target = _level_sort_scores(y, weights)
    # The best of all 2^(L-1) - 1 splits of the levels is between neighbours by mean (Fisher 1958; Breiman et al. 1984).
    centred = target - np.average(target, axis=0, weights=weights)
    of_each = 1.0 if weights is None else weights
    sums = np.column_stack([np.bincount(codes, column * of_each, levels) for column in centred.T])
    means = np.where(seen[:, None], sums / np.where(seen, rows, 1)[:, None], 0.0)
    return order_by_means(means, rows.astype(np.float64))


def order_by_means(means: Floats, rows: Floats) -> Floats:
    """Return the place of each level, (levels,), along the first principal component of its ``means`` (levels, q), which
    are 0 on average over the records, ``rows`` (levels,) of each.
    """
    axis = np.linalg.eigh(means.T @ (rows[:, None] * means))[1][:, -1]
    # The sign of an eigenvector is arbitrary and differs between libraries.
    axis = axis * np.sign(axis[np.abs(axis).argmax()])
    places = np.empty(len(means))
    places[np.argsort(means @ axis, kind="stable")] = np.arange(len(means))
    return places


def _level_sort_scores(y: Floats, weights: Floats | None) -> Floats:
    """Return the scores whose means order the levels, (n, q)."""
    if np.isnan(y).any():
        return _standardise(y, weights).reshape(len(y), -1) if len(np.unique(y)) > 1 else np.zeros((len(y), 1))
    return np.asarray((y / (np.abs(y).max() or 1.0))[:, None])
