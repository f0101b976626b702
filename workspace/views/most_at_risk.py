"""Records of a run by risk, with all that a measure stored about them, for the command ``records``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..store.runs import find_run
from ..store.workspace import Workspace
from .audits import is_audit, read_audited_records
from .beliefs import is_belief_measure, read_beliefs, read_record_guesses
from .records import (
    find_risk_drivers,
    rank_records,
    read_record_line,
    record_measures,
    select_measure,
    values_of_records,
)

if TYPE_CHECKING:
    from sfumato.engine.execution.record_risk import LeaveOneOutCandidates

    from ..reporting.audits import AuditedRecord
    from ..reporting.beliefs import MeasureBeliefs, RecordGuesses
    from ..reporting.records import RecordLine
    from .records import RankedRecords


@dataclass(frozen=True, eq=False)
class RecordsAtRisk:
    """Records with the highest risk, or one chosen record.

    records: the ranked records
    lines: risks of the requested records; where these are in units of several, of each unit and then of its records
    candidates_without: candidates without each variable, where records are matched; of the records alone
    values: their values, where they were requested; of the records alone
    beliefs: an intruder's beliefs about all records, where the measure has them
    guesses: guesses at the one record that was requested
    audit_targets: targets of an audit, those that are best recognised first
    """

    records: RankedRecords
    lines: Sequence[RecordLine]
    candidates_without: LeaveOneOutCandidates | None
    values: Sequence[dict[str, str | int | float]] | None
    beliefs: MeasureBeliefs | None
    guesses: RecordGuesses | None
    audit_targets: Sequence[AuditedRecord] = ()

    @property
    def record_lines(self) -> Sequence[RecordLine]:
        """Return the lines of records, without those of units."""
        return [line for line in self.lines if not line.is_unit]


def read_records_at_risk(
    workspace: Workspace,
    run_id: int | str,
    measure: str,
    top: int,
    draw: int | None,
    record: int | None = None,
    *,
    with_values: bool,
) -> RecordsAtRisk:
    """Read the ``top`` records, or units with their records, by risk, or one ``record``, numbered from 1. Raises NotFound, NotReady and DamagedTable."""
    run = find_run(workspace, run_id)
    chosen = select_measure(record_measures(workspace, run.id), measure, run.id)
    records = rank_records(workspace, run.id, chosen, draw, top)
    rows = top if records.units is None else records.units.count_rows(top)
    lines = records.lines(0, rows) if record is None else [read_record_line(workspace, records, record)]
    numbers = [line.record for line in lines if not line.is_unit]
    told = is_belief_measure(records.measure)
    return RecordsAtRisk(
        records,
        lines,
        find_risk_drivers(workspace, records, numbers),
        values_of_records(workspace, run.id, numbers) if with_values else None,
        read_beliefs(workspace, run.id, records.measure) if told else None,
        read_record_guesses(workspace, run.id, records.measure, record, with_values=with_values)
        # an audit stores features of releases in place of guesses at values
        if record is not None and records.measure.guesses_hash is not None and not is_audit(chosen)
        else None,
        read_audited_records(workspace, chosen, record)[:top] if is_audit(chosen) else (),
    )
