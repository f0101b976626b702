from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from sfumato.engine.data import blocks
from sfumato.engine.design.sparse_design import SparseDesign, StandardisedTerm
from sfumato.engine.methods.run import Run
from sfumato.engine.utility.propensity import logit_pmse, permutation_null, tree_pmse


def seeded_run(seed: int = 1) -> Run:
    return Run(np.random.default_rng(seed))


def design(x: np.ndarray) -> SparseDesign:
    """The columns of x (N, K) as they are."""
    return SparseDesign([StandardisedTerm(column, 1.0, 0.0, 1.0) for column in x.T], len(x))


def two_groups(below: int, above: int) -> tuple[np.ndarray, np.ndarray]:
    """A fifth of the records of the one group are ones, seven tenths of the other."""
    x = np.repeat([0, 1], [below, above])[:, None]
    ones = [below // 5, above * 7 // 10]
    y = np.repeat([1.0, 0.0, 1.0, 0.0], [ones[0], below - ones[0], ones[1], above - ones[1]])
    return x, y


def tree_score(x: np.ndarray, y: np.ndarray, levels: list[int], minbucket: int, cp: float) -> float:
    """Of one labelling."""
    return tree_pmse(x, [y], levels, minbucket, cp)[0]


def under_permutations(pmse: Callable[[np.ndarray], float], y: np.ndarray, permutations: int) -> list[float]:
    """The scores of a classifier that takes one labelling at a time."""
    own, found = permutation_null(lambda labels: [pmse(one) for one in labels], y, permutations, seeded_run())
    assert own == pmse(y)
    return found


def test_a_tree_of_one_split_by_hand() -> None:
    """The shares are 0.2 and 0.7 and c = 0.45."""
    assert tree_score(*two_groups(20, 20), [0], 5, 0.0) == pytest.approx((0.25**2 + 0.25**2) / 2)


def test_leaves_and_splits_keep_to_their_limits() -> None:
    """Both classes weigh 20. A split in the middle leaves 4 of 18 ones and 6 of 22 zeros wrong: it saves .505 of the errors."""
    x, y = two_groups(20, 20)
    assert tree_score(x, y, [0], 13, 0.50) > 0.0
    assert tree_score(x, y, [0], 14, 0.50) == 0.0, "fewer than 3 x 14 records are not split"
    assert tree_score(x, y, [0], 13, 0.51) == 0.0
    assert tree_score(*two_groups(10, 30), [0], 10, 0.0) > 0.0
    assert tree_score(*two_groups(10, 30), [0], 11, 0.0) == 0.0


def test_a_tree_of_very_few_records_does_not_fail() -> None:
    assert tree_score(np.array([[0], [1]]), np.array([0.0, 1.0]), [0], 1, 0.0) == 0.0


def test_a_logit_on_one_indicator_has_the_shares_of_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block and at once."""
    x = np.column_stack([np.ones(20), np.repeat([0.0, 1.0], 10), np.repeat([0.0, 2.0], 10)])
    y = np.concatenate([np.repeat([1.0, 0.0], [2, 8]), np.repeat([1.0, 0.0], [7, 3])])
    for cells in (3, 21, 60):
        monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", cells)
        pmse, null, degrees = logit_pmse(design(x), y, np.array([True, False, False]), (11, 9))
        assert pmse == pytest.approx(0.25**2)
        assert null == pytest.approx(0.45 * 0.55**2 / 20)
        assert degrees == 1


def positions(y: np.ndarray) -> float:
    """Keeps the order of the labels in a number."""
    return float(y @ 2.0 ** np.arange(len(y)))


def test_every_permutation_of_unequal_tables_occurs_equally_often() -> None:
    """Two zeros and one one: three arrangements. 600 draws; a chi-square of 13.8 with 2 df has probability 0.001."""
    found = under_permutations(positions, np.array([0.0, 0.0, 1.0]), 600)
    counts = np.unique(found, return_counts=True)[1]
    assert len(counts) == 3
    assert np.sum((counts - 200) ** 2 / 200) < 13.8


def test_equal_tables_exchange_labels_within_pairs_only() -> None:
    """Two pairs: four arrangements, each with one label of a kind in a pair; half of the distance is the null."""
    found = under_permutations(positions, np.array([0.0, 0.0, 1.0, 1.0]), 800)
    values, counts = np.unique(found, return_counts=True)
    assert set(values) == {1.5, 3.0, 4.5, 6.0}
    assert np.sum((counts - 200) ** 2 / 200) < 16.3


@pytest.mark.slow
@pytest.mark.parametrize(("zeros", "ones"), [(300, 300), (300, 100), (100, 300)])
def test_the_null_of_permutations_is_the_closed_form_of_a_logit(zeros: int, ones: int) -> None:
    """Snoke et al. 2018: 4 c (1 - c)^2 / N for the release alone. Permutations unscaled, the negative control, are not."""
    x = np.column_stack([np.ones(zeros + ones), np.random.default_rng(3).normal(size=(zeros + ones, 4))])
    y, intercept = np.repeat([0.0, 1.0], [zeros, ones]), np.arange(5) == 0
    found = np.array(under_permutations(lambda one: logit_pmse(design(x), one, intercept, (zeros, ones))[0], y, 400))
    expected, error = logit_pmse(design(x), y, intercept, (zeros, ones))[1], found.std() / 20
    assert abs(found.mean() - expected) < 4 * error
    assert abs(found.mean() / (zeros / (zeros + ones)) - expected) > 4 * error


@pytest.mark.slow
def test_the_null_is_that_of_pairs_where_records_are_kept() -> None:
    """Half of the columns are kept: any permutation, the negative control, expects a tree to fit them as noise."""
    rng = np.random.default_rng(3)
    kept = np.tile(rng.permuted(np.tile(np.arange(300), (4, 1)), axis=1).T, (2, 1))
    y = np.repeat([0.0, 1.0], 300)

    def fresh() -> np.ndarray:
        return np.column_stack([kept, rng.permutation(600)])

    def pmse(x: np.ndarray, labels: np.ndarray) -> float:
        return tree_score(x, labels, [0] * 5, 20, 1e-8)

    x = fresh()
    of_pairs = 2 * np.mean(under_permutations(partial(pmse, x), y, 60))
    of_all = np.mean([pmse(x, rng.permutation(y)) for _ in range(60)])
    others = [pmse(fresh(), y) for _ in range(60)]
    error = np.std(others) / np.sqrt(30)
    assert abs(of_pairs - np.mean(others)) < 3 * error
    assert abs(of_all - np.mean(others)) > 3 * error
