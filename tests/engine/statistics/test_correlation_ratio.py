"""The correlation ratio against closed forms."""

import math

import numpy as np
import pytest

from sfumato.engine.statistics.correlation_ratio import correlation_ratio


@pytest.mark.parametrize(("half", "apart"), [(2, 1.0), (10, 3.0), (50, 0.5)])
def test_two_balanced_groups_have_their_closed_form(half, apart):
    # Group means are apart by d; within a group half of the values are 1 above and half 1 below the mean, so that the
    # sums of squares are n within, and n (1 + d^2 / 4) in all.
    n = 4 * half
    x = np.repeat([0.0, 1.0], n // 2)
    y = apart * x + np.tile([-1.0, 1.0], n // 2)
    expected = 1 - (n / (n - 2)) / (n * (1 + apart**2 / 4) / (n - 1))
    assert correlation_ratio(y, x) == pytest.approx(math.sqrt(max(0.0, expected)))


def test_it_is_the_one_of_the_f_statistic():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 4, 200).astype(float)
    y = x + rng.normal(size=200)
    groups = [y[x == level] for level in range(4)]
    between = sum(len(one) * (one.mean() - y.mean()) ** 2 for one in groups) / 3
    f = between / (sum(((one - one.mean()) ** 2).sum() for one in groups) / 196)
    # Epsilon squared from F (Carroll and Nordholm 1975).
    assert correlation_ratio(y, x) ** 2 == pytest.approx(3 * (f - 1) / (3 * f + 196))


def test_groups_that_explain_all_and_nothing():
    x = np.array([0.0, 0.0, 1.0, 1.0])
    assert correlation_ratio(x, x) == 1
    assert correlation_ratio(np.array([0.0, 1.0, 0.0, 1.0]), x) == 0
    assert math.isnan(correlation_ratio(np.ones(4), x)), "nothing varies"
    assert math.isnan(correlation_ratio(x, np.arange(4.0))), "every record is a group of its own"
    assert math.isnan(correlation_ratio(np.zeros(0), np.zeros(0)))


def test_numbers_are_grouped_by_edges_and_missing_values_do_not_count():
    x = np.array([1.0, 2.0, 8.0, 9.0, np.nan, 1.0])
    y = np.array([0.0, 0.0, 1.0, 1.0, 5.0, np.nan])
    assert correlation_ratio(y, x, np.array([5.0])) == 1
