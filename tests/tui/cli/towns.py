"""A survey of which every subset of what an intruder may know is asked about."""

import numpy as np
import pandas as pd
from prepared_workspaces import finished_workspace

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
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"town": rng.choice(list("xyz"), 60), "age": rng.integers(18, 40, 60), "pay": rng.normal(3000, 500, 60)}
    )
    return finished_workspace(directory, [TOWNS], frame, "towns.csv")
