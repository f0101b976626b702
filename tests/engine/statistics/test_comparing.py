"""Comparisons with limits: rounding decides nothing, and what is further away does."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
from sfumato.engine.adversary.likeness import share_standard_error
from sfumato.engine.statistics.combining import monte_carlo_mean
from sfumato.engine.statistics.comparing import distance_from_limit, is_above, is_below

COUNTS = st.integers(1, 10**9)


@given(st.integers(0, 10**9), COUNTS, st.integers(1, 60))
def test_a_mean_of_equal_shares_is_the_share(count: int, records: int, datasets: int) -> None:
    share = min(count, records) / records
    found = monte_carlo_mean([share] * datasets)[0]
    assert found == share
    assert not is_above(sum([share] * datasets) / datasets, share)
    assert not is_below(sum([share] * datasets) / datasets, share)
    assert distance_from_limit(sum([share] * datasets) / datasets, share) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_mean_is_never_beyond_its_values(values: list[float]) -> None:
    assert min(values) <= monte_carlo_mean(values)[0] <= max(values)


@given(st.integers(0, 10**9), st.integers(0, 10**9), COUNTS)
def test_shares_of_other_counts_are_told_apart(first: int, second: int, records: int) -> None:
    one, other = min(first, records), min(second, records)
    assert is_above(one / records, other / records) is (one > other)
    assert is_below(one / records, other / records) is (one < other)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.permutations(range(6)))
def test_sums_in_another_order_are_equal(sizes: list[int], order: list[int]) -> None:
    """The share of people who are found, 1 / f each: its exact value, and two sums of floats."""
    exact = sum((Fraction(1, size) for size in sizes), Fraction(0)) / len(sizes)
    for values in (sizes, sizes[::-1], sorted(sizes)):
        found = sum(1 / size for size in values) / len(values)
        assert not is_above(found, float(exact))
        assert not is_below(found, float(exact))


def test_by_hand() -> None:
    assert sum([0.1] * 3) > 0.3
    assert not is_above(sum([0.1] * 3), 0.3)
    assert is_above(1e-9, 0.0), "one of 10^9 records"
    assert not is_above(math.nan, 0.5)
    assert not is_below(math.nan, 0.5)
    assert not is_above(1.0, math.inf)
    assert is_above(1.0, -math.inf)
    assert is_below(1.0, math.inf)
    assert is_above(np.array([0.5, 0.5 + 1e-15, 0.6]), 0.5).tolist() == [False, False, True]
    assert is_above(1e12 + 1, 1e12 - 1)


@pytest.mark.parametrize("classes", [10, 20, 30, 70])
def test_an_average_risk_that_equals_its_limit_is_kept_to(classes: int) -> None:
    """Classes of ten have an average of .1, however .1 times the records is rounded."""
    limits = KeptColumnLimits(None, 0.1)
    assert limits.count_unprotected_in(np.full(classes, 10)) == 0
    assert KeptColumnLimits(None, 1 / 3).count_unprotected_in(np.full(classes, 3)) == 0
    assert limits.count_unprotected_in(np.full(classes, 9)) == 9 * classes


def test_the_error_of_a_share_that_rounding_puts_above_one_is_nothing() -> None:
    assert share_standard_error(1 + 4e-16, 80) == 0.0
    assert share_standard_error(0.5, 100) == 0.05
