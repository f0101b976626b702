"""The people whom an audit of a run asked about, read from the workspace."""

from __future__ import annotations

import numpy as np

from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row

from ..errors import NotFound
from ..reporting.audits import AuditedRecord
from ..store.artefacts import read_records
from ..store.runs import find_run
from ..store.workspace import Workspace
from .records import RecordMeasure, record_measures

AREA, LOWER, UPPER = "audited_auc", "audited_lower", "audited_upper"


def is_audit(measure: RecordMeasure) -> bool:
    """Whether the measure made shadow releases, and kept what distinguishes them."""
    method = method_by_key(measure.key)
    return (
        measure.whole is not None and measure.guesses is not None and method is not None and method.measurement.refits
    )


def audited(workspace: Workspace, measure: RecordMeasure, kept: int | None = None) -> list[AuditedRecord]:
    """The targets of an audit, those that stand out most first; ``kept`` is the one record, from 1, that is asked for. Raises DamagedTable."""
    assert measure.whole is not None
    assert measure.guesses is not None
    arrays = workspace.tables.read_arrays(measure.guesses)
    asked = [int(row) for row in arrays["record"]]
    rows = [row for row in asked if kept is None or row == kept - 1]
    if not rows:
        return []
    areas = read_records(workspace.tables, measure.whole, rows)
    names = [str(name) for name in arrays["feature"]]
    found = []
    for place, row in enumerate(rows):
        weights = np.asarray(arrays["weight"][asked.index(row)], dtype=np.float64)
        order = np.argsort(-np.abs(weights), kind="stable")
        area, lower, upper = (float(areas[name][place]) for name in (AREA, LOWER, UPPER))
        found.append(AuditedRecord(row + 1, area, lower, upper, tuple((names[k], float(weights[k])) for k in order)))
    return sorted(found, key=lambda one: (-one.lower, -one.area, one.record))


def audited_record(workspace: Workspace, measure: RecordMeasure, record: int) -> AuditedRecord:
    """One target (its number from 1). Raises NotFound where it was not asked about."""
    found = audited(workspace, measure, record)
    if not found:
        raise NotFound(f"record {record:,} was not asked about by {measure.place} {measure.key}")
    return found[0]


def levers_of(measure: RecordMeasure) -> tuple[str, ...]:
    """What to change where a target of the audit stands out."""
    method = method_by_key(measure.key)
    outputs = () if method is None else method.outputs
    return next((output.label.levers for output in outputs if output.risk.gate_reference), ())


def audit_beside(workspace: Workspace, run_id: int, row: Row) -> RecordMeasure | None:
    """The audit that made a row; None where none did, or its run keeps no targets."""
    method = method_by_key(row.method_key)
    if method is None or not method.measurement.refits:
        return None
    recipe = find_run(workspace, run_id).recipe
    step = recipe.step_of_row(row.method_key, row.params)
    own = (one for one in record_measures(workspace, run_id) if is_audit(one) and recipe.measures[one.item] is step)
    return next(own, None)


def targets_beside(workspace: Workspace, run_id: int, row: Row) -> list[AuditedRecord]:
    """The targets of the audit that made a row; empty where none did."""
    measure = audit_beside(workspace, run_id, row)
    return [] if measure is None else audited(workspace, measure)
