"""Frames are closed, in every place and size, and name in their edges what they hold."""

import pytest
from textual.geometry import Region

from sfumato.tui.widgets.panel import LOWER, MEETS_RULE, SIDE, UPPER, FrameSides

SIDES = SIDE, SIDE
BRIEF = {"verdicts": "─ Leave?  ✗ NO: 75 found"}
"""Titles that stand in a narrow frame."""
PLACES = {
    "data": "Data: 3 of 3",
    "plan": "Plan: 9 steps",
    "runs": "un 1  ✗ may not leave",
    "verdicts": "May this leave to the public?  ✗ NO",
    "map": "Runs",
}


def frame_of(app):
    """The lines from the upper to the lower edge."""
    lines = [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]
    first = next(at for at, line in enumerate(lines) if line.startswith(UPPER[0]))
    last = next(at for at, line in enumerate(lines) if line.startswith(LOWER[0]))
    return lines[first : last + 1]


@pytest.mark.slow
@pytest.mark.parametrize("tab", PLACES)
async def test_the_frame_of_a_place_is_closed_and_has_a_title(sit, built_data, tab):
    async with sit(built_data, size=(80, 24), tab=tab) as seat:
        for size in ((80, 24), (160, 50), (40, 12)):
            await seat.pilot.resize_terminal(*size)
            await seat.press("shift")
            titles = (PLACES[tab], BRIEF.get(tab, PLACES[tab]))
            if size[0] >= 80:
                # the gate's answer comes later than the rest
                await seat.until(lambda titles=titles: any(title in frame_of(seat.app)[0] for title in titles))
            upper, *between, lower = frame_of(seat.app)
            assert (len(upper), upper[-1], lower[-1]) == (size[0], UPPER[1], LOWER[1])
            assert all((line[0], line[-1]) in (SIDES, MEETS_RULE) and len(line) == size[0] for line in between)


@pytest.mark.slow
async def test_the_tabs_have_their_whole_names_beside_the_answer(sit, built_data):
    """A shorter question, then the answer without it, leaves the names their room; how many are found stays."""
    names = "[Verdicts] Records Numbers Studies Diagnostics"
    async with sit(built_data, size=(80, 24), tab="verdicts") as seat:
        await seat.until(lambda: "NO" in frame_of(seat.app)[0])
        for columns in (80, 100, 120, 140, 160):
            await seat.pilot.resize_terminal(columns, 40)
            await seat.press("shift")
            upper = frame_of(seat.app)[0]
            assert names in upper
            assert "✗ NO: 75 " in upper
            assert ("May this leave" in upper) is (columns >= 120)
            assert ("to the public" in upper) is (columns >= 120), "the question is whole where it has the room"


@pytest.mark.slow
async def test_a_second_pane_shares_the_edges_and_is_named_there(sit, built_data):
    async with sit(built_data, size=(160, 50), tab="plan") as seat:
        upper, *between, lower = frame_of(seat.app)
        at = upper.index(UPPER[2])
        assert upper[at:].startswith("┬─ Step ─")
        assert lower[at] == LOWER[2]
        assert all(line[at] == "│" for line in between[1:])
        assert "[1 Data]" in await seat.press("1")
        assert "┬─ Profile" in frame_of(seat.app)[0]


@pytest.mark.slow
async def test_a_dialog_has_its_title_and_its_keys_in_its_frame(sit, built_data):
    async with sit(built_data, "e", size=(80, 24), tab="runs") as seat:
        assert "╭─ Write to a file ─" in seat.text
        assert "─ enter writes, esc closes ─╯" in seat.text


@pytest.mark.slow
async def test_leaving_asks_before_text_is_lost(sit, built_data):
    async with sit(built_data, "t", "left_square_bracket", "escape", size=(80, 24), tab="plan") as seat:
        assert "Discard the text?" in await seat.press("q")
        assert "The text of the plan cannot be read yet" in seat.text
        assert "[2 Plan]" in await seat.press("n")
        await seat.press("ctrl+q")
        assert "Quit Sfumato?" in seat.text
        assert "cannot be read yet" in seat.text
        await seat.press("n", "u", "q")
        assert len(seat.app.screen_stack) == 1


@pytest.mark.slow
async def test_the_text_takes_the_place_of_the_steps_where_there_is_room_for_one(sit, built_data):
    async with sit(built_data, "t", size=(80, 24), tab="plan") as seat:
        assert "[release]" in seat.text
        assert "drawn from" not in seat.text
        assert "drawn from" in await seat.press("escape")


@pytest.mark.slow
async def test_only_the_pane_in_use_has_a_bright_side(sit, built_data):
    async with sit(built_data, size=(160, 50), tab="data") as seat:
        await seat.until(lambda: seat.app.screen.query_one("#data-profile").region.width > 0)
        sides = seat.app.screen.query_one(FrameSides)
        bright, dim = (sides.get_component_rich_style(f"sides--{name}").color for name in ("edge", "dim"))

        def inks():
            (strip,) = sides.render_lines(Region(0, sides.size.height // 2, sides.outer_size.width, 1))
            segments = list(strip)
            return segments[0].style.color, segments[-1].style.color

        await seat.until(lambda: inks() == (bright, dim))
        await seat.press("act:profile")
        await seat.until(lambda: inks() == (dim, bright))
