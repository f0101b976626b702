"""Attacks with control records on the results screen, and how many records were held out on the list of runs."""

import shutil

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import finished_workspace

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.session.state import AppState, save_state

RECIPE = Recipe.from_table(
    {
        "title": "Held out",
        "data": {"file": "people.csv", "holdout": 0.5},
        "variables": {"area": {"kind": "categorical"}, "age": {"kind": "count"}, "income": {"kind": "continuous"}},
        "release": {"m": 2, "seed": 3},
        "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["age"]}],
        "measure": [{"method": "risk.singling_out", "most": 40}],
    }
)


def people(seed):
    rng = np.random.default_rng(seed)
    frame = {"area": rng.choice(["a", "b"], 60), "age": rng.integers(18, 90, 60), "income": rng.normal(100, 9, 60)}
    return conform_to_schema(pd.DataFrame(frame), RECIPE.schema)


@pytest.fixture(scope="module")
def attacked_once(tmp_path_factory):
    data = people(1).with_controls(people(2))
    return finished_workspace(
        tmp_path_factory.mktemp("attacked") / "workspace", [RECIPE], data, "people.csv", content=b"people"
    )


@pytest.fixture
def attacked(attacked_once, tmp_path):
    return shutil.copytree(attacked_once, tmp_path / "workspace")


@pytest.mark.slow
async def test_an_attack_is_one_line_and_enter_lists_its_parts(sit, attacked):
    save_state(attacked, AppState(project=1, run=1, tab="results", sort="measure"))
    async with sit(attacked, size=(117, 60)) as seat:
        listed = seat.text.partition("├── Explanation")[0]
        lines = [line for line in listed.splitlines() if "Singling-out" in line]
        assert len(lines) == 1
        assert "Singling-out: more than" in lines[0]
        assert "▸" in lines[0]
        await seat.press("enter")
        await seat.until(lambda: "Singling-out: number of guesses" in seat.text)
        for part in ("for people in the data", "for outsiders", "without the release", "added by the release"):
            assert f"Singling-out: {part}" in seat.text
        assert "by one variable" in seat.text
        assert "confidential" in seat.text


@pytest.mark.slow
async def test_a_run_at_a_glance_says_how_many_records_were_held_out(sit, attacked):
    save_state(attacked, AppState(project=1, run=1, tab="runs"))
    async with sit(attacked, size=(99, 40)) as seat:
        assert "60 hold-out records" in seat.text
