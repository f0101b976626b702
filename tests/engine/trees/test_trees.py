from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from sfumato.engine.data import blocks
from sfumato.engine.trees.trees import (
    TreeArrays,
    concatenate_trees,
    fit_classification_tree,
    fit_regression_tree,
    order_levels,
)


def tree_of(x: np.ndarray, y: np.ndarray, *, classes: bool = False, minbucket: int = 5, cp: float = 1e-8) -> TreeArrays:
    if classes:
        return fit_classification_tree(x, y, levels=[0] * x.shape[1], minbucket=minbucket, cp=cp)
    return fit_regression_tree(x, y, minbucket=minbucket, cp=cp, seed=1)


def example(n: int, seed: int = 1, classes: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Three predictors of whole numbers, every value of 0..19 present, and a target that depends on them."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.permutation(np.arange(n) % 20) for _ in range(3)]).astype(float)
    score = x[:, 0] + 3 * np.sin(x[:, 1]) + rng.normal(size=n)
    return x, np.digitize(score, [4, 9, 14]).astype(float) if classes else score


def standardised(y: np.ndarray) -> np.ndarray:
    y = y / np.abs(y).max()
    return (y - y.mean()) / y.std()


def same_parts(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two labellings put the same records together."""
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


@pytest.mark.parametrize(("minbucket", "cp"), [(5, 1e-8), (1, 0.0), (20, 1e-3)])
def test_leaves_are_those_of_scikit_learn(minbucket: int, cp: float) -> None:
    """Node by node, for the records that it was grown on and for others."""
    x, y = example(600)
    model = DecisionTreeRegressor(
        min_samples_leaf=minbucket,
        min_samples_split=max(3 * minbucket, 2),
        max_depth=30,
        ccp_alpha=cp,
        random_state=1,
    ).fit(x, standardised(y))
    found = tree_of(x, y, minbucket=minbucket, cp=cp)
    others = np.random.default_rng(2).integers(-3, 24, (2000, 3)).astype(float)
    for records in (x, others):
        assert np.array_equal(found.find_leaves(0, records), model.apply(records))
    assert not np.array_equal(found.find_leaves(0, others), model.apply(others + 1))


def test_trees_that_are_joined_stay_themselves() -> None:
    x, y = example(300)
    trees = [tree_of(x, y + shift * x[:, 2], minbucket=size) for shift, size in ((0, 5), (1, 20), (2, 60))]
    together = concatenate_trees(trees)
    for k, tree in enumerate(trees):
        assert same_parts(together.find_leaves(k, x), tree.find_leaves(0, x))
        drawn = [found.draw_donors(at, x, np.random.default_rng(1)) for found, at in ((together, k), (tree, 0))]
        assert np.array_equal(*drawn)


@pytest.mark.parametrize("cells", [1, 100, 799])
def test_records_fall_in_the_same_leaves_block_by_block(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = example(600)
    tree = tree_of(x, y)
    whole = tree.find_leaves(0, x)
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", cells)
    assert tree.find_leaves(0, x).tolist() == whole.tolist()
    assert tree.find_leaves(0, x[:0]).tolist() == []


def test_sets_of_levels_are_joined_too() -> None:
    """Trees by predictors of four and of six levels; a level that no record has goes where most records do."""
    rng = np.random.default_rng(1)
    trees, tables = [], []
    for levels in (4, 6):
        x = np.column_stack([rng.integers(0, levels - 1, 400), rng.normal(size=400)])
        y = (rng.random(400) < np.where(x[:, 0] == 1, 0.9, 0.2)).astype(float)
        trees.append(fit_classification_tree(x, y, levels=[levels, 0], minbucket=5, cp=0.02))
        tables.append(np.column_stack([rng.integers(0, levels, 400), rng.normal(size=400)]))
    together = concatenate_trees(trees)
    for k, (tree, table) in enumerate(zip(trees, tables, strict=True)):
        assert (tree.count > 0).sum() == 2
        assert same_parts(together.find_leaves(k, table), tree.find_leaves(0, table))
        assert np.array_equal(
            tree.find_leaves(0, table) == tree.find_leaves(0, np.array([[1.0, 0.0]]))[0], table[:, 0] == 1
        )


@pytest.mark.parametrize("classes", [False, True])
def test_donors_of_a_leaf_are_the_values_of_its_records(classes: bool) -> None:
    x, y = example(600, classes=classes)
    tree = tree_of(x, y, classes=classes)
    leaf = tree.find_leaves(0, x)
    for node in np.unique(leaf):
        donors = tree.donors[tree.start[node] : tree.start[node] + tree.count[node]]
        assert sorted(donors) == sorted(y[leaf == node])
    assert tree.count.sum() == 600


@pytest.mark.parametrize("minbucket", [1, 5, 40])
def test_leaves_are_no_smaller_than_allowed(minbucket: int) -> None:
    x, y = example(600)
    tree = tree_of(x, y, minbucket=minbucket)
    leaves = tree.count[tree.count > 0]
    assert len(leaves) > 1
    assert leaves.min() >= minbucket
    finer = tree_of(x, y, minbucket=max(minbucket // 4, 1))
    assert minbucket == 1 or finer.count[finer.count > 0].min() < minbucket


def test_nothing_smaller_than_three_buckets_is_split() -> None:
    """14 records of two values, that any split would tell apart, stay together; 15 do not."""
    for n, leaves in ((14, 1), (15, 2)):
        x = np.arange(float(n))[:, None]
        assert (tree_of(x, np.repeat([0.0, 1.0], [n - 7, 7])).count > 0).sum() == leaves


@pytest.mark.parametrize(("cp", "leaves"), [(0.0, 4), (0.01, 4), (0.013, 3), (0.1, 3), (0.12, 2), (0.87, 2), (0.89, 1)])
def test_complexity_is_a_share_of_the_variance_of_the_root(cp: float, leaves: int) -> None:
    """Four groups of equal size at 0, 2, 10 and 16: the splits lower the variance of 41 by 36, 4.5 and 0.5."""
    group = np.repeat(np.arange(4), 50)
    y = np.array([0.0, 2.0, 10.0, 16.0])[group]
    assert y.var() == 41
    assert (tree_of(group[:, None] * 1.0, y, cp=cp).count > 0).sum() == leaves


def test_a_split_that_changes_probabilities_but_no_majority_is_pruned() -> None:
    """As rpart does: errors stay the same with 5 % and 40 % of ones, not with 5 % and 60 %."""
    x = np.repeat([0.0, 1.0], 100)[:, None]
    for ones, leaves in ((40, 1), (60, 2)):
        y = np.concatenate([np.repeat([0.0, 1.0], [95, 5]), np.repeat([0.0, 1.0], [100 - ones, ones])])
        assert (tree_of(x, y, classes=True).count > 0).sum() == leaves


@pytest.mark.parametrize("change", [lambda x: x * 1e250, lambda x: x * 1e-250, lambda x: x + 1e9, np.exp])
def test_units_and_monotone_functions_of_predictors_do_not_matter(change) -> None:
    x, y = example(400)
    assert same_parts(tree_of(change(x), y).find_leaves(0, change(x)), tree_of(x, y).find_leaves(0, x))


@pytest.mark.parametrize("change", [lambda y: y * 1e250, lambda y: y * 1e-250, lambda y: y * 1e-3 + 1e6, lambda y: -y])
def test_units_of_the_target_do_not_matter(change) -> None:
    x, y = example(400)
    y = np.round(y, 1)
    assert same_parts(tree_of(x, change(y)).find_leaves(0, x), tree_of(x, y).find_leaves(0, x))


def test_neighbouring_floats_are_told_apart() -> None:
    """They are the same in single precision, which is what scikit-learn keeps of its predictors."""
    pair = np.array([1.0, np.nextafter(1.0, 2.0)])
    x = np.repeat(pair, 50)[:, None]
    tree = tree_of(x, np.repeat([3.0, 4.0], 50))
    assert tree.draw_donors(0, pair[:, None], np.random.default_rng(1)).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.empty((40, 0)), np.arange(40.0)),
        (np.arange(40.0)[:, None], np.full(40, 7.0)),
        (np.zeros((40, 2)), np.arange(40.0)),
        (np.arange(14.0)[:, None], np.arange(14.0)),
        (np.zeros((1, 1)), np.ones(1)),
    ],
    ids=["no predictor", "one value", "predictors that do not vary", "few records", "one record"],
)
@pytest.mark.parametrize("classes", [False, True])
def test_what_cannot_be_split_is_one_leaf(x: np.ndarray, y: np.ndarray, classes: bool) -> None:
    tree = tree_of(x, y, classes=classes)
    assert tree.find_leaves(0, x).tolist() == [0] * len(x)
    assert sorted(tree.donors) == sorted(y)


def squares(y: np.ndarray, left: np.ndarray) -> float:
    """Squared error within both parts."""
    return sum(((part - part.mean()) ** 2).sum() for part in (y[left], y[~left]) if len(part))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(levels=st.integers(2, 6), n=st.integers(12, 60), seed=st.integers(0, 999))
def test_a_split_in_order_is_the_best_split_of_the_levels(levels: int, n: int, seed: int) -> None:
    """By brute force over all subsets of levels."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(levels), rng.integers(0, levels, n)])
    y = rng.normal(size=len(codes))
    order = order_levels(codes, levels, y)
    assert sorted(order) == list(range(levels))
    ordered = min(squares(y, order[codes] <= place) for place in range(levels - 1))
    subsets = [subset for size in range(1, levels) for subset in combinations(range(levels), size)]
    assert ordered == pytest.approx(min(squares(y, np.isin(codes, subset)) for subset in subsets), abs=1e-9)


def test_negative_control_the_order_of_the_alphabet_is_not_best() -> None:
    codes = np.repeat(np.arange(4), 10)
    y = np.array([0.0, 1, 0, 1])[codes]
    best = min(squares(y, order_levels(codes, 4, y)[codes] <= place) for place in range(3))
    assert best == 0
    assert min(squares(y, codes <= place) for place in range(3)) > 1


def test_a_level_without_records_stands_at_the_mean() -> None:
    codes = np.repeat([0, 1, 3], 10)
    assert order_levels(codes, 4, np.repeat([9.0, 1.0, 2.0], 10)).tolist() == [3, 0, 2, 1]


def test_sorted_donors_say_nothing_of_the_order_of_records() -> None:
    """Each leaf keeps its values; missing ones come last; the order of the records, which a stump keeps, is gone."""
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.normal(size=200), rng.integers(0, 4, 200)])
    y = np.where(rng.random(200) < 0.1, np.nan, np.round(np.sin(x[:, 0]) + rng.normal(size=200), 1))
    grown = [
        fit_regression_tree(x, y, minbucket=7, cp=0.0, seed=1),
        fit_regression_tree(x[:, :0], y, minbucket=7, cp=0.0, seed=1),
    ]
    trees = concatenate_trees(grown)
    found = trees.with_sorted_donors()
    for start, count in zip(trees.start, trees.count, strict=True):
        before, after = trees.donors[start : start + count], found.donors[start : start + count]
        assert np.array_equal(np.sort(before), after, equal_nan=True)
    assert not np.array_equal(trees.donors, found.donors, equal_nan=True), "the negative control"
    order = rng.permutation(200)
    moved = concatenate_trees(
        [
            fit_regression_tree(x[order], y[order], minbucket=7, cp=0.0, seed=1),
            fit_regression_tree(x[order, :0], y[order], minbucket=7, cp=0.0, seed=1),
        ]
    )
    assert np.array_equal(moved.with_sorted_donors().donors, found.donors, equal_nan=True)
    assert not np.array_equal(moved.donors, trees.donors, equal_nan=True), "the negative control"
