"""The worker: claims tasks, has them computed, and records what they found. ``worker_main`` is its process.

It survives whatever a task does: tasks are computed in processes of their own, which it kills when their run is stopped.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from functools import partial
from pathlib import Path
from typing import TypeVar

from sfumato.engine.errors import BadInput, EngineError

from ..errors import WorkspaceError
from ..plain_files import ensure_directory, open_to_append
from ..store.database import DATABASE, is_busy
from ..store.keys import NoKey
from ..store.run_log import note_of_task, rotate
from ..store.workspace import Workspace, check_own
from .admission import Admission
from .computing import limit_in
from .pool import IDLE_SECONDS, IN_PROCESS, THREAD_LIMITS, Pool, pool
from .queue import (
    Claim,
    TaskResult,
    Waiting,
    claim,
    extend_leases,
    fail,
    finish,
    release,
    release_all,
    release_tasks_of_dead_workers,
    shorten_leases,
    sign_on,
    still_held,
    unfinished,
)
from .run_task import Failure, TaskReleased, run_task, task_input

HEARTBEAT_SECONDS = 5.0
POLL_SECONDS = 0.1
KILLED_AT_MOST = 3
Answer = TypeVar("Answer")
Attempted = TaskResult | Failure | TaskReleased
log = logging.getLogger("sfumato.worker")


class Heartbeat:
    """A thread that says the worker is alive, on connections of its own."""

    def __init__(self, directory: Path, worker: str) -> None:
        self.directory = directory
        self.worker = worker
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._live, daemon=True)

    def __enter__(self) -> Heartbeat:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def _live(self) -> None:
        while not self.stopped.wait(HEARTBEAT_SECONDS):
            try:
                with Workspace.open(self.directory) as workspace:
                    extend_leases(workspace, self.worker)
                    release_tasks_of_dead_workers(workspace)
                    shorten_leases(workspace)
            except (sqlite3.Error, WorkspaceError, OSError) as error:
                log.warning("heartbeat missed: %s", type(error).__name__)


def work(
    directory: Path, jobs: int = IN_PROCESS, idle: float = IDLE_SECONDS, dask: str = "", opened: Pool | None = None
) -> None:
    """Work until no run has been waiting or running for ``idle`` seconds.

    Computes ``jobs`` tasks at a time in processes of their own, in this process for 0, or on the cluster of a Dask
    scheduler; or in a pool that is there already. A run whose last tasks another worker holds is waited for: that worker may die, and its tasks come back.
    """
    check_own(directory)
    workspace = Workspace.open(directory)
    worker = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        workspace.tables.sweep()
        until_unlocked(partial(sign_on, workspace, worker))
        until_unlocked(partial(release_tasks_of_dead_workers, workspace))
        until_unlocked(partial(shorten_leases, workspace))
        chosen = pool(jobs, dask) if opened is None else contextlib.nullcontext(opened)
        with Heartbeat(directory, worker), chosen as computing:
            TaskLoop(workspace, worker, computing).drain(idle)
    finally:
        workspace.close()
        _sign_off(directory, worker)


def until_unlocked(action: Callable[[], Answer]) -> Answer:
    """``action()``, again and again while the database is locked: what was computed must not be lost to that."""
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            log.warning("the database is locked; trying again")


def _sign_off(directory: Path, worker: str) -> None:
    """On a connection of its own: a signal may have come in the midst of the other one's transaction."""
    try:
        with Workspace.open(directory) as workspace:
            release_all(workspace, worker)
    except (sqlite3.Error, WorkspaceError) as error:
        log.warning("no leave taken: %s; leases run out by themselves", type(error).__name__)


class TaskLoop:
    """One worker's time at work: the tasks it holds, and what becomes of them."""

    def __init__(self, workspace: Workspace, worker: str, opened: Pool) -> None:
        self.workspace = workspace
        self.worker = worker
        self.pool = opened
        self.held: dict[Future[Attempted], Claim] = {}
        self.killed: Counter[int] = Counter()
        self.admission = Admission(workspace, partial(limit_in, opened), apart=not opened.local)
        self.looked = time.monotonic()

    def drain(self, idle: float) -> None:
        """Work until nothing has been there to do for ``idle`` seconds."""
        try:
            self._drain(idle)
        finally:
            for task in self.held.values():
                self._note(task, "given back unfinished: the worker ends")

    def _drain(self, idle: float) -> None:
        empty_since = time.monotonic()
        while self.held or unfinished(self.workspace) or time.monotonic() - empty_since < idle:
            if not (self.workspace.directory / DATABASE).exists():
                log.error("the workspace is gone: nothing that is computed here could be read")
                return
            self.pool.check()
            self._claim()
            if not self.held:
                time.sleep(POLL_SECONDS)
                continue
            for future in wait(self.held, POLL_SECONDS, FIRST_COMPLETED).done:
                task = self.held.pop(future)
                self.admission.leave(task)
                self._record(task, self._attempted(task, future))
            self._stop_unwanted()
            empty_since = time.monotonic()

    def _claim(self) -> None:
        while len(self.held) < self.pool.size:
            task = until_unlocked(partial(claim, self.workspace, self.worker, self.admission.fits))
            if task is None:
                return
            if refused := self.admission.refusal(task):
                self._record(task, Failure(refused))
                continue
            try:
                needed = until_unlocked(partial(task_input, self.workspace, task))
            except (WorkspaceError, EngineError) as error:  # the run was deleted, or rows that it needs are gone
                self._record(task, Failure(str(error)))
                continue
            self._note(task, "begun" if task.attempt == 1 else "begun again")
            compute = partial(run_task, database=self.pool.local)
            self.admission.hold(task)
            bytes_needed = self.admission.needed(Waiting.of(task))
            self.held[self.pool.submit(compute, self.workspace.directory, needed, needs=bytes_needed)] = task

    def _stop_unwanted(self) -> None:
        if time.monotonic() - self.looked < POLL_SECONDS:
            return
        self.looked = time.monotonic()
        for future, task in list(self.held.items()):
            if not future.done() and not until_unlocked(partial(still_held, self.workspace, task)):
                del self.held[future]
                self.admission.leave(task)
                self.pool.stop(future)
                self._record(task, TaskReleased())

    def _attempted(self, task: Claim, future: Future[Attempted]) -> Attempted:
        try:
            return future.result()
        except BrokenExecutor:
            self.killed[task.task_id] += 1
            times = self.killed[task.task_id]
            self._note(task, f"its process was killed; {self.admission.killed(task)}")
            self.admission.try_alone(task)
            if times < KILLED_AT_MOST:
                return TaskReleased()
            return Failure(f"{task.key}: its process was killed {times} times; {self.admission.killed(task)}")
        except Exception as error:  # noqa: BLE001  (an answer that cannot cross processes)
            return Failure(f"{task.key}: {type(error).__name__}")

    def _record(self, task: Claim, attempted: Attempted) -> None:
        if isinstance(attempted, TaskResult):
            try:
                ended = until_unlocked(partial(finish, self.workspace, task, attempted))
            except (NoKey, BadInput) as error:  # the key went away, or the policy that names one cannot be read
                self._record(task, Failure(str(error)))
                return
            if ended:
                self._note(task, f"done in {attempted.seconds:.3f} s, peak {attempted.peak_bytes / 1e6:.0f} MB")
        elif isinstance(attempted, Failure):
            self._note(task, f"failed: {attempted.message}\n{attempted.trace}")
            until_unlocked(partial(fail, self.workspace, task, attempted.message, attempted.left))
        else:
            self._note(task, "given back unfinished")
            until_unlocked(partial(release, self.workspace, task))

    def _note(self, task: Claim, text: str) -> None:
        note_of_task(self.workspace.directory, task.run_id, task.key, task.attempt, self.worker, text)


class Detached(subprocess.Popen[bytes]):
    """A process that outlives its starter on purpose: to drop its handle while it runs is no mistake."""

    def __del__(self) -> None: ...


def start_worker(directory: Path, jobs: int = 1, idle: float = IDLE_SECONDS) -> Detached:
    """Start a worker that outlives this process and its terminal, and ends where there is nothing to do for ``idle`` seconds. Raises NotYours and StrangeFile."""
    return start_detached(directory, "sfumato.workspace.jobs.worker_main", jobs, "--idle", str(idle))


def start_detached(directory: Path, module: str, jobs: int, *arguments: str) -> Detached:
    """Start a module of ours on a workspace, in a process that outlives this one and its terminal. Raises NotYours and StrangeFile."""
    check_own(directory)
    ensure_directory(directory, worker_log(directory).parent.name)
    rotate(worker_log(directory))
    environment = {**os.environ, **dict.fromkeys(THREAD_LIMITS, "1")}
    with os.fdopen(open_to_append(worker_log(directory)), "ab") as file:
        return Detached(
            [
                sys.executable,
                "-P",
                "-m",
                module,
                str(directory.resolve()),
                *arguments,
                "--jobs",
                str(jobs),
            ],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=environment,
        )


def worker_log(directory: Path) -> Path:
    """Where the workers of a workspace write what happened to them."""
    return directory / "logs" / "worker.log"
