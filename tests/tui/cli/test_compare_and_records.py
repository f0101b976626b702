"""The commands ``compare`` and ``records``: what they print and write, what they refuse, and that values stay inside."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.execution.comparison import compare_rows
from sfumato.engine.methods.rows import Row, average_series
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.reporting.comparison import brief_difference_outcome, difference_outcome, outcome_counts_text
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]
Printed = pytest.CaptureFixture[str]


def carry_out(recipe: Path) -> None:
    """A run of a recipe in workspace w, in this process."""
    workspace = Workspace.create(Path("w"))
    prepare_run(find_recipe(str(recipe)), key=PUBLIC).enter(workspace)
    workspace.close()
    run_worker(Path("w").resolve(), idle=0)


@pytest.fixture
def two_runs(study: Path) -> None:
    """Two finished runs of the small study, the second with a poorer model, another limit and another risk."""
    carry_out(study)
    other = study.read_text().replace('predictors = ["region", "age", "visits"]', 'predictors = ["region"]')
    attribute = '[[measure]]\nmethod = "risk.attribute"\nradius = { visits = 1, cost = "20%", age = 10 }\n'
    Path("other.toml").write_text(f"{other.replace('max = 0.5', 'max = -1')}\n{attribute}")
    carry_out(Path("other.toml"))


def rows(draws: list[list[float]]) -> list[Row]:
    """Rows of one measure a list: the average and the datasets' values."""
    made = []
    for j, values in enumerate(draws):
        base = [
            Row("risk", "identification", "true_match_rate", str(j), "synthetic", d, None, v)
            for d, v in enumerate(values, 1)
        ]
        made += [average_series(base), *base]
    return made


def test_every_outcome_has_a_sign_and_words() -> None:
    first = rows([[1.0, 1.1], [1.0, 3.0], [1.0, 1.0], [2.0], [2.0, 2.1]])
    second = rows([[2.0, 2.1], [1.5, 3.5], [1.0, 1.0], [1.0], [1.0, 1.1]])
    found = compare_rows(first, second, lambda row: "low")
    assert [difference_outcome(row, (3, 5)) for row in found] == [
        "< run 3 better", "~ not distinguishable", "= equal", "> run 5 better, no interval", "> run 5 better",
    ]  # fmt: skip
    assert [brief_difference_outcome(row, (3, 5)) for row in found] == ["< run 3", "~", "=", "> run 5", "> run 5"]
    undirected = compare_rows(first, second, lambda row: "none")[0]
    assert difference_outcome(undirected, (3, 5)) == "* they differ"
    assert brief_difference_outcome(undirected, (3, 5)) == "*"
    assert outcome_counts_text([*found, found[0]], (3, 5)).startswith(
        "6 numbers: 2 < run 3 better, 1 ~ not distinguishable"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("two_runs")
def test_compare_prints_both_runs_and_writes_json(sfumato: Command, capsys: Printed) -> None:
    assert sfumato("compare", "1", "2", "--workspace", "w", "--json", "out.json") == 0
    out = capsys.readouterr().out
    assert "run 1 (Visits, m = 2, seed 3) beside run 2" in out
    assert "on the same 60 records of visits.csv" in out
    assert "Disclosure risk (cost ±5%, visits ±1)" in out
    assert "+ met" in out
    assert "x not met" in out
    assert "at most 50 % / -100 %" in out
    assert "Only run 2 has\n  Sensitive values disclosed (" in out
    assert "Only run 1 has" not in out
    found = json.loads(Path("out.json").read_text())
    assert [run["run"] for run in found["runs"]] == [1, 2]
    assert {row["level"] for row in found["rows"]} == {None, 0, 0.1}
    assert {row["value"] for row in found["only_second"]} == {"risk.attribute.risk", "risk.attribute.largest_risk"}
    for row in found["rows"]:
        if row["difference"] is not None:
            assert row["difference"] == pytest.approx(row["second"]["value"] - row["first"]["value"])


@pytest.mark.slow
@pytest.mark.usefixtures("two_runs")
def test_compare_refuses_what_cannot_be_compared(
    study: Path, visits_table: pd.DataFrame, sfumato: Command, capsys: Printed
) -> None:
    visits_table.head(50).to_csv("visits.csv", index=False)
    carry_out(study)
    for arguments, message in (
        (("1", "3"), "the runs are on different data: run 1: 60 records of visits.csv"),
        (("1", "9"), 'there is no run "9"'),
        (("1", "2", "--json", "nowhere/out.json"), 'there is no directory "nowhere"'),
        (("1",), "Missing argument"),
    ):
        assert sfumato("compare", *arguments, "--workspace", "w") == 2
        printed = capsys.readouterr()
        assert printed.err.startswith(f"sfumato: {'--json: ' * ('--json' in arguments)}{message}")
        assert (printed.err.count("\n"), printed.out) == (1, "")
    assert sfumato("compare", "1", "3", "--any-data", "--workspace", "w") == 0
    assert "on different data, 60 records of visits.csv and 50 records of visits.csv" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("two_runs")
def test_records_shows_numbers_and_drivers_but_no_values(
    visits_table: pd.DataFrame, sfumato: Command, capsys: Printed
) -> None:
    assert sfumato("records", "2", "--top", "60", "--json", "out.json", "--workspace", "w") == 0
    out = capsys.readouterr().out
    assert "run 2, measure[0] risk.identification" in out
    assert "The 60 of 60 records most at risk" in out
    assert "Values of the data are not shown" in out
    found = json.loads(Path("out.json").read_text())
    assert sorted(record["record"] for record in found["records"]) == list(range(1, 61))
    assert all("values" not in record for record in found["records"])
    for text in (out, Path("out.json").read_text()):
        words = set(text.replace(",", " ").split())
        assert not words & {"north", "south", "731954"}
    costs = {round(float(cost), 2) for cost in visits_table["cost"]}
    shown = {value for record in found["records"] for value in record["candidates_without"].values()}
    assert not shown & {cost for cost in costs if not (2 * cost).is_integer()}


@pytest.mark.slow
@pytest.mark.usefixtures("two_runs")
def test_values_are_shown_when_they_are_asked_for(
    visits_table: pd.DataFrame, sfumato: Command, capsys: Printed
) -> None:
    """The negative control of the test above."""
    assert sfumato("records", "2", "--top", "3", "--values", "--json", "out.json", "--workspace", "w") == 0
    out = capsys.readouterr().out
    assert "Values (confidential)" in out
    assert "north" in out or "south" in out
    assert stat.S_IMODE(Path("out.json").stat().st_mode) == 0o600
    for record in json.loads(Path("out.json").read_text())["records"]:
        own = visits_table.iloc[record["record"] - 1]
        assert record["values"] == {name: own[name] for name in ("region", "age", "visits", "cost")}


@pytest.mark.slow
@pytest.mark.usefixtures("two_runs")
def test_records_of_another_measure_and_of_one_dataset(sfumato: Command, capsys: Printed) -> None:
    carry_out(Path("recipe.toml"))
    assert sfumato("results", "--workspace", "w", "--json", "run.json") == 0
    rows = json.loads(Path("run.json").read_text())["rows"]
    capsys.readouterr()
    for draw in (1, 2):
        assert sfumato("records", "--draw", str(draw), "--top", "60", "--json", "-", "--workspace", "w") == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["draw"], found["datasets"], found["total"]) == (draw, 1, 60)
        total = sum(record["probability"] for record in found["records"])
        risks = {
            r["measure"]: r["value"]
            for r in rows
            if r["draw"] == draw and r["method"] == "identification" and r["level"] is None
        }
        # each record has the larger of two: matched by all that is known, and by the best choice of it
        assert total >= max(risks["expected_match_risk"], risks["largest_expected_match_risk"]) - 1e-6
        assert total <= risks["expected_match_risk"] + risks["largest_expected_match_risk"] + 1e-6
    assert sfumato("records", "2", "--measure", "attribute", "--workspace", "w") == 0
    out = capsys.readouterr().out
    assert "risk.attribute (visits ±1, cost ±20%, age ±10)" in out
    assert "only candidate" not in out


@pytest.mark.slow
@pytest.mark.usefixtures("two_runs")
def test_records_says_what_is_not_there(sfumato: Command, capsys: Printed) -> None:
    for arguments, message in (
        (
            ("1", "--measure", "risk.attribute"),
            'no measure "risk.attribute" with values of single records; there are measure[0] risk',
        ),
        (("1", "--draw", "3"), "run 1 has no dataset 3 measured by risk.identification; there are 1 to 2"),
        (("1", "--top", "0"), "Invalid value for '--top'"),
        (("7",), 'there is no run "7"'),
    ):
        assert sfumato("records", *arguments, "--workspace", "w") == 2
        printed = capsys.readouterr()
        assert printed.err.startswith(f"sfumato: {message}")
        assert (printed.err.count("\n"), printed.out) == (1, "")


def test_a_run_without_risks_of_records_says_so(study: Path, sfumato: Command, capsys: Printed) -> None:
    text = study.read_text().partition("[[measure]]")[0]
    study.write_text(f'{text}\n[[measure]]\nmethod = "utility.ecdf"\n')
    carry_out(study)
    assert sfumato("records", "--workspace", "w") == 2
    assert "keeps no values of single records" in capsys.readouterr().err


def test_the_costs_of_the_small_study_are_not_round(visits_table: pd.DataFrame) -> None:
    """What the test of hidden values relies on."""
    assert np.mean([not (2 * round(float(cost), 2)).is_integer() for cost in visits_table["cost"]]) > 0.9
