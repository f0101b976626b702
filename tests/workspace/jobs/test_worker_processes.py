"""Workers as processes of their own: killed, two at a time, started from anywhere; always the same rows."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.worker import run_worker, start_worker
from sfumato.workspace.store.runs import RunState, find_run, list_tasks
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

pytestmark = pytest.mark.slow

Enter = Callable[..., int]
LONG = {"m": 40, "seed": 3}
PATIENCE = 60.0


@pytest.fixture
def expected(small_recipe: Callable[..., Recipe], small_data: Microdata) -> list[Row]:
    """What the engine finds without a workspace."""
    return list(execute_run(small_recipe(release=LONG), small_data, key=PUBLIC).rows)


@contextmanager
def worker_process(directory: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker, killed at the end if it still lives."""
    process = subprocess.Popen([sys.executable, "-m", "sfumato.workspace.jobs.worker_main", str(directory), *options])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.002)


def tasks_done(workspace: Workspace, run_id: int) -> int:
    return find_run(workspace, run_id).tasks_done


def assert_found(workspace: Workspace, run_id: int, expected: list[Row]) -> None:
    run = find_run(workspace, run_id)
    assert (run.state, run.error) == (RunState.DONE, "")
    assert read_result_rows(workspace, run_id) == expected


def computing_processes(parent: int) -> list[int]:
    """The processes in which a worker has its tasks computed."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            ours = entry.name.isdigit() and b"LokyProcess" in (entry / "cmdline").read_bytes()
            if ours and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
    return found


def test_a_worker_killed_in_mid_run_is_replaced_by_two_that_find_the_same(
    workspace: Workspace, enter: Enter, expected: list[Row]
) -> None:
    run_id = enter(release=LONG)
    with worker_process(workspace.directory) as killed:
        wait_until(lambda: tasks_done(workspace, run_id) >= 10)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    run = find_run(workspace, run_id)
    assert run.state is RunState.RUNNING
    assert run.tasks_done < run.tasks_total
    with (
        worker_process(workspace.directory, "--idle", "0") as one,
        worker_process(workspace.directory, "--idle", "0") as two,
    ):
        assert one.wait(PATIENCE) == 0
        assert two.wait(PATIENCE) == 0
    assert_found(workspace, run_id, expected)
    assert workspace.connection.execute("SELECT count(*) FROM worker WHERE stopped IS NULL").fetchone()[0] == 0


def test_a_worker_that_is_terminated_gives_its_task_back_at_once(workspace: Workspace, enter: Enter) -> None:
    run_id = enter(release=LONG)
    with worker_process(workspace.directory) as process:
        wait_until(lambda: tasks_done(workspace, run_id) >= 5)
        process.terminate()
        assert process.wait(PATIENCE) == 0
    states = {task.state for task in list_tasks(workspace, run_id)}
    assert states == {"done", "waiting"}
    assert workspace.connection.execute("SELECT count(*) FROM worker WHERE stopped IS NULL").fetchone()[0] == 0


def test_two_jobs_find_what_one_finds_though_a_process_is_killed(
    workspace: Workspace, enter: Enter, expected: list[Row]
) -> None:
    run_id = enter(release=LONG)
    victims: list[int] = []

    def kill_one() -> None:
        with_own_connection = Workspace.open(workspace.directory)
        wait_until(lambda: tasks_done(with_own_connection, run_id) >= 5)
        with_own_connection.close()
        victims.append(computing_processes(os.getpid())[0])
        os.kill(victims[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    run_worker(workspace.directory, jobs=2, idle=0)
    killer.join()
    assert victims
    assert_found(workspace, run_id, expected)


def test_a_started_worker_has_a_session_of_its_own_and_minds_no_file_where_it_was_started(
    workspace: Workspace, enter: Enter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for name in ("random", "sfumato", "workspace", "engine", "numpy"):
        (scripts / f"{name}.py").write_text("raise SystemExit('this is somebody else\\'s module')\n")
    monkeypatch.chdir(scripts)
    process = start_worker(workspace.directory)
    try:
        assert os.getsid(process.pid) == process.pid
        wait_until(lambda: find_run(workspace, run_id).state.is_final)
        assert find_run(workspace, run_id).state is RunState.DONE
        process.terminate()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
    assert "somebody else" not in (workspace.directory / "logs" / "worker.log").read_text()
