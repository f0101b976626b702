"""A worker starts as many tasks as have room in memory, refuses a run none of which would, and says of a killed task what it needed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import Task, TaskKind, execute_run, plan_tasks
from sfumato.engine.methods import measured_rates
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import NotEnoughMemory
from sfumato.workspace.jobs import admission
from sfumato.workspace.jobs.admission import TaskAdmission
from sfumato.workspace.jobs.memory import ALWAYS_ALLOWED_BYTES, MemoryLimit
from sfumato.workspace.jobs.pool import TaskPool
from sfumato.workspace.jobs.queue import TaskLease, WaitingTask, claim_task, requeue_run, return_task
from sfumato.workspace.jobs.runs import reenter_run
from sfumato.workspace.jobs.settings import MEMORY_VARIABLE
from sfumato.workspace.jobs.task_costs import (
    SECONDS_PER_TASK,
    TaskCost,
    estimate_task_costs,
    memory_refusal,
    remaining_seconds,
)
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import RunState, find_run, list_runs, list_tasks
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

Enter = Callable[..., int]
MB = 1_000_000
REGRESSION = "synthesis.linear_regression"


class Queueing(TaskPool):
    """Computes what it was given when it is asked for the answer, so that tasks are held beside each other."""

    size = 4

    def __init__(self) -> None:
        self.most = 0
        self._waiting: list[tuple[Future[Any], Any]] = []

    def submit_task(self, func: Callable[..., Any], *args: Any, needed_bytes: int = 0) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((future, (func, *args)))
        self.most = max(self.most, len(self._waiting))
        return future

    def check_usable(self) -> None:
        """Called by the worker's loop before it claims: the oldest task ends."""
        if self._waiting:
            future, (func, *args) = self._waiting.pop(0)
            future.set_result(func(*args))


def needs(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let every task be expected to take so many bytes."""

    def costs(recipe: Recipe, records: int, earlier: object = None, *, in_parts: bool = False) -> tuple[TaskCost, ...]:
        return tuple(TaskCost(task, "some.method", 0.1, size) for task in plan_tasks(recipe))

    monkeypatch.setattr(admission, "estimate_task_costs", costs)
    monkeypatch.setattr(admission, "PEAK_MARGIN", 0.0)  # peaks of the test's own process say nothing
    monkeypatch.setattr(TaskAdmission, "needed_bytes", lambda self, waiting: size)


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "beside"), [("1.5 GB", 2), ("1.1 GB", 1), ("none", 3)])
def test_as_many_tasks_are_started_as_have_room(
    workspace: Workspace,
    enter: Enter,
    small: tuple[Recipe, Microdata],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    beside: int,
) -> None:
    run_id = enter()
    needs(monkeypatch, 600 * MB)
    monkeypatch.setenv(MEMORY_VARIABLE, limit)
    pool = Queueing()
    run_worker(workspace.directory, idle=0, opened=pool)
    assert find_run(workspace, run_id).state is RunState.DONE
    assert pool.most == beside
    assert read_result_rows(workspace, run_id) == list(execute_run(*small, key=PUBLIC).rows)


def test_a_run_that_has_no_room_is_refused_with_its_figure_before_its_first_task_and_done_by_who_knows_better(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    with monkeypatch.context() as short:
        needs(short, 3_200 * MB)
        short.setenv(MEMORY_VARIABLE, "2 GB")
        run_worker(workspace.directory, idle=0)
    run = find_run(workspace, run_id)
    assert run.state is RunState.FAILED
    assert run.error.startswith(
        "fit/0 (some.method) needs about 3.2 GB of memory, and there is about 2.0 GB (the limit that was given). "
    )
    assert "--memory" in run.error
    assert "sample" in run.error
    assert not any(task.seconds for task in list_tasks(workspace, run_id)), "something was computed"
    monkeypatch.setenv(MEMORY_VARIABLE, "none")
    requeue_run(workspace, run_id)
    run_worker(workspace.directory, idle=0)
    assert find_run(workspace, run_id).state is RunState.DONE


def test_a_run_is_not_refused_for_what_is_done_of_it(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    held = claim_task(workspace, "me")
    assert held is not None
    workspace.connection.execute("UPDATE task SET state = 'done' WHERE id = ?", (held.task_id,))
    big = [TaskCost(Task(held.key, TaskKind.FIT), "some.method", 1.0, 3_000 * MB)]
    monkeypatch.setattr(admission, "estimate_task_costs", lambda *_, **__: big)
    asked = TaskAdmission(workspace, lambda: MemoryLimit(1_000 * MB, "little"))
    assert asked.refusal_message(held) == ""
    workspace.connection.execute("UPDATE task SET state = 'waiting' WHERE id = ?", (held.task_id,))
    assert "3.0 GB" in asked.refusal_message(held)
    assert find_run(workspace, run_id).state is RunState.RUNNING


def test_a_run_is_not_entered_that_has_no_room(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = enter()
    monkeypatch.setitem(measured_rates.RATES, REGRESSION, (1.0, 9e9, 0.0, 0.0))
    monkeypatch.setenv(MEMORY_VARIABLE, "2 GB")
    tables = set(workspace.tables.directory.iterdir())
    for entering in (enter, lambda: reenter_run(workspace, before)):
        with pytest.raises(NotEnoughMemory, match=r"fit/0 \(synthesis.linear_regression\) needs about 9.0 GB"):
            entering()
    assert [run.id for run in list_runs(workspace)] == [before]
    assert set(workspace.tables.directory.iterdir()) == tables
    monkeypatch.setenv(MEMORY_VARIABLE, "none")
    assert enter() == before + 1


def test_others_may_have_left_memory_since(workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    enter()
    needs(monkeypatch, 3_000 * MB)
    held = claim_task(workspace, "me")
    assert held is not None
    answers = iter([1_000 * MB, 8_000 * MB])
    assert TaskAdmission(workspace, lambda: MemoryLimit(next(answers), "left")).refusal_message(held) == ""


class KilledOnce(TaskPool):
    """The process of the first task is killed."""

    def __init__(self) -> None:
        self.given = 0

    def submit_task(self, func: Callable[..., Any], *args: Any, needed_bytes: int = 0) -> Future[Any]:
        self.given += 1
        if self.given > 3:
            return super().submit_task(func, *args)
        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("killed"))
        return future


def test_a_task_whose_process_is_killed_is_said_to_have_needed_so_much(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter()
    needs(monkeypatch, 1_700 * MB)
    monkeypatch.setenv(MEMORY_VARIABLE, "2 GB")
    run_worker(workspace.directory, idle=0, opened=KilledOnce())
    assert find_run(workspace, run_id).error == (
        "fit/1: its process was killed 3 times; the machine may be short of memory: about 1.7 GB were expected of about 2.0 GB that it "
        "may have had (the limit that was given)"
    )


def held(number: int) -> TaskLease:
    return TaskLease(number, 1, f"measure/0/{number}", "measure", 0, number, None, "me", 1)


def test_a_killed_task_is_tried_again_beside_no_other(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(monkeypatch, 600 * MB)
    one, other = held(1), held(2)
    asked = TaskAdmission(workspace, lambda: MemoryLimit(9_000 * MB, is_fixed=True))
    asked.run_alone_from_now_on(one)
    asked.add_task(other)
    assert not asked.has_room(WaitingTask.from_lease(one))
    asked.remove_task(other)
    assert asked.has_room(WaitingTask.from_lease(one))
    asked.add_task(one)
    assert not asked.has_room(WaitingTask.from_lease(other))


def test_what_a_task_of_the_same_step_took_says_what_the_next_takes(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    row = workspace.connection.execute(
        "SELECT id, key, kind, item FROM task WHERE kind = 'draw' ORDER BY id LIMIT 2"
    ).fetchall()
    waiting = WaitingTask(row[1]["id"], run_id, row[1]["key"], "draw", row[1]["item"])
    asked = TaskAdmission(workspace, lambda: MemoryLimit(None))
    assert asked.needed_bytes(waiting) < 400 * MB
    workspace.connection.execute(
        "UPDATE task SET state = 'done', peak_bytes = ? WHERE id = ?", (2_000 * MB, row[0]["id"])
    )
    assert asked.needed_bytes(waiting) == pytest.approx(2_200 * MB)


@given(st.lists(st.integers(1, 4_000), min_size=1, max_size=12), st.integers(300, 6_000))
def test_tasks_beside_each_other_never_need_more_than_there_is_and_none_waits_for_ever(
    sizes: list[int], most: int
) -> None:
    asked = TaskAdmission.__new__(TaskAdmission)
    limit = MemoryLimit(most * MB, is_fixed=True)
    asked.__init__(None, lambda: limit)  # type: ignore[misc,arg-type]
    asked.needed_bytes = lambda waiting: sizes[waiting.task_id] * MB  # type: ignore[method-assign]
    waiting, running, done = list(range(len(sizes))), [], 0
    while waiting or running:
        chosen = next((n for n in waiting if asked.has_room(WaitingTask(n, 1, "", "", 0))), None)
        if chosen is None:
            assert running, "nothing runs, and nothing may"
            asked.remove_task(held(running.pop(0)))
            done += 1
            continue
        waiting.remove(chosen)
        running.append(chosen)
        asked.add_task(held(chosen))
        together = sum(sizes[n] * MB for n in running)
        assert len(running) == 1 or together <= max(limit.max_bytes or 0, ALWAYS_ALLOWED_BYTES)
    assert done == len(sizes)


def test_a_task_that_has_no_room_now_lets_a_smaller_one_pass(workspace: Workspace, enter: Enter) -> None:
    enter()
    first = claim_task(workspace, "me", lambda waiting: waiting.key != "fit/0")
    assert first is not None
    assert first.key != "fit/0"
    assert claim_task(workspace, "me", lambda _: False) is None
    return_task(workspace, first)
    again = claim_task(workspace, "me")
    assert again is not None
    assert again.key == "fit/0"


def test_the_estimate_grows_with_records_and_variables_and_the_largest_task_is_named(
    small: tuple[Recipe, Microdata],
) -> None:
    recipe, _ = small
    # one measure that needs the whole table, as those of the recipe do not
    table = recipe.to_table()
    recipe = Recipe.from_table(table | {"measure": [*table["measure"], {"method": "utility.cluster"}]})
    sizes = [
        max(cost.memory for cost in estimate_task_costs(recipe, records))
        for records in (10_000, 1_000_000, 100_000_000)
    ]
    assert sizes == sorted(set(sizes))
    costs = estimate_task_costs(recipe, 10**9)
    said = memory_refusal(costs, MemoryLimit(16_000 * MB, "what there is"))
    assert max(costs, key=lambda cost: cost.memory).task.key in said
    assert [cost.task for cost in costs] == list(plan_tasks(recipe))


def costs_of(recipe: Recipe, seconds: dict[str, float | None]) -> list[TaskCost]:
    return [TaskCost(task, "", seconds.get(task.key, 0.0), 0) for task in plan_tasks(recipe)]


def test_a_fit_has_its_own_seconds_left_and_those_of_the_longest_that_waits_for_it(
    small: tuple[Recipe, Microdata],
) -> None:
    """The variable with ten levels takes longest of the fits of a method; what waits for both is the same."""
    recipe, _ = small
    seconds = {"fit/0": 1.0, "fit/1": 1.0, "draw/1": 2.0, "draw/2": 7.0, "combine": 0.5}
    plain = remaining_seconds(recipe, {}, costs_of(recipe, dict(seconds)))
    assert plain["combine"] == pytest.approx(0.5 + SECONDS_PER_TASK)
    assert plain["draw/2"] > 7.0 + plain["combine"]
    assert plain["draw/1"] < plain["draw/2"] < min(plain["fit/0"], plain["fit/1"])
    alike = Recipe.from_table(
        {
            "variables": {name: {"kind": "categorical"} for name in "abc"},
            "release": {"m": 1, "seed": 1},
            "synthesis": [{"target": name, "method": "cart", "predictors": []} for name in "abc"],
        }
    )
    left = remaining_seconds(alike, {"a": 2, "b": 10, "c": 3}, costs_of(alike, {f"fit/{k}": 1.0 for k in range(3)}))
    assert left["fit/1"] - left["draw/1"] == pytest.approx(2.0 + SECONDS_PER_TASK)
    assert left["fit/1"] > left["fit/2"] > left["fit/0"]
    unknown = remaining_seconds(recipe, {}, costs_of(recipe, {**seconds, "draw/1": None}))
    assert unknown["draw/1"] == pytest.approx(unknown["draw/2"])


def test_levels_are_counted_in_the_stored_table(workspace: Workspace, enter: Enter) -> None:
    dataset = workspace.find_dataset(find_run(workspace, enter()).dataset_id)
    data = workspace.tables.read_microdata(dataset.table_sha256, dataset.schema, "confidential")
    expected = {
        name: len(data.column(name).cat.categories)
        for name in dataset.schema.names
        if dataset.schema[name].kind.has_levels
    }
    assert workspace.tables.count_levels(dataset.table_sha256) == expected
    assert expected
    assert workspace.tables.count_levels("0" * 64) == {}
