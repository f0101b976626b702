"""Variables of the confidential data beside those of every released dataset, read from the workspace's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Origin, Schema, Variable
from sfumato.engine.methods.run import Randomness
from sfumato.engine.recipe.recipe import Recipe

from ..plots.column import Column
from ..store.keys import NoKey, key_of_run
from ..store.runs import Run
from ..store.workspace import Workspace

Floats = NDArray[np.float64]


def released_draws(workspace: Workspace, run_id: int) -> Mapping[int, str]:
    """The hash of each released dataset of a run, by its number from 1."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE 'draw/%'", (run_id,)
    )
    found = {int(row["name"].removeprefix("draw/")): str(row["sha256"]) for row in rows}
    return dict(sorted(found.items()))


def columns_beside(workspace: Workspace, dataset_id: int, run: Run | None, names: Sequence[str]) -> dict[str, Column]:
    """Some variables of a dataset, and of what a run released of it. Raises DamagedTable and NotFound."""
    stored = workspace.dataset(dataset_id)
    schema = Schema(tuple(variable for variable in stored.schema if variable.name in names))
    own = workspace.tables.read_microdata(stored.table_sha256, schema, stored.origin)
    recipe = None if run is None else run.recipe
    shown = () if recipe is None else tuple(v for v in recipe.released_schema if v.name in schema.names)
    comparable = Schema(tuple(v for v in shown if recipe and v.name not in recipe.generalised))
    tables: list[Microdata] = []
    if run is not None and recipe is not None and len(comparable.names):
        draws = released_draws(workspace, run.id)
        tables = [workspace.tables.read_microdata(sha, comparable, _origin(recipe)) for sha in draws.values()]
    return {variable.name: _column(variable, own, tables, _withheld(variable.name, recipe)) for variable in schema}


def point_streams(workspace: Workspace, dataset_id: int, run: Run | None) -> Randomness | None:
    """The streams by which points of a dataset are chosen for a plot: of a run its key and seed, without one the workspace's.

    None where the key is not there, as in a workspace that is only looked at.
    """
    try:
        key = workspace.key() if run is None else key_of_run(workspace.directory, run.key_fingerprint)
    except NoKey:
        return None
    return Randomness(1 if run is None else run.seed, key, ("points", workspace.dataset(dataset_id).table_sha256))


def _origin(recipe: Recipe) -> Origin:
    return "anonymised" if recipe.anonymisation else "synthetic"


def _withheld(name: str, recipe: Recipe | None) -> str:
    if recipe is None:
        return "no run"
    if name in recipe.generalised:
        return "generalised in the release: its labels cannot be laid beside these values"
    return "" if name in recipe.released_schema.names else "not in the release"


def _column(variable: Variable, own: Microdata, tables: Sequence[Microdata], withheld: str) -> Column:
    """Levels that were released as shares of the second of two are numbers in the confidential data too."""
    name = variable.name
    released = [] if withheld else tables
    kinds = [table.schema[name].kind for table in released]
    if any(kind.has_levels != variable.kind.has_levels for kind in kinds):
        variable = replace(variable, kind=Kind.CONTINUOUS, labels={}, levels=())
    if not variable.kind.has_levels:
        return Column(variable, own.numbers(name), tuple(t.numbers(name) for t in released), (), withheld)
    found = [[str(level) for level in table.column(name).cat.categories] for table in (own, *released)]
    levels = tuple(dict.fromkeys(level for one in found for level in one))
    codes = [_recoded(table.numbers(name), one, levels) for table, one in zip((own, *released), found, strict=True)]
    return Column(variable, codes[0], tuple(codes[1:]), levels, withheld)


def _recoded(codes: Floats, own: Sequence[str], levels: Sequence[str]) -> Floats:
    """Codes of a table's ``own`` levels as places among all ``levels``."""
    place = {level: i for i, level in enumerate(levels)}
    moved = np.array([*(place[level] for level in own), np.nan])
    return moved[np.where(np.isnan(codes), len(own), codes).astype(np.intp)]
