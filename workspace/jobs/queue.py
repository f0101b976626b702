"""Queue of tasks in the database: workers claim them with a lease, and end them in the transaction that stores their
results.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice

from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict

from ..audit import STOPPING_ACTS, AuditAct, append_act
from ..policy.policy import read_policy_of_workspace
from ..store.keys import NoKey, run_key
from ..store.process_identity import has_ended, host_identity, process_start
from ..store.releases_in_progress import settle_releases
from ..store.runs import RunState
from ..store.seals import artefact_part_seals, seal_run, store_part_seals, task_part_seals
from ..store.workspace import Workspace
from .runs import insert_result_rows

LEASE_SECONDS = 30.0
MAX_LOST_ATTEMPTS = 5
LOST_MESSAGE = f"the worker died {MAX_LOST_ATTEMPTS} times in the midst of one task; the machine may be short of memory"
STUCK_MESSAGE = (
    "no task of it can ever be ready: the workspace was changed by other means than Sfumato; run the recipe again"
)
MAX_CLOCK_SHIFT_SECONDS = 2 * 86_400.0
"""A lease that ends later than this from now was never given: clocks are set back by less. It counts as run out."""
_LEASE_EXPIRED = "(lease_until < :now OR lease_until > :never)"
MAX_READY_TASKS, MAX_CANDIDATE_TASKS = 1024, 64
"""Number of ready tasks that are ordered, and of the first of them among which one with room is searched."""
LEAST_DIFFERENCE_SECONDS = 0.05
"""Difference of estimates below which tasks stay in the order of the recipe."""
_READY_TASKS = f"""SELECT task.id, task.run_id, task.key, task.kind, task.item FROM task JOIN run ON run.id = task.run_id
            WHERE run.state IN ('queued', 'running') AND task.blockers = 0
              AND (task.state = 'waiting' OR (task.state = 'running' AND {_LEASE_EXPIRED}))
            ORDER BY task.run_id, task.id LIMIT {MAX_READY_TASKS}"""
_STUCK_RUNS = """SELECT id FROM run WHERE state IN ('queued', 'running') AND NOT EXISTS (
              SELECT 1 FROM task WHERE run_id = run.id AND (state = 'running' OR (state = 'waiting' AND blockers = 0)))"""
_ACT_OF_END = {
    RunState.DONE: AuditAct.RUN_FINISHED,
    RunState.FAILED: AuditAct.RUN_FAILED,
    RunState.INTERRUPTED: AuditAct.RUN_INTERRUPTED,
    RunState.CANCELLED: AuditAct.RUN_CANCELLED,
}


@dataclass(frozen=True, slots=True)
class TaskLease:
    """A task that a worker holds by a lease."""

    task_id: int
    run_id: int
    key: str
    kind: str
    item: int
    draw: int | None
    point: float | None
    worker: str
    # Tells apart a worker that lost its lease and came back: its results are refused.
    attempt: int


@dataclass(frozen=True)
class TaskResult:
    """The result of a task.

    rows: result rows
    verdicts: verdicts on thresholds
    target: variable of its diagnostics
    diagnostics: diagnostics of the fit
    artefacts: hash of each table, by artefact name
    seconds: time that it took
    peak_bytes: most memory that it used
    """

    rows: Sequence[Row] = ()
    verdicts: Sequence[Verdict] = ()
    target: str = ""
    diagnostics: Sequence[Diagnostic] = ()
    artefacts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0


NO_RESULT = TaskResult()


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that is ready to be claimed."""

    task_id: int
    run_id: int
    key: str
    kind: str
    item: int

    @classmethod
    def from_lease(cls, claim: TaskLease) -> WaitingTask:
        """Return the task of a lease."""
        return cls(claim.task_id, claim.run_id, claim.key, claim.kind, claim.item)


def claim_task(
    workspace: Workspace,
    worker: str,
    fits: Callable[[WaitingTask], bool] = lambda _: True,
    seconds_left: Callable[[WaitingTask], float] = lambda _: 0.0,
) -> TaskLease | None:
    """Claim the next ready task for which ``fits`` is true; None if there is none.

    Tasks of older runs come first, and of a run those with most ``seconds_left`` to the end of what waits for them, so
    that the longest does not start last.

    A task is ready, too, whose holder's lease has expired. The run of a task whose holders died ``MAX_LOST_ATTEMPTS``
    times fails, and so does a run whose tasks can never be ready.
    """
    now = time.time()
    ready = _iterate_ready_tasks(workspace, now, seconds_left)
    if (first := next(ready, None)) is None:
        _fail_stuck_runs(workspace)
    # Idle workers ask ten times a second: they must not take the lock for writing.
    if first is None or not any(map(fits, chain([first], ready))):
        return None
    with workspace.write_transaction() as connection:
        _fail_lost_tasks(workspace, now)
        # Read again under the lock: another worker may have claimed it meanwhile.
        chosen = next((task.task_id for task in _iterate_ready_tasks(workspace, now, seconds_left) if fits(task)), None)
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
    return TaskLease(
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


def _iterate_ready_tasks(
    workspace: Workspace, now: float, seconds_left: Callable[[WaitingTask], float]
) -> Iterator[WaitingTask]:
    """Yield the first tasks that are ready to be claimed, of one run after another.

    A run is estimated when its turn comes: hundreds of runs may wait, and all but the first few are never asked.
    """
    ready = [WaitingTask(*row) for row in workspace.connection.execute(_READY_TASKS, _lease_times(now))]

    def place_of_task(task: WaitingTask) -> int:
        """Return its place in its run. What a task costs in any case makes no difference: short ones stay as they are."""
        return -int(seconds_left(task) / LEAST_DIFFERENCE_SECONDS)

    ordered = (sorted(own, key=place_of_task) for _, own in groupby(ready, lambda task: task.run_id))
    yield from islice(chain.from_iterable(ordered), MAX_CANDIDATE_TASKS)


def _lease_times(now: float) -> dict[str, float]:
    """Return the times between which a lease must end to be valid."""
    return {"now": now, "never": now + MAX_CLOCK_SHIFT_SECONDS}


def _fail_lost_tasks(workspace: Workspace, now: float) -> None:
    """Fail the tasks whose holders died too often, and their runs."""
    lost = workspace.connection.execute(
        f"""UPDATE task SET state = 'failed', worker = NULL, lease_until = NULL, error = :lost
           WHERE state = 'running' AND {_LEASE_EXPIRED} AND attempt >= :most RETURNING run_id""",
        {"lost": LOST_MESSAGE, "most": MAX_LOST_ATTEMPTS, **_lease_times(now)},
    ).fetchall()
    for row in lost:
        _end_run(workspace, row["run_id"], RunState.FAILED, LOST_MESSAGE)


def _fail_stuck_runs(workspace: Workspace) -> None:
    """Fail the runs whose tasks all wait for each other, or for tasks that do not exist."""
    if workspace.connection.execute(_STUCK_RUNS).fetchall():
        with workspace.write_transaction() as connection:
            for row in connection.execute(_STUCK_RUNS).fetchall():
                _end_run(workspace, row["id"], RunState.FAILED, STUCK_MESSAGE)


def _end_run(workspace: Workspace, run_id: int, state: RunState, error: str = "") -> bool:
    """End a run that has not ended, enter that in the audit log, and return whether it was so."""
    ended = workspace.connection.execute(
        "UPDATE run SET state = ?, finished = ?, error = ? WHERE id = ? AND state IN ('queued', 'running')",
        (state.value, time.time(), error, run_id),
    )
    if ended.rowcount:
        _audit_run_state(workspace, _ACT_OF_END[state], run_id)
    return ended.rowcount > 0


def _audit_run_state(workspace: Workspace, act: AuditAct, run_id: int) -> None:
    """Enter the present state of a run in the audit log, with its seal."""
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
        # A run can be stopped without the key, and has no seal then.
        if act.value not in STOPPING_ACTS:
            raise
        sealed = {}
    append_act(connection, act, f"run {run_id}", tasks_done=done, tasks=total, **sealed)


def has_unfinished_runs(workspace: Workspace) -> bool:
    """Return whether some run is queued or running, in whatever worker."""
    query = "SELECT EXISTS (SELECT 1 FROM run WHERE state IN ('queued', 'running'))"
    return bool(workspace.connection.execute(query).fetchone()[0])


def extend_leases(workspace: Workspace, worker: str) -> None:
    """Record the heartbeat of a worker, and extend the leases of its tasks."""
    now = time.time()
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE worker SET heartbeat = ? WHERE id = ?", (now, worker))
        connection.execute(
            "UPDATE task SET lease_until = ? WHERE worker = ? AND state = 'running'", (now + LEASE_SECONDS, worker)
        )


def is_run_wanted(workspace: Workspace, run_id: int) -> bool:
    """Return whether a run has not ended, been stopped or failed."""
    row = workspace.connection.execute("SELECT state FROM run WHERE id = ?", (run_id,)).fetchone()
    return row is not None and not RunState(row["state"]).is_final


def is_task_held(workspace: Workspace, lease: TaskLease) -> bool:
    """Return whether a task is still held by this lease, and its run continues."""
    row = workspace.connection.execute(
        """SELECT run.state FROM task JOIN run ON run.id = task.run_id
           WHERE task.id = ? AND worker = ? AND attempt = ? AND task.state = 'running'""",
        (lease.task_id, lease.worker, lease.attempt),
    ).fetchone()
    return row is not None and not RunState(row["state"]).is_final


def record_progress(workspace: Workspace, lease: TaskLease, done: int, total: int, what: str) -> bool:
    """Record the progress of a task, and return whether it is still held by this lease."""
    written = workspace.connection.execute(
        "UPDATE task SET done = ?, total = ?, what = ? WHERE id = ? AND worker = ? AND attempt = ? AND state = 'running'",
        (done, total, what, lease.task_id, lease.worker, lease.attempt),
    )
    return written.rowcount > 0


def finish_task(workspace: Workspace, lease: TaskLease, outcome: TaskResult) -> bool:
    """Store the result of a task and end it, in one transaction; return whether it was still held by this lease."""
    with workspace.write_transaction() as connection:
        # The attempt fences off a worker that lost its lease: its result is dropped.
        ended = connection.execute(
            """UPDATE task SET state = 'done', worker = NULL, lease_until = NULL, seconds = ?, peak_bytes = ?
               WHERE id = ? AND worker = ? AND attempt = ? AND state = 'running'""",
            (outcome.seconds, outcome.peak_bytes, lease.task_id, lease.worker, lease.attempt),
        )
        if ended.rowcount == 0:
            return False
        insert_result_rows(connection, lease.run_id, lease.task_id, outcome.rows)
        _store_task_result(workspace, lease.run_id, outcome)
        store_part_seals(
            connection, lease.run_id, task_part_seals(connection, workspace.sealer, lease.run_id, lease.task_id)
        )
        connection.executemany(
            "INSERT INTO verdict (run_id, position, verdict) VALUES (?, ?, ?)",
            [(lease.run_id, i, json.dumps(verdict.to_dict())) for i, verdict in enumerate(outcome.verdicts)],
        )
        connection.execute(
            "UPDATE task SET blockers = blockers - 1 WHERE id IN (SELECT task_id FROM task_need WHERE needs_id = ?)",
            (lease.task_id,),
        )
        _end_run_if_complete(workspace, lease.run_id)
    return True


def _store_task_result(workspace: Workspace, run_id: int, outcome: TaskResult) -> None:
    """Store a task's tables and diagnostics with their seals, in place of those of a failed attempt."""
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
        store_part_seals(
            connection, run_id, artefact_part_seals(connection, workspace.sealer, run_id, outcome.artefacts, targets)
        )


def _end_run_if_complete(workspace: Workspace, run_id: int) -> None:
    """End a run as done where all of its tasks are."""
    query = "SELECT EXISTS (SELECT 1 FROM task WHERE run_id = ? AND state <> 'done')"
    if not workspace.connection.execute(query, (run_id,)).fetchone()[0]:
        _end_run(workspace, run_id, RunState.DONE)


def fail_task(workspace: Workspace, lease: TaskLease, message: str, partial_result: TaskResult = NO_RESULT) -> None:
    """End a task and its run with an error message, which must not contain confidential values.

    partial_result: what is stored all the same
    """
    with workspace.write_transaction() as connection:
        ended = connection.execute(
            """UPDATE task SET state = 'failed', worker = NULL, lease_until = NULL, error = ?
               WHERE id = ? AND worker = ? AND attempt = ? AND state = 'running'""",
            (message, lease.task_id, lease.worker, lease.attempt),
        )
        if ended.rowcount:
            _store_task_result(workspace, lease.run_id, partial_result)
            _end_run(workspace, lease.run_id, RunState.FAILED, message)


def return_task(workspace: Workspace, lease: TaskLease) -> None:
    """Put a task back among the waiting ones."""
    with workspace.write_transaction() as connection:
        connection.execute(
            """UPDATE task SET state = 'waiting', worker = NULL, lease_until = NULL
               WHERE id = ? AND worker = ? AND attempt = ? AND state = 'running'""",
            (lease.task_id, lease.worker, lease.attempt),
        )


def shorten_leases(workspace: Workspace) -> int:
    """Shorten leases that end later than one given now would, and return their number.

    The clock was set back since they were given. One that ends after ``MAX_CLOCK_SHIFT_SECONDS``, or never, expires at
    once.
    """
    now = time.time()
    latest = now + LEASE_SECONDS
    beyond = "FROM task WHERE state = 'running' AND (lease_until > :latest OR lease_until IS NULL)"
    if not workspace.connection.execute(f"SELECT 1 {beyond} LIMIT 1", {"latest": latest}).fetchall():
        return 0
    with workspace.write_transaction() as connection:
        return connection.execute(
            f"""UPDATE task SET lease_until = CASE WHEN lease_until <= :never THEN :latest ELSE 0 END
                WHERE id IN (SELECT id {beyond})""",
            {"latest": latest, "never": now + MAX_CLOCK_SHIFT_SECONDS},
        ).rowcount


def register_worker(workspace: Workspace, worker: str) -> None:
    """Enter a worker and the identity of its process."""
    now, pid = time.time(), os.getpid()
    with workspace.write_transaction() as connection:
        connection.execute(
            "INSERT INTO worker (id, pid, started, heartbeat) VALUES (?, ?, ?, ?)", (worker, pid, now, now)
        )
        connection.execute("INSERT INTO worker_process VALUES (?, ?, ?)", (worker, host_identity(), process_start(pid)))


def return_all_tasks(workspace: Workspace, worker: str) -> None:
    """Put all tasks of an ending worker back among the waiting ones."""
    with workspace.write_transaction() as connection:
        _deregister_worker(connection, worker)


def return_tasks_of_dead_workers(workspace: Workspace) -> int:
    """Put the tasks of workers whose process has ended back among the waiting ones, and return the number of these
    workers.
    """
    rows = workspace.connection.execute(
        """SELECT id, pid, host, birth FROM worker JOIN worker_process ON worker_id = worker.id
           WHERE stopped IS NULL OR id IN (SELECT worker FROM task WHERE state = 'running')"""
    ).fetchall()
    # Of this machine alone; the leases of others expire.
    dead = [row["id"] for row in rows if has_ended(row["pid"], row["host"], row["birth"])]
    if dead:
        with workspace.write_transaction() as connection:
            for worker in dead:
                _deregister_worker(connection, worker)
    return len(dead)


def _deregister_worker(connection: sqlite3.Connection, worker: str) -> None:
    """Put a worker's tasks back among the waiting ones, and enter that it has stopped."""
    connection.execute(
        """UPDATE task SET state = 'waiting', worker = NULL, lease_until = NULL
           WHERE worker = ? AND state = 'running'""",
        (worker,),
    )
    connection.execute("UPDATE worker SET stopped = ? WHERE id = ?", (time.time(), worker))


def stop_run(workspace: Workspace, run_id: int, state: RunState) -> bool:
    """Interrupt or cancel a run, and return whether it had not ended; its workers notice within a second."""
    with workspace.write_transaction():
        return _end_run(workspace, run_id, state)


def requeue_run(workspace: Workspace, run_id: int) -> bool:
    """Queue an interrupted, cancelled or failed run again with its unfinished tasks, and return whether there was
    anything to do. Raises NoKey.
    """
    # Whoever resumes after a crash is the first to find a release that was cut off by it.
    settle_releases(workspace)
    entered = workspace.connection.execute("SELECT key_fingerprint FROM run WHERE id = ?", (run_id,)).fetchone()
    if entered is not None:
        # Before it is queued: without the key every task would fail.
        run_key(workspace.directory, str(entered[0]))
    with workspace.write_transaction() as connection:
        again = connection.execute(
            """UPDATE run SET state = 'queued', finished = NULL, error = ''
               WHERE id = ? AND state IN ('interrupted', 'cancelled', 'failed')""",
            (run_id,),
        )
        if again.rowcount:
            _audit_run_state(workspace, AuditAct.RUN_RESUMED, run_id)
            connection.execute(
                "UPDATE task SET state = 'waiting', error = '', worker = NULL WHERE run_id = ? AND state = 'failed'",
                (run_id,),
            )
            _end_run_if_complete(workspace, run_id)
        return again.rowcount > 0
