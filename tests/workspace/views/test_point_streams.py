"""Which points of a dataset a plot shows is the key's secret; a workspace without its key shows some all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prepared_workspaces import enter_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.store.keys import KEY_FILE
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.columns_beside import point_sampling_streams


def test_points_are_chosen_by_the_key_of_the_run(
    tmp_path: Path, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    for name, key in (("own", None), ("public", PUBLIC)):
        with Workspace.create(tmp_path / name, key) as workspace:
            run = find_run(workspace, enter_recipe(workspace, small_recipe(), small_data, "people.csv", b"x"))
            before, of_run = (point_sampling_streams(workspace, run.dataset_id, one) for one in (None, run))
            assert before is not None
            assert of_run is not None
            assert before.key == of_run.key == workspace.read_workspace_key()
            assert (before.seed, of_run.seed) == (1, 7)
            assert before.bound_to == of_run.bound_to, "of another dataset other lines are chosen"


def test_without_the_key_there_are_no_streams_to_choose_by(
    tmp_path: Path, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    with Workspace.create(tmp_path / "own") as workspace:
        run = find_run(workspace, enter_recipe(workspace, small_recipe(), small_data, "people.csv", b"x"))
        (workspace.directory / KEY_FILE).unlink()
        assert (
            point_sampling_streams(workspace, run.dataset_id, run)
            is point_sampling_streams(workspace, run.dataset_id, None)
            is None
        )
