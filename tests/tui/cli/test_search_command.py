"""``sfumato search``: progress as lines in a pipe and as one line on a terminal, and the object on standard output."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.tui.cli.search import _ProgressReport
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
Command = Callable[..., int]
LOOKS = 10
RECIPE = f"""
title = "people"
data = {{ file = "people.csv", holdout = 0.2 }}
release = {{ m = 1, seed = 3 }}
search = {{ looks = {LOOKS}, levers = {{ "synthesise besides" = [] }} }}

[variables]
age = {{ kind = "count", role = "quasi_identifier" }}
region = {{ kind = "categorical", role = "quasi_identifier" }}
sick = {{ kind = "binary", role = "sensitive" }}

[[synthesis]]
method = "cart"
target = "sick"
predictors = ["age", "region"]

[[measure]]
method = "utility.propensity"

[[measure]]
method = "risk.identification"
known = ["age", "region"]
synthesised = ["sick"]

[[threshold]]
value = "risk.identification.true_match_rate"
max = 0.2
"""


@pytest.fixture
def recipe(home: Path) -> str:
    """A plan that can be searched from, with its data beside it."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 1500),
            "region": rng.choice(["north", "south"], 1500),
            "sick": rng.choice(["no", "yes"], 1500),
        }
    )
    frame.to_csv("people.csv", index=False)
    Path("plan.toml").write_text(RECIPE, "utf-8")
    return "plan.toml"


@pytest.mark.usefixtures("in_process")
def test_a_search_says_each_look_in_a_pipe_and_what_is_best_and_left(
    recipe: str, sfumato: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sfumato("search", recipe, "--workspace", "w", "--jobs", "1", "--json") in (0, 1)
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["search"] == 1
    lines = [line for line in said.err.splitlines() if line.startswith("Look ")]
    numbers = [int(line.split()[1]) for line in lines]
    assert sorted(set(numbers)) == sorted(numbers), "each look has one line"
    assert len(lines) >= found["looked_at"]
    assert all(re.match(r"Look \d+ of \d+: .+", line) for line in lines)
    assert any("best so far: look " in line and "left" in line for line in lines)
    assert any("limit met; people found for certain" in line for line in lines)
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", said.err), "no control characters but the ends of lines"

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Workspace.open(Path("w")) as workspace:
        report = _ProgressReport(workspace, 1)
        report("run 1: 2 of 3 steps done")
        report("")
    line = capsys.readouterr().err
    assert line.startswith("\rsearch 1: ")
    assert "\n" not in line
    assert re.search(r"\r +\r$", line), "it is cleared at the end"
    assert sfumato("search", "1", "--workspace", "w", "--quiet") in (0, 1)
    assert capsys.readouterr().err == ""
