"""A panel of people over waves whose truth is known, and what is counted of one: transitions, trajectories, drop-out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

WAVES = 6
STATES = ("work", "search", "out")
MOVES = {
    "low": np.array([[0.80, 0.12, 0.08], [0.35, 0.50, 0.15], [0.08, 0.07, 0.85]]),
    "high": np.array([[0.92, 0.04, 0.04], [0.55, 0.35, 0.10], [0.15, 0.05, 0.80]]),
}
"""Probabilities of the next state given this one, by education."""
LEAVE = np.array([0.03, 0.10, 0.06])
"""Probability of dropping out after a wave in each state."""
VARIABLES: dict[str, Any] = {
    "person": {"kind": "count", "role": "unit"},
    "sex": {"kind": "binary", "level": "unit"},
    "education": {"kind": "binary", "level": "unit"},
    "wave": {"kind": "count"},
    "state": {"kind": "categorical", "levels": list(STATES)},
}


def panel_recipe(leaf: int, units: str = "drawn", until: str = "") -> dict[str, Any]:
    """Return a recipe of trees with leaves of ``leaf`` records or more for ``draw_panel``.

    ``until`` names the variable of drop-out, without which the number of records is drawn first.
    """

    def tree(target: str, *predictors: str, least: int = leaf) -> dict[str, Any]:
        return {"target": target, "method": "cart", "predictors": list(predictors), "minbucket": least, "prune": False}

    sized = units == "drawn" and not until
    return {
        "variables": VARIABLES,
        "data": {"order": "wave"},
        "release": {"m": 1, "seed": 1, "units": units, **({"until": until} if until else {})},
        "synthesis": [
            tree("sex"),
            tree("education", "sex"),
            *([tree("size", "sex", "education")] if sized else []),
            tree("wave", "place", least=1),
            tree("state", "previous(state)", "education", "sex", *([] if until else ["size"]), "place", "previous(state, 2)"),
            *([tree(until, "state", "education", "sex", "place")] if until else []),
        ],
    }  # fmt: skip


def draw_panel(people: int, seed: int) -> pd.DataFrame:
    """Draw a panel, one row a person and wave until the person drops out."""
    rng = np.random.default_rng(seed)
    sex, high = rng.integers(2, size=people), rng.random(people) < 0.4
    state = rng.choice(3, people, p=[0.6, 0.1, 0.3])
    there, parts = np.ones(people, dtype=bool), []
    moves = np.stack([MOVES["low"], MOVES["high"]])
    for wave in range(1, WAVES + 1):
        who = np.flatnonzero(there)
        parts.append(pd.DataFrame({"person": who + 1, "wave": wave, "state": np.array(STATES)[state[who]]}))
        there &= rng.random(people) >= LEAVE[state]
        reached = moves[high.astype(int), state].cumsum(axis=1)
        state = np.minimum((rng.random(people)[:, None] > reached).sum(axis=1), 2)
    table = pd.concat(parts).sort_values(["person", "wave"], ignore_index=True)
    table["sex"] = np.where(sex[table["person"] - 1] == 1, "m", "f")
    table["education"] = np.where(high[table["person"] - 1], "high", "low")
    return table[list(VARIABLES)]


def transitions(table: pd.DataFrame) -> pd.Series:
    """Return the shares of the next state given education and state, by education and both states."""
    own = table.sort_values(["person", "wave"])
    same = own["person"].eq(own["person"].shift(-1))
    steps = pd.DataFrame(
        {
            "education": own["education"].astype(str),
            "from": own["state"].astype(str),
            "to": own["state"].astype(str).shift(-1),
        }
    )[same]
    return steps.groupby(["education", "from"])["to"].value_counts(normalize=True)


def leavers(table: pd.DataFrame) -> pd.Series:
    """Return the share of people who drop out after a wave before the last, by their state in it."""
    own = table[table["wave"] < WAVES]
    last = own["wave"] == table.groupby("person")["wave"].max().reindex(own["person"]).to_numpy()
    return last.groupby(own["state"].astype(str)).mean()


def trajectories(table: pd.DataFrame) -> pd.Series:
    """Return the share of people of each sequence of states."""
    own = table.sort_values(["person", "wave"])
    return own["state"].astype(str).groupby(own["person"]).agg(" ".join).value_counts(normalize=True)


def stayed(table: pd.DataFrame) -> np.ndarray:
    """Return the share of people with a record at each wave, (WAVES,)."""
    return (
        np.array([table.loc[table["wave"] == w, "person"].nunique() for w in range(1, WAVES + 1)])
        / table["person"].nunique()
    )
