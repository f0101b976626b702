"""The queue: tasks are claimed with a lease, and end in the transaction that records what they found."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict

from ..audit import STOPPING_ACTS, AuditAct, append_act
from ..policy.policy import read_policy_of_workspace
from ..store.keys import NoKey, key_of_run
from ..store.process_identity import birth_of, gone, host
from ..store.releases_in_progress import settle
from ..store.runs import RunState
from ..store.seals import keep, left_parts, seal_run, task_parts
from ..store.workspace import Workspace
from .runs import insert_rows

LEASE_SECONDS = 30.0
LOST_AT_MOST = 5
LOST = f"the worker died {LOST_AT_MOST} times in the midst of one task; the machine may be short of memory"
STUCK = "no task of it can ever be ready: the workspace was changed by other means than Sfumato; enter the run anew"
CLOCK_SECONDS = 2 * 86_400.0
"""A lease that ends later than this from now was never given: clocks are set back by less. It counts as run out."""
_RUN_OUT = "(lease_until < :now OR lease_until > :never)"
LOOKED_AT = 64
"""Ready tasks among which one that fits is looked for."""
_READY = f"""SELECT task.id, task.run_id, task.key, task.kind, task.item FROM task JOIN run ON run.id = task.run_id
            WHERE run.state IN ('queued', 'running') AND task.blockers = 0
              AND (task.state = 'waiting' OR (task.state = 'running' AND {_RUN_OUT}))
            ORDER BY task.run_id, task.id LIMIT {LOOKED_AT}"""
_STUCK = """SELECT id FROM run WHERE state IN ('queued', 'running') AND NOT EXISTS (
              SELECT 1 FROM task WHERE run_id = run.id AND (state = 'running' OR (state = 'waiting' AND blockers = 0)))"""
_END = {
    RunState.DONE: AuditAct.RUN_FINISHED,
    RunState.FAILED: AuditAct.RUN_FAILED,
    RunState.INTERRUPTED: AuditAct.RUN_INTERRUPTED,
    RunState.CANCELLED: AuditAct.RUN_CANCELLED,
}


@dataclass(frozen=True, slots=True)
class Claim:
    """A task that this worker holds. ``attempt`` fences off a worker that lost its lease and came back."""

    task_id: int
    run_id: int
    key: str
    kind: str
    item: int
    draw: int | None
    point: float | None
    worker: str
    attempt: int


@dataclass(frozen=True)
class TaskResult:
    """What a task leaves behind: rows, verdicts, diagnostics of its target, and tables by artefact name."""

    rows: Sequence[Row] = ()
    verdicts: Sequence[Verdict] = ()
    target: str = ""
    diagnostics: Sequence[Diagnostic] = ()
    artefacts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0


NO_RESULT = TaskResult()


@dataclass(frozen=True, slots=True)
class Waiting:
    task_id: int
    run_id: int
    key: str
    kind: str
    item: int

    @classmethod
    def of(cls, claim: Claim) -> Waiting:
        return cls(claim.task_id, claim.run_id, claim.key, claim.kind, claim.item)


def claim(workspace: Workspace, worker: str, fits: Callable[[Waiting], bool] = lambda _: True) -> Claim | None:
    """Take the next task that is ready, or whose holder's lease has run out, and that ``fits``; None when there is none.

    A task whose holders died ``LOST_AT_MOST`` times is not tried again: its run fails. So does a run whose tasks all wait for
    each other, or for nothing there is.
    """
    now = time.time()
    ready = _ready(workspace, now)
    if not ready:
        _end_stuck(workspace)
    if not any(map(fits, ready)):
        return None
    with workspace.writing() as connection:
        _give_up(workspace, now)
        chosen = next((task.task_id for task in _ready(workspace, now) if fits(task)), None)
        row = connection.execute(
            """UPDATE task SET state = 'running', worker = :worker, attempt = attempt + 1, lease_until = :lease,
                              started = :now, done = 0, total = 0, what = ''
               WHERE id = :chosen
               RETURNING id, run_id, key, kind, item, draw, point, attempt""",
            {"worker": worker, "lease": now + LEASE_SECONDS, "now": now, "chosen": chosen},
        ).fetchone()
        if row is None:
            return None
        connection.execute(
            "UPDATE run SET state = 'running', started = coalesce(started, ?) WHERE id = ? AND state = 'queued'",
            (now, row["run_id"]),
        )
    return Claim(
        row["id"],
        row["run_id"],
        row["key"],
        row["kind"],
        row["item"],
        row["draw"],
        row["point"],
        worker,
        row["attempt"],
    )


def _ready(workspace: Workspace, now: float) -> list[Waiting]:
    return [Waiting(*row) for row in workspace.connection.execute(_READY, _moment(now))]


def _moment(now: float) -> dict[str, float]:
    return {"now": now, "never": now + CLOCK_SECONDS}


def _give_up(workspace: Workspace, now: float) -> None:
    lost = workspace.connection.execute(
        f"""UPDATE task SET state = 'failed', worker = NULL, lease_until = NULL, error = :lost
           WHERE state = 'running' AND {_RUN_OUT} AND attempt >= :most RETURNING run_id""",
        {"lost": LOST, "most": LOST_AT_MOST, **_moment(now)},
    ).fetchall()
    for row in lost:
        _end_run(workspace, row["run_id"], RunState.FAILED, LOST)


def _end_stuck(workspace: Workspace) -> None:
    if workspace.connection.execute(_STUCK).fetchall():
        with workspace.writing() as connection:
            for row in connection.execute(_STUCK).fetchall():
                _end_run(workspace, row["id"], RunState.FAILED, STUCK)


def _end_run(workspace: Workspace, run_id: int, state: RunState, error: str = "") -> bool:
    ended = workspace.connection.execute(
        "UPDATE run SET state = ?, finished = ?, error = ? WHERE id = ? AND state IN ('queued', 'running')",
        (state.value, time.time(), error, run_id),
    )
    if ended.rowcount:
        _write_down(workspace, _END[state], run_id)
    return ended.rowcount > 0


def _write_down(workspace: Workspace, act: AuditAct, run_id: int) -> None:
    """Enter in the audit log how a run stands now, sealed; without a seal where it is stopped and there is no key."""
    connection = workspace.connection
    done, total = connection.execute(
        "SELECT count(*) FILTER (WHERE state = 'done'), count(*) FROM task WHERE run_id = ?", (run_id,)
    ).fetchone()
    try:
        sealed = {
            "seal": seal_run(connection, workspace.sealer, run_id),
            "under_policy": read_policy_of_workspace(workspace.directory).sha256,
        }
    except NoKey:
        if act.value not in STOPPING_ACTS:
            raise
        sealed = {}
    append_act(connection, act, f"run {run_id}", tasks_done=done, tasks=total, **sealed)


def unfinished(workspace: Workspace) -> bool:
    """Whether some run is queued or running: a task that another worker holds may yet come back."""
    query = "SELECT EXISTS (SELECT 1 FROM run WHERE state IN ('queued', 'running'))"
    return bool(workspace.connection.execute(query).fetchone()[0])


def extend_leases(workspace: Workspace, worker: str) -> None:
    """A worker's heartbeat: it is alive and still holds its tasks."""
    now = time.time()
    with workspace.writing() as connection:
        connection.execute("UPDATE worker SET heartbeat = ? WHERE id = ?", (now, worker))
        connection.execute(
            "UPDATE task SET lease_until = ? WHERE worker = ? AND state = 'running'", (now + LEASE_SECONDS, worker)
        )


def still_wanted(workspace: Workspace, run_id: int) -> bool:
    """Whether the run goes on: nobody has cancelled or interrupted it, and none of its tasks has failed."""
    row = workspace.connection.execute("SELECT state FROM run WHERE id = ?", (run_id,)).fetchone()
    return row is not None and not RunState(row["state"]).ended


def still_held(workspace: Workspace, held: Claim) -> bool:
    """Whether a task is still this worker's, and its run goes on."""
    row = workspace.connection.execute(
        """SELECT run.state FROM task JOIN run ON run.id = task.run_id
           WHERE task.id = ? AND worker = ? AND attempt = ? AND task.state = 'running'""",
        (held.task_id, held.worker, held.attempt),
    ).fetchone()
    return row is not None and not RunState(row["state"]).ended


def progress(workspace: Workspace, held: Claim, done: int, total: int, what: str) -> bool:
    """Write down how far a held task has come; False when it is no longer this worker's."""
    written = workspace.connection.execute(
        "UPDATE task SET done = ?, total = ?, what = ? WHERE id = ? AND worker = ? AND attempt = ? AND state = 'running'",
        (done, total, what, held.task_id, held.worker, held.attempt),
    )
    return written.rowcount > 0


def finish(workspace: Workspace, held: Claim, outcome: TaskResult) -> bool:
    """Record what a task found and end it, in one transaction; False when it is no longer this worker's to end."""
    with workspace.writing() as connection:
        ended = connection.execute(
            """UPDATE task SET state = 'done', worker = NULL, lease_until = NULL, seconds = ?, peak_bytes = ?
               WHERE id = ? AND worker = ? AND attempt = ? AND state = 'running'""",
            (outcome.seconds, outcome.peak_bytes, held.task_id, held.worker, held.attempt),
        )
        if ended.rowcount == 0:
            return False
        insert_rows(connection, held.run_id, held.task_id, outcome.rows)
        _keep(workspace, held.run_id, outcome)
        keep(connection, held.run_id, task_parts(connection, workspace.sealer, held.run_id, held.task_id))
        connection.executemany(
            "INSERT INTO verdict (run_id, position, verdict) VALUES (?, ?, ?)",
            [(held.run_id, i, json.dumps(verdict.to_dict())) for i, verdict in enumerate(outcome.verdicts)],
        )
        connection.execute(
            "UPDATE task SET blockers = blockers - 1 WHERE id IN (SELECT task_id FROM task_need WHERE needs_id = ?)",
            (held.task_id,),
        )
        _end_if_complete(workspace, held.run_id)
    return True


def _keep(workspace: Workspace, run_id: int, outcome: TaskResult) -> None:
    """Tables and statistics of a task, sealed, in place of those that an attempt which failed has left."""
    connection = workspace.connection
    connection.executemany(
        "INSERT OR REPLACE INTO artefact (run_id, name, sha256) VALUES (?, ?, ?)",
        [(run_id, name, sha256) for name, sha256 in outcome.artefacts.items()],
    )
    if outcome.diagnostics:
        connection.execute("DELETE FROM diagnostic WHERE run_id = ? AND target = ?", (run_id, outcome.target))
    connection.executemany(
        "INSERT INTO diagnostic (run_id, target, name, parameter, value, rule, passed) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(run_id, outcome.target, d.name, d.parameter, d.value, d.rule, d.passed) for d in outcome.diagnostics],
    )
    if outcome.artefacts or outcome.diagnostics:
        targets = [outcome.target] if outcome.diagnostics else []
        keep(connection, run_id, left_parts(connection, workspace.sealer, run_id, outcome.artefacts, targets))


def _end_if_complete(workspace: Workspace, run_id: int) -> None:
    query = "SELECT EXISTS (SELECT 1 FROM task WHERE run_id = ? AND state <> 'done')"
    if not workspace.connection.execute(query, (run_id,)).fetchone()[0]:
        _end_run(workspace, run_id, RunState.DONE)


def fail(workspace: Workspace, held: Claim, message: str, left: TaskResult = NO_RESULT) -> None:
    """End a task and its run with an error, and keep what it ``left`` to look at. The message holds no confidential values."""
    with workspace.writing() as connection:
        ended = connection.execute(
            """UPDATE task SET state = 'failed', worker = NULL, lease_until = NULL, error = ?
               WHERE id = ? AND worker = ? AND attempt = ? AND state = 'running'""",
            (message, held.task_id, held.worker, held.attempt),
        )
        if ended.rowcount:
            _keep(workspace, held.run_id, left)
            _end_run(workspace, held.run_id, RunState.FAILED, message)


def release(workspace: Workspace, held: Claim) -> None:
    with workspace.writing() as connection:
        connection.execute(
            """UPDATE task SET state = 'waiting', worker = NULL, lease_until = NULL
               WHERE id = ? AND worker = ? AND attempt = ? AND state = 'running'""",
            (held.task_id, held.worker, held.attempt),
        )


def shorten_leases(workspace: Workspace) -> int:
    """Let leases that end later than any given now end with it: the clock was set back since, and they would be waited for.

    A holder that lives extends its own by its heartbeat. One that ends after ``CLOCK_SECONDS``, or never, has run out. Returns
    how many they were.
    """
    now = time.time()
    latest = now + LEASE_SECONDS
    beyond = "FROM task WHERE state = 'running' AND (lease_until > :latest OR lease_until IS NULL)"
    if not workspace.connection.execute(f"SELECT 1 {beyond} LIMIT 1", {"latest": latest}).fetchall():
        return 0
    with workspace.writing() as connection:
        return connection.execute(
            f"""UPDATE task SET lease_until = CASE WHEN lease_until <= :never THEN :latest ELSE 0 END
                WHERE id IN (SELECT id {beyond})""",
            {"latest": latest, "never": now + CLOCK_SECONDS},
        ).rowcount


def sign_on(workspace: Workspace, worker: str) -> None:
    """A worker says that it is there, and which process it is."""
    now, pid = time.time(), os.getpid()
    with workspace.writing() as connection:
        connection.execute(
            "INSERT INTO worker (id, pid, started, heartbeat) VALUES (?, ?, ?, ?)", (worker, pid, now, now)
        )
        connection.execute("INSERT INTO worker_process VALUES (?, ?, ?)", (worker, host(), birth_of(pid)))


def release_all(workspace: Workspace, worker: str) -> None:
    """A worker ends: give back every task that it still holds."""
    with workspace.writing() as connection:
        _sign_off(connection, worker)


def release_tasks_of_dead_workers(workspace: Workspace) -> int:
    """Give back the tasks of workers of this machine whose process is gone, without waiting for their leases to end.

    Returns how many workers they were.
    """
    rows = workspace.connection.execute(
        """SELECT id, pid, host, birth FROM worker JOIN worker_process ON worker_id = worker.id
           WHERE stopped IS NULL OR id IN (SELECT worker FROM task WHERE state = 'running')"""
    ).fetchall()
    dead = [row["id"] for row in rows if gone(row["pid"], row["host"], row["birth"])]
    if dead:
        with workspace.writing() as connection:
            for worker in dead:
                _sign_off(connection, worker)
    return len(dead)


def _sign_off(connection: sqlite3.Connection, worker: str) -> None:
    connection.execute(
        """UPDATE task SET state = 'waiting', worker = NULL, lease_until = NULL
           WHERE worker = ? AND state = 'running'""",
        (worker,),
    )
    connection.execute("UPDATE worker SET stopped = ? WHERE id = ?", (time.time(), worker))


def request_stop(workspace: Workspace, run_id: int, state: RunState) -> bool:
    """Interrupt or cancel a run; its workers kill its tasks within a second. False when it had ended already."""
    with workspace.writing():
        return _end_run(workspace, run_id, state)


def resume(workspace: Workspace, run_id: int) -> bool:
    """Queue an interrupted, cancelled or failed run again; its finished tasks stay. False when there is nothing to do.

    Releases that were cut off are settled before. Raises NoKey where the key that it was entered with is missing.
    """
    settle(workspace)
    entered = workspace.connection.execute("SELECT key_fingerprint FROM run WHERE id = ?", (run_id,)).fetchone()
    if entered is not None:
        key_of_run(workspace.directory, str(entered[0]))
    with workspace.writing() as connection:
        again = connection.execute(
            """UPDATE run SET state = 'queued', finished = NULL, error = ''
               WHERE id = ? AND state IN ('interrupted', 'cancelled', 'failed')""",
            (run_id,),
        )
        if again.rowcount:
            _write_down(workspace, AuditAct.RUN_RESUMED, run_id)
            connection.execute(
                "UPDATE task SET state = 'waiting', error = '', worker = NULL WHERE run_id = ? AND state = 'failed'",
                (run_id,),
            )
            _end_if_complete(workspace, run_id)
        return again.rowcount > 0
