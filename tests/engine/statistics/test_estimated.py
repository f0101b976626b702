"""Limits of differences and ratios of estimates, against closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.engine.statistics.estimated import (
    ValueWithInterval,
    difference_with_interval,
    ratio_with_interval,
    widening_factor,
)

Z = float(norm.ppf(0.975))


def test_the_interval_of_a_difference_of_normal_means_is_the_textbooks() -> None:
    found = difference_with_interval(
        ValueWithInterval(5, 5 - 3 * Z, 5 + 3 * Z), ValueWithInterval(2, 2 - 4 * Z, 2 + 4 * Z)
    )
    assert (found.value, found.lower, found.upper) == (3, pytest.approx(3 - 5 * Z), pytest.approx(3 + 5 * Z))


def test_the_interval_of_a_ratio_of_normal_means_is_fiellers() -> None:
    """Donner & Zou (2012), §2: with symmetric limits their interval is Fieller's."""
    a, b, s, t = 4.0, 5.0, 0.6, 0.4
    found = ratio_with_interval(ValueWithInterval(a, a - Z * s, a + Z * s), ValueWithInterval(b, b - Z * t, b + Z * t))
    roots = np.roots([b * b - (Z * t) ** 2, -2 * a * b, a * a - (Z * s) ** 2])
    assert (found.lower, found.upper) == (pytest.approx(min(roots)), pytest.approx(max(roots)))


def test_a_ratio_has_no_upper_end_where_the_denominator_may_be_0() -> None:
    assert ratio_with_interval(ValueWithInterval(1, 0.5, 1.5), ValueWithInterval(1, 0, 2)).upper == math.inf
    assert ratio_with_interval(ValueWithInterval(1, 1, 1), ValueWithInterval(2, 2, 2)) == ValueWithInterval(
        0.5, 0.5, 0.5
    )
    assert ratio_with_interval(ValueWithInterval(0, 0, 0.1), ValueWithInterval(1, 0.9, 1.1)).lower == 0


def test_without_an_interval_of_both_there_is_none() -> None:
    assert difference_with_interval(ValueWithInterval(1), ValueWithInterval(2, 1, 3)).interval is None
    assert ratio_with_interval(ValueWithInterval(1, 0.5, 2), ValueWithInterval(2)).interval is None


@pytest.mark.parametrize("series", [1, 2, 10])
def test_the_widening_is_that_of_sidak(series: int) -> None:
    half = Z * widening_factor(series)
    assert (2 * norm.cdf(half) - 1) ** series == pytest.approx(0.95)
