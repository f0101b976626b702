"""What screens say before their data have come, and of a run that is not done: nothing that is untrue."""

import pytest

from sfumato.tui.app.project import TABS, ProjectScreen
from sfumato.tui.parts.page import WorkspaceReader
from sfumato.tui.session.state import AppState, save_state

DONE, FAILED, RUNNING = 1, 2, 4
UNTRUE = (
    "nothing to draw", "no study", "no values of single records", "No row", "no results yet", "no data", "No model", "✗",
    "has no limits, so", "two numbers to place it by", "There are no numbers", "No run yet",
)  # fmt: skip
AT_LENGTH = {"sweep": "No studies yet", "records": "No records yet", "verdicts": "No verdicts yet"}


@pytest.mark.slow
@pytest.mark.parametrize("keys", [(), ("t",)], ids=["shown first", "after t"])
@pytest.mark.parametrize("tab", TABS)
async def test_nothing_untrue_is_said_before_what_is_read_has_come(sit, directory, monkeypatch, tab, keys):
    for name in ("read", "compute", "compute_in_processes"):
        held = getattr(WorkspaceReader, name)
        monkeypatch.setattr(
            WorkspaceReader,
            name,
            lambda self, *given, held=held, **named: (
                held(self, *given, **named) if isinstance(self, ProjectScreen) else None
            ),
        )
    monkeypatch.setattr("sfumato.tui.widgets.grid.Grid.set_source", lambda *_, **__: None)
    async with sit(directory, *keys, tab=tab, size=(80, 24)) as seat:
        below = "\n".join(line for line in seat.text.splitlines()[1:-1] if "Help" not in line)
        assert [word for word in UNTRUE if word in below] == []


@pytest.mark.parametrize(("run_id", "state"), [(RUNNING, "running"), (FAILED, "failed")])
@pytest.mark.parametrize("tab", AT_LENGTH)
async def test_a_run_that_is_not_done_is_not_said_to_lack_anything(sit, built_data, tab, run_id, state):
    save_state(built_data, AppState(project=1, run=run_id, tab=tab))
    async with sit(built_data, size=(80, 24)) as seat:
        assert f"{AT_LENGTH[tab]}: run {run_id} is not done" in seat.text
        assert state in seat.text
        assert [word for word in UNTRUE[:4] if word in seat.text] == []


@pytest.mark.slow
async def test_the_data_and_the_plan_are_named_before_the_current_run(sit, built_data):
    """They are the project's: the run beside them, by its number, may have been made with others."""
    async with sit(built_data, tab="results", size=(80, 24)) as seat:
        assert f"run {DONE}" in seat.text.splitlines()[0]
        for key, name in (("2", "plan"), ("1", "data")):
            above = (await seat.press(key)).splitlines()[0]
            assert f"› {name}  run {DONE}  not asked yet" in above


@pytest.mark.slow
async def test_keys_after_a_switch_of_the_view_are_kept(sit, built_data):
    """All are pressed before any has been drawn."""
    async with sit(built_data, tab="sweep", size=(80, 24)) as seat:
        before = seat.text
        for key in ("t", "j", "t", "m", "3", "act:results", "slash", "e", "c", "d", "f", "enter"):
            seat.app.simulate_key(key)
        while seat.app.is_acting or seat.app._typed:
            await seat.pilot.pause(0.01)
        text = await seat.press("shift")
        assert before != text
        assert "filter: ecdf" in text
