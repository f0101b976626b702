"""Where a worker's tasks are computed: in the worker itself, in processes of its own, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from importlib import import_module
from typing import Any

__all__ = ["IDLE_SECONDS", "IN_PROCESS", "THREAD_LIMITS", "Pool", "ProcessPool", "pool"]

IN_PROCESS = 0
IDLE_SECONDS = 3.0
"""How long a worker without tasks waits for more."""
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Set to 1 for what computes, so that jobs beside each other do not fight for cores."""
ORPHAN_SECONDS = 0.5
COMPUTES = "sfumato.workspace.jobs.attempt"
"""Imported by every process before it is given a task."""


class Pool:
    """Computes in this process, at once: a task ends only by itself."""

    size = 1
    local = True
    """Whether it computes on this machine, where the database is."""

    def submit(self, func: Callable[..., Any], *args: Any) -> Future[Any]:
        """A future that is done: of what ``func`` returns or raises."""
        future: Future[Any] = Future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  (the future carries it)
            future.set_exception(error)
        return future

    def stop(self, future: Future[Any]) -> None:
        """End a computation whose answer nobody wants."""

    def close(self) -> None:
        """End everything."""


class ProcessPool(Pool):
    """Computes in processes, each alone with its task: one that is killed takes no other along, and is started again."""

    def __init__(self, jobs: int) -> None:
        self.size = jobs
        self._idle = [_Process() for _ in range(jobs)]
        for process in self._idle:
            process.submit(import_module, COMPUTES)
        self._busy: dict[Future[Any], _Process] = {}

    def submit(self, func: Callable[..., Any], *args: Any) -> Future[Any]:
        """A future of what ``func`` returns or raises; BrokenExecutor when its process was killed."""
        for future in [one for one in self._busy if one.done()]:
            self._idle.append(self._busy.pop(future))
        process = self._idle.pop()
        future = process.submit(func, *args)
        self._busy[future] = process
        return future

    def stop(self, future: Future[Any]) -> None:
        """Kill the process that computes this, wherever it is."""
        process = self._busy.pop(future)
        process.kill()
        self._idle.append(process)

    def close(self) -> None:
        """Kill every process."""
        for process in (*self._idle, *self._busy.values()):
            process.kill()


class _Process:
    """One of loky's processes, started when it is first needed and again after it was killed."""

    def __init__(self) -> None:
        self._executor: Executor | None = None

    def submit(self, func: Callable[..., Any], *args: Any) -> Future[Any]:
        if self._executor is not None:
            with contextlib.suppress(BrokenExecutor):
                return self._executor.submit(func, *args)
        self._executor = self._started()
        return self._executor.submit(func, *args)

    @staticmethod
    def _started() -> Executor:
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        executor: Executor = ProcessPoolExecutor(max_workers=1, initializer=settle, initargs=(os.getpid(),))
        return executor

    def kill(self) -> None:
        executor: Any = self._executor
        if executor is None:
            return
        for pid in list(executor._processes):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        executor.shutdown(wait=False, kill_workers=True)
        self._executor = None


def settle(parent: int) -> None:
    """In a process that computes: leave signals of the terminal to the worker, and do not outlive it."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_SECONDS)
    os._exit(1)


@contextmanager
def pool(jobs: int, dask: str = "") -> Iterator[Pool]:
    """A pool for so many tasks at a time, ended with the block: in this process for 0 jobs.

    ``dask`` is the address of a scheduler whose cluster computes in place of processes here.
    """
    opened = _open(jobs, dask)
    try:
        yield opened
    finally:
        opened.close()


def _open(jobs: int, dask: str) -> Pool:
    if dask:
        from .dask_pool import DaskPool

        return DaskPool(dask)
    return Pool() if jobs == IN_PROCESS else ProcessPool(jobs)
