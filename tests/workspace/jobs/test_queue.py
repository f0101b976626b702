"""Tasks are claimed once, end in one transaction, and come back when their holder is lost."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.engine.execution.tasks import plan_tasks
from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.jobs import queue
from sfumato.workspace.jobs.queue import (
    LEASE_SECONDS,
    MAX_LOST_ATTEMPTS,
    STUCK_MESSAGE,
    TaskLease,
    TaskResult,
    WaitingTask,
    claim_task,
    extend_leases,
    fail_task,
    finish_task,
    has_unfinished_runs,
    is_run_wanted,
    record_progress,
    requeue_run,
    return_all_tasks,
    return_task,
    shorten_leases,
    stop_run,
)
from sfumato.workspace.store.runs import RunState, find_run, list_tasks
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_diagnostics, read_raw_rows, read_verdicts

ROW = Row("utility", "ecdf", "maximum_difference", "income", "synthetic", 1, None, 0.25, params={"b": [1, 2], "a": "x"})
VERDICT = Verdict("utility.ecdf.maximum_difference", "income", None, "max", 0.5, 0.25, 0.25, "met")
DIAGNOSTIC = Diagnostic("pareto_k", "", 0.31, "at most 0.7", True)
FULL = TaskResult([ROW], [VERDICT], "income", [DIAGNOSTIC], {"fit/0": "0" * 64}, 1.5, 1000)
Enter = Callable[..., int]


def take(workspace: Workspace, worker: str = "worker") -> TaskLease:
    held = claim_task(workspace, worker)
    assert held is not None
    return held


def run_out(workspace: Workspace, held: TaskLease) -> None:
    """Let the lease of a task run out, as time would."""
    workspace.connection.execute("UPDATE task SET lease_until = 0 WHERE id = ?", (held.task_id,))


def states(workspace: Workspace, run_id: int) -> Counter[str]:
    return Counter(task.state for task in list_tasks(workspace, run_id))


def finish_all(workspace: Workspace) -> list[str]:
    keys = []
    while (held := claim_task(workspace, "worker")) is not None:
        keys.append(held.key)
        assert finish_task(workspace, held, TaskResult())
    return keys


def test_an_empty_queue_has_nothing_to_claim(workspace: Workspace) -> None:
    assert claim_task(workspace, "worker") is None
    assert not has_unfinished_runs(workspace)


def test_claiming_starts_the_run_and_its_first_task(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    assert find_run(workspace, run_id).state is RunState.QUEUED
    held = take(workspace)
    assert (held.run_id, held.key, held.kind, held.worker, held.attempt) == (run_id, "fit/0", "fit", "worker", 1)
    run = find_run(workspace, run_id)
    assert run.state is RunState.RUNNING
    assert run.started is not None
    assert has_unfinished_runs(workspace)


def test_a_task_is_ready_when_all_that_it_needs_is_done(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    done: set[str] = set()
    recipe = find_run(workspace, run_id).recipe
    needs = {task.key: set(task.needs) for task in plan_tasks(recipe)}
    while ready := list(iter(lambda: claim_task(workspace, "worker"), None)):
        assert {held.key for held in ready} == {key for key in needs if needs[key] <= done} - done
        for held in reversed(ready):
            finish_task(workspace, held, TaskResult())
            done.add(held.key)
    assert done == set(needs)
    assert find_run(workspace, run_id).state is RunState.DONE


def test_runs_are_worked_on_in_the_order_in_which_they_were_entered(workspace: Workspace, enter: Enter) -> None:
    first, second = enter(), enter()
    taken = [take(workspace).run_id for _ in range(5)]
    assert taken == sorted(taken)
    assert set(taken) == {first, second}


def test_finishing_records_everything_the_task_found(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    assert finish_task(workspace, take(workspace), FULL)
    assert read_raw_rows(workspace, run_id) == [ROW]
    assert read_verdicts(workspace, run_id) == [VERDICT]
    assert read_diagnostics(workspace, run_id) == [replace(DIAGNOSTIC, target="income")]
    assert [tuple(row) for row in workspace.connection.execute("SELECT * FROM artefact")] == [
        (run_id, "fit/0", "0" * 64)
    ]
    task = list_tasks(workspace, run_id)[0]
    assert (task.state, task.seconds, task.peak_bytes) == ("done", 1.5, 1000)


def test_what_a_task_found_is_recorded_with_its_end_or_not_at_all(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    held = take(workspace)
    workspace.connection.execute("INSERT INTO verdict VALUES (?, 0, '{}')", (run_id,))
    with pytest.raises(sqlite3.IntegrityError):
        finish_task(workspace, held, FULL)
    assert read_raw_rows(workspace, run_id) == []
    assert read_diagnostics(workspace, run_id) == []
    assert list_tasks(workspace, run_id)[0].state == "running"
    workspace.connection.execute("DELETE FROM verdict")
    assert finish_task(workspace, held, FULL)


def test_a_task_is_finished_once(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    held = take(workspace)
    assert finish_task(workspace, held, FULL)
    assert not finish_task(workspace, held, FULL)
    assert len(read_raw_rows(workspace, run_id)) == 1


def test_a_lease_that_runs_out_gives_the_task_to_another_and_fences_off_the_first(
    workspace: Workspace, enter: Enter
) -> None:
    run_id = enter(
        synthesis=[], release={"m": 1, "released": ["income"]}, threshold=[], measure=[{"method": "utility.ecdf"}]
    )
    first = take(workspace, "first")
    assert claim_task(workspace, "second") is None
    run_out(workspace, first)
    second = take(workspace, "second")
    assert (second.task_id, second.attempt) == (first.task_id, 2)
    assert not record_progress(workspace, first, 1, 2, "late")
    return_task(workspace, first)
    fail_task(workspace, first, "late")
    assert not finish_task(workspace, first, FULL)
    assert read_raw_rows(workspace, run_id) == []
    assert record_progress(workspace, second, 1, 2, "in time")
    assert finish_task(workspace, second, FULL)
    assert read_raw_rows(workspace, run_id) == [ROW]


def test_the_same_worker_that_claims_again_is_fenced_off_from_its_first_claim(
    workspace: Workspace, enter: Enter
) -> None:
    enter()
    first = take(workspace)
    return_task(workspace, first)
    second = take(workspace)
    assert second.task_id == first.task_id
    assert not finish_task(workspace, first, FULL)
    assert finish_task(workspace, second, FULL)


def test_a_heartbeat_keeps_the_lease(workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(synthesis=[], release={"m": 1, "released": ["income"]}, threshold=[], measure=[{"method": "utility.ecdf"}])
    now = 1e9
    monkeypatch.setattr(queue.time, "time", lambda: now)
    take(workspace, "first")
    for _ in range(10):
        now += queue.LEASE_SECONDS * 0.9
        assert claim_task(workspace, "second") is None
        extend_leases(workspace, "first")
        extend_leases(workspace, "someone else")
    now += queue.LEASE_SECONDS * 1.1
    assert claim_task(workspace, "second") is not None


def test_a_task_whose_workers_keep_dying_fails_its_run(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    for attempt in range(1, MAX_LOST_ATTEMPTS + 1):
        held = take(workspace)
        while held.key != "fit/0":
            held = take(workspace)
        assert held.attempt == attempt
        run_out(workspace, held)
    claim_task(workspace, "worker")
    run = find_run(workspace, run_id)
    assert (run.state, "short of memory" in run.error) == (RunState.FAILED, True)
    assert requeue_run(workspace, run_id)
    assert list_tasks(workspace, run_id)[0].state == "waiting"


def test_a_lease_from_before_the_clock_was_set_back_is_waited_for_no_longer_than_one_given_now(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter()
    clock = [2_000_000_000.0]
    monkeypatch.setattr(queue.time, "time", lambda: clock[0])
    held = list(iter(lambda: claim_task(workspace, "worker"), None))
    assert held
    assert shorten_leases(workspace) == 0, "the control: leases of this clock stay as they are"
    clock[0] -= 86_400
    assert claim_task(workspace, "another") is None
    assert shorten_leases(workspace) == len(held)
    assert shorten_leases(workspace) == 0
    assert claim_task(workspace, "another") is None
    clock[0] += LEASE_SECONDS + 1
    again = take(workspace, "another")
    assert (again.task_id, again.attempt) == (held[0].task_id, 2)
    assert not finish_task(workspace, held[0], FULL)


def test_a_holder_that_lives_keeps_its_task_when_the_clock_is_set_back(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter()
    clock = [2_000_000_000.0]
    monkeypatch.setattr(queue.time, "time", lambda: clock[0])
    held = take(workspace)
    clock[0] -= 86_400
    shorten_leases(workspace)
    clock[0] += LEASE_SECONDS - 1
    extend_leases(workspace, "worker")
    clock[0] += LEASE_SECONDS - 1
    others = [task.task_id for task in iter(lambda: claim_task(workspace, "another"), None)]
    assert held.task_id not in others
    assert finish_task(workspace, held, FULL)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE task SET blockers = 1",
        "UPDATE task SET state = 'failed'",
        "UPDATE task SET state = 'done'",
        "DELETE FROM task",
    ],
)
def test_a_run_of_which_no_task_can_ever_be_ready_fails(workspace: Workspace, enter: Enter, change: str) -> None:
    run_id = enter()
    workspace.connection.execute(change)
    assert claim_task(workspace, "worker") is None
    run = find_run(workspace, run_id)
    assert (run.state, run.error) == (RunState.FAILED, STUCK_MESSAGE)
    assert not has_unfinished_runs(workspace)


def test_a_run_whose_tasks_are_all_held_is_not_given_up(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    held = list(iter(lambda: claim_task(workspace, "worker"), None))
    assert held
    assert claim_task(workspace, "another") is None
    assert find_run(workspace, run_id).state is RunState.RUNNING


def test_progress_is_seen_by_others(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    held = take(workspace)
    assert record_progress(workspace, held, 3, 10, "sweeps")
    other = Workspace.open(workspace.directory)
    task = list_tasks(other, run_id)[0]
    other.close()
    assert (task.done, task.total, task.what) == (3, 10, "sweeps")


def test_a_failure_stops_the_run_and_says_why(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    first, second = take(workspace), take(workspace)
    fail_task(workspace, first, "the model cannot be fitted")
    run = find_run(workspace, run_id)
    assert (run.state, run.error) == (RunState.FAILED, "the model cannot be fitted")
    assert run.finished is not None
    assert not is_run_wanted(workspace, run_id)
    assert claim_task(workspace, "worker") is None
    assert not has_unfinished_runs(workspace)
    assert finish_task(workspace, second, FULL), "what was nearly done is kept for a resumed run"
    assert find_run(workspace, run_id).state is RunState.FAILED


@pytest.mark.parametrize("state", [RunState.INTERRUPTED, RunState.CANCELLED])
def test_a_stopped_run_gives_no_more_tasks_until_it_is_resumed(
    workspace: Workspace, enter: Enter, state: RunState
) -> None:
    run_id = enter()
    held = take(workspace)
    assert is_run_wanted(workspace, run_id)
    assert stop_run(workspace, run_id, state)
    assert find_run(workspace, run_id).state is state
    assert not is_run_wanted(workspace, run_id)
    assert claim_task(workspace, "worker") is None
    assert not stop_run(workspace, run_id, state)
    return_task(workspace, held)
    assert requeue_run(workspace, run_id)
    assert not requeue_run(workspace, run_id)
    assert finish_all(workspace)[0] == "fit/0"
    assert find_run(workspace, run_id).state is RunState.DONE


def test_resuming_keeps_finished_tasks_and_repeats_the_failed_one(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    assert finish_task(workspace, take(workspace), FULL)
    fail_task(workspace, take(workspace), "once")
    assert requeue_run(workspace, run_id)
    run = find_run(workspace, run_id)
    assert (run.state, run.error, run.finished) == (RunState.QUEUED, "", None)
    keys = finish_all(workspace)
    assert "fit/0" not in keys
    assert keys[0] == "fit/1"
    assert read_raw_rows(workspace, run_id) == [ROW]


def test_a_run_stopped_while_its_last_task_ended_is_done_when_resumed(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    while True:
        held = take(workspace)
        if held.key == "combine":
            break
        finish_task(workspace, held, TaskResult())
    stop_run(workspace, run_id, RunState.INTERRUPTED)
    assert finish_task(workspace, held, TaskResult())
    assert find_run(workspace, run_id).state is RunState.INTERRUPTED
    assert requeue_run(workspace, run_id)
    assert find_run(workspace, run_id).state is RunState.DONE
    assert not has_unfinished_runs(workspace)


def test_a_run_that_is_done_is_neither_stopped_nor_resumed(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    finish_all(workspace)
    assert not stop_run(workspace, run_id, RunState.CANCELLED)
    assert not requeue_run(workspace, run_id)
    assert find_run(workspace, run_id).state is RunState.DONE


def test_a_worker_that_leaves_gives_back_its_tasks_and_no_others(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    take(workspace, "leaving")
    take(workspace, "staying")
    return_all_tasks(workspace, "leaving")
    assert [task.state for task in list_tasks(workspace, run_id)[:2]] == ["waiting", "running"]


def test_a_run_that_was_deleted_is_no_longer_wanted(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    held = take(workspace)
    workspace.connection.execute("DELETE FROM run WHERE id = ?", (run_id,))
    assert not is_run_wanted(workspace, run_id)
    assert not finish_task(workspace, held, FULL)
    assert claim_task(workspace, "worker") is None


def claim_everything(directory: Path, worker: str, start: object) -> list[str]:
    workspace = Workspace.open(directory)
    start.wait()  # type: ignore[attr-defined]
    keys = []
    while has_unfinished_runs(workspace):
        if (held := claim_task(workspace, worker)) is not None:
            keys.append(held.key)
            time.sleep(0.001)
            finish_task(workspace, held, TaskResult([ROW]))
    workspace.close()
    return keys


@pytest.mark.slow
def test_four_processes_claim_every_task_once(workspace: Workspace, enter: Enter) -> None:
    run_id = enter(release={"m": 60, "seed": 1})
    expected = [task.key for task in list_tasks(workspace, run_id)]
    workspace.close()
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager, context.Pool(4) as processes:
        start = manager.Barrier(4)
        arguments = [(workspace.directory, f"worker {i}", start) for i in range(4)]
        claimed = processes.starmap(claim_everything, arguments, chunksize=1)
    assert Counter(key for keys in claimed for key in keys) == Counter(expected)
    assert sum(1 for keys in claimed if keys) > 1
    assert len(read_raw_rows(workspace, run_id)) == len(expected) - 1
    assert find_run(workspace, run_id).state is RunState.DONE


def test_a_recipe_without_synthesis_needs_no_fit(workspace: Workspace, enter: Enter) -> None:
    run_id = enter(synthesis=[], release={"m": 2, "released": ["income", "visits"]})
    assert all(not task.key.startswith(("fit", "draw")) for task in list_tasks(workspace, run_id))
    assert states(workspace, run_id)["waiting"] == len(finish_all(workspace))


def test_the_task_with_most_left_to_do_is_handed_out_first(workspace: Workspace, enter: Enter) -> None:
    enter()
    left = {"fit/0": 1.0, "fit/1": 3.0}
    began = [claim_task(workspace, "worker", seconds_left=lambda task: left.get(task.key, 0.0)) for _ in range(3)]
    assert [task.key for task in began if task][:2] == ["fit/1", "fit/0"]


def test_short_tasks_and_older_runs_stay_in_their_order(workspace: Workspace, enter: Enter) -> None:
    first, second = enter(), enter()
    left = {(first, "fit/0"): 0.001, (first, "fit/1"): 0.002, (second, "fit/0"): 9.0}
    began = [
        claim_task(workspace, "worker", seconds_left=lambda task: left.get((task.run_id, task.key), 0.0))
        for _ in range(2)
    ]
    assert [(task.run_id, task.key) for task in began if task] == [(first, "fit/0"), (first, "fit/1")]


def test_runs_that_wait_behind_others_are_not_estimated(workspace: Workspace, enter: Enter) -> None:
    first, *others = (enter() for _ in range(5))
    asked: set[int] = set()

    def seconds_left(task: WaitingTask) -> float:
        asked.add(task.run_id)
        return 0.0

    claimed = claim_task(workspace, "worker", seconds_left=seconds_left)
    assert claimed is not None
    assert claimed.run_id == first
    assert asked == {first}
    assert claim_task(workspace, "worker", lambda task: task.run_id == others[-1], seconds_left) is not None
    assert asked == {first, *others}


def test_diagnostics_stand_in_the_order_of_the_plan_whichever_fit_ends_first(
    workspace: Workspace, enter: Enter
) -> None:
    run_id = enter()
    targets = [step.target for step in find_run(workspace, run_id).recipe.synthesis]
    assert len(targets) > 1
    held = [take(workspace) for _ in targets]
    for lease in reversed(held):
        finish_task(workspace, lease, replace(FULL, rows=(), verdicts=(), artefacts={}, target=targets[lease.item]))
    assert [one.target for one in read_diagnostics(workspace, run_id)] == targets
