"""A run on a real Dask cluster finds what the engine finds. Skipped where the package distributed is absent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prepared_workspaces import enter_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.jobs import pool
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import RunState, find_run, list_tasks
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

Enter = Callable[..., int]


def cluster_of(threads: int) -> Any:
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=threads,
        processes=threads == 1,
        dashboard_address=None,
        host="127.0.0.1",
        protocol="tcp://",
    )


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """One cluster of two workers for all tests that compute on one."""
    with cluster_of(1) as cluster:
        yield cluster.scheduler_address


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_run_on_a_cluster_finds_what_the_engine_finds(
    address: str, workspace: Workspace, enter: Enter, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0, dask=address)
    assert find_run(workspace, run_id).state is RunState.DONE
    assert read_result_rows(workspace, run_id) == list(execute_run(small_recipe(), small_data, key=PUBLIC).rows)
    assert all(task.seconds is not None and task.peak_bytes for task in list_tasks(workspace, run_id))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_reads_the_key_from_the_workspace(
    address: str, tmp_path: Path, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    with Workspace.create(tmp_path / "own") as own:
        run_id = enter_recipe(own, small_recipe(), small_data)
        run_worker(own.directory, idle=0, dask=address)
        keyed = list(execute_run(small_recipe(), small_data, key=own.read_workspace_key()).rows)
        assert read_result_rows(own, run_id) == keyed != list(execute_run(small_recipe(), small_data, key=PUBLIC).rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_audit_in_blocks_finds_the_same_on_a_cluster(
    address: str, workspace: Workspace, enter: Enter, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    measure = {"method": "risk.record_audit", "targets": 3, "shadows": 40, "blocks": 4, "datasets": 1}
    run_id = enter(measure=[measure], threshold=[])
    run_worker(workspace.directory, idle=0, dask=address)
    assert find_run(workspace, run_id).state is RunState.DONE
    expected = execute_run(small_recipe(measure=[measure], threshold=[]), small_data, key=PUBLIC).rows
    assert read_result_rows(workspace, run_id) == list(expected)
    blocks = [task for task in list_tasks(workspace, run_id) if "/block/" in task.key]
    assert len(blocks) == 4
    assert all(task.seconds is not None and task.peak_bytes for task in blocks)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_task_that_fails_on_a_cluster_fails_its_run_in_the_same_words(
    address: str, workspace: Workspace, enter: Enter
) -> None:
    run_id = enter()
    table = next(workspace.tables.directory.glob("*.parquet"))
    table.write_bytes(table.read_bytes()[:-1])
    run_worker(workspace.directory, idle=0, dask=address)
    run = find_run(workspace, run_id)
    assert run.state is RunState.FAILED
    assert f"{table.name} has changed" in run.error


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_workers_with_several_threads_is_refused() -> None:
    with (
        cluster_of(2) as cluster,
        pytest.raises(WorkspaceError, match="--nthreads 1"),
        pool.open_pool(1, cluster.scheduler_address),
    ):
        pass


def test_without_the_package_the_message_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(WorkspaceError, match=r"install sfumato\[dask\]"), pool.open_pool(1, "tcp://127.0.0.1:1"):
        pass


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_where_no_scheduler_answers_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    from sfumato.workspace.jobs import pool

    monkeypatch.setattr(pool, "CONNECT_SECONDS", 1)
    with (
        pytest.raises(WorkspaceError, match="no Dask scheduler answers at tcp"),
        pool.open_pool(1, "tcp://127.0.0.1:9"),
    ):
        pass
