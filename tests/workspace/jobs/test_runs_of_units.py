"""Queued runs of people over time: the records of each keep the order that the recipe names, in tasks and in the gate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato.workspace.store.runs
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.checks import ExaminedRelease
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.earlier import read_release_history
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.runs import RunState, find_run, read_run_records
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

RECIPE: dict[str, Any] = {
    "title": "Panel",
    "data": {"order": "wave"},
    "constraints": {"low": "income <= 9"},
    "variables": {
        "person": {"kind": "count", "role": "unit"},
        "wave": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive"},
    },
    "release": {"m": 2, "seed": 3},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["wave"]}],
    "measure": [
        {"method": "utility.units"},
        {"method": "risk.identification", "known": ["wave"], "synthesised": ["income"], "radius": {"income": 0.5}},
    ],
    "threshold": [{"value": "utility.units.correlation_difference", "params": {"kind": "lag 1"}, "max": 0.1}],
}


def panel() -> pd.DataFrame:
    """People over five waves, in no order."""
    rng = np.random.default_rng(4)
    steps = rng.normal(size=(60, 5)).cumsum(axis=1)
    frame = pd.DataFrame({"person": np.repeat(np.arange(60), 5), "wave": np.tile(np.arange(1, 6), 60)})
    return frame.assign(income=steps.ravel().round(3)).sample(frac=1, random_state=5)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Workspace]:
    panel().to_csv(tmp_path / "panel.csv", index=False)
    with Workspace.create(tmp_path / "own", bytes(range(32))) as made:
        yield made


@pytest.mark.slow
def test_a_queued_run_orders_the_records_of_a_person_as_the_recipe_says(own: Workspace) -> None:
    path = own.directory.parent / "recipe.toml"
    table = {**RECIPE, "data": {**RECIPE["data"], "file": str(own.directory.parent / "panel.csv")}}
    path.write_text(Recipe.from_table(table).to_toml(), "utf-8")
    entry = prepare_run(find_recipe(str(path)), key=own.read_workspace_key())
    run_id = entry.enter(own)
    run_worker(own.directory, idle=0)
    run = find_run(own, run_id)
    assert run.state is RunState.DONE, run.error
    rows = read_result_rows(own, run_id)
    alone = execute_run(entry.recipe, entry.data, key=own.read_workspace_key())
    assert [row.to_dict() for row in rows] == [row.to_dict() for row in alone.rows]
    frame = panel().sort_values(["person", "wave"])
    before = frame.groupby("person")["income"].shift()
    row = next(one for one in rows if one.measure == "correlation" and one.params["kind"] == "lag 1")
    assert row.baseline == pytest.approx(frame["income"].corr(before))
    broken = next(one for one in rows if one.measure == "broken_units")
    assert broken.target == "low"
    assert broken.baseline == pytest.approx((panel().groupby("person")["income"].max() > 9).mean())
    examined = ExaminedRelease(own, plan_release(own, run_id), read_policy_of_workspace(own.directory))
    units = examined.confidential.units
    assert units is not None
    waves = examined.confidential.numbers("wave")[units.order]
    assert waves.tolist() == [1, 2, 3, 4, 5] * 60


@pytest.mark.slow
def test_every_reader_of_a_run_has_the_order_of_its_recipe(own: Workspace) -> None:
    """A stored table knows no order: the gate, what was released before, and the report read the records of a run by one function."""
    path = own.directory.parent / "recipe.toml"
    table = {**RECIPE, "data": {**RECIPE["data"], "file": str(own.directory.parent / "panel.csv")}}
    path.write_text(Recipe.from_table(table).to_toml(), "utf-8")
    run_id = prepare_run(find_recipe(str(path)), key=own.read_workspace_key()).enter(own)
    run_worker(own.directory, idle=0)
    write_run_release(own, run_id, own.directory.parent / "out", reason="simulated people")
    run = find_run(own, run_id)
    records = read_run_records(own, run)
    assert records.units is not None
    assert records.numbers("wave")[records.units.order].tolist() == [1, 2, 3, 4, 5] * 60
    assert own.read_stored_dataset(own.find_dataset(run.dataset_id)).schema.order == "", "the control"
    (earlier,) = read_release_history(own, 0, {}).releases
    assert earlier.people.read().schema.order == "wave"  # type: ignore[attr-defined]
    known = {earlier.table_sha256: own.read_stored_dataset(own.find_dataset(run.dataset_id))}
    (again,) = read_release_history(own, 0, known).releases
    assert again.people.read().schema.order == "wave"  # type: ignore[attr-defined]


def test_records_of_a_run_are_read_by_one_function() -> None:
    """Whoever read the dataset of a run by itself would forget the order of its recipe."""
    root = Path(sfumato.workspace.store.runs.__file__).parents[1]
    places = [
        f"{file.relative_to(root)}"
        for file in sorted(root.rglob("*.py"))
        if re.search(r"read_stored_dataset\([^)]*(run|runs\[0\])\.dataset_id", file.read_text("utf-8"))
    ]
    assert places == ["store/runs.py"]
