"""Worker: it claims tasks, has them computed, and stores their results. ``worker_main`` is its process.

It survives whatever a task does: tasks are computed in processes of their own, which it kills when their run is
stopped.
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
from typing import NamedTuple, TypeVar

from sfumato.engine.errors import BadInput, EngineError

from ..errors import WorkspaceError
from ..plain_files import ensure_directory, open_to_append
from ..store.database import DATABASE, is_lock_error
from ..store.keys import NoKey
from ..store.run_log import log_task, rotate_log
from ..store.workspace import Workspace, check_workspace_owner
from .admission import TaskAdmission
from .computing import pool_limit
from .pool import IDLE_SECONDS, IN_PROCESS, THREAD_LIMITS, TaskPool, open_pool
from .queue import (
    TaskLease,
    TaskResult,
    WaitingTask,
    claim_task,
    extend_leases,
    fail_task,
    finish_task,
    has_unfinished_runs,
    is_task_held,
    register_worker,
    return_all_tasks,
    return_task,
    return_tasks_of_dead_workers,
    shorten_leases,
)
from .run_task import TaskFailure, TaskInput, TaskReturned, help_task, may_be_helped, read_task_input, run_task

HEARTBEAT_SECONDS = 5.0
POLL_SECONDS = 0.1
MAX_KILLS = 3
HELP_AFTER_SECONDS = 2.0
"""How long a task has been computed before idle places help with it: most are done by then."""
Answer = TypeVar("Answer")
TaskOutcome = TaskResult | TaskFailure | TaskReturned
log = logging.getLogger("sfumato.worker")


class WorkerHeartbeat:
    """Thread that records that a worker is alive."""

    def __init__(self, directory: Path, worker: str) -> None:
        self.directory = directory
        self.worker = worker
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> WorkerHeartbeat:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def _beat(self) -> None:
        """Record heartbeats, and return the tasks of dead workers, until stopped."""
        while not self.stopped.wait(HEARTBEAT_SECONDS):
            try:
                # A connection of its own: those of SQLite stay in their thread.
                with Workspace.open(self.directory) as workspace:
                    extend_leases(workspace, self.worker)
                    return_tasks_of_dead_workers(workspace)
                    shorten_leases(workspace)
            except (sqlite3.Error, WorkspaceError, OSError) as error:
                log.warning("heartbeat missed: %s", type(error).__name__)


def run_worker(
    directory: Path, jobs: int = IN_PROCESS, idle: float = IDLE_SECONDS, dask: str = "", opened: TaskPool | None = None
) -> None:
    """Work until no run has been waiting or running for ``idle`` seconds.

    jobs: tasks at a time in processes of their own; 0 computes in this process
    dask: address of the scheduler of a cluster that computes instead
    opened: pool that computes instead of a new one
    """
    check_workspace_owner(directory)
    workspace = Workspace.open(directory)
    # Process numbers come again, and two machines may share a workspace.
    worker = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        workspace.tables.remove_unfinished()
        retry_while_locked(partial(register_worker, workspace, worker))
        retry_while_locked(partial(return_tasks_of_dead_workers, workspace))
        retry_while_locked(partial(shorten_leases, workspace))
        chosen = open_pool(jobs, dask) if opened is None else contextlib.nullcontext(opened)
        with WorkerHeartbeat(directory, worker), chosen as computing:
            TaskLoop(workspace, worker, computing).work_until_idle(idle)
    finally:
        workspace.close()
        _return_tasks(directory, worker)


def retry_while_locked(action: Callable[[], Answer]) -> Answer:
    """Return ``action()``, tried again while the database is locked."""
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_lock_error(error):
                raise
            # For ever: what was computed for hours must not be lost to a lock.
            log.warning("the database is locked; trying again")


def _return_tasks(directory: Path, worker: str) -> None:
    """Return the tasks of an ending worker."""
    try:
        # A connection of its own: a signal may have come in the midst of the other one's transaction.
        with Workspace.open(directory) as workspace:
            return_all_tasks(workspace, worker)
    except (sqlite3.Error, WorkspaceError) as error:
        log.warning("no leave taken: %s; leases run out by themselves", type(error).__name__)


class HelpedTask(NamedTuple):
    """A task that is held and that others may help with.

    needed: what computing it needs
    bytes_needed: bytes that it takes, which a helper takes as well
    began: when it was begun, by the monotonic clock
    """

    needed: TaskInput
    bytes_needed: int
    began: float


class TaskLoop:
    """Main loop of a worker, with the tasks it holds."""

    def __init__(self, workspace: Workspace, worker: str, opened: TaskPool) -> None:
        self.workspace = workspace
        self.worker = worker
        self.pool = opened
        self.held: dict[Future[TaskOutcome], TaskLease] = {}
        self.helpers: dict[Future[None], TaskLease] = {}
        self.helped: dict[int, HelpedTask] = {}
        self.killed: Counter[int] = Counter()
        self.admission = TaskAdmission(workspace, partial(pool_limit, opened), apart=not opened.is_local)
        self.looked = time.monotonic()

    def work_until_idle(self, idle: float) -> None:
        """Work until there has been nothing to do for ``idle`` seconds."""
        try:
            self._work_until_idle(idle)
        finally:
            for task in self.held.values():
                self._log_task(task, "given back unfinished: the worker ends")

    def _work_until_idle(self, idle: float) -> None:
        """Claim tasks, wait for them and store their outcomes, until there is nothing left to do."""
        empty_since = time.monotonic()
        # A run whose last tasks another worker holds is waited for: that worker may die, and its tasks come back.
        while self.held or has_unfinished_runs(self.workspace) or time.monotonic() - empty_since < idle:
            if not (self.workspace.directory / DATABASE).exists():
                log.error("the workspace is gone: nothing that is computed here could be read")
                return
            self.pool.check_usable()
            self._claim_tasks()
            if not self.held:
                time.sleep(POLL_SECONDS)
                continue
            for future in wait(self.held, POLL_SECONDS, FIRST_COMPLETED).done:
                task = self.held.pop(future)
                self.admission.remove_task(task)
                self.helped.pop(task.task_id, None)
                self._record_outcome(task, self._outcome_of(task, future))
            self._stop_unwanted()
            self._help_tasks()
            empty_since = time.monotonic()

    def _claim_tasks(self) -> None:
        """Claim and submit tasks while the pool has room."""
        while len(self.held) + self._count_ending_helpers() < self.pool.size:
            may, left = self.admission.has_room, self.admission.seconds_left
            task = retry_while_locked(partial(claim_task, self.workspace, self.worker, may, left))
            if task is None:
                return
            if refused := self.admission.refusal_message(task):
                self._record_outcome(task, TaskFailure(refused))
                continue
            try:
                needed = retry_while_locked(partial(read_task_input, self.workspace, task))
            except (WorkspaceError, EngineError) as error:  # the run was deleted, or rows that it needs are gone
                self._record_outcome(task, TaskFailure(str(error)))
                continue
            self._log_task(task, "begun" if task.attempt == 1 else "begun again")
            # A task of one's own is worth more than help, and its memory is not kept for helpers.
            self._stop_helpers()
            compute = partial(run_task, database=self.pool.is_local)
            self.admission.add_task(task)
            bytes_needed = self.admission.needed_bytes(WaitingTask.from_lease(task))
            self.held[self.pool.submit_task(compute, self.workspace.directory, needed, needed_bytes=bytes_needed)] = (
                task
            )
            if self.pool.size > 1 and may_be_helped(self.workspace.tables, needed):
                self.helped[task.task_id] = HelpedTask(needed, bytes_needed, time.monotonic())

    def _count_ending_helpers(self) -> int:
        """Count the helpers whose task has ended: they end with their block."""
        for future in [one for one in self.helpers if one.done()]:
            # Whoever comes back from a task has found nothing more to do there, or was killed.
            self.helped.pop(self.helpers.pop(future).task_id, None)
        return sum(task.task_id not in self.helped for task in self.helpers.values())

    def _help_tasks(self) -> None:
        """Have places without a task of their own compute blocks of the tasks that are held."""
        self._count_ending_helpers()
        for task in [one for one in self.held.values() if one.task_id in self.helped]:
            if len(self.held) + len(self.helpers) >= self.pool.size:
                return
            given = self.helped[task.task_id]
            number = 1 + sum(one.task_id == task.task_id for one in self.helpers.values())
            began = time.monotonic() - given.began >= HELP_AFTER_SECONDS
            if began and self.admission.has_room_for_help(WaitingTask.from_lease(task), len(self.helpers) + 1):
                help_with = partial(help_task, helper=number)
                future = self.pool.submit_task(
                    help_with, self.workspace.directory, given.needed, needed_bytes=given.bytes_needed
                )
                self.helpers[future] = task
                self._log_task(task, f"helper {number} begun")

    def _stop_helpers(self) -> None:
        """Stop all helpers of tasks that are held."""
        for future in [one for one, task in self.helpers.items() if task.task_id in self.helped]:
            del self.helpers[future]
            if not future.done():
                self.pool.stop_task(future)

    def _stop_unwanted(self) -> None:
        """Stop the tasks whose run was stopped or whose lease was lost."""
        if time.monotonic() - self.looked < POLL_SECONDS:
            return
        self.looked = time.monotonic()
        for future, task in list(self.held.items()):
            if not future.done() and not retry_while_locked(partial(is_task_held, self.workspace, task)):
                del self.held[future]
                self.admission.remove_task(task)
                self._stop_helpers()
                self.helped.pop(task.task_id, None)
                self.pool.stop_task(future)
                self._record_outcome(task, TaskReturned())

    def _outcome_of(self, task: TaskLease, future: Future[TaskOutcome]) -> TaskOutcome:
        """Return the outcome of a future that is done, whatever became of its process."""
        try:
            return future.result()
        except BrokenExecutor:
            self.killed[task.task_id] += 1
            times = self.killed[task.task_id]
            self._log_task(task, f"its process was killed; {self.admission.killed_message(task)}")
            # The likeliest killer is the kernel, short of memory that other tasks had.
            self.admission.run_alone_from_now_on(task)
            if times < MAX_KILLS:
                return TaskReturned()
            return TaskFailure(
                f"{task.key}: its process was killed {times} times; {self.admission.killed_message(task)}"
            )
        except Exception as error:  # noqa: BLE001  (an answer that cannot cross processes)
            return TaskFailure(f"{task.key}: {type(error).__name__}")

    def _record_outcome(self, task: TaskLease, attempted: TaskOutcome) -> None:
        """Store the outcome of a task in the database and in its run's log."""
        if isinstance(attempted, TaskResult):
            try:
                ended = retry_while_locked(partial(finish_task, self.workspace, task, attempted))
            except (NoKey, BadInput) as error:  # the key went away, or the policy that names one cannot be read
                self._record_outcome(task, TaskFailure(str(error)))
                return
            if ended:
                self._log_task(task, f"done in {attempted.seconds:.3f} s, peak {attempted.peak_bytes / 1e6:.0f} MB")
        elif isinstance(attempted, TaskFailure):
            self._log_task(task, f"failed: {attempted.message}\n{attempted.trace}")
            retry_while_locked(partial(fail_task, self.workspace, task, attempted.message, attempted.partial_result))
        else:
            self._log_task(task, "given back unfinished")
            retry_while_locked(partial(return_task, self.workspace, task))

    def _log_task(self, task: TaskLease, text: str) -> None:
        """Write a line about a task to its run's log."""
        log_task(self.workspace.directory, task.run_id, task.key, task.attempt, self.worker, text)


class DetachedProcess(subprocess.Popen[bytes]):
    """Process that outlives its starter."""

    # Popen warns where its handle is dropped while the process runs, which is meant here.
    def __del__(self) -> None: ...


def start_worker(directory: Path, jobs: int = 1, idle: float = IDLE_SECONDS) -> DetachedProcess:
    """Start a worker in a process that outlives this one and its terminal. Raises NotYours and StrangeFile."""
    return start_detached_module(directory, "sfumato.workspace.jobs.worker_main", jobs, "--idle", str(idle))


def start_detached_module(directory: Path, module: str, jobs: int, *arguments: str) -> DetachedProcess:
    """Start a module of Sfumato on a workspace, in a process that outlives this one and its terminal. Raises NotYours
    and StrangeFile.
    """
    check_workspace_owner(directory)
    ensure_directory(directory, worker_log_path(directory).parent.name)
    rotate_log(worker_log_path(directory))
    environment = {**os.environ, **dict.fromkeys(THREAD_LIMITS, "1")}
    with os.fdopen(open_to_append(worker_log_path(directory)), "ab") as file:
        return DetachedProcess(
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
            # Without this the process would get the signals of the terminal.
            start_new_session=True,
            env=environment,
        )


def worker_log_path(directory: Path) -> Path:
    """Return the path of the log of a workspace's workers."""
    return directory / "logs" / "worker.log"
