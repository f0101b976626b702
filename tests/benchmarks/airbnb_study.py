"""Where the time of the whole Airbnb study goes: both syntheses, all measures, 16-level sweeps, two jobs.

    python tests/benchmarks/airbnb_study.py AB_NYC_2019.csv [--jobs 2] [--runs 1] [--part sample|cluster|all]

Each part is the shipped recipe ``airbnb`` with its companion, carried out by a worker process in a new workspace: the
sample of 10,000 without the cluster measure, with it, and all listings without it. Prints wall and task seconds by kind
of task, and the largest task's memory.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.jobs.worker import start_worker
from sfumato.workspace.recipes import RecipeFile, find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.runs import find_run, list_runs
from sfumato.workspace.store.workspace import Workspace


@dataclass(frozen=True)
class Part:
    """A variant of the study: whether it clusters, and whether it takes every listing."""

    name: str
    cluster: bool
    everything: bool


PARTS = {
    "sample": Part("10,000 listings, without clusters", cluster=False, everything=False),
    "cluster": Part("10,000 listings, with clusters", cluster=True, everything=False),
    "all": Part("all listings, without clusters", cluster=False, everything=True),
}


def varied(name: str, part: Part) -> RecipeFile:
    table = find_recipe(name).table
    kept = [m for m in table["measure"] if part.cluster or m["method"] != "utility.cluster"]
    published = [p for p in table.get("published", []) if part.cluster or "cluster" not in str(p)]
    data = {k: v for k, v in table["data"].items() if not (part.everything and k == "sample")}
    companions = {"companions": []} if "companions" in table else {}
    varied_table = {**table, "measure": kept, "published": published, "data": data, **companions}
    return RecipeFile(name, tomli_w.dumps(varied_table), None)


def carry_out(file: str, part: Part, jobs: int) -> tuple[float, dict[str, float], float]:
    """Wall seconds, task seconds by kind, and the largest task's GiB."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        workspace = Workspace.create(Path(folder) / "w", PUBLIC)
        for name in ("airbnb", "airbnb-cart"):
            prepare_run(varied(name, part), file, key=PUBLIC).enter(workspace)
        worker = start_worker(workspace.directory, jobs)
        while not all(run.state.is_final for run in list_runs(workspace)):
            time.sleep(0.1)
        wall = time.perf_counter() - started
        states = [find_run(workspace, run.id).state for run in list_runs(workspace)]
        assert all(state == "done" for state in states), states
        kinds: dict[str, float] = defaultdict(float)
        peak = 0
        for run in list_runs(workspace):
            steps = {"measure": run.recipe.measures, "study": run.recipe.studies, "fit": run.recipe.synthesis}
            for row in workspace.connection.execute(
                "SELECT kind, item, seconds, peak_bytes FROM task WHERE run_id = ?", (run.id,)
            ):
                step = steps.get(row["kind"], ())
                label = step[row["item"]].method.key if step else row["kind"]
                kinds[label] += row["seconds"]
                peak = max(peak, row["peak_bytes"] or 0)
        workspace.close()
        worker.wait(timeout=60)
        return wall, dict(kinds), peak / (1 << 30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--part", choices=list(PARTS), action="append")
    arguments = parser.parse_args()
    for name in arguments.part or PARTS:
        measured = [carry_out(arguments.file, PARTS[name], arguments.jobs) for _ in range(arguments.runs)]
        wall = statistics.median(wall for wall, _, _ in measured)
        _, kinds, peak = measured[0]
        print(f"{PARTS[name].name}: {wall:.1f} s wall with {arguments.jobs} jobs, largest task {peak:.2f} GiB")
        for kind, seconds in sorted(kinds.items(), key=lambda item: -item[1]):
            print(f"    {kind:45s} {seconds:8.1f} s of tasks")


if __name__ == "__main__":
    main()
