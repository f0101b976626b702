from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import t

from sfumato.engine.data.intervals import (
    AT_LEAST_ONE,
    AT_MOST_ONE,
    NON_NEGATIVE,
    SHARE,
    UNBOUNDED,
    Range,
    bounded_interval,
)
from sfumato.engine.statistics.combining import monte_carlo_mean

RANGES: tuple[Range, ...] = (UNBOUNDED, NON_NEGATIVE, AT_LEAST_ONE, AT_MOST_ONE, SHARE, (0.0, 0.25), (-3.0, 365.0))
Draws = Callable[[np.random.Generator, int], np.ndarray]
Interval = Callable[[float, float, Range], tuple[float, float]]


def ends(within: Range) -> tuple[float, float]:
    low, high = within
    return -math.inf if low is None else low, math.inf if high is None else high


@st.composite
def values_in(draw: st.DrawFn) -> tuple[Range, list[float]]:
    within = draw(st.sampled_from(RANGES))
    low, high = (max(ends(within)[0], -1e6), min(ends(within)[1], 1e6))
    return within, draw(st.lists(st.floats(low, high), min_size=2, max_size=6))


@pytest.mark.parametrize(
    ("value", "within", "lower", "upper"),
    [
        (2.0, UNBOUNDED, 1.5, 2.5),
        (2.0, NON_NEGATIVE, 2 * np.exp(-0.25), 2 * np.exp(0.25)),
        (2.0, AT_LEAST_ONE, 1 + np.exp(-0.5), 1 + np.exp(0.5)),
        (0.5, AT_MOST_ONE, 1 - 0.5 * np.exp(1), 1 - 0.5 * np.exp(-1)),
        (0.2, SHARE, expit(logit(0.2) - 0.5 / 0.16), expit(logit(0.2) + 0.5 / 0.16)),
        (3.0, (2.0, 6.0), 2 + 4 * expit(-np.log(3) - 2 / 3), 2 + 4 * expit(-np.log(3) + 2 / 3)),
    ],
)
def test_the_scale_follows_from_the_range(value: float, within: Range, lower: float, upper: float) -> None:
    assert bounded_interval(value, 0.5, within) == pytest.approx((lower, upper))


@pytest.mark.parametrize(
    ("value", "within", "expected"),
    [
        (0.0, NON_NEGATIVE, (0, 0.5)),
        (1.0, SHARE, (0.5, 1)),
        (0.0, (0.0, 0.25), (0, 0.25)),
        (1.0, AT_MOST_ONE, (0.5, 1)),
    ],
)
def test_at_an_end_the_interval_is_the_symmetric_one_cut_there(
    value: float, within: Range, expected: tuple[float, float]
) -> None:
    assert bounded_interval(value, 0.5, within) == expected
    assert bounded_interval(value, 0.0, within) == (value, value)


def test_a_value_that_rounding_put_beyond_an_end_has_an_interval_that_holds_it() -> None:
    beyond = 1 + 1e-12
    assert bounded_interval(beyond, 0.1, SHARE) == (pytest.approx(0.9), beyond)


@settings(derandomize=True, deadline=None)
@given(values_in(), st.floats(0, 1e9))
@example((NON_NEGATIVE, [5e-324, 1e-300]), 1e6)
@example((SHARE, [1 - 1e-16, 1.0]), 1e-9)
def test_intervals_of_any_width_hold_their_value_and_stay_inside(made: tuple[Range, list[float]], half: float) -> None:
    within, values = made
    low, high = ends(within)
    for value in values:
        lower, upper = bounded_interval(value, half, within)
        assert low <= lower <= value <= upper <= high
        assert math.isfinite(lower)
        assert math.isfinite(upper)
    mean, bottom, top = monte_carlo_mean(values, within=within)
    assert bottom is not None
    assert top is not None
    assert low - 1e-9 <= bottom <= mean <= top <= high + 1e-9


@settings(derandomize=True, deadline=None)
@given(values_in(), st.floats(0, 100), st.floats(1, 3))
def test_a_wider_half_width_never_gives_a_shorter_arm(
    made: tuple[Range, list[float]], half: float, more: float
) -> None:
    within, values = made
    for value in values:
        narrow, wide = (bounded_interval(value, width, within) for width in (half, more * half))
        assert wide[0] <= narrow[0] + 1e-9 * abs(narrow[0])
        assert wide[1] >= narrow[1] - 1e-9 * abs(narrow[1])


@settings(derandomize=True, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=6))
def test_the_arm_away_from_the_end_is_at_least_as_long_as_the_symmetric_one(values: list[float]) -> None:
    mean, lower, upper = monte_carlo_mean(values, within=NON_NEGATIVE)
    plain = monte_carlo_mean(values)
    assert upper >= plain[2] * (1 - 1e-12)  # type: ignore[operator]
    assert lower >= plain[1] - 1e-9 * mean  # type: ignore[operator]


@settings(derandomize=True, deadline=None)
@given(st.floats(-20, 20), st.floats(0, 30))
def test_shares_and_their_complements_have_mirrored_intervals(odds: float, h: float) -> None:
    p = float(expit(odds))
    half = h * p * (1 - p)
    lower, upper = bounded_interval(p, half, SHARE)
    assert bounded_interval(1 - p, half, SHARE) == pytest.approx((1 - upper, 1 - lower), abs=1e-7)


def test_far_from_the_ends_the_interval_is_the_symmetric_one() -> None:
    assert bounded_interval(5e8, 1.0, (0.0, 1e9)) == pytest.approx((5e8 - 1, 5e8 + 1), rel=1e-15)


def test_two_datasets_say_little_but_never_something_infinite() -> None:
    """One of two datasets with a match: 0.5, and a t of 12.7 on the log scale."""
    assert monte_carlo_mean([0.0, 1.0], within=NON_NEGATIVE)[1:] == pytest.approx(
        (0.5 * np.exp(-12.7062), 0.5 * np.exp(12.7062)), rel=1e-3
    )
    assert bounded_interval(1e-300, 2.0, NON_NEGATIVE) == (0, 2)


Case = tuple[Draws, float, Range]

SKEWED: dict[str, Case] = {
    "shares near 0": (lambda rng, m: rng.beta(0.3, 3, m), 0.3 / 3.3, SHARE),
    "shares near 1": (lambda rng, m: rng.beta(3, 0.3, m), 3 / 3.3, SHARE),
    "shares at both ends": (lambda rng, m: rng.beta(0.5, 0.5, m), 0.5, SHARE),
    "exponential": (lambda rng, m: rng.exponential(size=m), 1.0, NON_NEGATIVE),
    "lognormal": (lambda rng, m: rng.lognormal(size=m), math.exp(0.5), NON_NEGATIVE),
    "squares": (lambda rng, m: rng.chisquare(1, m), 1.0, NON_NEGATIVE),
    "overlaps": (lambda rng, m: 1 - rng.exponential(size=m), 0.0, AT_MOST_ONE),
}


AWAY_FROM_THE_END: Case = (
    lambda rng, m: np.maximum(20 - rng.exponential(5, m), 0),
    15 + 5 * math.exp(-4),
    NON_NEGATIVE,
)


def symmetric(value: float, half: float, within: Range) -> tuple[float, float]:
    return value - half, value + half


def with_its_arms_exchanged(value: float, half: float, within: Range) -> tuple[float, float]:
    """The negative control: the long arm, as wide as ever, lies towards the end."""
    lower, upper = bounded_interval(value, half, within)
    return 2 * value - upper, 2 * value - lower


def coverage(case: Case, m: int, samples: int, interval: Interval) -> float:
    """The share of samples of m whose 95 % interval holds the mean of their distribution."""
    draws, truth, within = case
    rng = np.random.default_rng(m)
    factor = t.isf(0.025, m - 1) / np.sqrt(m)
    hits = 0
    for _ in range(samples):
        values = draws(rng, m)
        lower, upper = interval(float(values.mean()), float(factor * values.std(ddof=1)), within)
        hits += lower <= truth <= upper
    return hits / samples


def assert_it_covers_as_well(name: str, m: int, samples: int) -> None:
    plain, ours, wrong = (
        coverage(SKEWED[name], m, samples, way) for way in (symmetric, bounded_interval, with_its_arms_exchanged)
    )
    assert ours > plain, (ours, plain)
    assert wrong < plain, (wrong, plain)


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3, 5, 20])
@pytest.mark.parametrize("name", ["shares near 0", "exponential", "overlaps"])
def test_intervals_of_skewed_values_cover_more_often_than_symmetric_ones(name: str, m: int) -> None:
    assert_it_covers_as_well(name, m, 1500)


@pytest.mark.study
@pytest.mark.parametrize("m", [2, 3, 5, 20])
@pytest.mark.parametrize("name", list(SKEWED))
def test_intervals_of_many_samples_of_skewed_values_cover_more_often_than_symmetric_ones(name: str, m: int) -> None:
    assert_it_covers_as_well(name, m, 40_000)


@pytest.mark.study
@pytest.mark.parametrize("m", [2, 3, 5, 20])
def test_where_the_skew_points_away_from_the_end_one_per_cent_of_coverage_is_the_price(m: int) -> None:
    """Values that crowd far above 0 with a tail towards it: the arm down is the shorter one, and they lie there."""
    plain, ours = (coverage(AWAY_FROM_THE_END, m, 40_000, way) for way in (symmetric, bounded_interval))
    assert plain - 0.01 < ours < plain
