import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.workspace.plots.series import Series, point_positions, x_limits, y_limits

values = st.lists(st.integers(-100_000, 100_000).map(lambda n: n / 1000), min_size=2, max_size=20)


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(values, values, st.floats(-120, 120))
def test_a_line_is_read_as_numpy_interpolates_it(x, y, at):
    size = min(len(x), len(y))
    x, y = np.unique(x[:size]), np.array(y[: np.unique(x[:size]).size])
    reading = Series("a", x, y, y - 1, y + 1).read_at(at)
    expected = np.interp(at, x, y, left=np.nan, right=np.nan)
    if np.isnan(expected):
        assert reading.value is reading.lower is None
    else:
        assert (reading.value, reading.lower, reading.upper) == pytest.approx((expected, expected - 1, expected + 1))


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=20), st.floats(-1, 21))
def test_an_empirical_distribution_is_read_as_the_share_of_values_at_most_x(sample, at):
    x = np.sort(np.array(sample, dtype=float))
    reading = Series("F", x, np.arange(1, x.size + 1) / x.size, marker="steps").read_at(at)
    if x[0] <= at <= x[-1]:
        assert reading.value == pytest.approx(np.mean(x <= at))
    else:
        assert reading.value is None


def test_points_are_read_only_nearby_and_gaps_say_nothing():
    points = Series("p", [3, 1, 2], [30, 10, np.nan], marker="points")
    assert points.read_at(1.04, 0.05).value == 10
    assert points.read_at(1.4, 0.05).value is None
    assert points.read_at(2, 0.05).value is None
    line = Series("l", [1, 2, 3], [10, np.nan, 30])
    assert line.read_at(1.5).value is None
    assert line.read_at(3).value == 30


def test_unsorted_lines_are_read_by_x():
    assert Series("a", [3, 1, 2], [30, 10, 20]).read_at(1.5).value == 15


def test_a_series_copies_its_data_and_keeps_it():
    x = np.arange(3.0)
    series = Series("a", x, x)
    x[0] = 99
    assert series.x[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        series.x[0] = 1


def test_impossible_series_are_refused():
    with pytest.raises(ValueError, match=r"lengths differ: \{'x': 2, 'y': 1\}"):
        Series("a", [1, 2], [1])
    with pytest.raises(ValueError, match="both lower and upper"):
        Series("a", [1], [1], lower=[0])
    with pytest.raises(ValueError, match="not 'dashes'"):
        Series("a", [1], [1], marker="dashes")


def test_limits_cover_bands_bars_and_what_a_line_does_between_its_points():
    line = Series("a", [0, 10], [0, 10], [-1, 8], [1, 12])
    assert x_limits([line]) == (0, 10)
    assert y_limits([line], (0, 10)) == (-1, 12)
    assert y_limits([line], (2, 4)) == pytest.approx((0.8, 5.4))
    bars = Series("b", [1, 2, 4], [5, 6, 7], marker="bars")
    assert x_limits([bars]) == (0.5, 4.5)
    assert y_limits([bars], (0.5, 4.5)) == (0, 7)
    assert x_limits([]) is None
    assert y_limits([Series("c", [1], [np.nan])], (0, 1)) is None


def test_the_cursor_can_stop_at_every_value_once():
    assert point_positions([Series("a", [1, 3, np.nan], [1, 1, 1]), Series("b", [3, 2], [0, np.nan])]).tolist() == [
        1,
        3,
    ]
    assert point_positions([]).size == 0
