"""The records most at risk in plain text and as JSON. Values of the data only where they were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .console import number, table
from .widgets.text import printable
from .words import params_text

if TYPE_CHECKING:
    from sfumato.engine.record_risk import Driver, LeaveOneOut
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import RecordLine, Records

__all__ = ["driver_text", "meaning_of", "most_at_risk", "record_object", "record_text"]

MEANINGS = {
    "risk.identification": "probability: that picking one of the matching released records at random finds the record",
    "risk.attribute": "probability: the share of the matching released records whose sensitive values are near the record's own",
}
Values = Sequence[Mapping[str, str | int | float]]


def driver_text(driver: Driver | None) -> str:
    """``price (12.5)``: what drives the risk, and how many candidates there would be without it; a dash for none."""
    return "-" if driver is None else f"{printable(driver.variable)} ({number(driver.without)})"


def meaning_of(key: str) -> str:
    """What the probability of a measure means."""
    return MEANINGS.get(key, "probability: that the record is given away")


def headline(records: Records) -> str:
    """Which run and measure, over which datasets."""
    over = f"dataset {records.draw}" if records.draw else f"the average over {records.risk.datasets} released datasets"
    params = params_text(records.measure.params)
    return (
        f"run {records.run_id}, {records.measure.place} {records.measure.key}{f' ({params})' if params else ''}, {over}"
    )


def record_text(records: Records, lines: Sequence[RecordLine], alone: LeaveOneOut, values: Values | None) -> str:
    """The records of ``lines`` in a table, what the columns mean, and the values where they were asked for."""
    heads = ["record", "probability", "candidates", "driver (candidates without it)"]
    if records.risk.unique is not None:
        heads.insert(2, "only candidate")
    if records.own is not None:
        heads.insert(-1, "confidential")
    rows = [_row(line, driver_text(alone.driver(r))) for r, line in enumerate(lines)]
    shown = table(heads, rows, right=range(len(heads) - 1))
    parts = [
        f"{headline(records)}\nThe {len(lines):,} of {len(records):,} records most at risk",
        shown,
        _legend(records),
    ]
    if values is None:
        parts[-1] += "\nValues of the data are not shown; --values shows them."
    else:
        parts.append(f"Values (confidential)\n{_value_table(lines, values)}")
    return "\n\n".join(parts)


def _row(line: RecordLine, driver: str) -> list[str]:
    unique = [] if line.unique is None else [number(line.unique)]
    own = [] if line.own_probability is None else [number(line.own_probability)]
    return [str(line.record), number(line.probability), *unique, number(line.candidates), *own, driver]


def _legend(records: Records) -> str:
    said = ["record: row of the confidential table, from 1", meaning_of(records.measure.key)]
    if records.risk.unique is not None:
        said.append("only candidate: share of the datasets in which the record's own is the one match")
    said.append("candidates: how many released records match; driver: the variable without which there would be most")
    if records.own is not None:
        said.append("confidential: the probability if the confidential data themselves were released")
    return "\n".join(said)


def _value_table(lines: Sequence[RecordLine], values: Values) -> str:
    names = list(values[0]) if values else []
    rows = [
        [str(line.record), *(printable(str(own[name])) for name in names)]
        for line, own in zip(lines, values, strict=True)
    ]
    return table(["record", *map(printable, names)], rows, right=(0,))


def record_object(
    records: Records, lines: Sequence[RecordLine], alone: LeaveOneOut, values: Values | None
) -> dict[str, Any]:
    """The object that ``--json`` writes."""
    return {
        "run": records.run_id,
        "measure": records.measure.key,
        "place": records.measure.place,
        "params": dict(records.measure.params),
        "draw": records.draw,
        "datasets": records.risk.datasets,
        "total": len(records),
        "records": [
            _line_object(line, alone, r, None if values is None else values[r]) for r, line in enumerate(lines)
        ],
    }


def _line_object(line: RecordLine, alone: LeaveOneOut, r: int, own: Mapping[str, Any] | None) -> dict[str, Any]:
    driver = alone.driver(r)
    written: dict[str, Any] = {
        "record": line.record,
        "probability": line.probability,
        "unique": line.unique,
        "candidates": line.candidates,
        "confidential_probability": line.own_probability,
        "confidential_candidates": line.own_candidates,
        "driver": None if driver is None else driver.variable,
        "candidates_without": dict(zip(alone.variables, alone.without[r].tolist(), strict=True)),
    }
    return written if own is None else {**written, "values": dict(own)}


def most_at_risk(
    workspace: Workspace, run_id: int | str, measure: str, top: int, draw: int | None, *, with_values: bool
) -> tuple[Records, list[RecordLine], LeaveOneOut, Values | None]:
    """The records most at risk of a run, what drives them, and their values where asked for.

    Raises NotFound, NotReady, DamagedTable.
    """
    from sfumato.workspace.views.records import drivers, find_measure, open_records, record_measures, values
    from sfumato.workspace.views.runs import find_run

    run = find_run(workspace, run_id)
    found = find_measure(record_measures(workspace, run.id), measure, run.id)
    records = open_records(workspace, run.id, found, draw)
    lines = records.lines(0, top)
    numbers = [line.record for line in lines]
    alone = drivers(workspace, records, numbers)
    return records, lines, alone, values(workspace, run.id, numbers) if with_values else None
