"""Peak memory and seconds of processor of files of 10 columns, read some rows at a time and in one block, each in a process of its own: prints tables.

    python tests/benchmarks/larger_than_memory.py [--rows 100000 1000000] [--whole]

First a 1 % sample is read, then everything is imported into a workspace, then what Data shows is found; ``--whole`` shows beside it how it
would be if the file was held in memory and read in one block.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.recipe.data_source import DataSource
from sfumato.workspace.ingest import limits, text_columns
from sfumato.workspace.ingest.files import find_source, read_file_microdata
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.data_view import profile_stored_columns

ROWS = (100_000, 1_000_000, 10_000_000)
TOWNS = ["Bath", "Ayr, Scotland", 'the "Wash"', "York", "Leeds"]
PIECE = 100_000
KEY = b"k" * 32


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


def sample(path: Path, rows: int) -> str:
    """Read a sample; its hash."""
    kinds = {"x": Kind.CONTINUOUS, "n": Kind.COUNT, "c": Kind.CATEGORICAL}
    names = [f"{kind}{i}" for kind, count in (("x", 3), ("n", 2), ("c", 5)) for i in range(count)]
    schema = Schema(tuple(Variable(name, kinds[name[0]]) for name in names))
    data = DataSource(where="x1 > 0", sample=rows // 100, missing=MissingPolicy.DROP)
    return read_file_microdata(find_source(str(path)), data, schema, 1, key=KEY).sha256


def everything(path: Path, directory: Path) -> str:
    """Import the file into a workspace; the hash of the stored table."""
    import_file(directory, str(path), "large")
    with Workspace.open(directory, read_only=True) as workspace:
        return workspace.find_dataset(1).table_sha256


def profiles(directory: Path) -> str:
    """Find what Data shows of the imported file."""
    with Workspace.open(directory, read_only=True) as workspace:
        variables = tuple(workspace.find_dataset(1).schema)
    return str(len(profile_stored_columns(directory, 1, variables)))


def one(step: str, path: Path, rows: int, *, whole: bool) -> None:
    """Do one step; print what it found, peak memory in MB and seconds of processor."""
    if whole:
        limits.LARGE_FILE_BYTES = limits.machine_bytes()
        limits.LARGE_FILE_MEMORY_SHARE = 1.0
        text_columns.CELLS_PER_BLOCK = 1 << 40
    else:
        limits.LARGE_FILE_BYTES = 0
    directory = path.parent / f"workspace-{whole}"
    if step == "sample":
        found = sample(path, rows)
    else:
        found = everything(path, directory) if step == "import" else profiles(directory)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(found, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime)


def main() -> None:
    """Print a line for each size and way; fail where the two ways do not give the same records."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, nargs="+", default=ROWS)
    asked.add_argument("--whole", action="store_true")
    asked.add_argument("--one", nargs=4)
    said = asked.parse_args()
    if said.one:
        step, path, rows, whole = said.one
        one(step, Path(path), int(rows), whole=whole == "whole")
        return
    steps = ("sample", "import", "profiles")
    print(f"{'rows':>10}{'file MB':>9}  {'read':<7}" + "".join(f"{step:>12} MB{'s':>7}" for step in steps))
    for rows in said.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.csv"
            write(path, rows)
            size, hashes = path.stat().st_size / 2**20, set()
            for way in ("rows", "whole") if said.whole else ("rows",):
                line = f"{rows:>10,}{size:>9.0f}  {way:<7}"
                for step in steps:
                    command = [sys.executable, __file__, "--one", step, str(path), str(rows), way]
                    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
                    found, peak, seconds = done.stdout.split()
                    line += f"{float(peak):>15.0f}{float(seconds):>7.1f}"
                    if step == "sample":
                        hashes.add(found)
                print(line, flush=True)
            assert len(hashes) == 1


if __name__ == "__main__":
    main()
