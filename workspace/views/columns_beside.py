"""Values of variables in the confidential data and in every released dataset, read from the workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Origin, Schema, Variable
from sfumato.engine.methods.run import Randomness
from sfumato.engine.recipe.recipe import Recipe

from ..plots.column import VariableValues
from ..store.keys import NoKey, run_key
from ..store.runs import StoredRun
from ..store.workspace import Workspace

Floats = NDArray[np.float64]


def released_dataset_hashes(workspace: Workspace, run_id: int) -> Mapping[int, str]:
    """Return the hash of each released dataset of a run, by its number from 1."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE 'draw/%'", (run_id,)
    )
    found = {int(row["name"].removeprefix("draw/")): str(row["sha256"]) for row in rows}
    return dict(sorted(found.items()))


def read_variable_values(
    workspace: Workspace, dataset_id: int, run: StoredRun | None, names: Sequence[str]
) -> dict[str, VariableValues]:
    """Read variables of a dataset and of a run's release of it. Raises DamagedTable and NotFound."""
    stored = workspace.find_dataset(dataset_id)
    schema = Schema(tuple(variable for variable in stored.schema if variable.name in names))
    own = workspace.tables.read_microdata(stored.table_sha256, schema, stored.origin)
    recipe = None if run is None else run.recipe
    shown = () if recipe is None else tuple(v for v in recipe.released_schema if v.name in schema.names)
    comparable = Schema(tuple(v for v in shown if recipe and v.name not in recipe.generalised))
    tables: list[Microdata] = []
    if run is not None and recipe is not None and len(comparable.names):
        draws = released_dataset_hashes(workspace, run.id)
        tables = [workspace.tables.read_microdata(sha, comparable, _release_origin(recipe)) for sha in draws.values()]
    return {
        variable.name: _variable_values(variable, own, tables, _withheld_reason(variable.name, recipe))
        for variable in schema
    }


def point_sampling_streams(workspace: Workspace, dataset_id: int, run: StoredRun | None) -> Randomness | None:
    """Return the random streams that choose points for a plot, from the key and seed of a run.

    Without a run they come from the workspace's key. None without a key, as in a workspace that is opened read-only.
    """
    try:
        key = workspace.read_workspace_key() if run is None else run_key(workspace.directory, run.key_fingerprint)
    # the caller then draws points that differ each time, which is safe
    except NoKey:
        return None
    return Randomness(1 if run is None else run.seed, key, ("points", workspace.find_dataset(dataset_id).table_sha256))


def _release_origin(recipe: Recipe) -> Origin:
    """Return the origin of a recipe's released data."""
    return "anonymised" if recipe.anonymisation else "synthetic"


def _withheld_reason(name: str, recipe: Recipe | None) -> str:
    """Return why released values of a variable cannot be compared with the confidential ones; empty where they can."""
    if recipe is None:
        return "no run"
    if name in recipe.generalised:
        return "generalised in the release: its labels cannot be laid beside these values"
    return "" if name in recipe.released_schema.names else "not in the release"


def _variable_values(variable: Variable, own: Microdata, tables: Sequence[Microdata], withheld: str) -> VariableValues:
    """Return the values of a variable in the confidential data and in the released tables."""
    name = variable.name
    released = [] if withheld else tables
    kinds = [table.schema[name].kind for table in released]
    if any(kind.has_levels != variable.kind.has_levels for kind in kinds):
        # a binary variable may be released as the share of its second level: then both sides are numbers
        variable = replace(variable, kind=Kind.CONTINUOUS, labels={}, levels=())
    if not variable.kind.has_levels:
        return VariableValues(variable, own.numbers(name), tuple(t.numbers(name) for t in released), (), withheld)
    found = [[str(level) for level in table.column(name).cat.categories] for table in (own, *released)]
    # each table has only the levels that occur in it, so the same code means another level in each
    levels = tuple(dict.fromkeys(level for one in found for level in one))
    codes = [
        _recode_levels(table.numbers(name), one, levels) for table, one in zip((own, *released), found, strict=True)
    ]
    return VariableValues(variable, codes[0], tuple(codes[1:]), levels, withheld)


def _recode_levels(codes: Floats, own: Sequence[str], levels: Sequence[str]) -> Floats:
    """Recode codes (n,) of a table's ``own`` levels as positions among all ``levels``."""
    place = {level: i for i, level in enumerate(levels)}
    # the last entry is for the code of a missing value
    moved = np.array([*(place[level] for level in own), np.nan])
    return moved[np.where(np.isnan(codes), len(own), codes).astype(np.intp)]
