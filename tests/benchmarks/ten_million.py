"""Every task's seconds and peak memory at 10^5, 10^6 and 10^7 records, and the exponents of growth. Run as a script; prints a table for each recipe.

    python tests/benchmarks/ten_million.py [--rows 100000 1000000] [--recipe regression mondrian] [--jobs 2]

A survey of five variables: 50 regions, sex, age, income, and visits to a doctor, of which a third have none. Each recipe runs in a workspace
of its own by the command ``sfumato run``, in processes of its own; what a task took is what the workspace recorded of it. ``said`` is how often what
it was expected to take in memory is what it took.
"""

from __future__ import annotations

import argparse
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from math import log
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.engine.data.blocks import row_blocks
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.task_costs import estimate_task_costs
from sfumato.workspace.store.database import DATABASE

ROWS = (100_000, 1_000_000, 10_000_000)
PIECE = 1_000_000
REGIONS = [f"region {i:02d}" for i in range(50)]

VARIABLES = """
[variables]
region = { kind = "categorical", role = "quasi_identifier" }
sex = { kind = "binary", role = "quasi_identifier" }
age = { kind = "count", role = "quasi_identifier", bounds = [18, 95] }
income = { kind = "continuous", role = "sensitive" }
visits = { kind = "count", role = "sensitive", bounds = [0, 60] }
"""


def step(target: str, method: str, *predictors: str) -> str:
    """Two datasets of which one variable is drawn."""
    named = ", ".join(f'"{name}"' for name in predictors)
    return f"""
[release]
m = 2
seed = 1

[[synthesis]]
target = "{target}"
method = "{method}"
predictors = [{named}]
"""


REGRESSION = step("income", "linear_regression", "region", "sex", "age") + 'prior = "scaled"\n'
MEASURES = {
    "ecdf": '[[measure]]\nmethod = "utility.ecdf"\n',
    "propensity": '[[measure]]\nmethod = "utility.propensity"\n',
    "identification": '[[measure]]\nmethod = "risk.identification"\nradius = { income = "5%" }\n',
    "attribute": '[[measure]]\nmethod = "risk.attribute"\nradius = { income = "5%" }\n',
}
STRONGEST = """
[[measure]]
method = "risk.bayesian_posterior"
guesses = "all"
records = 200
blocks = 1
leaders = 1
refits = 0
"""
RECIPES = {
    "regression": REGRESSION + MEASURES["ecdf"] + MEASURES["propensity"],
    "counts": step("visits", "zero_inflated_truncated_poisson", "region", "sex", "age") + MEASURES["ecdf"],
    "cart": """
[release]
m = 2
seed = 1

[[synthesis]]
target = "income"
method = "cart"
predictors = ["region", "sex", "age"]

[[synthesis]]
target = "visits"
method = "cart"
predictors = ["region", "sex", "age", "income"]
"""
    + MEASURES["ecdf"],
    "mondrian": """
[release]
seed = 1

[[anonymisation]]
method = "mondrian"
k = 5

[[measure]]
method = "risk.anonymity"

[[measure]]
method = "risk.uniqueness"

[[measure]]
method = "quality.rilm"

[[measure]]
method = "quality.non_suppressed"
"""
    + MEASURES["ecdf"],
    "identification": REGRESSION + MEASURES["identification"] + MEASURES["attribute"],
    "strongest": REGRESSION + STRONGEST,
    "strongest-counts": step("visits", "zero_inflated_truncated_poisson", "region", "sex") + STRONGEST,
    "strongest-levels": step("sex", "multinomial_logistic", "region", "age") + STRONGEST,
    "coefficients": REGRESSION
    + """
[[measure]]
method = "utility.regression_distance"
models = ["income ~ region + sex + age + visits", "logit: sex ~ region + age + income"]
""",
    "sweep": REGRESSION
    + MEASURES["identification"]
    + """
[[study]]
method = "studies.intruder_uncertainty"
variable = "age"
levels = [0.0, 0.01, 0.05, 0.10, 0.20]
""",
}


def write(path: Path, rows: int) -> None:
    """The survey as a Parquet file, made in pieces; the same records first whatever ``rows``."""
    schema = pa.schema(
        [
            ("region", pa.dictionary(pa.int32(), pa.string())),
            ("sex", pa.dictionary(pa.int32(), pa.string())),
            ("age", pa.int64()),
            ("income", pa.float64()),
            ("visits", pa.int64()),
        ]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for index, rows_of in enumerate(row_blocks(rows, 1, PIECE)):
            rng, n = np.random.default_rng([17, index]), rows_of.stop - rows_of.start
            region, sex = rng.integers(0, 50, PIECE)[:n], rng.integers(0, 2, PIECE)[:n]
            age = rng.integers(18, 96, PIECE)[:n]
            middle = 20_000 + 300 * (age - 18) + 2_000 * sex + 150 * region
            income = np.round(middle + rng.normal(0, 8_000, PIECE)[:n], 2)
            some = rng.random(PIECE)[:n] < 2 / 3
            visits = np.where(some, np.minimum(rng.poisson(np.exp(0.2 + 0.015 * age)), 60), 0)
            columns = [
                pa.DictionaryArray.from_arrays(region.astype(np.int32), REGIONS),
                pa.DictionaryArray.from_arrays(sex.astype(np.int32), ["female", "male"]),
                pa.array(age),
                pa.array(income),
                pa.array(visits),
            ]
            writer.write_table(pa.table(columns, schema=schema))


Taken = dict[str, tuple[float, float, float]]
"""Seconds, peak MB, and the expected MB over them (0: none was), by task."""


def measure_run(folder: Path, name: str, rows: int, jobs: int) -> tuple[Taken, str]:
    """What every task took, and the command that imports and waits; and how the run ended."""
    recipe = folder / f"{name}.toml"
    recipe.write_text(f'title = "{name}"\n[data]\nfile = "survey.parquet"\n{VARIABLES}{RECIPES[name]}')
    workspace = folder / f"workspace-{name}"
    sfumato = Path(sys.executable).with_name("sfumato")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    started = time.perf_counter()
    done = subprocess.Popen(
        [sfumato, "run", recipe, "--workspace", workspace, "--jobs", str(jobs), "--quiet", "--key", "public"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.stdout is not None
    said = done.stdout.read().decode()
    _, status, used = os.wait4(done.pid, 0)
    whole = time.perf_counter() - started
    processor = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    found: Taken = {}
    said_bytes = {
        cost.task.key: cost.memory for cost in estimate_task_costs(Recipe.from_toml(recipe.read_text()), rows)
    }
    if (workspace / DATABASE).exists():
        with sqlite3.connect(f"file:{workspace / DATABASE}?mode=ro", uri=True) as connection:
            found = {
                key: (seconds, (peak or 0) / 2**20, said_bytes.get(key, 0) / (peak or 1))
                for key, seconds, peak in connection.execute("SELECT key, seconds, peak_bytes FROM task ORDER BY id")
                if seconds is not None
            }
    found["whole command"] = whole, used.ru_maxrss / 1024, 0.0
    found["whole command, processor"] = processor, 0.0, 0.0
    lines = said.strip().splitlines() if os.waitstatus_to_exitcode(status) > 1 else []
    return found, lines[-1] if lines else ""


def exponent(small: tuple[int, float], large: tuple[int, float]) -> float:
    """b where time grows like n^b between two sizes."""
    return log(max(large[1], 1e-3) / max(small[1], 1e-3)) / log(large[0] / small[0])


def table(name: str, taken: dict[int, Taken]) -> None:
    """Print the tasks of a recipe: seconds and peak memory at each size, and the exponent between the last two."""
    sizes = sorted(taken)
    print(f"\n{name:32}" + "".join(f"{f'{n:,}: s':>16}{'MB':>8}{'said':>6}" for n in sizes) + f"{'exponent':>10}")
    for key in dict.fromkeys(key for of in taken.values() for key in of):
        cells = [taken[n].get(key) for n in sizes]
        shown = "".join(
            f"{'-':>16}{'-':>8}{'-':>6}" if cell is None else f"{cell[0]:16.2f}{cell[1]:8.0f}{cell[2]:6.2f}"
            for cell in cells
        )
        last = [(n, cell[0]) for n, cell in zip(sizes, cells, strict=True) if cell is not None][-2:]
        print(f"{key:32}{shown}" + (f"{exponent(*last):10.2f}" if len(last) == 2 else ""), flush=True)


def main() -> None:
    """Run the chosen recipes at the chosen sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--recipe", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = {rows: Path(scratch) / str(rows) for rows in chosen.rows}
        for rows, folder in folders.items():
            folder.mkdir()
            write(folder / "survey.parquet", rows)
        for name in chosen.recipe:
            taken = {}
            for rows, folder in folders.items():
                taken[rows], said = measure_run(folder, name, rows, chosen.jobs)
                if said:
                    print(f"{name} at {rows:,}: {said}", flush=True)
            table(name, taken)


if __name__ == "__main__":
    main()
