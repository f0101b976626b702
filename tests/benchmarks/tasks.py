"""What a task costs beyond its computation: a run of small tasks by one worker in this process. Prints a table."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

RECORDS = 200
DRAWS = 50
RECIPE = Recipe.from_table(
    {
        "variables": {"group": {"kind": "categorical"}, "income": {"kind": "continuous"}},
        "release": {"m": DRAWS, "seed": 1},
        "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["group"]}],
        "measure": [{"method": "utility.ecdf"}],
    }
)


def main() -> None:
    """Median of five runs, in milliseconds a task, and the same work without a workspace."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"group": rng.choice(list("abc"), RECORDS), "income": rng.normal(100, 10, RECORDS)})
    data = conform_to_schema(frame, RECIPE.schema)
    plain, stored, tasks = [], [], 0
    for _ in range(5):
        start = time.perf_counter()
        execute_run(RECIPE, data, key=PUBLIC)
        plain.append(time.perf_counter() - start)
        with tempfile.TemporaryDirectory() as scratch:
            workspace = Workspace.create(Path(scratch) / "workspace")
            run_id = enter_run(workspace, RECIPE, SourceFile("simulated.csv", b""), data)
            start = time.perf_counter()
            run_worker(workspace.directory, jobs=1, idle=0)
            stored.append(time.perf_counter() - start)
            run = find_run(workspace, run_id)
            tasks = run.tasks_total
            workspace.close()
    print(f"{'':24}{'ms a task':>12}   ({tasks} tasks, state {run.state})")
    for name, seconds in (("in memory", plain), ("through the workspace", stored)):
        print(f"{name:24}{1000 * float(np.median(seconds)) / tasks:12.2f}")


if __name__ == "__main__":
    main()
