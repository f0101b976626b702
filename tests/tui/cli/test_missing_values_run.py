"""A file with missing ages and regions, kept as missing, from the command line to every measure."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.workspace.store.artefacts import read_released_dataset
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]
RECIPE = """
title = "Visits"

[data]
file = "people.csv"
missing = "keep"

[variables]
region = { kind = "categorical", role = "quasi_identifier", missing = ["?"] }
age = { kind = "count", role = "quasi_identifier" }
visits = { kind = "count", role = "sensitive" }
cost = { kind = "continuous", role = "sensitive" }

[release]
m = 4
seed = 3
order = "original"

[[synthesis]]
target = "age"
method = "cart"
predictors = ["region"]

[[synthesis]]
target = "visits"
method = "cart"
predictors = ["region", "age"]

[[synthesis]]
target = "cost"
method = "cart"
predictors = ["region", "age", "visits"]

[[measure]]
method = "utility.summary"

[[measure]]
method = "utility.ecdf"

[[measure]]
method = "utility.propensity"

[[measure]]
method = "utility.cluster"

[[measure]]
method = "utility.interval_overlap"
means = ["age", "cost"]
quantiles = ["age"]
models = ["log(cost) ~ region + age"]

[[measure]]
method = "risk.identification"
known = ["region", "age"]
radius = { age = 2, cost = "5%" }

[[measure]]
method = "risk.attribute"
known = ["region", "age"]
radius = { age = 2, cost = "5%" }

[[study]]
method = "studies.intruder_uncertainty"
variable = "age"
model = "relative"
levels = [0.0, 0.1]

[[threshold]]
value = "risk.identification.true_match_rate"
max = 0.5
"""


@pytest.fixture
def people(home: Path) -> pd.DataFrame:
    """Two hundred records; ages are missing for a tenth of the north and for half of the south."""
    rng = np.random.default_rng(8)
    region = rng.choice(["north", "south"], 200)
    age = pd.Series(rng.integers(18, 90, 200), dtype="Int64").mask(
        rng.random(200) < np.where(region == "north", 0.1, 0.5)
    )
    table = pd.DataFrame(
        {
            "region": np.where(rng.random(200) < 0.05, "?", region),
            "age": age,
            "visits": rng.poisson(3, 200),
            "cost": pd.Series(np.round(rng.lognormal(3, 1, 200), 2)).mask(rng.random(200) < 0.2),
        }
    )
    table.to_csv(home / "people.csv", index=False)
    (home / "recipe.toml").write_text(RECIPE, "utf-8")
    return table


def rows_of(path: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(Path(path).read_text())["rows"]
    return found


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_missing_values_go_from_the_file_into_every_measure_and_the_release(
    people: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("run", "recipe.toml", "--workspace", "w", "--jobs", "1", "--json", "out.json") == 0
    assert "not computed" not in capsys.readouterr().out
    rows = rows_of("out.json")
    assert all(row["status"] == "computed" or row["reason"] for row in rows)
    computed = {row["method"] for row in rows if row["status"] == "computed"}
    assert computed == {
        "summary", "ecdf", "propensity", "cluster", "interval_overlap", "identification", "attribute", "intruder_uncertainty"
    }  # fmt: skip
    share = {
        (row["dataset"], row["target"]): row["value"]
        for row in rows
        if row["measure"] == "share_missing" and row["draw"] is None
    }
    for name in ("age", "cost"):
        own = people[name].isna().mean()
        assert share["confidential", name] == pytest.approx(own)
        assert share["synthetic", name] == pytest.approx(own, abs=0.06)
    with contextlib.closing(Workspace.open(Path("w"))) as workspace:
        released = [read_released_dataset(workspace, 1, find_run(workspace, 1).recipe, draw) for draw in range(1, 5)]
    for region, expected in (("north", 0.1), ("south", 0.5)):
        rates = [
            data.missing_mask("age")[(data.column("region") == region).to_numpy()].mean() for data in released if data
        ]
        assert len(rates) == 4
        assert np.mean(rates) == pytest.approx(expected, abs=0.12)
    assert all((data.missing_mask("region") == (people["region"] == "?").to_numpy()).all() for data in released if data)

    assert sfumato("report", "1", "--workspace", "w", "-o", "report.html") == 0
    assert sfumato("release", "1", "--workspace", "w", "-o", "out", "--reason", "released for a test") == 0
    written = pd.read_csv("out/public/dataset-SYNTHETIC-01.csv", dtype="str")
    assert written["age"].dropna().str.fullmatch("[0-9]+").all()
    assert int(written["age"].isna().sum()) == int(released[0].missing_mask("age").sum()) if released[0] else False

    files = [arg for i in range(1, 5) for arg in ("--released", f"out/public/dataset-SYNTHETIC-0{i}.csv")]
    common = ("evaluate", "recipe.toml", "--original", "people.csv", *files, "--workspace", "e")
    assert sfumato(*common, "--json", "again.json", "--quiet") == 0
    same = [{k: row[k] for k in ("method", "measure", "target", "dataset", "value")} for row in rows_of("again.json") if row["method"] in ("summary", "identification", "attribute") and row["draw"] is None]  # fmt: skip
    assert all(any(one.items() <= row.items() for row in rows) for one in same)
    assert same


def test_what_needs_every_value_is_refused_before_anything_runs(
    people: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("recipe.toml").read_text()
    linear = 'target = "visits"\nmethod = "linear_regression"\npredictors = ["region", "age"]'
    text = text.replace('target = "visits"\nmethod = "cart"\npredictors = ["region", "age"]', linear)
    Path("recipe.toml").write_text(text)
    assert sfumato("run", "recipe.toml", "--workspace", "w") == 2
    lacking = int((people["region"] == "?").sum())
    assert f'synthesis[1].predictors[0]: {lacking} records have no "region"' in capsys.readouterr().err


def test_without_the_policy_the_file_is_refused(
    people: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """The negative control."""
    text = Path("recipe.toml").read_text()
    Path("recipe.toml").write_text(text.replace('missing = "keep"\n', ""))
    assert sfumato("run", "recipe.toml", "--workspace", "w") == 2
    assert 'missing = "keep"' in capsys.readouterr().err
