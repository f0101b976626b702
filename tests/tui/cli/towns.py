"""A survey of which every subset of what an intruder may know is asked about."""

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import conform
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import Source
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import work
from sfumato.workspace.store.workspace import Workspace

TOWNS = {
    "title": "Towns",
    "variables": {
        "town": {"kind": "categorical", "role": "quasi_identifier"},
        "age": {"kind": "count", "role": "quasi_identifier"},
        "pay": {"kind": "continuous", "role": "sensitive", "bounds": [0, 100_000]},
    },
    "release": {"m": 2, "seed": 7},
    "synthesis": [{"target": "pay", "method": "linear_regression", "predictors": ["town"]}],
    "measure": [{"method": "risk.identification", "radius": {"pay": "5%"}}],
    "study": [
        {"method": "studies.intruder_uncertainty", "variable": "age", "levels": [0.0, 0.1]},
        {"method": "studies.intruder_knowledge"},
    ],
}


def towns_workspace(directory):
    """A workspace with the run done."""
    with Workspace.create(directory, PUBLIC) as workspace:
        rng = np.random.default_rng(4)
        frame = pd.DataFrame(
            {"town": rng.choice(list("xyz"), 60), "age": rng.integers(18, 40, 60), "pay": rng.normal(3000, 500, 60)}
        )
        recipe = Recipe.from_table(TOWNS)
        enter_run(workspace, recipe, Source("towns.csv", b"simulated"), conform(frame, recipe.schema))
        work(workspace.directory, idle=0)
    return directory
