"""The log of a run: what happened to its tasks, no value of the data, and never larger than it may be."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.engine.microdata import Microdata
from sfumato.workspace.jobs import runs
from sfumato.workspace.jobs.runs import note
from sfumato.workspace.jobs.worker import work
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.runs import tasks_of


@pytest.mark.slow
def test_every_task_of_a_run_is_in_its_own_log(workspace: Workspace, enter: Callable[..., int]) -> None:
    run_ids = [enter(), enter()]
    work(workspace.directory, idle=0)
    for run_id in run_ids:
        lines = runs.run_log(workspace.directory, run_id).read_text().splitlines()
        assert [line.split()[1] for line in lines] == [task.key for task in tasks_of(workspace, run_id)]
        assert all("done in" in line and " MB" in line for line in lines)


def test_the_log_is_for_its_owner_alone_and_holds_no_value(
    workspace: Workspace, enter: Callable[..., int], small_data: Microdata
) -> None:
    run_id = enter()
    work(workspace.directory, idle=0)
    path = runs.run_log(workspace.directory, run_id)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    text = path.read_text()
    assert not [value for value in small_data.column("income") if str(value)[:8] in text]


def test_a_log_that_grows_too_large_is_set_aside_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.rotate, "__defaults__", (1000,))
    for number in range(200):
        note(tmp_path, 1, f"line {number:03} of a log")
    path = runs.run_log(tmp_path, 1)
    assert sorted(file.name for file in path.parent.iterdir()) == ["run-1.log", "run-1.log.1"]
    assert all(file.stat().st_size < 1100 for file in path.parent.iterdir())
    assert path.read_text().splitlines()[-1].endswith("line 199 of a log")
