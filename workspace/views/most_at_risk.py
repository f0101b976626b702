"""The records most at risk of a run, or one of them, with all that the measure tells of them: what the command shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..store.runs import find_run
from ..store.workspace import Workspace
from .audits import audited, is_audit
from .beliefs import beliefs_of, guesses_of, tells_beliefs
from .records import drivers, find_measure, open_records, record_line, record_measures, values

if TYPE_CHECKING:
    from sfumato.engine.execution.record_risk import LeaveOneOutCandidates

    from ..reporting.audits import AuditedRecord
    from ..reporting.beliefs import BeliefsFound, RecordGuesses
    from ..reporting.records import RecordLine
    from .records import Records


@dataclass(frozen=True, eq=False)
class AtRisk:
    """The ``lines`` of some of the ``records``; what drives them, where they are matched; their values, where they are asked for.

    ``beliefs`` and ``guesses`` are what an intruder believes of all of them, and of the one that was asked for, where the measure
    tells it; ``audited`` are the targets of an audit, those that stand out most first.
    """

    records: Records
    lines: Sequence[RecordLine]
    alone: LeaveOneOutCandidates | None
    values: Sequence[dict[str, str | int | float]] | None
    beliefs: BeliefsFound | None
    guesses: RecordGuesses | None
    audited: Sequence[AuditedRecord] = ()


def most_at_risk(
    workspace: Workspace,
    run_id: int | str,
    measure: str,
    top: int,
    draw: int | None,
    record: int | None = None,
    *,
    with_values: bool,
) -> AtRisk:
    """The ``top`` records most at risk, or one ``record`` (its number from 1).

    Raises NotFound, NotReady, DamagedTable.
    """
    run = find_run(workspace, run_id)
    chosen = find_measure(record_measures(workspace, run.id), measure, run.id)
    records = open_records(workspace, run.id, chosen, draw, top)
    lines = records.lines(0, top) if record is None else [record_line(workspace, records, record)]
    numbers = [line.record for line in lines]
    told = tells_beliefs(records.measure)
    return AtRisk(
        records,
        lines,
        drivers(workspace, records, numbers),
        values(workspace, run.id, numbers) if with_values else None,
        beliefs_of(workspace, run.id, records.measure) if told else None,
        guesses_of(workspace, run.id, records.measure, record, with_values=with_values)
        if record is not None and records.measure.guesses is not None and not is_audit(chosen)
        else None,
        audited(workspace, chosen, record)[: len(lines)] if is_audit(chosen) else (),
    )
