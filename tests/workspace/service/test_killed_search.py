"""``sfumato search`` killed with SIGKILL at ten random moments, its worker too in half of them: the same finalists and the same released bytes.

The evidence is a search of the same plan in the same workspace that nobody disturbed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w
from prepared_tables import variables_of

from sfumato.workspace.service.searching import search_outcome
from sfumato.workspace.store.searches import stored_looks
from sfumato.workspace.store.workspace import Workspace

KILLS, RECORDS = 10, 3000
COMMAND = (sys.executable, "-P", "-c", "from sfumato.tui.cli.main import main; main()")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """The file of a plan whose releases keep the order of the records, so that their bytes can be compared."""
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, RECORDS)
    people = pd.DataFrame(
        {
            "age": age,
            "region": rng.choice(["north", "south", "east"], RECORDS),
            "income": np.round(np.exp(rng.normal(9 + age / 90, 0.5)), 0),
            "sick": rng.choice(["no", "yes"], RECORDS, p=[0.8, 0.2]),
        }
    )
    people.to_csv(tmp_path / "people.csv", index=False)
    table: dict[str, Any] = {
        "title": "people",
        "data": {"file": str(tmp_path / "people.csv"), "holdout": 0.2},
        "variables": variables_of(
            "age: count quasi_identifier",
            "region: categorical quasi_identifier",
            "income: continuous sensitive",
            "sick: binary sensitive",
        ),
        "release": {"m": 2, "seed": 3, "order": "original"},
        "synthesis": [
            {"method": "cart", "target": "income", "predictors": ["age", "region"], "smoothing": True},
            {"method": "cart", "target": "sick", "predictors": ["age", "region", "income"]},
        ],
        "measure": [
            {"method": "utility.propensity"},
            {"method": "risk.identification", "known": ["age", "region"], "synthesised": ["sick"]},
        ],
        "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.5}],
        "search": {"looks": 16},
    }
    path = tmp_path / "plan.toml"
    path.write_text(tomli_w.dumps(table))
    return path


def begun(workspace: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "search", *arguments, "-w", str(workspace), "--quiet"], stdout=subprocess.DEVNULL
    )


def workers(workspace: Workspace) -> list[int]:
    return [row[0] for row in workspace.connection.execute("SELECT pid FROM worker WHERE stopped IS NULL")]


def kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def search_results_text(workspace: Workspace, search: int, folder: Path) -> str:
    """The looks of a search with the hashes of their tables, its finalists, and the bytes of what it releases.

    It is released from a copy of the workspace: the gate holds what later searches find against what was released of the same people.
    """
    tables = [
        (look.number, look.reason, row[0], row[1])
        for look in stored_looks(workspace, search).values()
        for row in workspace.connection.execute(
            "SELECT name, sha256 FROM artefact WHERE run_id = ? ORDER BY name", (look.run_id,)
        )
    ]
    answer = search_outcome(workspace, search)
    finalists = [
        (one.label, one.is_passing, one.blocking_findings, one.search_utility, one.full_utility)
        for one in answer.finalists
    ]
    assert answer.has_ended
    assert answer.winner is not None
    target, copy = folder / f"release-{search}", folder / f"copy-{search}"
    subprocess.run(
        ["cp", "-r", str(workspace.directory), str(copy)], check=True
    )  # not by this process: SQLite's locks would go
    subprocess.run(
        [*COMMAND, "release", str(answer.winner.run_id), "-o", str(target), "-w", str(copy)],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "XDG_STATE_HOME": str(copy)},
    )
    shutil.rmtree(copy)
    released = {path.name: path.read_bytes().hex() for path in sorted((target / "public").rglob("*.csv"))}
    assert released
    return json.dumps([tables, finalists, released], default=str)


@pytest.mark.study
def test_a_search_that_is_killed_at_ten_random_moments_has_the_same_finalists_and_bytes(plan: Path, tmp_path: Path):
    directory, rng, kills, search = tmp_path / "workspace", random.Random(28), 0, 1
    start = time.monotonic()
    assert begun(directory, str(plan)).wait() == 0
    whole = time.monotonic() - start
    with Workspace.open(directory) as workspace:
        undisturbed = search_results_text(workspace, 1, tmp_path)
        while kills < KILLS:
            search += 1
            process = begun(directory, str(plan))
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(rng.uniform(0.0, whole / 3) if kills < KILLS else None)
                if process.poll() is None:
                    kill(process.pid, *(workers(workspace) if rng.random() < 0.5 else ()))
                    process.wait()
                    kills += 1
                    entered = workspace.connection.execute("SELECT max(id) FROM search").fetchone()[0] == search
                    process = begun(directory, *([str(search)] if entered else [str(plan)]))
            assert process.returncode == 0
            assert search_results_text(workspace, search, tmp_path) == undisturbed
        kill(*workers(workspace))
    print(f"{kills} kills in {search - 1} searches of {whole:.0f} s each")
