"""Targets of an audit by shadow releases, read from the workspace."""

from __future__ import annotations

import numpy as np

from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row

from ..errors import NotFound
from ..reporting.audits import AuditedRecord
from ..store.artefacts import read_record_values
from ..store.runs import find_run
from ..store.workspace import Workspace
from .records import RecordMeasure, record_measures

AREA, LOWER, UPPER = "audited_auc", "audited_lower", "audited_upper"


def is_audit(measure: RecordMeasure) -> bool:
    """Return whether a measure made shadow releases and stored the features that distinguish them."""
    method = method_by_key(measure.key)
    return (
        measure.combined_hash is not None
        and measure.guesses_hash is not None
        and method is not None
        and method.measurement.refits
    )


def read_audited_records(workspace: Workspace, measure: RecordMeasure, kept: int | None = None) -> list[AuditedRecord]:
    """Read the targets of an audit, those that are best recognised first.

    ``kept`` limits them to one record, numbered from 1, or to the unit that it is of. Raises DamagedTable.
    """
    assert measure.combined_hash is not None
    assert measure.guesses_hash is not None
    arrays = workspace.tables.read_arrays(measure.guesses_hash)
    asked = [int(row) for row in arrays["record"]]
    sizes = arrays["sizes"] if "sizes" in arrays else np.ones(len(asked), dtype=np.int64)
    members = np.split(arrays["members"] if "members" in arrays else arrays["record"], np.cumsum(sizes)[:-1])
    noun = str(arrays["noun"][0]) if "noun" in arrays else ""
    rows = [row for row, own in zip(asked, members, strict=True) if kept is None or kept - 1 in own]
    if not rows:
        return []
    areas = read_record_values(workspace.tables, measure.combined_hash, rows)
    names = [str(name) for name in arrays["feature"]]
    found = []
    for place, row in enumerate(rows):
        weights = np.asarray(arrays["weight"][asked.index(row)], dtype=np.float64)
        order = np.argsort(-np.abs(weights), kind="stable")
        area, lower, upper = (float(areas[name][place]) for name in (AREA, LOWER, UPPER))
        by = tuple((names[k], float(weights[k])) for k in order)
        found.append(AuditedRecord(row + 1, area, lower, upper, by, noun))
    # by the lower limit: a high area with a wide interval may be chance
    return sorted(found, key=lambda one: (-one.lower, -one.auc, one.record))


def read_audited_record(workspace: Workspace, measure: RecordMeasure, record: int) -> AuditedRecord:
    """Read one target, numbered from 1. Raises NotFound where the record was not attacked."""
    found = read_audited_records(workspace, measure, record)
    if not found:
        raise NotFound(f"record {record:,} was not asked about by {measure.place} {measure.key}")
    return found[0]


def audit_levers(measure: RecordMeasure) -> tuple[str, ...]:
    """Return what to change where a target of the audit is recognised."""
    method = method_by_key(measure.key)
    outputs = () if method is None else method.outputs
    return next((output.label.levers for output in outputs if output.risk.gate_reference), ())


def audit_of_row(workspace: Workspace, run_id: int, row: Row) -> RecordMeasure | None:
    """Return the audit that made a row; None where none did or the run stored no targets."""
    method = method_by_key(row.method_key)
    if method is None or not method.measurement.refits:
        return None
    recipe = find_run(workspace, run_id).recipe
    step = recipe.step_of_row(row.method_key, row.params)
    # a recipe may use a method several times, with other settings
    own = (one for one in record_measures(workspace, run_id) if is_audit(one) and recipe.measures[one.position] is step)
    return next(own, None)


def audited_records_of_row(workspace: Workspace, run_id: int, row: Row) -> list[AuditedRecord]:
    """Return the targets of the audit that made a row; none where none did."""
    measure = audit_of_row(workspace, run_id, row)
    return [] if measure is None else read_audited_records(workspace, measure)
