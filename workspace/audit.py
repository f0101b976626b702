"""The audit log: a row for every act that changes a project, each bound to the one before it by its hash.

A row's hash covers its number, time, act, subject, details and the hash of the row before, so that no row can be
changed, removed, inserted or moved without the chain showing where. The end of the chain stands in two more
places, ``audit_head`` and the file ``audit.head``, so that rows missing at the end are noticed too.

A hash anybody can compute. So each row has a seal, an HMAC of its hash by the workspace's sealing key: a chain that
was forged without that key does not pass. Rows of versions that had no seals are covered by the first seal after them. Whoever
may write the database and its head can still remove the last rows with all that they speak of, as a copy of yesterday
does. So the head is kept outside the workspace too (``store/heads.py``).
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from .errors import BrokenHistory, DamagedRecord, StrangeFile
from .plain_files import read_plain

HEAD_FILE = "audit.head"
MOST_HEAD_BYTES = 1 << 12
REPAIR = "rows were added or seals removed by other means. Nothing is written; see sfumato audit verify"
RUNS_BEFORE_DETAIL = "runs_before"
"""What the first row with a seal says: the highest number of a run that was there already, and has none."""
SEAL_DETAIL = "seal"
"""The detail by which a row shows that its workspace sealed what it did."""


class AuditAct(StrEnum):
    """An act that changes a workspace."""

    WORKSPACE_MADE = "workspace made"
    WORKSPACE_MIGRATED = "workspace migrated"
    WORKSPACE_ADOPTED = "workspace adopted"
    PROJECT_MADE = "project made"
    PROJECT_DELETED = "project deleted"
    POPULATION_STATED = "population stated"
    POPULATION_BEGUN = "population begun"
    DATASET_IMPORTED = "dataset imported"
    PLAN_EDITED = "plan edited"
    SEARCH_ENTERED = "search entered"
    RUN_ENTERED = "run entered"
    RUN_CANCELLED = "run cancelled"
    RUN_INTERRUPTED = "run interrupted"
    RUN_RESUMED = "run resumed"
    RUN_FINISHED = "run finished"
    RUN_FAILED = "run failed"
    RUN_DELETED = "run deleted"
    RUN_NAMED = "run named"
    RELEASE_BEGUN = "release begun"
    RUN_RELEASED = "run released"
    RELEASE_UNDONE = "release undone"
    RELEASE_REQUESTED = "release requested"
    REPORT_WRITTEN = "report written"
    FILES_REMOVED = "files removed"
    KEY_MADE = "key made"
    KEY_RESTORED = "key restored"
    KEY_EXPORTED = "key exported"
    SEALS_BEGUN = "seals begun"
    ROLLBACK_ACCEPTED = "rollback accepted"


STOPPING_ACTS = frozenset({AuditAct.RUN_FAILED.value, AuditAct.RUN_INTERRUPTED.value, AuditAct.RUN_CANCELLED.value})
"""What may be entered without a seal, where the key is missing: a run must be stopped all the same."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One act as a row of the audit log. Its fields are the keys of its JSON.

    number: its number, from 1
    time: when, ISO 8601 in UTC
    act: what was done
    subject: to what
    details: JSON without values of the data
    previous: hash of the row before
    hash: hash of this row
    """

    number: int
    time: str
    act: str
    subject: str
    details: str
    previous: str
    hash: str

    def compute_hash(self) -> str:
        """Return the SHA-256 that this row must have."""
        content = [self.number, self.time, self.act, self.subject, self.details, self.previous]
        return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()

    @property
    def details_table(self) -> dict[str, Any]:
        """Return the details as a table; empty where they hold none."""
        return parse_details(self.details)


def parse_details(details: str) -> dict[str, Any]:
    """Return the details of a row as a table; empty where they hold no table."""
    with contextlib.suppress(ValueError, TypeError):
        if isinstance(table := json.loads(details), dict):
            return table
    return {}


@dataclass(frozen=True, slots=True)
class AuditHead:
    """The last row's number and hash; number 0 and no hash for an empty log."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


def append_act(
    connection: sqlite3.Connection, act: AuditAct, subject: str, **details: str | int | float | None
) -> None:
    """Write an act to the audit log, in the transaction that does it. The details must not hold values of the data."""
    assert connection.in_transaction
    head = read_head(connection)
    number, time = head.number + 1, datetime.now(UTC).isoformat(timespec="microseconds")
    text = json.dumps({"user": user(), **details}, sort_keys=True)
    row = AuditRow(number, time, act.value, subject, text, head.hash, "")
    hashed = row.compute_hash()
    connection.execute(
        "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", (number, time, act.value, subject, text, head.hash, hashed)
    )
    connection.execute("UPDATE audit_head SET number = ?, hash = ?", (number, hashed))


def user() -> str:
    """Return the account that this process works under."""
    return account_name(os.geteuid()) if hasattr(os, "geteuid") else ""


@lru_cache(maxsize=64)
def account_name(uid: int) -> str:
    """Return the name of an account of this machine; its number where it has none."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)


def read_head(connection: sqlite3.Connection) -> AuditHead:
    """Return the last row according to the database."""
    row = connection.execute("SELECT number, hash FROM audit_head").fetchone()
    if row is None:
        return AuditHead(0, "")
    if not isinstance(row[0], int) or not isinstance(row[1], str):
        raise DamagedRecord("the head of the audit log")
    return AuditHead(row[0], row[1])


def audit_rows(connection: sqlite3.Connection) -> list[AuditRow]:
    rows = connection.execute("SELECT number, time, act, subject, details, previous, hash FROM audit ORDER BY number")
    return [AuditRow(*row) for row in rows]


def seal_rows_after(connection: sqlite3.Connection, after: int, key: bytes, name: str) -> None:
    """Seal the rows after this number, in the transaction that adds them; ``name`` tells which key it was."""
    rows = connection.execute("SELECT number, hash FROM audit WHERE number > ?", (after,)).fetchall()
    connection.executemany(
        "INSERT INTO audit_seal VALUES (?, ?, ?)", [(n, name, _hmac_of_row(key, h)) for n, h in rows]
    )


def check_rows_extend(connection: sqlite3.Connection, before: AuditHead, keys: Mapping[str, bytes]) -> None:
    """Raise BrokenHistory unless the rows after ``before`` are those that this transaction added, and ``before`` has its seal.

    Only a stop may lack one. Nothing else gets a seal, so no one can seal a row of their own.
    """
    rows = connection.execute(
        "SELECT number, hash, act FROM audit WHERE number >= ? ORDER BY number", (before.number,)
    ).fetchall()
    added = read_head(connection).number - before.number
    if (
        not rows
        or [row[0] for row in rows] != list(range(before.number, before.number + added + 1))
        or rows[0][1] != before.hash
    ):
        raise BrokenHistory(f"the audit log does not end at row {before.number}, its head: {REPAIR}")
    sealed = connection.execute("SELECT key, seal FROM audit_seal WHERE number = ?", (before.number,)).fetchone()
    if sealed is None and rows[0][2] in STOPPING_ACTS:
        return
    key = None if sealed is None else keys.get(sealed[0])
    if key is None or not hmac.compare_digest(_hmac_of_row(key, before.hash).encode(), str(sealed[1]).encode()):
        raise BrokenHistory(f"row {before.number}, the last of the audit log, has no valid seal: {REPAIR}")


def has_only_stops_after(connection: sqlite3.Connection, after: int) -> bool:
    """Return whether only stops of runs were entered after this row."""
    return all(
        row[0] in STOPPING_ACTS for row in connection.execute("SELECT act FROM audit WHERE number > ?", (after,))
    )


def _hmac_of_row(key: bytes, hashed: str) -> str:
    return hmac.digest(key, b"audit row " + hashed.encode(), "sha256").hex()


def read_row_seals(connection: sqlite3.Connection) -> dict[int, tuple[str, str]]:
    """Return the seal of each row that has one, by number: which key, and the HMAC."""
    return {int(row[0]): (row[1], row[2]) for row in connection.execute("SELECT number, key, seal FROM audit_seal")}


def has_sealing_rows(rows: Sequence[AuditRow]) -> bool:
    """Return whether one of these rows was written by a version that seals."""
    return any(row.act == AuditAct.SEALS_BEGUN or SEAL_DETAIL in row.details_table for row in rows)


def _may_seals_begin(rows: Sequence[AuditRow], first: int) -> bool:
    """Return whether seals may begin at row ``first``: where the workspace was made, migrated from a version without, or adopted."""
    if not 0 < first <= len(rows) or RUNS_BEFORE_DETAIL not in rows[first - 1].details_table:
        return False
    row = rows[first - 1]
    if first == 1:
        return row.act == AuditAct.WORKSPACE_MADE
    if rows[first - 2].act == AuditAct.WORKSPACE_ADOPTED:
        return row.act == AuditAct.KEY_MADE
    return row.act in (AuditAct.KEY_MADE, AuditAct.SEALS_BEGUN) and not has_sealing_rows(rows[: first - 1])


@dataclass(frozen=True, slots=True)
class SealFaults:
    """Faults of the seals of a chain.

    wrong: seals that show a change, in words
    lack: seals that are missing although nothing was changed, in words
    """

    wrong: tuple[str, ...] = ()
    lack: tuple[str, ...] = ()


def check_row_seals(
    rows: Sequence[AuditRow], seals: Mapping[int, tuple[str, str]], keys: Mapping[str, bytes]
) -> SealFaults:
    """Compare the rows of a whole chain with their seals. ``keys`` by their names; the first is the one that seals now."""
    first = min(seals, default=0)
    if not _may_seals_begin(rows, first):
        return SealFaults(("the audit log has lost its seals",))
    wrong: list[str] = []
    lack: list[str] = []
    now, since = next(iter(keys)), 0
    for row in rows[first - 1 :]:
        name, seal = seals.get(row.number, ("", ""))
        if not seal:
            (lack if row.act in STOPPING_ACTS else wrong).append(
                f"row {row.number} ({row.act}) has no seal: it was written without the workspace's key"
            )
        elif name not in keys:
            wrong.append(f"row {row.number} is sealed by a key that is not at hand (fingerprint {name})")
        elif not hmac.compare_digest(_hmac_of_row(keys[name], row.hash).encode(), str(seal).encode("utf-8", "replace")):
            wrong.append(f"row {row.number} ({row.act}) was not written by this workspace: its seal does not agree")
        elif name == now:
            since = since or row.number
        elif since:
            wrong.append(f"row {row.number} is sealed by another key than row {since} before it")
    if not since and not wrong:
        lack.append("no row is sealed yet by the key that the policy names; the next act will be")
    return SealFaults(tuple(wrong), tuple(lack))


def write_head_file(directory: Path, head: AuditHead) -> None:
    """Write the head next to the database. It may lag behind after a crash; a disk that refuses it is no reason to fail."""
    with contextlib.suppress(OSError):
        handle, aside = tempfile.mkstemp(dir=directory, prefix=f"{HEAD_FILE}.")
        with os.fdopen(handle, "w") as file:
            file.write(f"{head}\n")
        Path(aside).replace(directory / HEAD_FILE)


def read_head_file(directory: Path) -> AuditHead | None:
    """Return the head that was written next to the database; None if it is missing or unreadable."""
    try:
        number, _, hashed = read_plain(directory / HEAD_FILE, MOST_HEAD_BYTES).decode("utf-8").strip().partition(":")
        return AuditHead(int(number), hashed)
    except (OSError, ValueError, StrangeFile):
        return None


@contextlib.contextmanager
def consistent_read(connection: sqlite3.Connection) -> Iterator[None]:
    """Read everything in this block from one snapshot, whatever others write meanwhile."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def verify_audit_log(
    connection: sqlite3.Connection, directory: Path, noted: Sequence[AuditHead] = ()
) -> tuple[list[AuditRow], str]:
    """Return every row, and what is wrong with the first one that differs from what was written; others may add rows meanwhile.

    ``noted`` are heads that were kept elsewhere. What lies next to the database is read before it: it may lag behind.
    """
    kept = read_head_file(directory)
    with consistent_read(connection):
        rows, head = audit_rows(connection), read_head(connection)
    return rows, chain_problem(rows, head, [*noted, *([] if kept is None else [kept])])


def chain_problem(rows: Sequence[AuditRow], head: AuditHead, kept: Sequence[AuditHead] = ()) -> str:
    """Return what is wrong with the first row that differs from what was written; empty when the chain is whole.

    ``head`` must be its very end; ``kept`` are heads noted elsewhere, which must lie on it.
    """
    previous = ""
    for number, row in zip(count(1), rows, strict=False):
        if row.number != number:
            return f"row {number} is missing: it was removed"
        if row.compute_hash() != row.hash:
            return f"row {number} was changed"
        if row.previous != previous:
            return f"row {number} does not follow row {number - 1}: one of them was put in the place of another"
        previous = row.hash
    last = AuditHead(len(rows), previous)
    if head.number < last.number:
        return f"row {head.number + 1} was added by other means"
    return next((wrong for one in (head, *kept) if (wrong := _head_problem(one, rows, last))), "")


def _head_problem(head: AuditHead, rows: Sequence[AuditRow], last: AuditHead) -> str:
    if head.number > last.number:
        return f"row {last.number + 1} is missing: rows {last.number + 1} to {head.number} were removed at the end"
    found = rows[head.number - 1].hash if head.number > 0 else ""
    return "" if found == head.hash else f"row {head.number} is not the one whose hash was noted as the head"
