"""An audit by shadow releases as tasks of a run: interrupted and in several processes it finds what one process finds; on a cluster: ``test_dask.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import TaskKind, execute_run
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC, Progress
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs import queue, run_task
from sfumato.workspace.jobs.queue import requeue_run, stop_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import RunState, find_run, list_tasks
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

pytestmark = pytest.mark.slow
BLOCKS = 4
AUDIT = {"method": "risk.record_audit", "targets": 3, "shadows": 40, "blocks": BLOCKS, "datasets": 1}
Enter = Callable[..., int]


@pytest.fixture(scope="module")
def expected(small: tuple[Recipe, Microdata]) -> list[Row]:
    recipe, data = small
    audit = Recipe.from_table(recipe.to_table() | {"measure": [AUDIT], "threshold": []})
    return list(execute_run(audit, data, key=PUBLIC).rows)


def audited(workspace: Workspace, run_id: int) -> tuple[list[Row], Mapping[str, str]]:
    assert find_run(workspace, run_id).state is RunState.DONE
    tables = workspace.connection.execute("SELECT name, sha256 FROM artefact WHERE run_id = ?", (run_id,))
    return list(read_result_rows(workspace, run_id)), {row["name"]: row["sha256"] for row in tables}


def test_an_audit_that_is_stopped_between_blocks_goes_on_with_those_that_are_left(
    workspace: Workspace, enter: Enter, expected: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter(measure=[AUDIT], threshold=[])
    plain = run_task._COMPUTE_BY_KIND[TaskKind.MEASURE]
    begun: list[int] = []

    def interrupted(tables: Any, order: Any, report: Callable[[Progress], None], key: bytes) -> queue.TaskResult:
        begun.append(order.lease.task_id)
        if len(begun) == 3:  # two blocks are done
            stop_run(workspace, order.lease.run_id, RunState.INTERRUPTED)
        return plain(tables, order, report, key)

    monkeypatch.setattr(run_task, "PROGRESS_SECONDS", 0.0)
    with monkeypatch.context() as stopping:
        stopping.setitem(run_task._COMPUTE_BY_KIND, TaskKind.MEASURE, interrupted)
        run_worker(workspace.directory, idle=0)
    assert find_run(workspace, run_id).state is RunState.INTERRUPTED
    done = {task.key for task in list_tasks(workspace, run_id) if task.state == "done"}
    assert sum("/block/" in name for name in done) == 2, "two blocks are kept, the third is left at its first report"
    before = {task.key: task.attempt for task in list_tasks(workspace, run_id) if task.key in done}
    assert requeue_run(workspace, run_id)
    run_worker(workspace.directory, idle=0)
    after = {task.key: task.attempt for task in list_tasks(workspace, run_id)}
    assert {name: after[name] for name in before} == before
    rows, tables = audited(workspace, run_id)
    assert rows == expected
    again = enter(measure=[AUDIT], threshold=[])
    run_worker(workspace.directory, idle=0)
    assert audited(workspace, again) == (rows, tables)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_audit_finds_the_same_in_any_number_of_processes(
    workspace: Workspace, enter: Enter, expected: list[Row], jobs: int
) -> None:
    run_id = enter(measure=[AUDIT], threshold=[])
    run_worker(workspace.directory, jobs, idle=0)
    assert audited(workspace, run_id)[0] == expected


def test_another_key_makes_other_shadows(
    expected: list[Row], small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    other = list(execute_run(small_recipe(measure=[AUDIT], threshold=[]), small_data, key=b"k" * 32).rows)
    values = [[row.value for row in rows if row.value is not None] for rows in (expected, other)]
    assert values[0] != values[1], "the control: random numbers matter to these results"
