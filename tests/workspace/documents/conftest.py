"""Runs whose releases have documents: one of plain words, one whose every word tries to be markup."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keyed_workspace
import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import run_recipe
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.ingest.files import find_source, read_file_microdata, read_frame
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.dossier import ReleaseDossier, read_dossier
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

Make = Callable[..., ReleaseDossier]
workspace = keyed_workspace.workspace
HOSTILE = "<script>alert(1)</script> ![x](http://evil.example/a.png) | `b` **c** \u202egnitseretni\u202c &amp; ]]> \u0007\u001b[31m"
"""Markup of HTML, Markdown and XML, a picture from elsewhere, a bell, a terminal's colour, and an override of direction."""


@pytest.fixture
def dossier_for(workspace: Workspace) -> Callable[[int], ReleaseDossier]:
    """All that documents are written from, of a run that is done."""

    def read(run_id: int, reason: str = "") -> ReleaseDossier:
        plan, policy = plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory)
        return read_dossier(workspace, plan, policy, examine_release(workspace, plan, policy), "csv", reason)

    return read


@pytest.fixture
def done_run(finished: Callable[..., int]) -> int:
    """A run of the small recipe that is done."""
    return finished()


@pytest.fixture
def hostile(workspace: Workspace) -> int:
    """A run of a recipe whose title, labels and levels are hostile."""
    return run_of(workspace, *hostile_recipe())


def hostile_recipe() -> tuple[Recipe, Microdata]:
    """A recipe and records in which every word that others can choose is hostile."""
    table: dict[str, Any] = {
        "title": HOSTILE,
        "description": HOSTILE,
        "variables": {
            "sex": {
                "kind": "binary",
                "role": "quasi_identifier",
                "labels": {"1": HOSTILE, "2": "female"},
                "title": HOSTILE,
            },
            "area <b>": {"kind": "categorical", "role": "quasi_identifier", "title": "-1. area"},
            "income": {"kind": "continuous", "role": "sensitive", "title": "Income | a year"},
        },
        "release": {"m": 2, "seed": 1},
        "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["sex"]}],
        "measure": [{"method": "risk.identification", "radius": {"income": "5%"}}, {"method": "utility.ecdf"}],
    }
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["1", "2"], 60),
            "area <b>": rng.choice([HOSTILE.replace("\u0007\u001b", ""), "north"], 60),
            "income": np.exp(rng.normal(7, 0.4, 60)),
        }
    )
    recipe = Recipe.from_table(table)
    return recipe, conform_to_schema(frame, recipe.schema)


def run_of(workspace: Workspace, recipe: Recipe, data: Microdata, name: str = "simulated.csv") -> int:
    """Enter a run and have it done."""
    return run_recipe(workspace, recipe, data, name)


def write(workspace: Workspace, name: str, text: str) -> Path:
    """A file of the workspace."""
    path = workspace.directory / name
    path.write_text(text, "utf-8")
    return path


RECORDS = 2000
KEY = b"k" * 32
"""So many records that every model converges, and random numbers that are the same each time."""


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The release of a shipped recipe without its studies, on at most ``RECORDS`` of its records; skipped where its data are absent.

    It is made once for all workers of a session, which read it and write nothing there.
    """
    own = tmp_path_factory.getbasetemp()
    place = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shipped"
    place.mkdir(exist_ok=True)

    def find(name: str) -> Path:
        with (place / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = place / f"{name}.path"
            if not known.exists():
                directory = place / name
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir()
                made = _released(name, directory)
                known.write_text(str(made))
            return Path(known.read_text())

    return find


def _released(name: str, directory: Path) -> Path:
    table = find_recipe(name).table
    file = table["data"]["file"]
    if not file.startswith(("statsmodels:", "sfumato:")) and not (PUBLIC_DATA / file).is_file():
        pytest.skip(f"{file} is not there; SFUMATO_DATA says where")
    if len(read_frame(find_source(file, PUBLIC_DATA))) > RECORDS:
        table["data"]["sample"] = RECORDS
    table["release"]["m"] = min(2, table["release"].get("m", 1))
    # documents say what a run has measured, however long its chains were and whichever intruder was asked
    table["measure"] = [step for step in table.get("measure", []) if step["method"] != "risk.bayesian_posterior"]
    for step in table.get("synthesis", []):
        if "sweeps" in step:
            step.update(sweeps=200, burn_in=100, accept_unconverged=True)
        if step["method"] == "zero_inflated_truncated_poisson":  # its draws rest on few of so few records
            step.update(accept_unconverged=True)
    recipe = Recipe.from_table(
        {key: value for key, value in table.items() if key not in ("study", "published", "companions")}
    )
    with Workspace.create(directory / "workspace", KEY) as workspace:
        source = find_source(file, PUBLIC_DATA)
        data = read_file_microdata(source, recipe.data, recipe.schema, recipe.seed, key=KEY)
        run_id = enter_run(workspace, recipe, source, data)
        run_worker(workspace.directory, idle=0)
        write_run_release(workspace, run_id, directory / "out", reason="released for a test")
    return directory / "out"
