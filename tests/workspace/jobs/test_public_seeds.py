"""A pool of seeds in a file beside the recipe: part of the recipe from then on, free in the account, bound by the commitment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w

from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.recipes import RecipeFile, find_recipe
from sfumato.workspace.release.commitment import hashes_of_named_files
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

KEY = b"k" * 32


def people(seed: int, records: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {
        "age": rng.integers(0, 100, records),
        "sex": rng.choice(["f", "m"], records),
        "pay": rng.integers(0, 5000, records),
    }
    return pd.DataFrame(columns)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recipe, its data, and a public sample of others to start from."""
    folder = tmp_path / "study"
    folder.mkdir()
    people(1, 300).to_csv(folder / "people.csv", index=False)
    people(2, 40).to_csv(folder / "pool.csv", index=False)
    step = {
        "method": "perturbed_gibbs", "target": ["age", "sex", "pay"], "epsilon": 1.0, "reset": True, "seeds": "pool.csv",
        "bins": {"age": "width 20", "pay": "width 1000"},
    }  # fmt: skip
    recipe = {
        "data": {"file": "people.csv"},
        "variables": {
            "age": {"kind": "count", "bounds": [0, 99]},
            "sex": {"kind": "binary", "levels": ["f", "m"]},
            "pay": {"kind": "count", "bounds": [0, 5000]},
        },
        "release": {"m": 1, "seed": 3, "records": 100, "epsilon": 20},
        "synthesis": [step],
        "measure": [{"method": "utility.ecdf"}],
    }
    (folder / "recipe.toml").write_text(tomli_w.dumps(recipe), "utf-8")
    return folder


def of(folder: Path, *settings: str) -> Recipe:
    return prepare_run(find_recipe(str(folder / "recipe.toml")), settings=settings, key=PUBLIC).recipe


@pytest.mark.slow
def test_a_run_keeps_the_pool_and_makes_the_same_without_the_file(folder: Path, tmp_path: Path) -> None:
    made = []
    for name in ("first", "again"):
        with Workspace.create(tmp_path / name, KEY) as workspace:
            run_id = prepare_run(find_recipe(str(folder / "recipe.toml")), key=KEY).enter(workspace)
            run_worker(workspace.directory, idle=0)
            run = find_run(workspace, run_id)
            rows = {row.measure: row for row in read_result_rows(workspace, run_id) if row.family == "synthesis"}
            assert (rows["epsilon_release"].value, rows["sample_records"].value) == (10.0, 10.0)
            pool = run.recipe.synthesis[0].spec.seeds  # type: ignore[attr-defined]
            assert rows["epsilon_release"].params["seeds"] == f"public, 40 records, SHA-256 {pool.sha256}"
            write_run_release(workspace, run_id, tmp_path / f"{name}-out", reason="released for a test")
            made.append((tmp_path / f"{name}-out/public/dataset-SYNTHETIC-01.csv").read_bytes())
            committed = json.loads((tmp_path / f"{name}-out/internal/commitments.json").read_text("utf-8"))["committed"]
            assert committed["files"] == {"synthesis[0].seeds": pool.sha256}
        if name == "first":  # the recipe that the run was stored with, in the place of the one that names a file
            (folder / "recipe.toml").write_bytes((tmp_path / "first-out/internal/recipe.toml").read_bytes())
            (folder / "pool.csv").unlink()
    assert made[0] == made[1]


def test_the_pool_decides_what_is_made(folder: Path) -> None:
    first = of(folder)
    people(9, 40).to_csv(folder / "pool.csv", index=False)
    assert of(folder).sha256 != first.sha256
    assert hashes_of_named_files(of(folder, 'synthesis[0].seeds="uniform"')) == {}
    assert Recipe.from_toml(first.to_toml()) == first


def test_a_pool_that_is_the_data_is_refused(folder: Path) -> None:
    (folder / "pool.csv").write_bytes((folder / "people.csv").read_bytes())
    with pytest.raises(BadInput, match=r"^synthesis\[0\].seeds: the seed pool is not public: half of its records"):
        of(folder)
    people(2, 40).drop(columns="pay").to_csv(folder / "pool.csv", index=False)
    with pytest.raises(BadInput, match=r'^synthesis\[0\].seeds: the seed pool has no column "pay"'):
        of(folder)


def test_a_plan_that_lies_in_no_folder_reads_no_file(folder: Path) -> None:
    recipe = RecipeFile("plan", (folder / "recipe.toml").read_text("utf-8"), None)
    with pytest.raises(BadInput, match=r'^synthesis\[0\].seeds: "pool.csv" is not "uniform" or "confidential"'):
        prepare_run(recipe, str(folder / "people.csv"), key=PUBLIC)
