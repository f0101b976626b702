"""Keys that start, remove or end something ask first, or are not where one is pressed by habit."""

import pytest

DONE = 1


@pytest.mark.slow
async def test_escape_on_the_list_of_projects_does_not_quit(sit, directory):
    async with sit(directory, "escape", "escape", size=(80, 24)) as seat:
        assert seat.app.is_running
        assert seat.app.notices[-1] == "q quits; runs keep running"
        await seat.press("enter", "escape")
        assert len(seat.app.screen_stack) == 1
        assert seat.app._exit is False
        await seat.press("q", "y")
        assert seat.app._exit


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
