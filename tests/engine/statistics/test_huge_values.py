"""Means and standard deviations of numbers whose squares overflow or vanish: those of the scaled numbers, scaled back."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.anonymisation.microaggregation import _standardise_values
from sfumato.engine.execution.comparison import welch_half_width
from sfumato.engine.risk._guess_space import _number_grid
from sfumato.engine.statistics.columns import standard_deviation
from sfumato.engine.statistics.combining import crossed_mean, monte_carlo_mean
from sfumato.engine.statistics.estimated import ValueWithInterval, ratio_with_interval
from sfumato.engine.statistics.smoothing import smooth_donor_values
from sfumato.workspace.plots.column import silverman_bandwidth

NUMBERS = [0.3, 0.5, 0.45, 0.9, 0.55]
SCALES = [2.0**1023, 2.0**1000, 2.0**-1000, 1.0]


@pytest.mark.parametrize("scale", SCALES)
def test_spreads_and_intervals_grow_with_the_scale_and_nothing_else(scale: float) -> None:
    own = np.array(NUMBERS) * scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert standard_deviation(own, 1) == pytest.approx(float(np.std(NUMBERS, ddof=1)) * scale, rel=1e-12)
        mean, lower, upper = monte_carlo_mean(own.tolist())
        assert np.array([mean, lower, upper]) / scale == pytest.approx(np.array(monte_carlo_mean(NUMBERS)), rel=1e-12)
        half, plain = welch_half_width(own[:3].tolist(), own[3:].tolist()), welch_half_width(NUMBERS[:3], NUMBERS[3:])
        assert half is not None
        assert plain is not None
        assert half / scale == pytest.approx(plain, rel=1e-12)
        assert silverman_bandwidth(own) / scale == pytest.approx(silverman_bandwidth(np.array(NUMBERS)), rel=1e-12)
        assert _standardise_values(own) == pytest.approx(_standardise_values(np.array(NUMBERS)), rel=1e-12)


@pytest.mark.parametrize("scale", SCALES[1:])
def test_cells_of_guesses_do_not_depend_on_the_scale(scale: float) -> None:
    """More than half of the values are equal, so that the standard deviation stands in for the quartiles."""
    numbers = np.concatenate([np.full(60, 0.25), np.linspace(0.001, 1, 30)])
    values, edges = _number_grid(numbers, 10)
    own_values, own_edges = _number_grid(numbers * scale, 10)
    assert own_values / scale == pytest.approx(values)
    assert own_edges / scale == pytest.approx(edges)


POWERS = st.integers(-900, 1019)
"""Exponents of a power of two that leave the numbers of these tests, and their intervals, inside the range of floats."""


@given(st.integers(0, 9), st.sampled_from([(4, 5), (2, 3), (3, 2)]), POWERS)
def test_a_crossed_layout_times_a_power_of_two_has_that_multiple_of_its_mean_and_interval_and_equal_shares(
    seed: int, shape: tuple[int, int], power: int
) -> None:
    values = np.random.default_rng(seed).normal(size=shape)
    plain = crossed_mean(values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = crossed_mean(np.ldexp(values, power))
        figures = [found.estimate, found.standard_error, *found.interval()]
    assert figures == np.ldexp([plain.estimate, plain.standard_error, *plain.interval()], power).tolist()
    assert (found.shares, found.combined) == (plain.shares, plain.combined)


@given(st.integers(0, 9), POWERS)
def test_smoothed_values_times_a_power_of_two_are_that_multiple(seed: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    donors, group = rng.normal(size=12), np.arange(12) % 3
    values, noise = donors[::-1], rng.normal(size=12)
    plain = smooth_donor_values(values, group[::-1], donors, group, lambda _: noise)
    scaled = [np.ldexp(one, power) for one in (values, donors)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = smooth_donor_values(scaled[0], group[::-1], scaled[1], group, lambda _: noise)
    assert found.tolist() == np.ldexp(plain, power).tolist()


@given(st.sampled_from([(3.0, 2.5, 3.75), (0.5, 0.25, 0.625), (0.0, 0.0, 0.5)]), POWERS, POWERS)
def test_a_ratio_of_two_multiples_is_that_multiple_of_the_ratio(
    value: tuple[float, float, float], power: int, other_power: int
) -> None:
    other = (2.0, 1.5, 2.75)
    power = max(other_power - 900, min(power, other_power + 900))
    plain = ratio_with_interval(ValueWithInterval(*value), ValueWithInterval(*other))
    found = ratio_with_interval(
        ValueWithInterval(*np.ldexp(value, power).tolist()), ValueWithInterval(*np.ldexp(other, other_power).tolist())
    )
    figures = [plain.value, plain.lower, plain.upper]
    assert [found.value, found.lower, found.upper] == np.ldexp(figures, power - other_power).tolist()


def test_squares_without_a_scale_would_overflow() -> None:
    """The negative control: the variance of the same layout by its definition is not a number."""
    values = np.ldexp(np.random.default_rng(0).normal(size=(4, 5)), 1000)
    with np.errstate(over="ignore"):
        assert not np.isfinite(values.var())
    assert np.isfinite(crossed_mean(values).interval()).all()
