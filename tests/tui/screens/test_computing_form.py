"""Where runs are computed is said in the app, and what has no room is refused where it is asked for."""

import os

import pytest

from sfumato.engine.methods import measured_rates
from sfumato.tui.session.command_lines import computing_options
from sfumato.workspace.jobs.settings import DASK_VARIABLE, MEMORY_VARIABLE
from sfumato.workspace.store.runs import list_runs
from sfumato.workspace.store.workspace import Workspace


@pytest.fixture
def unsettled(monkeypatch):
    """As when the app is started."""
    monkeypatch.setenv(MEMORY_VARIABLE, "")
    monkeypatch.setenv(DASK_VARIABLE, "")


@pytest.mark.slow
async def test_where_runs_are_computed_is_chosen_in_the_palette_and_checked_while_it_is_typed(
    sit, built_data, unsettled
):
    async with sit(built_data, size=(80, 24)) as seat:
        await seat.press("ctrl+p", *"where runs")
        await seat.pilot.pause(0.3)
        await seat.press("enter", "shift", *"much")
        await seat.press("enter")
        assert '"much" is no size' in seat.text
        await seat.press(*["backspace"] * 4, *"8 GB", "down", *"tcp://host", "enter")
        assert "is no address of a Dask scheduler" in seat.text
        assert os.environ[MEMORY_VARIABLE] == ""
        await seat.press(*":8786", "enter")
        assert (os.environ[MEMORY_VARIABLE], os.environ[DASK_VARIABLE]) == ("8 GB", "tcp://host:8786")
        assert "on the cluster at tcp://host:8786, in at most 8 GB; the connection is open" in seat.app.notices[-1]
        assert computing_options() == ("--dask", "tcp://host:8786", "--memory", "8 GB")


@pytest.mark.slow
async def test_a_run_that_has_no_room_says_so_before_it_is_agreed_to_and_is_refused(
    sit, built_data, unsettled, no_worker, monkeypatch
):
    with Workspace.open(built_data) as workspace:
        runs = len(list_runs(workspace))
        recipe = list_runs(workspace)[0].recipe
    for step in recipe.synthesis:
        monkeypatch.setitem(measured_rates.RATES, step.method.key, (1.0, 40e9, 0.0, 0.0))
    monkeypatch.setenv(MEMORY_VARIABLE, "6 GB")
    with Workspace.open(built_data) as workspace:  # what the run there took says more than any rate
        workspace.connection.execute("UPDATE task SET seconds = NULL")
    async with sit(built_data, "R", size=(80, 24), tab="plan") as seat:
        await seat.until(lambda: "needs about" in seat.text)
        lines = [line.split("│")[1] for line in seat.text.splitlines() if line.count("│") > 1]
        said = " ".join(" ".join(lines).split())
        assert "needs about 40 GB of memory, and there is about 6.0 GB (the limit that was given)" in said
        await seat.press("y")
        await seat.until(lambda: seat.app.notices and "needs about 40 GB of memory" in seat.app.notices[-1])
    assert no_worker == []
    with Workspace.open(built_data) as workspace:
        assert len(list_runs(workspace)) == runs
