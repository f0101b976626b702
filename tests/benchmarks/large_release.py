"""What comes after a run over a large table: seconds of processor and peak memory of each command. Run as a script; prints a table.

    python tests/benchmarks/large_release.py [--rows 1000000] [--format csv parquet stata] [--jobs 2]

The survey of ``ten_million.py`` with m = 2 datasets by linear regression, `utility.ecdf` and `risk.identification`. Every command runs in a process of
its own. Tasks of a run are done by workers: what they take ``ten_million.py`` prints, here of a run only its seconds say something.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ten_million import MEASURES, REGRESSION, VARIABLES, write

from sfumato.workspace.release.forms import writable_forms

THRESHOLD = '[[threshold]]\nvalue = "risk.identification.true_match_rate"\nmax = 0.9\n'
RECIPE = f'title = "Large survey"\n[data]\nfile = "survey.parquet"\n{VARIABLES}{REGRESSION}'


def taken(folder: Path, *arguments: str) -> None:
    """Print what a command takes, and its exit status where that is not 0: 1 is a gate that blocks."""
    command = [str(Path(sys.executable).with_name("sfumato")), *arguments, "--workspace", "workspace"]
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as done:
        assert done.stderr is not None
        said = done.stderr.read().decode().strip()
        _, status, used = os.wait4(done.pid, 0)
        done.returncode = os.waitstatus_to_exitcode(status)
    ended = f"  exit {done.returncode} {said[-200:]}" if done.returncode else ""
    shown = " ".join(arguments[:1] + tuple(one for one in arguments if one in writable_forms()))
    print(
        f"{shown:20}{used.ru_utime + used.ru_stime:10.1f}{time.perf_counter() - started:10.1f}{used.ru_maxrss / 1024:8.0f}{ended}",
        flush=True,
    )


def main() -> None:
    """One run, then each command on it; ``compare`` at the end, with the same recipe run once more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--format", nargs="+", default=["csv", "parquet", "stata"], choices=writable_forms())
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    jobs = ("--jobs", str(chosen.jobs), "--quiet")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write(folder / "survey.parquet", chosen.rows)
        measures = MEASURES["ecdf"] + MEASURES["identification"]
        (folder / "survey.toml").write_text(f"{RECIPE}{measures}{THRESHOLD}")
        print(f"{f'{chosen.rows:,} records':20}{'processor':>10}{'seconds':>10}{'MB':>8}")
        taken(folder, "run", "survey.toml", "--key", "public", *jobs)
        for command in ("results", "records", "doctor", "examine"):
            taken(folder, command, *(() if command == "doctor" else ("1",)))
        taken(folder, "report", "1", "-o", "report.html")
        for form in chosen.format:
            taken(folder, "release", "1", "-o", form, "--format", form, "--reason", "measured")
        taken(folder, "again", "1", *jobs)
        taken(folder, "compare", "1", "2")


if __name__ == "__main__":
    main()
