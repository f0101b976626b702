"""Process of a worker.

python -m sfumato.workspace.jobs.worker_main DIRECTORY [--jobs N] [--idle SECONDS] [--dask ADDRESS]
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sqlite3
from pathlib import Path
from types import FrameType

from ..errors import NoCluster
from ..process import forbid_core_dumps
from .pool import IDLE_SECONDS, THREAD_LIMITS, TaskPool, open_pool
from .settings import dask_address

NO_CLUSTER_STATUS = 69
"""Exit status of a worker whose Dask cluster cannot be used, or not any more (EX_UNAVAILABLE of sysexits.h); its log says why."""
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT)
log = logging.getLogger("sfumato.worker")


def run_worker_process(directory: Path, jobs: int, idle: float, dask: str = "", *, hang_up: bool = True) -> None:
    """Run a worker until it is idle, with signals that end it in good order.

    hang_up: whether the loss of its terminal ends it too

    Exits with one of disk.DISK_ERRORS where the disk fails, and with NO_CLUSTER_STATUS without a usable cluster.
    """
    forbid_core_dumps()
    for name in ENDING_SIGNALS:
        signal.signal(name, _on_terminate)
    signal.signal(signal.SIGHUP, _on_terminate if hang_up else signal.SIG_IGN)
    for limit in THREAD_LIMITS:
        os.environ.setdefault(limit, "1")
    os.environ["PYTHONSAFEPATH"] = "1"
    os.umask(0o077)
    try:
        # Before the imports of the worker: the first computing process imports for half a second, at the same time.
        with open_pool(jobs, dask) as opened:
            _work_with_pool(directory, idle, opened)
    except NoCluster as error:
        log.error("%s", error)
        raise SystemExit(NO_CLUSTER_STATUS) from None


def _work_with_pool(directory: Path, idle: float, opened: TaskPool) -> None:
    """Run a worker with this pool, and exit with the status of a disk error where the disk fails."""
    from ..store.disk import disk_error_message, exit_status_of
    from .worker import run_worker

    try:
        run_worker(directory, idle=idle, opened=opened)
    except (sqlite3.Error, OSError) as error:
        trouble = disk_error_message(error)
        if not trouble:
            raise
        log.error("%s", trouble)
        raise SystemExit(exit_status_of(trouble)) from None


def _on_terminate(number: int, frame: FrameType | None) -> None:
    """End the worker in good order, once."""
    for name in ENDING_SIGNALS:
        # A second signal must not interrupt the return of its tasks.
        signal.signal(name, signal.SIG_IGN)
    raise SystemExit(0)


def main() -> None:
    """Parse the command line and run a worker."""
    parser = argparse.ArgumentParser(prog="python -m sfumato.workspace.jobs.worker_main")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS)
    parser.add_argument("--dask", default=dask_address())
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    run_worker_process(arguments.directory, arguments.jobs, arguments.idle, arguments.dask, hang_up=False)


if __name__ == "__main__":
    main()
