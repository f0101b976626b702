"""The mouse works, and is never needed."""

import pytest
from textual.widgets import Input

from sfumato.tui.manual.help import KeysDialog
from sfumato.tui.parts.form import Form
from sfumato.tui.widgets.entries import ChoiceField
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import TabLine

pytestmark = pytest.mark.slow


def cell_of(seat, words):
    """Where on the terminal a text stands."""
    for y, line in enumerate(seat.text.splitlines()):
        if words in line:
            return line.index(words), y
    raise AssertionError(f"{words!r} is not shown")


async def click(seat, words, times=1):
    """Click on the first place where a text is shown."""
    await seat.pilot.click(offset=cell_of(seat, words), times=times)
    return await seat.press("shift")


async def test_a_click_chooses_a_row_and_two_open_it(sit, directory, size):
    async with sit(directory, size=size) as seat:
        await click(seat, "Second project")
        assert seat.app.screen.query_one(Grid).cursor == 1
        await click(seat, "Household survey", times=2)
        assert "[3 Runs]" in seat.text
        await click(seat, "✗ failed")
        assert seat.app.screen.query_one(Grid).cursor == 2
        await click(seat, "1  Household survey", times=2)
        assert "[Verdicts]" in seat.text


async def test_a_click_chooses_a_tab(sit, directory, size):
    async with sit(directory, tab="runs", size=size) as seat:
        for words, shown in (
            ("4 Findings", "[4 Findings]"),
            ("Studies", "[Studies]"),
            ("2 Plan", "[2 Plan]"),
            ("3 Runs", "[3 Runs]"),
        ):
            assert shown in await click(seat, words)


async def test_a_click_on_a_key_presses_it(sit, directory, size):
    async with sit(directory, tab="runs", size=size) as seat:
        await click(seat, "? Keys")
        assert isinstance(seat.app.screen, KeysDialog)
        await seat.press("q")
        assert "Second project" in await click(seat, "q Close")


async def test_a_click_goes_to_a_field_of_a_form(sit, built_data, size):
    async with sit(built_data, "enter", tab="data", size=size) as seat:
        assert isinstance(seat.app.screen, Form)
        fields = list(seat.app.screen.query(".form-field"))
        for field in (fields[3], fields[1]):
            await seat.pilot.click(field)
            assert seat.app.focused is field


async def test_the_wheel_scrolls_a_table(sit, built_data):
    async with sit(built_data, tab="results", size=(80, 24)) as seat:
        grid = seat.app.focused
        grid.scroll_down(animate=False)
        await seat.press("shift")
        assert grid.scroll_offset.y > 0


PLACES = [("runs", ()), ("results", ()), ("sweep", ()), ("data", ()), ("data", ("enter",)), ("plan", ()), ("plan", ("a",)),
          ("verdicts", ("w",)), ("runs", ("n",)), ("map", ("x",))]  # fmt: skip


@pytest.mark.parametrize(("tab", "keys"), PLACES, ids=["-".join((tab, *keys)) for tab, keys in PLACES])
async def test_tab_reaches_all_that_can_be_clicked(sit, built_data, tab, keys):
    """From the first focus, tab goes round every field, table, text and line of tabs that is shown."""
    async with sit(built_data, *keys, tab=tab, size=(80, 24)) as seat:
        screen = seat.app.screen
        kinds = (Input, ChoiceField, Grid, TabLine)
        wanted = {widget for widget in screen.query("*") if isinstance(widget, kinds) and widget in screen.focus_chain}
        reached = set()
        for _ in range(len(screen.focus_chain) + 1):
            reached.add(seat.app.focused)
            await seat.press("tab")
        shown = {
            widget
            for widget in screen.query("*")
            if isinstance(widget, kinds) and widget.region and widget.is_on_screen
        }
        assert wanted <= reached
        assert shown <= reached
