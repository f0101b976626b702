"""What the tasks of a run leave as tables: released datasets, values of single records, traces of samplers.

Traces are as confidential as the data (``sfumato.engine.methods.results`` says why): they are read from the workspace and never
released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from .runs import find_run
from .tables import Tables
from .workspace import Workspace

GUESSED = "top."
"""What stands before a variable's name where the values of the most likely guesses are stored, (t, guesses)."""
WEIGHTS = "weights"
"""The artefact that has the influence of every confidential record on the models of the run, where its recipe weighs them."""
CONTROLS = "controls"
"""The artefact that has the records which were held out of the run, where its recipe holds some out: as confidential as the others."""
KIND = "kind"


def classes_name(draw: int) -> str:
    """The artefact that has the equivalence class of each confidential record in dataset ``draw`` (from 1)."""
    return f"classes/{draw}"


def read_released(
    tables: Tables, recipe: Recipe, sha256: str, classes_sha256: str | None, names: Sequence[str] | None = None
) -> Microdata:
    """A released dataset as the engine made it, or some of its variables; ``classes_sha256`` is that of an anonymised table's classes.

    Raises DamagedTable.
    """
    schema = recipe.released_schema if names is None else recipe.released_schema.select_variables(names)
    table = tables.read_microdata(sha256, schema, recipe.origin)
    classes = None if classes_sha256 is None else tables.read_arrays(classes_sha256)["classes"]
    return replace(as_released(recipe, table.frame, classes), schema=schema)


def released_dataset(
    workspace: Workspace, run_id: int, recipe: Recipe, draw: int, names: Sequence[str] | None = None
) -> Microdata | None:
    """Dataset ``draw`` (from 1) of a run, or some of its variables, with the classes of an anonymised table; None where there is none."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name IN (?, ?)",
        (run_id, f"draw/{draw}", classes_name(draw)),
    )
    found = {row["name"]: str(row["sha256"]) for row in rows}
    if f"draw/{draw}" not in found:
        return None
    return read_released(workspace.tables, recipe, found[f"draw/{draw}"], found.get(classes_name(draw)), names)


def records_name(item: int, draw: int | None) -> str:
    """``records/0/3``: what measure 0 left of dataset 3; ``records/0/confidential`` where the data were scored themselves."""
    return f"records/{item}/{'confidential' if draw is None else draw}"


def whole_records_name(item: int) -> str:
    """``records/0/whole``: what measure 0 left of all released datasets together."""
    return f"records/{item}/whole"


def ranking_name(item: int, draw: int | None) -> str:
    """``ranking/0/3``: the records most at risk in dataset 3 by measure 0; ``ranking/0/all`` over all released datasets."""
    return f"ranking/{item}/{'all' if draw is None else draw}"


def guesses_name(item: int) -> str:
    """``guesses/0``: what an intruder would think of single records by measure 0; values of the data."""
    return f"guesses/{item}"


def write_weights(tables: Tables, weights: NDArray[Any]) -> str:
    """Store weights (n,) exactly; returns the hash of the table."""
    return tables.write_arrays({WEIGHTS: weights})


def read_weights(tables: Tables, sha256: str) -> NDArray[Any]:
    """The weights (n,) that ``write_weights`` stored. Raises DamagedTable, also where they are none."""
    found = tables.read_arrays(sha256).get(WEIGHTS)
    if found is None or found.ndim != 1 or found.dtype.kind != "f" or not ((found >= 0) & (found <= 1)).all():
        raise DamagedTable(f"the table {sha256[:8]} does not hold weights of records")
    return found


def released_hash(workspace: Workspace, run_id: int, draw: int) -> str:
    """The hash of dataset ``draw`` (from 1) of a run; empty where there is none."""
    return _hash_of(workspace, run_id, f"draw/{draw}")


def weights_hash(workspace: Workspace, run_id: int) -> str:
    """The hash of the weights of a run; empty where its records have none."""
    return _hash_of(workspace, run_id, WEIGHTS)


def read_controls(tables: Tables, sha256: str, data: Microdata) -> Microdata:
    """The confidential records with their controls beside them. Raises DamagedTable."""
    return data.with_controls(tables.read_microdata(sha256, data.schema, data.origin))


def controls_hash(workspace: Workspace, run_id: int) -> str:
    """The hash of the control records of a run; empty where none were held out."""
    return _hash_of(workspace, run_id, CONTROLS)


def control_records(workspace: Workspace, run_id: int) -> int:
    """How many records were held out of a run as controls. Raises DamagedTable."""
    sha256 = controls_hash(workspace, run_id)
    return workspace.tables.records(sha256) if sha256 else 0


def _hash_of(workspace: Workspace, run_id: int, name: str) -> str:
    query = "SELECT sha256 FROM artefact WHERE run_id = ? AND name = ?"
    found = workspace.connection.execute(query, (run_id, name)).fetchone()
    return "" if found is None else str(found[0])


def write_records(tables: Tables, per_record: Mapping[str, NDArray[Any]]) -> str:
    """Store arrays (n,) by name as columns; returns the hash of the table."""
    return tables.write(pa.table({name: _small(values) for name, values in per_record.items()}))


def read_records(tables: Tables, sha256: str, rows: Sequence[int] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays that ``write_records`` stored, (n,) each, or their values in some ``rows``, from 0. Raises DamagedTable."""
    return arrays_of(tables.read(sha256) if rows is None else tables.rows(sha256, rows))


def arrays_of(table: pa.Table) -> dict[str, NDArray[Any]]:
    """The columns of a table as arrays (n,) by name."""
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _small(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in the smallest type that holds them all, others with seven digits."""
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    if values.dtype.kind not in "iu" or not len(values):
        return values
    return values.astype(np.result_type(np.min_scalar_type(values.min()), np.min_scalar_type(values.max())))


_KINDS: Mapping[str, type[Trace]] = {kind.__name__: kind for kind in (ChainTrace, ImportanceTrace, NoTrace)}


@dataclass(frozen=True)
class ModelTrace:
    """The trace of the model of ``target``; None where an earlier version fitted it, which kept none."""

    target: str
    method: str
    trace: Trace | None


def trace_name(item: int) -> str:
    """``trace/0``: what the sampler of synthesis step 0 left."""
    return f"trace/{item}"


def write_trace(tables: Tables, trace: Trace) -> str:
    """Store a trace; returns the hash of its table."""
    arrays = {field.name: np.asarray(getattr(trace, field.name)) for field in fields(trace)}
    return tables.write_arrays({KIND: np.asarray(type(trace).__name__), **arrays})


def read_trace(tables: Tables, sha256: str) -> Trace:
    """The trace that ``write_trace`` stored. Raises DamagedTable, also for a kind that a later version wrote."""
    arrays = tables.read_arrays(sha256)
    kind = _KINDS.get(str(arrays.pop(KIND)))
    if kind is None:
        raise DamagedTable(f"the trace {sha256[:8]} is of a kind that this version does not know")
    return kind(**{name: _plain(array) for name, array in arrays.items()})


def _plain(array: NDArray[Any]) -> Any:
    """Words as tuples, single values as themselves, all else as it is."""
    if array.ndim == 0:
        return array.item()
    return tuple(array.tolist()) if array.dtype.kind == "U" else array


def traces_of(workspace: Workspace, run_id: int) -> list[ModelTrace]:
    """The trace of every model that has been fitted, or tried, in the order of the plan. Raises NotFound, DamagedTable."""
    rows = workspace.connection.execute(
        "SELECT name, sha256 FROM artefact WHERE run_id = ? AND (name LIKE 'fit/%' OR name LIKE 'trace/%')", (run_id,)
    )
    left = {row["name"]: row["sha256"] for row in rows}
    found = []
    for item, step in enumerate(find_run(workspace, run_id).recipe.synthesis):
        sha256 = left.get(trace_name(item))
        if sha256 is not None or f"fit/{item}" in left:
            trace = None if sha256 is None else read_trace(workspace.tables, sha256)
            found.append(ModelTrace(step.target, step.method.title, trace))
    return found
