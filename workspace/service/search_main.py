"""Process of a search, for the app: it enters stage after stage and runs a worker at each.

python -m sfumato.workspace.service.search_main DIRECTORY SEARCH [--jobs N]
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

from sfumato.engine.errors import EngineError

from ..errors import WorkspaceError
from ..jobs.following import WorkerStarter, wait_for_runs
from ..jobs.worker import DetachedProcess, start_detached_module
from ..process import forbid_core_dumps
from ..store.runs import RunState
from ..store.workspace import Workspace
from .searching import IDLE_BETWEEN, advance_search

log = logging.getLogger("sfumato.search")


def start_search_process(directory: Path, search_id: int, jobs: int) -> DetachedProcess:
    """Start a search in a process that outlives this one. Raises NotYours and StrangeFile."""
    return start_detached_module(directory, "sfumato.workspace.service.search_main", jobs, str(search_id))


def run_search_to_end(directory: Path, search_id: int, jobs: int) -> None:
    """Enter the stages of a search one after the other, until it ends or a run of it is stopped.

    Raises what ``wait_for_runs`` raises.
    """
    with Workspace.open(directory) as workspace:
        worker_of = WorkerStarter(directory, jobs, IDLE_BETWEEN)
        while runs := advance_search(workspace, search_id):
            ended = wait_for_runs(workspace, runs, jobs, get_worker=worker_of)
            if any(run.state in (RunState.INTERRUPTED, RunState.CANCELLED) for run in ended):
                return


def main() -> None:
    """Parse the command line and carry the search out."""
    parser = argparse.ArgumentParser(prog="python -m sfumato.workspace.service.search_main")
    parser.add_argument("directory", type=Path)
    parser.add_argument("search", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    forbid_core_dumps()
    # Files of a workspace are its owner's alone.
    os.umask(0o077)
    try:
        run_search_to_end(arguments.directory, arguments.search, arguments.jobs)
    except (EngineError, WorkspaceError) as error:
        log.error("search %s: %s", arguments.search, error)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
