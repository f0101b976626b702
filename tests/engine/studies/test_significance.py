"""Tests of groups against scipy's, and their error rates where there is nothing to find."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sfumato.engine.studies._group_tests import AgreementCounts, GroupTest, count_agreement, g_test, t_test


@pytest.mark.parametrize("seed", range(5))
def test_t_is_scipys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = rng.random(60) < 0.3
    values = rng.normal(size=60) * (1 + group) + 0.5 * group
    theirs = stats.ttest_ind(values[group], values[~group], equal_var=False)
    found = t_test(values, group)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.sign == np.sign(theirs.statistic)


@pytest.mark.parametrize("seed", range(5))
def test_g_is_scipys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    group, codes = rng.random(200) < 0.3, rng.integers(4, size=200)
    table = np.array([[np.sum((codes == level) & (group == side)) for level in range(4)] for side in (True, False)])
    theirs = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
    assert g_test(codes, group).p == pytest.approx(theirs.pvalue)
    assert g_test(codes * 3, group).p == pytest.approx(theirs.pvalue), "levels that nobody has do not count"


def rejections(shift: float, repeats: int, seed: int) -> np.ndarray:
    """How often both tests find a group whose mean is shifted."""
    rng = np.random.default_rng(seed)
    found = np.zeros(2)
    for _ in range(repeats):
        group = rng.random(150) < 0.4
        values = rng.normal(size=150) + shift * group
        levels = (values > 0).astype(np.int64) + (values > 1)
        found += np.array([t_test(values, group).p, g_test(levels, group).p]) < 0.05
    return found / repeats


@pytest.mark.slow
def test_both_keep_their_level_and_find_what_is_there() -> None:
    assert rejections(0.0, 4000, 9) == pytest.approx(np.full(2, 0.05), abs=0.012)
    assert (rejections(0.9, 100, 10) > 0.9).all(), "the control: a real difference"


def test_samples_without_spread() -> None:
    group = np.array([True, True, False, False])
    assert t_test(np.array([1.0, 1, 2, 2]), group) == GroupTest(0.0, -1)
    assert t_test(np.full(4, 0.1), group) == GroupTest(1.0, 0)
    assert t_test(np.arange(4.0), np.array([True, False, False, False])).p == 1
    assert g_test(np.zeros(4, dtype=np.int64), group).p == 1
    assert g_test(np.arange(4), np.zeros(4, dtype=bool)).p == 1
    assert g_test(np.array([], dtype=np.int64), np.array([], dtype=bool)).p == 1


def test_errors_by_their_names() -> None:
    yes, no, opposite = GroupTest(0.01, 1), GroupTest(0.5, 1), GroupTest(0.01, -1)
    assert count_agreement([(yes, yes), (no, no)], 0.05) == AgreementCounts(2)
    assert count_agreement([(yes, no)], 0.05) == AgreementCounts(1, lost=1)
    assert count_agreement([(no, yes)], 0.05) == AgreementCounts(1, spurious=1)
    assert count_agreement([(yes, opposite)], 0.05) == AgreementCounts(1, sign_flip=1)
    assert count_agreement([(no, GroupTest(0.5, -1))], 0.05).errors == 0, (
        "signs of what is not significant do not matter"
    )
