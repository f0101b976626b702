"""Releases to attack: made as users make them, and all that whoever made them knows, for negative controls and scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from attackers import Outside, register_of
from numpy.typing import NDArray
from prepared_tables import variables_of
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import synthesis_streams
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.columns_beside import released_dataset_hashes

HOUSEHOLDS = variables_of(
    "UrbanRural: categorical quasi_identifier",
    "Income: continuous quasi_identifier",
    "Race: categorical quasi_identifier",
    "Expenditure: continuous sensitive",
)
LISTINGS = variables_of(
    "room_type: categorical quasi_identifier",
    "neighbourhood_group: categorical quasi_identifier",
    "number_of_reviews: count quasi_identifier",
    "price: continuous sensitive",
)
SEED = 7
KEY, STOLEN = (sha256(word).digest() for word in (b"a key", b"another key"))
"""Two secret keys, always the same, so that a test finds what it found before."""


def recipe_of(variables: dict[str, dict[str, str]], m: int, **step: object) -> Recipe:
    """One step that replaces the last variable, by the others unless it says which."""
    *known, target = variables
    synthesis = [{"target": target, "predictors": known, **step}]
    return Recipe.from_table({"variables": variables, "release": {"m": m, "seed": SEED}, "synthesis": synthesis})


@dataclass(frozen=True)
class Released:
    """A release from the inside: what is outside, the true values, the datasets in the file's order, and the run's key.

    ``tables`` are the hashes of the stored datasets, which bind the order of the rows.
    """

    outside: Outside
    data: Microdata
    stored: tuple[NDArray[np.float64], ...]
    key: bytes
    tables: tuple[str, ...]
    fits: tuple[dict[str, NDArray[np.generic]], ...]

    @property
    def truth(self) -> NDArray[np.float64]:
        """The confidential values of what was synthesised, (n,)."""
        return self.data.numbers(self.outside.target)

    @property
    def streams(self) -> Randomness:
        """The streams that made it: what a thief of key and data has."""
        return synthesis_streams(self.outside.recipe, self.data, self.key)

    @property
    def guessed(self) -> Randomness:
        """The streams of whoever has the seed and no key."""
        return Randomness(self.outside.recipe.seed, PUBLIC)


Release = Callable[[Recipe, Microdata, bytes], Released]


def compute_release(recipe: Recipe, data: Microdata, key: bytes, folder: Path) -> Released:
    """Compute a recipe in a new workspace with this key, and release it."""
    with Workspace.create(folder / "workspace", key) as workspace:
        run_id = run_recipe(workspace, recipe, data, "people.csv", b"people")
        write_run_release(workspace, run_id, folder / "out", reason="a test of attacks")
        draws = released_dataset_hashes(workspace, run_id)
        query = "SELECT sha256 FROM artefact WHERE run_id = ? AND name LIKE 'fit/%' ORDER BY name"
        fits = [workspace.tables.read_arrays(row[0]) for row in workspace.connection.execute(query, (run_id,))]
        target = recipe.synthesis[0].target
        stored = [workspace.tables.read_stored_table(sha)[target].to_numpy() for sha in draws.values()]
    files = sorted((folder / "out" / "public").glob("dataset-*.csv"))
    assert len(files) == recipe.m
    outside = Outside(recipe, tuple(pd.read_csv(path) for path in files), register_of(data, recipe))
    return Released(outside, data, tuple(stored), key, tuple(draws.values()), tuple(fits))
