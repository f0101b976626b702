from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from public_data import PUBLIC_DATA
from sklearn.tree import DecisionTreeClassifier

from sfumato.engine.trees import class_trees as class_counts
from sfumato.engine.trees.class_trees import ClassTree, grow_class_tree, grow_class_trees

TABLES = {
    "adult": (
        "income",
        "age workclass education_num marital_status occupation relationship race sex capital_gain hours_per_week",
    ),
    "acs": ("MAR", "SEX RACE LANX WAOB DIS HICOV MIG SCH"),
    "AB_NYC_2019": ("room_type", "price neighbourhood_group minimum_nights number_of_reviews availability_365"),
}


def read_coded_table(table: str) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Codes of the predictors and classes of the first 10,000 records, and how many levels have no order."""
    if not (PUBLIC_DATA / f"{table}.csv").exists():
        pytest.skip("public data are not here")
    frame = pd.read_csv(PUBLIC_DATA / f"{table}.csv", skipinitialspace=True).head(10_000)
    frame = frame.astype("str") if table == "acs" else frame
    target, predictors = TABLES[table][0], TABLES[table][1].split()
    codes = [np.unique(frame[name].to_numpy(), return_inverse=True)[1] for name in predictors]
    plain = [not pd.api.types.is_numeric_dtype(frame[name]) for name in predictors]
    levels = [int(column.max() + 1) * own for column, own in zip(codes, plain, strict=True)]
    return np.column_stack(codes), np.unique(frame[target].to_numpy(), return_inverse=True)[1], levels


def fingerprint(leaf: np.ndarray) -> tuple[int, int, int]:
    """Leaves, and the sums over them of their squared sizes and of the squared sum of their records' numbers from 1."""
    sizes = np.bincount(leaf)
    numbers = np.bincount(leaf, np.arange(1, len(leaf) + 1)).astype(np.int64)
    return int((sizes > 0).sum()), int((sizes**2).sum()), int((numbers**2).sum())


# library(rpart); read.csv(file, stringsAsFactors = TRUE, strip.white = TRUE)[1:10000, ], all columns of acs as factors;
# w <- rpart(target ~ predictors, d, method = "class", control = rpart.control(minbucket = m, cp = cp, xval = 0))$where;
# c(length(unique(w)), sum(table(w)^2), sum(tapply(seq_along(w), w, sum)^2))
OF_RPART = [
    ("adult", 5, 1e-08, (290, 10502898, 264339769867772)),
    ("adult", 5, 0.001, (42, 33047700, 825856136884028)),
    ("adult", 20, 1e-08, (54, 29703134, 742919523409102)),
    ("adult", 20, 0.001, (29, 33184332, 829155425723826)),
    ("acs", 5, 1e-08, (54, 11215138, 277154877443560)),
    ("acs", 5, 0.001, (16, 26625550, 663601794170966)),
    ("acs", 20, 1e-08, (23, 25777296, 644317696057768)),
    ("acs", 20, 0.001, (15, 26585120, 662630394431118)),
    ("AB_NYC_2019", 5, 1e-08, (301, 2164368, 56177908190416)),
    ("AB_NYC_2019", 5, 0.001, (37, 20272420, 484636845395400)),
    ("AB_NYC_2019", 20, 1e-08, (58, 8003786, 198021402208546)),
    ("AB_NYC_2019", 20, 0.001, (24, 26704702, 649667145542320)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("table", "minbucket", "cp", "leaves"), OF_RPART)
def test_class_trees_have_the_leaves_of_rpart(
    table: str, minbucket: int, cp: float, leaves: tuple[int, int, int]
) -> None:
    """Leaf for leaf, record by record: two classes and more, numbers and levels without an order."""
    x, y, levels = read_coded_table(table)
    assert fingerprint(grow_class_tree(x, y, levels=levels, minbucket=minbucket, cp=cp).leaf) == leaves


def test_negative_control_pruning_by_impurity_keeps_more_leaves() -> None:
    """What scikit-learn keeps of the numbers of Adult at the same settings: a split need not save an error."""
    x, y, _ = read_coded_table("adult")
    numbers = x[:, [0, 2, 8, 9]]
    ours = grow_class_tree(numbers, y, levels=[0] * 4, minbucket=5, cp=1e-8)
    theirs = DecisionTreeClassifier(
        min_samples_leaf=5, min_samples_split=15, max_depth=30, ccp_alpha=1e-8, random_state=1
    ).fit(numbers, y)
    assert theirs.get_n_leaves() > 2 * len(np.unique(ours.leaf))


def gini(y: np.ndarray, left: np.ndarray) -> float:
    """The Gini impurity of both parts times their records."""
    shares = [np.bincount(part, minlength=4) / len(part) for part in (y[left], y[~left])]
    return sum(size * (1 - share @ share) for size, share in zip((left.sum(), (~left).sum()), shares, strict=True))


def sides(x: np.ndarray, levels: list[int]) -> Iterator[np.ndarray]:
    """Every way to send the records of x (n, P) to two sides by one predictor."""
    for column, count in zip(x.T, levels, strict=True):
        if not count:
            yield from (column <= cut for cut in np.unique(column)[:-1])
            continue
        found = np.unique(column)
        for size in range(1, len(found)):
            yield from (np.isin(column, subset) for subset in combinations(found, size))


@pytest.mark.slow
@settings(max_examples=80, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(15, 60), classes=st.integers(2, 4), minbucket=st.integers(1, 5))
def test_the_first_split_is_the_best_of_all(seed: int, n: int, classes: int, minbucket: int) -> None:
    """By brute force over all cuts of a number and all sets of the levels of another predictor."""
    rng = np.random.default_rng(seed)
    x, y = np.column_stack([rng.integers(0, 8, n), rng.integers(0, 5, n)]), rng.integers(0, classes, n)
    tree = grow_class_tree(x, y, levels=[0, 5], minbucket=minbucket, cp=0.0)
    if len(tree.left) > 1:
        codes = x[:, tree.feature[0]]
        left = tree.left_levels[0][codes] if tree.feature[0] == 1 else codes <= tree.cut[0]
        allowed = [gini(y, side) for side in sides(x, [0, 5]) if min(side.sum(), n - side.sum()) >= minbucket]
        assert gini(y, left) == pytest.approx(min(allowed), abs=1e-9)


def errors(tree: ClassTree) -> int:
    leaves = tree.left == np.arange(len(tree.left))
    return int((tree.counts.sum(axis=1) - tree.counts.max(axis=1))[leaves].sum())


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), cp=st.sampled_from([0.0, 1e-8, 0.01, 0.05, 0.2]), minbucket=st.integers(1, 8))
def test_a_tree_keeps_what_its_rules_allow(seed: int, cp: float, minbucket: int) -> None:
    """Records are in the leaf that their codes lead to, leaves are large enough, and splits have saved what they cost."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 30, 200), rng.integers(0, 12, 200), rng.integers(0, 4, 200)])
    y = np.digitize(x[:, 0] + 3 * (x[:, 1] % 3) + rng.normal(size=200) * 8, [12, 24])
    levels = [0, 12, 4]
    tree = grow_class_tree(x, y, levels=levels, minbucket=minbucket, cp=cp)
    node = np.zeros(200, int)
    for _ in range(31):
        code = x[np.arange(200), tree.feature[node]]
        by_set = np.array(levels)[tree.feature[node]] > 0
        goes_left = np.where(by_set, tree.left_levels[node, np.minimum(code, 11)], code <= tree.cut[node])
        node = np.where(goes_left, tree.left[node], tree.right[node])
    assert np.array_equal(node, tree.leaf)
    assert np.bincount(tree.leaf)[np.unique(tree.leaf)].min() >= minbucket
    root = 200 - np.bincount(y).max()
    splits = int((tree.left != np.arange(len(tree.left))).sum())
    assert splits == 0 or root - errors(tree) > cp * root * splits


def test_a_larger_table_does_not_have_the_majority_everywhere() -> None:
    """Nine zeros to a one, and no leaf of more ones than zeros: with equal weights the tree sees where ones are frequent."""
    x = np.repeat([0, 1], [900, 900])[:, None]
    y = np.repeat([0, 1, 0, 1], [890, 10, 730, 170])
    assert len(grow_class_tree(x, y, levels=[0], minbucket=5, cp=1e-8).left) == 1
    weighted = grow_class_tree(x, y, levels=[0], minbucket=5, cp=1e-8, weights=[900 / 1620, 900 / 180])
    assert weighted.counts.tolist() == [[1620, 180], [890, 10], [730, 170]]


def test_predictors_of_very_many_levels_are_split_in_the_order_of_their_shares() -> None:
    """Forty levels, three classes that they determine: as many leaves as classes, though 2^39 sets are not tried."""
    codes = np.tile(np.arange(40), 20)
    y = codes % 3
    tree = grow_class_tree(codes[:, None], y, levels=[40], minbucket=5, cp=1e-8)
    assert len(np.unique(tree.leaf)) == 3
    assert errors(tree) == 0


def impurity(*sides: list[float]) -> float:
    """The Gini impurity of weighted counts, one side after another, class by class: the sums that rpart computes."""
    found, sizes = 0.0, [sum(side) for side in sides]
    for k in range(len(sides[0])):
        for side, size in zip(sides, sizes, strict=True):
            share = side[k] / size
            found += size * (share * (1 - share))
    return found


def best_split(
    x: np.ndarray, y: np.ndarray, levels: list[int], minbucket: int, weights: list[float]
) -> tuple[float, int, list[int]]:
    """Record by record: the gain, the predictor and the values that go left, of the first of the best splits of a node."""

    def weighed(records: np.ndarray) -> list[float]:
        return [weight * float((y[records] == k).sum()) for k, weight in enumerate(weights)]

    best: tuple[float, int, list[int]] = (0.0, -1, [])
    whole = impurity(weighed(np.full(len(y), True)))
    for j, column in enumerate(x.T):
        values = sorted(set(column.tolist()))
        if levels[j]:
            shares = {v: weighed(column == v)[0] / sum(weighed(column == v)) for v in values}
            values.sort(key=lambda v, shares=shares: (shares[v], v))  # type: ignore[misc]
        least, chosen = whole, None
        for k in range(1, len(values)):
            left = np.isin(column, values[:k])
            if min(left.sum(), (~left).sum()) >= minbucket:
                found = impurity(weighed(left), weighed(~left))
                if found < least:
                    least, chosen = found, values[:k]
        if chosen is not None and whole - least > best[0]:
            best = whole - least, j, chosen
    return best


@pytest.mark.slow
@pytest.mark.parametrize("cells", [0, 1, 10**6])
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(6, 90),
    levels=st.lists(st.sampled_from([0, 0, 3, 7]), min_size=1, max_size=3),
    minbucket=st.integers(1, 6),
    weights=st.sampled_from([(1.0, 1.0), (0.7, 1.9), (1.0, 1.0, 1.0), (2.0, 0.3, 1.1)]),
)
def test_every_split_is_the_first_of_the_best(
    cells: int, seed: int, n: int, levels: list[int], minbucket: int, weights: tuple[float, ...]
) -> None:
    """Ties too, which few values make frequent; with values that are counted, kept in order, or first the one and then the other."""
    rng = np.random.default_rng(seed)
    levels = levels if len(weights) == 2 else [0] * len(levels)
    x = np.column_stack([rng.integers(0, count or rng.integers(2, 30), n) for count in levels])
    labels = [rng.integers(0, len(weights), n), np.minimum(x[:, 0] // 2, len(weights) - 1)]
    labels = [np.concatenate([np.arange(len(weights)), y[len(weights) :]]) for y in labels]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_counts, "_MOST_CELLS", cells)
        trees = grow_class_trees(x, labels, levels=levels, minbucket=minbucket, cp=0.0, weights=weights)
    for tree, y in zip(trees, labels, strict=True):
        node = [np.arange(n)]
        inner = tree.left != np.arange(len(tree.left))
        for v in range(len(tree.left)):
            if not inner[v]:
                assert np.array_equal(np.flatnonzero(tree.leaf == v), node[v])
                continue
            _, j, left = best_split(x[node[v]], y[node[v]], levels, minbucket, list(weights))
            goes_left = np.isin(x[node[v], j], left)
            assert tree.feature[v] == j
            assert (tree.left_levels[v, left] if levels[j] else tree.cut[v] == max(left)).all()
            assert [tree.left[v], tree.right[v]] == [len(node), len(node) + 1]
            node += [node[v][goes_left], node[v][~goes_left]]
        assert tree.counts.tolist() == [np.bincount(y[at], minlength=len(weights)).tolist() for at in node]


def test_trees_of_several_labels_are_those_of_each() -> None:
    """One of them has nothing to split."""
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.integers(0, 200, 500), rng.integers(0, 5, 500), rng.integers(0, 3, 500)])
    noisy = (x[:, 0] + 30 * (x[:, 1] % 2) + rng.normal(size=500) * 20 > 110).astype(int)
    labels = [noisy, rng.permutation(noisy), np.zeros(500, int), np.where(x[:, 2] == 2, 1, noisy)]
    together = grow_class_trees(x, labels, levels=[0, 5, 0], minbucket=5, cp=1e-8)
    for tree, y in zip(together, labels, strict=True):
        alone = grow_class_tree(x, y, levels=[0, 5, 0], minbucket=5, cp=1e-8)
        assert np.array_equal(tree.leaf, alone.leaf)
        assert tree.feature.tolist() == alone.feature.tolist()
        assert tree.cut.tolist() == alone.cut.tolist()
        assert tree.left_levels.tolist() == alone.left_levels.tolist()
        assert tree.counts[:, : alone.counts.shape[1]].tolist() == alone.counts.tolist()
    assert [len(tree.left) for tree in together][2] == 1
    assert min(len(together[k].left) for k in (0, 1, 3)) > 5


@pytest.mark.parametrize("classes", [2, 3])
def test_trees_are_the_same_however_values_are_held(classes: int) -> None:
    """Counted, in order from the root on, or first the one and then the other; with equal predictors, whose splits tie."""
    rng = np.random.default_rng(classes)
    x = np.column_stack(
        [rng.permutation(900), rng.geometric(0.2, 900), rng.integers(0, 4, 900), rng.integers(0, 12, 900)]
    )
    x = np.column_stack([x, x[:, :2]])
    y = np.digitize(x[:, 0] + 90 * (x[:, 2] % 2) + rng.normal(size=900) * 300, [300, 700][: classes - 1])
    found = []
    for cells in (0, 1, 4, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(class_counts, "_MOST_CELLS", cells)
            labels = [y, rng.permutation(y)] if not found else [y, found[0][1][1]]
            trees = grow_class_trees(x, labels, levels=[0, 0, 4, 12, 0, 0], minbucket=3, cp=1e-8)
        found.append(
            (
                [
                    [part.tolist() for part in (t.feature, t.cut, t.left_levels, t.left, t.right, t.counts, t.leaf)]
                    for t in trees
                ],
                labels,
            )
        )
    assert all(trees == found[0][0] for trees, _ in found)
    assert min(len(tree[0]) for tree in found[0][0]) > 20


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 1001])
def test_running_counts_are_those_of_cumulative_sums(count: int) -> None:
    flags = np.random.default_rng(count).random(count) < 0.6
    assert np.array_equal(class_counts._running_count(flags), np.cumsum(flags))


def tree_digest(trees: list[ClassTree]) -> str:
    """The first digits of the hash of all that trees are."""
    found = hashlib.sha256()
    for tree in trees:
        for part in (tree.feature, tree.cut, tree.left_levels, tree.left, tree.right, tree.counts, tree.leaf):
            found.update(np.ascontiguousarray(part).astype(np.int64).tobytes())
    return found.hexdigest()[:12]


# Of the version that tried every set of levels class by class.
OF_ALL_SETS = {"adult": "8e68419c402c", "acs": "058a8a960471"}


@pytest.mark.slow
@pytest.mark.parametrize(("table", "digest"), OF_ALL_SETS.items())
def test_trees_of_many_classes_are_those_of_all_sets_class_by_class(table: str, digest: str) -> None:
    """Each variable of few values given those before it, levels left out of most nodes among them."""
    if not (PUBLIC_DATA / f"{table}.csv").exists():
        pytest.skip("public data are not here")
    frame = pd.read_csv(PUBLIC_DATA / f"{table}.csv", skipinitialspace=True).head(10_000)
    codes = [np.unique(frame[name].astype("str").to_numpy(), return_inverse=True)[1] for name in frame]
    levels = [int(own.max()) + 1 if own.max() < 50 else 0 for own in codes]
    trees = [
        grow_class_tree(np.column_stack(codes[:k]), codes[k], levels=levels[:k], minbucket=5, cp=1e-8)
        for k in range(1, len(codes))
        if levels[k]
    ]
    assert tree_digest(trees) == digest


def grown_at_random(seed: int) -> list[ClassTree]:
    """Trees of three to seven classes by predictors of up to ten levels, with ties, class weights and units."""
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(20, 900)), int(rng.integers(3, 8))
    levels = [int(k) for k in rng.choice([0, 2, 3, 5, 8, 10, 12], int(rng.integers(1, 5)))]
    x = np.column_stack([np.minimum(rng.geometric(0.3, n) - 1, (own or 30) - 1) for own in levels])
    y = (x.sum(axis=1) // 2 + rng.integers(0, 3, n)) % classes
    y[:classes] = np.arange(classes)
    weights = [float(one) for one in rng.choice([1.0, 0.3, 1.7], classes)] if seed % 3 == 0 else []
    units = rng.integers(1, 4, 2 * n) if seed % 4 == 0 else None
    return grow_class_trees(
        x,
        [y, rng.permutation(y)],
        levels=levels,
        minbucket=int(rng.integers(1, 8)),
        cp=0.0,
        weights=weights,
        units=units,
        prune=bool(seed % 2),
    )


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 20_000])
def test_trees_at_random_are_those_of_all_sets_class_by_class(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_counts, "_FEW_SETS", few, raising=False)
    monkeypatch.setattr(class_counts, "_MOST_COUNTS", 3_000)
    assert tree_digest([tree for seed in range(60) for tree in grown_at_random(seed)]) == "a7ad361c1c8d"
