"""The gate on real households: trees with leaves of five block, and say whose records; smoothed ones pass.

``pytest -s`` on this file prints the findings.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from prepared_tables import variables_of
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Examination, examine_release
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.reporting.findings import finding_table, finding_text
from sfumato.workspace.reporting.tables import format_table
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
MEMBERS = 794
"""The other 200 households are held out."""


def recipe(**tree: Any) -> Recipe:
    """All but location and race are synthesised by trees."""
    steps = [("Income", ["UrbanRural", "Race"]), ("Expenditure", ["UrbanRural", "Race", "Income"])]
    known = {"Income": "5%", "Expenditure": "5%"}
    return Recipe.from_table(
        {
            "title": "Consumer expenditure",
            "variables": variables_of(
                "UrbanRural: categorical quasi_identifier",
                "Income: continuous quasi_identifier",
                "Race: categorical quasi_identifier",
                "Expenditure: continuous sensitive",
            ),
            "data": {"holdout": "held_out"},
            "release": {"m": 6, "seed": 7, "audience": "enclave"},
            "synthesis": [{"target": name, "method": "cart", "predictors": by, **tree} for name, by in steps],
            "measure": [{"method": "utility.ecdf"}, {"method": "risk.identification", "radius": known}],
            "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.1}],
        }
    )


@pytest.fixture
def examined(
    workspace: Workspace, public_data: Callable[[str], Path]
) -> Callable[..., tuple[int, Examination, Microdata]]:
    path = public_data("ce.csv")

    def find(**tree: Any) -> tuple[int, Examination, Microdata]:
        plan = recipe(**tree)
        frame = pd.read_csv(path).sample(frac=1, random_state=1).reset_index(drop=True)
        whole = conform_to_schema(frame, plan.schema)
        data = whole.select_rows(slice(0, MEMBERS)).with_controls(whole.select_rows(slice(MEMBERS, len(whole))))
        run_id = run_recipe(workspace, plan, data, path.name, path.read_bytes())
        found = examine_release(workspace, plan_release(workspace, run_id), Policy())
        print(f"\n{tree}\n{format_table(finding_table(found.findings))}")
        for one in found.blocking_findings:
            print("\n".join(finding_text(one)))
        return run_id, found, data

    return find


def test_trees_with_leaves_of_five_block_and_name_whose_records(
    workspace: Workspace, examined: Callable[..., tuple[int, Examination, Microdata]], tmp_path: Path
) -> None:
    run_id, found, data = examined(minbucket=5)
    by_check = {one.check: one for one in found.findings}
    assert {one.check for one in found.blocking_findings} >= {
        "membership_evidence",
        "equal_records",
    }
    equal = by_check["equal_records"]
    assert equal.value is not None
    assert 0.17 < equal.value < 0.25
    assert equal.baseline == 0
    ends = by_check["extremes"]
    assert ends.value == 4
    for name in ("Income", "Expenditure"):
        numbers = data.numbers(name)
        assert {int(numbers.argmin()), int(numbers.argmax())} <= set(ends.records)
    repeated = plan_release(workspace, run_id)
    tables = [workspace.tables.read_stored_table(sha).to_pandas() for sha in repeated.tables]
    released = set(pd.concat(tables).astype({"Income": float, "Expenditure": float}).itertuples(index=False, name=None))
    rows = list(data.frame[list(tables[0])].astype({"UrbanRural": str, "Race": str}).itertuples(index=False, name=None))
    assert all(rows[record] in {(str(u), i, str(r), e) for u, i, r, e in released} for record in equal.records)
    with pytest.raises(NotReleased, match="equal_records"):
        write_run_release(workspace, run_id, tmp_path / "out")


def test_smoothed_trees_with_larger_leaves_pass(
    workspace: Workspace, examined: Callable[..., tuple[int, Examination, Microdata]], tmp_path: Path
) -> None:
    run_id, found, _ = examined(minbucket=20, smoothing=True)
    assert found.blocking_findings == ()
    write_run_release(workspace, run_id, tmp_path / "out")


def test_larger_leaves_alone_do_not(examined: Callable[..., tuple[int, Examination, Microdata]]) -> None:
    _, found, _ = examined(minbucket=50)
    assert "membership_evidence" in {one.check for one in found.blocking_findings}
