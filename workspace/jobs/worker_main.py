"""The worker as a process: starts the first that computes before anything else, since both import for half a second.

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
from .pool import IDLE_SECONDS, THREAD_LIMITS, Pool, pool
from .settings import dask_address

NO_CLUSTER = 69
"""Exit status of a worker whose Dask cluster cannot be used, or not any more (EX_UNAVAILABLE of sysexits.h); its log says why."""
ENDING = (signal.SIGTERM, signal.SIGINT)
log = logging.getLogger("sfumato.worker")


def serve(directory: Path, jobs: int, idle: float, dask: str = "", *, hang_up: bool = True) -> None:
    """Work as a process of its own: signals end it in good order, and a disk that fails with one of disk.DISK_ERRORS.

    ``hang_up`` says whether the loss of its terminal ends it too.
    """
    forbid_core_dumps()
    for name in ENDING:
        signal.signal(name, _terminated)
    signal.signal(signal.SIGHUP, _terminated if hang_up else signal.SIG_IGN)
    for limit in THREAD_LIMITS:
        os.environ.setdefault(limit, "1")
    os.environ["PYTHONSAFEPATH"] = "1"
    os.umask(0o077)
    try:
        with pool(jobs, dask) as opened:
            _work(directory, idle, opened)
    except NoCluster as error:
        log.error("%s", error)
        raise SystemExit(NO_CLUSTER) from None


def _work(directory: Path, idle: float, opened: Pool) -> None:
    from ..store.disk import disk_error, status_of
    from .worker import work

    try:
        work(directory, idle=idle, opened=opened)
    except (sqlite3.Error, OSError) as error:
        trouble = disk_error(error)
        if not trouble:
            raise
        log.error("%s", trouble)
        raise SystemExit(status_of(trouble)) from None


def _terminated(number: int, frame: FrameType | None) -> None:
    for name in ENDING:
        signal.signal(name, signal.SIG_IGN)
    raise SystemExit(0)


def main() -> None:
    """Parse the command line and work."""
    parser = argparse.ArgumentParser(prog="python -m sfumato.workspace.jobs.worker_main")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS)
    parser.add_argument("--dask", default=dask_address())
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    serve(arguments.directory, arguments.jobs, arguments.idle, arguments.dask, hang_up=False)


if __name__ == "__main__":
    main()
