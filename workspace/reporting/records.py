"""The records most at risk, as a table and as JSON. Values of the data only where they were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any

from sfumato.engine.methods.registry import method_by_key

from ..visible_text import replace_unprintable
from .beliefs import times
from .tables import Column, Table, table
from .words import number

if TYPE_CHECKING:
    from sfumato.engine.execution.record_risk import LeaveOneOutCandidates, RiskDriver
    from sfumato.engine.methods.outputs import RecordArray

COLUMNS = (
    Column("record", "record", 9, "right"),
    Column("probability", "probability", 11, "right"),
    Column("prior", "before", 11, "right"),
    Column("ratio", "times as likely", 15, "right", spare=1),
    Column("unique", "only candidate", 14, "right", spare=2),
    Column("candidates", "candidates", 10, "right"),
    Column("own", "confidential", 12, "right", spare=1),
    Column("driver", "driver (candidates without it)", 30, grows=1),
)
Values = Sequence[Mapping[str, str | int | float]]


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One record. ``confidential_*`` are of the confidential data scored themselves, ``prior`` is the probability before the release;
    ``unique`` and they are None where unknown.
    """

    record: int
    probability: float
    unique: float | None
    candidates: float
    confidential_probability: float | None
    confidential_candidates: float | None
    prior: float | None = None


def record_cells(line: RecordLine, driver: str) -> dict[str, str]:
    return {
        "record": str(line.record),
        "probability": number(line.probability),
        "prior": "" if line.prior is None else number(line.prior),
        "ratio": "" if line.prior is None else times(line.probability, line.prior),
        "unique": "" if line.unique is None else number(line.unique),
        "candidates": "" if isnan(line.candidates) else number(line.candidates),
        "own": "" if line.confidential_probability is None else number(line.confidential_probability),
        "driver": driver,
    }


def columns_of(key: str) -> tuple[Column, ...]:
    """The columns for a measure ``key``: what it counts as candidates heads theirs."""
    declared = _part(key, "candidates")
    unit = declared.unit if declared and _part(key, "prior") else ""
    return tuple(replace(one, title=unit) if one.name == "candidates" and unit else one for one in COLUMNS)


def _part(key: str, part: str) -> RecordArray | None:
    method = method_by_key(key)
    return method.record_array(part) if method else None


def record_table(key: str, lines: Sequence[RecordLine], alone: LeaveOneOutCandidates | None) -> Table:
    """The records of ``lines`` by measure ``key``, and what drives their risk."""
    drivers = ["" if alone is None else driver_text(alone.driver(r)) for r in range(len(lines))]
    rows = [tuple(record_cells(line, driver).values()) for line, driver in zip(lines, drivers, strict=True)]
    return Table(columns_of(key), rows)


def value_table(lines: Sequence[RecordLine], values: Values) -> Table:
    """The records' values: confidential."""
    names = list(values[0]) if values else []
    rows = [[str(line.record), *(str(own[name]) for name in names)] for line, own in zip(lines, values, strict=True)]
    return table(["record", *names], rows, right=(0,), title="Values (confidential)")


def driver_text(driver: RiskDriver | None) -> str:
    """``price (12.5)``: what drives the risk, and how many candidates there would be without it; a dash for none."""
    return "-" if driver is None else f"{replace_unprintable(driver.variable)} ({number(driver.without)})"


def legend(key: str, *, unique: bool, own: bool, drivers: bool = True) -> str:
    """What the columns mean, of the records by measure ``key``."""
    method = method_by_key(key)
    meaning = (method and method.record_meaning) or "that the record is given away"
    said = ["record: row of the confidential table, from 1", f"probability: {meaning}"]
    if _part(key, "best_hit") is not None:
        said[-1] += "; the larger of matching by all that is known and by the best choice of it"
    if unique:
        said.append("only candidate: share of the datasets in which the record's own is the one match")
    before, candidates = _part(key, "prior"), _part(key, "candidates")
    if before is not None:
        said.append(f"before: {before.meaning}; times as likely: the one over the other")
    if drivers or candidates is None:
        said.append(
            "candidates: how many released records match; driver: the variable without which there would be most"
        )
    else:
        said.append(f"{candidates.unit or 'candidates'}: {candidates.meaning}")
    if own:
        said.append("confidential: the probability if the confidential data themselves were released")
    return "\n".join(said)


def record_objects(
    lines: Sequence[RecordLine], alone: LeaveOneOutCandidates | None, values: Values | None
) -> list[dict[str, Any]]:
    """The records as ``--json`` writes them; drivers of those alone that are matched on known variables."""
    found = []
    for r, line in enumerate(lines):
        written: dict[str, Any] = asdict(line)
        if line.prior is None:
            del written["prior"]
        if isnan(line.candidates):
            del written["candidates"]
        if alone is not None:
            driver = alone.driver(r)
            written["driver"] = None if driver is None else driver.variable
            written["candidates_without"] = dict(zip(alone.variables, alone.without[r].tolist(), strict=True))
        found.append(written if values is None else {**written, "values": dict(values[r])})
    return found
