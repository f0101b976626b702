"""Which records a sample has depends on the workspace's key, however the run is started."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.recipe.data_source import DataSource
from sfumato.tui.session.jobs import run_recipe
from sfumato.workspace.errors import DifferentData
from sfumato.workspace.ingest.files import read_file_microdata
from sfumato.workspace.ingest.sampling import draw_sample
from sfumato.workspace.jobs.run_task import compute_task
from sfumato.workspace.jobs.runs import reenter_run
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_evaluation, prepare_plan, prepare_run
from sfumato.workspace.store.keys import PUBLIC_KEY
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.comparison import compare_runs

RECIPE = """
title = "Sampled"
[data]
file = "{file}"
sample = 30
[variables]
age = {{ kind = "count", role = "quasi_identifier" }}
cost = {{ kind = "continuous", role = "sensitive" }}
[release]
m = 1
seed = 3
[[synthesis]]
target = "cost"
method = "linear_regression"
predictors = ["age"]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    pd.DataFrame({"age": range(20, 100), "cost": [i * 37 % 91 + 0.5 for i in range(80)]}).to_csv(
        tmp_path / "people.csv", index=False
    )
    (tmp_path / "recipe.toml").write_text(RECIPE.format(file=tmp_path / "people.csv"))
    return str(tmp_path / "recipe.toml")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with a key of its own."""
    made = Workspace.create(tmp_path / "own")
    yield made
    made.close()


def ages(workspace: Workspace, run_id: int) -> list[int]:
    return (
        workspace.read_stored_dataset(workspace.find_dataset(find_run(workspace, run_id).dataset_id))
        .numbers("age")
        .tolist()
    )


@pytest.mark.parametrize("function", [prepare_run, prepare_evaluation, read_file_microdata, compute_task])
def test_whoever_forgets_the_key_is_told(function: Callable[..., object]) -> None:
    """A public key is named, never taken for granted."""
    assert inspect.signature(function).parameters["key"].default is inspect.Parameter.empty


@pytest.mark.parametrize("changes", [{"size": 10_001}, {"file": "another"}, {"where": "number >= 0"}])
def test_two_samples_are_the_same_or_independent(changes: dict[str, Any]) -> None:
    """By the seed alone the larger sample is the smaller with one record more: two releases that differ in one person."""

    def draw_rows(key: bytes, size: int = 10_000, file: str = "one", where: str = "") -> set[int]:
        return set(draw_sample(48_895, file, DataSource(sample=size, where=where), 3, key))

    key = bytes(range(32))
    by_chance = 10_000**2 / 48_895
    assert draw_rows(key) == draw_rows(key)
    assert abs(len(draw_rows(key) & draw_rows(key, **changes)) - by_chance) < 4 * np.sqrt(by_chance)
    assert draw_rows(PUBLIC_KEY) <= draw_rows(PUBLIC_KEY, **changes), "the negative control"


@pytest.mark.slow
def test_the_app_samples_by_the_key(own: Workspace, recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tui.session.jobs._start_worker_for", lambda workspace, run_id, text, words: run_id)
    run_id = run_recipe(own.directory, recipe, None)
    keyed, public = (
        prepare_run(find_recipe(recipe), key=key).data.numbers("age").tolist()
        for key in (own.read_workspace_key(), PUBLIC_KEY)
    )
    assert ages(own, int(run_id)) == keyed != public  # type: ignore[call-overload]


@pytest.fixture
def migrated(own: Workspace, recipe: str) -> Workspace:
    """A workspace with a run of the version before keys: its sample is that of the seed alone."""
    run_id = prepare_run(find_recipe(recipe), key=PUBLIC_KEY).enter(own)
    own.connection.execute("UPDATE run SET key_public = 1, key_fingerprint = 'public' WHERE id = ?", (run_id,))
    return own


def test_a_plan_on_a_sample_of_the_seed_alone_draws_another(migrated: Workspace) -> None:
    draft = find_draft(migrated, 1)
    assert draft is not None
    before = ages(migrated, 1)
    prepared = prepare_plan(migrated, draft)
    assert prepared.data.numbers("age").tolist() != before
    again = prepared.enter(migrated, "Sampled")
    assert not find_run(migrated, again).key_public
    migrated.connection.execute("UPDATE run SET state = 'done'")
    with pytest.raises(DifferentData, match="a sample with seed 3 and the workspace's key"):
        compare_runs(migrated, "1", str(again))


def test_a_run_on_a_sample_of_the_seed_alone_stays_public_when_it_is_repeated(
    migrated: Workspace,
) -> None:
    again = reenter_run(migrated, 1)
    assert find_run(migrated, again).key_public
    assert ages(migrated, again) == ages(migrated, 1)
