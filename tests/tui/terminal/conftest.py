"""A workspace with a finished run, which the app in a terminal is shown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from prepared_tables import household_survey, variables_of
from prepared_workspaces import finished_workspace

from sfumato.tui.session.state import AppState, save_state

RECIPE = {
    "title": "Household survey",
    "variables": variables_of(
        "region: categorical quasi_identifier", "visits: count quasi_identifier", "income: continuous sensitive"
    ),
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
    directory = tmp_path_factory.mktemp("finished") / "workspace"
    return finished_workspace(directory, [RECIPE], household_survey(("north", "süden")), "survey.csv")


@pytest.fixture
def finished(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of it, to be opened at its results."""
    directory = Path(shutil.copytree(finished_run, tmp_path / "workspace"))
    save_state(directory, AppState(project=1, run=1, tab="results"))
    return directory
