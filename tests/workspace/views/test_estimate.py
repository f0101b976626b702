"""Time left, against sums done by hand."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sfumato.workspace.jobs.queue import TaskResult, claim_task, finish_task, record_progress
from sfumato.workspace.store.runs import RunningTask, RunState, estimate_seconds_left, find_run
from sfumato.workspace.store.workspace import Workspace


@pytest.mark.parametrize(
    ("done", "running", "waiting", "left"),
    [
        ({}, [], {"fit": 3}, None),
        ({}, [RunningTask("fit", 5, 0)], {"fit": 3}, None),
        ({"fit": (2, 20.0)}, [], {"fit": 3}, 30),
        ({"fit": (2, 20.0), "draw": (4, 4.0)}, [], {"fit": 1, "draw": 6}, 16),
        ({"fit": (1, 9.0), "draw": (2, 0.0)}, [], {"study": 2}, 6),
        ({"fit": (1, 10.0)}, [RunningTask("fit", 4, 0)], {}, 6),
        ({"fit": (1, 10.0)}, [RunningTask("fit", 14, 0)], {}, 0),
        ({}, [RunningTask("fit", 4, 0.25)], {"fit": 1}, 12 + 16),
        ({"fit": (1, 10.0)}, [RunningTask("fit", 0, 0), RunningTask("fit", 0, 0)], {"fit": 2}, 20),
        ({"fit": (1, 10.0)}, [], {}, 0),
    ],
)
def test_the_estimate_is_the_work_left_shared_by_those_at_work(
    done: dict[str, tuple[int, float]], running: list[RunningTask], waiting: dict[str, int], left: float | None
) -> None:
    assert estimate_seconds_left(done, running, waiting) == (None if left is None else pytest.approx(left))


def test_a_run_under_way_says_how_long_it_will_take(workspace: Workspace, enter: Callable[..., int]) -> None:
    run_id = enter()
    assert find_run(workspace, run_id).seconds_left is None
    held = claim_task(workspace, "me")
    assert held is not None
    workspace.connection.execute("UPDATE task SET started = ? WHERE id = ?", (time.time() - 10, held.task_id))
    assert find_run(workspace, run_id).seconds_left is None
    record_progress(workspace, held, 1, 2, "sampling")
    tasks = find_run(workspace, run_id).tasks_total
    assert find_run(workspace, run_id).seconds_left == pytest.approx(10 + 20 * (tasks - 1), rel=0.05)
    finish_task(workspace, held, TaskResult(seconds=3.0))
    assert find_run(workspace, run_id).seconds_left == pytest.approx(3.0 * (tasks - 1))


def test_a_run_that_has_ended_has_no_time_left(workspace: Workspace, enter: Callable[..., int]) -> None:
    run_id = enter()
    held = claim_task(workspace, "me")
    assert held is not None
    finish_task(workspace, held, TaskResult(seconds=3.0))
    workspace.connection.execute("UPDATE run SET state = ?", (RunState.DONE.value,))
    assert find_run(workspace, run_id).seconds_left is None
