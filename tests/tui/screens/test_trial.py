import pytest

from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.findings.trial import LimitTrial
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_verdicts

pytestmark = pytest.mark.slow

RISK = 0


def keys(text):
    return ["full_stop" if letter == "." else letter for letter in text]


async def retype(seat, text):
    await seat.press("end", *["backspace"] * 8, *keys(text))


async def test_the_board_follows_every_key(sit, directory, size):
    async with sit(directory, "T", tab="verdicts", size=size) as seat:
        assert isinstance(seat.app.screen, LimitTrial)
        assert "WHAT IF: nothing is saved" in seat.text
        assert "threshold 1/3: People found for certain" in seat.text
        assert "1 of 3 thresholds is not met, 1 not computed" in seat.text
        await retype(seat, "0.000")
        assert "2 of 3 thresholds are not met, 1 not computed" in seat.text
        await seat.press("3")
        assert "2 of 3 thresholds are not met, 1 not computed" in seat.text
        await retype(seat, "5")
        assert seat.text.count("1 of 3 thresholds is not met, 1 not computed") == 2
        assert max(map(len, seat.text.splitlines())) <= size[0]


async def test_what_is_no_number_is_said_and_the_board_stays(sit, directory):
    async with sit(directory, "T", "minus", "x", tab="verdicts") as seat:
        assert "Not a number" in seat.text
        assert seat.text.count("1 of 3 thresholds is not met, 1 not computed") == 2
        await retype(seat, "nan")
        assert "Not a number" in seat.text


async def test_up_and_down_choose_the_threshold_and_its_change_is_kept_in_the_trial(sit, directory):
    async with sit(directory, "T", tab="verdicts") as seat:
        await retype(seat, "0")
        await seat.press("down")
        assert "threshold 2/3: People found on average" in seat.text
        await retype(seat, "9")
        assert "1 of 3 thresholds is not met, 1 not computed" in seat.text.split("In this trial")[1]
        await seat.press("up", "up")
        assert "threshold 3/3" in seat.text
        await seat.press("act:reset_limits", "down")
        assert "threshold 1/3" in seat.text
        assert seat.app.screen.query_one("#trial-limit").value == "0.9"
        await seat.press("pagedown", "pageup")


async def test_nothing_is_stored_and_escape_leads_back(sit, directory):
    with Workspace.open(directory, read_only=True) as reader:
        before = read_verdicts(reader, 1)
    async with sit(directory, "T", tab="verdicts") as seat:
        await retype(seat, "0")
        await seat.press("escape")
        assert isinstance(seat.app.screen, ProjectScreen)
        assert "✗ 1 of 3 not met, ? 1 not computed" in seat.text.splitlines()[0]
        assert "1 of 3 plan limits met" in seat.text
    with Workspace.open(directory, read_only=True) as reader:
        assert read_verdicts(reader, 1) == before


async def test_without_verdicts_there_is_nothing_to_try(sit, directory):
    async with sit(directory, "g", "enter", "act:verdicts", "T", tab="runs") as seat:
        assert isinstance(seat.app.screen, ProjectScreen)
        assert "no verdicts to try" in seat.app.notices[-1]


async def test_ctrl_s_saves_the_limits_into_the_plan(sit, directory, size):
    async with sit(directory, "T", "ctrl+s", tab="verdicts", size=size) as seat:
        assert "No limit has been changed" in seat.app.notices[-1]
        assert "^s Save into the plan" in " ".join(seat.footer.split())
        await retype(seat, "0.25")
        await seat.press("ctrl+s")
        assert "1 limit saved into the plan" in seat.app.notices[-1]
    with Workspace.open(directory, read_only=True) as reader:
        recipe = Recipe.from_toml(find_draft(reader, 1).toml)
        assert find_run(reader, 1).recipe.thresholds[RISK].limit == 0.9
    assert [one.limit for one in recipe.thresholds] == [0.25, 1e-9, 0.5]
