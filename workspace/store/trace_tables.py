"""What the samplers of a run left to look at: stored with each fit, read for screens and for the run's own report.

Traces are as confidential as the data (``sfumato.engine.traces`` says why): they are read from the workspace and never
released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.traces import ChainTrace, ImportanceTrace, NoTrace, Trace

from ..errors import DamagedTable
from ..views.runs import find_run
from .tables import Tables
from .workspace import Workspace

__all__ = ["ModelTrace", "read_trace", "trace_name", "traces_of", "write_trace"]

KIND = "kind"
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
