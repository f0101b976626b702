"""Two apps and four workers on one workspace at the same time: no lock error, no lost update, no task run twice.

For a few seconds the apps are readers such as the app's own; in the study two real apps are used in terminals beside them.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from prepared_workspaces import enter_recipe
from terminals import APP, Pty, app_environment

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import audit_rows, chain_problem, read_head, read_head_file
from sfumato.workspace.jobs.queue import requeue_run, stop_run
from sfumato.workspace.store.runs import (
    RunState,
    find_run,
    list_project_summaries,
    list_runs,
    list_tasks,
    summarise_runs,
)
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import ResultSelection, read_result_rows, read_selected_rows

pytestmark = pytest.mark.slow

WORKERS = 4
LARGE = {"m": 12, "seed": 5}
USES = (
    *((digit,) for digit in "123456789"), ("j",), ("k",), ("G",), ("g",), ("pagedown",), ("?", "q"), ("2", "d"), ("2", "o"),
    ("2", "/", *"true", "enter"), ("2", "/", "ctrl+u", "enter"), ("4", "m"), ("4", "right", "y"), ("4", "t"), ("6", "m"),
    ("7", "p", "p"), ("8", "j"), ("A", "q"), ("1", "enter"), ("1", "space", "space"),
)  # fmt: skip
"""What somebody does at the app who only looks: tabs, cursors, filters, screens that are opened and closed."""


class App(threading.Thread):
    """Looks at a workspace as the app does, several times a second, and now and then stops a run and resumes it."""

    def __init__(self, directory: Path, stops: bool) -> None:
        super().__init__()
        self.directory = directory
        self.stops = stops
        self.ended = threading.Event()
        self.polls = 0
        self.stopped = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.ended.is_set():
                self.look()
                self.polls += 1
                time.sleep(0.05)
        except BaseException as error:  # noqa: BLE001  (the test asserts that there is none)
            self.error = error

    def look(self) -> None:
        with Workspace.open(self.directory, read_only=True) as reader:
            for line in list_project_summaries(reader):
                for run in summarise_runs(reader, line.id):
                    list_tasks(reader, run.run.id)
                    read_selected_rows(reader, ResultSelection(run.run.id, with_draws=True), 0, 50)
            going_on = [run.id for run in list_runs(reader) if run.state is RunState.RUNNING]
        if self.stops and going_on and self.polls % 20 == 19:
            with contextlib.closing(Workspace.open(self.directory)) as workspace:
                if stop_run(workspace, going_on[0], RunState.INTERRUPTED):
                    self.stopped += requeue_run(workspace, going_on[0])


class RealApp(App):
    """The app in a terminal, used with random keys."""

    def __init__(self, directory: Path, home: Path, seed: int) -> None:
        super().__init__(directory, stops=False)
        self.rng = np.random.default_rng(seed)
        self.terminal = Pty([*APP, "--workspace", str(directory)], app_environment(home))

    def run(self) -> None:
        try:
            self.terminal.see("Small study").press("enter").see(r"\[1 Runs\]")
            super().run()
            self.terminal.press("1").see(r"\[1 Runs\]").press("q").see("newest run|state").press("q")
            assert self.terminal.ended
        except BaseException as error:  # noqa: BLE001  (the test asserts that there is none)
            self.error = error
        finally:
            self.terminal.close()

    def look(self) -> None:
        self.terminal.press(*USES[int(self.rng.integers(len(USES)))])
        self.ended.wait(self.rng.uniform(0.05, 0.4))
        if self.polls % 20 == 19:
            self.terminal.press("1").see(r"\[1 Runs\]")


def carry_out_together(
    workspace: Workspace, enter: Callable[[], int], seconds: float, real_apps: list[App]
) -> tuple[list[int], list[App], str]:
    """Enter runs for so long, with four workers and two apps at work; their numbers, the apps, and what the workers said."""
    for statement in (
        "CREATE TABLE happened (task_id INTEGER, attempt INTEGER, state TEXT)",
        """CREATE TRIGGER witness AFTER UPDATE OF state ON task WHEN NEW.state <> OLD.state
           BEGIN INSERT INTO happened VALUES (NEW.id, NEW.attempt, NEW.state); END""",
    ):
        workspace.connection.execute(statement)
    runs = [enter()]
    options = [str(workspace.directory), "--idle", "0.5"]
    workers = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", "sfumato.workspace.jobs.worker_main", *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(WORKERS)
    ]
    apps = [*(App(workspace.directory, stops) for stops in (False, True)), *real_apps]
    for app in apps:
        app.start()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if sum(not run.state.is_final for run in list_runs(workspace)) < 3:
            runs.append(enter())
        time.sleep(0.05)
    said = "".join(worker.communicate(timeout=120)[1] for worker in workers)
    for app in apps:
        app.ended.set()
        app.join()
    return runs, apps, said


def check(
    workspace: Workspace, recipe: Recipe, data: Microdata, seconds: float, real_apps: list[App] | None = None
) -> None:
    def enter() -> int:
        return enter_recipe(workspace, recipe, data)

    runs, apps, said = carry_out_together(workspace, enter, seconds, real_apps or [])
    stopped = sum(app.stopped for app in apps)
    print(f"{len(runs)} runs, {sum(app.polls for app in apps)} polls, {stopped} stops")
    assert "locked" not in said, said
    assert "Traceback" not in said, said
    assert [app.error for app in apps if app.error] == []
    expected = list(execute_run(recipe, data, key=PUBLIC).rows)
    for run_id in runs:
        assert find_run(workspace, run_id).state is RunState.DONE
        assert read_result_rows(workspace, run_id) == expected
    twice = workspace.connection.execute(
        """SELECT task_id FROM happened GROUP BY task_id
           HAVING sum(state = 'done') <> 1 OR max(rowid) <> max(CASE WHEN state = 'done' THEN rowid END)"""
    ).fetchall()
    assert twice == []
    claims, attempts = workspace.connection.execute(
        "SELECT (SELECT count(*) FROM happened WHERE state = 'running'), (SELECT sum(attempt) FROM task)"
    ).fetchone()
    assert claims == attempts
    kept = read_head_file(workspace.directory)
    assert kept is not None
    assert chain_problem(audit_rows(workspace.connection), read_head(workspace.connection), [kept]) == ""
    acts = [row.act for row in audit_rows(workspace.connection)]
    assert acts.count("run entered") == acts.count("run finished") == len(runs)
    assert acts.count("run resumed") == acts.count("run interrupted") == stopped


def test_four_workers_and_two_apps_share_a_workspace_for_a_few_seconds(
    workspace: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    check(workspace, small_recipe(release=LARGE | {"m": 6}), small_data, 2)


@pytest.mark.study
def test_four_workers_and_two_apps_share_a_workspace_for_five_minutes(
    workspace: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata, tmp_path: Path
) -> None:
    real: list[RealApp] = [RealApp(workspace.directory, tmp_path, seed) for seed in (1, 2)]
    check(workspace, small_recipe(release=LARGE), small_data, 300, [*real])
    for app in real:
        print(f"{app.polls} things done in a terminal, {len(app.terminal.received):,} bytes received")
        for word in (b"Traceback", b"locked", b"cannot be read"):
            assert word not in app.terminal.received
