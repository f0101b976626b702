"""The area under an ROC curve pair by pair, and how often its interval covers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.adversary.areas import area_interval, roc_area

scores = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(scores, scores)
def test_the_area_is_the_share_of_pairs(above: list[int], below: list[int]) -> None:
    pairs = [(a > b) + (a == b) / 2 for a in above for b in below]
    assert roc_area(np.array(above), np.array(below)) == pytest.approx(sum(pairs) / len(pairs))


@given(st.floats(0, 1), st.integers(1, 500), st.integers(1, 500))
def test_the_ends_are_as_far_as_the_variance_there_says(found: float, m: int, n: int) -> None:
    """Hanley & McNeil: θ(1 - θ) + N*(Q1 - θ²) + N*(Q2 - θ²), Q1 = θ / (2 - θ), Q2 = 2θ² / (1 + θ)."""
    lower, upper = area_interval(found, m, n)
    assert 0 <= lower <= found + 1e-12
    assert found - 1e-12 <= upper <= 1
    for end in (lower, upper):
        if 1e-9 < end < 1 - 1e-9:
            q1, q2, star = end / (2 - end), 2 * end**2 / (1 + end), (m + n) / 2 - 1
            variance = (end * (1 - end) + star * (q1 - end**2) + star * (q2 - end**2)) / (m * n)
            assert (found - end) ** 2 == pytest.approx(1.959964**2 * variance, rel=1e-4, abs=1e-11)


def test_scores_that_are_all_apart_have_an_interval_too() -> None:
    lower, upper = area_interval(1.0, 100, 100)
    assert upper == 1
    assert 0.97 < lower < 0.99
    assert area_interval(0.0, 100, 100) == pytest.approx((1 - upper, 1 - lower))


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "m", "n"), [(0.0, 400, 100), (1.0, 60, 90), (2.0, 50, 50)])
def test_the_interval_covers_95_per_cent(shift: float, m: int, n: int) -> None:
    rng = np.random.default_rng(7)
    truth = 0.5 * (1 + math.erf(shift / 2))
    hits = wrong = 0
    for _ in range(1000):
        found = roc_area(rng.normal(shift, 1, m), rng.normal(0, 1, n))
        lower, upper = area_interval(found, m, n)
        hits += lower <= truth <= upper
        wrong += lower <= truth + 0.15 <= upper
    assert 930 <= hits <= 985
    assert wrong < 800, "an area that is not the true one is not covered so often"
