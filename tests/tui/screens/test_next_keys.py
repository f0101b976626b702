"""The next step and the keys of a run stand on the screen, where they work."""

import pytest

from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.plan.edits import parse_plan
from sfumato.workspace.store.workspace import Workspace

DONE, RUNNING = 1, 4
OFFERED = {
    "results": ("e Export", "w Release"),
    "verdicts": ("e Export", "w Release"),
    "sweep": ("e Export", "w Release"),
    "diagnostics": ("e Export", "w Release"),
    "records": ("e Export", "w Release"),
    "map": ("e Export", "w Release"),
    "runs": ("e Export", "w Release"),
    "plan": ("w Release",),
}


@pytest.mark.slow
@pytest.mark.parametrize("tab", OFFERED)
async def test_the_keys_of_a_run_stand_below_every_tab(sit, built_data, tab, size):
    async with sit(built_data, *(["G"] if tab == "runs" else []), tab=tab, size=size) as seat:
        for words in (*OFFERED[tab], "? Keys", "q Close"):
            assert words in seat.footer, seat.footer


@pytest.mark.slow
async def test_a_run_that_is_not_done_offers_no_release(sit, built_data):
    save_state(built_data, AppState(project=1, run=RUNNING, tab="results"))
    async with sit(built_data) as seat:
        assert "w Release" not in seat.footer
        await seat.press("w")
        assert len(seat.app.screen_stack) == 2
        assert "Only a run that is done" in seat.app.notices[-1]
        await seat.press("3", "G")
        assert "w Release" in seat.footer
        assert "w Release" not in (await seat.press("g"), seat.footer)[1]


@pytest.mark.slow
async def test_the_next_step_follows_the_run_and_the_tab(sit, built_data):
    async with sit(built_data, "G", tab="runs", size=(80, 24)) as seat:
        step = seat.app.screen.query_one("#next-step")
        # What Findings says depends on whether the gate has answered by then.
        await seat.until(lambda: "4 opens Findings: wh" in str(step.content))
        assert "enter explains what blocks and how to fix it" in (await seat.press("4"))
        assert "this plan is run 4, under way: 3 opens Runs, which shows it" in await seat.press("2")
        assert "next: i resumes run 3" in await seat.press("3", "g", "j") + str(step.content)
        assert "2 opens Plan to fix why run 2 failed" in await seat.press("j")


@pytest.mark.slow
async def test_a_plan_is_to_be_run_once_it_is_another_than_that_of_a_run(sit, built_data):
    async with sit(built_data, "G", tab="plan") as seat:
        assert "this plan is run 4" in seat.text
        assert "this plan is run 4" in await seat.press("1")
        assert "next: R runs it" in await seat.press("2", "X")
        assert "this plan is run 4" in await seat.press("u")


@pytest.mark.slow
async def test_the_next_step_names_the_users_own_keys(sit, built_data, tmp_path):
    (tmp_path / "config" / "sfumato").mkdir(parents=True)
    (tmp_path / "config" / "sfumato" / "keys.toml").write_text('findings = "f6"\n')
    async with sit(built_data, "G", tab="runs") as seat:
        await seat.press("k", "G")
        # What Findings says depends on whether the gate has answered by then.
        await seat.until(lambda: "f6 opens Findings: wh" in seat.text)


@pytest.mark.slow
async def test_the_quality_board_stands_in_the_footer_where_there_is_one(sit, built_data):
    async with sit(built_data, "G", tab="runs") as seat:
        assert "Quality" not in seat.footer


@pytest.mark.slow
async def test_data_knows_the_run_of_a_plan_that_says_a_default_without_a_look_at_the_plan(sit, built_data):
    """A run's recipe leaves out what is as by default: the texts differ, the recipe is one. Once Data said that it is run next."""
    with Workspace.open(built_data) as workspace:
        draft = find_draft(workspace, 1)
        told = draft.toml.replace(
            'method = "linear_regression"', 'method = "linear_regression"\nprior = "published"', 1
        )
        assert parse_plan(told).sha256 == parse_plan(draft.toml).sha256
        save_draft(workspace, draft.with_text(told), draft.revision)
    async with sit(built_data, tab="data") as seat:
        assert "this plan is run 4" in seat.text
