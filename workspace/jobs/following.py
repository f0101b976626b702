"""Waiting for runs: a worker is started for them, and another one where it dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ..errors import NoCluster, WorkspaceError
from ..store.disk import DISK_ERRORS
from ..store.runs import StoredRun, find_run
from ..store.workspace import Workspace
from .pool import IDLE_SECONDS
from .worker import DetachedProcess, start_worker, worker_log_path
from .worker_main import NO_CLUSTER_STATUS

POLL_SECONDS = 0.1
MAX_DEATHS = 3


class WorkerStarter:
    """Starter of a worker on first use, and again where it has ended, for callers that enter runs one after the other."""

    def __init__(self, directory: Path, jobs: int, idle: float) -> None:
        # Each process of a worker imports for seconds before its first task, so it stays for ``idle`` seconds without
        # tasks.
        self._start = partial(start_worker, directory, jobs, idle)
        self._worker: DetachedProcess | None = None

    def __call__(self) -> DetachedProcess:
        """Return a running worker, started if need be."""
        if self._worker is None or self._worker.poll() is not None:
            self._worker = self._start()
        return self._worker


def wait_for_runs(
    workspace: Workspace,
    run_ids: Sequence[int],
    jobs: int,
    report: Callable[[StoredRun], None] = lambda _: None,
    get_worker: Callable[[], DetachedProcess] | None = None,
) -> list[StoredRun]:
    """Wait for runs to end, with one worker that is started for them, and return them.

    report: called with the first run that has not ended, again and again
    get_worker: function that returns a running worker; by default one that starts a new worker

    Raises NoCluster, and WorkspaceError when three workers in a row die without ending a task, or the disk fails.
    """
    get_worker = get_worker or WorkerStarter(workspace.directory, jobs, IDLE_SECONDS)
    worker = get_worker()
    done, deaths = 0, 0
    while True:
        runs = [find_run(workspace, run_id) for run_id in run_ids]
        going_on = [run for run in runs if not run.state.is_final]
        if not going_on:
            return runs
        report(going_on[0])
        if (trouble := DISK_ERRORS.get(worker.poll() or 0)) is not None:
            stopped = going_on[0].id
            raise WorkspaceError(f"run {stopped} stands still: {trouble}. Resume it with: sfumato resume {stopped}")
        if worker.poll() == NO_CLUSTER_STATUS:
            raise NoCluster(
                f"run {going_on[0].id} stands still: its Dask cluster cannot be used, {worker_log_path(workspace.directory)} says why. "
                f"Resume it with: sfumato resume {going_on[0].id}"
            )
        if worker.poll() is not None:
            so_far = sum(run.tasks_done for run in runs)
            # A worker that got something done is replaced for ever: only deaths without progress mean that it cannot
            # work.
            deaths = deaths + 1 if so_far == done else 1
            done = so_far
            if deaths == MAX_DEATHS:
                log = worker_log_path(workspace.directory)
                raise WorkspaceError(f"the worker of run {going_on[0].id} does not stay alive; see {log}")
            worker = get_worker()
        time.sleep(POLL_SECONDS)
