"""Tombstones: what stays of a released run that is deleted, so that the gate still counts its release.

A tombstone holds what the run spent of a privacy budget, the released datasets, which have left the building anyway, and of the
confidential records HMACs alone. The row of the audit log that says that the run was deleted holds its hash, and that row is sealed.
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
from .records import check_texts, check_whole, record
from .workspace import Workspace

IN_AUDIT = "tombstone"
"""The detail of the row of a deleted run that has the hash of its tombstone."""


@dataclass(frozen=True, slots=True)
class Marks:
    """A column of HMACs of the confidential records, (n,): of these variables, which have these kinds.

    identifies: whether they are one declared identifier
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    identifies: bool = False


@dataclass(frozen=True, slots=True)
class RiskTable:
    """The risk of every record by one measure, over so many released datasets: the hash of its table."""

    key: str
    params: str
    datasets: int
    table: str


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A released run that was deleted.

    ``tables`` are the hashes of its datasets as the run stored them, ``datasets`` of what is left of these: the released columns, and no
    level that no released record has. ``schema`` is theirs, as JSON. ``marks`` have the HMACs of the confidential records by the sealing key with
    fingerprint ``key``. ``epsilon`` is what the noise of its ``steps`` with a privacy account costs, and ``covered`` says whether a
    proof covers the whole release. ``manifests`` are the hashes of the internal manifests that were written, ``recode`` the public rules as a recipe writes them.
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
    marks: tuple[Marks, ...]
    key: str
    epsilon: float
    steps: int
    covered: bool
    risks: tuple[RiskTable, ...]
    manifests: tuple[str, ...]
    recode: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """The tombstone as the database keeps it."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def files(self) -> tuple[str, ...]:
        """The hashes of all tables that it needs."""
        named = (*self.datasets, self.classes, self.marks_table, *(one.table for one in self.risks))
        return tuple(dict.fromkeys(one for one in named if one))


def hash_of(content: str) -> str:
    """What the audit log keeps of a tombstone."""
    return hashlib.sha256(content.encode()).hexdigest()


def keep(connection: sqlite3.Connection, tombstone: Tombstone) -> str:
    """Write a tombstone down, in the transaction that deletes the run; returns its hash for the audit log."""
    content = tombstone.content
    connection.execute("INSERT INTO tombstone VALUES (?, ?)", (tombstone.run_id, content))
    connection.executemany(
        "INSERT INTO tombstone_table VALUES (?, ?)", [(tombstone.run_id, sha256) for sha256 in tombstone.files]
    )
    return hash_of(content)


def released_runs(connection: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    """The runs that were released from this workspace, each with the hashes of the manifests that were written, oldest first."""
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


def deleted_runs(connection: sqlite3.Connection) -> dict[int, str]:
    """The runs that were deleted, each with the hash of its tombstone; empty where none was left."""
    rows = connection.execute("SELECT subject, details FROM audit WHERE act = ?", (AuditAct.RUN_DELETED.value,))
    numbers = ((row["subject"].removeprefix("run "), parse_details(row["details"])) for row in rows)
    return {int(number): str(details.get(IN_AUDIT) or "") for number, details in numbers if number.isdecimal()}


def read(workspace: Workspace, run_id: int, sha256: str) -> Tombstone:
    """The tombstone of a run whose deletion left this hash. Raises DamagedRecord where it is missing or was changed."""
    row = workspace.connection.execute("SELECT content FROM tombstone WHERE run_id = ?", (run_id,)).fetchone()
    if row is None or not isinstance(row[0], str) or hash_of(row[0]) != sha256:
        raise DamagedRecord(f"the tombstone of run {run_id}")
    found = _tombstone(json.loads(row[0]))
    if found.run_id != run_id:
        raise DamagedRecord(f"the tombstone of run {run_id}")
    return found


@record("a tombstone")
def _tombstone(table: Mapping[str, Any]) -> Tombstone:
    lists = {name: tuple(value) for name, value in table.items() if isinstance(value, list)}
    parts = {
        # tombstones of earlier versions mark no identifier
        "marks": tuple(
            Marks(tuple(one["names"]), tuple(one["kinds"]), bool(one.get("identifies", False)))
            for one in table["marks"]
        ),
        "risks": tuple(RiskTable(**one) for one in table["risks"]),
    }
    found = Tombstone(**{**table, **lists, **parts})
    check_texts(found.source_sha256, found.table_sha256, found.schema, found.model, *found.tables, *found.files)
    check_whole(found.run_id, found.dataset_id, found.records, found.steps)
    return found


def fault(workspace: Workspace, run_id: int, sha256: str) -> str:
    """What is wrong with the tombstone of a deleted run, in words; empty where nothing is."""
    row = workspace.connection.execute("SELECT content FROM tombstone WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        return f"the tombstone of run {run_id}, which was released and deleted, is missing"
    try:
        for name in read(workspace, run_id, sha256).files:
            workspace.tables.verify(name)
    except DamagedRecord:
        return f"the tombstone of run {run_id}, which was released and deleted, was changed"
    except (DamagedTable, StrangeFile) as error:
        return f"the tombstone of run {run_id}, which was released and deleted, is not whole: {error}"
    return ""


def faults(workspace: Workspace) -> list[str]:
    """What is wrong with the tombstones of a workspace, and which were added by other means."""
    deleted = deleted_runs(workspace.connection)
    there = [int(row[0]) for row in workspace.connection.execute("SELECT run_id FROM tombstone ORDER BY run_id")]
    found = [fault(workspace, number, sha256) for number, sha256 in sorted(deleted.items()) if sha256]
    found += [f"the tombstone of run {number} was added by other means" for number in there if not deleted.get(number)]
    return [one for one in found if one]


def without_tombstone(connection: sqlite3.Connection) -> list[int]:
    """The runs that were released, and then deleted by a version that left no tombstone."""
    released = released_runs(connection)
    return sorted(number for number, sha256 in deleted_runs(connection).items() if number in released and not sha256)
