"""Seconds in which a CSV file of 10^7 records of ten variables is imported, beside pyarrow and DuckDB. Run as a script.

    python tests/benchmarks/long_import.py [1e7] [--dir DIR] [--runs 3]

Each is a process of its own on one processor. ``import`` is that of the workspace, with the profile of each variable and
the hash of the file; ``pyarrow`` reads the file as a stream and writes it as Parquet, and ``duckdb`` copies it. The ratio
is to pyarrow, of medians.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

BLOCK = 1_000_000


def write_people(path: Path, records: int) -> None:
    """Write a file of people: four variables of few values, four counts and two numbers of money."""
    regions, rng = np.array([f"region {i:02}" for i in range(50)]), np.random.default_rng(7)
    for first in range(0, records, BLOCK):
        n = min(BLOCK, records - first)
        frame = pd.DataFrame(
            {
                "region": regions[rng.integers(0, 50, n)],
                "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
                "status": np.array(["single", "married", "widowed", "divorced"])[rng.integers(0, 4, n)],
                "tenure": np.array(["owned", "rented"])[rng.integers(0, 2, n)],
                "age": rng.integers(0, 100, n),
                "visits": rng.poisson(2, n),
                "rooms": rng.integers(1, 9, n),
                "children": rng.poisson(1, n),
                "income": np.round(np.exp(rng.normal(10, 0.6, n)), 2),
                "rent": np.round(np.exp(rng.normal(6, 0.4, n)), 2),
            }
        )
        frame.to_csv(path, mode="a", header=first == 0, index=False)


def import_into_workspace(source: Path, folder: Path) -> None:
    """Import the file into a new workspace."""
    from sfumato.workspace.service.importing import import_file

    import_file(folder / "workspace", str(source), "people")


def copy_by_pyarrow(source: Path, folder: Path) -> None:
    """Read the file as a stream and write it as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    pa.set_cpu_count(1)
    with (
        csv.open_csv(source) as stream,
        pq.ParquetWriter(folder / "a.parquet", stream.schema, compression="zstd") as to,
    ):
        for batch in stream:
            to.write_batch(batch)


def copy_by_duckdb(source: Path, folder: Path) -> None:
    """Let DuckDB copy the file as Parquet."""
    import duckdb

    with duckdb.connect(":memory:", config={"threads": "1"}) as connection:
        target = folder / "b.parquet"
        connection.execute(f"COPY (FROM read_csv('{source}')) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


WAYS: dict[str, Callable[[Path, Path], None]] = {
    "import": import_into_workspace,
    "pyarrow": copy_by_pyarrow,
    "duckdb": copy_by_duckdb,
}


def main() -> None:
    """Time each way in turn, some times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="?", type=float, default=1e7)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--way", choices=list(WAYS))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = chosen.dir or Path(scratch)
        source = place / "people.csv"
        if chosen.way:
            folder = Path(scratch)
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            start = time.perf_counter()
            WAYS[chosen.way](source, folder)
            print(time.perf_counter() - start)
            return
        if not source.exists():
            place.mkdir(parents=True, exist_ok=True)
            write_people(source, int(chosen.records))
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(chosen.runs):
            for way in WAYS:
                command = [sys.executable, __file__, "--way", way, "--dir", str(place)]
                ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                found[way].append(float(ended.stdout))
        shutil.rmtree(scratch, ignore_errors=True)
    medians = {way: statistics.median(seconds) for way, seconds in found.items()}
    print(f"{int(chosen.records):,} records     seconds  times pyarrow")
    for way, seconds in medians.items():
        print(f"{way:<22}{seconds:9.1f}{seconds / medians['pyarrow']:15.2f}")


if __name__ == "__main__":
    main()
