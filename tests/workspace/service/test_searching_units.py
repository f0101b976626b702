"""A search whose limit is on units: its looks sample whole households, and the number of these decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from households import SCHEMA, draw_households
from keyed_workspace import KEY

from sfumato.engine.recipe.thresholds import judge_thresholds
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.alternatives import ADDED_LEVER
from sfumato.workspace.service.searching import advance_search, begin_search, search_outcome
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.searches import stored_looks
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

VALUE = "risk.identification.largest_true_match_rate"


def plan(path: Path) -> dict[str, Any]:
    return {
        "title": "people in households",
        "data": {"file": str(path), "holdout": 0.2},
        "variables": {one.name: {"kind": str(one.kind), "role": str(one.role)} for one in SCHEMA},
        "release": {"m": 1, "seed": 3},
        "synthesis": [
            {"method": "cart", "target": "education", "predictors": ["age"]},
            {"method": "cart", "target": "income", "predictors": ["age", "education"]},
        ],
        "measure": [
            {"method": "utility.propensity", "permutations": 2},
            {"method": "risk.identification", "known": ["sex"], "synthesised": ["education"]},
        ],
        "threshold": [{"value": VALUE, "max": 0.3, "params": {"by": "unit"}}],
        "search": {"looks": 10, "levers": {ADDED_LEVER: []}},
    }


@pytest.mark.slow
def test_looks_take_whole_households_and_are_judged_by_them(tmp_path: Path) -> None:
    people = draw_households(np.random.default_rng(7), 1200)
    people.to_csv(tmp_path / "people.csv", index=False)
    size = people.groupby("household").size()
    with Workspace.create(tmp_path / "workspace", KEY) as workspace:
        search_id = begin_search(workspace, plan(tmp_path / "people.csv"))
        while advance_search(workspace, search_id):
            run_worker(workspace.directory, idle=0)
        looks = stored_looks(workspace, search_id).values()
        assert looks
        for look in looks:
            run = find_run(workspace, look.run_id)
            data = workspace.read_stored_dataset(workspace.find_dataset(run.dataset_id))
            drawn = data.frame["household"].value_counts()
            assert (drawn == size[drawn.index]).all()
            rows = read_result_rows(workspace, run.id)
            (verdict,) = judge_thresholds(run.recipe.thresholds, rows)
            (row,) = [
                row for row in rows
                if row.key == VALUE and row.draw is None and row.dataset != "confidential" and row.params.get("by") == "unit"
            ]  # fmt: skip
            assert verdict.observed == row.value is not None
        found = search_outcome(workspace, search_id)
        verdicts = [one for finalist in found.finalists for one in finalist.verdicts]
        assert verdicts
        assert all(one.params == {**(one.params or {}), "by": "unit"} for one in verdicts)
