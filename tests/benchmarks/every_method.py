"""What every method takes of one survey: processor seconds, peak memory beyond its tables, and how both grow. Run as a script; prints a table.

    python tests/benchmarks/every_method.py [--rows 100000 1000000] [--method risk.singling_out ...] [--seconds 120] [--gigabytes 5] [--where]

The survey is that of ``ten_million.py``: five variables, of which two are released. Each method has a process of its own at each size. It reads
the tables as a worker does and computes its tasks there, once on a few thousand records beforehand, so that what is loaded at a first use does not
count. A task that takes longer, or a process that takes more, than the limits is said so; ``--where`` says in which line it was then. Bytes a record
are the peak's beyond what the tables take, at the largest size; beyond ``BYTES`` of them, or where seconds grow faster than with the power
``GROWTH`` of the records, the line ends with a sign.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from ten_million import VARIABLES, exponent, write

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import EngineError
from sfumato.engine.execution import tasks
from sfumato.engine.methods.protocols import MEASURES
from sfumato.engine.methods.registry import OWN, Method, registry
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.pool import THREAD_LIMITS
from sfumato.workspace.jobs.run_task import peak_memory_bytes, reset_peak_bytes
from sfumato.workspace.store.tables import TableStore

ROWS = (100_000, 1_000_000)
WARMED = 3_000
BYTES, GROWTH = 400, 1.3
M = 2
BINS = {"income": "20 equal count", "visits": "width 5", "age": "width 10"}
RADIUS = {"income": "5%"}
TREE = {"region": [[f"region {i:02d}", f"part {i // 10}", "*"] for i in range(50)]}
MODEL: dict[str, Any] = {
    "method": "dirichlet_multinomial",
    "target": ["income", "visits"],
    "predictors": ["region", "sex"],
    "bins": {name: BINS[name] for name in ("income", "visits")},
}
OF_THREE = ["region", "sex", "age"]
SETTINGS: dict[str, dict[str, Any]] = {
    "synthesis.cart": {"target": "income", "predictors": OF_THREE},
    "synthesis.ctgan": {"target": "income", "predictors": ["region"], "epochs": 1},
    "synthesis.dirichlet_multinomial": MODEL,
    "synthesis.dpmpm": {
        "target": ["region", "sex", "age", "income", "visits"],
        "bins": BINS,
        "classes": 10,
        "sweeps": 40,
        "burn_in": 20,
        "accept_unconverged": True,
    },
    "synthesis.linear_regression": {"target": "income", "predictors": OF_THREE, "prior": "scaled"},
    "synthesis.marginal_bootstrap": {"target": ["income", "visits"]},
    "synthesis.multinomial_logistic": {"target": "sex", "predictors": ["region", "age", "income"]},
    "synthesis.perturbed_gibbs": {**MODEL, "predictors": ["region"], "epsilon": 20.0},
    "synthesis.perturbed_imputation": {**MODEL, "predictors": ["region"], "epsilon": 20.0, "strengths": 2},
    "synthesis.sequential_logistic": {"target": "sex", "predictors": ["region", "age", "income"]},
    "synthesis.zero_inflated_truncated_poisson": {"target": "visits", "predictors": OF_THREE},
    "anonymisation.generalisation": {
        "levels": {"age": 1, "region": 1},
        "widths": {"age": [5, 10]},
        "hierarchies": TREE,
    },
    "anonymisation.microaggregation": {"quasi_identifiers": ["sex", "age"]},
    "anonymisation.p_sensitive": {"sensitive": ["visits"]},
    "utility.constraint_violations": {
        "rules": {"poor": "income < 15000 -> visits <= 50", "young": "not (age = 18 and visits > 40)"}
    },
    "utility.distribution_distance": {
        "given": ["region", "sex"],
        "bins": {"income": BINS["income"], "visits": BINS["visits"]},
    },
    "utility.interval_overlap": {
        "means": ["income"],
        "quantiles": ["visits"],
        "models": ["income ~ region + age + visits", "logit: visits > 0 ~ sex + age"],
    },
    "utility.regression_distance": {"models": ["income ~ region + age + visits", "logit: visits > 0 ~ sex + age"]},
    "risk.attribute": {"radius": RADIUS},
    "risk.attribute_inference": {"radius": RADIUS},
    "risk.correct_attribution": {"bins": {"income": BINS["income"]}},
    "risk.identification": {"radius": RADIUS},
    "risk.inference_attack": {"sensitive": "visits"},
    "risk.population_uniqueness": {"fraction": 0.1},
    "risk.record_linkage": {"radius": RADIUS},
    "studies.calibration": {"generators": 1, "subsets": 1, "ks": [5], "sensitive": "sex"},
    "studies.intruder_knowledge": {"radius": RADIUS},
    "studies.intruder_uncertainty": {"variable": "age", "levels": [0.1], "replicates": 1, "radius": RADIUS},
    "studies.minimisation": {"step": 1.0, "subsamples": 1},
    "studies.risk_utility": {"epsilons": [10.0], "bins": BINS, "models": ["income ~ age"]},
}
"""What a method is asked besides what it takes by itself."""
OF_CLASSES = frozenset({"risk.anonymity", "risk.uniqueness"})
"""Measures that are given a table of classes instead of synthesised values, besides those of quality."""


def recipe_for(method: Method) -> Recipe:
    """A recipe with one step of the method, on the survey."""
    step = {**SETTINGS.get(method.key, {}), "method": method.key}
    table: dict[str, Any] = {"title": method.title, **tomllib.loads(VARIABLES), "release": {"m": M}}
    if method.family == "synthesis":
        table["synthesis"] = [step]
    elif method.family == "anonymisation":
        table |= {"release": {}, "anonymisation": [step]}
    elif method.family == "studies":
        table["study"] = [step]
    else:
        table["measure"] = [step]
        if method.measurement.controls:
            table["data"] = {"holdout": 0.2}
        if method.uses_release_models:
            table["synthesis"] = [MODEL]
        if given_classes(method):
            table |= {"release": {}, "anonymisation": [{"method": "mondrian", "k": 5}]}
    if not {"synthesis", "anonymisation"} & table.keys():
        table["release"]["released"] = ["income", "visits"]
    return Recipe.from_table(table)


def given_classes(method: Method) -> bool:
    """Whether a measure is given an anonymised table."""
    return method.family == "quality" or method.key in OF_CLASSES


def store(directory: Path, rows: int) -> None:
    """Keep what methods are given: the survey, controls, released datasets near its values, and a table of classes. Prints their hashes."""
    schema = recipe_for(registry()["utility.ecdf"]).schema
    write(directory / "survey.parquet", rows + rows // 4)
    whole = conform_to_schema(pq.read_table(directory / "survey.parquet").to_pandas(), schema)
    tables = TableStore(directory)
    data = Microdata(schema, whole.frame.iloc[:rows].reset_index(drop=True))
    hashes = {"confidential": tables.write_microdata(data)}
    hashes["controls"] = tables.write_microdata(Microdata(schema, whole.frame.iloc[rows:].reset_index(drop=True)))
    for draw in range(1, M + 1):
        rng = np.random.default_rng([12, draw])
        income = np.round(data.column("income") * np.exp(0.1 * rng.normal(size=rows)), 2)
        visits = np.clip(data.column("visits") + rng.integers(-1, 2, rows), 0, 60)
        near = data.with_columns({"income": income, "visits": visits}, "synthetic")
        hashes[f"draw/{draw}"] = tables.write_microdata(near)
    found = tasks.anonymise_data(recipe_for(registry()["quality.rilm"]), data, key=PUBLIC)
    hashes |= {
        "anonymised": tables.write_microdata(found.data),
        "classes": tables.write_arrays({"classes": found.class_keys}),
    }
    print(json.dumps(hashes))


class Given:
    """The stored tables of a size, as tasks of a recipe read them."""

    def __init__(self, directory: Path, recipe: Recipe, method: Method, rows: int | None = None) -> None:
        tables, hashes = TableStore(directory), json.loads((directory / "hashes.json").read_text())
        schema, some = recipe.schema, slice(rows)
        self.recipe, self.method = recipe, method
        self.confidential = tables.read_microdata(hashes["confidential"], schema, "confidential").select_rows(some)
        if method.measurement.controls:
            controls = tables.read_microdata(hashes["controls"], schema, "confidential").select_rows(some)
            self.confidential = self.confidential.with_controls(controls)
        self.releases: list[Microdata] = []
        if recipe.anonymisation and method.family != "anonymisation":
            released = recipe.released_schema
            found = tables.read_microdata(hashes["anonymised"], released, recipe.origin)
            classes = tables.read_arrays(hashes["classes"])["classes"]
            self.releases = [tasks.as_released(recipe, found.frame.iloc[some], classes[some])]
        elif method.family not in ("synthesis", "anonymisation"):
            every = range(1, 2 if method.family in MEASURES and not method.measures_whole_release else M + 1)
            self.releases = [
                tables.read_microdata(hashes[f"draw/{d}"], schema, "synthetic").select_rows(some) for d in every
            ]

    def tasks(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """The name of each task that is measured, and what computes it."""
        recipe, data, releases = self.recipe, self.confidential, self.releases
        method = self.method
        if method.family == "synthesis":
            fits: list[Fit] = []
            yield "fit", lambda: fits.append(tasks.fit_model(recipe, 0, data, key=PUBLIC))
            yield "draw", lambda: tasks.draw_dataset(recipe, 1, data, fits, key=PUBLIC)
        elif method.family == "anonymisation":
            yield "anonymise", lambda: tasks.anonymise_data(recipe, data, key=PUBLIC)
        elif method.family == "studies":
            points = recipe.studies[0].spec.grid()
            for name, point in {"first point": points[0], "last point": points[-1]}.items():
                yield name, lambda point=point: tasks.compute_study_point(recipe, 0, point, data, releases, key=PUBLIC)
        elif method.measures_whole_release:
            parts: list[Any] = []
            grid = recipe.measures[0].spec.grid()
            yield (
                "a block",
                lambda: parts.append(tasks.measure_block(recipe, 0, grid[0], data, releases, key=PUBLIC)),
            )
            yield "gather", lambda: tasks.gather_blocks(recipe, 0, data, releases, parts * len(grid))
        else:
            if method.measurement.confidential:
                yield "confidential", lambda: tasks.measure_dataset(recipe, 0, data, data, None, key=PUBLIC)
            yield "released", lambda: tasks.measure_dataset(recipe, 0, data, releases[0], 1, key=PUBLIC)


def computed(directory: Path, key: str, seconds: int, gigabytes: float) -> None:
    """Compute the tasks of a method on the stored tables; prints a line of JSON for each: seconds and bytes, or why not and where."""
    method = registry()[key]
    recipe = recipe_for(method)
    for _, compute in Given(directory, recipe, method, WARMED).tasks():
        with contextlib.suppress(Exception):
            compute()
    given = Given(directory, recipe, method)
    signal.signal(signal.SIGXCPU, too_long)
    resource.setrlimit(resource.RLIMIT_DATA, (int(gigabytes * 1e9),) * 2)
    for task, compute in given.tasks():
        gc.collect()
        pa.default_memory_pool().release_unused()
        ctypes.CDLL(None).malloc_trim(0)
        reset_peak_bytes()
        began, before = time.process_time(), peak_memory_bytes()
        resource.setrlimit(resource.RLIMIT_CPU, (int(began) + seconds + 1, resource.RLIM_INFINITY))
        line: dict[str, Any] = {"task": task}
        try:
            found = compute()
        except (MemoryError, TimeoutError, EngineError, ArithmeticError, ValueError) as error:
            at = [
                f"{Path(f.filename).name}:{f.lineno} {f.name}"
                for f in traceback.extract_tb(error.__traceback__)
                if "engine" in f.filename
            ]
            why = {MemoryError: f"more than {gigabytes:g} GB", TimeoutError: f"longer than {seconds} s"}
            print(
                json.dumps({**line, "why": why.get(type(error), f"{type(error).__name__}: {error}"), "where": at[-4:]}),
                flush=True,
            )
            return
        line |= {
            "seconds": time.process_time() - began,
            "bytes": peak_memory_bytes() - before,
            "not": not_computed(found),
        }
        print(json.dumps(line), flush=True)
        del found


def too_long(*_: object) -> None:
    """What a signal that the time is over does."""
    raise TimeoutError


def not_computed(found: object) -> str:
    """The reason, where all that a measure says is why it says nothing."""
    rows = found[1] if isinstance(found, tuple) else found
    reasons = [row.reason for row in rows if row.value is None] if isinstance(rows, list) else []
    return reasons[0] if reasons and len(reasons) == len(rows) else ""


Taken = dict[str, dict[str, Any]]
"""What a child said of each task."""


def child(*asked: str) -> list[dict[str, Any]]:
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, __file__, *asked], capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        found.append({"task": "", "why": f"ended with {done.returncode}: {last}", "where": []})
    return found


def table(key: str, taken: dict[int, Taken], where: bool) -> None:
    """Print a line for each task of a method."""
    sizes = sorted(taken)
    for task in dict.fromkeys(task for of in taken.values() for task in of):
        cells = [taken[n].get(task, {}) for n in sizes]
        shown, places = "", []
        for cell in cells:
            shown += (
                f"{cell['seconds']:9.2f}{cell['bytes'] / 1e6:8.0f}"
                if "seconds" in cell
                else f"{cell.get('why', '-'):>17}"
            )
            places += cell.get("where", []) if where else []
        done = [(n, cell) for n, cell in zip(sizes, cells, strict=True) if "seconds" in cell]
        last = ""
        if len(done) > 1:
            (m, small), (n, large) = done[-2:]
            record = large["bytes"] / n
            powers = [exponent((m, small[of]), (n, large[of])) for of in ("seconds", "bytes")]
            worse = record > BYTES or (powers[0] > GROWTH and large["seconds"] > 1)
            last = f"{record:10.0f}{powers[0]:7.2f}{powers[1]:7.2f}{' !' if worse else ''}"
        said = next((cell["not"] for cell in cells if cell.get("not")), "")
        print(f"{key:42}{task:13}{shown}{last}{'  not computed: ' + said if said else ''}", flush=True)
        for place in places:
            print(f"{'':55}{place}", flush=True)


def main() -> None:
    """Run the chosen methods at the chosen sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--method", nargs="+", default=[])
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--where", action="store_true")
    parser.add_argument("--tables", help="keep the tables here, or take those that are")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        directory, asked = Path(chosen.child[0]), chosen.child[1]
        store(directory, int(asked)) if asked.isdigit() else computed(
            directory, asked, chosen.seconds, chosen.gigabytes
        )
        return
    os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))
    heads = "".join(f"{f'{n:,}: s':>9}{'MB':>8}" for n in chosen.rows)
    print(f"{'method':42}{'task':13}{heads}{'B/record':>10}{'s ^':>7}{'B ^':>7}")
    with tempfile.TemporaryDirectory() as scratch:
        folders = {rows: Path(chosen.tables or scratch) / str(rows) for rows in chosen.rows}
        for rows, folder in folders.items():
            if not (folder / "hashes.json").exists():
                folder.mkdir(parents=True)
                (folder / "hashes.json").write_text(json.dumps(child("--child", str(folder), str(rows))[0]))
        for key in chosen.method or [key for key, method in registry().items() if method.package == OWN]:
            limits = ["--seconds", str(chosen.seconds), "--gigabytes", str(chosen.gigabytes)]
            found = {n: child("--child", str(folder), key, *limits) for n, folder in folders.items()}
            table(key, {n: {line["task"]: line for line in lines} for n, lines in found.items()}, chosen.where)


if __name__ == "__main__":
    main()
