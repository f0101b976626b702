"""From an empty workspace to a release with keys alone, in a terminal of 80 by 24: the whole app, as somebody uses it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from terminals import APP, Pty, Terminal, Tmux, app_environment, kill_workers, tmux_is_here

from sfumato.workspace.store.keys import KEY_FILE, write_key

pytestmark = pytest.mark.slow

RECORDS, DATASETS = 60, 2
REASON = "a test of the way"
HERE = tmux_is_here()
DRIVERS = [
    pytest.param("pty", marks=[pytest.mark.sizes, pytest.mark.again] if HERE else []),
    *(["tmux"] if HERE else []),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with a small confidential file in it, and an empty one for the workspace."""
    rng = np.random.default_rng(5)
    columns = {
        "region": rng.integers(1, 4, RECORDS),
        "age": rng.integers(18, 90, RECORDS),
        "visits": rng.poisson(3, RECORDS),
        "income": np.round(np.exp(rng.normal(7, 0.4, RECORDS)), 2),
    }
    pd.DataFrame(columns).to_csv(tmp_path / "survey.csv", index=False)
    (tmp_path / "work").mkdir()
    write_key(
        tmp_path / "work" / KEY_FILE, bytes(range(32))
    )  # so that the release, and what is read of it, is the same
    return tmp_path


@pytest.fixture(params=DRIVERS)
def terminal(request: pytest.FixtureRequest, home: Path) -> Iterator[Terminal]:
    """The app on the empty workspace: in tmux, and again in a terminal of ours, which does where there is no tmux."""
    command, environment = [*APP, "--workspace", str(home / "work")], app_environment(home)
    opened = Pty(command, environment) if request.param == "pty" else Tmux(command, environment, home / "tmux")
    yield opened
    opened.close()
    kill_workers(home / "work")


def walk(at: Terminal, file: Path, release: Path) -> None:
    """The way, a paragraph a screen."""
    at.see("No projects yet").press("I")
    at.see("Import a file").type(str(file)).see("✓ enter accepts").press("enter")
    at.see("none unclear", "read as", "row 1").press("enter")

    at.see("Role of").press("escape")
    at.see(r"\[1 Data\]", r"visits +other +count").press("j", "j", "enter")
    at.see("Variable visits").see(r"\[count\]")
    at.press("down", "right", "right").see(r"\[sensitive\]").press("enter").see(r"visits +sensitive +count")
    at.press("j", "r", "s").see(r"income +sensitive +continuous")
    at.press("k", "k", "k", "space", "space", "r", "i").see(
        r"region +quasi-identifier +categorical", r"age +quasi-identifier +count"
    )

    at.press("2").see(r"\[2 Plan\]", "there is nothing to run yet", "drawn from").press("enter")
    at.see("Data and release").press(*["down"] * 6, "ctrl+u").type(str(DATASETS)).press("enter").see(f"m = {DATASETS}")
    add(at, "linear").type("inc").see("target +income").press("right", "down").type("region, age")
    at.see("predictors +region, age").press("enter").see("Draw", r"income +linear regression +region, age")
    add(at, "ecdf").see("utility.ecdf").press("enter").see("Plan: 2 steps", "Empirical distribution")
    add(at, "identif").see(r"say how near is[\s│]+a match").press("down", "down").type("income = 5%").press("enter")
    at.see("Plan: 3 steps", "Identification risk")
    add(at, "uncertain").see("variable: must be given").type("age").press("enter").see(
        "Plan: 4 steps", "Uncertainty of the intruder"
    )
    add(at, "threshold", "What the limit is for").press("enter").see("Enter a limit").type("0.9").press("enter")
    at.see("Limits", r"Largest gap between.*at most 90 %")
    add(at, "threshold", "What the limit is for").type("expmatch").press("enter").see(r"\[max\]", "lower is better")
    at.type("0.1").press("enter").see(r"People found on av.*at most 0\.1")
    at.press("R").see("Run this plan", f"{DATASETS} datasets, 2 measures, 1 study, 2 thresholds").press("y")

    at.see(r"\[3 Runs\]", "Run 1 started").see("✓ done", "✗ 1 of 2 not met")
    at.press("4").see(
        r"Leave\? +✗ NO: \d+ found",
        "3 checks block · then 2 to be judged",
        "people found by columns released",
        "✗ blocks +people",
    )
    at.press("T").see("WHAT IF", "threshold 1/2").press("down").see("threshold 2/2").press("ctrl+u").type("60").see(
        "all 2 thresholds are met"
    )
    at.press("q").see(r"\[Verdicts\]").press("]").see(r"\[Records\]", "probability").press("enter").see(
        "must be", "Narrowed most by"
    ).press("q")
    at.press("]").see(r"\[Numbers\]", "People found on av")
    at.press("/").type("true_match").press("enter").see("4 numbers · filter: true_match").press("enter")
    at.see("true match rate", "lower is better").press("q")
    at.press("]").see(r"less sure of.* age\?").press("right", "right").see(r"intruder is of age: 0\.")
    at.press("]").see(r"\[Diagnostics\]", "no convergence check")
    at.press("3", "m").see(r"\[Map\]", "not dominated")

    at.press("w").see("Release of run 1", "NO: 60 of 60 people can be found").press("w").see("Output folder").type(
        REASON
    ).press("tab")
    at.type(str(release)).press("enter").see("Release run 1 with").press("y").see("Run 1 released to", "Written to")
    at.press("q").see(r"\[Map\]").press("?").see("Keys of this place").press("/").type("audit log").press(
        "enter", "enter"
    )
    at.see("audit log is whole", "run released").press("q", "q").see("survey", "✗ 1 of 2 not met").press("q")


def add(at: Terminal, method: str, opens: str = "enter accepts") -> Terminal:
    """Open the form of a method that is found by a part of its name, or what else stands before it."""
    return at.press("a").see("Add a step", r"synthesis\.cart").press("/").type(method).press("enter").see(opens)


def test_the_way_from_an_empty_workspace_to_a_release(terminal: Terminal, home: Path) -> None:
    walk(terminal, home / "survey.csv", home / "out")
    assert terminal.ended
    confidential = pd.read_csv(home / "survey.csv")
    for number in range(1, DATASETS + 1):
        released = pd.read_csv(home / "out" / "public" / f"dataset-SYNTHETIC-{number:02}.csv")
        assert list(released.columns) == list(confidential.columns)
        assert sorted(released["visits"]) == sorted(confidential["visits"])
        assert not set(released["income"]) & set(confidential["income"])
    manifest = json.loads((home / "out" / "public" / "manifest.json").read_text())
    for file in manifest["files"]:
        assert hashlib.sha256((home / "out" / "public" / file["name"]).read_bytes()).hexdigest() == file["sha256"]
    assert json.loads((home / "out" / "internal" / "manifest.json").read_text())["verdicts"] == {
        "met": 1,
        "not met": 1,
        "undecided": 0,
        "not computed": 0,
    }
    assert REASON in audit(home, "list")
    assert "none changed" in audit(home, "verify")


def audit(home: Path, command: str) -> str:
    """What ``sfumato audit`` prints."""
    run = [*APP, "audit", command, "--workspace", str(home / "work")]
    return subprocess.run(run, env=app_environment(home), capture_output=True, text=True, check=True).stdout
