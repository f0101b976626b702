"""Ranking of the records most at risk by a measure, made once when a run ends, for screens that page through it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.arrays import iterate_ahead
from sfumato.engine.data.long_arrays import is_long, new_column, release_pages
from sfumato.engine.execution.record_risk import (
    RISK_PARTS,
    RecordRisk,
    arrays_by_part,
    average_record_risk,
    has_record_risk,
)
from sfumato.engine.methods.registry import method_by_key

from ..errors import DamagedTable
from .artefacts import arrays_from_table, read_record_values
from .tables import TableStore

MAX_RANKED = 50_000
"""Number of records that are ranked: the others are less at risk than all of these. Smaller tables are ranked when they are shown."""
RecordArrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class RecordRanking:
    """The records most at risk by a measure, ranked.

    records: rows from 0, most at risk first, (r,)
    risk: their risk
    confidential_risk: their risk in the confidential data scored themselves, None if not scored
    n_with_risk: how many of all records have a risk; r is smaller where only the first are ranked
    total: number of all records
    """

    records: NDArray[np.int64]
    risk: RecordRisk
    confidential_risk: RecordRisk | None
    n_with_risk: int
    total: int

    def __len__(self) -> int:
        return len(self.records)

    def take_first(self, max_records: int) -> RecordRanking:
        """Return the ranking of the ``max_records`` records most at risk."""
        places = self.risk.ranking(max_records)
        own = None if self.confidential_risk is None else self.confidential_risk.select(places)
        return replace(self, records=self.records[places], risk=self.risk.select(places), confidential_risk=own)

    def concatenate(self, other: RecordRanking) -> RecordRanking:
        """Return the records of both, unranked; ``other`` has later rows of the same table."""
        own = (
            None
            if self.confidential_risk is None or other.confidential_risk is None
            else _concatenate_risks(self.confidential_risk, other.confidential_risk)
        )
        records = np.concatenate([self.records, other.records])
        return RecordRanking(
            records,
            _concatenate_risks(self.risk, other.risk),
            own,
            self.n_with_risk + other.n_with_risk,
            self.total + other.total,
        )


def _concatenate_risks(one: RecordRisk, other: RecordRisk) -> RecordRisk:
    """Return the risks of both tables' records, one after the other."""

    def join_arrays(name: str) -> Any:
        """Return one part of both risks, one after the other; None where they lack it."""
        values = getattr(one, name), getattr(other, name)
        return None if values[0] is None else np.concatenate(values)

    return replace(one, **{name: join_arrays(name) for name in RISK_PARTS})


def read_risk_arrays(tables: TableStore, method: str, sha256: str, rows: Sequence[int] | None = None) -> RecordArrays:
    """Read the values that a measure left of each record, or of some ``rows``. Raises DamagedTable."""
    return _add_risk_parts(method, read_record_values(tables, sha256, rows))


def read_average_risk(tables: TableStore, method: str, hashes: Sequence[str]) -> RecordRisk:
    """Read the risk of every record, (n,), on average over the tables with these hashes: where it is long, a row group at a
    time. Raises DamagedTable.
    """
    n = tables.count_table_records(hashes[0]) if hashes else 0
    if not is_long(n):
        return average_record_risk([read_risk_arrays(tables, method, sha256) for sha256 in hashes])
    found: dict[str, NDArray[np.float64]] = {}
    for first, parts in _aligned_row_groups(tables, hashes):
        risk = average_record_risk([_add_risk_parts(method, part) for part in parts])
        for name in RISK_PARTS:
            if (values := getattr(risk, name)) is not None:
                found.setdefault(name, new_column(n, values.dtype))[first : first + len(risk)] = values
        release_pages()
    return RecordRisk(datasets=len(hashes), **{name: found.get(name) for name in RISK_PARTS})  # type: ignore[arg-type]


def iterate_risk_arrays(tables: TableStore, method: str, hashes: Sequence[str]) -> Iterator[list[RecordArrays]]:
    """Yield the values that a measure left of each record in some tables of the same records, one row group at a time.

    Raises DamagedTable, also where the tables are not of the same records.
    """
    for _, parts in _aligned_row_groups(tables, hashes):
        yield [_add_risk_parts(method, part) for part in parts]


def has_risk_columns(tables: TableStore, method: str, sha256: str) -> bool:
    """Return whether a stored table has risks of records. Raises DamagedTable."""
    names = {name: np.empty(0) for name in tables.column_names(sha256)}
    return has_record_risk(list(_add_risk_parts(method, names)))


def _add_risk_parts(method: str, arrays: RecordArrays) -> RecordArrays:
    """Return the arrays also under the names of the parts of a risk that the method declares."""
    declared = method_by_key(method)
    return arrays_by_part(arrays, declared.measurement.per_record if declared else ())


def rank_stored_records(
    tables: TableStore, method: str, hashes: Sequence[str], confidential: str | None, max_records: int = MAX_RANKED
) -> RecordRanking:
    """Rank the ``max_records`` records most at risk, on average over the tables with these hashes.

    Raises DamagedTable, also where the tables are not of the same records.
    """
    chosen: RecordRanking | None = None
    # A row group at a time: the tables of millions of records do not fit in memory together.
    asked = [*hashes, *([] if confidential is None else [confidential])]
    for first, parts in iterate_ahead(_aligned_row_groups(tables, asked)):
        arrays = [_add_risk_parts(method, part) for part in parts]
        risk = average_record_risk(arrays[: len(hashes)])
        own = None if confidential is None else average_record_risk(arrays[len(hashes) :])
        rows = np.arange(first, first + len(risk), dtype=np.int64)
        group = RecordRanking(rows, risk, own, int(risk.is_examined.sum()), len(risk)).take_first(max_records)
        chosen = group if chosen is None else chosen.concatenate(group).take_first(max_records)
    if chosen is None:
        raise DamagedTable("a table with values of single records has no records")
    return chosen


def _aligned_row_groups(tables: TableStore, hashes: Sequence[str]) -> Iterator[tuple[int, list[RecordArrays]]]:
    """Yield the number of the first row and the arrays of these tables, one row group at a time."""
    first = 0
    try:
        for group in zip(*(tables.iterate_row_groups(sha256) for sha256 in hashes), strict=True):
            rows = {len(one) for one in group}
            if len(rows) != 1:
                raise ValueError
            yield first, [arrays_from_table(one) for one in group]
            first += rows.pop()
    except ValueError:
        raise DamagedTable("two tables with values of single records are not of the same records") from None


def write_ranking(tables: TableStore, ranking: RecordRanking) -> str:
    """Store a ranking exactly, and return the hash of the table."""
    arrays = {
        "records": ranking.records,
        "counts": np.array([ranking.n_with_risk, ranking.total, ranking.risk.datasets]),
    }
    for name, risk in (("risk", ranking.risk), ("own", ranking.confidential_risk)):
        for part in RISK_PARTS if risk is not None else ():
            if (values := getattr(risk, part)) is not None:
                arrays[f"{name}.{part}"] = values
    return tables.write_arrays(arrays)


def read_ranking(tables: TableStore, sha256: str) -> RecordRanking:
    """Read the ranking that ``write_ranking`` stored. Raises DamagedTable, also for other contents."""
    arrays = tables.read_arrays(sha256)
    try:
        asked, total, datasets = (int(count) for count in arrays["counts"])
        records = arrays["records"]
        parts = {name: values for name, values in arrays.items() if "." in name}
        # The hash may be that of another table, which the database names in its place.
        right = records.dtype == np.int64 and len(records) <= asked <= total and datasets > 0
        right &= not len(records) or (records.min() >= 0 and records.max() < total)
        if not right or any(values.shape != records.shape or values.dtype != np.float64 for values in parts.values()):
            raise ValueError
        risk = _risk_from_arrays(parts, "risk", datasets)
        return RecordRanking(
            records, risk, _risk_from_arrays(parts, "own", 1) if "own.probability" in parts else None, asked, total
        )
    except (KeyError, ValueError, TypeError):
        raise DamagedTable(f"the table {sha256[:8]} does not hold a ranking of records") from None


def _risk_from_arrays(parts: RecordArrays, name: str, datasets: int) -> RecordRisk:
    """Return the risk whose parts are stored under a name."""
    needed = {part: parts[f"{name}.{part}"] for part in RISK_PARTS[:2]}
    others = {part: parts.get(f"{name}.{part}") for part in RISK_PARTS[2:]}
    return RecordRisk(**needed, **others, datasets=datasets)  # type: ignore[arg-type]
