"""Tables that earlier releases of a workspace printed, over the people of another release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.adversary.cells import cell_keys
from sfumato.engine.adversary.same_people import is_enumerated
from sfumato.engine.data.arrays import Booleans
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.joined_tables import ReleasedTables
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.tables.system import EMPTY, PrintedTable

from ..errors import NotFound
from ..store.protected_tables import EARLIER_STRUCTURE, StoredTables, read_run_protected_tables
from ..store.releases_in_progress import runs_in_release
from ..store.runs import StoredRun, find_run, read_run_records
from ..store.tombstones import released_run_manifests
from ..store.workspace import Workspace, schema_to_json
from .earlier import ConfidentialPeople, people_of_run


def shown_places(printed: PrintedTable, stored: StoredTables) -> Booleans:
    """Return the places of a table that were printed, an axis a variable."""
    known = printed.cells != EMPTY
    shown = np.full(printed.cells.shape, not stored.are_zeros_hidden)
    shown[known] = stored.audit.published[printed.cells[known]]
    return shown


def read_released_tables(workspace: Workspace, run: StoredRun, names: Sequence[str]) -> ReleasedTables | None:
    """Return the tables that a release of a run printed; None where it has none.

    ``names`` are the columns by which its people are found among others, empty where the records are the same. Raises
    DamagedTable.
    """
    stored = read_run_protected_tables(workspace, run.id)
    if stored is None:
        return None
    shown = tuple(shown_places(one, stored) for one in stored.printed)
    return ReleasedTables(f"run {run.id}", read_run_records(workspace, run), run.recipe.tables, tuple(names), shown)


def find_earlier_tables(
    workspace: Workspace, recipe: Recipe, data: Microdata, table_sha256: str
) -> dict[str, NDArray[Any]] | None:
    """Return which tables earlier releases printed of the same people, as the task of a new run reads them.

    None where there are none. Raises DamagedTable.
    """
    if not recipe.tables:
        return None
    own = people_of_data(data.without_controls)
    lines, arrays = list[dict[str, Any]](), dict[str, NDArray[Any]]()
    connection = workspace.connection
    for number in sorted({*released_run_manifests(connection), *runs_in_release(connection)}):
        try:
            run = find_run(workspace, number)
        except NotFound:
            continue  # deleted: the gate says so
        if not run.recipe.tables:
            continue
        dataset = workspace.find_dataset(run.dataset_id)
        names = () if dataset.table_sha256 == table_sha256 else _common_people(workspace, run, own)
        if names is None or (found := read_released_tables(workspace, run, names)) is None:
            continue
        arrays |= {f"shown/{len(lines)}/{at}": places for at, places in enumerate(found.shown)}
        lines.append(
            {
                "release": found.release,
                "recipe": run.recipe_toml,
                "schema": schema_to_json(dataset.schema),
                "table": dataset.table_sha256,
                "names": list(names),
                "tables": len(found.shown),
            }
        )
    if not lines:
        return None
    return {EARLIER_STRUCTURE: np.frombuffer(json.dumps(lines).encode(), dtype=np.uint8), **arrays}


def people_of_data(data: Microdata) -> ConfidentialPeople:
    """Return records in the form in which they are compared with people of other tables."""
    names = tuple(name for name in data.schema.names if not is_enumerated(data, name))
    cells: Mapping[str, Any] = {name: cell_keys(data, (name,))[name] for name in names}
    return ConfidentialPeople(cells, data.schema, len(data))


def _common_people(workspace: Workspace, run: StoredRun, own: ConfidentialPeople) -> tuple[str, ...] | None:
    """Return the columns by which the people of a run are those of other records; None where they are others."""
    overlap = people_of_run(workspace, run).compare_people(own).overlap
    return None if overlap is None else overlap.names
