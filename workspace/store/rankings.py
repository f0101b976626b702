"""The records most at risk by a measure, ranked once when a run ends: what a screen pages through, however long the table is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.execution.record_risk import RecordRisk, arrays_by_part, average_record_risk, has_record_risk
from sfumato.engine.methods.registry import method_by_key

from ..errors import DamagedTable
from .artefacts import arrays_of, read_records
from .tables import Tables

MOST_RANKED = 50_000
"""How many records are ranked: the others are less at risk than all of these. Tables that have no more are ranked when they are shown."""
Arrays = Mapping[str, NDArray[Any]]
_RISK = ("probability", "candidates", "unique", "prior")


@dataclass(frozen=True, eq=False)
class Ranking:
    """Records (r,), rows from 0, most at risk first, with their risk, and their ``own`` in the confidential data scored themselves.

    ``asked`` of all ``total`` records have a risk; r is fewer where only the first are ranked.
    """

    records: NDArray[np.int64]
    risk: RecordRisk
    own: RecordRisk | None
    asked: int
    total: int

    def __len__(self) -> int:
        return len(self.records)

    def first(self, most: int) -> Ranking:
        places = self.risk.ranking(most)
        own = None if self.own is None else self.own.select(places)
        return replace(self, records=self.records[places], risk=self.risk.select(places), own=own)

    def with_later(self, other: Ranking) -> Ranking:
        """Both, not ranked: ``other`` is of later rows of the same table."""
        own = None if self.own is None or other.own is None else _joined(self.own, other.own)
        records = np.concatenate([self.records, other.records])
        return Ranking(records, _joined(self.risk, other.risk), own, self.asked + other.asked, self.total + other.total)


def _joined(one: RecordRisk, other: RecordRisk) -> RecordRisk:
    def both(name: str) -> Any:
        values = getattr(one, name), getattr(other, name)
        return None if values[0] is None else np.concatenate(values)

    return RecordRisk(both("probability"), both("candidates"), both("unique"), one.datasets, both("prior"))


def record_arrays(tables: Tables, method: str, sha256: str, rows: Sequence[int] | None = None) -> Arrays:
    """What a measure left of every record, or of some ``rows``, under the names of the parts of a risk too. Raises DamagedTable."""
    return _with_parts(method, read_records(tables, sha256, rows))


def holds_risk(tables: Tables, method: str, sha256: str) -> bool:
    """Whether a stored table says of records how much they are at risk; only its end is read. Raises DamagedTable."""
    names = {name: np.empty(0) for name in tables.column_names(sha256)}
    return has_record_risk(list(_with_parts(method, names)))


def _with_parts(method: str, arrays: Arrays) -> Arrays:
    declared = method_by_key(method)
    return arrays_by_part(arrays, declared.measurement.per_record if declared else ())


def rank(
    tables: Tables, method: str, together: Sequence[str], confidential: str | None, most: int = MOST_RANKED
) -> Ranking:
    """The ``most`` records most at risk, on average over the tables with these hashes, read a row group at a time.

    Raises DamagedTable, also where the tables are not of the same records.
    """
    chosen: Ranking | None = None
    for first, parts in _groups(tables, [*together, *([] if confidential is None else [confidential])]):
        arrays = [_with_parts(method, part) for part in parts]
        risk = average_record_risk(arrays[: len(together)])
        own = None if confidential is None else average_record_risk(arrays[len(together) :])
        rows = np.arange(first, first + len(risk), dtype=np.int64)
        group = Ranking(rows, risk, own, int(risk.is_examined.sum()), len(risk)).first(most)
        chosen = group if chosen is None else chosen.with_later(group).first(most)
    if chosen is None:
        raise DamagedTable("a table with values of single records has no records")
    return chosen


def _groups(tables: Tables, hashes: Sequence[str]) -> Iterator[tuple[int, list[Arrays]]]:
    """The arrays of these tables for the same rows, a row group at a time, and the first of the rows."""
    first = 0
    try:
        for group in zip(*(tables.groups(sha256) for sha256 in hashes), strict=True):
            rows = {len(one) for one in group}
            if len(rows) != 1:
                raise ValueError
            yield first, [arrays_of(one) for one in group]
            first += rows.pop()
    except ValueError:
        raise DamagedTable("two tables with values of single records are not of the same records") from None


def write_ranking(tables: Tables, ranking: Ranking) -> str:
    """Store a ranking exactly; returns the hash of the table."""
    arrays = {"records": ranking.records, "counts": np.array([ranking.asked, ranking.total, ranking.risk.datasets])}
    for name, risk in (("risk", ranking.risk), ("own", ranking.own)):
        for part in _RISK if risk is not None else ():
            if (values := getattr(risk, part)) is not None:
                arrays[f"{name}.{part}"] = values
    return tables.write_arrays(arrays)


def read_ranking(tables: Tables, sha256: str) -> Ranking:
    """The ranking that ``write_ranking`` stored. Raises DamagedTable, also where it is none."""
    arrays = tables.read_arrays(sha256)
    try:
        asked, total, datasets = (int(count) for count in arrays["counts"])
        records = arrays["records"]
        parts = {name: values for name, values in arrays.items() if "." in name}
        right = records.dtype == np.int64 and len(records) <= asked <= total and datasets > 0
        right &= not len(records) or (records.min() >= 0 and records.max() < total)
        if not right or any(values.shape != records.shape or values.dtype != np.float64 for values in parts.values()):
            raise ValueError
        risk = _risk(parts, "risk", datasets)
        return Ranking(records, risk, _risk(parts, "own", 1) if "own.probability" in parts else None, asked, total)
    except (KeyError, ValueError, TypeError):
        raise DamagedTable(f"the table {sha256[:8]} does not hold a ranking of records") from None


def _risk(parts: Arrays, name: str, datasets: int) -> RecordRisk:
    unique, prior = parts.get(f"{name}.unique"), parts.get(f"{name}.prior")
    return RecordRisk(parts[f"{name}.probability"], parts[f"{name}.candidates"], unique, datasets, prior)
