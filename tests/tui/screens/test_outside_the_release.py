"""What the command line does, from the app: files of other tools, reports without a release, the doctor, companions."""

import shutil

import numpy as np
import pandas as pd
import pytest
from textual.widgets import Input

from sfumato.workspace.store.runs import companion_ids, find_run, list_runs
from sfumato.workspace.store.workspace import Workspace

RECIPE = """
title = "Visits"
[data]
file = "people.csv"
[variables]
age = { kind = "count", role = "quasi_identifier" }
cost = { kind = "continuous", role = "sensitive" }
[release]
m = 1
[[synthesis]]
target = "cost"
method = "linear_regression"
predictors = ["age"]
[[measure]]
method = "utility.ecdf"
[[threshold]]
value = "utility.ecdf.max_abs_difference"
target = "cost"
max = 0.5
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A recipe, the confidential file, and three releases that another tool made of it."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(20, 60, 50), "cost": rng.lognormal(3, 1, 50).round(2)})
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    for number in (1, 2, 10):
        frame.assign(cost=rng.lognormal(3, 1, 50).round(2)).to_csv(tmp_path / f"syn{number}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fill(seat, **values):
    names = [field.name for field in seat.app.screen._form_fields]
    for name, value in values.items():
        seat.app.screen.query_one(f"#field-{names.index(name)}", Input).value = value


@pytest.mark.slow
async def test_files_of_another_tool_are_scored_with_a_recipe(sit, empty_workspace, files, no_worker):
    async with sit(empty_workspace, "act:evaluate", size=(80, 24)) as seat:
        fill(seat, recipe="recipe.toml", original="people.csv", released="syn*.csv")
        await seat.press("shift", "enter")
        assert seat.app.notices[-1] == "Run 1 scores 3 files"
        assert "[3 Runs]" in seat.text
        with Workspace.open(empty_workspace, read_only=True) as reader:
            run = find_run(reader, 1)
        assert (run.recipe.m, run.recipe.released) == (3, ("cost",))
        assert len(no_worker) == 1


@pytest.mark.slow
async def test_files_of_another_tool_are_scored_with_the_plan_of_a_project(sit, empty_workspace, files, no_worker):
    async with sit(empty_workspace, "n") as seat:
        seat.app.screen.query_one("#recipe", Input).value = str(files / "recipe.toml")
        await seat.press("tab", "enter", "enter", "act:evaluate")
        assert seat.app.screen.query_one("#field-0", Input).value == "the plan of this project"
        fill(seat, original=str(files / "people.csv"), released="syn10.csv, syn2.csv")
        await seat.press("shift", "enter")
        assert seat.app.notices[-1] == "Run 2 scores 2 files"
        with Workspace.open(empty_workspace, read_only=True) as reader:
            first, second = find_run(reader, 1), find_run(reader, 2)
        assert first.project_id == second.project_id
        assert not second.recipe.synthesis


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"released": "none*.csv"}, 'no file fits "none*.csv"'),
        ({"released": "syn1.csv, syn1.csv"}, "given twice"),
        ({"released": "syn3.csv"}, 'no such file "syn3.csv"'),
        ({"released": ""}, "name the released files"),
        ({"original": ""}, "name the confidential file"),
        ({"recipe": "recipe"}, "no such file or shipped recipe"),
    ],
)
async def test_what_cannot_be_scored_is_said_before_anything_is_stored(sit, empty_workspace, files, changes, said):
    async with sit(empty_workspace, "act:evaluate") as seat:
        fill(seat, **({"recipe": "recipe.toml", "original": "people.csv", "released": "syn*.csv"} | changes))
        await seat.press("shift", "enter")
        assert said in seat.text
        with Workspace.open(empty_workspace, read_only=True) as reader:
            assert list_runs(reader) == []


@pytest.mark.slow
async def test_a_report_is_written_without_a_release(sit, built_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with sit(built_data, "G", "P", tab="runs", size=(80, 24)) as seat:
        await seat.press("enter")
        page = (tmp_path / "run-1-report.html").read_text()
        assert "as confidential as the data" in page
        assert "INTERNAL" in seat.app.notices[-1]
        await seat.press("P")
        assert seat.app.screen.query_one("#field-0", Input).value.endswith("run-1-report-2.html")
        await seat.press("down", "right", "enter")
        public = (tmp_path / "run-1-report-2.html").read_text()
        assert "PUBLIC" in seat.app.notices[-1]
        assert public != page
        assert (tmp_path / "run-1-report-2.html").stat().st_mode & 0o077 == 0
        await seat.press("P")
        fill(seat, file=str(tmp_path / "run-1-report.html"))
        assert "exists; name another file" in await seat.press("shift", "enter")
        assert (tmp_path / "run-1-report.html").read_text() == page


@pytest.mark.slow
async def test_a_report_of_a_run_that_is_not_done_is_not_offered(sit, built_data):
    async with sit(built_data, "g", "P", tab="runs") as seat:
        assert len(seat.app.screen_stack) == 2
        assert seat.app.notices[-1] == "Only a run that is done has a report"


@pytest.mark.slow
async def test_the_doctor_names_problems_first_and_removes_what_no_run_needs(sit, built_data):
    orphan = next((built_data / "tables").rglob("*.parquet"))
    left = orphan.with_name(f"{'0' * 64}.parquet")
    shutil.copy(orphan, left)
    async with sit(built_data, "act:doctor", size=(80, 24)) as seat:
        assert "in order" in seat.text, seat.app.notices
        states = [check.state for check in seat.app.screen.grid.table_rows]
        assert states == sorted(states, key=["problem", "note", "ok"].index)
        assert "Python" in seat.text
        await seat.press("X")
        assert "that no run needs?" in seat.text
        await seat.press("n")
        assert left.exists()
        await seat.press("X", "y")
        assert "removed that no run needed" in seat.app.notices[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "runs"), [(("enter",), 2), (("down", "enter"), 1), (("escape",), 0)])
async def test_a_recipe_with_companions_is_run_with_them_or_alone(sit, empty_workspace, files, no_worker, keys, runs):
    (files / "plain.toml").write_text(RECIPE)
    (files / "recipe.toml").write_text(f'companions = ["plain"]\n{RECIPE}')
    async with sit(empty_workspace, "n") as seat:
        seat.app.screen.query_one("#recipe", Input).value = str(files / "recipe.toml")
        await seat.press("tab", "enter")
        assert "with its companion: plain" in seat.text
        await seat.press(*keys)
        with Workspace.open(empty_workspace, read_only=True) as reader:
            assert len(list_runs(reader)) == runs
            if runs == 2:
                assert companion_ids(reader, 1) == [2]
                assert seat.app.notices == ["Run 1 started, beside it run 2"]
