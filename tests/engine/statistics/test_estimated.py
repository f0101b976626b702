"""Limits of differences and ratios of estimates, against closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.engine.statistics.estimated import Estimated, difference, ratio, widening

Z = float(norm.ppf(0.975))


def test_the_interval_of_a_difference_of_normal_means_is_the_textbooks() -> None:
    found = difference(Estimated(5, 5 - 3 * Z, 5 + 3 * Z), Estimated(2, 2 - 4 * Z, 2 + 4 * Z))
    assert (found.value, found.lower, found.upper) == (3, pytest.approx(3 - 5 * Z), pytest.approx(3 + 5 * Z))


def test_the_interval_of_a_ratio_of_normal_means_is_fiellers() -> None:
    """Donner & Zou (2012), §2: with symmetric limits their interval is Fieller's."""
    a, b, s, t = 4.0, 5.0, 0.6, 0.4
    found = ratio(Estimated(a, a - Z * s, a + Z * s), Estimated(b, b - Z * t, b + Z * t))
    roots = np.roots([b * b - (Z * t) ** 2, -2 * a * b, a * a - (Z * s) ** 2])
    assert (found.lower, found.upper) == (pytest.approx(min(roots)), pytest.approx(max(roots)))


def test_a_ratio_has_no_upper_end_where_the_denominator_may_be_0() -> None:
    assert ratio(Estimated(1, 0.5, 1.5), Estimated(1, 0, 2)).upper == math.inf
    assert ratio(Estimated(1, 1, 1), Estimated(2, 2, 2)) == Estimated(0.5, 0.5, 0.5)
    assert ratio(Estimated(0, 0, 0.1), Estimated(1, 0.9, 1.1)).lower == 0


def test_without_an_interval_of_both_there_is_none() -> None:
    assert difference(Estimated(1), Estimated(2, 1, 3)).ends is None
    assert ratio(Estimated(1, 0.5, 2), Estimated(2)).ends is None


@pytest.mark.parametrize("series", [1, 2, 10])
def test_the_widening_is_that_of_sidak(series: int) -> None:
    half = Z * widening(series)
    assert (2 * norm.cdf(half) - 1) ** series == pytest.approx(0.95)
