"""The released datasets of a run, read from its tables."""

from __future__ import annotations

from engine.execution import anonymised_release
from engine.microdata import Microdata, Origin
from engine.recipe import Recipe

from .tables import Tables
from .workspace import Workspace

__all__ = ["CLASSES", "read_released", "released_dataset"]

CLASSES = "classes/1"
"""The artefact that has the equivalence class of each confidential record."""


def read_released(tables: Tables, recipe: Recipe, sha256: str, classes_sha256: str | None) -> Microdata:
    """A released dataset as the engine made it; ``classes_sha256`` is that of an anonymised table's classes.

    Raises DamagedTable.
    """
    origin: Origin = "anonymised" if recipe.anonymisation else "synthetic"
    table = tables.read_microdata(sha256, recipe.released_schema, origin)
    if classes_sha256 is None:
        return table
    return anonymised_release(recipe, table, tables.read_arrays(classes_sha256)["classes"])


def released_dataset(workspace: Workspace, run_id: int, recipe: Recipe, draw: int) -> Microdata | None:
    """Dataset ``draw`` (from 1) of a run, with the classes of an anonymised table; None where there is none."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name IN (?, ?)", (run_id, f"draw/{draw}", CLASSES)
    )
    found = {row["name"]: str(row["sha256"]) for row in rows}
    if f"draw/{draw}" not in found:
        return None
    return read_released(workspace.tables, recipe, found[f"draw/{draw}"], found.get(CLASSES))
