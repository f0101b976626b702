"""What one task of every method takes: seconds and peak memory, measured, and the rates that costs are told by. Run as a script; prints a table.

    python tests/benchmarks/task_rates.py [--method risk.anonymity ...] [--seconds 6] [--write] [--check 1000000]

Every method runs as a worker runs it, through a workspace, on the table that the contract tries it on, made longer and wider. Each task has a
process of its own. The table grows to a million records (``--most``) while a task takes less than ``--seconds``; there it is measured with twice the variables too. Memory grows on as
it did between the last two sizes. ``--write`` puts the rates into ``engine/methods/measured_rates.py``.
``--check`` holds the rates that are there against a table of so many records.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from runpy import run_path

import numpy as np
import pandas as pd

from sfumato.engine.contract import examples
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.execution.tasks import plan_tasks
from sfumato.engine.methods import measured_rates
from sfumato.engine.methods.registry import OWN, Method, registry
from sfumato.engine.methods.task_rates import RECORDS, VARIABLES, TaskRate
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.pool import THREAD_LIMITS
from sfumato.workspace.jobs.queue import TaskResult, claim_task, finish_task
from sfumato.workspace.jobs.run_task import TaskFailure, TaskInput, TaskReturned, read_task_input, run_task
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.settings import MEMORY_VARIABLE, NO_LIMIT
from sfumato.workspace.store.workspace import Workspace

SIZES = (10_000, 50_000, 250_000, 1_000_000, 4_000_000)
LEAST = 150e6
"""No process has less."""
SAMPLED = {"utility.cluster": 10_000}
"""Records beyond which a method looks at a sample of so many; it is measured up to there."""
TABLES = 16.0
"""Bytes of a value in the tables that such a method reads, whatever it looks at."""
STARTED = 55e6
"""Bytes that a process which a worker has started has more than one that was forked, as those here are."""
LOOKED_AT = ("fit/0", "draw/1", "measure/0/1", "measure/0/block/0", "study/0/0", "study/0/1")
"""Of a study the first two points: the first may be the one that is computed at once, such as no uncertainty at all."""
WIDER = 9
MODULE = Path(measured_rates.__file__)
BY_KIND = {"fit": "RATES", "anonymise": "RATES", "measure": "RATES", "study": "RATES", "draw": "DRAWS"}


def table_of(records: int, wide: bool, seed: int = 11) -> Microdata:
    """The contract's table with so many records; ``wide`` adds as many variables again."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["north", "south", "west"], records, p=[0.5, 0.3, 0.2])
    visits = rng.poisson(3, records)
    days = np.where(rng.random(records) < 0.3, 0, np.minimum(rng.poisson(np.exp(1 + 0.2 * visits)), 30))
    raw = pd.DataFrame(
        {
            "region": region,
            "sex": rng.choice(["0", "1"], records),
            "size": rng.choice(["small", "medium", "large"], records),
            "visits": visits,
            "days": days,
            "income": np.round(np.exp(4 + 0.3 * (region == "north") + 0.02 * days + 0.4 * rng.normal(size=records)), 2),
            "illness": rng.choice(["0", "1"], records, p=[0.8, 0.2]),
            "joined": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 700, records), unit="D"),
            "number": np.arange(records),
        }
    )
    more = [Variable(f"more{i}", (Kind.CATEGORICAL, Kind.COUNT, Kind.CONTINUOUS)[i % 3]) for i in range(WIDER * wide)]
    for i, variable in enumerate(more):
        values = rng.integers(0, 20, records)
        raw[variable.name] = (
            [f"level {v}" for v in values] if i % 3 == 0 else values + (i % 3 == 2) * rng.random(records)
        )
    return conform_to_schema(raw, Schema((*examples.SCHEMA, *more)))


def released_of(data: Microdata, recipe: Recipe, draw: int) -> Microdata:
    """Values near the confidential ones."""
    rng = np.random.default_rng([12, draw])
    days = np.clip(data.column("days") + rng.integers(-2, 3, len(data)), 0, 30)
    income = data.column("income") * np.exp(0.1 * rng.normal(size=len(data)))
    return data.with_columns({"days": days, "income": income}, "synthetic")


def recipe_for(method: Method, schema: Schema) -> Recipe:
    """The recipe that the contract tries the method with."""
    if method.family == "anonymisation":
        schema = Schema(tuple(v for v in schema if v.role is not Role.IDENTIFIER))
    return examples.example_recipe(method, schema)


def measure_rates(key: str, records: int, wide: bool, patience: float) -> dict[str, tuple[float, float]]:
    """The most seconds and bytes of each kind of task of a run with this method, without what only makes the release for it."""
    method = registry()[key]
    data = table_of(records, wide)
    recipe = recipe_for(method, data.schema)
    data = Microdata(recipe.schema, data.frame[list(recipe.schema.names)])
    if method.measurement.controls:
        data = data.with_controls(
            Microdata(data.schema, table_of(records // 4, wide, 13).frame[list(data.schema.names)])
        )
    given = (
        ()
        if recipe.makes_release
        else tuple(
            (SourceFile(f"released{draw}.csv", b""), released_of(data, recipe, draw)) for draw in range(1, recipe.m + 1)
        )
    )
    os.environ[MEMORY_VARIABLE] = NO_LIMIT
    tasks = {task.key: task for task in plan_tasks(recipe)}
    chosen = [name for name in LOOKED_AT if name in tasks]
    asked = set(chosen)
    for name in chosen:
        asked |= set(tasks[name].needs) | {need for before in tasks[name].needs for need in tasks[before].needs}
    found: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as scratch, Workspace.create(Path(scratch) / "workspace", b"") as workspace:
        enter_run(workspace, recipe, SourceFile("made.csv", b""), data, given)
        while (held := claim_task(workspace, "me", lambda waiting: waiting.key in asked)) is not None:
            needed = read_task_input(workspace, held)
            if held.key in chosen:
                done, processor = fresh(workspace.directory, needed, patience)
            else:
                done, processor = computed(workspace.directory, needed)
            if not isinstance(done, TaskResult):
                raise RuntimeError(getattr(done, "message", "given back"))
            finish_task(workspace, held, done)
            if held.key in chosen:
                most = found.get(held.kind, (0.0, 0.0))
                found[held.kind] = max(processor, most[0]), max(float(done.peak_bytes), most[1])
    wanted = {"synthesis": ("fit", "draw"), "anonymisation": ("anonymise",), "studies": ("study",)}
    return {kind: found[kind] for kind in wanted.get(method.family, ("measure",)) if kind in found}


def computed(directory: Path, needed: TaskInput) -> tuple[TaskResult | TaskFailure | TaskReturned, float]:
    """What a task leaves, and its processor seconds."""
    before = time.process_time()
    done = run_task(directory, needed, database=False)
    return done, time.process_time() - before


def fresh(directory: Path, needed: TaskInput, patience: float) -> tuple[TaskResult | TaskFailure | TaskReturned, float]:
    """A task computed in a process that has loaded every module and no table. Raises TimeoutError."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
        future = pool.submit(computed, directory, needed)
        try:
            return future.result(patience)
        except TimeoutError:
            for process in list((pool._processes or {}).values()):
                process.kill()
            raise


def alone(key: str, records: int, wide: bool, patience: float) -> dict[str, tuple[float, float]] | str:
    """``measured``, or why not."""
    try:
        return measure_rates(key, records, wide, patience)
    except TimeoutError:
        return f"more than {patience:.0f} s"
    except BrokenProcessPool:
        return "killed"
    except Exception as error:  # noqa: BLE001  (a line of the table says it)
        return f"{type(error).__name__}: {error}"


def rates_of(key: str, seconds: float, largest: int) -> Iterator[tuple[str, TaskRate | str, int]]:
    """The rate of each kind of task of a method, and by how many records."""
    taken: dict[int, dict[str, tuple[float, float]]] = {}
    for records in (size for size in SIZES if size <= min(largest, SAMPLED.get(key, largest))):
        found = alone(key, records, False, 60 * seconds)
        if isinstance(found, str):
            break
        taken[records] = found
        if len(taken) > 1 and 5 * _longest(taken) > seconds:
            break
    if len(taken) < 2:
        for records in (1_000, 4_000):
            found = alone(key, records, False, 100 * seconds)
            if isinstance(found, str):
                yield key, found, 0
                return
            taken[records] = found
    least, most = sorted(taken)[-2:]
    wide = alone(key, most, True, 200 * seconds)
    columns = len(recipe_for(registry()[key], table_of(50, False).schema).schema.names)
    for kind, (took, peak) in taken[most].items():
        before, small = taken[least][kind]
        other = wide[kind][1] if not isinstance(wide, str) and kind in wide else peak
        slope = max(0.0, (peak - small) / (most - least))
        cell = min(max(0.0, (other - peak) / most / WIDER), slope / columns)
        cell = TABLES if key in SAMPLED else cell
        record = max(0.0, slope - cell * columns)
        growth = growth_of(key)
        per_power = (took - before) / (most**growth - least**growth)
        times = max(per_power, 0.25 * took / most**growth)  # a first use loads modules
        fixed = STARTED + max(LEAST, peak - most * slope)
        yield kind, TaskRate(times * RECORDS**growth, fixed, record, cell, growth=growth), most


def growth_of(key: str) -> float:
    """The power of the records that a method's seconds grow with."""
    return measured_rates.GROWTH.get(key, 1.0)


def _longest(taken: dict[int, dict[str, tuple[float, float]]]) -> float:
    """Seconds beyond those that any task takes, of the longest at the largest size."""
    least, most = sorted(taken)[-2:]
    return max(took - taken[least][kind][0] for kind, (took, _) in taken[most].items())


def checked(key: str, records: int, seconds: float) -> None:
    """Print what rates say of a table of so many records, beside what was measured."""
    found = alone(key, records, False, 100 * seconds)
    if isinstance(found, str):
        print(f"{key:46} {found}", flush=True)
        return
    columns = len(recipe_for(registry()[key], table_of(50, False).schema).schema.names)
    for kind, (took, peak) in found.items():
        rate = replace(TaskRate(*getattr(measured_rates, BY_KIND[kind])[key]), growth=growth_of(key))
        said, time = rate.estimate_bytes(records, columns), rate.estimate_seconds(records, columns) or 0.0
        print(
            f"{key:40}{kind:>10}{took:9.2f} s, said {time:8.2f}{peak / 1e6:9.0f} MB, said {said / 1e6:7.0f}{said / (peak + STARTED):7.2f}",
            flush=True,
        )


def write(found: dict[str, dict[str, TaskRate]]) -> None:
    """Put rates into the module, beside those of methods that were not measured now."""
    text, now = MODULE.read_text("utf-8").partition("RATES: dict")[0], run_path(str(MODULE))
    said = {
        "RATES": '"""Of a fit, an anonymisation, one dataset measured, a block, or a point of a study."""',
        "DRAWS": '"""Of a dataset that is drawn."""',
    }
    for name, words in said.items():
        rates = {**now[name]}
        for key, rate in found[name].items():
            rates[key] = (
                float(f"{rate.seconds or 0:.2g}"),
                round(rate.fixed_bytes, -6),
                float(f"{rate.bytes_a_record:.3g}"),
                float(f"{rate.bytes_a_cell:.3g}"),
                *([SAMPLED[key]] if key in SAMPLED else []),
            )
        rows = "".join(f'    "{key}": {rates[key]!r},\n' for key in sorted(rates))
        text += f"{name}: dict[str, tuple[float, ...]] = {{\n{rows}}}\n{words}\n\n"
    MODULE.write_text(text.rstrip("\n") + "\n", "utf-8")


def main() -> None:
    """Measure the chosen methods."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", nargs="+", default=[])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--most", type=int, default=1_000_000, help="records of the largest table")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", type=int, default=0)
    chosen = parser.parse_args()
    os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))
    given = Path(__file__).parents[1] / "contract" / "examples.toml"
    examples.SETTINGS.update(tomllib.loads(given.read_text("utf-8")))
    keys = chosen.method or [key for key, method in registry().items() if method.package == OWN]
    multiprocessing.set_forkserver_preload(
        [*sorted({registry()[key].func.__module__ for key in registry()}), "sfumato.workspace.jobs.run_task"]
    )
    found: dict[str, dict[str, TaskRate]] = {"RATES": {}, "DRAWS": {}}
    print(
        f"{'method':40}{'task':>10}{'records':>9}{'s':>9}{'fixed MB':>10}{'B/record':>10}{'B/value':>9}   (s for {RECORDS:,} x {VARIABLES})"
    )
    for key in keys:
        if chosen.check:
            checked(key, chosen.check, chosen.seconds)
            continue
        for kind, rate, records in rates_of(key, chosen.seconds, chosen.most):
            if isinstance(rate, str):
                print(f"{key:40} {rate}", flush=True)
                continue
            print(
                f"{key:40}{kind:>10}{records:>9,}{rate.seconds or 0:9.4f}{rate.fixed_bytes / 1e6:10.0f}{rate.bytes_a_record:10.1f}{rate.bytes_a_cell:9.1f}",
                flush=True,
            )
            found[BY_KIND[kind]][key] = rate
            if chosen.write:
                write(found)


if __name__ == "__main__":
    main()
