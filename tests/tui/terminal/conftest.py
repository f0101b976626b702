"""A workspace with a finished run, which the app in a terminal is shown."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import conform
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.ingest.files import Source
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import work
from sfumato.workspace.store.workspace import Workspace

RECIPE = {
    "title": "Household survey",
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier"},
        "visits": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive"},
    },
    "release": {"m": 3, "seed": 7},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["region", "visits"]}],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "utility.summary"},
        {"method": "risk.identification", "radius": {"income": "5%"}},
    ],
    "study": [{"method": "studies.intruder_uncertainty", "variable": "visits", "levels": [0.0, 0.1, 0.2]}],
    "threshold": [
        {"value": "risk.identification.true_match_rate", "max": 0.9},
        {"value": "utility.ecdf.max_abs_difference", "target": "income", "max": 0.001},
    ],
}


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one finished run."""
    rng = np.random.default_rng(20)
    visits = rng.poisson(4, 90)
    income = np.exp(rng.normal(7 + 0.05 * visits, 0.4, 90))
    frame = pd.DataFrame({"region": rng.choice(["north", "süden"], 90), "visits": visits, "income": income})
    recipe = Recipe.from_table(RECIPE)
    workspace = Workspace.create(tmp_path_factory.mktemp("finished") / "workspace", PUBLIC)
    enter_run(workspace, recipe, Source("survey.csv", b"simulated"), conform(frame, recipe.schema))
    workspace.close()
    work(workspace.directory, idle=0)
    return workspace.directory


@pytest.fixture
def finished(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of it, to be opened at its results."""
    directory = Path(shutil.copytree(finished_run, tmp_path / "workspace"))
    save_state(directory, AppState(project=1, run=1, tab="results"))
    return directory
