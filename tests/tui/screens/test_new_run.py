import asyncio
import re
import threading

import pytest
from textual.widgets import Input, OptionList

from sfumato.workspace.recipes import shipped_recipes
from sfumato.workspace.store.runs import list_runs
from sfumato.workspace.store.workspace import Workspace

RECIPE = """
title = "Typed in"
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
"""


@pytest.fixture
def recipe(tmp_path):
    rows = "\n".join(f"{20 + i % 40},{(i * 37) % 91 + 0.5}" for i in range(40))
    (tmp_path / "people.csv").write_text(f"age,cost\n{rows}\n")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path / "recipe.toml"


@pytest.mark.slow
async def test_n_offers_the_shipped_recipes(sit, empty_workspace, size):
    async with sit(empty_workspace, "n", size=size) as seat:
        for shipped in shipped_recipes():
            assert shipped.name in seat.text
        assert isinstance(seat.app.focused, OptionList)
        await seat.press("j", "k", "q")
        assert "No projects yet" in seat.text


@pytest.mark.slow
async def test_whoever_goes_elsewhere_while_a_run_is_started_stays_there(sit, directory, no_worker, monkeypatch):
    from sfumato.tui.session import jobs

    asked, go_on, run_again = threading.Event(), threading.Event(), jobs.run_again

    def run_slowly(*given):
        asked.set()
        assert go_on.wait(20)
        return run_again(*given)

    monkeypatch.setattr(jobs, "run_again", run_slowly)
    async with sit(directory, tab="runs") as seat:
        await seat.pilot.press("R")
        await seat.pilot.pause()
        await seat.pilot.press("y")
        await asyncio.to_thread(asked.wait, 20)
        await seat.pilot.press("4")
        await seat.pilot.pause()
        go_on.set()
        await seat.press("shift")
        assert "[4 Findings]" in seat.text
        assert "No verdicts yet: run 5 is not done" in seat.text
        assert re.search(r"0 of \d+ tasks are done", seat.text)


@pytest.mark.slow
async def test_the_titles_of_recipes_stand_below_each_other(sit, empty_workspace):
    async with sit(empty_workspace, "n", size=(160, 50)) as seat:
        offered = seat.app.screen.query_one(OptionList).options
        names = [str(option.id) for option in offered]
        starts = {
            str(option.prompt).index(str(option.prompt)[len(name) :].lstrip())
            for option, name in zip(offered, names, strict=True)
        }
        assert starts == {max(map(len, names)) + 2}


@pytest.mark.slow
async def test_a_recipe_file_is_run(sit, empty_workspace, recipe, no_worker):
    async with sit(empty_workspace, "n", "tab") as seat:
        seat.app.screen.query_one("#recipe", Input).value = str(recipe)
        await seat.press("enter")
        with Workspace.open(empty_workspace, read_only=True) as reader:
            assert [run.title for run in list_runs(reader)] == ["Typed in"]
        assert seat.app.notices == ["Run 1 started"]
        assert [directory for directory, _ in no_worker] == [empty_workspace]
        assert "Typed in" in seat.text


@pytest.mark.slow
async def test_another_data_file_can_be_named(sit, empty_workspace, recipe, no_worker):
    other = recipe.parent / "other.csv"
    (recipe.parent / "people.csv").rename(other)
    async with sit(empty_workspace, "n") as seat:
        seat.app.screen.query_one("#recipe", Input).value = str(recipe)
        seat.app.screen.query_one("#data", Input).value = str(other)
        await seat.press("tab", "tab", "enter")
        with Workspace.open(empty_workspace, read_only=True) as reader:
            assert len(list_runs(reader)) == 1


@pytest.mark.slow
async def test_a_recipe_that_cannot_be_run_says_why_and_stores_nothing(sit, empty_workspace, recipe, no_worker):
    recipe.write_text(RECIPE.replace('"age"]', '"agee"]'))
    async with sit(empty_workspace, "n", "tab") as seat:
        seat.app.screen.query_one("#recipe", Input).value = str(recipe)
        await seat.press("enter")
        assert any('did you mean "age"?' in notice for notice in seat.app.notices)
        with Workspace.open(empty_workspace, read_only=True) as reader:
            assert list_runs(reader) == []
        assert no_worker == []


@pytest.mark.slow
async def test_nothing_is_wrong_in_a_form_before_a_key(sit, empty_workspace, size):
    async with sit(empty_workspace, "I", size=size) as seat:
        await seat.until(lambda: "to fill in: file: name a file" in " ".join(seat.text.split()))
        assert "✗" not in seat.text
        assert not seat.app.screen.query(".wrong")
        await seat.press("enter")
        await seat.until(lambda: "✗" in seat.text)
        assert seat.app.screen.query(".wrong")
