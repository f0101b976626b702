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
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from types import FrameType

from engine.errors import Cancelled, EngineError

from .errors import WorkspaceError
from .perform import perform
from .queue import Claim, Outcome, claim, extend_leases, fail, finish, release
from .workspace import Workspace

__all__ = ["start_worker", "work"]

HEARTBEAT_SECONDS = 5.0
IDLE_SECONDS = 3.0
POLL_SECONDS = 0.1
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
log = logging.getLogger("sfumato.worker")


class InProcess(Executor):
    """Computes at once, in the worker itself: what one job needs."""

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        """Run ``fn`` and return a future that is already done."""
        future: Future[Outcome] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  (the future carries it)
            future.set_exception(error)
        return future


@contextlib.contextmanager
def executor(jobs: int) -> Iterator[Executor]:
    """Where tasks are computed: this process for one job, joblib's processes for more."""
    if jobs == 1:
        yield InProcess()
        return
    from joblib.externals.loky import get_reusable_executor

    pool = get_reusable_executor(max_workers=jobs, timeout=60)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, kill_workers=True)


class Heart:
    """A thread that says the worker is alive, on a connection of its own."""

    def __init__(self, directory: Path, worker: str) -> None:
        self.directory = directory
        self.worker = worker
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Heart:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def _beat(self) -> None:
        workspace = Workspace.open(self.directory)
        while not self.stopped.wait(HEARTBEAT_SECONDS):
            try:
                extend_leases(workspace, self.worker)
            except sqlite3.OperationalError:
                log.warning("heartbeat missed: the database was busy")
        workspace.close()


def work(directory: Path, jobs: int = 1, idle: float = IDLE_SECONDS) -> None:
    """Work until the queue has been empty for ``idle`` seconds."""
    workspace = Workspace.open(directory)
    worker = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with workspace.writing() as connection:
        now = time.time()
        connection.execute("INSERT INTO worker VALUES (?, ?, ?, ?, NULL)", (worker, os.getpid(), now, now))
    held: dict[Future[Outcome], Claim] = {}
    try:
        with Heart(directory, worker), executor(jobs) as pool:
            _drain(workspace, worker, pool, jobs, idle, held)
    finally:
        for unfinished in held.values():
            release(workspace, unfinished)
        with workspace.writing() as connection:
            connection.execute("UPDATE worker SET stopped = ? WHERE id = ?", (time.time(), worker))
        workspace.close()


def _drain(
    workspace: Workspace, worker: str, pool: Executor, jobs: int, idle: float, held: dict[Future[Outcome], Claim]
) -> None:
    empty_since = time.monotonic()
    while held or time.monotonic() - empty_since < idle:
        while len(held) < jobs and (task := claim(workspace, worker)) is not None:
            held[pool.submit(perform, workspace.directory, task)] = task
        if not held:
            time.sleep(POLL_SECONDS)
            continue
        done, _ = wait(held, return_when=FIRST_COMPLETED)
        for future in done:
            _record(workspace, held[future], future)
            del held[future]
        empty_since = time.monotonic()


def _record(workspace: Workspace, task: Claim, future: Future[Outcome]) -> None:
    try:
        finish(workspace, task, future.result())
    except Cancelled:
        release(workspace, task)
    except (EngineError, WorkspaceError) as error:
        log.error("run %s, task %s: %s", task.run_id, task.key, type(error).__name__)
        fail(workspace, task, str(error))
    except Exception as error:
        log.exception("run %s, task %s", task.run_id, task.key)
        fail(workspace, task, f"{task.key}: {type(error).__name__}; the worker's log says more")


def start_worker(directory: Path, jobs: int = 1) -> subprocess.Popen[bytes]:
    """Start a worker that outlives this process and its terminal."""
    logs = directory / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, **dict.fromkeys(THREAD_LIMITS, "1")}
    with (logs / "worker.log").open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "workspace.worker", str(directory.resolve()), "--jobs", str(jobs)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=environment,
        )


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
