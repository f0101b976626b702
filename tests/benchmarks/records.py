"""Record-level output of large tables: python tests/benchmarks/records.py [RECORDS] [DATASETS].

Prints what opening, ranking, drivers and candidates cost, and how long the app's event loop stood still meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.app.app import SfumatoApp
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.records import find_candidates, find_risk_drivers, rank_records, record_measures

TICK, QUIET = 0.002, 0.3


def recipe(datasets: int) -> Recipe:
    return Recipe.from_table(
        {
            "title": "Large",
            "variables": {
                "region": {"kind": "categorical", "role": "quasi_identifier"},
                "sex": {"kind": "binary", "role": "quasi_identifier"},
                "visits": {"kind": "count", "role": "quasi_identifier"},
                "income": {"kind": "continuous", "role": "sensitive"},
            },
            "release": {"m": datasets, "seed": 1},
            "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["region", "visits"]}],
            "measure": [{"method": "risk.identification", "radius": {"income": "5%", "visits": 1}}],
        }
    )


def frame(records: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    visits = rng.poisson(6, records)
    income = np.exp(rng.normal(7 + 0.05 * visits, 0.4, records))
    regions = rng.choice([f"r{i}" for i in range(40)], records)
    return pd.DataFrame({"region": regions, "sex": rng.choice(["f", "m"], records), "visits": visits, "income": income})


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    print(f"{what:<50}{time.perf_counter() - start:>9.3f} s")


def on_the_workspace(workspace: Workspace) -> None:
    (measure,) = record_measures(workspace, 1)
    size = sum(workspace.tables.path_of(sha256).stat().st_size for sha256 in measure.draw_hashes.values())
    print(f"{'stored for the measure, all datasets':<50}{size / 2**20:>9.1f} MiB")
    with timed("open and rank, all datasets"):
        records = rank_records(workspace, 1, measure)
    with timed("drivers of the first 20"):
        find_risk_drivers(workspace, records, [line.record for line in records.lines(0, 20)])
    with timed("drivers of the first 50"):
        find_risk_drivers(workspace, records, [line.record for line in records.lines(0, 50)])
    with timed("candidates of one record in one dataset"):
        find_candidates(workspace, 1, measure, records.lines(0, 1)[0].record, 1)


async def standstill(app: SfumatoApp, action: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Seconds until no thread works any more, and the longest time for which the event loop did not turn."""
    turns = [time.perf_counter()]

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK)
            turns.append(time.perf_counter())

    ticking = asyncio.create_task(tick())
    await action()
    while turns[-1] - turns[0] < QUIET or not all(worker.is_finished for worker in app.workers):
        await asyncio.sleep(TICK)
    ticking.cancel()
    return turns[-1] - turns[0], max(float(np.diff(turns).max()) - TICK, 0.0)


async def in_the_app(directory: Path) -> None:
    app = SfumatoApp(directory)
    async with app.run_test(size=(120, 40)) as pilot:
        for what, key in (("project", "enter"), ("Records, first time", "6"), ("the next dataset", "]"),
                          ("average again", "["), ("a record", "enter")):  # fmt: skip
            seconds, still = await standstill(app, lambda key=key: pilot.press(key))
            print(f"app: {what:<45}{seconds:>9.3f} s, event loop stood still {1000 * still:>5.0f} ms at most")


def main(arguments: list[str]) -> None:
    records, datasets = (int(argument) for argument in [*arguments[1:], *["100000", "20"][len(arguments) - 1 :]])
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.create(Path(folder) / "workspace")
        plan = recipe(datasets)
        enter_run(workspace, plan, SourceFile("large.csv", b""), conform_to_schema(frame(records), plan.schema))
        with timed(f"the run: {records:,} records, {datasets} datasets"):
            run_worker(workspace.directory, idle=0)
        on_the_workspace(workspace)
        workspace.close()
        asyncio.run(in_the_app(workspace.directory))


if __name__ == "__main__":
    main(sys.argv)
