"""Seconds, peak memory and disk of tasks that work part by part, and how they grow with the records.

    python tests/benchmarks/parts.py 1e5 1e6 1e7 [--dir DIR] [--tasks csv import check copy run gate files release verify]
        [--jobs 2] [--measures ecdf propensity identification]

A table of five variables is written part by part and one dataset is made: fit and draw of a linear regression,
and measures of what was drawn; ``trees`` grows the trees of two steps and ``leaves`` draws from them. Each is a
process of its own, which reads the table from the store. Beside them stands DuckDB, which scans the same files: means,
two quantiles and a count by groups. ``csv`` writes the same people as text, ``import`` imports it into a workspace and
``check`` prepares a run of its plan there. Beside these stands ``copy``: DuckDB reads the CSV file and writes it as
Parquet. ``run`` carries the plan out, ``gate`` examines its release, ``files`` makes the public dataset as CSV and
Parquet, ``release`` writes it whole, which examines it again, and ``verify`` compares it with its manifests. ``--jobs``
is the number of processes that carry the plan out, 0 for this one, whose seconds of processor alone are printed, and
``--measures`` are those of the plan, by default all. An exponent of 1 is time in proportion to the records, of 0 is
memory that does not grow; it is that of the two largest tables.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.in_passes import draw_blocks, fit_in_passes, measure_in_passes
from sfumato.engine.methods.results import Fit
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.jobs.run_task import peak_memory_bytes
from sfumato.workspace.jobs.runs import enter_runs
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.drafts import PlanDraft
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.release.dossier import StoredParts
from sfumato.workspace.release.long_tables import iterate_dataset_bytes
from sfumato.workspace.release.tables import DatasetContext, released_levels
from sfumato.workspace.release.verification import verify_release
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.service.prepare import PreparedRun, prepare_plan
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.artefacts import write_record_blocks
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.stored_blocks import StoredBlocks
from sfumato.workspace.store.table_manifests import PART_ROWS
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import Workspace

RECIPE = Recipe.from_table(
    {
        "variables": {
            "group": {"kind": "categorical"},
            "region": {"kind": "categorical"},
            "age": {"kind": "continuous"},
            "income": {"kind": "continuous"},
            "visits": {"kind": "count"},
        },
        "release": {"m": 1, "seed": 3},
        "synthesis": [
            {
                "target": "income",
                "method": "linear_regression",
                "transform": "log",
                "predictors": ["group", "region", "age"],
                "prior": "scaled",
            }
        ],
        "measure": [
            {"method": "utility.ecdf"},
            {"method": "utility.summary", "variables": ["income", "visits"]},
            {"method": "utility.propensity"},
            {
                "method": "utility.interval_overlap",
                "means": ["income"],
                "quantiles": ["income"],
                "models": ["log(income) ~ group + region + age", "logit: income > 6 ~ group + age"],
            },
            {
                "method": "risk.identification",
                "known": ["group", "region", "visits"],
                "synthesised": ["income"],
                "radius": {"income": "5%"},
            },
            {
                "method": "risk.attribute",
                "known": ["group", "region", "visits"],
                "sensitive": ["income"],
                "radius": {"income": "5%"},
            },
        ],
    }
)
MEASURES = tuple(step.method.key.split(".")[1] for step in RECIPE.measures)
TREES = Recipe.from_table(
    {
        "variables": {name: {"kind": RECIPE.schema[name].kind.value} for name in RECIPE.schema.names},
        "release": {"m": 1, "seed": 3},
        "synthesis": [
            {"target": "visits", "method": "cart", "predictors": ["group", "region"], "minbucket": 160},
            {
                "target": "income",
                "method": "cart",
                "predictors": ["group", "region", "age", "visits"],
                "minbucket": 160,
            },
        ],
    }
)
TASKS = ("write", "fit", "draw", "trees", "leaves", *MEASURES, "duckdb", "csv", "import", "check", "copy",
         "run", "gate", "files", "release", "verify")  # fmt: skip
KEY = b"k" * 32
CHOSEN: dict[str, Any] = {"jobs": 0, "measures": MEASURES, "peak": 0}
"""Processes that carry out the plan, its measures, and the largest peak of a task."""
SCANS = (
    "SELECT avg(income), stddev(income), avg(visits) FROM {table}",
    "SELECT quantile_cont(income, [0.25, 0.75]) FROM {table}",
    'SELECT "group", region, visits, count(*) FROM {table} GROUP BY ALL',
)


def simulated_blocks(records: int) -> Iterator[Microdata]:
    """Yield a table of people block by block, each by a seed of its own."""
    regions = [f"region {i:02}" for i in range(50)]
    for number, first in enumerate(range(0, records, PART_ROWS)):
        n, rng = min(PART_ROWS, records - first), np.random.default_rng([7, number])
        group, region = rng.integers(0, 4, n), rng.integers(0, 50, n)
        age = rng.normal(50, 10, n)
        income = np.exp(1 + 0.2 * group + 0.01 * region + 0.01 * age + rng.normal(0, 0.3, n))
        frame = pd.DataFrame(
            {
                "group": pd.Categorical.from_codes(group, ["a", "b", "c", "d"]),
                "region": pd.Categorical.from_codes(region, regions),
                "age": age,
                "income": income,
                "visits": rng.poisson(3, n),
            }
        )
        yield Microdata(RECIPE.schema, frame)


def carry_out(task: str, tables: TableStore, known: dict[str, str]) -> dict[str, str]:
    """Carry out a task and return the hashes of the tables that it left, by name."""
    place = tables.directory.parent
    if task in FILE_TASKS:
        FILE_TASKS[task](place, int(known["records"]))
        return {}
    if task == "write":
        return {"table": tables.write_microdata_blocks(simulated_blocks(int(known["records"])))}
    blocks = StoredBlocks(tables, known["table"], RECIPE.schema, "confidential")
    if task == "fit":
        return {"fit": tables.write_arrays(fit_in_passes(RECIPE, 0, blocks, key=KEY).arrays)}
    if task == "draw":
        fits = [Fit(tables.read_arrays(known["fit"]))]
        return {"draw": tables.write_microdata_blocks(draw_blocks(RECIPE, 1, blocks, fits, key=KEY))}
    if task == "trees":
        with contextlib.ExitStack() as files:
            open_file = partial(_open_spool, files, tables)
            grown = [fit_in_passes(TREES, item, blocks, open_file=open_file, key=KEY).arrays for item in (0, 1)]
        return {f"tree {item}": tables.write_arrays(arrays) for item, arrays in enumerate(grown)}
    if task == "leaves":
        fits = [Fit(tables.read_arrays(known[f"tree {item}"])) for item in (0, 1)]
        return {"leaves": tables.write_microdata_blocks(draw_blocks(TREES, 1, blocks, fits, key=KEY))}
    if task in MEASURES:
        released = StoredBlocks(tables, known["draw"], RECIPE.schema, "synthetic")
        with contextlib.ExitStack() as files:
            found, _ = measure_in_passes(
                RECIPE, MEASURES.index(task), blocks, released, 1,
                open_file=partial(_open_spool, files, tables),
            )  # fmt: skip
            if found.record_blocks is not None:
                write_record_blocks(tables, found.record_blocks())
        return {}
    import duckdb

    files = [str(path) for path in tables.files_of(known["table"]) if path.suffix == ".parquet"]
    if tables.has_parts(known["table"]):
        files.remove(str(tables.path_of(tables.read_manifest(known["table"]).levels)))
    with duckdb.connect(":memory:", config={"threads": "1"}) as connection:
        for scan in SCANS:
            connection.execute(scan.format(table=f"read_parquet({files!r})")).fetchall()
    return {}


def _open_spool(files: contextlib.ExitStack, tables: TableStore) -> IO[bytes]:
    return files.enter_context(tables.open_spool())


def write_csv(place: Path, records: int) -> None:
    """Write the people as a CSV file."""
    for number, block in enumerate(simulated_blocks(records)):
        block.frame.to_csv(place / "people.csv", mode="a" if number else "w", header=not number, index=False)


def import_csv(place: Path, records: int) -> None:
    """Import the CSV file into a workspace."""
    assert import_file(place / "workspace", str(place / "people.csv"), "people").records == records


def check_plan(place: Path, _: int) -> None:
    """Prepare a run of a plan of the imported table."""
    with Workspace.open(place / "workspace") as workspace:
        prepare_people(workspace, place)


def prepare_people(workspace: Workspace, place: Path) -> PreparedRun:
    """Return a run of the plan of the imported table."""
    data = {"file": str(place / "people.csv")}
    table = RECIPE.to_table()
    asked = [step for step in table["measure"] if step["method"].split(".")[1] in CHOSEN["measures"]]
    toml = Recipe.from_table({**table, "measure": asked, "data": data}).to_toml()
    return prepare_plan(workspace, PlanDraft(1, 1, json.dumps(data), toml))


def run_plan(place: Path, _: int) -> None:
    """Carry out the plan of the imported table."""
    with Workspace.open(place / "workspace") as workspace:
        (run_id,) = enter_runs(workspace, [prepare_people(workspace, place)])
        run_worker(workspace.directory, jobs=CHOSEN["jobs"], idle=0)
        assert find_run(workspace, run_id).state.value == "done"
        # Processes of the pool end by themselves, so that the system says nothing of their peaks.
        (peak,) = workspace.connection.execute(
            "SELECT max(peak_bytes) FROM task WHERE run_id = ?", (run_id,)
        ).fetchone()
        CHOSEN["peak"] = max(CHOSEN["peak"], peak or 0)


def examine_run(place: Path, _: int) -> None:
    """Examine the release of the run."""
    with Workspace.open(place / "workspace") as workspace:
        policy = read_policy_of_workspace(workspace.directory)
        examine_release(workspace, plan_release(workspace, 1), policy)


def make_files(place: Path, _: int) -> None:
    """Make the public dataset in both forms."""
    with Workspace.open(place / "workspace") as workspace:
        plan = plan_release(workspace, 1)
        parts = StoredParts(workspace.tables, plan.tables, "")
        for form in ("csv", "parquet"):
            levels = released_levels(parts.iterate_all_released(), plan.left_out)
            context = DatasetContext(rng=np.random.default_rng(1), levels=levels)
            schema, released = plan.run.recipe.released_schema, partial(parts.iterate_released, 0)
            with (place / f"public.{form}").open("wb") as file:
                file.writelines(iterate_dataset_bytes(released, schema, plan.left_out, form, context, parts.open_spool))


def release_run(place: Path, _: int) -> None:
    """Write the release of the run."""
    with Workspace.open(place / "workspace") as workspace:
        write_run_release(workspace, 1, place / "out", reason="measured by a benchmark")


def verify_folder(place: Path, _: int) -> None:
    """Compare the release with its manifests."""
    assert not verify_release(place / "out").problems


def copy_csv(place: Path, _: int) -> None:
    """Let DuckDB read the CSV file and write it as Parquet."""
    import duckdb

    with duckdb.connect(":memory:", config={"threads": "1"}) as connection:
        source, target = place / "people.csv", place / "people.parquet"
        connection.execute(f"COPY (FROM read_csv('{source}')) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


FILE_TASKS = {
    "csv": write_csv, "import": import_csv, "check": check_plan, "copy": copy_csv, "run": run_plan,
    "gate": examine_run, "files": make_files, "release": release_run, "verify": verify_folder,
}  # fmt: skip


def measure_sizes(sizes: list[int], directory: Path, tasks: Sequence[str] = TASKS) -> None:
    """Print the figures of each task at each size."""
    found: dict[tuple[str, int], tuple[float, float]] = {}
    for records in sizes:
        place = directory / f"{records}"
        known = {"records": str(records)}
        for task in tasks:
            told = subprocess.run(
                [sys.executable, __file__, "--task", task, "--dir", str(place), "--known", json.dumps(known),
                 "--jobs", str(CHOSEN["jobs"]), "--measures", *CHOSEN["measures"]],
                check=True, stdout=subprocess.PIPE,
            )  # fmt: skip
            answer = json.loads(told.stdout)
            known |= answer["left"]
            found[task, records] = answer["seconds"], answer["peak"]
            print(
                f"{records:>11,} {task:14} {answer['seconds']:8.2f} s {answer['processor']:8.2f} s of processor "
                f"{answer['peak'] / 1e6:8.0f} MB",
                flush=True,
            )
        if "draw" in tasks:
            disk = sum(path.stat().st_size for path in (place / "tables").iterdir())
            said = f"{disk / 1e6:,.0f} MB, {disk / records:.1f} bytes a record"
            print(f"{records:>11,} disk of two tables {said}", flush=True)
        shutil.rmtree(place)
    if len(sizes) > 1:
        small, large = sizes[-2:]
        for task in tasks:
            slopes = [math.log(found[task, large][i] / found[task, small][i]) / math.log(large / small) for i in (0, 1)]
            grown = (found[task, large][1] - found[task, small][1]) / (large - small)
            print(
                f"{task:14} exponent of seconds {slopes[0]:5.2f}, of peak memory {slopes[1]:5.2f}, "
                f"{grown:.1f} bytes more a record"
            )


def main() -> None:
    """Measure all sizes, or carry out one task in this process and print what it took as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=lambda text: int(float(text)), default=[])
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=TASKS)
    parser.add_argument("--task")
    parser.add_argument("--known", type=json.loads, default={})
    parser.add_argument("--jobs", type=int, default=CHOSEN["jobs"])
    parser.add_argument("--measures", nargs="*", choices=MEASURES, default=MEASURES)
    given = parser.parse_args()
    CHOSEN.update(jobs=given.jobs, measures=given.measures)
    if given.task:
        given.dir.mkdir(parents=True, exist_ok=True)
        began, used = time.perf_counter(), time.process_time()
        left = carry_out(given.task, TableStore(given.dir / "tables"), given.known)
        used = time.process_time() - used
        peak = max(peak_memory_bytes(), CHOSEN["peak"])
        print(json.dumps({"left": left, "seconds": time.perf_counter() - began, "processor": used, "peak": peak}))
        return
    with tempfile.TemporaryDirectory(dir=given.dir) as directory:
        os.environ["XDG_STATE_HOME"] = directory
        measure_sizes(given.sizes or [10**5, 10**6, 10**7], Path(directory), given.tasks)


if __name__ == "__main__":
    main()
