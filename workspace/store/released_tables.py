"""The released datasets of a run, read from its tables."""

from __future__ import annotations

from sfumato.engine.execution import as_released
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe

from .tables import Tables
from .workspace import Workspace

__all__ = ["classes_name", "read_released", "released_dataset"]


def classes_name(draw: int) -> str:
    """The artefact that has the equivalence class of each confidential record in dataset ``draw`` (from 1)."""
    return f"classes/{draw}"


def read_released(tables: Tables, recipe: Recipe, sha256: str, classes_sha256: str | None) -> Microdata:
    """A released dataset as the engine made it; ``classes_sha256`` is that of an anonymised table's classes.

    Raises DamagedTable.
    """
    table = tables.read_microdata(sha256, recipe.released_schema, recipe.origin)
    classes = None if classes_sha256 is None else tables.read_arrays(classes_sha256)["classes"]
    return as_released(recipe, table.frame, classes)


def released_dataset(workspace: Workspace, run_id: int, recipe: Recipe, draw: int) -> Microdata | None:
    """Dataset ``draw`` (from 1) of a run, with the classes of an anonymised table; None where there is none."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name IN (?, ?)",
        (run_id, f"draw/{draw}", classes_name(draw)),
    )
    found = {row["name"]: str(row["sha256"]) for row in rows}
    if f"draw/{draw}" not in found:
        return None
    return read_released(workspace.tables, recipe, found[f"draw/{draw}"], found.get(classes_name(draw)))
