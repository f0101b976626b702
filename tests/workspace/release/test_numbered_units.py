"""Units in released files: new ones are numbered anew, those that are kept have surrogate keys if the recipe says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import census
import pandas as pd
import pytest
from prepared_workspaces import run_recipe

from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store import table_manifests
from sfumato.workspace.store.workspace import Workspace

WHY = "a simulated census of a test"
HOUSEHOLDS = 800


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with a key that nobody knows."""
    with Workspace.create(tmp_path / "secret") as opened:
        yield opened


def write_release(workspace: Workspace, recipe: dict[str, Any], table: pd.DataFrame, out: Path, form: str) -> Path:
    """Run a recipe and release it with all findings waived; return its public folder."""
    run_id = run_recipe(workspace, recipe, table)
    found = examine_release(workspace, plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory))
    waive = {one.check: WHY for one in found.unwaived_findings}
    write_run_release(workspace, run_id, out, form=form, reason=WHY, waive=waive)
    return out / "public"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("part_rows", [table_manifests.PART_ROWS, 500])
def test_drawn_units_are_released_with_new_numbers(
    secret: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, part_rows: int
) -> None:
    monkeypatch.setattr(table_manifests, "PART_ROWS", part_rows)
    table = census.draw_census(HOUSEHOLDS, 3).assign(household=lambda t: t["household"] + 700_000)
    recipe = {**census.census_recipe(10, audience="enclave"), "measure": [{"method": "utility.ecdf"}]}
    public = write_release(secret, recipe, table, tmp_path / "out", form)
    file = next(public.glob("dataset-*"))
    released = pd.read_csv(file) if form == "csv" else pd.read_parquet(file)
    assert list(released) == list(census.VARIABLES)
    assert sorted(released["household"].unique()) == list(range(1, HOUSEHOLDS + 1))
    assert released.drop_duplicates(["household", "region", "tenure"])["household"].is_unique
    # Households are whole: most have one head.
    assert census.impossible_households(released) < 0.03 * HOUSEHOLDS
    codebook = pd.read_csv(public / "codebook.csv")
    assert "new number" in codebook.loc[codebook["variable"] == "household", "title"].item()
    assert "new ones in every dataset" in (public / "using-these-data.html").read_text("utf-8")
    old = re.compile(r"\b700\d{3}\b")
    for written in public.rglob("*"):
        if written.suffix in (".csv", ".json", ".html", ".xml"):
            assert not old.search(written.read_text("utf-8")), written.name


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [True, False])
def test_kept_units_are_released_as_surrogate_keys_or_not_at_all(
    secret: Workspace, tmp_path: Path, *, keyed: bool
) -> None:
    table = census.draw_census(HOUSEHOLDS, 4)
    more = {"surrogate_keys": ["household"]} if keyed else {}
    recipe = census.census_recipe(10, units="kept", audience="enclave", **more)
    released = pd.read_csv(next(write_release(secret, recipe, table, tmp_path / "out", "csv").glob("dataset-*")))
    if not keyed:
        assert "household" not in released
        return
    assert released["household"].str.fullmatch("[a-z2-7]{16}").all()
    assert sorted(released["household"].value_counts()) == sorted(table["household"].value_counts())
