"""Many commands at once in one workspace: python tests/benchmarks/concurrent_commands.py [RUNS [MIXED]].

First RUNS times ``sfumato run`` (20), then MIXED commands of nine kinds (40), all started together. Printed are how each
ended, what was lost, and the longest wait for the right to write. Exit status 1 where one failed or something is missing.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

WAITS = "SFUMATO_BENCHMARK_WAITS"
"""Environment variable with the folder where each command leaves its longest wait."""
RECIPE = """title = "People"

[data]
file = "people.csv"

[variables]
age = {kind = "count", role = "quasi_identifier"}
visits = {kind = "count", role = "sensitive"}

[release]
m = 2
seed = 1

[[synthesis]]
target = "visits"
method = "linear_regression"
predictors = ["age"]

[[measure]]
method = "utility.ecdf"
"""
KINDS = ("import", "draft", "run", "results", "release", "examine", "delete", "report", "audit")
NEEDS_RUN = ("results", "release", "examine", "delete", "report")


@dataclass
class EndedCommand:
    """A command that has ended.

    words: the command
    status: its exit status
    output: what it printed
    seconds: how long it took
    """

    words: Sequence[str]
    status: int
    output: str
    seconds: float


def run_one_command() -> None:
    """Carry out the command of this process, and leave the longest time that it waited for the right to write."""
    from sfumato.tui.cli.main import main
    from sfumato.workspace.store import database

    longest, held, begin = 0.0, 0.0, database.begin_write

    def timed_begin(connection: sqlite3.Connection) -> None:
        nonlocal longest
        before = time.monotonic()
        try:
            begin(connection)
        finally:
            begun = time.monotonic()
            longest = max(longest, begun - before)

        def see_statement(statement: str) -> None:
            nonlocal held
            if statement.startswith(("COMMIT", "ROLLBACK")):
                held = max(held, time.monotonic() - begun)
                # The next one may end a transaction that only reads.
                connection.set_trace_callback(None)

        connection.set_trace_callback(see_statement)

    database.begin_write = timed_begin
    try:
        main()
    finally:
        Path(os.environ[WAITS], str(os.getpid())).write_text(f"{longest} {held}")


def run_together(commands: Sequence[Sequence[str]], directory: Path) -> list[EndedCommand]:
    """Start all commands at once in a directory, and return how each ended."""
    from sfumato.workspace.store import database

    # A version from before the patience has nothing to time.
    start = [sys.executable, __file__, "--one"] if hasattr(database, "begin_write") else ["sfumato"]
    begun = time.monotonic()
    running = []
    for number, words in enumerate(commands):
        with (directory / f"output-{number}").open("w") as output:
            running.append(
                subprocess.Popen(
                    [*start, *words], cwd=directory, stdout=output, stderr=output, stdin=subprocess.DEVNULL
                )
            )
    ended = dict[int, EndedCommand]()
    while len(ended) < len(commands):
        for number, process in enumerate(running):
            if number not in ended and process.poll() is not None:
                text = (directory / f"output-{number}").read_text("utf-8", "replace")
                ended[number] = EndedCommand(commands[number], process.returncode, text, time.monotonic() - begun)
        time.sleep(0.02)
    return [ended[number] for number in range(len(commands))]


def mixed_commands(number: int, runs: int) -> Iterator[list[str]]:
    """Yield so many commands of all kinds; each that needs a run has one for itself, so that none may refuse."""
    free = iter(range(1, runs + 1))
    kinds = [KINDS[i % len(KINDS)] for i in range(number)]
    for i, wanted in enumerate(kinds):
        run = str(next(free, 0)) if wanted in NEEDS_RUN else ""
        kind = ("import", "run", "audit")[i % 3] if run == "0" else wanted
        yield {
            "import": ["import", "people.csv", "--project", f"project {i}"],
            "draft": ["draft", "people.csv", "--known", "age", "--sensitive", "visits", "-o", f"draft-{i}.toml"],
            "run": ["run", "people.toml", "--seed", str(100 + i), "--jobs", "1", "--quiet"],
            "results": ["results", run],
            "release": ["release", run, "-o", f"out-{i}", "--reason", "a test of many commands at once"],
            "examine": ["examine", run],
            "delete": ["delete", run, "--yes"],
            "report": ["report", run, "-o", f"report-{i}.html"],
            "audit": ["audit", "list"],
        }[kind]


def has_succeeded(command: EndedCommand) -> bool:
    """Return whether a command did what it was asked for; examine ends with 1 where the gate blocks."""
    return command.status == 0 or (command.words[0] == "examine" and command.status == 1)


def count_acts(directory: Path) -> Counter[str]:
    """Return how often each act stands in the audit log."""
    from sfumato.workspace.audit import audit_rows
    from sfumato.workspace.store.workspace import Workspace

    with Workspace.open(directory, read_only=True) as workspace:
        return Counter(row.act for row in audit_rows(workspace.connection))


def print_part(title: str, ended: Sequence[EndedCommand]) -> int:
    """Print how commands ended, and return how many failed."""
    failed = [command for command in ended if not has_succeeded(command)]
    print(
        f"{title}: {len(ended) - len(failed)} of {len(ended)} succeeded; the last after {max(c.seconds for c in ended):.1f} s"
    )
    for command in failed:
        print(f"  {' '.join(command.words)}: {command.status}: {command.output.strip()[-200:]}")
    return len(failed)


def main(runs: int = 20, mixed: int = 40) -> int:
    """Run both parts, print what they show, and return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        waits = directory / "waits"
        waits.mkdir()
        os.environ |= {
            WAITS: str(waits),
            "XDG_STATE_HOME": str(directory / "state"),
            "SFUMATO_WORKSPACE": str(directory / "w"),
        }
        rng = np.random.default_rng(1)
        pd.DataFrame({"age": rng.integers(18, 80, 300), "visits": rng.poisson(3, 300)}).to_csv(
            directory / "people.csv", index=False
        )
        (directory / "people.toml").write_text(RECIPE)
        subprocess.run(["sfumato", "init", "w"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
        wrong = 0
        ended = run_together(
            [["run", "people.toml", "--seed", str(i), "--jobs", "1", "--quiet"] for i in range(runs)], directory
        )
        wrong += print_part(f"{runs} runs at once", ended)
        commands = list(mixed_commands(mixed, runs))
        ended += run_together(commands, directory)
        wrong += print_part(f"{mixed} mixed commands at once", ended[runs:])
        acts, kinds = count_acts(directory / "w"), Counter(words[0] for words in commands)
        expected = {
            "run entered": runs + kinds["run"],
            "run finished": runs + kinds["run"],
            "run deleted": kinds["delete"],
            "run released": kinds["release"],
            "report written": kinds["report"],
            "project made": 1 + kinds["import"],
        }
        lost = {act: (acts[act], number) for act, number in expected.items() if acts[act] != number}
        print(f"acts that the log lacks or has too often: {json.dumps(lost) if lost else 'none'}")
        verified = subprocess.run(
            ["sfumato", "audit", "verify"], cwd=directory, capture_output=True, text=True, check=False
        )
        print(f"audit verify: {verified.returncode} {(verified.stdout + verified.stderr).strip()[:300]}")
        timed = [[*map(float, path.read_text().split())] for path in waits.iterdir()] or [[float("nan")] * 2]
        longest, held = (max(column) for column in zip(*timed, strict=True))
        print(
            f"longest wait for the right to write: {longest:.2f} s; longest that one had it before its commit: {held:.2f} s"
        )
        return int(bool(wrong or lost or verified.returncode))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        sys.argv = ["sfumato", *sys.argv[2:]]
        run_one_command()
    else:
        sys.exit(main(*map(int, sys.argv[1:3])))
