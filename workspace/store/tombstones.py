"""Tombstones: records of released runs that were deleted, so that the gate still counts their releases.

A tombstone holds what the run spent of a privacy budget, the released datasets, which are public anyway, and of the
confidential records HMACs alone. The row of the audit log on the deletion holds its hash, and that row is sealed.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..audit import AuditAct, parse_details
from ..errors import DamagedRecord, DamagedTable, StrangeFile
from .records import check_integers, check_texts, raise_damaged_record
from .workspace import Workspace

TOMBSTONE_KEY = "tombstone"
"""The detail of the row of a deleted run that has the hash of its tombstone."""


@dataclass(frozen=True, slots=True)
class RecordHmacs:
    """Variables behind a stored column of HMACs of the confidential records; the HMACs themselves lie beside it.

    names: variables that they are of
    kinds: kinds of these
    identifies: whether they are one declared identifier
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    identifies: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredRiskTable:
    """A stored table with the risk of every record by one measure.

    key: key of the measure
    params: its parameters
    datasets: number of released datasets
    table: hash of the table
    """

    key: str
    params: str
    datasets: int
    table: str


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Record of a released run that was deleted.

    tables: hashes of its datasets as the run stored them
    datasets: hashes of their remaining parts: the released columns, and no level that no released record has
    schema: schema of these, as JSON
    marks: HMACs of the confidential records by the sealing key
    key: fingerprint of the sealing key
    epsilon: cost of the noise of its ``steps`` with a privacy account
    covered: whether a proof covers the whole release
    manifests: hashes of the internal manifests that were written
    recode: public rules as a recipe writes them
    delta: chance that the promise of epsilon fails; None in tombstones of earlier versions
    population: population that its project was of when it was released; empty in tombstones of earlier versions
    surrogate_keys, surrogate_scope: identifiers that were released as keys, and the scope in which these join; earlier
        versions released none
    run_key: fingerprint of the key of the run, by which surrogate keys are made
    printed_tables: number of tables that it printed; -1 in tombstones of earlier versions, which do not tell
    """

    run_id: int
    dataset_id: int
    source_sha256: str
    table_sha256: str
    records: int
    origin: str
    schema: str
    kept: tuple[str, ...]
    replaced: tuple[str, ...]
    generalised: tuple[str, ...]
    linked: bool
    shuffled: bool
    exact: bool
    model: str
    tables: tuple[str, ...]
    datasets: tuple[str, ...]
    classes: str
    marks_table: str
    marks: tuple[RecordHmacs, ...]
    key: str
    epsilon: float
    steps: int
    covered: bool
    risks: tuple[MeasuredRiskTable, ...]
    manifests: tuple[str, ...]
    recode: Mapping[str, Any] = field(default_factory=dict)
    delta: float | None = None
    population: str = ""
    surrogate_keys: tuple[str, ...] = ()
    surrogate_scope: str = ""
    run_key: str = ""
    printed_tables: int = -1

    @property
    def json_text(self) -> str:
        """Return the tombstone as JSON, as the database keeps it."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def table_hashes(self) -> tuple[str, ...]:
        """Return the hashes of all tables that the tombstone needs."""
        named = (*self.datasets, self.classes, self.marks_table, *(one.table for one in self.risks))
        return tuple(dict.fromkeys(one for one in named if one))


def tombstone_hash(content: str) -> str:
    """Return the SHA-256 of a tombstone's JSON, which the audit log keeps."""
    return hashlib.sha256(content.encode()).hexdigest()


def store_tombstone(connection: sqlite3.Connection, tombstone: Tombstone) -> str:
    """Store a tombstone, in the transaction that deletes the run, and return its hash for the audit log."""
    content = tombstone.json_text
    connection.execute("INSERT INTO tombstone VALUES (?, ?)", (tombstone.run_id, content))
    connection.executemany(
        "INSERT INTO tombstone_table VALUES (?, ?)", [(tombstone.run_id, sha256) for sha256 in tombstone.table_hashes]
    )
    return tombstone_hash(content)


def released_run_manifests(connection: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    """Return the hashes of the manifests of each released run, oldest first, by the run's number."""
    rows = connection.execute(
        "SELECT subject, details FROM audit WHERE act = ? ORDER BY number", (AuditAct.RUN_RELEASED.value,)
    )
    found: dict[int, tuple[str, ...]] = {}
    for row in rows:
        number = row["subject"].removeprefix("run ")
        if number.isdecimal():
            manifest = str(parse_details(row["details"]).get("manifest_sha256", ""))
            found[int(number)] = (*found.get(int(number), ()), manifest)
    return found


def deleted_run_tombstones(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the hash of each deleted run's tombstone, by the run's number; empty where none was left."""
    rows = connection.execute("SELECT subject, details FROM audit WHERE act = ?", (AuditAct.RUN_DELETED.value,))
    numbers = ((row["subject"].removeprefix("run "), parse_details(row["details"])) for row in rows)
    return {int(number): str(details.get(TOMBSTONE_KEY) or "") for number, details in numbers if number.isdecimal()}


def read_tombstone(workspace: Workspace, run_id: int, sha256: str) -> Tombstone:
    """Return the tombstone of a run, which must have this hash. Raises DamagedRecord where it is missing or was
    changed.
    """
    row = workspace.connection.execute("SELECT content FROM tombstone WHERE run_id = ?", (run_id,)).fetchone()
    if row is None or not isinstance(row[0], str) or tombstone_hash(row[0]) != sha256:
        raise DamagedRecord(f"the tombstone of run {run_id}")
    found = _tombstone_from_table(json.loads(row[0]))
    # Whoever may write the database can exchange two whole tombstones.
    if found.run_id != run_id:
        raise DamagedRecord(f"the tombstone of run {run_id}")
    return found


@raise_damaged_record("a tombstone")
def _tombstone_from_table(table: Mapping[str, Any]) -> Tombstone:
    """Return the tombstone of a parsed JSON object. Raises DamagedRecord."""
    lists = {name: tuple(value) for name, value in table.items() if isinstance(value, list)}
    parts = {
        # tombstones of earlier versions mark no identifier
        "marks": tuple(
            RecordHmacs(tuple(one["names"]), tuple(one["kinds"]), bool(one.get("identifies", False)))
            for one in table["marks"]
        ),
        "risks": tuple(MeasuredRiskTable(**one) for one in table["risks"]),
    }
    found = Tombstone(**{**table, **lists, **parts})
    check_texts(
        found.source_sha256, found.table_sha256, found.schema, found.model, found.population, found.surrogate_scope, found.run_key,
        *found.surrogate_keys, *found.tables, *found.table_hashes
    )  # fmt: skip
    check_integers(found.run_id, found.dataset_id, found.records, found.steps, found.printed_tables)
    return found


def tombstone_fault(workspace: Workspace, run_id: int, sha256: str) -> str:
    """Describe what is wrong with a deleted run's tombstone; empty where nothing is."""
    row = workspace.connection.execute("SELECT content FROM tombstone WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        return f"the tombstone of run {run_id}, which was released and deleted, is missing"
    try:
        for name in read_tombstone(workspace, run_id, sha256).table_hashes:
            workspace.tables.verify_table(name)
    except DamagedRecord:
        return f"the tombstone of run {run_id}, which was released and deleted, was changed"
    except (DamagedTable, StrangeFile) as error:
        return f"the tombstone of run {run_id}, which was released and deleted, is not whole: {error}"
    return ""


def tombstone_faults(workspace: Workspace) -> list[str]:
    """Describe what is wrong with the tombstones of a workspace, and which ones Sfumato did not write."""
    deleted = deleted_run_tombstones(workspace.connection)
    there = [int(row[0]) for row in workspace.connection.execute("SELECT run_id FROM tombstone ORDER BY run_id")]
    found = [tombstone_fault(workspace, number, sha256) for number, sha256 in sorted(deleted.items()) if sha256]
    found += [f"the tombstone of run {number} was added by other means" for number in there if not deleted.get(number)]
    return [one for one in found if one]


def deleted_without_tombstone(connection: sqlite3.Connection) -> list[int]:
    """Return the runs that were released and then deleted by a version that left no tombstone."""
    released = released_run_manifests(connection)
    return sorted(
        number for number, sha256 in deleted_run_tombstones(connection).items() if number in released and not sha256
    )
