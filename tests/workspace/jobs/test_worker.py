"""The worker in this process: what it finds, what it records when something goes wrong, and what it outlasts."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import NotConverged
from sfumato.engine.execution.tasks import RunResult, TaskKind, execute_run
from sfumato.engine.methods.run import PUBLIC, Progress
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs import queue, run_task, worker
from sfumato.workspace.jobs.pool import TaskPool
from sfumato.workspace.jobs.queue import claim_task, requeue_run, stop_run
from sfumato.workspace.jobs.run_task import TaskInput
from sfumato.workspace.jobs.runs import reenter_run, result_object
from sfumato.workspace.jobs.worker import WorkerHeartbeat, run_worker
from sfumato.workspace.store import database
from sfumato.workspace.store.database import DATABASE, open_database
from sfumato.workspace.store.run_log import run_log_path
from sfumato.workspace.store.runs import RunState, find_run, list_tasks
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_diagnostics, read_result_rows, read_verdicts

Enter = Callable[..., int]
SECRET = "zqxjkvbw"


@pytest.fixture
def expected(small_recipe: Callable[..., Recipe], small_data: Microdata) -> RunResult:
    """What the engine finds without a workspace."""
    return execute_run(small_recipe(), small_data, key=PUBLIC)


def assert_found(workspace: Workspace, run_id: int, expected: RunResult) -> None:
    run = find_run(workspace, run_id)
    assert (run.state, run.error) == (RunState.DONE, "")
    assert read_result_rows(workspace, run_id) == list(expected.rows)
    assert [v.to_dict() for v in read_verdicts(workspace, run_id)] == [v.to_dict() for v in expected.verdicts]


@pytest.mark.slow
def test_a_run_finds_what_the_engine_finds_row_for_row(workspace: Workspace, enter: Enter, expected: RunResult) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    assert_found(workspace, run_id, expected)
    assert len(expected.rows) > 20
    found = read_diagnostics(workspace, run_id)
    assert found == [replace(d, target=target) for target, fit in expected.fits.items() for d in fit.diagnostics]


@pytest.mark.slow
def test_the_released_tables_are_those_of_the_engine(workspace: Workspace, enter: Enter, expected: RunResult) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    dataset = workspace.find_dataset(find_run(workspace, run_id).dataset_id)
    for draw, release in enumerate(expected.releases, start=1):
        sha256 = workspace.connection.execute(
            "SELECT sha256 FROM artefact WHERE name = ?", (f"draw/{draw}",)
        ).fetchone()[0]
        stored = workspace.tables.read_microdata(sha256, dataset.schema, "synthetic")
        pd.testing.assert_frame_equal(stored.frame, release.frame, check_exact=True)


@pytest.mark.slow
def test_a_run_entered_again_finds_the_same(workspace: Workspace, enter: Enter) -> None:
    first = enter()
    run_worker(workspace.directory, idle=0)
    second = reenter_run(workspace, first)
    run_worker(workspace.directory, idle=0)
    one, two = result_object(workspace, first), result_object(workspace, second)
    different = {key for key in one if one[key] != two[key]}
    assert different <= {"run", "seconds"}
    assert len(one["rows"]) > 20


@pytest.mark.slow
def test_another_seed_finds_something_else(workspace: Workspace, enter: Enter, expected: RunResult) -> None:
    run_id = enter(release={"m": 3, "seed": 8})
    run_worker(workspace.directory, idle=0)
    assert read_result_rows(workspace, run_id) != list(expected.rows)


@pytest.mark.slow
def test_released_files_of_another_tool_are_scored(
    workspace: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata, expected: RunResult
) -> None:
    recipe = small_recipe(synthesis=[], release={"m": 3, "seed": 7, "released": ["visits", "income"]})
    given = [(SourceFile(f"{i}.csv", b""), release) for i, release in enumerate(expected.releases)]
    run_id = run_recipe(workspace, recipe, small_data, "original.csv", b"", external_datasets=given)
    assert read_result_rows(workspace, run_id) == list(
        execute_run(recipe, small_data, expected.releases, key=PUBLIC).rows
    )
    again = reenter_run(workspace, run_id)
    run_worker(workspace.directory, idle=0)
    assert read_result_rows(workspace, again) == read_result_rows(workspace, run_id)


def test_every_task_leaves_its_seconds_and_its_peak_memory(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    for task in list_tasks(workspace, run_id):
        assert task.seconds is not None
        assert 0 < task.seconds < 60
        assert task.peak_bytes is not None
        assert 10e6 < task.peak_bytes < 100e9


def test_a_worker_with_nothing_to_do_leaves_after_a_while_and_says_so(workspace: Workspace) -> None:
    run_worker(workspace.directory, idle=0.05)
    rows = workspace.connection.execute("SELECT started, heartbeat, stopped FROM worker").fetchall()
    assert len(rows) == 1
    assert rows[0]["stopped"] >= rows[0]["started"] + 0.05


def raising(error: Exception) -> Callable[..., Any]:
    def compute_task(*_: object) -> queue.TaskResult:
        raise error

    return compute_task


def test_a_sampler_that_does_not_converge_fails_the_run_in_its_own_words(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    monkeypatch.setattr(
        run_task, "compute_task", raising(NotConverged("alpha[3]", "R-hat", 1.2, "must be at most 1.01"))
    )
    run_worker(workspace.directory, idle=0)
    run = find_run(workspace, run_id)
    assert (run.state, run.error) == (
        RunState.FAILED,
        "alpha[3] has not converged: R-hat is 1.200, must be at most 1.01",
    )
    assert [task.state for task in list_tasks(workspace, run_id)[:2]] == ["failed", "waiting"]


def test_an_error_nobody_expected_leaves_its_type_and_no_word_of_the_data(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def clumsy(*_: object) -> queue.TaskResult:
        try:
            float(SECRET)
        except ValueError as error:
            raise KeyError(SECRET) from error
        raise AssertionError

    run_id = enter()
    monkeypatch.setitem(run_task._COMPUTE_BY_KIND, TaskKind.FIT, clumsy)
    with caplog.at_level(logging.DEBUG):
        run_worker(workspace.directory, idle=0)
    run = find_run(workspace, run_id)
    assert (run.state, run.error) == (RunState.FAILED, "fit/0: KeyError; the run's log says where")
    log = run_log_path(workspace.directory, run_id).read_text()
    assert "in clumsy" in log
    assert SECRET not in caplog.text + log
    assert SECRET not in run.error


@pytest.mark.slow
def test_a_failed_run_that_is_resumed_ends_as_if_nothing_had_happened(
    workspace: Workspace, enter: Enter, expected: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    with monkeypatch.context() as broken:
        broken.setitem(run_task._COMPUTE_BY_KIND, TaskKind.MEASURE, raising(RuntimeError("once")))
        run_worker(workspace.directory, idle=0)
    assert find_run(workspace, run_id).state is RunState.FAILED
    assert requeue_run(workspace, run_id)
    run_worker(workspace.directory, idle=0)
    assert_found(workspace, run_id, expected)


def test_a_stored_table_that_was_damaged_fails_the_run_by_its_name(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    table = next(workspace.tables.directory.glob("*.parquet"))
    table.write_bytes(table.read_bytes()[:-1])
    run_worker(workspace.directory, idle=0)
    run = find_run(workspace, run_id)
    assert run.state is RunState.FAILED
    assert f"{table.name} has changed" in run.error


@pytest.mark.slow
def test_a_stopped_run_is_left_at_the_next_report_and_ends_the_same_when_resumed(
    workspace: Workspace, enter: Enter, expected: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    plain = run_task._COMPUTE_BY_KIND[TaskKind.DRAW]

    def interrupted(
        tables: TableStore, order: TaskInput, report: Callable[[Progress], None], key: bytes
    ) -> queue.TaskResult:
        stop_run(workspace, order.lease.run_id, RunState.INTERRUPTED)
        return plain(tables, order, report, key)

    monkeypatch.setattr(run_task, "PROGRESS_SECONDS", 0.0)
    with monkeypatch.context() as stopping:
        stopping.setitem(run_task._COMPUTE_BY_KIND, TaskKind.DRAW, interrupted)
        run_worker(workspace.directory, idle=0)
    run = find_run(workspace, run_id)
    assert run.state is RunState.INTERRUPTED
    assert [task.state for task in list_tasks(workspace, run_id)[:3]] == ["done", "done", "waiting"]
    assert requeue_run(workspace, run_id)
    run_worker(workspace.directory, idle=0)
    assert_found(workspace, run_id, expected)


@pytest.mark.slow
def test_a_task_that_went_to_another_worker_is_left_at_the_next_report(
    workspace: Workspace, enter: Enter, expected: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    plain = run_task._COMPUTE_BY_KIND[TaskKind.FIT]
    reached = []

    def robbed(
        tables: TableStore, order: TaskInput, report: Callable[[Progress], None], key: bytes
    ) -> queue.TaskResult:
        held = order.lease
        if held.attempt == 1:
            workspace.connection.execute("UPDATE task SET lease_until = 0 WHERE id = ?", (held.task_id,))
            assert claim_task(workspace, "robber") is not None
            workspace.connection.execute("UPDATE task SET lease_until = 0 WHERE id = ?", (held.task_id,))
        outcome = plain(tables, order, report, key)
        reached.append(held.attempt)
        return outcome

    monkeypatch.setattr(run_task, "PROGRESS_SECONDS", 0.0)
    monkeypatch.setitem(run_task._COMPUTE_BY_KIND, TaskKind.FIT, robbed)
    run_worker(workspace.directory, idle=0)
    assert 1 not in reached
    assert_found(workspace, run_id, expected)


@pytest.mark.slow
def test_a_worker_waits_for_a_task_that_another_holds_and_takes_it_when_its_lease_runs_out(
    workspace: Workspace, enter: Enter, expected: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    monkeypatch.setattr(queue, "LEASE_SECONDS", 0.4)
    assert claim_task(workspace, "killed") is not None
    monkeypatch.setattr(queue, "LEASE_SECONDS", 30.0)
    run_worker(workspace.directory, idle=0)
    assert list_tasks(workspace, run_id)[0].attempt == 2
    assert_found(workspace, run_id, expected)


@pytest.mark.slow
def test_a_worker_that_is_told_to_end_gives_back_its_task(
    workspace: Workspace, enter: Enter, expected: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()

    def terminated(*_: object) -> queue.TaskResult:
        raise SystemExit(0)

    with monkeypatch.context() as ending:
        ending.setattr(run_task, "compute_task", terminated)
        with pytest.raises(SystemExit):
            run_worker(workspace.directory, idle=0)
    task = list_tasks(workspace, run_id)[0]
    assert (task.state, task.attempt) == ("waiting", 1)
    run_worker(workspace.directory, idle=0)
    assert_found(workspace, run_id, expected)


@contextmanager
def write_lock(directory: Path, seconds: float) -> Any:
    """Another process's long write, begun now and ended after a while."""
    locked = threading.Event()

    def hold() -> None:
        connection = open_database(directory / DATABASE)
        connection.execute("BEGIN IMMEDIATE")
        locked.set()
        time.sleep(seconds)
        connection.execute("COMMIT")
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert locked.wait(10)
    yield
    thread.join()


@pytest.mark.slow
def test_a_database_that_is_locked_for_longer_than_its_patience_loses_no_task(
    workspace: Workspace,
    enter: Enter,
    expected: RunResult,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run_id = enter()
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(run_task, "PROGRESS_SECONDS", 0.0)
    plain = run_task._COMPUTE_BY_KIND[TaskKind.FIT]

    def locked(
        tables: TableStore, order: TaskInput, report: Callable[[Progress], None], key: bytes
    ) -> queue.TaskResult:
        found = plain(tables, order, report, key)
        # after the computation, whose length must not use up the lock's
        write_lock(workspace.directory, 0.3).__enter__()
        return found

    monkeypatch.setitem(run_task._COMPUTE_BY_KIND, TaskKind.FIT, locked)
    run_worker(workspace.directory, idle=0)
    assert "the database is locked; trying again" in caplog.text
    assert {task.attempt for task in list_tasks(workspace, run_id)} == {1}
    assert_found(workspace, run_id, expected)


def test_other_errors_of_the_database_are_not_waited_out() -> None:
    def broken() -> None:
        raise sqlite3.OperationalError("no such table: task")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        worker.retry_while_locked(broken)


class FragilePool(TaskPool):
    """Its processes are killed at the first tasks that it is given."""

    def __init__(self, killed: int) -> None:
        self.killed = killed

    def submit_task(self, func: Callable[..., Any], *args: Any, needed_bytes: int = 0) -> Future[Any]:
        """A future of a killed process, so many times."""
        if self.killed:
            self.killed -= 1
            future: Future[Any] = Future()
            future.set_exception(BrokenProcessPool("killed"))
            return future
        return super().submit_task(func, *args)


@pytest.mark.slow
@pytest.mark.parametrize(("killed", "state"), [(2, RunState.DONE), (3, RunState.FAILED)])
def test_a_task_whose_process_is_killed_is_tried_three_times(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch, killed: int, state: RunState
) -> None:
    @contextmanager
    def fragile(jobs: int, dask: str) -> Any:
        yield FragilePool(killed)

    run_id = enter()
    monkeypatch.setattr(worker, "open_pool", fragile)
    run_worker(workspace.directory, idle=0)
    run = find_run(workspace, run_id)
    assert run.state is state
    assert ("fit/0: its process was killed 3 times" in run.error) == (state is RunState.FAILED)


def test_the_heart_beats_while_the_database_allows_and_survives_when_it_does_not(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.01)
    workspace.connection.execute("INSERT INTO worker VALUES ('me', 1, 0, 0, NULL)")
    enter()
    assert claim_task(workspace, "me") is not None
    workspace.connection.execute("UPDATE task SET lease_until = 0 WHERE worker = 'me'")

    def beats() -> float:
        return float(workspace.connection.execute("SELECT heartbeat FROM worker").fetchone()[0])

    with WorkerHeartbeat(workspace.directory, "me"):
        with write_lock(workspace.directory, 0.15):
            pass
        deadline = time.monotonic() + 10
        while beats() < time.time() - 1 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "heartbeat missed" in caplog.text
    assert beats() > time.time() - 5
    assert claim_task(workspace, "me") is not None
    lease = workspace.connection.execute("SELECT max(lease_until) FROM task WHERE item = 0").fetchone()[0]
    assert lease > time.time() + 20


def test_a_worker_whose_workspace_was_removed_ends(workspace: Workspace, enter: Callable[..., int]) -> None:
    enter()
    with closing(open_database(workspace.directory / DATABASE)) as held:
        held.execute("UPDATE task SET state = 'running', worker = 'another', lease_until = ?", (time.time() + 86_400,))
    workspace.close()
    thread = threading.Thread(target=run_worker, args=(workspace.directory,), kwargs={"idle": 0}, daemon=True)
    thread.start()
    thread.join(1.0)
    assert thread.is_alive(), "the control: it waits for what another worker holds"
    shutil.rmtree(workspace.directory)
    thread.join(20.0)
    assert not thread.is_alive()


def test_a_task_held_before_a_restart_is_carried_out_though_the_clock_was_set_back_since(
    workspace: Workspace, enter: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    held = claim_task(workspace, "before")
    assert held is not None
    workspace.connection.execute("INSERT INTO worker VALUES ('before', 1, 0, 9e12, NULL)")
    workspace.connection.execute("INSERT INTO worker_process VALUES ('before', 'the machine before its restart', '1')")
    workspace.connection.execute("UPDATE task SET lease_until = ? WHERE id = ?", (time.time() + 86_400, held.task_id))
    monkeypatch.setattr(queue, "LEASE_SECONDS", 0.5)
    run_worker(workspace.directory, idle=0)
    assert find_run(workspace, run_id).state is RunState.DONE
