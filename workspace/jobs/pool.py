"""Pools that compute a worker's tasks: in the worker itself, in processes of its own, or on a Dask cluster.

Dask needs the extra ``sfumato[dask]``, and opens network connections: nothing else does. Every machine of the cluster
must have this version of Sfumato, and see the workspace's tables under the same path, on a disk that all share.
"""

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

from ..errors import NoCluster
from ..process import forbid_core_dumps

IN_PROCESS = 0
IDLE_SECONDS = 3.0
"""How long a worker without tasks waits for more."""
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables set to 1 in computing processes, so that parallel jobs do not compete for cores."""
PARENT_CHECK_SECONDS = 0.5
COMPUTING_MODULE = "sfumato.workspace.jobs.run_task"
"""Module that every computing process imports when it starts."""
CONNECT_SECONDS = 10
NO_WORKER_SECONDS = 30.0
"""How long a cluster may be without a worker, or its scheduler silent, before it is given up."""
CLUSTER_LOOK_SECONDS = 2.0


class TaskPool:
    """Pool that computes each task at once, in this process."""

    size = 1
    is_local = True
    """Whether it computes on this machine, where the database is, and whose memory its tasks share."""
    largest_bytes: int | None = None
    """Bytes that the largest place has where a task is computed apart from all others; None where tasks share a machine's."""

    def check_usable(self) -> None:
        """Raise the error that makes it impossible to compute here any more."""

    def submit_task(self, func: Callable[..., Any], *args: Any, needed_bytes: int = 0) -> Future[Any]:
        """Compute ``func(*args)`` and return a future with its result or exception.

        ``needed_bytes`` are the bytes that it will take.
        """
        future: Future[Any] = Future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  (the future carries it)
            future.set_exception(error)
        return future

    def stop_task(self, future: Future[Any]) -> None:
        """Stop a computation whose result is no longer wanted."""

    def close(self) -> None: ...


class ProcessPool(TaskPool):
    """Pool of processes, each with one task at a time."""

    def __init__(self, jobs: int) -> None:
        self.size = jobs
        # An executor of one process each: a process that is killed would take down the other tasks of a common
        # executor.
        self._idle = [_LokyProcess() for _ in range(jobs)]
        self._idle[-1].start_executor()  # each of the others when a task is there for it
        self._busy: dict[Future[Any], _LokyProcess] = {}

    def submit_task(self, func: Callable[..., Any], *args: Any, needed_bytes: int = 0) -> Future[Any]:
        """Compute ``func(*args)`` in a process and return a future; it has BrokenExecutor when the process was killed."""
        for future in [one for one in self._busy if one.done()]:
            self._idle.append(self._busy.pop(future))
        process = self._idle.pop()
        future = process.submit_call(func, *args)
        self._busy[future] = process
        return future

    def stop_task(self, future: Future[Any]) -> None:
        """Kill the process that computes this task, if it has begun."""
        process = self._busy.pop(future)
        # loky's thread breaks where a process is killed before it has the task.
        if not future.cancel():
            process.kill_process()
        self._idle.append(process)

    def close(self) -> None:
        """Kill all processes."""
        for process in (*self._idle, *self._busy.values()):
            process.kill_process()


class _LokyProcess:
    """A process of loky, started on first use and again after it was killed."""

    def __init__(self) -> None:
        self._executor: Executor | None = None

    def submit_call(self, func: Callable[..., Any], *args: Any) -> Future[Any]:
        """Compute ``func(*args)`` in the process and return a future."""
        if self._executor is not None:
            # Its process was killed while it was idle.
            with contextlib.suppress(BrokenExecutor):
                return self._executor.submit(func, *args)
        return self.start_executor().submit(func, *args)

    def start_executor(self) -> Executor:
        """Start the process."""
        from loky.process_executor import ProcessPoolExecutor

        executor: Executor = ProcessPoolExecutor(max_workers=1, initializer=follow_parent, initargs=(os.getpid(),))
        # It imports the numerical libraries while the worker is still reading the first task.
        executor.submit(import_module, COMPUTING_MODULE)
        self._executor = executor
        return executor

    def kill_process(self) -> None:
        """Kill the process, whatever it computes."""
        executor: Any = self._executor
        if executor is None:
            return
        for pid in list(executor._processes):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        executor.shutdown(wait=False, kill_workers=True)
        self._executor = None


def follow_parent(parent: int) -> None:
    """Prepare a computing process: it ignores signals of the terminal, ends with its parent, and leaves no core dump."""
    forbid_core_dumps()
    for number in (signal.SIGINT, signal.SIGHUP):
        # The terminal sends them to all processes; the worker decides what becomes of its tasks.
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: int) -> None:
    """End this process once its parent has ended."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    # sys.exit would end this thread alone.
    os._exit(1)


@contextmanager
def open_pool(jobs: int, dask: str = "") -> Iterator[TaskPool]:
    """Open a pool for ``jobs`` tasks at a time, closed with the block; 0 jobs are computed in this process.

    ``dask`` is the address of a scheduler whose cluster computes in place of processes here.
    """
    opened = _make_pool(jobs, dask)
    try:
        yield opened
    finally:
        opened.close()


def _make_pool(jobs: int, dask: str) -> TaskPool:
    """Return the pool for these settings."""
    if dask:
        return DaskPool(dask)
    return TaskPool() if jobs == IN_PROCESS else ProcessPool(jobs)


class DaskPool(TaskPool):
    """Pool on a Dask cluster, with one task at a time in each of its workers."""

    # The database stays with this process, since SQLite's locks do not work over a network: a task reports no progress,
    # and one that is cancelled is computed to its end.
    is_local = False

    def __init__(self, address: str) -> None:
        """Connect to the scheduler. Raises NoCluster if it does not answer, or its workers have more than one thread."""
        try:
            from distributed import Client
        except ImportError:
            raise NoCluster("--dask needs the package distributed; install sfumato[dask]") from None
        self.address = address
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:  # a TypeError where tls:// has no certificate
            raise NoCluster(
                f"no Dask scheduler answers at {address} ({type(error).__name__}); for tls:// the certificates are named in "
                "Dask's own configuration (distributed.comm.tls)"
            ) from None
        self._remote: dict[Future[Any], Any] = {}
        self._memory: dict[str, int] = {}
        self._seen = self._looked = time.monotonic()
        self._update_workers()
        if not self._has_one_thread_each():
            self.close()
            raise NoCluster(
                f"the Dask cluster at {address} must have workers of one thread each (--nthreads 1), "
                "so that a task's answer does not depend on what is computed beside it"
            )

    def _has_one_thread_each(self) -> bool:
        """Return whether there are workers, all with one thread."""
        threads = self._client.nthreads()
        return bool(threads) and max(threads.values()) == 1

    def _update_workers(self) -> None:
        """Read which workers there are, and the memory of each (0 where it is not reported)."""
        self._looked = time.monotonic()
        if self._client.status == "running":
            workers = self._client.scheduler_info()["workers"]
            self._memory = {address: int(about.get("memory_limit") or 0) for address, about in workers.items()}
            if workers:
                self._seen = self._looked
        self.size = max(1, len(self._memory))
        self.largest_bytes = max(self._memory.values()) if self._memory and all(self._memory.values()) else None

    def check_usable(self) -> None:
        """Update the workers. Raises NoCluster where there has been none, or the scheduler was silent, for half a
        minute.
        """
        if time.monotonic() - self._looked < CLUSTER_LOOK_SECONDS:
            return
        self._update_workers()
        if time.monotonic() - self._seen > NO_WORKER_SECONDS:
            raise NoCluster(f"the Dask cluster at {self.address} has had no worker for {NO_WORKER_SECONDS:.0f} s")

    def submit_task(self, func: Callable[..., Any], *args: Any, needed_bytes: int = 0) -> Future[Any]:
        """Compute ``func(*args)`` on the cluster and return a future; it has BrokenExecutor when the worker was killed
        or the scheduler is gone.
        """
        future: Future[Any] = Future()
        room = [address for address, memory in self._memory.items() if not memory or memory >= needed_bytes]
        only = {"workers": room} if 0 < len(room) < len(self._memory) else {}
        try:
            # Pure calls with equal arguments would share a result, and retries are the queue's: it counts attempts.
            remote = self._client.submit(func, *args, pure=False, retries=0, **only)
        except Exception as error:
            if self._client.status == "running":
                raise
            future.set_exception(BrokenExecutor(type(error).__name__))
            return future
        self._remote[future] = remote
        remote.add_done_callback(lambda done: self._forward_result(done, future))
        return future

    def _forward_result(self, remote: Any, future: Future[Any]) -> None:
        """Set the future to the result of the remote one."""
        self._remote.pop(future, None)
        if remote.status == "finished":
            future.set_result(remote.result())
        elif remote.status == "error" and type(remote.exception()).__name__ != "KilledWorker":
            future.set_exception(remote.exception())
        else:
            future.set_exception(BrokenExecutor(remote.status))

    def stop_task(self, future: Future[Any]) -> None:
        """Cancel a task; one that is being computed continues, and its result is ignored."""
        remote = self._remote.pop(future, None)
        if remote is not None:
            remote.cancel(force=True)

    def close(self) -> None:
        """Disconnect from the scheduler, which then forgets the tasks."""
        self._client.close()
