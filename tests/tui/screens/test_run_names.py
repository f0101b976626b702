"""Names and notes of runs in the app."""

import re

import pytest

from sfumato.workspace.store.run_names import name_run
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

DONE = 1


@pytest.mark.slow
async def test_m_names_the_run_under_the_cursor(sit, directory):
    async with sit(directory, "enter", "G", size=(80, 40)) as seat:
        text = await seat.press("act:rename")
        assert "Name and note of run 1" in text
        await seat.press(*"Best", "down", *"for us", "enter")
        assert "Run 1 is called Best" in seat.app.notices
        await seat.press("shift")
        assert re.search("Run +1 Best: survey.csv", seat.text)
        assert any(line.startswith(" Note") and "for us" in line for line in seat.text.splitlines())
        await seat.press("enter")
        assert "run 1  Best  public key" in seat.text.splitlines()[0]
    with Workspace.open(directory, read_only=True) as workspace:
        assert find_run(workspace, "best").note == "for us"


@pytest.mark.slow
async def test_a_name_that_means_another_run_is_refused_while_it_is_typed(sit, directory):
    async with sit(directory, "enter", "G", "act:rename", "4", size=(80, 24)) as seat:
        assert '"4" is a number' in " ".join(seat.text.split())
        await seat.press("enter")
        assert "Name and note of run 1" in seat.text, "it stays open"
        await seat.press("a", "enter")
        assert "Name and note" not in seat.text
    with Workspace.open(directory, read_only=True) as workspace:
        assert find_run(workspace, DONE).name == "4a"


@pytest.mark.slow
async def test_a_hostile_name_commands_nothing(sit, directory):
    with Workspace.open(directory) as workspace:
        name_run(workspace, DONE, "plain", "plain")
        workspace.connection.execute(
            "UPDATE run_name SET name = ?, note = ?", ("[red]\x1b[2J\u202e", "[b]\x1b]52;c;eA==\x07")
        )
    async with sit(directory, "enter", "G", size=(120, 40)) as seat:
        assert "[red]" in seat.text
        assert not any(sign in seat.text for sign in "\x1b\u202e\x07")
        await seat.press("act:rename")
        assert "[red]" in seat.text
        assert "\x1b" not in seat.text
