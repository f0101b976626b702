"""A workspace with a run of protected tables: counts of people by region and trade, a hierarchy, and sums of pay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sfumato.workspace.library import synthesise

COUNTS = {
    "north": {"food": 20, "iron": 2, "wool": 13},
    "south": {"food": 14, "iron": 9, "wool": 11},
    "coast": {"food": 12, "iron": 8, "wool": 0},
    "inland": {"food": 25, "iron": 30, "wool": 17},
}
"""People by region and trade: one cell of fewer than 5, and one of nobody."""
RECIPE: dict[str, Any] = {
    "title": "Towns",
    "variables": {
        "region": {"kind": "categorical"},
        "trade": {"kind": "categorical"},
        "sex": {"kind": "binary"},
        "pay": {"kind": "continuous"},
    },
    "table": [
        {"name": "people", "by": ["region", "trade"]},
        {
            "name": "pay",
            "by": ["trade"],
            "value": "pay",
            "hierarchies": {"trade": [["food", "soft", "*"], ["wool", "soft", "*"], ["iron", "hard", "*"]]},
        },
        {"name": "sexes", "by": ["sex"]},
    ],
    "tables": {"threshold": 5, "dominance": [1, 60]},
}


def people_of_towns() -> pd.DataFrame:
    """Return the people, one of whom earns most of the pay in iron."""
    rows = [(region, trade) for region, own in COUNTS.items() for trade, n in own.items() for _ in range(n)]
    frame = pd.DataFrame(rows, columns=["region", "trade"])
    frame["sex"] = np.where(np.arange(len(frame)) % 2, "f", "m")
    frame["pay"] = 10.0 + np.arange(len(frame)) % 5
    frame.loc[frame.index[frame["trade"] == "iron"][0], "pay"] = 5000.0
    return frame


def run_of_tables(directory: Path) -> int:
    """Make a workspace with a run of the tables; return the number of the run."""
    return synthesise(people_of_towns(), RECIPE, directory)
