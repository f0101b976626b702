"""The generated tables that ship with the recipes ``households`` and ``panel``: python -m tests.prepared.shipped_tables writes them.

Nobody in them exists. A row is a person of a census, or a person at a wave of a panel.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from .census import draw_census
from .panel import draw_panel

FOLDER = Path(__file__).resolve().parents[2] / "workspace" / "recipes" / "data"
HOUSEHOLDS, PEOPLE = 2500, 2000
SEED = 47
SHARED = 0.6
"""Share of the variance of log pay that the waves of a person have in common."""


def household_table() -> pd.DataFrame:
    """Return the census: 2,500 households, one row a person, incomes as whole numbers."""
    table = draw_census(HOUSEHOLDS, SEED)
    table["income"] = np.rint(table["income"]).astype(int)
    return table


def panel_table() -> pd.DataFrame:
    """Return the panel: 2,000 people, one row a wave until the person drops out, with year of birth and monthly pay."""
    table = draw_panel(PEOPLE, SEED)
    rng = np.random.default_rng(SEED + 1)
    born = np.clip(np.rint(rng.normal(1978, 11, PEOPLE)), 1950, 2004).astype(int)
    own, person = rng.normal(size=PEOPLE), table["person"].to_numpy() - 1
    noise = np.sqrt(SHARED) * own[person] + np.sqrt(1 - SHARED) * rng.normal(size=len(table))
    level = 7.6 + 0.25 * (table["education"] == "high") + 0.02 * table["wave"]
    pay = np.rint(np.exp(level + 0.35 * noise)).astype(int)
    table.insert(2, "born", born[person])
    return table.assign(pay=np.where(table["state"] == "work", pay, 0))


TABLES: dict[str, Callable[[], pd.DataFrame]] = {"households.csv": household_table, "panel.csv": panel_table}


def written_table(name: str) -> bytes:
    """Return the bytes of a shipped table."""
    return TABLES[name]().to_csv(index=False, lineterminator="\n").encode()


if __name__ == "__main__":
    for name in TABLES:
        (FOLDER / name).write_bytes(written_table(name))
