"""``sfumato hierarchies``: shown, proposed, written and read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

Command = Callable[..., int]
PLAN = """
[data]
file = "people.csv"

[variables]
age = { kind = "count", role = "known" }           # the old word
work = { kind = "categorical", role = "quasi_identifier" }
pay = { kind = "continuous", role = "sensitive" }

[[anonymisation]]                                  # coarser
method = "generalisation"
levels = { age = 1, work = 1 }
"""


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    work = ["Private"] * 60 + ["State"] * 25 + ["Local"] * 12 + ["Never"] * 3
    pd.DataFrame({"age": np.arange(100) % 60 + 20, "work": work, "pay": np.arange(100) * 1.5}).to_csv(
        "people.csv", index=False
    )
    Path("plan.toml").write_text(PLAN)
    return tmp_path


@pytest.mark.slow
def test_the_command_shows_hides_writes_and_reads(
    people: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("hierarchies", "plan.toml", "work", "-o", "work.csv", "--workspace", "w") == 0
    out = capsys.readouterr().out
    assert "<10" in out
    assert "rare is learnt from the records" in out
    assert "as confidential as the data" in out
    assert sfumato("hierarchies", "plan.toml", "work", "--workspace", "w", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    records = {one["label"]: one["records"] for one in found["nodes"]}
    assert records["Private"] == 60
    assert records["Never"] is None, "it has fewer than the smallest cell"
    Path("plan.toml").write_text(PLAN + 'hierarchies = { work = "work.csv" }\n')
    assert sfumato("hierarchies", "plan.toml", "work", "--workspace", "w") == 0
    assert "as the plan says" in capsys.readouterr().out
    Path("argus.hrc").write_text("public\n@State\n@Local\nother\n@Private\n@Never\n")
    assert sfumato("hierarchies", "plan.toml", "work", "--from", "argus.hrc", "--workspace", "w") == 0
    assert "public" in capsys.readouterr().out
    assert sfumato("hierarchies", "plan.toml", "age", "--workspace", "w") == 0
    assert "in a recipe: widths = { age = [5, 10, 20] }" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("works",), 'did you mean "work"?'),
        (("work", "-o", "people.csv"), "exists already"),
        (("age", "--from", "people.csv"), "intervals have widths and no tree"),
        (("work", "--from", "nothing.csv"), "cannot be read"),
        (("work", "--from", "."), "not a tree"),
        (("work", "--from", "people.csv"), "is no tree: a line for each value"),
    ],
)
def test_what_the_command_cannot_do_is_said_in_one_line(
    people: Path, sfumato: Command, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert sfumato("hierarchies", "plan.toml", *arguments, "--workspace", "w") == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Private" not in said
    assert '"20"' not in said
