"""Keys that start, remove or end something ask first, or are not where one is pressed by habit."""

import pytest

from sfumato.tui.widgets.lines import TabLine

DONE = 1


@pytest.mark.slow
async def test_escape_on_the_list_of_projects_does_not_quit(sit, directory):
    async with sit(directory, "escape", "escape", size=(80, 24)) as seat:
        assert seat.app.is_running
        assert seat.app.notices[-1] == "q quits; runs keep running"
        await seat.press("enter", "q")
        assert len(seat.app.screen_stack) == 1
        assert seat.app._exit is False
        await seat.press("q", "y")
        assert seat.app._exit


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["data", "plan", "runs", "verdicts", "results", "records"])
async def test_escape_on_a_tab_clears_a_filter_or_returns_to_the_list_and_closes_no_project(sit, built_data, tab):
    async with sit(built_data, "G", size=(80, 24), tab=tab) as seat:
        await seat.press("escape")
        assert len(seat.app.screen_stack) == 2
        assert seat.app.notices[-1] == "q or p closes the project; its runs keep running"
        seat.app.screen.query_one(TabLine).focus()
        await seat.until(lambda: "enter To the page" in seat.footer)
        assert "go to another place" in seat.text
        await seat.press("escape")
        assert seat.app.focused is not seat.app.screen.query_one(TabLine)
        await seat.press("q")
        assert len(seat.app.screen_stack) == 1


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["data", "runs", "results"])
async def test_escape_clears_a_filter_first(sit, built_data, tab):
    async with sit(built_data, "G", size=(80, 24), tab=tab) as seat:
        said = len(seat.app.notices)
        await seat.press("slash", *"xyzxyz", "enter")
        await seat.until(lambda: "xyzxyz" in seat.text)
        await seat.press("escape")
        await seat.until(lambda: "xyzxyz" not in seat.text)
        assert len(seat.app.notices) == said
        await seat.press("escape")
        assert seat.app.notices[-1].startswith("q or p closes the project")


@pytest.mark.slow
async def test_duplicating_a_run_twice_removes_no_step(sit, built_data):
    """The key that makes a plan of a run is none that removes in the plan."""
    async with sit(built_data, "2", "G", "3", "G", size=(80, 24), tab="runs") as seat:
        assert seat.app.screen.current_run_line.run.id == DONE
        steps = (await seat.press("d")).count("measure  ")
        assert "[2 Plan]" in seat.text
        assert (await seat.press("d", "d")).count("measure  ") == steps
        await seat.press("X")
        assert "was removed; u undoes" in seat.app.notices[-1]
