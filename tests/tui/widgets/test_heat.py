"""Heat maps: what stands where, in colours and in signs, and the keys of the widget."""

import numpy as np
import pytest
from rich.cells import cell_len
from rich.color import ColorSystem
from textual import constants
from textual.app import App

from sfumato.tui.terminal.glyphs import GLYPHS
from sfumato.tui.widgets.canvas import CURSOR
from sfumato.tui.widgets.heat import FEWER, MORE, HeatPane, add_heat_cursor, draw_heat_map, frame_of_panes
from sfumato.tui.widgets.heatmap import HeatMap
from sfumato.workspace.plots.figure import SHADES, SIDES, AxisBins, BinShares, make_shade_steps


def pane(shares, *, signed=False, names=(), title="confidential"):
    shares = np.array(shares, dtype=float)
    rows, columns = shares.shape
    up = AxisBins(np.arange(rows + 1) - 0.5, names) if names else AxisBins(np.arange(rows + 1.0) * 10)
    cells = BinShares(shares, AxisBins(np.arange(columns + 1.0)), up, signed)
    return HeatPane(title, cells, make_shade_steps([cells]))


FOUR = [[0.4, 0.1], [0.0, 0.025]]
LESS = [[-0.2, 0.0], [0.01, 0.2]]
THREE = [pane(FOUR), pane(FOUR, title="synthetic"), pane(LESS, signed=True, title="difference")]


@pytest.mark.parametrize("glyphs", GLYPHS)
@pytest.mark.parametrize("colour", [True, False])
def test_every_size_can_be_drawn(glyphs, colour):
    for size in [(0, 0), (1, 1), (3, 9), (9, 3), (20, 6), (33, 11), (80, 24), (200, 60)]:
        for panes in ([], THREE[:1], THREE):
            picture = draw_heat_map(panes, size, GLYPHS[glyphs], colour=colour, labels=("x", "y"))
            assert (picture.width, picture.height) == size
            if panes and size[0] > 9 and size[1] > 9:
                picture = add_heat_cursor(picture, panes, GLYPHS[glyphs], (1, 1))
                assert (picture.inks == CURSOR).sum() == len(panes)
            for row in range(size[1]):
                assert cell_len(picture.row_text(row)) == size[0]


def area(picture, frame, number, part):
    left = frame.pane_column(number)
    return getattr(picture, part)[1 : 1 + frame.rows, left : left + frame.columns]


def test_each_quarter_has_the_shade_of_its_bin_and_the_first_row_is_at_the_foot():
    size = (60, 24)
    picture = draw_heat_map(THREE[:1], size, GLYPHS["braille"], colour=True)
    frame = frame_of_panes(size, THREE[:1])
    fills = area(picture, frame, 0, "fills")
    foot, top = fills[frame.rows // 2 :], fills[: frame.rows // 2]
    half = frame.columns // 2 + 1
    assert set(foot[:, : half - 1].ravel().tolist()) == {SHADES}
    assert set(top[:, : half - 1].ravel().tolist()) == {0}
    expected = THREE[0].shades.step_of(np.array(FOUR))
    assert set(foot[:, half:].ravel().tolist()) == {int(expected[0, 1])}
    assert set(top[:, half:].ravel().tolist()) == {int(expected[1, 1])}


def test_without_colour_signs_say_more_and_fewer():
    size = (90, 24)
    picture = draw_heat_map(THREE, size, GLYPHS["ascii"], colour=False)
    frame = frame_of_panes(size, THREE)
    signs = area(picture, frame, 2, "characters")
    assert signs[-1, 0] == FEWER[SIDES - 1]
    assert signs[0, -1] == MORE[SIDES - 1]
    assert signs[0, 0] == MORE[0]
    assert signs[-1, -1] == " "
    assert not picture.fills.any()
    assert all(picture.row_text(row).isascii() for row in range(24))


def test_the_bar_says_what_the_shades_stand_for():
    picture = draw_heat_map(THREE, (100, 24), GLYPHS["braille"], colour=False, labels=("price", "area"))
    bar = picture.row_text(23)
    assert "40 %" in bar
    assert "-20 %" in bar
    assert "+20 %" in bar
    assert "up area · across price" in bar


def test_levels_and_numbers_are_named_at_their_rows():
    picture = draw_heat_map([pane(FOUR, names=("few", "many"))], (40, 20), GLYPHS["braille"], colour=True)
    text = [picture.row_text(row) for row in range(20)]
    assert any(line.startswith((" few", "few")) for line in text[8:])
    assert any("many" in line for line in text[:9])
    numbers = draw_heat_map(THREE[:1], (40, 20), GLYPHS["braille"], colour=True)
    assert "20" in numbers.row_text(1)
    assert "0" in numbers.row_text(16)


def test_a_place_on_the_picture_is_a_bin():
    size = (90, 24)
    frame = frame_of_panes(size, THREE)
    for number in range(3):
        assert frame.bin_at(frame.pane_column(number), 1, (2, 2)) == (0, 1)
        assert frame.bin_at(frame.pane_column(number) + frame.columns - 1, frame.rows, (2, 2)) == (1, 0)
    assert frame.bin_at(0, 0, (2, 2)) is None
    assert frame.bin_at(frame.pane_column(1) - 1, 3, (2, 2)) is None


class HeatApp(App):
    def __init__(self, theme=None):
        super().__init__()
        self.said = []
        if theme:
            self.theme = theme

    def compose(self):
        yield HeatMap()

    def on_mount(self):
        shares = np.arange(1.0, 57.0).reshape(7, 8) / 1596
        self.map.show_panes([pane(shares), pane(shares - 1 / 56, signed=True)], ("x", "y"))

    def on_heat_map_heat_cursor_moved(self, event):
        self.said.append(event.at)

    def on_heat_map_zoom_requested(self, event):
        self.said.append(event.factors)

    @property
    def map(self):
        return self.query_one(HeatMap)


@pytest.mark.slow
async def test_keys_move_the_cursor_and_ask_for_other_ranges():
    app = HeatApp()
    async with app.run_test(size=(80, 24)) as pilot:
        for key, expected in (
            ("right", (4, 3)), ("l", (5, 3)), ("left", (4, 3)), ("h", (3, 3)), ("up", (3, 4)), ("k", (3, 5)), ("down", (3, 4)),
            ("j", (3, 3)), ("act:far_right", (7, 3)), ("act:far_left", (2, 3)), ("pageup", (2, 6)), ("pagedown", (2, 1)), ("act:far_right", (7, 1)),
            ("act:far_left", (2, 1)), ("ctrl+u", (2, 6)), ("ctrl+d", (2, 1)),
            ("plus", (0.5, 1)), ("minus", (2, 1)), ("act:zoom_in_up", (1, 0.5)), ("act:zoom_out_up", (1, 2)),
        ):  # fmt: skip
            await pilot.press(key)
            assert app.said[-1] == expected, key
        await pilot.press("0")
        assert app.said[-2:] == [None, None]
        assert app.map.at is None


async def test_a_click_puts_the_cursor_on_a_bin_and_other_maps_keep_it_where_asked():
    app = HeatApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.click(HeatMap, offset=(79, 1))
        assert app.map.cursor_bin == (7, 6)
        app.map.show_panes([pane(FOUR)], ("x", "y"), keep_cursor=True)
        assert app.map.cursor_bin == (1, 1)
        app.map.show([pane(FOUR)], ("x", "y"))
        assert app.map.at is None


async def test_a_step_of_the_cursor_draws_its_rows_alone():
    app = HeatApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("right")
        before = app.map._picture
        await pilot.press("up")
        assert len(app.map._picture.changed_rows(before)) == 2


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
async def test_shades_are_colours_that_differ(monkeypatch, theme):
    monkeypatch.setattr(constants, "COLOR_SYSTEM", "256")
    app = HeatApp(theme)
    async with app.run_test(size=(80, 24)):
        strips = app.screen._compositor.render_strips()
        colours = [segment.style.bgcolor for strip in strips for segment in strip if segment.style.bgcolor]
        sent = {colour.downgrade(ColorSystem.EIGHT_BIT).number for colour in colours}
        wanted = [int(name.removeprefix("color(").removesuffix(")")) for name in app.map._shade_colours]
        assert set(wanted) <= sent
        assert len(set(wanted[:SHADES])) == SHADES
        assert len(set(wanted[SHADES:])) == 2 * SIDES


@pytest.mark.parametrize(("system", "variable"), [("standard", None), ("256", "NO_COLOR")])
async def test_where_colours_cannot_be_told_signs_are_drawn(monkeypatch, system, variable):
    monkeypatch.setattr(constants, "COLOR_SYSTEM", system)
    if variable:
        monkeypatch.setenv(variable, "1")
    app = HeatApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("right")
        assert not app.map._picture.fills.any()
        assert "@" in "".join(app.map._picture.row_text(row) for row in range(24))
