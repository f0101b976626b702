"""One current run: the title names it, the cursor stands on it, and every key acts on it."""

import random
import re
from dataclasses import replace

import pytest

from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.findings.verdicts import VerdictsPane
from sfumato.tui.release.release import ReleaseScreen
from sfumato.tui.runs.runs import RunsTab, SearchTrials
from sfumato.tui.session.state import load_state
from sfumato.workspace.jobs.queue import stop_run
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.reporting.searches import EndedLook, SearchProgress
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.prepare import enter_plan_run
from sfumato.workspace.store.runs import RunState, find_run, list_runs, summarise_runs
from sfumato.workspace.store.searches import enter_search, store_look
from sfumato.workspace.store.workspace import Workspace

DONE = 1
ELSEWHERE = ("enters a run", "stops a run", "deletes a run")
KEYS = ("j", "k", "G", "g", "1", "2", "3", "4", "enter", "escape", "R y", "w", "u", *ELSEWHERE)


def run_of_title(seat):
    """The run that the title line names; None where it names none."""
    found = re.search(r"› run (\d+)", seat.text.splitlines()[0])
    return None if found is None else int(found[1])


def project_of(seat):
    return next(screen for screen in seat.app.screen_stack if isinstance(screen, ProjectScreen))


def act_elsewhere(directory, act, chance):
    """What a second app or a command does to the runs of the workspace."""
    with Workspace.open(directory) as workspace:
        runs = list_runs(workspace, 1)
        if act == "enters a run":
            enter_plan_run(workspace, find_draft(workspace, 1))
        elif act == "stops a run" and (going := [run.id for run in runs if not run.state.is_final]):
            stop_run(workspace, chance.choice(going), RunState.INTERRUPTED)
        elif act == "deletes a run" and (ended := [run.id for run in runs if run.state.is_final and run.id != DONE]):
            delete_run(workspace, chance.choice(ended))


async def follow_random_keys(sit, directory, seeds):
    """Press random keys; after each, what the title names is what the keys act on."""
    checked = 0
    async with sit(directory, tab="runs", size=(120, 40)) as seat:
        for seed in seeds:
            chance = random.Random(seed)
            for key in chance.choices(KEYS, k=6):
                if key in ELSEWHERE:
                    act_elsewhere(directory, key, chance)
                    seat.app._poll_workspace()
                    await seat.press("shift")
                else:
                    await seat.press(*key.split())
                if isinstance(seat.app.screen, ReleaseScreen):
                    assert seat.app.screen._run_id == run_of_title(seat), (seed, key)
                    await seat.press("escape")
                if not isinstance(seat.app.screen, ProjectScreen):
                    await seat.press("escape")
                    if len(seat.app.screen_stack) == 1:
                        await seat.press("enter")
                    continue
                screen, named = project_of(seat), run_of_title(seat)
                here = screen.current_run_line
                if screen.tab == "runs" and named is not None:
                    assert here is not None, (seed, key)
                    assert here.run.id == named == screen.run_id == screen.query_one(RunsTab).current_run.run.id, (
                        seed,
                        key,
                    )
                    assert load_state(directory).run in (named, None), (seed, key)
                elif screen.tab not in ("runs", "data", "rows", "plan") and here is not None:
                    assert here.run.id == named == screen.pane.line.run.id == screen.run_id, (seed, key)
                checked += here is not None
    assert checked > 3 * len(seeds), "most keys were followed by a look at the project"


@pytest.mark.slow
async def test_random_keys_act_on_the_run_that_the_title_names(sit, built_data, no_worker):
    await follow_random_keys(sit, built_data, range(25))


@pytest.mark.study
async def test_three_hundred_sequences_of_random_keys_act_on_the_run_that_the_title_names(sit, built_data, no_worker):
    await follow_random_keys(sit, built_data, range(300))


@pytest.mark.slow
async def test_a_run_that_was_just_started_is_the_one_that_keys_act_on(sit, built_data, no_worker):
    async with sit(built_data, "G", tab="runs") as seat:
        assert run_of_title(seat) == DONE, "the title follows the cursor"
        await seat.press("R", "y")
        with Workspace.open(built_data, read_only=True) as workspace:
            newest = find_run(workspace, "last").id
        assert run_of_title(seat) == newest != DONE
        assert seat.app.screen.query_one(RunsTab).current_run.run.id == newest
        await seat.press("w")
        assert "Only a run that is done can be released" in seat.app.notices
        assert not isinstance(seat.app.screen, ReleaseScreen), "run 1 was under the cursor before"


@pytest.mark.slow
@pytest.mark.parametrize("place", ["1", "2", "4"])
async def test_the_title_of_a_release_names_its_run_from_wherever_it_was_opened(sit, built_data, place):
    async with sit(built_data, tab="runs") as seat:
        await seat.press("G", place, "w")
        assert isinstance(seat.app.screen, ReleaseScreen)
        assert run_of_title(seat) == DONE == seat.app.screen._run_id


@pytest.mark.slow
async def test_the_run_under_the_cursor_is_the_one_that_findings_show(sit, built_data):
    async with sit(built_data, tab="runs") as seat:
        await seat.press("G", "4")
        assert run_of_title(seat) == DONE == seat.app.screen.query_one(VerdictsPane).line.run.id


@pytest.fixture
def searched(built_data):
    """A workspace in which runs 2 to 4 are trials of a search."""
    with Workspace.open(built_data) as workspace:
        recipe = find_run(workspace, DONE).recipe_toml
        project = "Household survey"
        search = enter_search(workspace, project, recipe, 10, [])
        with workspace.write_transaction() as connection:
            for number, run in enumerate((2, 3, 4)):
                store_look(connection, search, number, run)
    return built_data


def test_last_is_never_a_trial(searched):
    with Workspace.open(searched, read_only=True) as workspace:
        assert find_run(workspace, "last").id == DONE
        assert find_run(workspace, 4).search_id == 1
        assert [line.run.search_id for line in summarise_runs(workspace, 1)] == [1, 1, 1, None]


@pytest.mark.slow
async def test_trials_of_a_search_are_one_row_that_enter_opens(sit, searched):
    async with sit(searched, tab="runs") as seat:
        tab = seat.app.screen.query_one(RunsTab)
        await seat.until(lambda: "search 1: " in seat.text)
        assert re.search(r"search 1: (3 trials|\d+ of \d+ looks)", seat.text)
        assert tab.grid.row_count == 2
        await seat.press("g")
        assert isinstance(tab.current_row, SearchTrials)
        assert run_of_title(seat) is None, "a search is no run"
        await seat.press("w")
        assert not isinstance(seat.app.screen, ReleaseScreen)
        await seat.press("enter")
        assert tab.grid.row_count == 5
        await seat.press("j")
        assert run_of_title(seat) == 4
        await seat.press("k", "enter")
        assert tab.grid.row_count == 2


BEST = EndedLook(7, "cart.minbucket 40", 5, 1, None, "re-identified: 3 of 1,000 (0.3 %)", "pMSE ratio: 1.3")
PROGRESS = SearchProgress(1, 40, frozenset(range(12)), BEST, (replace(BEST, number=3, n_missed=2), BEST), 130.0)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 50)])
async def test_the_row_of_a_search_has_its_progress_and_the_best_so_far(sit, searched, monkeypatch, size):
    monkeypatch.setattr("sfumato.workspace.service.searching.search_progress", lambda *_: PROGRESS)
    async with sit(searched, tab="runs", size=size) as seat:
        await seat.press("g")
        await seat.until(lambda: "search 1: 12 of 40 looks" in seat.text)
        await seat.until(lambda: "pMSE ratio: 1.3" in seat.text)
        text = " ".join(seat.text.split())
        assert "best: 1 not met" in text
        assert "~2 min" in text
        for words in ("cart.minbucket 40", "4 of 5 limits met"):
            assert words in text.replace("│ ", "")
        assert "re-identified" in text


def test_the_command_lists_a_search_in_one_row(searched, capsys, sfumato):
    assert sfumato("runs", "--workspace", str(searched)) == 0
    said = capsys.readouterr().out
    assert "search 1: 3 trials" in said
    assert [line.split()[0] for line in said.splitlines() if line.strip()[:1].isdigit()] == ["1"]
    assert sfumato("runs", "--trials", "--workspace", str(searched)) == 0
    assert len([line for line in capsys.readouterr().out.splitlines() if line.strip()[:1].isdigit()]) == 4
