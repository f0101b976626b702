"""Waiting for runs: a worker is started for them, and another where it dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ..errors import NoCluster, WorkspaceError
from ..store.disk import DISK_ERRORS
from ..store.runs import Run, find_run
from ..store.workspace import Workspace
from .pool import IDLE_SECONDS
from .worker import Detached, start_worker, worker_log
from .worker_main import NO_CLUSTER

POLL_SECONDS = 0.1
DEATHS_AT_MOST = 3


class OneWorker:
    """A worker that is started when it is needed first, and again where it has ended since; for whoever enters runs one after the other.

    Each process of a worker imports for seconds before its first task, so it stays for ``idle`` seconds while nothing is to be done.
    """

    def __init__(self, directory: Path, jobs: int, idle: float) -> None:
        self._start = partial(start_worker, directory, jobs, idle)
        self._worker: Detached | None = None

    def __call__(self) -> Detached:
        if self._worker is None or self._worker.poll() is not None:
            self._worker = self._start()
        return self._worker


def until_ended(
    workspace: Workspace,
    run_ids: Sequence[int],
    jobs: int,
    tell: Callable[[Run], None] = lambda _: None,
    worker_of: Callable[[], Detached] | None = None,
) -> list[Run]:
    """Have one worker, by default a new one, and wait for every run to end; ``tell`` is given the first that has not, again and again.

    A worker that dies is replaced. Raises WorkspaceError when three in a row die without ending a task, or its disk fails, and NoCluster.
    """
    worker_of = worker_of or OneWorker(workspace.directory, jobs, IDLE_SECONDS)
    worker = worker_of()
    done, deaths = 0, 0
    while True:
        runs = [find_run(workspace, run_id) for run_id in run_ids]
        going_on = [run for run in runs if not run.state.ended]
        if not going_on:
            return runs
        tell(going_on[0])
        if (trouble := DISK_ERRORS.get(worker.poll() or 0)) is not None:
            stopped = going_on[0].id
            raise WorkspaceError(f"run {stopped} stands still: {trouble}. Go on with: sfumato resume {stopped}")
        if worker.poll() == NO_CLUSTER:
            raise NoCluster(
                f"run {going_on[0].id} stands still: its Dask cluster cannot be used, {worker_log(workspace.directory)} says why. "
                f"Go on with: sfumato resume {going_on[0].id}"
            )
        if worker.poll() is not None:
            so_far = sum(run.tasks_done for run in runs)
            deaths = deaths + 1 if so_far == done else 1
            done = so_far
            if deaths == DEATHS_AT_MOST:
                log = worker_log(workspace.directory)
                raise WorkspaceError(f"the worker of run {going_on[0].id} does not stay alive; see {log}")
            worker = worker_of()
        time.sleep(POLL_SECONDS)
