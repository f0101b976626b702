"""Seconds of ``sfumato examine`` on a run of 10,000 records, in a process of its own. Run as a script; prints a table.

    python tests/benchmarks/small_gate.py

Five variables, three of them known and two drawn by trees, one dataset.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace

RECORDS, RUNS = 10_000, 5
COMMAND = "import sys; from sfumato.tui.cli.main import main; sys.exit(main())"
KNOWN = ["area", "sex", "age"]
RECIPE = Recipe.from_table(
    {
        "variables": {
            "area": {"kind": "categorical", "role": "quasi_identifier"},
            "sex": {"kind": "binary", "role": "quasi_identifier"},
            "age": {"kind": "count", "role": "quasi_identifier"},
            "income": {"kind": "continuous", "role": "sensitive"},
            "visits": {"kind": "count", "role": "sensitive"},
        },
        "release": {"m": 1, "seed": 1},
        "synthesis": [
            {"target": "income", "method": "cart", "predictors": KNOWN},
            {"target": "visits", "method": "cart", "predictors": [*KNOWN, "income"]},
        ],
        "measure": [{"method": "utility.ecdf"}],
    }
)


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, RECORDS)
    return pd.DataFrame(
        {
            "area": rng.choice(list("abcdefgh"), RECORDS),
            "sex": rng.choice(["f", "m"], RECORDS),
            "age": age,
            "income": np.round(np.exp(7 + 0.01 * age + 0.5 * rng.normal(size=RECORDS)), -1),
            "visits": rng.poisson(3, RECORDS),
        }
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "workspace"
        environment = {**os.environ, "XDG_STATE_HOME": scratch, "PYTHONPYCACHEPREFIX": str(Path(scratch) / "compiled")}
        # An installed program is compiled once.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with Workspace.create(directory, PUBLIC) as workspace:
            enter_run(workspace, RECIPE, SourceFile("people.csv", b""), conform_to_schema(people(), RECIPE.schema))
            run_worker(directory, jobs=1, idle=0)
        clock, processor = [], []
        for _ in range(1 + RUNS):
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            arguments = [sys.executable, "-c", COMMAND, "examine", "last", "-w", str(directory)]
            subprocess.run(arguments, env=environment, stdout=subprocess.DEVNULL, check=False)
            clock.append(time.perf_counter() - start)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"{'the gate of 10,000 records':28} {'clock':>7} {'processor':>10}")
    print(f"{'':28} {statistics.median(clock[1:]):>6.2f}s {statistics.median(processor[1:]):>9.2f}s")


if __name__ == "__main__":
    main()
