import numpy as np
import pytest
from textual import constants
from textual.app import App

from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.plots.series import Series

LEVEL = np.linspace(0, 0.15, 16)
SWEEP = [
    Series("synthetic", LEVEL, 0.2 - LEVEL, 0.19 - LEVEL, 0.21 - LEVEL),
    Series("confidential", LEVEL, 0.4 - LEVEL),
]


class Recording(Plot):
    """A plot that notes which rows it is asked to draw."""

    def __init__(self):
        super().__init__()
        self.drawn = []

    def render_line(self, y):
        self.drawn.append(y)
        return super().render_line(y)


class PlotApp(App):
    def __init__(self, series=SWEEP, theme=None):
        super().__init__()
        self.series, self.moves = series, []
        if theme:
            self.theme = theme

    def compose(self):
        yield Recording()

    def on_mount(self):
        self.plot.set_series(self.series, x_label="level", y_label="rate", title="Risk")

    def on_plot_cursor_moved(self, event):
        self.moves.append((event.x, [reading.value for reading in event.readings]))

    @property
    def plot(self):
        return self.query_one(Plot)

    @property
    def strips(self):
        return self.screen._compositor.render_strips()

    @property
    def text(self):
        return "\n".join(strip.text for strip in self.strips)


@pytest.mark.slow
async def test_a_plot_shows_its_words_and_reads_the_series_at_the_cursor():
    app = PlotApp()
    async with app.run_test(size=(100, 24)) as pilot:
        assert "Risk  rate" in app.text
        assert "synthetic" in app.text
        await pilot.press("right")
        x, values = app.moves[-1]
        assert x in LEVEL
        assert values == pytest.approx([0.2 - x, 0.4 - x])
        assert f"level = {x:.4g}" in app.text
        await pilot.press("l")
        assert app.moves[-1][0] == pytest.approx(x + 0.01)
        await pilot.press("h", "left")
        assert app.moves[-1][0] == pytest.approx(x - 0.01)
        await pilot.press("home")
        assert app.plot.cursor_x == 0
        await pilot.press("act:far_right")
        assert app.plot.cursor_x == pytest.approx(0.02)
        await pilot.press("end", "right")
        assert app.plot.cursor_x == 0.15


async def test_zoom_narrows_and_widens_the_view_about_the_cursor_and_the_cursor_stays_in_view():
    app = PlotApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("home", "plus", "+")
        assert app.plot.x_range == pytest.approx((0, 0.0375))
        await pilot.press("end")
        assert app.plot.x_range == pytest.approx((0.1125, 0.15))
        await pilot.press("minus")
        assert app.plot.x_range == pytest.approx((0.075, 0.15))
        await pilot.press("0")
        assert app.plot.x_range == (0, 0.15)
        assert app.moves[-1] == (None, [])


async def test_a_cursor_step_redraws_only_the_rows_it_changes():
    app = PlotApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("right")
        app.plot.drawn.clear()
        await pilot.press("right")
        assert 0 < len(set(app.plot.drawn)) <= 8


async def test_the_same_series_again_redraws_nothing_and_another_only_its_rows():
    app = PlotApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        app.plot.drawn.clear()
        app.plot.set_series(SWEEP, x_label="level", y_label="rate", title="Risk")
        await pilot.pause()
        assert app.plot.drawn == []
        app.plot.set_series(SWEEP, x_label="level", y_label="rate", title="Other")
        await pilot.pause()
        assert set(app.plot.drawn) == {0}


async def test_new_series_keep_zoom_and_cursor_when_asked():
    app = PlotApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("home", "plus")
        app.plot.set_series(SWEEP[:1], keep_view=True)
        assert app.plot.x_range == pytest.approx((0, 0.075))
        assert app.plot.cursor_x == 0
        app.plot.set_series(SWEEP[:1])
        assert app.plot.x_range == (0, 0.15)
        assert app.plot.cursor_x is None


async def test_a_click_puts_the_cursor_on_the_nearest_value():
    app = PlotApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.click(Plot, offset=(79, 10))
        assert app.plot.cursor_x == 0.15
        await pilot.click(Plot, offset=(0, 10))
        assert app.plot.cursor_x == 0.15


@pytest.mark.slow
@pytest.mark.parametrize("series", [SWEEP, [], [Series("a", [1], [2])], [Series("a", [1, 2], [np.nan, np.nan])]])
async def test_every_size_and_every_series_can_be_shown_and_moved_in(series):
    app = PlotApp(series)
    async with app.run_test(size=(20, 6)) as pilot:
        for width, height in ((20, 6), (10, 3), (1, 1), (200, 60)):
            await pilot.resize_terminal(width, height)
            await pilot.press("right", "plus", "0")
            assert app.is_running
            assert len(app.strips) == height


async def test_nothing_to_draw_is_said():
    app = PlotApp([])
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.press("right", "plus", "0")
        assert "nothing to draw: no series" in app.text
        app.plot.set_series(SWEEP)
        await pilot.pause()
        assert "synthetic" in app.text


def foregrounds(app):
    return {segment.style.color for strip in app.strips for segment in strip if segment.text.strip() and segment.style}


async def test_series_have_colours_of_their_own_with_sixteen_colours(monkeypatch):
    monkeypatch.setattr(constants, "COLOR_SYSTEM", "standard")
    app = PlotApp()
    async with app.run_test(size=(80, 24)):
        system = app.console._color_system
        seen = {color.downgrade(system).number for color in foregrounds(app) if color}
        assert len(seen) >= 3
        assert not app.plot._picture.fills.any()


async def test_bands_are_tinted_where_there_are_colours_enough(monkeypatch):
    monkeypatch.setattr(constants, "COLOR_SYSTEM", "truecolor")
    app = PlotApp()
    async with app.run_test(size=(80, 24)):
        assert app.plot._picture.fills.any()
        backgrounds = {segment.style.bgcolor.name for strip in app.strips for segment in strip if segment.style.bgcolor}
        assert len(backgrounds) == 2


@pytest.mark.slow
@pytest.mark.parametrize("theme", [None, "textual-light", "ansi-dark", "ansi-light"])
async def test_without_colour_series_differ_in_their_dashes(monkeypatch, theme):
    monkeypatch.setenv("NO_COLOR", "1")
    app = PlotApp(theme=theme)
    async with app.run_test(size=(110, 24)) as pilot:
        await pilot.press("right", "right")
        assert app.is_running
        key = app.strips[1].text
        first, second = key.index("synthetic"), key.index("confidential")
        assert key[first - 5 : first - 1].strip()
        assert key[first - 5 : first - 1] != key[second - 5 : second - 1]
        assert not app.plot._picture.fills.any()
        reversed_text = [s.text for strip in app.strips for s in strip if s.style and s.style.reverse]
        assert sorted(reversed_text) == ["○", "●"]


async def test_a_theme_is_taken_up_at_once(monkeypatch):
    monkeypatch.setattr(constants, "COLOR_SYSTEM", "truecolor")
    app = PlotApp()
    async with app.run_test(size=(80, 24)) as pilot:
        dark = foregrounds(app)
        app.theme = "textual-light"
        await pilot.pause()
        assert not dark & foregrounds(app)


async def test_keys_can_be_changed():
    class Remapped(PlotApp):
        def on_mount(self):
            super().on_mount()
            self.set_keymap({"right": "w", "zoom_in": "z"})

    app = Remapped()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("right")
        assert app.plot.cursor_x is None
        await pilot.press("w", "z")
        assert app.plot.cursor_x is not None
        assert app.plot.x_range != (0, 0.15)


async def test_fifty_thousand_points_are_shown():
    walk = np.random.default_rng(3).normal(size=50_000).cumsum()
    app = PlotApp([Series("walk", np.arange(50_000), walk)])
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("right", "plus", "right")
        x, (value,) = app.moves[-1]
        assert value == walk[int(x)]
