"""The same run of a long table by one process, by two, and by a Dask cluster of two small workers, one of which is killed.

    python tests/benchmarks/parts_on_cluster.py [3e6] [--dir DIR] [--ways one two cluster killed]
        [--measures ecdf propensity identification]

The plan of ``parts.py`` is carried out in a workspace of its own in each way. The workers of the cluster have one thread
and 700 MB each; of the last way one is killed once a third of the tasks are done. It prints for each way its seconds, and
whether fits and datasets, numbers, findings of the gate and the files of the release are those of the first way.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parts import CHOSEN, KEY, MEASURES, prepare_people, write_csv

from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.jobs.runs import enter_runs
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

WAYS = ("one", "two", "cluster", "killed")
MEMORY = "700MB"
STRUCK: list[str] = []
"""Tasks that the killed worker was computing."""


@contextlib.contextmanager
def small_cluster() -> Iterator[Any]:
    """Start a cluster of two workers of one thread."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        memory_limit=MEMORY,
        dashboard_address=None,
        host="127.0.0.1",
        protocol="tcp://",
    ) as cluster:
        yield cluster


def kill_a_worker(directory: Path, run_id: int, cluster: Any) -> None:
    """Kill a worker of the cluster once a third of the tasks of the run are done."""
    with Workspace.open(directory) as own:
        run = find_run(own, run_id)
        while 3 * run.tasks_done < run.tasks_total and run.state.value in ("queued", "running"):
            time.sleep(0.05)
            run = find_run(own, run_id)
    # One that computes: it is killed in the middle of a task, which the cluster gives to the other.
    while not (busy := [one for one in cluster.workers.values() if _tasks_of(cluster, one)]):
        time.sleep(0.01)
    STRUCK.extend(_tasks_of(cluster, busy[0]))
    os.kill(busy[0].pid, signal.SIGKILL)


def _tasks_of(cluster: Any, nanny: Any) -> list[str]:
    """Return the tasks that a worker of the cluster computes."""
    state = cluster.scheduler.workers.get(nanny.worker_address)
    return [] if state is None else [str(task.key) for task in state.processing]


def carry_out(way: str, directory: Path, run_id: int) -> None:
    """Carry out the run in one of the ways."""
    if way in ("one", "two"):
        run_worker(directory, jobs=0 if way == "one" else 2, idle=0)
        return
    with small_cluster() as cluster:
        killer = threading.Thread(target=kill_a_worker, args=(directory, run_id, cluster))
        if way == "killed":
            killer.start()
        run_worker(directory, idle=0, dask=cluster.scheduler_address)
        if way == "killed":
            killer.join()


def made_in(way: str, place: Path) -> dict[str, Any]:
    """Return what a way makes: hashes, numbers, findings and the hashes of the released datasets."""
    directory = place / way
    Workspace.create(directory, KEY).close()
    import_file(directory, str(place / "people.csv"), "people")
    with Workspace.open(directory) as workspace:
        (run_id,) = enter_runs(workspace, [prepare_people(workspace, place)])
        began = time.perf_counter()
        carry_out(way, directory, run_id)
        seconds = time.perf_counter() - began
        run = find_run(workspace, run_id)
        assert run.state.value == "done", run.error
        hashes = {
            row["name"]: row["sha256"] for row in workspace.connection.execute("SELECT name, sha256 FROM artefact")
        }
        examined = examine_release(
            workspace, plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory)
        )
        write_run_release(workspace, run_id, directory / "out", reason="measured by a benchmark")
        files = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((directory / "out").rglob("*"))
            if path.suffix in (".csv", ".parquet")
        }
        return {
            "seconds": seconds,
            "fits and datasets": hashes,
            "numbers": [
                (row.measure, row.target, row.dataset, row.draw, row.value)
                for row in read_result_rows(workspace, run_id)
            ],
            "findings": [examined.status, *((one.check, one.status, one.value) for one in examined.findings)],
            "released files": files,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="?", type=lambda text: int(float(text)), default=3 * 10**6)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    parser.add_argument("--measures", nargs="*", choices=MEASURES, default=MEASURES)
    given = parser.parse_args()
    CHOSEN.update(measures=given.measures)
    with tempfile.TemporaryDirectory(dir=given.dir) as scratch:
        place = Path(scratch)
        # Without a limit: by its estimate identification needs 0.7 GB, and such a worker has 80 % of 700 MB.
        os.environ |= {"XDG_STATE_HOME": str(place / "state"), "SFUMATO_MEMORY": "none"}
        write_csv(place, given.records)
        first: dict[str, Any] = {}
        for way in given.ways:
            found = made_in(way, place)
            first = first or found
            same = ", ".join(
                f"{len(found[part])} {part} {'equal' if found[part] == first[part] else 'DIFFERENT'}"
                for part in ("fits and datasets", "numbers", "findings", "released files")
            )
            struck = f"; killed in the middle of {len(STRUCK)} task" if way == "killed" else ""
            print(f"{given.records:,} {way:8} {found['seconds']:7.1f} s  {same}{struck}", flush=True)


if __name__ == "__main__":
    main()
