"""Waiting for runs: a worker is started for them, and another where it dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..errors import NoCluster, WorkspaceError
from ..store.disk import DISK_ERRORS
from ..store.runs import Run, find_run
from ..store.workspace import Workspace
from .worker import start_worker, worker_log
from .worker_main import NO_CLUSTER

POLL_SECONDS = 0.1
DEATHS_AT_MOST = 3


def until_ended(
    workspace: Workspace, run_ids: Sequence[int], jobs: int, tell: Callable[[Run], None] = lambda _: None
) -> list[Run]:
    """Start one worker and wait for every run to end; ``tell`` is given the first that has not, again and again.

    A worker that dies is replaced. Raises WorkspaceError when three in a row die without ending a task, or its disk fails, and NoCluster.
    """
    worker = start_worker(workspace.directory, jobs)
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
            worker = start_worker(workspace.directory, jobs)
        time.sleep(POLL_SECONDS)
