"""What rests on private names of Textual is off where they may mean something else, and the app works without it."""

import gc
import weakref

import pytest
from textual._styles_cache import StylesCache
from textual.app import App
from textual.color import Color
from textual.screen import Screen

from sfumato.tui.terminal import parts
from sfumato.tui.terminal.diff_output import DiffOutput
from sfumato.tui.terminal.painting import share_styles
from sfumato.tui.terminal.parts import CHECKED, PARTS, PLAIN, TextualPart, is_on, part_states
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.pages import ListPages


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    monkeypatch.delenv(PLAIN, raising=False)
    monkeypatch.setattr(parts, "textual_version", lambda: max(CHECKED))


def test_every_part_is_on_under_a_version_that_it_was_checked_with():
    assert [reason for _, reason in part_states()] == [""] * len(PARTS)


@pytest.mark.parametrize("version", ["8.1.1", "8.3.0", "9.0.0", "8.2.99", "8.2.8.dev1"])
def test_an_older_or_newer_version_switches_every_part_off(monkeypatch, version):
    monkeypatch.setattr(parts, "textual_version", lambda: version)
    assert {reason for _, reason in part_states()} == {f"not checked with Textual {version}"}
    assert not any(map(is_on, PARTS))


def test_a_setting_switches_every_part_off(monkeypatch):
    monkeypatch.setenv(PLAIN, "1")
    assert {reason for _, reason in part_states()} == {f"{PLAIN} is set"}
    monkeypatch.setenv(PLAIN, "0")
    assert all(map(is_on, PARTS))


@pytest.mark.parametrize(
    "needed",
    [
        {"textual.app:App._display": "self screen"},
        {"textual.app:App._displays": None},
        {"textual._compositors:LayoutUpdate": None},
        {"textual.screen:UPDATE_PERIOD": ""},
    ],
    ids=["other parameters", "no such attribute", "no such module", "no function"],
)
def test_a_name_that_is_missing_or_takes_other_arguments_switches_a_part_off(monkeypatch, needed):
    part = TextualPart("another", "is tried", needed)
    monkeypatch.setattr(parts, "PARTS", (*PARTS, part))
    parts._unmet_need.cache_clear()
    assert not is_on(part)
    assert all(map(is_on, PARTS))
    assert next(iter(needed)) in {part.key: reason for part, reason in part_states()}["another"]
    parts._unmet_need.cache_clear()


class Table(DiffOutput):
    def compose(self):
        yield Grid(ListPages((), [("a",), ("b",)]))


@pytest.mark.parametrize("version", ["8.1.1", "9.0.0", max(CHECKED)])
async def test_an_app_under_another_version_shows_the_same(monkeypatch, version):
    monkeypatch.setattr(parts, "textual_version", lambda: version)
    app = Table()
    async with app.run_test(size=(20, 5)) as pilot:
        await pilot.press("down")
        await pilot.pause()
        cache = type(app.query_one(Grid)._styles_cache).__name__
        assert cache == ("RawLines" if version in CHECKED else "StylesCache")
        assert app.query_one(Grid).cursor == 1
        assert (app._image is not None) == (version in CHECKED)


async def test_where_textual_calls_them_no_longer_the_overridden_methods_do_no_harm(monkeypatch):
    monkeypatch.setattr(parts, "textual_version", lambda: "9.0.0")
    display, resized = App._display, Screen._screen_resized
    monkeypatch.delattr(App, "_display")
    monkeypatch.setattr(App, "_show", display, raising=False)
    monkeypatch.setattr(Screen, "_update_screen_resized", resized, raising=False)
    for name in ("_compositor_refresh", "_on_timer_update"):
        monkeypatch.setattr(Screen, name, lambda self, *_: None)
    async with Table().run_test(size=(20, 5)) as pilot:
        await pilot.pause()
        assert pilot.app.query_one(Grid).row_count == 2


@pytest.mark.slow
def test_what_widgets_that_are_gone_have_drawn_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual keeps it with two styles that hang on colours alone; the styles stay what they are."""
    monkeypatch.setattr(StylesCache, "get_inner_outer", StylesCache.get_inner_outer)
    base, over = Color(1, 2, 3), Color(9, 8, 7, 0.5)

    def kept() -> bool:
        cache = StylesCache()
        gone, found = weakref.ref(cache), cache.get_inner_outer(base, over)
        assert [style.background for style in found] == [base + over, base]
        del cache
        gc.collect()
        return gone() is not None

    assert kept(), "the control: Textual's own"
    share_styles()
    share_styles()
    assert not kept()
    monkeypatch.setenv(PLAIN, "1")
    share_styles()
