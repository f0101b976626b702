"""A run at a glance."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.run_detail import read_run_detail

Enter = Callable[..., int]


@pytest.mark.slow
def test_a_run_says_its_data_its_phases_and_what_changed(
    workspace: Workspace, enter: Enter, small_recipe: Callable[..., Recipe]
) -> None:
    first, second = enter(), enter()
    detail = read_run_detail(workspace, second)
    (data,) = workspace.list_datasets(1)
    assert (detail.dataset_name, detail.records, detail.seed) == (data.name, data.records, small_recipe().seed)
    assert (detail.previous_run_id, detail.changes) == (first, ())
    assert read_run_detail(workspace, first).previous_run_id is None
    assert sum(phase.n_tasks for phase in detail.phases) == len(list(small_recipe_tasks(workspace, second)))
    assert {phase.n_done for phase in detail.phases} == {0}
    run_worker(workspace.directory, idle=0)
    done = read_run_detail(workspace, second).phases
    assert all(phase.n_done == phase.n_tasks and phase.seconds > 0 for phase in done)


def small_recipe_tasks(workspace: Workspace, run_id: int) -> list[object]:
    return workspace.connection.execute("SELECT id FROM task WHERE run_id = ?", (run_id,)).fetchall()
