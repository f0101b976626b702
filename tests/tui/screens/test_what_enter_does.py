"""The footer and the line of the next step say what enter does on the row under the cursor, and nothing that it does not."""

import numpy as np
import pytest
from households import SCHEMA, as_microdata, draw_households
from prepared_workspaces import run_recipe

from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.findings.lever_pane import LeverList
from sfumato.tui.parts.split import Detail
from sfumato.tui.parts.verdict_board import BoardFold, VerdictBoard
from sfumato.tui.release.release import AgreedContents, FindingGrid, ReleaseScreen
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import TabLine

SIZES = [(80, 24), (120, 40)]
pytestmark = pytest.mark.slow


@pytest.fixture
def of_households(workspace):
    """A run on people who live in households."""
    variables = {one.name: {"kind": str(one.kind), "role": str(one.role)} for one in SCHEMA}
    measure = {"method": "risk.identification", "known": ["region", "sex"], "synthesised": ["income"]}
    table = {
        "variables": variables,
        "release": {"m": 1, "seed": 3},
        "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["age"]}],
        "measure": [{**measure, "radius": {"income": "20%"}}],
    }
    recipe = Recipe.from_table(table)
    people = as_microdata(draw_households(np.random.default_rng(4), 60), recipe.schema)
    run_recipe(workspace, recipe, people, "people.csv", b"people")
    return workspace.directory


def step(seat):
    return str(seat.app.screen.query_one("#next-step").content)


@pytest.mark.parametrize("size", SIZES)
async def test_on_a_folded_line_of_the_verdicts_enter_unfolds_and_both_lines_say_so(sit, built_data, size):
    async with sit(built_data, tab="verdicts", size=size) as seat:
        board = seat.app.screen.query_one(VerdictBoard)
        await seat.until(lambda: board.chosen_finding is not None)
        assert "enter Explain" in seat.footer
        await seat.until(lambda: "next: enter explains what blocks" in step(seat))
        while board.chosen_fold is not BoardFold.PASSES:
            await seat.press("j")
        await seat.until(lambda: "enter lists the checks that pass" in step(seat))
        assert "enter Unfold" in seat.footer
        await seat.press("enter")
        await seat.until(lambda: "enter folds the checks that pass" in step(seat))
        assert "enter Fold" in seat.footer
        await seat.press("G")
        await seat.until(lambda: "enter All numbers" in seat.footer)
        assert "Explain" not in seat.footer
        assert "enter shows the numbers of the run" in step(seat)


async def test_the_keys_say_the_same_as_the_footer(sit, built_data):
    async with sit(built_data, tab="verdicts") as seat:
        await seat.until(lambda: seat.app.screen.query_one(VerdictBoard).chosen_finding is not None)
        await seat.press("G", "question_mark")
        assert "All numbers" in seat.text


async def test_a_person_of_the_records_is_unfolded_and_folded(sit, of_households):
    async with sit(of_households, tab="records") as seat:
        grid = seat.app.screen.pane.query_one(Grid)
        await seat.until(lambda: grid.row_count > 0)
        await seat.until(lambda: "enter List records" in seat.footer)
        await seat.press("enter")
        await seat.until(lambda: "enter Hide records" in seat.footer)
        await seat.press("j")
        await seat.until(lambda: "enter Why" in seat.footer)


async def test_the_line_of_places_says_what_its_keys_do_and_enter_goes_to_the_page(sit, built_data):
    async with sit(built_data, tab="runs", size=(80, 24)) as seat:
        seat.app.screen.query_one(TabLine).focus()
        await seat.until(lambda: "enter To the page" in seat.footer)
        assert "go to another place; enter goes to the page" in step(seat)
        await seat.press("enter")
        assert seat.app.focused is seat.app.screen.pane.query_one(Grid)
        assert "enter Open" in seat.footer


@pytest.mark.parametrize("size", SIZES)
async def test_the_last_step_of_a_release_names_its_keys(sit, built_data, size):
    async with sit(built_data, "w", tab="verdicts", size=size) as seat:
        assert isinstance(seat.app.screen, ReleaseScreen)
        await seat.until(lambda: seat.app.screen.query_one(FindingGrid).row_count > 0)
        await seat.until(lambda: "enter Justify" in seat.footer)
        await seat.press("G")
        await seat.until(lambda: "enter Unfold" in seat.footer)
        await seat.press("enter")
        await seat.until(lambda: "enter Fold" in seat.footer)
        await seat.press("j")
        await seat.until(lambda: "enter Explain" in seat.footer)
        await seat.press("right_square_bracket")
        await seat.until(lambda: "enter Next step" in seat.footer)
        await seat.press("enter")
        await seat.until(lambda: "enter Ask to release" in seat.footer)
        assert "tab Next field" in seat.footer
        assert "esc Leave" in seat.footer


@pytest.mark.parametrize("kind", [Detail, AgreedContents])
def test_a_text_that_is_shown_whole_takes_no_keys(kind):
    assert not kind().allow_focus()


def test_levers_have_enter_in_the_footer():
    assert [(one.key, one.show) for one in LeverList.BINDINGS if one.id == "open"] == [("enter", True)]
