from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm, t

from sfumato.engine.data.intervals import Range
from sfumato.engine.statistics.combining import (
    CombinedEstimate,
    combine_full_synthesis,
    combine_partial_synthesis,
    monte_carlo_mean,
)

POPULATIONS = 3000
RECORDS = 100

positive = st.floats(0.01, 100)
values = st.lists(st.floats(-100, 100), min_size=2, max_size=8)


def test_partial_synthesis_by_hand() -> None:
    """q = 4, b = 4, u = 2, m = 3: T = 2 + 4/3, df = 2 (1 + 3 * 2 / 4)^2 = 12.5."""
    found = combine_partial_synthesis([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert found == CombinedEstimate(4.0, pytest.approx(10 / 3), pytest.approx(12.5))
    assert found.interval(0.9) == pytest.approx(t.interval(0.9, 12.5, 4, np.sqrt(10 / 3)))


def test_full_synthesis_by_hand() -> None:
    """q = 4, b = 4, u = 1, m = 3: T = 16/3 - 1, df = 2 (1 - 3/16)^2 = 1.3203125."""
    found = combine_full_synthesis([2.0, 4.0, 6.0], [0.5, 1.0, 1.5])
    assert found == CombinedEstimate(4.0, pytest.approx(13 / 3), pytest.approx(2 * (13 / 16) ** 2))
    assert found.interval() == pytest.approx(t.interval(0.95, 1.3203125, 4, np.sqrt(13 / 3)))


@pytest.mark.parametrize("between", [0.0, 0.4, 0.79])
def test_a_variance_of_full_synthesis_that_is_negative_or_all_noise_is_adjusted(between: float) -> None:
    """m = 2, b = between, u = 1: T = 1.5 b - 1 is negative below 2/3, and at 0.79 it has 0.02 degrees of freedom."""
    half = np.sqrt(between / 2)
    found = combine_full_synthesis([-half, half], [1.0, 1.0], size_ratios=[2.5, 2.5])
    assert (found.variance, found.degrees_of_freedom, found.is_adjusted) == (2.5, np.inf, True)
    assert found.interval() == pytest.approx(norm.interval(0.95, 0, np.sqrt(2.5)))


def test_datasets_of_unequal_size_each_say_what_the_variance_of_the_confidential_estimate_is() -> None:
    """Variances 1 / r of sizes r = 1/2, 2, 4 are all of a confidential variance of 1; the mean ratio would make it 1.99."""
    found = combine_full_synthesis([3.0, 3.0, 3.0], [2.0, 0.5, 0.25], size_ratios=[0.5, 2.0, 4.0])
    assert (found.variance, found.is_adjusted) == (pytest.approx(1.0), True)
    assert np.mean([0.5, 2.0, 4.0]) * np.mean([2.0, 0.5, 0.25]) == pytest.approx(1.986, abs=1e-3)


def test_a_variance_of_full_synthesis_that_is_large_enough_is_not_adjusted() -> None:
    found = combine_full_synthesis([-10.0, 10.0, -10.0, 10.0], [1.0, 1.0, 1.0, 1.0])
    assert not found.is_adjusted
    assert found.variance == pytest.approx(1.25 * 400 / 3 - 1)


@settings(derandomize=True, deadline=None)
@given(values, positive)
def test_partial_variance_is_never_below_that_within(estimates: list[float], variance: float) -> None:
    found = combine_partial_synthesis(estimates, [variance] * len(estimates))
    assert found.variance >= variance * (1 - 1e-12)
    assert found.degrees_of_freedom >= len(estimates) - 1 - 1e-9


@settings(derandomize=True, deadline=None)
@given(values, positive, st.floats(0.01, 100), st.sampled_from([combine_partial_synthesis, combine_full_synthesis]))
def test_units_do_not_matter(
    estimates: list[float], variance: float, unit: float, rule: Callable[..., CombinedEstimate]
) -> None:
    if np.ptp(estimates) < 1e-3:
        return
    plain = rule(estimates, [variance] * len(estimates))
    scaled = rule([unit * q for q in estimates], [unit**2 * variance] * len(estimates))
    if plain.is_adjusted == scaled.is_adjusted:
        assert scaled.variance == pytest.approx(unit**2 * plain.variance, rel=1e-6)


def test_datasets_that_agree_have_a_normal_interval() -> None:
    found = combine_partial_synthesis([3.0, 3.0], [4.0, 4.0])
    assert found.interval() == pytest.approx(norm.interval(0.95, 3, 2))


@pytest.mark.parametrize("rule", [combine_partial_synthesis, combine_full_synthesis])
def test_one_dataset_cannot_be_combined(rule: Callable[..., CombinedEstimate]) -> None:
    with pytest.raises(ValueError, match="two or more"):
        rule([1.0], [1.0])


def test_the_monte_carlo_interval_is_that_of_student() -> None:
    mean, lower, upper = monte_carlo_mean([3.0, 5.0, 10.0], 0.9)
    assert mean == 6.0
    assert (lower, upper) == pytest.approx(t.interval(0.9, 2, 6, np.std([3, 5, 10], ddof=1) / np.sqrt(3)))


def test_the_intervals_of_combinations_and_averages_stay_inside_the_range() -> None:
    """Shares .9, .95 and 1: log odds 2.94 +- 4.303 x .0289 / (.95 x .05). On the share itself the end would be 1.074."""
    mean, lower, upper = monte_carlo_mean([0.9, 0.95, 1.0], within=(0, 1))
    h = t.isf(0.025, 2) * 0.05 / np.sqrt(3) / (0.95 * 0.05)
    assert (mean, lower, upper) == pytest.approx((0.95, expit(np.log(19) - h), expit(np.log(19) + h)))
    found = combine_partial_synthesis([0.9, 0.95, 1.0], [0.0, 0.0, 0.0]).interval(within=(0, 1))
    assert found == pytest.approx((lower, upper))
    assert monte_carlo_mean([0.9, 0.95, 1.0])[2] == pytest.approx(1.0742, abs=1e-4)


def test_values_that_are_all_alike_are_the_whole_interval() -> None:
    for value, within in ((0.1, (0, 1)), (1.0, (0, 1)), (0.0, (0, None)), (1.0, (None, 1)), (0.3, (None, None))):
        mean, lower, upper = monte_carlo_mean([value] * 3, within=within)
        assert mean == pytest.approx(value)
        assert lower == mean == upper


@pytest.mark.parametrize(("within", "right"), [((0.0, 1.0), True), ((None, None), False)])
def test_combined_intervals_of_a_small_share_cover_on_the_log_odds_and_not_on_the_share(
    within: Range, right: bool
) -> None:
    """5 % of samples of 100; three datasets each from the posterior predictive by the prior of Jeffreys."""
    rng, hits = np.random.default_rng(3), 0
    for _ in range(2000):
        found = rng.binomial(100, 0.05)
        shares = rng.binomial(100, rng.beta(found + 0.5, 100.5 - found, 3)) / 100
        lower, upper = combine_partial_synthesis(shares, shares * (1 - shares) / 99).interval(0.95, within)
        hits += lower <= 0.05 <= upper
    assert (0.94 < hits / 2000 < 0.97) == right, hits


def synthetic_means(m: int, ratio: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and their variances, (POPULATIONS, m) each, of datasets drawn from the posterior predictive of a normal sample.

    The population's mean is 0; prior proportional to 1 / sigma^2, so that the posterior is exact.
    """
    rng = np.random.default_rng(seed)
    n, size = RECORDS, RECORDS * ratio
    mean = rng.normal(size=(POPULATIONS, 1)) / np.sqrt(n)
    squares = rng.chisquare(n - 1, size=(POPULATIONS, 1))
    sigma2 = squares / rng.chisquare(n - 1, size=(POPULATIONS, m))
    drawn = mean + np.sqrt(sigma2 / n) * rng.normal(size=(POPULATIONS, m))
    q = drawn + np.sqrt(sigma2 / size) * rng.normal(size=(POPULATIONS, m))
    return q, sigma2 * rng.chisquare(size - 1, size=(POPULATIONS, m)) / (size - 1) / size


def coverage(rule: Callable[..., CombinedEstimate], q: np.ndarray, u: np.ndarray) -> float:
    intervals = [rule(*pair).interval() for pair in zip(q, u, strict=True)]
    return float(np.mean([lower <= 0 <= upper for lower, upper in intervals]))


def only_within(q: np.ndarray, u: np.ndarray) -> CombinedEstimate:
    return CombinedEstimate(float(np.mean(q)), float(np.mean(u)), np.inf)


def only_between(q: np.ndarray, u: np.ndarray) -> CombinedEstimate:
    return CombinedEstimate(float(np.mean(q)), float(np.var(q, ddof=1)) / len(q), len(q) - 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "m", "ratio", "right"),
    [
        (combine_partial_synthesis, 3, 1, True),
        (combine_partial_synthesis, 10, 1, True),
        (combine_full_synthesis, 20, 4, True),
        (combine_full_synthesis, 100, 1, True),
        (only_within, 3, 1, False),
        (only_between, 10, 1, False),
        (only_within, 20, 4, False),
        (only_between, 20, 4, False),
        (combine_partial_synthesis, 20, 4, False),
    ],
)
def test_intervals_of_a_mean_cover_as_they_should_and_naive_ones_do_not(
    rule: Callable[..., CombinedEstimate], m: int, ratio: int, right: bool
) -> None:
    """Synthetic records of a normal sample; released files as large as the sample, or four times as large."""
    assert (0.94 < coverage(rule, *synthetic_means(m, ratio, seed=5)) < 0.965) == right


def test_variances_with_few_degrees_of_freedom_widen_the_interval() -> None:
    """Satterthwaite's, of which the papers' degrees are those of variances that count as known."""
    estimates, variances = [1.0, 1.2, 0.9, 1.1], [0.04, 0.05, 0.04, 0.03]
    b, u, m, own = float(np.var(estimates, ddof=1)), float(np.mean(variances)), 4, 9.0
    known, found = combine_partial_synthesis(estimates, variances), combine_partial_synthesis(estimates, variances, own)
    total = u + b / m
    assert found.degrees_of_freedom == pytest.approx(total**2 / ((b / m) ** 2 / (m - 1) + u**2 / own))
    assert known.degrees_of_freedom == pytest.approx((m - 1) * (1 + m * u / b) ** 2)
    assert (found.estimate, found.variance) == (known.estimate, known.variance)
    assert found.interval()[0] < known.interval()[0] < known.interval()[1] < found.interval()[1]
    assert combine_partial_synthesis([1.0, 1.0], [0.04, 0.04], own).degrees_of_freedom == pytest.approx(own)
    wide = [1.0, 2.0, 0.5, 1.6]
    assert (
        combine_full_synthesis(wide, variances, degrees=own).degrees_of_freedom
        < combine_full_synthesis(wide, variances).degrees_of_freedom
    )
    assert combine_full_synthesis([1.0, 1.0, 1.0], variances[:3], degrees=own).degrees_of_freedom == own
