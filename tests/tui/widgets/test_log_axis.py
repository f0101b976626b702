"""A logarithmic axis: where values fall, which ticks it has, and what has no place on it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from sfumato.tui.widgets.chart import draw_chart, draw_chart_text
from sfumato.tui.widgets.frame import ChartStyle, PlotLabels
from sfumato.workspace.plots.axes import DotScale, log_ticks
from sfumato.workspace.plots.series import Series, y_limits


@seed(3)
@settings(max_examples=100, deadline=None)
@given(st.floats(-200, 200), st.floats(0.01, 40), st.floats(0, 1), st.booleans())
def test_equal_ratios_are_equal_distances(low: float, decades: float, share: float, downward: bool) -> None:
    scale = DotScale(10.0**low, 10.0 ** (low + decades), 101, downward, log=True)
    dots = scale.to_dots(np.array([10.0 ** (low + share * decades)]))
    assert dots[0] == pytest.approx(100 * (1 - share if downward else share), abs=1e-6)
    assert math.log10(scale.to_data(float(dots[0]))) == pytest.approx(low + share * decades, abs=1e-6)


def test_what_is_not_above_0_has_no_place() -> None:
    dots = DotScale(0.1, 10.0, 50, log=True).to_dots(np.array([0.0, -1.0, np.nan, 1.0]))
    assert np.isfinite(dots).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0.5, 200.0, 12, [0.5, 1, 2, 5, 10, 20, 50, 100, 200]),
        (0.5, 200.0, 6, [1, 3, 10, 30, 100]),
        (0.5, 2000.0, 4, [1, 10, 100, 1000]),
        (1e-6, 1e6, 7, [1e-6, 1e-4, 1e-2, 1e0, 1e2, 1e4, 1e6]),
        (3.1, 4.2, 3, [3.5, 4.0]),
    ],
)
def test_ticks_are_decades_and_round_values_between_them(
    low: float, high: float, most: int, expected: list[float]
) -> None:
    assert log_ticks(low, high, most) == pytest.approx(expected)


@pytest.mark.slow
@seed(5)
@settings(max_examples=200, deadline=None)
@given(st.floats(-100, 100), st.floats(0.01, 50), st.integers(1, 20))
def test_ticks_lie_inside_and_are_no_more_than_asked_for(low: float, decades: float, most: int) -> None:
    ends = 10.0**low, 10.0 ** (low + decades)
    ticks = log_ticks(*ends, most)
    assert ticks.size <= most
    assert (np.diff(ticks) > 0).all()
    assert ((ticks >= ends[0] * (1 - 1e-6)) & (ticks <= ends[1] * (1 + 1e-6))).all()


def test_the_range_is_that_of_what_can_be_shown() -> None:
    series = [Series("a", [0, 1, 2], [0.0, 0.1, 10.0], [-1.0, 0.0, 5.0], [1.0, 1.0, 20.0])]
    assert y_limits(series, (0, 2), log=True) == (0.1, 20.0)
    assert y_limits([Series("a", [0, 1], [0.0, -1.0])], (0, 1), log=True) is None
    low, high = y_limits(series, (0, 2)) or (0, 0)
    assert (low, high) == (-1.0, 20.0)


def test_an_exponential_is_a_straight_line_and_its_ticks_are_decades() -> None:
    x = np.arange(5.0)
    series = [Series("a", x, 10.0**x)]
    chart = draw_chart(series, (50, 24), PlotLabels(log_y=True), ChartStyle())
    straight = draw_chart([Series("a", x, x)], (50, 24), PlotLabels(), ChartStyle())
    assert chart.frame is not None
    assert [label for _, label in chart.frame.y_ticks][::-1] == ["10,000", "1,000", "100", "10", "1"]
    left, other = chart.frame.left, straight.frame.left if straight.frame else 0
    shape = chart.picture.characters[2:20, left:] != " "
    plain = straight.picture.characters[2:20, other:] != " "
    assert np.flatnonzero(shape.any(axis=1)).tolist() == np.flatnonzero(plain.any(axis=1)).tolist()


def test_a_band_that_reaches_0_runs_down_to_the_axis() -> None:
    series = [Series("a", [0, 1], [1.0, 10.0], [0.0, 0.0], [2.0, 20.0])]
    chart = draw_chart(series, (40, 16), PlotLabels(log_y=True), ChartStyle())
    assert chart.frame is not None
    area = chart.picture.fills[chart.frame.top : chart.frame.top + chart.frame.rows, chart.frame.left :]
    assert (area[-1] > 0).mean() > 0.9


def test_a_plot_without_a_value_above_0_says_that_there_is_nothing() -> None:
    chart = draw_chart([Series("a", [0, 1], [0.0, -1.0])], (40, 10), PlotLabels(log_y=True), ChartStyle())
    assert chart.frame is None
    assert "nothing to draw" in "".join(chart.picture.row_text(5))
    assert "nothing" not in draw_chart_text([Series("a", [0, 1], [0.0, -1.0])], 40, 10)
