"""The audit log: a row for every act that changes a project, each bound to the one before it by its hash.

A row's hash covers its number, time, act, subject, details and the hash of the row before, so that no row can be
changed, removed, inserted or moved without the chain showing where. What the end of the chain is stands in two more
places, ``audit_head`` and the file ``audit.head``, so that rows missing at the end are noticed too. Whoever may write
all three can forge them: note the head that ``sfumato audit verify`` prints somewhere else, and give it to ``--head``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from itertools import count
from pathlib import Path

from .errors import StrangeFile
from .plain_files import read_plain

HEAD_FILE = "audit.head"
MOST_HEAD_BYTES = 1 << 12


class Act(StrEnum):
    """What can be done to a workspace."""

    WORKSPACE_MADE = "workspace made"
    WORKSPACE_MIGRATED = "workspace migrated"
    WORKSPACE_ADOPTED = "workspace adopted"
    PROJECT_MADE = "project made"
    PROJECT_DELETED = "project deleted"
    DATASET_IMPORTED = "dataset imported"
    PLAN_EDITED = "plan edited"
    RUN_ENTERED = "run entered"
    RUN_CANCELLED = "run cancelled"
    RUN_INTERRUPTED = "run interrupted"
    RUN_RESUMED = "run resumed"
    RUN_FINISHED = "run finished"
    RUN_FAILED = "run failed"
    RUN_DELETED = "run deleted"
    RUN_RELEASED = "run released"
    REPORT_WRITTEN = "report written"
    FILES_REMOVED = "files removed"
    KEY_MADE = "key made"
    KEY_RESTORED = "key restored"
    KEY_EXPORTED = "key exported"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One act. ``details`` is JSON without values of the data; ``previous`` is the hash of the row before."""

    number: int
    time: str
    act: str
    subject: str
    details: str
    previous: str
    hash: str

    def computed_hash(self) -> str:
        """The SHA-256 that this row must have."""
        content = [self.number, self.time, self.act, self.subject, self.details, self.previous]
        return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Head:
    """The last row's number and hash; number 0 and no hash for an empty log."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


def append(connection: sqlite3.Connection, act: Act, subject: str, **details: str | int | None) -> None:
    """Write down an act, in the transaction that does it. The details must not hold values of the data."""
    assert connection.in_transaction
    head = head_of(connection)
    number, time = head.number + 1, datetime.now(UTC).isoformat(timespec="microseconds")
    text = json.dumps({"user": _user(), **details}, sort_keys=True)
    row = AuditRow(number, time, act.value, subject, text, head.hash, "")
    hashed = row.computed_hash()
    connection.execute(
        "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", (number, time, act.value, subject, text, head.hash, hashed)
    )
    connection.execute("UPDATE audit_head SET number = ?, hash = ?", (number, hashed))


@lru_cache(maxsize=1)
def _user() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):
        return str(os.geteuid()) if hasattr(os, "geteuid") else ""


def head_of(connection: sqlite3.Connection) -> Head:
    """What the database says the last row is."""
    row = connection.execute("SELECT number, hash FROM audit_head").fetchone()
    return Head(0, "") if row is None else Head(row[0], row[1])


def audit_rows(connection: sqlite3.Connection) -> list[AuditRow]:
    """Every row, oldest first."""
    rows = connection.execute("SELECT number, time, act, subject, details, previous, hash FROM audit ORDER BY number")
    return [AuditRow(*row) for row in rows]


def keep_head(directory: Path, head: Head) -> None:
    """Write the head beside the database. It may lag behind after a crash; a disk that refuses it is no reason to fail."""
    with contextlib.suppress(OSError):
        handle, aside = tempfile.mkstemp(dir=directory, prefix=f"{HEAD_FILE}.")
        with os.fdopen(handle, "w") as file:
            file.write(f"{head}\n")
        Path(aside).replace(directory / HEAD_FILE)


def kept_head(directory: Path) -> Head | None:
    """The head that was written beside the database; None when there is none that can be read."""
    try:
        number, _, hashed = read_plain(directory / HEAD_FILE, MOST_HEAD_BYTES).decode("utf-8").strip().partition(":")
        return Head(int(number), hashed)
    except (OSError, ValueError, StrangeFile):
        return None


def verify(connection: sqlite3.Connection, directory: Path, noted: Sequence[Head] = ()) -> tuple[list[AuditRow], str]:
    """Every row, and what is wrong with the first that is not as it was written; others may add rows meanwhile.

    ``noted`` are heads that were kept elsewhere. What lies beside the database is read before it: it may lag behind.
    """
    kept = kept_head(directory)
    connection.execute("BEGIN")
    try:
        rows, head = audit_rows(connection), head_of(connection)
    finally:
        connection.execute("COMMIT")
    return rows, broken(rows, head, [*noted, *([] if kept is None else [kept])])


def broken(rows: Sequence[AuditRow], head: Head, kept: Sequence[Head] = ()) -> str:
    """What is wrong with the first row that is not as it was written; empty when the chain is whole.

    ``head`` must be its very end; ``kept`` are heads noted elsewhere, which must lie on it.
    """
    previous = ""
    for number, row in zip(count(1), rows, strict=False):
        if row.number != number:
            return f"row {number} is missing: it was removed"
        if row.computed_hash() != row.hash:
            return f"row {number} was changed"
        if row.previous != previous:
            return f"row {number} does not follow row {number - 1}: one of them was put in the place of another"
        previous = row.hash
    last = Head(len(rows), previous)
    if head.number < last.number:
        return f"row {head.number + 1} was added by other means"
    return next((wrong for one in (head, *kept) if (wrong := _off(one, rows, last))), "")


def _off(head: Head, rows: Sequence[AuditRow], last: Head) -> str:
    if head.number > last.number:
        return f"row {last.number + 1} is missing: rows {last.number + 1} to {head.number} were removed at the end"
    found = rows[head.number - 1].hash if head.number > 0 else ""
    return "" if found == head.hash else f"row {head.number} is not the one whose hash was noted as the head"
