"""Trees of records at weights against those of so many records, and against scikit-learn and brute force."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sfumato.engine.trees.trees import (
    TreeArrays,
    concatenate_trees,
    fit_classification_tree,
    fit_regression_tree,
    order_levels,
)

Levels = list[int]


def example(seed: int, classes: int, n: int = 160) -> tuple[np.ndarray, np.ndarray, Levels]:
    """Two numbers, one of many values, five levels without an order and fourteen; ``classes`` 0 for a number, -1 for one that may be missing."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 9, n), rng.permutation(n), rng.integers(0, 5, n), rng.integers(0, 14, n)])
    score = x[:, 0] + 2.0 * (x[:, 2] % 3) + 1.5 * (x[:, 3] % 2) + 2 * rng.normal(size=n)
    if classes > 0:
        score = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes)).astype(float)
    elif classes < 0:
        score[rng.random(n) < 0.2] = np.nan
    return x.astype(float), score, [0, 0, 5, 14]


def grown(
    x: np.ndarray,
    y: np.ndarray,
    levels: Levels,
    classes: int,
    minbucket: int,
    cp: float = 1e-8,
    weights: np.ndarray | None = None,
) -> TreeArrays:
    if classes > 0:
        return fit_classification_tree(x, y, levels=levels, minbucket=minbucket, cp=cp, weights=weights)
    return fit_regression_tree(by_order(x, y, levels, weights), y, minbucket=minbucket, cp=cp, seed=1, weights=weights)


def by_order(x: np.ndarray, y: np.ndarray, levels: Levels, weights: np.ndarray | None) -> np.ndarray:
    ordered = x.copy()
    for j, count in enumerate(levels):
        if count:
            ordered[:, j] = order_levels(x[:, j].astype(int), count, y, weights)[x[:, j].astype(int)]
    return ordered


def tally(tree: TreeArrays) -> list[dict[str, float]]:
    """What each value weighs in each leaf."""
    found: list[dict[str, float]] = []
    for start, count in zip(tree.start, tree.count, strict=True):
        of_leaf: dict[str, float] = {}
        for at in range(start, start + count):
            value = repr(float(tree.donors[at]))
            of_leaf[value] = of_leaf.get(value, 0.0) + (1.0 if tree.weight is None else float(tree.weight[at]))
        found.append(of_leaf)
    return found


def in_parts(
    tree: TreeArrays, x: np.ndarray, y: np.ndarray, levels: Levels, weights: np.ndarray | None
) -> list[list[int]]:
    """The records of each leaf of a tree for numbers, which sees levels by their order."""
    ordered = by_order(x, y, levels, weights)
    leaves = tree.find_leaves(0, ordered)
    return sorted(np.flatnonzero(leaves == leaf).tolist() for leaf in np.unique(leaves))


STRUCTURE = ("root", "feature", "threshold", "left", "right", "chosen", "sets")


def same_splits(one: TreeArrays, other: TreeArrays) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in STRUCTURE)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    classes=st.sampled_from([-1, 0, 2, 3]),
    minbucket=st.sampled_from([2, 5, 9]),
    cp=st.sampled_from([0.0, 1e-8, 0.01]),
)
def test_a_record_at_three_quarters_is_three_records_of_four(
    seed: int, classes: int, minbucket: int, cp: float
) -> None:
    """Growth, pruning and donors of the unweighted tree of each record up to four times, whose leaves are four times as large.

    Of numbers, whose sums are rounded, two predictors that part a node alike are one split; which of two records without a number goes with others decides
    rounding in leaves of two, so these are larger there.
    """
    minbucket = max(minbucket, 5 if classes < 0 else 0)
    x, y, levels = example(seed, classes)
    times = np.random.default_rng(seed).integers(1, 5, len(y))
    weighted = grown(x, y, levels, classes, minbucket, cp, times / 4)
    repeated = grown(np.repeat(x, times, axis=0), np.repeat(y, times), levels, classes, 4 * minbucket, cp)
    four = [{value: 4 * weight for value, weight in of_leaf.items()} for of_leaf in tally(weighted)]
    if classes > 0:
        assert same_splits(weighted, repeated)
        assert four == tally(repeated)
        return
    ours = in_parts(weighted, x, y, levels, times / 4)
    first = np.cumsum(times) - times
    theirs = repeated.find_leaves(0, by_order(np.repeat(x, times, axis=0), np.repeat(y, times), levels, None))[first]
    assert ours == sorted(np.flatnonzero(theirs == leaf).tolist() for leaf in np.unique(theirs))
    assert sorted(sorted(leaf.items()) for leaf in four) == sorted(sorted(leaf.items()) for leaf in tally(repeated))


@pytest.mark.parametrize("classes", [-1, 0, 2, 3])
def test_negative_control_leaves_that_count_records_are_others(classes: int) -> None:
    x, y, levels = example(3, classes)
    times = np.random.default_rng(3).integers(1, 3, len(y))
    weighted = grown(x, y, levels, classes, 5, weights=times / 4)
    repeated = grown(np.repeat(x, times, axis=0), np.repeat(y, times), levels, classes, 5)
    assert not same_splits(weighted, repeated)
    assert weighted.leaf_weights[weighted.count > 0].min() >= 5
    assert not same_splits(weighted, grown(x, y, levels, classes, 5))


@pytest.mark.parametrize("classes", [-1, 0, 2, 3])
@pytest.mark.parametrize("cp", [0.0, 1e-8, 1e-3, 0.03, 0.2])
def test_weights_of_1_are_no_weights(classes: int, cp: float) -> None:
    """Split for split; pruned by scikit-learn without weights, by our own rule with them."""
    for seed in range(4):
        x, y, levels = example(seed, classes, 300)
        ones, none = (grown(x, y, levels, classes, 4, cp, weights) for weights in (np.ones(300), None))
        assert same_splits(ones, none)
        assert tally(ones) == tally(none)
        assert cp > 0.1 or len(none.left) > 1


@pytest.mark.slow
def test_the_first_split_is_that_of_scikit_learn_with_sample_weight() -> None:
    """Of numbers and of two classes; with other weights the split is another."""
    unlike = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = np.column_stack([rng.permutation(80), rng.permutation(80)]).astype(float)
        weights = rng.integers(1, 65, 80) / 64
        number = np.sin(x[:, 0] / 9) + x[:, 1] / 60 + rng.normal(size=80)
        for y, model in ((number, DecisionTreeRegressor), ((number > 0.8) * 1.0, DecisionTreeClassifier)):
            kind = 2 if model is DecisionTreeClassifier else 0
            smallest = (7 - 1e-6) / weights.sum()
            theirs = model(max_depth=1, min_weight_fraction_leaf=smallest, random_state=1)
            theirs = theirs.fit(x, y, sample_weight=weights).tree_
            ours = grown(x, y, [0, 0], kind, 7, 0.0, weights)
            if len(ours.left) > 1:
                assert (ours.feature[0], ours.threshold[0]) == (theirs.feature[0], theirs.threshold[0])
                bare = grown(x, y, [0, 0], kind, 7, 0.0)
                unlike += (bare.feature[0], bare.threshold[0]) != (ours.feature[0], ours.threshold[0])
    assert unlike > 10


def parts(x: np.ndarray, y: np.ndarray, w: np.ndarray, rows: np.ndarray, minbucket: float) -> list[list[int]]:
    """The leaves of the least weighted squared error, by trying every cut of every node."""

    def error(some: np.ndarray) -> float:
        mean = np.average(y[some], weights=w[some])
        return float((w[some] * (y[some] - mean) ** 2).sum())

    best, found = error(rows) - 1e-12, None
    if w[rows].sum() >= 3 * minbucket:
        for column in x.T:
            for cut in np.unique(column[rows])[:-1]:
                left = rows[column[rows] <= cut]
                right = rows[column[rows] > cut]
                if min(w[left].sum(), w[right].sum()) >= minbucket and error(left) + error(right) < best:
                    best, found = error(left) + error(right), (left, right)
    if found is None:
        return [sorted(rows.tolist())]
    return [leaf for side in found for leaf in parts(x, y, w, side, minbucket)]


@pytest.mark.slow
def test_the_leaves_of_numbers_are_those_of_brute_force() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, w = rng.normal(size=(70, 2)), rng.integers(1, 17, 70) / 16
        y = np.round(x[:, 0] ** 2 + x[:, 1], 2) + rng.normal(size=70) / 9
        leaves = fit_regression_tree(x, y, minbucket=3, cp=0.0, seed=1, weights=w).find_leaves(0, x)
        found = sorted(np.flatnonzero(leaves == leaf).tolist() for leaf in np.unique(leaves))
        assert found == sorted(parts(x, y, w, np.arange(70), 3))
        assert found != sorted(parts(x, y, np.ones(70), np.arange(70), 3))


def test_a_donor_is_drawn_as_often_as_it_weighs() -> None:
    y, weights = np.array([1.0, 2.0, 2.0, 5.0]), np.array([1.0, 0.25, 0.5, 0.125])
    tree = fit_regression_tree(np.empty((4, 0)), y, minbucket=1, cp=0.0, seed=1, weights=weights)
    assert tree.donors.tolist() == [1, 2, 5]
    assert tree.weight is not None
    assert tree.weight.tolist() == [1, 0.75, 0.125]
    for trees, place in ((tree, 0), (concatenate_trees([tree, tree]), 1)):
        values = trees.draw_donors(place, np.empty((60_000, 0)), np.random.default_rng(2))
        counts = np.array([(values == value).sum() for value in (1, 2, 5)])
        assert chisquare(counts, 60_000 * tree.weight / tree.weight.sum()).pvalue > 1e-3
        assert chisquare(counts, 60_000 * np.array([1, 2, 1]) / 4).pvalue < 1e-9


def test_weights_are_rounded_so_that_sums_are_exact_and_none_is_lost() -> None:
    weights = np.array([1.0, 1 / 3, 1e-9])
    tree = fit_regression_tree(np.empty((3, 0)), np.arange(3.0), minbucket=1, cp=0.0, seed=1, weights=weights)
    assert tree.weight is not None
    assert tree.weight.tolist() == [1, round(2**15 / 3) / 2**15, 2**-15]


def test_trees_without_weights_have_the_arrays_that_they_had() -> None:
    x, y, levels = example(1, 2)
    assert [field.name for field in fields(TreeArrays) if getattr(grown(x, y, levels, 2, 5), field.name) is None] == [
        "weight"
    ]
