"""Peak memory and seconds of a 1 % sample of files of 10 columns, in memory and out of core, each in a process of its own: prints a table."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato.engine.data_source import DataSource
from sfumato.engine.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.workspace.ingest import limits
from sfumato.workspace.ingest.files import find_source, ingest

ROWS = (100_000, 1_000_000, 3_000_000)
TOWNS = ["Bath", "Ayr, Scotland", 'the "Wash"', "York", "Leeds"]
PIECE = 100_000


def write(path: Path, rows: int) -> None:
    """A file of five columns of numbers and five of categories, some of them quoted, some cells empty."""
    rng = np.random.default_rng(1)
    for first in range(0, rows, PIECE):
        frame = pd.DataFrame(
            {f"x{i}": np.round(rng.normal(50, 20, PIECE), 4) for i in range(3)}
            | {f"n{i}": rng.poisson(1000, PIECE) for i in range(2)}
            | {f"c{i}": rng.choice(TOWNS, PIECE) for i in range(5)}
        )
        frame.loc[rng.random(PIECE) < 0.05, "x0"] = np.nan
        frame.to_csv(path, mode="a", index=False, header=first == 0)


def sample(path: str, rows: int, share: str) -> None:
    """Read a sample where files above a share of the memory stay out of core; print peak memory, seconds and hash."""
    limits.LARGE_SHARE = float(share)
    kinds = {"x": Kind.CONTINUOUS, "n": Kind.COUNT, "c": Kind.CATEGORICAL}
    names = [f"{kind}{i}" for kind, count in (("x", 3), ("n", 2), ("c", 5)) for i in range(count)]
    schema = Schema(tuple(Variable(name, kinds[name[0]]) for name in names))
    data = DataSource(where="x1 > 0", sample=rows // 100, missing=MissingPolicy.DROP)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    found = ingest(find_source(path), data, schema, 1, key=b"k" * 32)
    seconds = time.perf_counter() - started
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, seconds, found.sha256)


def main() -> None:
    """Print a row for each size; fail where the two ways do not give the same records."""
    print(f"{'rows':>9}{'file MB':>9}{'in memory MB':>14}{'s':>7}{'out of core MB':>16}{'s':>7}")
    for rows in ROWS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.csv"
            write(path, rows)
            peaks, times, hashes = [], [], set()
            for share in ("1", "0"):
                command = [sys.executable, __file__, str(path), str(rows), share]
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                peak, seconds, found = done.stdout.split()
                peaks.append(int(peak) / 1024)
                times.append(float(seconds))
                hashes.add(found)
            assert len(hashes) == 1
            size = path.stat().st_size / 2**20
        print(f"{rows:>9,}{size:>9.0f}{peaks[0]:>14.0f}{times[0]:>7.1f}{peaks[1]:>16.0f}{times[1]:>7.1f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        sample(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main()
