"""The worker: a process of its own session that claims tasks, has them computed, and records what they found.

python -m workspace.worker DIRECTORY [--jobs N] [--idle SECONDS]
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TypeVar

from .attempt import Failure, GivenBack, attempt
from .database import is_busy
from .errors import WorkspaceError
from .pool import Pool, pool
from .queue import Claim, Outcome, claim, extend_leases, fail, finish, release, release_all, unfinished
from .workspace import Workspace

__all__ = ["start_worker", "work", "worker_log"]

HEARTBEAT_SECONDS = 5.0
IDLE_SECONDS = 3.0
POLL_SECONDS = 0.1
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
KILLED_AT_MOST = 3
Answer = TypeVar("Answer")
Attempted = Outcome | Failure | GivenBack
log = logging.getLogger("sfumato.worker")


class Heart:
    """A thread that says the worker is alive, on connections of its own."""

    def __init__(self, directory: Path, worker: str) -> None:
        self.directory = directory
        self.worker = worker
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._live, daemon=True)

    def __enter__(self) -> Heart:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def _live(self) -> None:
        while not self.stopped.wait(HEARTBEAT_SECONDS):
            try:
                with contextlib.closing(Workspace.open(self.directory)) as workspace:
                    extend_leases(workspace, self.worker)
            except (sqlite3.Error, WorkspaceError, OSError) as error:
                log.warning("heartbeat missed: %s", type(error).__name__)


def work(directory: Path, jobs: int = 1, idle: float = IDLE_SECONDS) -> None:
    """Work until no run has been waiting or running for ``idle`` seconds.

    A run whose last tasks another worker holds is waited for: that worker may die, and its tasks come back.
    """
    workspace = Workspace.open(directory)
    worker = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        patiently(partial(_sign_on, workspace, worker))
        with Heart(directory, worker), pool(jobs) as opened:
            _drain(workspace, worker, opened, jobs, idle)
    finally:
        workspace.close()
        _sign_off(directory, worker)


def patiently(action: Callable[[], Answer]) -> Answer:
    """``action()``, again and again while the database is locked: what was computed must not be lost to that."""
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            log.warning("the database is locked; trying again")


def _sign_on(workspace: Workspace, worker: str) -> None:
    workspace.tables.sweep()
    now = time.time()
    with workspace.writing() as connection:
        connection.execute("INSERT INTO worker VALUES (?, ?, ?, ?, NULL)", (worker, os.getpid(), now, now))


def _sign_off(directory: Path, worker: str) -> None:
    """On a connection of its own: a signal may have come in the midst of the other one's transaction."""
    try:
        with contextlib.closing(Workspace.open(directory)) as workspace:
            release_all(workspace, worker)
            with workspace.writing() as connection:
                connection.execute("UPDATE worker SET stopped = ? WHERE id = ?", (time.time(), worker))
    except (sqlite3.Error, WorkspaceError) as error:
        log.warning("no leave taken: %s; leases run out by themselves", type(error).__name__)


def _drain(workspace: Workspace, worker: str, opened: Pool, jobs: int, idle: float) -> None:
    held: dict[Future[Attempted], Claim] = {}
    empty_since = time.monotonic()
    while held or unfinished(workspace) or time.monotonic() - empty_since < idle:
        while len(held) < jobs and (task := patiently(partial(claim, workspace, worker))) is not None:
            held[opened.submit(attempt, workspace.directory, task)] = task
        if not held:
            time.sleep(POLL_SECONDS)
            continue
        for future in wait(held, return_when=FIRST_COMPLETED).done:
            task = held.pop(future)
            patiently(partial(_record, workspace, task, _attempted(task, future)))
        empty_since = time.monotonic()


def _attempted(task: Claim, future: Future[Attempted]) -> Attempted:
    try:
        return future.result()
    except BrokenExecutor:
        log.error("run %s, task %s: its process was killed", task.run_id, task.key)
        if task.attempt < KILLED_AT_MOST:
            return GivenBack()
        return Failure(f"{task.key}: its process was killed {task.attempt} times; the machine may be short of memory")
    except Exception as error:  # noqa: BLE001  (an answer that cannot cross processes)
        return Failure(f"{task.key}: {type(error).__name__}")


def _record(workspace: Workspace, task: Claim, attempted: Attempted) -> None:
    if isinstance(attempted, Outcome):
        finish(workspace, task, attempted)
    elif isinstance(attempted, Failure):
        log.error("run %s, task %s: %s\n%s", task.run_id, task.key, attempted.message, attempted.trace)
        fail(workspace, task, attempted.message)
    else:
        release(workspace, task)


class Detached(subprocess.Popen[bytes]):
    """A process that outlives its starter on purpose: to drop its handle while it runs is no mistake."""

    def __del__(self) -> None:
        """Let it go."""


def start_worker(directory: Path, jobs: int = 1) -> Detached:
    """Start a worker that outlives this process and its terminal."""
    worker_log(directory).parent.mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, **dict.fromkeys(THREAD_LIMITS, "1")}
    with worker_log(directory).open("ab") as file:
        return Detached(
            [sys.executable, "-P", "-m", "workspace.worker", str(directory.resolve()), "--jobs", str(jobs)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=environment,
        )


def worker_log(directory: Path) -> Path:
    """Where the workers of a workspace write what happened to them."""
    return directory / "logs" / "worker.log"


def _terminated(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def main() -> None:
    """The process: parse the command line and work."""
    parser = argparse.ArgumentParser(prog="python -m workspace.worker")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    signal.signal(signal.SIGTERM, _terminated)
    for name in THREAD_LIMITS:
        os.environ.setdefault(name, "1")
    work(arguments.directory, arguments.jobs, arguments.idle)


if __name__ == "__main__":
    main()
