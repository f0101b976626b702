"""Queued runs of people over time: the records of each keep the order that the recipe names, in tasks and in the gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.checks import ExaminedRelease
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.runs import RunState, find_run
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
