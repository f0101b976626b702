"""A search as a process, for the app: enters stage after stage, with a worker at each, until the search has ended or is stopped.

python -m sfumato.workspace.service.search_main DIRECTORY SEARCH [--jobs N]
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from pathlib import Path

from sfumato.engine.errors import EngineError

from ..core_dumps import forbid_core_dumps
from ..errors import WorkspaceError
from ..jobs.worker import Detached, start_detached, start_worker
from ..store.runs import RunState, find_run
from ..store.workspace import Workspace
from .searching import advance

POLL_SECONDS = 0.5
DEATHS_AT_MOST = 3
log = logging.getLogger("sfumato.search")


def start_search(directory: Path, search_id: int, jobs: int) -> Detached:
    """Carry a search out in a process that outlives this one. Raises NotYours and StrangeFile."""
    return start_detached(directory, "sfumato.workspace.service.search_main", jobs, str(search_id))


def carry_on(directory: Path, search_id: int, jobs: int) -> None:
    """Enter the stages of a search one after the other; it stops where a run of it was stopped, or its workers do not stay alive."""
    with Workspace.open(directory) as workspace:
        while runs := advance(workspace, search_id):
            worker, deaths = start_worker(directory, jobs), 0
            while unended := [run_id for run_id in runs if not find_run(workspace, run_id).state.ended]:
                time.sleep(POLL_SECONDS)
                if worker.poll() is not None and deaths < DEATHS_AT_MOST:
                    worker, deaths = start_worker(directory, jobs), deaths + 1
                elif worker.poll() is not None:
                    log.error("the worker of run %s does not stay alive", unended[0])
                    return
            if any(find_run(workspace, run_id).state in (RunState.INTERRUPTED, RunState.CANCELLED) for run_id in runs):
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
    os.umask(0o077)
    try:
        carry_on(arguments.directory, arguments.search, arguments.jobs)
    except (EngineError, WorkspaceError) as error:
        log.error("search %s: %s", arguments.search, error)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
