"""A list with its row under the cursor in full beside it where both have room; in a narrower terminal the list alone, or with the row below it."""

import re
import sqlite3
import time

import pytest

from sfumato.tui.parts.split import LEAST_DETAIL, READING, REST_SECONDS, Detail, SplitView
from sfumato.tui.parts.verdict_board import VerdictBoard
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.pages import RowHeading

TABS = {
    "runs": ("measure",),
    "results": ("in words", "how sure", "definition", "direction", "source", "key"),
    "verdicts": ("blocks", "Compared", "limit", "How to fix it"),  # the cursor begins on the first finding of the gate
    "records": ("its own record is among", "would match"),
}
SIDES = 2
"""Cells for the two sides of the frame."""
SPLIT_FROM = {"runs": 100, "verdicts": 100, "results": 150, "records": 118}
"""Columns of a terminal: those that the list needs, 38 to read in, and the frame."""
WIDE = (160, 50)
LOW = {"results": 29, "records": 23}
"""Lines of a terminal in which no explanation stands below a list."""


def split_of(seat):
    """What is split: a tab that is shown, or the screen itself."""
    screen = seat.app.screen
    return screen if isinstance(screen, SplitView) else screen.pane


def detail_of(seat):
    return split_of(seat).query_one(Detail)


def detail_text(seat):
    return str(detail_of(seat)._text.content) if detail_of(seat).display else ""


async def rest(seat, words="", seconds=20.0):
    """Wait until the cursor has rested and what the row has in full is there."""
    until = time.monotonic() + seconds
    await seat.pilot.pause(REST_SECONDS + 0.05)
    while time.monotonic() < until:
        await seat.press("shift")
        if detail_text(seat) and READING not in detail_text(seat) and words in detail_text(seat):
            return detail_text(seat)
        await seat.pilot.pause(0.02)
    pytest.fail(f"{words!r} does not come beside the list, but {detail_text(seat)!r}")


@pytest.mark.slow
@pytest.mark.parametrize("tab", TABS)
async def test_a_wide_terminal_has_the_row_in_full_beside_the_list(sit, built_data, tab):
    async with sit(built_data, tab=tab, size=WIDE) as seat:
        text = await rest(seat, TABS[tab][0])
        assert [words for words in TABS[tab] if words not in text] == []
        assert detail_of(seat).region.x >= WIDE[0] // 2
        assert max(map(len, text.splitlines())) <= detail_of(seat).scrollable_content_region.width


@pytest.mark.slow
@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("size", [(80, 24), None])
async def test_a_narrower_terminal_has_the_list_alone(sit, built_data, monkeypatch, tab, size):
    """Nothing more is read, nothing more can have the keys."""
    width, height = size or (SPLIT_FROM[tab] - 1, 50)
    size = (width, min(height, LOW.get(tab, height)))
    monkeypatch.setattr(SplitView, "_read_detail", lambda self: pytest.fail("read for nothing"))
    async with sit(built_data, "j", "j", tab=tab, size=size) as seat:
        await seat.pilot.pause(REST_SECONDS + 0.1)
        split = split_of(seat)
        assert not detail_of(seat).is_on_screen
        assert split.list_width == split.size.width == size[0] - SIDES
        (grid,) = split.query(Grid) or split.query(VerdictBoard)
        assert grid.outer_size.width == size[0] - SIDES
        seen = {type(seat.app.focused)}
        for _ in range(4):
            await seat.press("tab")
            seen.add(type(seat.app.focused))
        assert Detail not in seen


@pytest.mark.slow
@pytest.mark.parametrize("tab", TABS)
async def test_the_narrowest_terminal_for_both_has_all_that_either_needs(sit, built_data, tab):
    """No column of the list that 80 columns show is lost, and nothing in the explanation is cut."""
    needed = {
        "runs": ("run", "title", "state", "may it leave?"), "verdicts": ("state", "what", "found", "limit"),
        "results": ("measure and variable", "goal", "data", "release", "limit"), "records": ("record", "probability"),
    }  # fmt: skip
    async with sit(built_data, tab=tab, size=(SPLIT_FROM[tab], 30)) as seat:
        text = await rest(seat)
        assert detail_of(seat).outer_size.width >= LEAST_DETAIL
        assert max(map(len, text.splitlines())) < detail_of(seat).scrollable_content_region.width
        listed = [line[: split_of(seat).list_width] for line in seat.text.splitlines()]
        assert any(all(word in line for word in needed[tab]) for line in listed)


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["runs", "results"])
async def test_the_list_has_the_width_that_its_columns_are_made_for(sit, built_data, tab):
    async with sit(built_data, tab=tab, size=(90, 40)) as seat:
        split = split_of(seat)
        for width in (150 if tab == "results" else 120, 160, 161, 173, 200, 240):
            await seat.pilot.resize_terminal(width, 50)
            await rest(seat)
            assert split.query_one(Grid).size.width == split.list_width
            assert split.list_width + detail_of(seat).outer_size.width == width - SIDES
            assert split.query_one(Grid).virtual_size.width <= split.list_width or tab == "results"
        await seat.pilot.resize_terminal(90, LOW["results"])
        await seat.press("shift")
        assert split.query_one(Grid).size.width == split.list_width == 90 - SIDES


@pytest.mark.slow
async def test_the_row_that_the_cursor_comes_to_is_shown_once_it_rests(sit, built_data, monkeypatch):
    async with sit(built_data, tab="results", size=WIDE) as seat:
        await rest(seat)
        asked, ask = [], SplitView._read_detail
        monkeypatch.setattr(SplitView, "_read_detail", lambda self: (asked.append(1), ask(self)))
        for _ in range(6):
            seat.app.simulate_key("j")
        while not asked:
            await seat.pilot.pause(0.02)
        text, row = await rest(seat), split_of(seat).query_one(Grid)
        passed = [row.row_at(at)[0] for at in range(1, row.cursor)]
        assert sum(not isinstance(one, RowHeading) for one in passed) == 6
        assert len(asked) == 1, "rows that were only passed are not read"
        measure = row.row_at(row.cursor)[0].split(".")[-1].split(" ")[0]
        assert measure in text.splitlines()[0]


@pytest.mark.slow
async def test_tab_goes_to_what_stands_beside_and_on_and_never_stays(sit, built_data):
    async with sit(built_data, tab="results", size=(160, 14)) as seat:
        await rest(seat)
        pane, grid = detail_of(seat), seat.app.focused
        first = grid.cursor
        await seat.press("tab")
        assert pane.has_focus
        assert pane.max_scroll_y > 0
        await seat.press("j", "j")
        assert pane.scroll_y == 2
        assert grid.cursor == first, "the keys scroll what is read, not the list"
        await seat.press("G")
        assert pane.scroll_y == pane.max_scroll_y
        assert "Filter" in seat.footer
        await seat.press("shift+tab")
        assert grid.has_focus
        await seat.press("j")
        await rest(seat)
        assert pane.scroll_y == 0, "another row is read from its beginning"
        await seat.press("tab", "tab")
        assert not pane.has_focus


@pytest.mark.slow
async def test_a_terminal_that_becomes_narrow_gives_the_keys_back(sit, built_data):
    async with sit(built_data, tab="results", size=(160, 16)) as seat:
        await seat.until(lambda: detail_of(seat).max_scroll_y > 0)
        await seat.press("tab")
        assert detail_of(seat).has_focus
        await seat.pilot.resize_terminal(90, 30)
        await seat.press("shift")
        assert seat.app.focused is not None
        assert seat.app.focused.is_on_screen


@pytest.mark.slow
async def test_a_run_beside_the_list_says_what_the_list_has_no_room_for(sit, directory):
    async with sit(directory, "enter", size=WIDE) as seat:
        text = await rest(seat, "run       4")
        assert "doing draw 400/2,000 emcee" in " ".join(text.split())
        assert "rate" in text
        await seat.press("G")
        text = await rest(seat, "run       1")
        assert "People found on average" in " ".join(text.split())
        below = " ".join(text.split())
        assert below.index("✗ People found on average") < below.index("✓ People found for certain"), "failures first"
        assert re.search(r"number +release +data", text), "and numbers"


@pytest.mark.slow
async def test_records_beside_the_list_show_nobody_s_values(sit, built_data):
    """As long as nobody has said that they may be shown."""
    with sqlite3.connect(built_data / "workspace.db") as connection:
        assert connection.execute("SELECT count(*) FROM run").fetchone()
    async with sit(built_data, tab="records", size=WIDE) as seat:
        text = await rest(seat)
        assert "record " in text
        assert "its value" not in text
        assert "north" not in text
        assert "south" not in text


@pytest.mark.slow
async def test_an_error_stands_beside_the_list(sit, built_data, monkeypatch):
    from sfumato.workspace.errors import WorkspaceError

    def broken(*_):
        raise WorkspaceError("the row cannot be read")

    monkeypatch.setattr("sfumato.tui.findings.results.explain_row", broken)
    async with sit(built_data, tab="results", size=WIDE) as seat:
        assert "the row cannot be read" in await rest(seat)
        assert seat.app.notices == []


@pytest.mark.slow
async def test_what_takes_long_to_read_is_not_taken_for_the_row_before(sit, built_data, monkeypatch):
    from sfumato.tui.findings import results

    explained = results.explain_row

    def slow(*arguments):
        if slow.waits:
            time.sleep(1.5)
        return explained(*arguments)

    slow.waits = False
    monkeypatch.setattr(results, "explain_row", slow)
    async with sit(built_data, tab="results", size=WIDE) as seat:
        before = await rest(seat)
        slow.waits = True
        await seat.pilot.press("j")
        await seat.pilot.pause(REST_SECONDS + 0.8)
        assert detail_text(seat).startswith(READING)
        assert await rest(seat) != before


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["results", "runs"])
async def test_keys_are_answered_as_fast_beside_a_detail(sit, drawing, built_data, tab):
    """Half of the keys within 16 ms of computing, while every pause of the cursor has a row read and painted."""
    async with sit(built_data, tab=tab, size=WIDE) as seat:
        await rest(seat)
        spent = []
        for place in range(40):
            before = time.thread_time()
            await seat.pilot.press("j" if place % 4 < 2 else "k")
            spent.append(time.thread_time() - before)
            if place % 5 == 0:
                await seat.pilot.pause(REST_SECONDS + 0.05)
        assert sorted(spent)[len(spent) // 2] < 0.016


@pytest.mark.slow
async def test_a_row_whose_reading_fails_in_an_unforeseen_way_does_not_leave_its_place_empty(
    sit, built_data, monkeypatch
):
    """It once stayed empty until another row was read; and the same row was never read again."""
    from sfumato.tui.findings import results

    explained, fails = results.explain_row, [True]

    def at_first(*of):
        if fails:
            raise ImportError("partially initialised")
        return explained(*of)

    monkeypatch.setattr(results, "explain_row", at_first)
    async with sit(built_data, tab="results", size=WIDE) as seat:
        assert "Unexpected ImportError" in await rest(seat)
        fails.clear()
        await seat.pilot.resize_terminal(WIDE[0] + 1, WIDE[1])
        assert "source" in await rest(seat, "source")


@pytest.mark.slow
async def test_a_small_terminal_explains_a_record_below_the_list(sit, built_data):
    async with sit(built_data, tab="records", size=(80, 24)) as seat:
        text = await rest(seat, "would match")
        assert detail_of(seat).is_on_screen
        assert detail_of(seat).region.y > split_of(seat).query_one(Grid).region.bottom - 1
        assert split_of(seat).query_one(Grid).size.height >= 8
        assert text
