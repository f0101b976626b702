"""Zooming up and down, series that look alike, narrow bands, and axes of days and logarithms."""

import numpy as np
import pytest
from textual.app import App

from sfumato.tui.terminal.glyphs import BRAILLE
from sfumato.tui.widgets.canvas import SERIES
from sfumato.tui.widgets.chart import add_cursor, draw_chart, draw_chart_text, series_colours
from sfumato.tui.widgets.frame import ChartStyle, PlotLabels
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.plots.series import Series

X = np.linspace(0, 10, 11)
RISING = Series("rising", X, X)


class PlotApp(App):
    def __init__(self, log_y=False):
        super().__init__()
        self.log_y, self.views = log_y, []

    def compose(self):
        yield Plot()

    def on_mount(self):
        self.plot.set_series([Series("rising", X, X + 1)], y_label="y", log_y=self.log_y)

    def on_plot_view_changed(self, event):
        self.views.append((event.x_range, event.y_range))

    @property
    def plot(self):
        return self.query_one(Plot)


@pytest.mark.slow
async def test_z_zooms_about_the_value_at_the_cursor_and_arrows_look_higher_and_lower():
    app = PlotApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("up")
        assert app.views[-1] == ((0, 10), None)
        await pilot.press("act:zoom_in_up")
        assert app.views[-1][1] == pytest.approx((3.5, 8.5))
        await pilot.press("k")
        assert app.views[-1][1] == pytest.approx((4.75, 9.75))
        await pilot.press("down", "j", "down")
        assert app.views[-1][1] == pytest.approx((1, 6))
        await pilot.press("act:zoom_out_up")
        assert app.views[-1][1] is None
        await pilot.press("home", "act:zoom_in_up")
        assert app.views[-1][1] == pytest.approx((1, 6))
        await pilot.press("0")
        assert app.views[-1] == ((0, 10), None)


async def test_on_a_logarithmic_axis_decades_are_halved():
    app = PlotApp(log_y=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("act:zoom_in_up")
        low, high = app.views[-1][1]
        assert high / low == pytest.approx(11**0.5)
        assert (low * high) ** 0.5 == pytest.approx(11**0.5)


async def test_what_is_seen_stays_only_while_the_axis_means_the_same():
    app = PlotApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("act:zoom_in_up")
        app.plot.set_series([RISING], y_label="y", keep_view=True)
        assert app.plot._y_seen is not None
        app.plot.set_series([RISING], y_label="other", keep_view=True)
        assert app.plot._y_seen is None
        app.plot.show_ranges((2, 4), (3.0, 5.0))
        await pilot.pause()
        assert (app.plot.x_range, app.plot._y_seen) == ((2, 4), (3.0, 5.0))


def band(half):
    return draw_chart(
        [Series("a", X, X + 5, X + 5 - half, X + 5 + half)], (60, 22), PlotLabels(), ChartStyle(), y_range=(0, 20)
    )


def test_a_band_narrower_than_a_cell_is_its_line_and_a_wider_one_has_no_gaps():
    assert not band(0.3).picture.fills.any()
    chart = band(1.5)
    area = chart.picture.fills[chart.frame.top : chart.frame.top + chart.frame.rows, chart.frame.left :]
    assert (area > 0).any(axis=0).all()


def test_without_colour_a_narrow_band_is_not_hatched_either():
    look = ChartStyle(BRAILLE, False, "dots")
    bands = [Series("a", X, X + 5, X + 5 - half, X + 5 + half) for half in (0.3, 0.0)]
    narrow, none = (draw_chart([one], (60, 22), PlotLabels(), look, y_range=(0, 20)).picture for one in bands)
    assert (narrow.characters == none.characters).all()


def test_thin_series_share_a_colour_and_stay_out_of_the_key():
    series = [RISING, Series("mean", X, X / 2), *(Series("mean", X, X / 2 + i, thin=True) for i in range(5))]
    assert series_colours(series, ("a", "b", "c")) == ["a", *["b"] * 6]
    chart = draw_chart(series, (60, 20), PlotLabels(), ChartStyle())
    assert chart.frame.legend.n_shown == 2
    assert chart.frame.legend.n_left_out == 0
    key = add_cursor(chart, series, PlotLabels(), 4.0).row_text(0)
    assert "4" in key
    assert "2" in key
    at = chart.frame.cell_of(4.0, 2.0)
    assert chart.picture.inks[at] == SERIES + 1


def test_days_and_logarithms_are_named_for_what_they_are():
    days = draw_chart_text([Series("a", [17897, 18261], [0, 1])], 70, 12, x_unit="date", x_label="day")
    assert "2019-07" in days
    decades = draw_chart_text([Series("a", [0, 3], [0, 1])], 70, 12, x_unit="log10", x_label="price")
    assert "1000" in decades
    labels = PlotLabels(x_label="price", x_unit="log10")
    series = [Series("a", [0, 2, 3], [0, 1, 2])]
    chart = draw_chart(series, (70, 12), labels, ChartStyle())
    assert "price = 100" in "\n".join(add_cursor(chart, series, labels, 2.0).row_text(row) for row in range(12))
