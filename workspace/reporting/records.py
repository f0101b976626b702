"""The records most at risk, as a table and as JSON. Values of the data only where they were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sfumato.engine.methods import method_called

from .tables import Column, Table, table
from .words import number, printable

if TYPE_CHECKING:
    from sfumato.engine.record_risk import Driver, LeaveOneOut

COLUMNS = (
    Column("record", "record", 9, "right"),
    Column("probability", "probability", 11, "right"),
    Column("unique", "only candidate", 14, "right", spare=2),
    Column("candidates", "candidates", 10, "right"),
    Column("own", "confidential", 12, "right", spare=1),
    Column("driver", "driver (candidates without it)", 30, grows=True),
)
Values = Sequence[Mapping[str, str | int | float]]


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One record. ``confidential_*`` are of the confidential data scored themselves; ``unique`` and they are None where unknown."""

    record: int
    probability: float
    unique: float | None
    candidates: float
    confidential_probability: float | None
    confidential_candidates: float | None


def record_cells(line: RecordLine, driver: str) -> dict[str, str]:
    """A record's cells by column."""
    return {
        "record": str(line.record),
        "probability": number(line.probability),
        "unique": "" if line.unique is None else number(line.unique),
        "candidates": number(line.candidates),
        "own": "" if line.confidential_probability is None else number(line.confidential_probability),
        "driver": driver,
    }


def record_table(lines: Sequence[RecordLine], alone: LeaveOneOut) -> Table:
    """The records of ``lines``, and what drives their risk."""
    rows = [tuple(record_cells(line, driver_text(alone.driver(r))).values()) for r, line in enumerate(lines)]
    return Table(COLUMNS, rows)


def value_table(lines: Sequence[RecordLine], values: Values) -> Table:
    """The records' values: confidential."""
    names = list(values[0]) if values else []
    rows = [[str(line.record), *(str(own[name]) for name in names)] for line, own in zip(lines, values, strict=True)]
    return table(["record", *names], rows, right=(0,), title="Values (confidential)")


def driver_text(driver: Driver | None) -> str:
    """``price (12.5)``: what drives the risk, and how many candidates there would be without it; a dash for none."""
    return "-" if driver is None else f"{printable(driver.variable)} ({number(driver.without)})"


def legend(key: str, *, unique: bool, own: bool) -> str:
    """What the columns mean, of the records by measure ``key``."""
    method = method_called(key)
    meaning = (method and method.record_meaning) or "that the record is given away"
    said = ["record: row of the confidential table, from 1", f"probability: {meaning}"]
    if unique:
        said.append("only candidate: share of the datasets in which the record's own is the one match")
    said.append("candidates: how many released records match; driver: the variable without which there would be most")
    if own:
        said.append("confidential: the probability if the confidential data themselves were released")
    return "\n".join(said)


def record_objects(lines: Sequence[RecordLine], alone: LeaveOneOut, values: Values | None) -> list[dict[str, Any]]:
    """The records as ``--json`` writes them."""
    found = []
    for r, line in enumerate(lines):
        driver = alone.driver(r)
        written: dict[str, Any] = {
            **asdict(line),
            "driver": None if driver is None else driver.variable,
            "candidates_without": dict(zip(alone.variables, alone.without[r].tolist(), strict=True)),
        }
        found.append(written if values is None else {**written, "values": dict(values[r])})
    return found
