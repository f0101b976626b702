"""The gate warns of units that a recipe does not declare, and not of people who have nothing to do with each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from unit_tables import make_households, stack_waves

from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.drafts import write_plan
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.workspace import Workspace

VARIABLES = {
    "sex": {"kind": "binary", "role": "quasi_identifier"},
    "school": {"kind": "categorical"},
    "town": {"kind": "categorical"},
    "trade": {"kind": "categorical"},
    "visits": {"kind": "count", "role": "sensitive"},
}


def make_panel(people: int = 150, waves: int = 4) -> pd.DataFrame:
    """Return people over waves, in whom all but the visits stays the same."""
    rng = np.random.default_rng(2)
    number = np.repeat(np.arange(people), waves)
    stays = {
        name: rng.integers(0, levels, people)[number]
        for name, levels in (("sex", 2), ("school", 5), ("town", 30), ("trade", 12))
    }
    return pd.DataFrame({"person": number, **stays, "visits": rng.poisson(3, len(number))})


def finding_on_units(
    workspace: Workspace, folder: Path, frame: pd.DataFrame, data: dict[str, Any], **more: Any
) -> Finding:
    """Return what the gate finds on units in a release of a file of people."""
    frame.to_csv(folder / "people.csv", index=False)
    table = {
        "data": {"file": str(folder / "people.csv"), **data},
        "variables": {**VARIABLES, **more},
        "release": {"m": 1, "seed": 4},
        "synthesis": [{"target": "visits", "method": "cart", "predictors": ["sex"]}],
    }
    path = folder / "recipe.toml"
    path.write_text(write_plan(table))
    run_id = prepare_run(find_recipe(str(path)), key=PUBLIC).enter(workspace)
    run_worker(workspace.directory, idle=0)
    found = examine_release(workspace, plan_release(workspace, run_id), Policy())
    return next(one for one in found.findings if one.check == "units_unclear")


@pytest.mark.parametrize("data", [{}, {"holdout": 0.25}])
def test_hidden_units_and_an_undeclared_number_are_warned_of(
    workspace: Workspace, tmp_path: Path, data: dict[str, Any]
) -> None:
    hidden = finding_on_units(workspace, tmp_path, make_panel(), data)
    assert hidden.status == "warn"
    assert "of the records that follow each other agree in most columns" in hidden.message
    numbered = finding_on_units(workspace, tmp_path, make_panel(), data, person={"kind": "count"})
    assert numbered.status == "warn"
    assert "person has 150 values" in numbered.message


def test_declared_units_and_single_people_pass(workspace: Workspace, tmp_path: Path) -> None:
    declared = finding_on_units(
        workspace, tmp_path, make_panel(), {"holdout": 0.2}, person={"kind": "count", "role": "unit"}
    )
    assert (declared.status, declared.value) == ("pass", 0)
    assert "person numbers 120 units of 480 records" in declared.message
    alone = finding_on_units(workspace, tmp_path, make_panel(600, 1), {"holdout": 0.25})
    assert alone.status == "pass"
    assert "no sign that several records" in alone.message
    sampled = finding_on_units(workspace, tmp_path, make_panel(600, 1), {"sample": 300})
    assert "no sign in the sample" in sampled.message


def test_units_that_the_file_does_not_number_are_declared_by_their_runs(workspace: Workspace, tmp_path: Path) -> None:
    runs = ["sex", "school", "town", "trade"]
    found = finding_on_units(
        workspace, tmp_path, make_panel(), {"holdout": 0.2}, unit={"kind": "count", "role": "unit", "runs_of": runs}
    )
    assert found.status == "pass"
    assert "unit numbers 120 units of 480 records" in found.message


def test_a_number_of_records_declared_as_unit_does_not_hide_the_units(workspace: Workspace, tmp_path: Path) -> None:
    panel = make_panel()
    frame = panel.assign(record=np.random.default_rng(5).permutation(len(panel)))
    roles = {"record": {"kind": "count", "role": "unit"}, "person": {"kind": "count"}}
    found = finding_on_units(workspace, tmp_path, frame, {}, **roles)
    assert found.status == "warn"
    assert "person has 150 values" in found.message
    # the control: of people with a record each, nothing is suspected
    alone = finding_on_units(workspace, tmp_path, make_panel(600, 1), {}, person={"kind": "count", "role": "unit"})
    assert alone.status == "pass"


def test_records_without_a_number_of_the_unit_are_warned_of(workspace: Workspace, tmp_path: Path) -> None:
    panel = make_panel()
    frame = panel.assign(person=panel["person"].where(panel["person"] > 9))
    unit = {"kind": "count", "role": "unit"}
    found = finding_on_units(workspace, tmp_path, frame, {"missing": "keep"}, person=unit)
    assert found.status == "warn"
    assert "40 records have no number" in found.message


def test_waves_in_turn_without_a_number_are_warned_of(workspace: Workspace, tmp_path: Path) -> None:
    frame = stack_waves(200, 0.15, 1)
    found = finding_on_units(workspace, tmp_path, frame, {}, year={"kind": "count"})
    assert found.status == "warn"
    assert "year may be a wave of the same people" in found.message
    # the control: other people in each wave
    others = frame.assign(**make_panel(len(frame), 1)[[*VARIABLES]])
    assert finding_on_units(workspace, tmp_path, others, {}, year={"kind": "count"}).status == "pass"


@pytest.mark.parametrize(("name", "status"), [("county", "pass"), ("household", "warn")])
def test_a_county_is_no_household(workspace: Workspace, tmp_path: Path, name: str, status: str) -> None:
    """The import asks of no area whether it numbers people, and neither does the gate."""
    frame = make_households(300).sample(frac=1, random_state=1)
    frame = pd.DataFrame(
        {
            name: frame["household"],
            "sex": frame["sex"],
            "school": frame["rooms"],
            "town": frame["region"],
            "trade": frame["heating"],
        }
    ).assign(visits=np.random.default_rng(1).poisson(3, len(frame)))
    assert finding_on_units(workspace, tmp_path, frame, {}, **{name: {"kind": "count"}}).status == status
