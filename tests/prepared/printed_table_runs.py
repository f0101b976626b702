"""Runs of recipes with printed tables on a small generated table of people, and what the gate says of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from run_tables import list_run_tables

from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Examination, Finding, examine_release
from sfumato.workspace.library import synthesise
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.store.workspace import Workspace

VARIABLES = {
    "person": {"kind": "categorical", "role": "identifier"},
    "region": {"kind": "categorical"},
    "sex": {"kind": "binary"},
    "pay": {"kind": "continuous"},
}
COUNTS: dict[str, Any] = {
    "variables": VARIABLES,
    "table": [{"name": "people", "by": ["region", "sex"]}],
    "tables": {"threshold": 10},
}


def people(n: int = 200, seed: int = 5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "person": [f"p{at:04}-{seed}" for at in range(n)],
            "region": rng.choice(list("abcdef"), n, p=[0.4, 0.3, 0.14, 0.1, 0.04, 0.02]),
            "sex": rng.choice(["f", "m"], n),
            "pay": rng.lognormal(3, 1.0, n).round(2),
        }
    )


def examine(directory: Path, number: int) -> Examination:
    with Workspace.open(directory) as opened:
        return examine_release(opened, plan_release(opened, number), read_policy_of_workspace(directory))


def finding(directory: Path, number: int, check: str) -> Finding:
    return next(one for one in examine(directory, number).findings if one.check == check)


def run(directory: Path, frame: pd.DataFrame, recipe: Mapping[str, Any]) -> int:
    return synthesise(frame, recipe, directory)


def hidden_cell(directory: Path, number: int) -> dict[str, str]:
    with Workspace.open(directory, read_only=True) as opened:
        found = list_run_tables(opened, number)
        assert found is not None
        cell = next(one for one in found.tables[0].cells() if one.rules and one.labels["sex"][1])
        return {name: label for name, (_, label) in cell.labels.items()}
