"""Runs survive kill -9 of the worker, of the command or the app, or of both, at random moments, and signals; the answer is the same.

The evidence is a run that nobody disturbed: rows, verdicts and hashes of all tables must be its own. A trigger in the
database notes every change of a task's state, so that a task that ran again after it was done would be seen.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prepared_workspaces import enter_recipe
from terminals import APP, Pty, app_environment

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.audit import audit_rows, chain_problem, read_head, read_head_file
from sfumato.workspace.jobs.queue import has_unfinished_runs, requeue_run, stop_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import RunState, find_run, has_live_worker, list_tasks
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows, read_verdicts

pytestmark = pytest.mark.slow

PATIENCE = 60.0
SECTIONS: dict[str, Any] = {
    "release": {"m": 8, "seed": 11},
    "synthesis": [
        {"target": "visits", "method": "zero_inflated_truncated_poisson", "predictors": ["region", "age"]},
        {"target": "income", "method": "linear_regression", "predictors": ["region", "age", "visits"]},
    ],
    "study": [{"method": "studies.intruder_uncertainty", "variable": "age", "levels": [0.0, 0.05, 0.1]}],
}
WITNESS = (
    "CREATE TABLE happened (task_id INTEGER, attempt INTEGER, state TEXT)",
    """CREATE TRIGGER witness AFTER UPDATE OF state ON task WHEN NEW.state <> OLD.state OR NEW.attempt <> OLD.attempt
       BEGIN INSERT INTO happened VALUES (NEW.id, NEW.attempt, NEW.state); END""",
)
Enter = Callable[[], int]


@pytest.fixture
def enter_hard(workspace: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata) -> Enter:
    """Enter a run with a sampler, draws, measures and a study, in a workspace that notes what happens to tasks."""
    for statement in WITNESS:
        workspace.connection.execute(statement)
    recipe = small_recipe(**SECTIONS)
    return lambda: enter_recipe(workspace, recipe, small_data)


def run_results_text(workspace: Workspace, run_id: int) -> str:
    """Everything that a run found, as text."""
    tables = workspace.connection.execute("SELECT name, sha256 FROM artefact WHERE run_id = ? ORDER BY name", (run_id,))
    return json.dumps(
        [
            [row.to_dict() for row in read_result_rows(workspace, run_id)],
            [verdict.to_dict() for verdict in read_verdicts(workspace, run_id)],
            [list(row) for row in tables],
        ]
    )


@pytest.fixture(scope="module")
def undisturbed(computed: Callable[..., Path]) -> str:
    with Workspace.open(computed(**SECTIONS), read_only=True) as workspace:
        assert find_run(workspace, 1).state is RunState.DONE
        return run_results_text(workspace, 1)


@contextlib.contextmanager
def command(workspace: Workspace, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command line in a process; whatever it has started is killed at the end."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
    process = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-c",
            "from sfumato.tui.cli.main import main; main()",
            *arguments,
            "--workspace",
            str(workspace.directory),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def workers(workspace: Workspace) -> list[int]:
    """Process numbers of the workers that have not left, newest first."""
    rows = workspace.connection.execute("SELECT pid FROM worker WHERE stopped IS NULL ORDER BY started DESC")
    return [row[0] for row in rows]


def kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.005)


def assert_each_task_was_done_once(workspace: Workspace, run_id: int) -> None:
    for task in list_tasks(workspace, run_id):
        states = [row[0] for row in workspace.connection.execute(
            "SELECT state FROM happened WHERE task_id = ? ORDER BY rowid", (task.id,))]  # fmt: skip
        assert states.count("done") == 1, (task.key, states)
        assert states[-1] == "done", (task.key, states)
        assert states.count("running") == task.attempt


def kill_at_random_moments(
    workspace: Workspace, enter: Enter, jobs: int, kills: int, rng: np.random.Generator
) -> list[int]:
    """Carry out runs with so many kills in their midst, one after the other; returns their numbers."""
    runs: list[int] = []
    going_on = False
    while kills or going_on:
        if not going_on:
            runs.append(enter())
        with command(workspace, "resume", str(runs[-1]), "--jobs", str(jobs), "--quiet") as process:
            moment = rng.uniform(0.2, 3.5) if kills else PATIENCE
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            going_on = not find_run(workspace, runs[-1]).state.is_final
            if not going_on:
                continue
            victims = (workers(workspace), [process.pid], [process.pid, *workers(workspace)])[int(rng.integers(3))]
            kill(*victims)
            kills -= 1
            going_on = True
    return runs


def kill_apps_at_random_moments(
    workspace: Workspace, enter: Enter, home: Path, kills: int, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """The same with the app in a terminal, which resumes the run, is used while it goes on, and is killed always.

    Half of the times the workers are killed too. Kills after a run's end do not count. Returns the runs, and how many tasks
    were done at each kill.
    """
    runs: list[int] = []
    shares: list[int] = []
    while len(shares) < kills or not find_run(workspace, runs[-1]).state.is_final:
        if not runs or find_run(workspace, runs[-1]).state.is_final:
            runs.append(enter())
        save_state(workspace.directory, AppState(project=1, run=runs[-1]))
        app = Pty([*APP, "--workspace", str(workspace.directory)], app_environment(home))
        with contextlib.closing(app):
            app.see(r"\[1 Runs\]", rf" {runs[-1]} +. (no worker|running|done)")
            if not has_live_worker(workspace) and not find_run(workspace, runs[-1]).state.is_final:
                app.see(rf" {runs[-1]} +! no worker").press("r").see(rf" {runs[-1]} +. (running|done)")
            if len(shares) >= kills:
                app.see(rf" {runs[-1]} +. done", patience=PATIENCE)
                continue
            ends = time.monotonic() + rng.uniform(0.0, 1.5)
            while time.monotonic() < ends:
                app.press(str(rng.integers(1, 10)), "j").until_quiet(0.05)
            run = find_run(workspace, runs[-1])
            if not run.state.is_final:
                shares.append(run.tasks_done)
            kill(*([*workers(workspace)] if rng.random() < 0.5 else []))
            app.kill()
    return runs, shares


def assert_survived(workspace: Workspace, runs: list[int], undisturbed: str) -> None:
    for run_id in runs:
        assert find_run(workspace, run_id).state is RunState.DONE
        assert run_results_text(workspace, run_id) == undisturbed
        assert_each_task_was_done_once(workspace, run_id)
    assert not chain_problem(
        audit_rows(workspace.connection), read_head(workspace.connection), [read_head_file(workspace.directory)]
    )  # type: ignore[list-item]
    assert workspace.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


@pytest.mark.parametrize(("jobs", "kills"), [pytest.param(1, 2, marks=pytest.mark.study), (2, 3)])
def test_a_run_killed_at_a_few_random_moments_ends_as_if_nothing_had_happened(
    workspace: Workspace, enter_hard: Enter, undisturbed: str, jobs: int, kills: int
) -> None:
    runs = kill_at_random_moments(workspace, enter_hard, jobs, kills, np.random.default_rng(jobs))
    kill(*workers(workspace))
    assert_survived(workspace, runs, undisturbed)


@pytest.mark.study
@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_killed_at_fifty_random_moments_each_way_end_as_if_nothing_had_happened(
    workspace: Workspace, enter_hard: Enter, undisturbed: str, jobs: int
) -> None:
    runs = kill_at_random_moments(workspace, enter_hard, jobs, 50, np.random.default_rng(100 + jobs))
    kill(*workers(workspace))
    print(f"jobs {jobs}: 50 kills in {len(runs)} runs")
    assert_survived(workspace, runs, undisturbed)


@pytest.mark.study
def test_runs_whose_app_is_killed_at_fifty_random_moments_end_as_if_nothing_had_happened(
    workspace: Workspace, enter_hard: Enter, undisturbed: str, tmp_path: Path
) -> None:
    runs, shares = kill_apps_at_random_moments(workspace, enter_hard, tmp_path, 50, np.random.default_rng(300))
    kill(*workers(workspace))
    print(f"50 kills of the app in {len(runs)} runs, after {sorted(shares)} tasks")
    assert_survived(workspace, runs, undisturbed)


def test_the_witness_sees_a_task_that_runs_twice(workspace: Workspace, enter_hard: Enter) -> None:
    run_id = enter_hard()
    run_worker(workspace.directory, idle=0)
    assert_each_task_was_done_once(workspace, run_id)
    for state in ("running", "done"):
        workspace.connection.execute("UPDATE task SET state = ? WHERE run_id = ? AND key = 'fit/0'", (state, run_id))
    with pytest.raises(AssertionError):
        assert_each_task_was_done_once(workspace, run_id)


def test_a_command_that_is_interrupted_says_how_to_go_on_and_leaves_a_run_that_can(
    workspace: Workspace, enter_hard: Enter, undisturbed: str
) -> None:
    run_id = enter_hard()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = find_run(workspace, run_id).tasks_done
        with command(workspace, "resume", str(run_id), "--jobs", "1") as process:
            wait_until(lambda: find_run(workspace, run_id).tasks_done > before)  # noqa: B023
            process.send_signal(number)
            said = process.communicate(timeout=PATIENCE)[1].decode()
            assert process.returncode == 3
        assert f"run {run_id} is interrupted; resume it with: sfumato resume {run_id}" in said
        kill(*workers(workspace))
    requeue_run(workspace, run_id)
    run_worker(workspace.directory, idle=0)
    assert_survived(workspace, [run_id], undisturbed)


def test_a_command_that_loses_its_terminal_leaves_its_run_going_on(
    workspace: Workspace, enter_hard: Enter, undisturbed: str
) -> None:
    run_id = enter_hard()
    with command(workspace, "resume", str(run_id), "--jobs", "1") as process:
        wait_until(lambda: bool(workers(workspace)))
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE) == -signal.SIGHUP
    os.kill(workers(workspace)[0], signal.SIGHUP)
    wait_until(lambda: find_run(workspace, run_id).state.is_final)
    kill(*workers(workspace))
    assert_survived(workspace, [run_id], undisturbed)


def test_a_worker_that_was_killed_is_missed_at_once_and_its_task_taken_by_the_next(
    workspace: Workspace, enter_hard: Enter, undisturbed: str
) -> None:
    run_id = enter_hard()
    with command(workspace, "worker", "--jobs", "1") as process:
        wait_until(lambda: find_run(workspace, run_id).state is RunState.RUNNING)
        assert has_live_worker(workspace)
        process.kill()
        process.wait()
    assert list_tasks(workspace, run_id)[0].state == "running"
    assert not has_live_worker(workspace)
    run_worker(workspace.directory, idle=0)
    assert_survived(workspace, [run_id], undisturbed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_worker_in_the_foreground_gives_its_tasks_back_on_a_signal(
    workspace: Workspace, enter_hard: Enter, number: signal.Signals
) -> None:
    run_id = enter_hard()
    with command(workspace, "worker", "--jobs", "1") as process:
        wait_until(lambda: find_run(workspace, run_id).tasks_done >= 1)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
    assert workers(workspace) == []
    assert {task.state for task in list_tasks(workspace, run_id)} == {"done", "waiting"}
    assert has_unfinished_runs(workspace)


def test_a_stopped_run_is_left_though_its_task_reports_nothing_and_never_ends(
    workspace: Workspace, enter_hard: Enter, tmp_path: Path
) -> None:
    """The first task is one long call that holds Python's lock and reports nothing: only its process's end can stop it."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import sfumato.workspace.jobs.run_task as p, sfumato.engine.execution.tasks as e\n"
        "def endless(tables, order, report, key):\n"
        "    return sum(range(10**12))\n"
        "p._COMPUTE_BY_KIND[e.TaskKind.FIT] = endless\n"
    )
    run_id = enter_hard()
    path = os.pathsep.join(filter(None, (str(tmp_path / "site"), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    options = ["--jobs", "1", "--idle", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sfumato.workspace.jobs.worker_main", str(workspace.directory), *options],
        env=environment,
    )
    try:
        wait_until(lambda: list_tasks(workspace, run_id)[0].state == "running")
        time.sleep(1.5)
        stop_run(workspace, run_id, RunState.CANCELLED)
        wait_until(lambda: list_tasks(workspace, run_id)[0].state == "waiting")
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
    assert find_run(workspace, run_id).state is RunState.CANCELLED
