"""A search from the plan: asked for, shown while it goes on, and its finalists to choose from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from keyed_workspace import KEY
from prepared_tables import variables_of
from prepared_workspaces import finished_workspace
from textual.widgets import Input

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.parts.dialogs import ConfirmDialog
from sfumato.tui.plan.search import GOING_ON, AskSearchDialog, SearchFinalists, finalist_text
from sfumato.tui.release.release import ReleaseScreen
from sfumato.tui.session.messages import JobDone
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.reporting.searches import SearchFinalist, SearchOutcome, conclusion_lines, search_headline

MET = Verdict("risk.identification.true_match_rate", "", None, "max", 0.05, 0.01, 0.04, "met")
MISSED = replace(MET, observed=0.09, margin=-0.04, outcome="not met")
PASSES = SearchFinalist(36, "cart.minbucket 10, m 2", (MET,), (), 0.88, 1.36)
BLOCKED = SearchFinalist(35, "unchanged", (MISSED,), ("worst_records",), 1.07, 0.9)
FOUND = SearchOutcome(1, 1, "utility.propensity.s_pmse", (BLOCKED, PASSES), 27, 2)


@pytest.fixture
def passing(tmp_path):
    """A workspace with a run whose release no finding blocks."""
    rng = np.random.default_rng(20)
    visits = rng.poisson(4, 90)
    frame = pd.DataFrame({"visits": visits, "income": np.exp(rng.normal(7 + 0.2 * visits, 0.2, 90))})
    plan = {
        "title": "Household survey",
        "variables": variables_of("visits: count quasi_identifier", "income: continuous sensitive"),
        "release": {"m": 2, "seed": 7, "audience": "enclave"},
        "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["visits"]}],
        "measure": [{"method": "utility.ecdf"}, {"method": "risk.identification", "radius": {"income": "5%"}}],
        "threshold": [{"value": "utility.ecdf.max_abs_difference", "max": 0.9}],
    }
    directory = finished_workspace(tmp_path / "workspace", [plan], frame, "survey.csv", key=KEY)
    save_state(directory, AppState(project=1, run=1, tab="plan"))
    return directory


def test_the_first_finalist_that_passes_is_named():
    assert search_headline(FOUND) == "Search 1: 27 plans looked at; 2 could not be carried out"
    assert conclusion_lines(FOUND)[-1] == "Run 36 passes: cart.minbucket 10, m 2."
    assert finalist_text(BLOCKED) == "run 35  0 of 1 met, 1 finding blocks  unchanged  utility 1.07 -> 0.9"


def test_where_none_may_leave_the_limit_in_the_way_and_how_near_the_best_came_are_named():
    lines = conclusion_lines(
        replace(FOUND, finalists=(BLOCKED, replace(BLOCKED, verdicts=(replace(MISSED, observed=0.07, margin=-0.02),))))
    )
    assert any("at most 5 %, nearest 7 % of the people (not met); all 2 plans miss it" in line for line in lines)
    assert "  the gate blocks: worst_records; no limit of the plan changes that" in lines
    assert lines[-1] == "No other limit would let a finalist pass."
    assert conclusion_lines(replace(FOUND, finalists=())) == ["No plan could be carried out on all records."]


@pytest.mark.slow
async def test_a_search_is_asked_for_and_begins_from_the_plan(sit, built_data, monkeypatch):
    begun = []

    def begin(directory, draft):
        begun.append(draft.project_id)
        return JobDone("Search 1 started")

    monkeypatch.setattr("sfumato.tui.session.jobs.search_plan", begin)
    async with sit(built_data, "S", tab="plan") as seat:
        assert isinstance(seat.app.screen, AskSearchDialog)
        assert "claims no epsilon" in seat.text.replace("\n", " ")
        await seat.press("n")
        assert begun == []
        await seat.press("S", "y")
        assert begun == [1]
        assert "Search 1 started" in seat.app.notices


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_finalist_is_chosen_with_one_key(sit, built_data, size):
    answers = []
    async with sit(built_data, tab="plan", size=size) as seat:
        await seat.app.open(SearchFinalists(FOUND), answers.append)
        await seat.pilot.pause()
        assert "27 plans looked at" in seat.text
        assert "Run 36 passes" in seat.text
        await seat.press("enter")
        assert answers == [("take", 36)], "the cursor stands on the one that passes"
        await seat.app.open(SearchFinalists(replace(FOUND, finalists=(), has_ended=False)), answers.append)
        await seat.pilot.pause()
        assert GOING_ON[:20] in seat.text
        await seat.press("R")
        assert answers[1] == ("continue", 1)


@pytest.mark.slow
async def test_a_search_leads_to_a_release_with_eight_keys(sit, passing, tmp_path, monkeypatch):
    """The keys of the questions and places; the name of the folder is typed."""
    searched = []
    monkeypatch.setattr(
        "sfumato.tui.session.jobs.search_plan", lambda *_: JobDone("Search 1 started", run_id=searched.append(1))
    )
    found = replace(FOUND, finalists=(BLOCKED, replace(PASSES, run_id=1)))
    monkeypatch.setattr("sfumato.tui.plan.search.newest_outcome", lambda _: lambda _: found if searched else None)
    async with sit(passing, tab="plan") as seat:
        pressed = []

        async def press(*keys):
            pressed.extend(keys)
            return await seat.press(*keys)

        await press("S")
        await seat.until(lambda: isinstance(seat.app.screen, AskSearchDialog))
        await press("enter")
        await seat.until(lambda: searched)
        await press("S")
        await seat.until(lambda: isinstance(seat.app.screen, SearchFinalists))
        await press("enter")
        await seat.until(lambda: "The plan of run 1 is the plan of this project" in seat.app.notices)
        await press("w")
        await seat.until(lambda: isinstance(seat.app.screen, ReleaseScreen) and seat.app.screen._looked is not None)
        assert not seat.app.screen._looked.unwaived_findings
        await press("w")
        seat.app.screen.query_one("#release-directory", Input).value = str(tmp_path / "out")
        await press("enter")
        await seat.until(lambda: isinstance(seat.app.screen, ConfirmDialog))
        await press("y")
        await seat.until(lambda: (tmp_path / "out" / "public").is_dir())
        assert len(pressed) == 8
