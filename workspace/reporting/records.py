"""Records by their risk, as a table and as JSON; values of the data only where they were requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any

from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.wording import count_noun, format_percent, singular_noun

from ..visible_text import replace_unprintable
from .beliefs import times_as_likely
from .tables import DisplayColumn, DisplayTable, table_from_titles
from .words import number

if TYPE_CHECKING:
    from sfumato.engine.execution.record_risk import LeaveOneOutCandidates, RiskDriver
    from sfumato.engine.methods.outputs import RecordArray

RECORD_COLUMNS = (
    DisplayColumn("record", "record", 11, "right"),
    DisplayColumn("probability", "probability", 11, "right"),
    DisplayColumn("prior", "before", 11, "right"),
    DisplayColumn("ratio", "times as likely", 15, "right", drop_order=1),
    DisplayColumn("unique", "only match", 14, "right", drop_order=2),
    DisplayColumn("candidates", "matches", 10, "right"),
    DisplayColumn("own", "confidential", 12, "right", drop_order=1),
    DisplayColumn("driver", "narrowed most by", 24, grow_order=1),
)
WHOLE_FROM = 10
"""Number of matching records from which their average is rounded to a whole one."""
Values = Sequence[Mapping[str, str | int | float]]


@dataclass(frozen=True, slots=True)
class RecordLine:
    """Disclosure risk of one record.

    record: its number, from 1
    probability: probability of re-identification
    unique: share of the datasets in which its own released record is the only candidate; None where unknown
    candidates: number of candidates, NaN where the measure has none
    confidential_probability, confidential_candidates: the same if the confidential data were released; None where
        unknown
    prior: probability before the release; None where the measure has none
    unit: number of its unit in the order of the file, from 1; None where every record is a unit
    members: number of records of the unit whose line it is, None for the line of a record; ``record`` is then the one
        most at risk, ``candidates`` are units, and ``probability`` is the larger of finding the unit by all its records
        and of finding one of these
    alone: probability of finding a unit by one of its records, the largest; None for the line of a record
    """

    record: int
    probability: float
    unique: float | None
    candidates: float
    confidential_probability: float | None
    confidential_candidates: float | None
    prior: float | None = None
    unit: int | None = None
    members: int | None = None
    alone: float | None = None

    @property
    def is_unit(self) -> bool:
        """Return whether this is the line of a unit and not of a record."""
        return self.members is not None


def record_cells(line: RecordLine, driver: str) -> dict[str, str]:
    """Return the cells of a record or unit by column; ``driver`` is the text about its driver."""
    return {
        "unit": f"{line.unit:,}" if line.is_unit else "",
        "record": f"{line.record:,}" if line.members is None else count_noun(line.members, "record"),
        "probability": "" if isnan(line.probability) else format_percent(line.probability),
        "prior": "" if line.prior is None else format_percent(line.prior),
        "ratio": "" if line.prior is None else times_as_likely(line.probability, line.prior),
        "unique": "" if line.unique is None else format_percent(line.unique),
        "candidates": "" if isnan(line.candidates) else number(line.candidates),
        "own": "" if line.confidential_probability is None else format_percent(line.confidential_probability),
        "alone": "" if line.alone is None or isnan(line.alone) else format_percent(line.alone),
        "driver": driver,
    }


def record_risk_columns(key: str, unit_noun: str = "") -> tuple[DisplayColumn, ...]:
    """Return the columns for a risk measure; the heading of the candidates is the unit that it counts.

    With a ``unit_noun`` (plural) the first column has the number of a unit.
    """
    declared = _record_array(key, "candidates")
    unit = declared.unit if declared and _record_array(key, "prior") else ""
    first = () if not unit_noun else (DisplayColumn("unit", singular_noun(unit_noun), 10, "right"),)
    titles = {
        "candidates": unit or (f"matching {unit_noun}" if unit_noun else ""),
        "record": "records" if unit_noun else "",
    }
    columns = [replace(one, title=titles.get(one.name) or one.title) for one in RECORD_COLUMNS]
    return (*first, *(replace(one, width=max(one.width, len(one.title))) for one in columns))


def _record_array(key: str, part: str) -> RecordArray | None:
    """Return the declaration of an array by record of a measure; None where the measure does not have it."""
    method = method_by_key(key)
    return method.record_array(part) if method else None


def record_table(
    key: str, lines: Sequence[RecordLine], alone: LeaveOneOutCandidates | None, unit_noun: str = ""
) -> DisplayTable:
    """Return the records with their risk by a measure and the variables that drive it; with a ``unit_noun`` units too.

    ``alone`` is of the lines of records, in their order.
    """
    columns, rows, r = record_risk_columns(key, unit_noun), list[tuple[str, ...]](), 0
    for line in lines:
        driver = "" if alone is None or line.is_unit else driver_text(alone.driver(r))
        r += not line.is_unit
        cells = record_cells(line, driver)
        rows.append(tuple(cells[column.name] for column in columns))
    return DisplayTable(columns, rows)


def record_values_table(lines: Sequence[RecordLine], values: Values) -> DisplayTable:
    """Return the confidential values of records."""
    names = list(values[0]) if values else []
    rows = [[str(line.record), *(str(own[name]) for name in names)] for line, own in zip(lines, values, strict=True)]
    return table_from_titles(["record", *names], rows, right=(0,), title="Values (confidential)")


def driver_text(driver: RiskDriver | None) -> str:
    """Return the variable that drives the risk and what would match without it: ``price: else 12 match``; a dash for
    none.
    """
    if driver is None:
        return "-"
    without = f"{driver.without:,.0f}" if driver.without >= WHOLE_FROM else number(driver.without)
    return f"{replace_unprintable(driver.variable)}: else {without} match"


def column_legend(key: str, *, unique: bool, own: bool, drivers: bool = True, unit_noun: str = "") -> str:
    """Return the meaning of the columns for a risk measure, a line for each."""
    method = method_by_key(key)
    meaning = (method and method.record_meaning) or "that the record is disclosed"
    one = singular_noun(unit_noun)
    said = [] if not unit_noun else [
        f"{one}: its number in the order of the file, from 1; its records stand below it",
        f"probability of a {one}: the larger of being found by all its records together and by one of them; its matches are {unit_noun}",
    ]  # fmt: skip
    said += ["record: row of the confidential table, from 1", f"probability: {meaning}"]
    if _record_array(key, "best_hit") is not None:
        said[-1] += "; the larger of matching by all that is known and by the best choice of it"
    if unique:
        said.append("only match: share of the datasets in which the record's own is the one match")
    before, candidates = _record_array(key, "prior"), _record_array(key, "candidates")
    if before is not None:
        said.append(f"before: {before.meaning}; times as likely: the one over the other")
    if drivers or candidates is None:
        said.append(
            "matches: how many released records fit what is known, of which an intruder picks one; narrowed most by: the variable without which most would match"
        )
    else:
        said.append(f"{candidates.unit or 'matches'}: {candidates.meaning}")
    if own:
        said.append("confidential: the probability if the confidential data themselves were released")
    return "\n".join(said)


def unit_column_facts(noun: str) -> list[tuple[str, str]]:
    """Return what the columns of units mean, by their titles; ``noun`` is what the units are, in the plural."""
    one = singular_noun(noun)
    return [
        ("probability", f"that an intruder picks the right {one}: by all records together or by one, the larger"),
        (f"matching {noun}", f"released {noun} that fit what he compares, on average; he picks one of them"),
        ("by one record", f"the probability if he knows one record of the {one} alone, the most exposed"),
    ]


def record_objects(
    lines: Sequence[RecordLine], alone: LeaveOneOutCandidates | None, values: Values | None
) -> list[dict[str, Any]]:
    """Return the objects that ``--json`` writes about records, with drivers where records are matched."""
    found = []
    for r, line in enumerate(line for line in lines if not line.is_unit):
        written: dict[str, Any] = asdict(line)
        del written["members"], written["alone"]
        if line.unit is None:
            del written["unit"]
        if isnan(line.probability):
            written["probability"] = None
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


def unit_objects(lines: Sequence[RecordLine]) -> list[dict[str, Any]]:
    """Return the objects that ``--json`` writes about units: number, records, probability and candidates."""
    found = []
    for line in lines:
        if line.is_unit:
            candidates = {} if isnan(line.candidates) else {"candidates": line.candidates}
            records = [one.record for one in lines if one.unit == line.unit and not one.is_unit]
            found.append({"unit": line.unit, "records": records, "probability": line.probability, **candidates})
    return found
