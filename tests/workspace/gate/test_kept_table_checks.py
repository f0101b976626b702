"""Tables that several releases of the same records publish are looked at together, and what follows from them blocks the later one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import run_recipe

from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow

VARIABLES: dict[str, Any] = {
    "area": {"kind": "categorical", "levels": ["city", "town", "village"]},
    "age": {"kind": "count", "bounds": [0, 99]},
}


def run_of(
    workspace: Workspace, age: str, limit: int = 10, frame: pd.DataFrame | None = None,
    recode: dict[str, Any] | None = None, records: int = 300, **step: Any,
) -> int:  # fmt: skip
    recipe = Recipe.from_table(
        {
            "variables": VARIABLES,
            "synthesis": [
                {"method": "margins", "target": ["area", "age"], "bins": {"age": age}, "limit": limit, **step}
            ],
            "release": {"m": 1, "seed": 1, "records": records, **({"recode": recode} if recode else {})},
            "measure": [{"method": "utility.ecdf"}],
        }
    )
    frame = people() if frame is None else frame
    return run_recipe(workspace, recipe, frame, "x.csv", b"x")


def people() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame({"area": rng.choice(VARIABLES["area"]["levels"], 600), "age": rng.integers(0, 100, 600)})


def kept_tables_finding(workspace: Workspace, run_id: int) -> Finding:
    examination = examine_release(workspace, plan_release(workspace, run_id), Policy())
    return next(one for one in examination.findings if one.check == "kept_tables")


def let_out(workspace: Workspace, run_id: int, directory: Path) -> None:
    write_run_release(workspace, run_id, directory / f"out-{run_id}", reason="simulated people")


def few_young() -> pd.DataFrame:
    """5 people below 20 and 15 below 40: to tens they are 10 and 20, 5 to 14 and 15 to 24; all 20, to fourteens 14, are at most 20."""
    return people().assign(age=np.array([7] * 5 + [33] * 15 + [70] * 580))


def test_tables_that_two_releases_publish_can_leave_one_count_that_each_leaves_open(
    workspace: Workspace, tmp_path: Path
) -> None:
    first = run_of(workspace, "at 20, 40", frame=few_young(), margins=["area", "age"])
    alone = kept_tables_finding(workspace, first)
    assert alone.status == "pass"
    assert "from the tables of this release, 0 of" in alone.message
    let_out(workspace, first, tmp_path)
    again = kept_tables_finding(
        workspace, run_of(workspace, "at 20, 40", frame=few_young(), margins=["area", "age"], audit=True)
    )
    assert again.status == "pass", "the control: the same tables once more say nothing new"
    assert f"from the tables of this release and of run {first}, released before, 0 of" in again.message
    together = kept_tables_finding(
        workspace, run_of(workspace, "at 40", limit=14, frame=few_young(), margins=["area", "age"])
    )
    assert together.status == "block"
    assert f"and of run {first}, released before, 1 of 1 small count follows exactly (age: 1)" in together.message


def test_a_table_that_the_number_of_rows_gives_away_is_withheld_and_not_passed(workspace: Workspace) -> None:
    """18 people, 4 of them of 50 or more: the table says 10 and 0, which are 5 to 14 and 0 to 4; 18 rows leave 14 and 4, of 20 rows nothing follows."""
    eighteen = pd.DataFrame({"area": ["city"] * 18, "age": [40] * 14 + [60] * 4})
    tables = {"frame": eighteen, "margins": ["area", "age"], "limit": 10}
    shown = kept_tables_finding(workspace, run_of(workspace, "at 50", records=18, **tables))
    assert shown.status == "not checked"
    assert "the tables are not published: small counts follow" in shown.message
    rounded = kept_tables_finding(workspace, run_of(workspace, "at 50", records=20, **tables))
    assert rounded.status == "pass"
    assert "from the tables of this release, 0 of" in rounded.message


def test_noisy_tables_and_other_people_leave_nothing_to_be_looked_at(workspace: Workspace, tmp_path: Path) -> None:
    let_out(workspace, run_of(workspace, "width 20", epsilon=1.0), tmp_path)
    assert "0 of 0 small counts follow exactly" in kept_tables_finding(workspace, run_of(workspace, "width 20")).message
    others = people().assign(age=lambda frame: 99 - frame["age"])
    let_out(workspace, run_of(workspace, "width 20", frame=others), tmp_path)
    assert (
        "and of run 1, released before, 0 of 0 small counts"
        in kept_tables_finding(workspace, run_of(workspace, "width 25")).message
    )


def test_a_deleted_run_whose_tables_are_gone_is_not_passed_over(workspace: Workspace, tmp_path: Path) -> None:
    first = run_of(workspace, "width 20")
    let_out(workspace, first, tmp_path)
    delete_run(workspace, first)
    finding = kept_tables_finding(workspace, run_of(workspace, "width 25"))
    assert finding.status != "pass"
    assert "its tables are gone" in finding.message


def test_tables_of_joined_levels_are_looked_at_with_those_of_the_same_rule_and_not_passed_with_others(
    workspace: Workspace, tmp_path: Path
) -> None:
    joined = {"area": {"country": ["town", "village"]}}
    tables = {"frame": few_young(), "margins": ["area", "age"]}
    let_out(workspace, run_of(workspace, "at 20, 40", recode=joined, **tables), tmp_path)
    same = kept_tables_finding(workspace, run_of(workspace, "at 40", limit=14, recode=joined, **tables))
    assert same.status == "block"
    assert "1 of 1 small count follows exactly" in same.message
    other = kept_tables_finding(workspace, run_of(workspace, "at 40", limit=14, **tables))
    assert other.status == "not checked"
    assert "joins other levels" in other.message
