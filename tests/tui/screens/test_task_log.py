"""The live log of a run's tasks."""

import pytest

from sfumato.tui.runs.task_log import TaskLog
from sfumato.workspace.store.run_log import log_task, run_log_path
from sfumato.workspace.store.runs import list_tasks
from sfumato.workspace.store.workspace import Workspace

RUNNING = 4


def running_task(directory):
    with Workspace.open(directory, read_only=True) as workspace:
        return next(task for task in list_tasks(workspace, RUNNING) if task.state == "running")


@pytest.mark.slow
async def test_the_log_of_a_task_is_shown_and_followed(sit, directory, size):
    task = running_task(directory)
    log_task(directory, RUNNING, task.key, 1, "w", "begun")
    log_task(directory, RUNNING, "measure/0/1", 2, "w", "failed: no\nFile x.py, line 3")
    async with sit(directory, "enter", "act:log", size=size) as seat:
        assert isinstance(seat.app.screen, TaskLog)
        assert "Run 4 Household survey  running  1/20   5 % tasks" in seat.text
        line = next(line for line in seat.text.splitlines() if line.strip().startswith(f"{task.key} "))
        assert "running" in line
        assert "400/2000 emcee" in line
        assert f"{task.key}: 1 entry of the log" in seat.text
        assert "File x.py" not in seat.text
        log_task(directory, RUNNING, task.key, 1, "w", "emcee 900 of 2,000, 80 MB")
        with Workspace.open(directory) as workspace:
            workspace.connection.execute("UPDATE task SET done = 900 WHERE state = 'running'")
        seat.app._poll_workspace()
        await seat.press("shift")
        assert "emcee 900 of 2,000, 80 MB" in seat.text
        assert "900/2000 emcee" in seat.text
        text = await seat.press("f")
        assert "All tasks: 3 entries of the log" in text
        assert "measure/0/1  attempt 2:  failed: no" in text
        assert "    File x.py, line 3" in text
        await seat.press("q")
        assert not isinstance(seat.app.screen, TaskLog)


@pytest.mark.slow
async def test_a_log_that_is_none_is_said_to_be(sit, directory):
    path = run_log_path(directory, RUNNING)
    path.parent.mkdir(mode=0o700)
    path.symlink_to("/etc/passwd")
    async with sit(directory, "enter", "act:log", "f", size=(80, 24)) as seat:
        assert "The log cannot be read" in seat.text
        assert "root:" not in seat.text
        path.unlink()
        path.write_text("\x1b]52;c;eA==\x07[red]bold\u202e\n", "utf-8")
        with Workspace.open(directory) as workspace:
            workspace.connection.execute("UPDATE task SET done = 901 WHERE state = 'running'")
        seat.app._poll_workspace()
        text = await seat.press("shift")
        assert "[red]bold" in text
        assert not any(sign in text for sign in "\x1b\x07\u202e")
