"""Welch's interval, against SciPy's and by its coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_ind

from sfumato.engine.execution.comparison import welch_half_width

SAMPLE = st.lists(st.integers(-1000, 1000), min_size=2, max_size=12).filter(lambda sample: len(set(sample)) > 1)


@pytest.mark.slow
@given(SAMPLE, SAMPLE, st.sampled_from([0.5, 0.9, 0.95]))
def test_it_is_scipys_interval(first: list[float], second: list[float], confidence: float) -> None:
    interval = ttest_ind(second, first, equal_var=False).confidence_interval(confidence)
    assert welch_half_width(first, second, confidence) == pytest.approx((interval.high - interval.low) / 2)


def test_against_a_sample_without_spread_it_is_students_interval_of_the_other() -> None:
    sample = [1.0, 4.0, 2.0, 2.5]
    low, high = t.interval(0.95, 3, 0, np.std(sample, ddof=1) / 2)
    assert welch_half_width(sample, [0.1] * 5) == pytest.approx((high - low) / 2)


def test_a_single_value_has_no_interval() -> None:
    assert welch_half_width([1.0], [1.0, 2.0]) is None
    assert welch_half_width([1.0, 2.0], []) is None


def test_equal_values_have_no_spread_even_where_their_mean_is_rounded() -> None:
    assert welch_half_width([0.1] * 3, [0.1] * 10) == 0
    assert np.std([0.1] * 3, ddof=1) > 0


def covered(width: float) -> int:
    """How many of 2,000 intervals, scaled by ``width``, hold a difference of 0 between very unlike samples."""
    rng = np.random.default_rng(1)
    count = 0
    for _ in range(2000):
        first, second = rng.normal(0, 5, 4), rng.normal(0, 1, 12)
        half = welch_half_width(list(first), list(second))
        assert half is not None
        count += abs(first.mean() - second.mean()) <= width * half
    return count


def test_95_of_100_intervals_hold_the_difference() -> None:
    assert 1860 <= covered(1.0) <= 1940


def test_a_narrower_interval_does_not() -> None:
    """The negative control."""
    assert not 1860 <= covered(0.7) <= 1940
