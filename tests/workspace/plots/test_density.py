"""Binned kernel densities beside the exact sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_places import CountingPlace
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gaussian_kde, norm

from sfumato.engine.data.long_arrays import placing_long_arrays
from sfumato.workspace.plots.column import (
    curve_points,
    default_kernel_density,
    is_sparse_at,
    kernel_density,
    prefers_log,
    silverman_bandwidth,
    trimmed_range,
)


def exact(values: np.ndarray, points: np.ndarray, width: float) -> np.ndarray:
    return norm.pdf(points[:, None], values, width).mean(axis=1)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40), st.floats(0.5, 20), st.integers(2, 30))
def test_the_binned_density_is_the_exact_one(values: list[float], width: float, count: int) -> None:
    points = np.linspace(-60, 60, count)
    found = kernel_density(np.array(values), points, width)
    wanted = exact(np.array(values), points, width)
    np.testing.assert_allclose(found, wanted, atol=2e-3 / width)


def test_it_agrees_with_scipy_on_skewed_data_and_another_bandwidth_does_not() -> None:
    values = np.random.default_rng(3).lognormal(0, 0.7, 3000)
    points = np.linspace(0, 6, 150)
    width = silverman_bandwidth(values)
    wanted = gaussian_kde(values, width / values.std(ddof=1))(points)
    gap = np.abs(kernel_density(values, points, width) - wanted).max() / wanted.max()
    wrong = np.abs(kernel_density(values, points, 1.5 * width) - wanted).max() / wanted.max()
    assert gap < 1e-3
    assert wrong > 0.03


def test_values_outside_the_points_still_count_as_records() -> None:
    values = np.concatenate([np.zeros(500), np.full(500, 1e6)])
    assert kernel_density(values, np.array([-1.0, 0.0, 1.0]), 1.0)[1] == pytest.approx(0.5 * norm.pdf(0), rel=2e-3)


def test_silvermans_rule() -> None:
    values = np.arange(100.0)
    low, high = np.quantile(values, [0.25, 0.75])
    assert silverman_bandwidth(values) == pytest.approx(0.9 * min(values.std(ddof=1), (high - low) / 1.34) * 100**-0.2)
    assert silverman_bandwidth(np.array([1.0, 1.0, 1.0, 1.0, 9.0])) > 0
    assert silverman_bandwidth(np.full(32, 4.0)) == pytest.approx(0.9 * 32**-0.2)
    assert silverman_bandwidth(np.array([4.0])) == pytest.approx(0.9)


def test_the_log_scale_is_for_long_tails_of_positive_values() -> None:
    rng = np.random.default_rng(4)
    assert prefers_log(rng.lognormal(0, 1, 2000))
    assert not prefers_log(rng.normal(100, 5, 2000))
    assert not prefers_log(np.append(rng.lognormal(0, 1, 2000), 0.0))
    assert not prefers_log(np.full(5, 2.0))
    assert not prefers_log(np.array([1.0, 2.0]))


@pytest.mark.parametrize("skewed", [False, True])
def test_curves_of_long_columns_are_those_in_memory(skewed: bool) -> None:
    """A block at a time: the last digits of sums differ, and no picture."""

    rng = np.random.default_rng(4)
    values = rng.lognormal(3, 1.5, 1000) if skewed else rng.normal(size=1000)
    points = curve_points(float(values.min()), float(values.max()))

    def answers() -> list[Any]:
        width = silverman_bandwidth(values)
        return [width, prefers_log(values), trimmed_range(values), is_sparse_at(values, points, width / 9),
                default_kernel_density(values, points)]  # fmt: skip

    expected, place = answers(), CountingPlace()
    with placing_long_arrays(place, 64):
        found = answers()
    assert place.arrays or not skewed
    assert expected[1] == found[1] == skewed
    assert expected[2] == found[2]
    assert expected[3].any()
    assert np.array_equal(expected[3], found[3])
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(found[4], expected[4], rtol=1e-9, atol=1e-12)
