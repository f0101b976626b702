"""Tables that the tasks of a run leave: released datasets, values of single records, traces of samplers.

Traces are as confidential as the data: they are read from the workspace and never released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.making import as_released
from sfumato.engine.methods.results import ChainTrace, ImportanceTrace, NoTrace, Trace
from sfumato.engine.recipe.recipe import Recipe

from ..errors import DamagedTable
from ..policy.packages import PackageFiles
from .runs import find_run
from .tables import TableStore
from .workspace import Workspace

GUESSED_PREFIX = "top."
"""Prefix of a variable's name for the values of the most likely guesses, (t, guesses)."""
WEIGHTS = "weights"
"""Artefact with the weight of every confidential record in the models of the run, where its recipe weights them."""
CONTROLS = "controls"
"""Artefact with the hold-out records of the run, where its recipe holds some out: as confidential as the others."""
PACKAGES_PREFIX = "packages/"
"""Prefix of the artefacts that say which packages of other authors a task ran, with version and hash."""
TRACE_KIND_KEY = "kind"


def classes_name(draw: int) -> str:
    """Return the name of the artefact with each confidential record's equivalence class in dataset ``draw`` (from 1)."""
    return f"classes/{draw}"


def read_released_table(
    tables: TableStore, recipe: Recipe, sha256: str, classes_sha256: str | None, names: Sequence[str] | None = None
) -> Microdata:
    """Read a released dataset as the engine made it, or some of its variables.

    classes_sha256: hash of the table with the classes of an anonymised table

    Raises DamagedTable.
    """
    schema = recipe.released_schema if names is None else recipe.released_schema.select_variables(names)
    table = tables.read_microdata(sha256, schema, recipe.origin)
    classes = None if classes_sha256 is None else tables.read_arrays(classes_sha256)["classes"]
    return replace(as_released(recipe, table.frame, classes), schema=schema)


def read_released_dataset(
    workspace: Workspace, run_id: int, recipe: Recipe, draw: int, names: Sequence[str] | None = None
) -> Microdata | None:
    """Read dataset ``draw`` (from 1) of a run, or some of its variables; None if it does not exist."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name IN (?, ?)",
        (run_id, f"draw/{draw}", classes_name(draw)),
    )
    found = {row["name"]: str(row["sha256"]) for row in rows}
    if f"draw/{draw}" not in found:
        return None
    return read_released_table(workspace.tables, recipe, found[f"draw/{draw}"], found.get(classes_name(draw)), names)


def record_values_name(item: int, draw: int | None) -> str:
    """Return the artefact's name ``records/0/3`` for the record values of measure 0 on dataset 3, or
    ``records/0/confidential``.
    """
    return f"records/{item}/{'confidential' if draw is None else draw}"


def pooled_record_values_name(item: int) -> str:
    """Return the artefact's name ``records/0/whole`` for the record values of measure 0 over all released datasets."""
    return f"records/{item}/whole"


def ranking_name(item: int, draw: int | None) -> str:
    """Return the artefact's name ``ranking/0/3`` for the records most at risk by measure 0 in dataset 3, or
    ``ranking/0/all``.
    """
    return f"ranking/{item}/{'all' if draw is None else draw}"


def guesses_name(item: int) -> str:
    """Return the artefact's name ``guesses/0`` for what an intruder believes of single records by measure 0."""
    return f"guesses/{item}"


def write_weights(tables: TableStore, weights: NDArray[Any]) -> str:
    """Store weights (n,) exactly, and return the hash of the table."""
    return tables.write_arrays({WEIGHTS: weights})


def read_weights(tables: TableStore, sha256: str) -> NDArray[Any]:
    """Read the weights (n,) that ``write_weights`` stored. Raises DamagedTable, also where the arrays are no weights."""
    found = tables.read_arrays(sha256).get(WEIGHTS)
    if found is None or found.ndim != 1 or found.dtype.kind != "f" or not ((found >= 0) & (found <= 1)).all():
        raise DamagedTable(f"the table {sha256[:8]} does not hold weights of records")
    return found


def packages_name(task: str) -> str:
    """Return the artefact's name ``packages/fit/0`` for the packages of other authors that ran in a task."""
    return f"{PACKAGES_PREFIX}{task}"


def write_packages(tables: TableStore, packages: Sequence[PackageFiles]) -> str:
    """Store which packages ran, and return the hash of the table."""
    return tables.write_arrays({one.name: np.asarray([one.version, one.sha256]) for one in packages})


def read_packages(workspace: Workspace, run_id: int) -> dict[str, tuple[PackageFiles, ...]]:
    """Return the packages of other authors that ran, by the key of each task that recorded some. Raises DamagedTable."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE ?", (run_id, f"{PACKAGES_PREFIX}%")
    )
    return {
        row["name"].removeprefix(PACKAGES_PREFIX): tuple(
            PackageFiles(name, *map(str, values))
            for name, values in workspace.tables.read_arrays(row["sha256"]).items()
        )
        for row in rows.fetchall()
    }


def released_dataset_hash(workspace: Workspace, run_id: int, draw: int) -> str:
    """Return the hash of dataset ``draw`` (from 1) of a run; empty if it does not exist."""
    return _artefact_hash(workspace, run_id, f"draw/{draw}")


def weights_hash(workspace: Workspace, run_id: int) -> str:
    """Return the hash of the weights of a run; empty where its records have none."""
    return _artefact_hash(workspace, run_id, WEIGHTS)


def add_stored_controls(tables: TableStore, sha256: str, data: Microdata) -> Microdata:
    """Return the confidential records with their stored controls. Raises DamagedTable."""
    return data.with_controls(tables.read_microdata(sha256, data.schema, data.origin))


def controls_hash(workspace: Workspace, run_id: int) -> str:
    """Return the hash of the control records of a run; empty where none were held out."""
    return _artefact_hash(workspace, run_id, CONTROLS)


def count_control_records(workspace: Workspace, run_id: int) -> int:
    """Count the records that were held out of a run as controls. Raises DamagedTable."""
    sha256 = controls_hash(workspace, run_id)
    return workspace.tables.count_table_records(sha256) if sha256 else 0


def _artefact_hash(workspace: Workspace, run_id: int, name: str) -> str:
    """Return the hash of a run's artefact; empty if it does not exist."""
    query = "SELECT sha256 FROM artefact WHERE run_id = ? AND name = ?"
    found = workspace.connection.execute(query, (run_id, name)).fetchone()
    return "" if found is None else str(found[0])


def write_record_values(tables: TableStore, per_record: Mapping[str, NDArray[Any]]) -> str:
    """Store arrays (n,) by name as columns, and return the hash of the table."""
    return tables.write_table(pa.table({name: _smallest_type(values) for name, values in per_record.items()}))


def write_record_blocks(tables: TableStore, blocks: Iterable[Mapping[str, NDArray[Any]]]) -> str:
    """Store arrays by name as columns, block by block and of the types that they have, and return the hash of the table."""
    return tables.write_blocks(pa.table(dict(values)) for values in blocks)


def read_record_values(tables: TableStore, sha256: str, rows: Sequence[int] | None = None) -> dict[str, NDArray[Any]]:
    """Read the arrays that ``write_record_values`` stored, (n,) each, or their values in some ``rows`` (from 0). Raises
    DamagedTable.
    """
    return arrays_from_table(tables.read_stored_table(sha256) if rows is None else tables.read_rows(sha256, rows))


def arrays_from_table(table: pa.Table) -> dict[str, NDArray[Any]]:
    """Return the columns of a table as arrays (n,) by name."""
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _smallest_type(values: NDArray[Any]) -> NDArray[Any]:
    """Convert whole numbers to the smallest type that holds them, and others to single precision."""
    if values.dtype.kind == "f":
        # Seven digits are enough for a measured value, at half the size.
        return values.astype(np.float32)
    if values.dtype.kind not in "iu" or not len(values):
        return values
    return values.astype(np.result_type(np.min_scalar_type(values.min()), np.min_scalar_type(values.max())))


_TRACE_KINDS: Mapping[str, type[Trace]] = {kind.__name__: kind for kind in (ChainTrace, ImportanceTrace, NoTrace)}


@dataclass(frozen=True)
class ModelTrace:
    """Trace of the model of a variable.

    target: variable
    method: title of the method
    trace: its trace; None where an earlier version fitted it, which kept none
    """

    target: str
    method: str
    trace: Trace | None


def trace_name(item: int) -> str:
    """Return the artefact's name ``trace/0`` for the trace of synthesis step 0."""
    return f"trace/{item}"


def write_trace(tables: TableStore, trace: Trace) -> str:
    """Store a trace, and return the hash of its table."""
    arrays = {field.name: np.asarray(getattr(trace, field.name)) for field in fields(trace)}
    return tables.write_arrays({TRACE_KIND_KEY: np.asarray(type(trace).__name__), **arrays})


def read_trace(tables: TableStore, sha256: str) -> Trace:
    """Read the trace that ``write_trace`` stored. Raises DamagedTable, also for a kind that a later version wrote."""
    arrays = tables.read_arrays(sha256)
    kind = _TRACE_KINDS.get(str(arrays.pop(TRACE_KIND_KEY)))
    if kind is None:
        raise DamagedTable(f"the trace {sha256[:8]} is of a kind that this version does not know")
    return kind(**{name: _trace_value(array) for name, array in arrays.items()})


def _trace_value(array: NDArray[Any]) -> Any:
    """Convert a stored array back to the field of a trace: texts as a tuple, a single value as itself."""
    if array.ndim == 0:
        return array.item()
    return tuple(array.tolist()) if array.dtype.kind == "U" else array


def read_traces(workspace: Workspace, run_id: int) -> list[ModelTrace]:
    """Read the traces of all models that have been fitted or tried, in the order of the plan. Raises NotFound and
    DamagedTable.
    """
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND (name LIKE 'fit/%' OR name LIKE 'trace/%')", (run_id,)
    )
    left = {row["name"]: row["sha256"] for row in rows}
    found = []
    for item, step in enumerate(find_run(workspace, run_id).recipe.synthesis):
        sha256 = left.get(trace_name(item))
        # Earlier versions kept a fit without its trace.
        if sha256 is not None or f"fit/{item}" in left:
            trace = None if sha256 is None else read_trace(workspace.tables, sha256)
            found.append(ModelTrace(step.target, step.method.title, trace))
    return found
