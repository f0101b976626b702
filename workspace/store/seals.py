"""Seal of a run: an HMAC that binds its request and its results to the row of the audit log with its state.

A run is sealed in parts, so that what does not agree can be named: its recipe, title, seed, versions, times and data;
each task with its result rows; each table that a task left; the diagnostics of a model; each verdict. A part's seal is
written with it, in one transaction. The seal of the whole, which the audit log keeps, covers those of the parts: what
is settled when the run is entered, its state and times too when it is stopped, everything when it is done.
"""

from __future__ import annotations

import hmac
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ROW_SEAL_BYTES = 8
"""Bytes that are kept of the seal of a result row: enough to find the row that was changed; the task's own seal decides."""

ENTRY_PARTS: Mapping[str, str] = {
    "recipe": "SELECT recipe, recipe_sha256 FROM run WHERE id = ?",
    "title": "SELECT title FROM run WHERE id = ?",
    "seed": "SELECT seed FROM run WHERE id = ?",
    "versions": "SELECT versions FROM run WHERE id = ?",
    "key": "SELECT key_public, key_fingerprint FROM run WHERE id = ?",
    "time of entry": "SELECT created FROM run WHERE id = ?",
    "project": "SELECT project.id, name, project.created FROM run JOIN project ON project.id = run.project_id WHERE run.id = ?",
    "data": """SELECT dataset.id, dataset.project_id, name, origin, source_sha256, table_sha256, schema, records, dropped,
                      dataset.created FROM run JOIN dataset ON dataset.id = run.dataset_id WHERE run.id = ?""",
}
END_PARTS: Mapping[str, str] = {
    "state": "SELECT state FROM run WHERE id = ?",
    "times": "SELECT started, finished FROM run WHERE id = ?",
    "error": "SELECT error FROM run WHERE id = ?",
}
TASK_PART_PREFIXES = ("task ", "rows of ", "table ", "diagnostics of ")
"""Prefixes of the names of parts that tasks leave."""
_TASK_QUERY = """SELECT id, key, kind, item, draw, point, state, attempt, started, done, total, what, seconds, peak_bytes, error, worker
           FROM task WHERE id = ?"""
_ROWS_QUERY = """SELECT id, family, method, measure, target, dataset, draw, level, value, lower, upper, baseline, unit, status, reason,
                  params FROM result WHERE run_id = ? AND task_id = ? ORDER BY id"""
_DIAGNOSTICS_QUERY = """SELECT id, target, name, parameter, value, rule, passed FROM diagnostic
                  WHERE run_id = ? AND target = ? ORDER BY id"""


def _json_default(value: object) -> object:
    """Return bytes as a table with their hexadecimal digits, and other values as text."""
    # As plain text a blob and a string could have one seal.
    return {"bytes": value.hex()} if isinstance(value, bytes) else str(value)


_JSON = json.JSONEncoder(separators=(",", ":"), default=_json_default)


@dataclass(frozen=True, slots=True)
class RecordSealer:
    """A key with which records are sealed.

    key: the key
    name: its fingerprint
    """

    key: bytes
    name: str

    def compute_hmac(self, *content: object) -> bytes:
        """Return the HMAC-SHA-256 of values, encoded as JSON."""
        return hmac.digest(self.key, _JSON.encode(content).encode(), "sha256")

    def seal_record(self, record_kind: str, row: Sequence[Any] | None) -> str:
        """Return the seal of a row of the database, as the audit log keeps it."""
        return self.compute_hmac(record_kind, [] if row is None else list(row)).hex()


@dataclass(frozen=True, slots=True)
class RunPartSeal:
    """The seal of one part of a run.

    name: name of the part
    key: name of the key
    seal: the seal
    rows: first bytes of the seal of each of its result rows
    """

    name: str
    key: str
    seal: bytes
    rows: bytes | None = None


def seal_of_parts(sealer: RecordSealer, run_id: int, parts: Mapping[str, bytes]) -> str:
    """Return the seal of a run from the seals of its parts."""
    return sealer.compute_hmac("run", run_id, sorted((name, seal.hex()) for name, seal in parts.items())).hex()


def single_row_parts(
    connection: sqlite3.Connection, sealer: RecordSealer, run_id: int, queries: Mapping[str, str]
) -> Iterator[RunPartSeal]:
    """Yield the seals of the parts that are one row of the database each."""
    for name, query in queries.items():
        found = connection.execute(query, (run_id,)).fetchone()
        yield RunPartSeal(name, sealer.name, sealer.compute_hmac(run_id, name, None if found is None else list(found)))


def task_part_seals(
    connection: sqlite3.Connection, sealer: RecordSealer, run_id: int, task_id: int
) -> Iterator[RunPartSeal]:
    """Yield the seals of a finished task and of its result rows."""
    task = list(connection.execute(_TASK_QUERY, (task_id,)).fetchone())
    yield RunPartSeal(f"task {task[1]}", sealer.name, sealer.compute_hmac(run_id, "task", task))
    seals = [
        sealer.compute_hmac(run_id, "row", list(row)) for row in connection.execute(_ROWS_QUERY, (run_id, task_id))
    ]
    parts = b"".join(seal[:ROW_SEAL_BYTES] for seal in seals)
    yield RunPartSeal(
        f"rows of {task[1]}", sealer.name, sealer.compute_hmac(run_id, "rows", task_id, b"".join(seals)), parts
    )


def artefact_part_seals(
    connection: sqlite3.Connection, sealer: RecordSealer, run_id: int, tables: Collection[str], targets: Collection[str]
) -> Iterator[RunPartSeal]:
    """Yield the seals of a run's tables with these names, and of the diagnostics of the models for these variables."""
    for name in tables:
        query = "SELECT sha256 FROM artefact WHERE run_id = ? AND name = ?"
        (sha256,) = connection.execute(query, (run_id, name)).fetchone()
        yield RunPartSeal(f"table {name}", sealer.name, sealer.compute_hmac(run_id, "table", name, sha256))
    for target in targets:
        found = [list(row) for row in connection.execute(_DIAGNOSTICS_QUERY, (run_id, target))]
        yield RunPartSeal(
            f"diagnostics of {target}", sealer.name, sealer.compute_hmac(run_id, "diagnostics", target, found)
        )


def verdict_part_seals(connection: sqlite3.Connection, sealer: RecordSealer, run_id: int) -> Iterator[RunPartSeal]:
    """Yield the seals of a run's verdicts and companions."""
    for row in connection.execute(
        "SELECT position, verdict FROM verdict WHERE run_id = ? ORDER BY position", (run_id,)
    ):
        yield RunPartSeal(f"verdict {row[0]}", sealer.name, sealer.compute_hmac(run_id, "verdict", *row))
    for row in connection.execute("SELECT position, companion_id FROM companion WHERE run_id = ?", (run_id,)):
        yield RunPartSeal(companion_part_name(row[1]), sealer.name, sealer.compute_hmac(run_id, "beside", *row))


def result_part_seals(
    connection: sqlite3.Connection, sealer: RecordSealer, run_id: int, sealed_names: Collection[str] = ()
) -> Iterator[RunPartSeal]:
    """Yield the seals of everything that a run's tasks have left, except the parts in ``sealed_names``."""
    done = connection.execute("SELECT id, key FROM task WHERE run_id = ? AND state = 'done' ORDER BY id", (run_id,))
    for task_id, key in done.fetchall():
        if f"task {key}" not in sealed_names:
            yield from task_part_seals(connection, sealer, run_id, task_id)
    names = connection.execute("SELECT name FROM artefact WHERE run_id = ?", (run_id,)).fetchall()
    tables = [row[0] for row in names if f"table {row[0]}" not in sealed_names]
    models = connection.execute("SELECT DISTINCT target FROM diagnostic WHERE run_id = ?", (run_id,)).fetchall()
    targets = [row[0] for row in models if f"diagnostics of {row[0]}" not in sealed_names]
    yield from artefact_part_seals(connection, sealer, run_id, tables, targets)


def companion_part_name(run_id: int) -> str:
    """Return the name of the part that seals a companion run."""
    return f"run {run_id} beside it"


def store_part_seals(connection: sqlite3.Connection, run_id: int, parts: Iterable[RunPartSeal]) -> None:
    """Store seals of parts, in the transaction that writes the parts."""
    connection.executemany(
        "INSERT OR REPLACE INTO seal VALUES (?, ?, ?, ?, ?)",
        [(run_id, part.name, part.key, part.seal, part.rows) for part in parts],
    )


def stored_part_seals(connection: sqlite3.Connection, run_id: int) -> dict[str, RunPartSeal]:
    """Return the stored seals of a run's parts by name."""
    rows = connection.execute("SELECT part, key, seal, rows FROM seal WHERE run_id = ?", (run_id,))
    return {row[0]: RunPartSeal(*row) for row in rows}


def sealed_part_names(state: str, names: Collection[str]) -> list[str]:
    """Return which of these parts the seal of a run in this state covers."""
    if state == "done":
        return list(names)
    ended = () if state in ("queued", "running") else END_PARTS
    return [name for name in names if name in ENTRY_PARTS or name in ended]


def seal_run(connection: sqlite3.Connection, sealer: RecordSealer, run_id: int) -> str:
    """Seal a run in its present state and return the seal for the audit log, in the transaction that sets the state.

    What its tasks left was sealed when they ended, but where an earlier version began the run.
    """
    state = str(connection.execute("SELECT state FROM run WHERE id = ?", (run_id,)).fetchone()[0])
    store_part_seals(connection, run_id, single_row_parts(connection, sealer, run_id, {**ENTRY_PARTS, **END_PARTS}))
    if state == "done":
        store_part_seals(connection, run_id, verdict_part_seals(connection, sealer, run_id))
        store_part_seals(
            # Tasks are sealed when they end; what is missing was left by a version without seals.
            connection,
            run_id,
            result_part_seals(connection, sealer, run_id, stored_part_seals(connection, run_id)),
        )
    parts = {name: part.seal for name, part in stored_part_seals(connection, run_id).items()}
    return seal_of_parts(sealer, run_id, {name: parts[name] for name in sealed_part_names(state, parts)})
