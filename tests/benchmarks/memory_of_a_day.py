"""How the app's memory grows over a working day, screen by screen, after everything has been opened once.

    python tests/benchmarks/memory_of_a_day.py [--size 120x40] [--rounds 60] [--only WORD] [--workspace DIR]

Walks each place's keys so many rounds in a process of its own on a pseudo-terminal, waits until the app has been idle, and reads
its resident memory. In the first rounds it still fills stores that then stay as they are: what a whole day takes is what these rounds took, and for
the keys that are left what the second half of them took. The target: a day of 4,000 keys ends within 20 MB of where it began.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from pty_app import TABS, Terminal, take_own_keys

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace

DAY_KEYS, TARGET_MB = 4_000, 20.0
WARM_ROUNDS = 4
IDLE_SECONDS = 6.0
"""So long nobody presses a key before memory is read: what the app puts off until then is done."""
ESCAPE_QUIET = 0.25
"""A key that follows an escape sooner is taken for one that is held together with alt."""
PAUSE_SECONDS = 2.2
"""Between two rounds somebody reads what is shown."""
QUIET = 0.03
WALKS = {
    "records": (TABS["records"], *"jjjjjkkkkk", "enter", "j", "escape"),
    "map axis": (TABS["map"], "f4", *"income", "escape"),
    "results": (TABS["results"], *"jjjjj", "s", "b", "b", "slash", *"income", "escape", *"kkkkk"),
    "tabs": tuple(TABS.values()),
    "plan": ("2", "j", "enter", "escape", "j", "enter", "escape", "k", "k"),
    "runs": ("3", "space", "j", "space", "c", "escape", "space", "k", "space"),
    "dialogs": ("3", "question_mark", "escape", "ctrl+p", "escape", TABS["verdicts"], "T", "escape", "colon", "escape"),
    "projects": ("q", "enter") * 4,
}
"""What is done over and over. Sixty rounds of the last open a project and leave it 240 times."""
RECIPE = {
    "title": "Household survey",
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier"},
        "visits": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive"},
    },
    "release": {"m": 3, "seed": 7},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["region", "visits"]}],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "utility.summary"},
        {"method": "risk.identification", "radius": {"income": "5%"}},
    ],
    "study": [{"method": "studies.intruder_uncertainty", "variable": "visits", "levels": [0.0, 0.1, 0.2]}],
    "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.9}],
}


def build(directory: Path, records: int = 2_000) -> None:
    """Two finished runs of a small survey."""
    rng = np.random.default_rng(20)
    visits = rng.poisson(4, records)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "west"], records),
            "visits": visits,
            "income": np.exp(rng.normal(7 + 0.05 * visits, 0.4, records)),
        }
    )
    recipe = Recipe.from_table(RECIPE)
    with Workspace.create(directory, PUBLIC) as workspace:
        for _ in range(2):
            enter_run(
                workspace, recipe, SourceFile("survey.csv", b"simulated"), conform_to_schema(frame, recipe.schema)
            )
        run_worker(directory, idle=0)


def growth(workspace: Path, walk: tuple[str, ...], columns: int, lines: int, rounds: int) -> tuple[float, float, float]:
    """Megabytes before ``rounds`` of a walk, after half of them and at the end."""
    save_state(workspace, AppState(project=1, run=1, tab="runs"))
    terminal = Terminal.of_app(workspace, columns, lines)
    try:
        terminal.settle(1.5)
        for key in TABS.values():
            terminal.press(key)
        terminal.settle(1.0)
        _walk(terminal, walk, WARM_ROUNDS)
        found = [terminal.megabytes()]
        for part in (rounds // 2, rounds - rounds // 2):
            _walk(terminal, walk, part)
            found.append(terminal.megabytes())
        before, middle, after = found
        return before, middle, after
    finally:
        terminal.close()


def of_a_day(before: float, middle: float, after: float, keys: int) -> float:
    """Megabytes that a day takes, of which so many keys were pressed."""
    return after - before + (after - middle) / (keys / 2) * max(DAY_KEYS - keys, 0)


def _walk(terminal: Terminal, walk: tuple[str, ...], rounds: int) -> None:
    for _ in range(rounds):
        for key in walk:
            terminal.press(key, quiet=ESCAPE_QUIET if key == "escape" else QUIET)
        terminal.idle(PAUSE_SECONDS)
    end = time.monotonic() + IDLE_SECONDS
    while time.monotonic() < end:
        terminal.idle(0.5)


def main() -> None:
    """Measure every walk that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="120x40")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", default="", help="a walk")
    parser.add_argument("--workspace", type=Path, help="one that was built before")
    arguments = parser.parse_args()
    columns, lines = map(int, arguments.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        take_own_keys(Path(folder))
        workspace = Path(folder) / "workspace"
        shutil.copytree(arguments.workspace, workspace) if arguments.workspace else build(workspace)
        print(
            f"{arguments.size}, {arguments.rounds} rounds, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
        )
        worst = -1e9
        for name, walk in WALKS.items():
            if arguments.only in name:
                keys = arguments.rounds * len(walk)
                found = growth(workspace, walk, columns, lines, arguments.rounds)
                day = of_a_day(*found, keys)
                worst = max(worst, day)
                shown = " -> ".join(f"{one:.1f}" for one in found)
                print(f"{name:<10} {keys:>5} keys  {shown} MB  a day: {day:+.1f} MB", flush=True)
        print(
            f"a day of {DAY_KEYS:,} keys on the worst of them: {worst:+.1f} MB; target {TARGET_MB:.0f}: {'met' if worst <= TARGET_MB else 'NOT met'}"
        )


if __name__ == "__main__":
    sys.exit(main())
