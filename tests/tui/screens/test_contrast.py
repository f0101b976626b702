"""Text can be read in every theme of ours: its contrast with what is behind it, on every screen."""

import functools
import re

import pytest
from rich.color import Color as Sixteen
from rich.color import ColorSystem
from textual.color import Color

from sfumato.tui.app.themes import THEMES

LEAST = {"dark": 4.5, "light": 4.5, "high-contrast": 6.5}
"""WCAG 2.2 asks for 4.5 (AA), and 7 (AAA); a key that cannot be used now may step back a little."""
SCREENS = {
    "projects": ("q",),
    "runs": ("1", "space"),
    "results": ("2",), "explain": ("2", "enter"), "filter": ("2", "slash"),
    "verdicts": ("3",), "trial": ("3", "t"), "release": ("3", "w"),
    "sweep": ("4", "right"), "sweep numbers": ("4", "t"),
    "diagnostics": ("5",),
    "records": ("6",), "record": ("6", "enter"),
    "data": ("7",), "form": ("7", "enter", "down", "down", "x"),
    "plan": ("8",), "add step": ("8", "a"),
    "map": ("9",), "choose": ("9", "x"),
    "help": ("question_mark",), "palette": ("ctrl+p",), "audit": ("A",), "new run": ("n",), "confirm": ("g", "x"),
    "text": ("8", "t"), "distributions": ("1", "D"),
}  # fmt: skip
DRAWN = re.compile(r"[\s─-▟⠀-⣿]*")
"""Lines, blocks and braille are pictures, not text."""


def luminance(colour):
    """Relative luminance (WCAG 2.2, "relative luminance")."""
    parts = [value / 255 for value in colour.rgb]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@functools.cache
def contrast(one, other):
    """The contrast ratio of two colours (WCAG 2.2), from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def faint(app, least):
    """Texts that do not stand out from what is behind them, and how much they do."""
    over = app.screen.query(".dialog, .whole, CommandPalette > Vertical")
    place = (over.first() if over else app.screen).region
    for strip in app.screen._compositor.render_strips()[place.y : place.bottom]:
        for text, style, _ in strip:
            if style is None or style.color is None or style.bgcolor is None or DRAWN.fullmatch(text):
                continue
            front, back = (Color.from_rich_color(colour) for colour in (style.color, style.bgcolor))
            ratio = contrast(front, back)
            if ratio < least:
                yield f"{text.strip()!r} {front.hex} on {back.hex}: {ratio:.2f}"


def test_the_ratio_is_that_of_the_standard():
    """Black on white, and the greys that the standard's own examples name as just good and just not good enough."""
    white = Color.parse("#ffffff")
    assert contrast(Color.parse("#000000"), white) == pytest.approx(21)
    assert contrast(Color.parse("#767676"), white) == pytest.approx(4.54, abs=0.005)
    assert contrast(Color.parse("#777777"), white) == pytest.approx(4.48, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", [(80, 24), pytest.param((200, 60), marks=[pytest.mark.sizes, pytest.mark.again])], ids=str
)
async def test_text_stands_out_on_every_screen_in_every_theme(sit, built_data, size):
    found, themes = {}, list(LEAST.items())
    async with sit(built_data, tab="runs", size=size) as seat:
        project = seat.app.screen
        for name, keys in SCREENS.items():
            while len(seat.app.screen_stack) > 2:
                await seat.app.pop_screen()
            if seat.app.screen is project:
                await project.action_show_tab("runs")
            else:
                await seat.app.open_project(1, 1, "runs")
                project = seat.app.screen
            await seat.press("shift", *keys)
            for theme, least in themes:
                seat.app.theme = theme
                await seat.pilot.pause()
                found |= dict.fromkeys(faint(seat.app, least), f"{name}, {theme}")
            themes.reverse()  # the next screen begins with the theme that is there: another costs more than a screen
    assert found == {}, "\n".join(f"{where}: {text}" for text, where in found.items())


def test_every_theme_of_ours_is_looked_at():
    assert set(LEAST) == {name for name in THEMES if not name.startswith("ansi")}


@pytest.mark.parametrize("name", LEAST)
def test_sixteen_colours_keep_good_bad_and_doubt_apart_and_green_red_and_yellow(name):
    """In a terminal of 16 colours each is drawn as the nearest of these: what is met was once cyan, as a title is."""
    theme = THEMES[name]
    states = {"success": {2, 10}, "error": {1, 9}, "warning": {3, 11}, "primary": {4, 6, 12, 14}}
    for state, allowed in states.items():
        assert Sixteen.parse(getattr(theme, state)).downgrade(ColorSystem.STANDARD).number in allowed, state
