"""Workspaces whose releases have noise of a known epsilon, for tests of the ledger of a population."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import run_recipe

from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

EPSILON, BUDGET, PEOPLE = 2.0, 3.0, 120
PROJECT = "Town survey"
REASON = "we asked residents of another town in spring 2026"
WEAK_REASON = "ok ok ok ok ok"
KEY = bytes(range(100, 132))
EMPTY_DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>'
NOISY: dict[str, Any] = {
    "title": PROJECT,
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier", "levels": ["north", "south"]},
        "smoker": {"kind": "categorical", "role": "sensitive", "levels": ["no", "yes"]},
        "age": {"kind": "count", "role": "quasi_identifier", "bounds": [0, 99]},
    },
    "release": {"m": 1, "seed": 3, "records": PEOPLE},
    "synthesis": [
        {
            "method": "margins",
            "target": ["region", "smoker", "age"],
            "bins": {"age": "width 20"},
            "epsilon": EPSILON,
        }
    ],
}


def residents(seed: int) -> pd.DataFrame:
    """Return simulated people of a town; another seed is another town."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], PEOPLE),
            "smoker": rng.choice(["no", "yes"], PEOPLE),
            "age": rng.integers(18, 90, PEOPLE),
        }
    )


def charged_workspace(directory: Path) -> Path:
    """Make a workspace with a budget that one release fits into and two do not: run 1 is released, run 2 is not."""
    with Workspace.create(directory, KEY) as workspace, pytest.MonkeyPatch.context() as patch:
        # By its name: the package has a function that is called as the module is. No test looks at the pictures.
        module = importlib.import_module("sfumato.workspace.documents.acro")
        draw = module.svg_to_png
        patch.setattr(module, "svg_to_png", lambda _, *, note: draw(EMPTY_DRAWING, note=note))
        (directory / "policy.toml").write_text(f"[privacy]\nepsilon = {BUDGET}\n", "utf-8")
        for seed in (1, 2):
            content = f"town {seed}".encode()
            run_recipe(workspace, NOISY, residents(seed), f"town-{seed}.csv", content, project=PROJECT)
        write_run_release(workspace, 1, directory.parent / "released", reason="simulated people of a lesson")
    return directory
