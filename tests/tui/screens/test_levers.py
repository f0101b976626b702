"""From a verdict that is not met to a new run: three keys once the cursor is there, and one for each lever that is passed over."""

import pytest
from textual.widgets import OptionList

from sfumato.tui.findings.lever_dialogs import VerdictExplanation
from sfumato.tui.findings.levers import PlanChange
from sfumato.tui.parts.explain import ResultExplanation
from sfumato.tui.parts.verdict_board import BoardFold, VerdictBoard
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.store.workspace import Workspace


def plan_of(directory):
    with Workspace.open(directory, read_only=True) as workspace:
        return find_draft(workspace, 1).toml


@pytest.mark.slow
async def test_three_keys_lead_from_a_failed_verdict_to_a_run(sit, built_data, no_worker, size):
    before = plan_of(built_data)
    async with sit(built_data, tab="verdicts", size=size) as seat:
        await seat.to_verdict()
        await seat.press("enter")
        assert isinstance(seat.app.screen, VerdictExplanation)
        assert "How to fix it" in seat.text
        assert "+ m = 2" not in seat.text
        # the list of levers itself: a wide terminal shows them beside the verdicts as well, behind the dialog
        levers = [str(option.prompt) for option in seat.app.screen.query_one(OptionList).options]
        assert "release fewer datasets: 2 of them" in levers
        coarser = next(i for i, said in enumerate(levers) if said.startswith("make the quasi-identifiers coarser"))
        assert coarser < levers.index("release fewer datasets: 2 of them")
        await seat.press("j")
        text = await seat.press("enter")
        assert isinstance(seat.app.screen, PlanChange)
        assert "- m = 3" in text
        assert "+ m = 2" in text
        assert plan_of(built_data) == before.replace("m = 3", "m = 2")
        await seat.press("R")
        await seat.until(lambda: "Run 5 started" in " ".join(seat.app.notices))


@pytest.mark.slow
async def test_a_change_is_undone_by_u(sit, built_data):
    before = plan_of(built_data)
    async with sit(built_data, tab="verdicts") as seat:
        await seat.to_verdict()
        await seat.press("enter", "enter")
        assert isinstance(seat.app.screen, PlanChange)
        assert "recode" in plan_of(built_data)
        await seat.press("u")
        assert "[2 Plan]" in seat.text
        assert plan_of(built_data) == before


@pytest.mark.slow
async def test_what_a_person_decides_leads_to_the_plan(sit, built_data):
    before = plan_of(built_data)
    async with sit(built_data, tab="verdicts") as seat:
        await seat.to_verdict()
        await seat.press("enter", "j", "j", "enter")
        assert "[2 Plan]" in seat.text
        assert "To do in the plan of run 1: " in seat.app.notices[-1]
        assert plan_of(built_data) == before


@pytest.mark.slow
async def test_a_verdict_that_is_met_is_explained_without_levers(sit, built_data):
    async with sit(built_data, tab="verdicts") as seat:
        board = seat.app.screen.query_one(VerdictBoard)
        while board.chosen_verdict is None or board.chosen_verdict.outcome != "met":
            if board.chosen_fold is BoardFold.PASSES:
                await seat.press("enter")
            await seat.press("j")
        await seat.press("enter")
        await seat.until(lambda: type(seat.app.screen) is ResultExplanation)
        assert "How to fix it" not in seat.text


@pytest.mark.slow
async def test_a_lever_changes_the_recipe_of_the_run_not_what_the_plan_has_become(sit, built_data):
    with Workspace.open(built_data) as workspace:
        draft = find_draft(workspace, 1)
        save_draft(workspace, draft.with_text(draft.toml.replace("m = 3", "m = 40")))
    edited = plan_of(built_data)
    async with sit(built_data, tab="verdicts") as seat:
        await seat.to_verdict()
        await seat.press("enter")
        assert "release fewer datasets: 2 of them" in seat.text
        await seat.press("j", "enter")
        assert "m = 2" in plan_of(built_data)
        assert "m = 40" not in plan_of(built_data)
        await seat.press("u")
        assert plan_of(built_data) == edited, "u restores what was there"
