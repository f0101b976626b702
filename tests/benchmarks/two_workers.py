"""Seconds of a recipe of fifteen trees by one worker process and by two. Run as a script; prints a table.

    python tests/benchmarks/two_workers.py

Adult of the public data, each variable given those before it, one dataset and two measures. The longest fit takes two
fifths of all; handed out last, it runs alone. ``same`` says whether fits, rows and datasets are the same. On a machine
that others use, two workers share what is left: the lower lines compute from one worker's seconds a task how long two
would take in the recipe's order and in the order of the estimates.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from trees_of_table import recipe_of_trees

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import plan_tasks
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_diagnostics, read_result_rows

RUNS = 3


def time_workers(
    directory: Path, recipe: Recipe, data: Microdata, workers: int
) -> tuple[float, dict[str, float], object]:
    """Return the seconds, those of each task in the order in which they began, and all that the run found."""
    with Workspace.create(directory, PUBLIC) as workspace:
        run_id = enter_run(workspace, recipe, SourceFile("adult.csv", b""), data)
        start = time.perf_counter()
        run_worker(workspace.directory, jobs=workers, idle=0)
        seconds = time.perf_counter() - start
        begun = workspace.connection.execute(
            "SELECT key, seconds FROM task WHERE run_id = ? ORDER BY started", (run_id,)
        )
        tasks = dict(map(tuple, begun))
        found = (
            sorted(map(tuple, workspace.connection.execute("SELECT name, sha256 FROM artefact"))),
            read_diagnostics(workspace, run_id),
            read_result_rows(workspace, run_id),
        )
    return seconds, tasks, found


def seconds_of_two(recipe: Recipe, seconds: dict[str, float], order: list[str]) -> float:
    """Return when two workers are done who take the first ready task in this order."""
    needs, ends, free = {task.key: task.needs for task in plan_tasks(recipe)}, dict[str, float](), [0.0, 0.0]
    left = list(order)
    while left:
        now = min(free)
        ready = [key for key in left if all(ends.get(one, now + 1) <= now for one in needs[key])]
        at = free.index(now)
        if not ready:
            free[at] = min(end for end in ends.values() if end > now)
            continue
        left.remove(ready[0])
        free[at] = ends[ready[0]] = now + seconds[ready[0]]
    return max(ends.values())


def main() -> None:
    recipe, data = recipe_of_trees("adult", measure=[{"method": "utility.ecdf"}, {"method": "utility.propensity"}])
    wall: dict[int, list[float]] = {1: [], 2: []}
    found, each, order = [], [], []
    for _ in range(RUNS):
        for workers, took in wall.items():
            with tempfile.TemporaryDirectory() as scratch:
                own, tasks, results = time_workers(Path(scratch) / "workspace", recipe, data, workers)
            took.append(own)
            found.append(results)
            if workers == 1:
                each.append(tasks)
            order = list(tasks)
    one, two = (statistics.median(took) for took in wall.values())
    print(f"{'':26}{'one worker':>12} {'two workers':>12} {'times as fast':>14} {'same':>6}")
    print(f"{'on the clock':26}{one:>11.1f}s {two:>11.1f}s {one / two:>14.2f} {all(x == found[0] for x in found)!s:>6}")
    seconds = {key: statistics.median(tasks[key] for tasks in each) for key in order}
    alone = sum(seconds.values())
    for name, tried in (("in the recipe's order", [task.key for task in plan_tasks(recipe)]), ("longest first", order)):
        computed = seconds_of_two(recipe, seconds, tried)
        print(f"{name:26}{alone:>11.1f}s {computed:>11.1f}s {alone / computed:>14.2f}")
    print("began:", " ".join(order))


if __name__ == "__main__":
    main()
