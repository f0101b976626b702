"""The seal of a run: what it was asked, and what it found, bound by an HMAC to the row of the audit log that says how it stands.

A run is sealed in parts, so that what does not agree can be named: its recipe, title, seed, versions, times and data; each task
with its result rows; each table that a task left; the diagnostics of a model; each verdict. A part's seal is written with it,
in one transaction. The seal of the whole, which the audit log keeps, covers those of the parts: what is settled when the run
is entered, its state and times too when it is stopped, everything when it is done.
"""

from __future__ import annotations

import hmac
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ROW_BYTES = 8
"""Of the seal of a result row this much is kept: enough to find the row that was changed; the task's own seal judges."""

SETTLED: Mapping[str, str] = {
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
ENDED: Mapping[str, str] = {
    "state": "SELECT state FROM run WHERE id = ?",
    "times": "SELECT started, finished FROM run WHERE id = ?",
    "error": "SELECT error FROM run WHERE id = ?",
}
LEFT = ("task ", "rows of ", "table ", "diagnostics of ")
"""How the parts begin that tasks leave."""
_TASK = """SELECT id, key, kind, item, draw, point, state, attempt, started, done, total, what, seconds, peak_bytes, error, worker
           FROM task WHERE id = ?"""
_ROWS = """SELECT id, family, method, measure, target, dataset, draw, level, value, lower, upper, baseline, unit, status, reason,
                  params FROM result WHERE run_id = ? AND task_id = ? ORDER BY id"""
_DIAGNOSTICS = """SELECT id, target, name, parameter, value, rule, passed FROM diagnostic
                  WHERE run_id = ? AND target = ? ORDER BY id"""


def _plain(value: object) -> object:
    return {"bytes": value.hex()} if isinstance(value, bytes) else str(value)


_JSON = json.JSONEncoder(separators=(",", ":"), default=_plain)


@dataclass(frozen=True, slots=True)
class Sealer:
    """Seals with a key; ``name`` is its fingerprint."""

    key: bytes
    name: str

    def seal(self, *content: object) -> bytes:
        """The HMAC-SHA-256 of values as JSON: numbers exactly, texts apart from bytes."""
        return hmac.digest(self.key, _JSON.encode(content).encode(), "sha256")

    def record(self, what: str, found: Sequence[Any] | None) -> str:
        """The seal of a row of the database, as the audit log's details hold it."""
        return self.seal(what, [] if found is None else list(found)).hex()


@dataclass(frozen=True, slots=True)
class Part:
    """The seal of a part of a run by the key of this name; ``rows`` the first bytes of the seal of each of its result rows."""

    name: str
    key: str
    seal: bytes
    rows: bytes | None = None


def whole(sealer: Sealer, run_id: int, parts: Mapping[str, bytes]) -> str:
    """The seal of a run by those of its parts."""
    return sealer.seal("run", run_id, sorted((name, seal.hex()) for name, seal in parts.items())).hex()


def one_row(connection: sqlite3.Connection, sealer: Sealer, run_id: int, queries: Mapping[str, str]) -> Iterator[Part]:
    """The parts that are a row of the database each."""
    for name, query in queries.items():
        found = connection.execute(query, (run_id,)).fetchone()
        yield Part(name, sealer.name, sealer.seal(run_id, name, None if found is None else list(found)))


def task_parts(connection: sqlite3.Connection, sealer: Sealer, run_id: int, task_id: int) -> Iterator[Part]:
    """A task that is done, and its result rows."""
    task = list(connection.execute(_TASK, (task_id,)).fetchone())
    yield Part(f"task {task[1]}", sealer.name, sealer.seal(run_id, "task", task))
    seals = [sealer.seal(run_id, "row", list(row)) for row in connection.execute(_ROWS, (run_id, task_id))]
    parts = b"".join(seal[:ROW_BYTES] for seal in seals)
    yield Part(f"rows of {task[1]}", sealer.name, sealer.seal(run_id, "rows", task_id, b"".join(seals)), parts)


def left_parts(
    connection: sqlite3.Connection, sealer: Sealer, run_id: int, tables: Collection[str], targets: Collection[str]
) -> Iterator[Part]:
    """The tables of these names, and the diagnostics of the models of these variables."""
    for name in tables:
        query = "SELECT sha256 FROM artefact WHERE run_id = ? AND name = ?"
        (sha256,) = connection.execute(query, (run_id, name)).fetchone()
        yield Part(f"table {name}", sealer.name, sealer.seal(run_id, "table", name, sha256))
    for target in targets:
        found = [list(row) for row in connection.execute(_DIAGNOSTICS, (run_id, target))]
        yield Part(f"diagnostics of {target}", sealer.name, sealer.seal(run_id, "diagnostics", target, found))


def verdict_parts(connection: sqlite3.Connection, sealer: Sealer, run_id: int) -> Iterator[Part]:
    """Each verdict, and the runs that stand beside this one."""
    for row in connection.execute(
        "SELECT position, verdict FROM verdict WHERE run_id = ? ORDER BY position", (run_id,)
    ):
        yield Part(f"verdict {row[0]}", sealer.name, sealer.seal(run_id, "verdict", *row))
    for row in connection.execute("SELECT position, companion_id FROM companion WHERE run_id = ?", (run_id,)):
        yield Part(beside(row[1]), sealer.name, sealer.seal(run_id, "beside", *row))


def found_parts(
    connection: sqlite3.Connection, sealer: Sealer, run_id: int, there: Collection[str] = ()
) -> Iterator[Part]:
    """All that the tasks of a run have left, and those that are done, but what is ``there`` already."""
    done = connection.execute("SELECT id, key FROM task WHERE run_id = ? AND state = 'done' ORDER BY id", (run_id,))
    for task_id, key in done.fetchall():
        if f"task {key}" not in there:
            yield from task_parts(connection, sealer, run_id, task_id)
    names = connection.execute("SELECT name FROM artefact WHERE run_id = ?", (run_id,)).fetchall()
    tables = [row[0] for row in names if f"table {row[0]}" not in there]
    models = connection.execute("SELECT DISTINCT target FROM diagnostic WHERE run_id = ?", (run_id,)).fetchall()
    targets = [row[0] for row in models if f"diagnostics of {row[0]}" not in there]
    yield from left_parts(connection, sealer, run_id, tables, targets)


def beside(run_id: int) -> str:
    """What the part is called that says which run stands beside another."""
    return f"run {run_id} beside it"


def keep(connection: sqlite3.Connection, run_id: int, parts: Iterable[Part]) -> None:
    """Write down the seals of parts, in the transaction that writes the parts."""
    connection.executemany(
        "INSERT OR REPLACE INTO seal VALUES (?, ?, ?, ?, ?)",
        [(run_id, part.name, part.key, part.seal, part.rows) for part in parts],
    )


def kept(connection: sqlite3.Connection, run_id: int) -> dict[str, Part]:
    """The seals of the parts of a run as they were written down."""
    rows = connection.execute("SELECT part, key, seal, rows FROM seal WHERE run_id = ?", (run_id,))
    return {row[0]: Part(*row) for row in rows}


def names_sealed(state: str, names: Collection[str]) -> list[str]:
    """The parts that the seal of a run in this state covers, of those that there are."""
    if state == "done":
        return list(names)
    ended = () if state in ("queued", "running") else ENDED
    return [name for name in names if name in SETTLED or name in ended]


def seal_run(connection: sqlite3.Connection, sealer: Sealer, run_id: int) -> str:
    """Seal a run as it stands now, in the transaction that brings it there; returns the seal for the audit log.

    What its tasks left was sealed when they ended, but where an earlier version began the run.
    """
    state = str(connection.execute("SELECT state FROM run WHERE id = ?", (run_id,)).fetchone()[0])
    keep(connection, run_id, one_row(connection, sealer, run_id, {**SETTLED, **ENDED}))
    if state == "done":
        keep(connection, run_id, verdict_parts(connection, sealer, run_id))
        keep(connection, run_id, found_parts(connection, sealer, run_id, kept(connection, run_id)))
    parts = {name: part.seal for name, part in kept(connection, run_id).items()}
    return whole(sealer, run_id, {name: parts[name] for name in names_sealed(state, parts)})
