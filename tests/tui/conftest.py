"""What the tests of the command line share: a home of their own, a small study, and the command run in process."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.tui.cli.main import main
from sfumato.tui.session import importing
from sfumato.workspace.jobs import processes
from sfumato.workspace.jobs.worker import run_worker

RECIPE = """
title = "Visits"

[data]
file = "visits.csv"

[variables]
region = { kind = "categorical", role = "quasi_identifier" }
age = { kind = "count", role = "quasi_identifier" }
visits = { kind = "count", role = "sensitive", bounds = [0, 30] }
cost = { kind = "continuous", role = "sensitive" }

[release]
m = 2
seed = 3

[[synthesis]]
target = "visits"
method = "linear_regression"
predictors = ["region", "log1p(age)"]

[[synthesis]]
target = "cost"
method = "linear_regression"
transform = "log"
predictors = ["region", "age", "visits"]

[[measure]]
method = "risk.identification"
radius = { visits = 1, cost = "5%" }

[[study]]
method = "studies.intruder_uncertainty"
variable = "age"
levels = [0.0, 0.1]

[[threshold]]
value = "risk.identification.true_match_rate"
max = 0.5
"""


@pytest.fixture
def visits_recipe() -> str:
    """A small recipe: two linear steps, one risk, one sweep, one threshold that is met."""
    return RECIPE


@pytest.fixture
def visits_table() -> pd.DataFrame:
    """Sixty simulated records for the small recipe; one column holds a marker that must never be shown."""
    rng = np.random.default_rng(5)
    records = 60
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], records),
            "age": rng.integers(18, 90, records),
            "visits": rng.poisson(3, records),
            "cost": np.round(rng.lognormal(3, 1, records), 2),
            "same": ["x"] * records,
            "notes": ["731954"] * records,
        }
    )


@pytest.fixture
def known_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give workspaces that commands and the app make the same keys each time that the test runs, one after another.

    For tests that read what the gate answers to such a workspace; others give ``Workspace.create`` a key.
    """
    # The gate stops one in two hundred honest releases by chance: with random keys a test would fail as often.
    numbers = itertools.count()

    def known_key() -> bytes:
        return hashlib.sha256(f"key {next(numbers)}".encode()).digest()

    monkeypatch.setattr("sfumato.workspace.store.workspace.generate_key", known_key)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known_keys: None) -> Path:
    """An empty home directory, which is also the current one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SFUMATO_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def study(home: Path, visits_recipe: str, visits_table: pd.DataFrame) -> Path:
    """The small study's recipe, its data beside it."""
    visits_table.to_csv(home / "visits.csv", index=False)
    (home / "recipe.toml").write_text(visits_recipe, "utf-8")
    return home / "recipe.toml"


@pytest.fixture
def sfumato() -> Callable[..., int]:
    """The command: takes its arguments, returns its exit status."""

    def command(*arguments: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        return ended.value.code if isinstance(ended.value.code, int) else 0

    return command


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker would do for the commands of a test is done here: no process is started that imports everything again.

    For tests of what a command finds, prints or writes. How workers are started, shared and stopped is tried with real ones.
    """

    class Done:
        def poll(self) -> int:
            return 0

    def start(directory: Path, jobs: int, idle: float) -> Done:
        run_worker(directory.resolve(), idle=0)
        return Done()

    monkeypatch.setattr("sfumato.workspace.jobs.following.start_worker", start)


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call here what a command calls in another process, with question and answer as JSON, as they go between the two.

    For tests of what a command answers. Other tests start the process, and look at how it may end.
    """

    def call(function: Callable[..., object], *arguments: object, what: str, **_: object) -> object:
        asked = json.loads(json.dumps(processes.to_json(arguments)))
        found = processes._answer_call(function.__module__, function.__name__, asked)
        return processes._decode_answer(function, json.dumps(found), 0, what)

    for module in (processes, importing):
        monkeypatch.setattr(module, "call_in_process", call)
