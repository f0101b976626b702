import csv
import re
import shutil
import threading
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of
from prepared_workspaces import finished_workspace
from textual.widgets import Input

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.findings.map import MapPane, axis_limits, map_limit_series
from sfumato.tui.findings.map_bars import run_bars
from sfumato.tui.parts.dialogs import ChoiceDialog
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.reporting.words import number
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.risk_utility import MapAxis, MapCoordinate, MapPoint, RiskUtilityMap

FULL, POOR, PLAIN = 1, 2, 3
RECIPE = {
    "title": "Household survey",
    "variables": variables_of("visits: count quasi_identifier", "income: continuous sensitive"),
    "release": {"m": 3, "seed": 7},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["visits"]}],
    "measure": [{"method": "utility.ecdf"}, {"method": "risk.identification", "radius": {"income": "25%"}}],
}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Runs 1 and 2 of two recipes, and run 3 without a risk."""
    rng = np.random.default_rng(20)
    visits = rng.poisson(4, 90)
    frame = pd.DataFrame({"visits": visits, "income": np.exp(rng.normal(7 + 0.2 * visits, 0.2, 90))})
    changes = ({}, {"release": {"m": 4, "seed": 8}}, {"measure": RECIPE["measure"][:1]})
    plans = [{**RECIPE, **change} for change in changes]
    return finished_workspace(tmp_path_factory.mktemp("mapped") / "workspace", plans, frame, "survey.csv")


@pytest.fixture
def mapped(three, tmp_path):
    """A copy of it, left on the map."""
    copy = shutil.copytree(three, tmp_path / "workspace")
    save_state(copy, AppState(project=1, run=PLAIN, tab="map"))
    return copy


@pytest.mark.slow
async def test_runs_are_points_and_the_cursor_reads_them(sit, mapped, size):
    async with sit(mapped, size=size) as seat:
        assert "2 runs · 1 without one of the numbers" in seat.text
        for words in ("lower is better", "not dominated", "confidential"):
            assert words in seat.text
        for keys in ("enter Open", "f4 Across", "t Numbers"):
            assert keys in " ".join(seat.footer.split())
        text = await seat.press("home", "right")
        assert "Household survey: " in text
        assert max(map(len, text.splitlines())) <= size[0]
        before = await seat.press("0")
        zoomed = await seat.press("plus", "plus")
        assert zoomed != before
        assert await seat.press("0") == before


@pytest.mark.slow
async def test_few_runs_are_named_below_the_map_with_their_numbers(sit, mapped, size):
    async with sit(mapped, size=size) as seat:
        await seat.until(lambda: "run 3 Household survey: not on the map" in seat.text)
        text = " ".join(seat.text.split())
        for run in (FULL, POOR):
            assert re.search(rf"run {run} Household survey: [\d.]+ .*across, [\d.]+ .*up", text)
        assert "it did not measure" in text
        assert "compares with nothing" not in text


@pytest.mark.slow
async def test_one_run_on_the_map_is_named_and_what_a_second_needs(sit, mapped, size):
    with Workspace.open(mapped) as workspace:
        for run in (POOR, PLAIN):
            delete_run(workspace, run)
    async with sit(mapped, size=size) as seat:
        await seat.until(lambda: "One run alone compares with nothing" in seat.text)
        text = " ".join(seat.text.split())
        assert "run 1 Household survey: " in text
        assert "2 opens the plan: R there runs it with a change, S searches" in text
        assert "Each run is then a point" in text


@pytest.mark.slow
async def test_one_run_has_bars_beside_the_confidential_data(sit, mapped):
    with Workspace.open(mapped) as workspace:
        for run in (POOR, PLAIN):
            delete_run(workspace, run)
    async with sit(mapped, size=(120, 40)) as seat:
        await seat.until(lambda: "█" in seat.text)
        rows = [line for line in seat.text.splitlines() if "█" in line]
        assert any("confidential data" in line for line in rows)
        assert any(" run 1 " in line for line in rows)
        assert seat.app.screen.query_one("#map-plot").size.height >= 10


def test_bars_compare_only_what_can_be_compared():
    """Numbers below 0, of no better direction, or of a single value have no bars."""
    axes = tuple(
        MapAxis(f"risk.identification.{name}", "", "", None, goal, "")
        for name, goal in (
            ("expected_match_risk", "low"), ("true_match_rate", "low"), ("false_match_rate", "none"), ("single_matches", "low"))
    )  # fmt: skip
    values = {
        axis.ident: {1: MapCoordinate(value, None, None)} for axis, value in zip(axes, (3, 0.2, 1, -1), strict=True)
    }
    own = {axis.ident: 6.0 for axis in axes[:1]} | {axes[3].ident: 2.0, axes[2].ident: 2.0}
    found = RiskUtilityMap({1: "Survey"}, axes, values, own)
    said = [line.plain for line in run_bars(found, (axes[0], axes[0]), 60, 30, lambda axis: axis.key)]
    assert len(said) == 3
    assert said[0].startswith("risk.identification.expected_match_risk")
    assert said[1].count("█") == 2 * said[2].count("█") or abs(said[1].count("█") - 2 * said[2].count("█")) == 1
    assert run_bars(found, (axes[0], axes[0]), 60, 2, lambda axis: axis.key) == []


@pytest.mark.slow
async def test_numbers_that_no_run_has_both_of_give_way_to_numbers_that_runs_share(sit, mapped):
    async with sit(mapped) as seat:
        pane = seat.app.screen.query_one(MapPane)
        await seat.until(lambda: pane.shown_axes is not None)
        risks = [one for one in pane._found.axes if one.key.startswith("risk.")]
        lonely = replace(pane._found, coordinates={**pane._found.coordinates, risks[-1].ident: {}})
        pane._found = lonely
        seat.app.remember(across=risks[-1].ident)
        assert lonely.points_on(*pane.shown_axes)


@pytest.mark.slow
async def test_enter_opens_the_run_under_the_cursor(sit, mapped):
    async with sit(mapped) as seat:
        await seat.press("enter")
        assert "Move the cursor to a run" in seat.app.notices[-1]
        text = await seat.press("home")
        read = next(line for line in text.splitlines() if "across" in line and "run " in line.split(":")[0])
        wanted = int(read.split()[1])
        await seat.press("enter")
        assert seat.app.state.run == wanted
        assert seat.app.state.tab == "results"


@pytest.mark.slow
async def test_enter_in_the_numbers_opens_a_run_too(sit, mapped, size):
    async with sit(mapped, "t", size=size) as seat:
        assert "across" in seat.text
        await seat.press("G", "enter")
        assert seat.app.state.run in (FULL, POOR)
        await seat.press("act:map", "t")
        assert "home" not in seat.text


@pytest.mark.slow
@pytest.mark.parametrize(("key", "kept"), [("f4", "across"), ("act:upward", "up")])
async def test_an_axis_is_chosen_by_words_and_remembered(sit, mapped, key, kept, size):
    async with sit(mapped, key, size=size) as seat:
        assert isinstance(seat.app.screen, ChoiceDialog)
        await seat.press(*"unique", "space", *"match", "enter")
        assert isinstance(seat.app.screen, ProjectScreen)
        assert "unique_matches" in getattr(seat.app.state, kept)
        assert "People with an only match" in seat.text
    async with sit(mapped, size=size) as seat:
        assert "People with an only match" in seat.text


@pytest.mark.slow
async def test_the_list_of_axes_moves_with_the_arrows_and_closes_without_a_choice(sit, mapped):
    async with sit(mapped, "f4", "down", "down", "up", "enter") as seat:
        assert "expected_match_risk" not in seat.app.state.across
        first = seat.app.state.across
        assert first
        await seat.press("f4", "escape")
        assert seat.app.state.across == first
        await seat.press("f4", *"zzzz", "enter", "down")
        assert isinstance(seat.app.screen, ChoiceDialog)


@pytest.mark.slow
async def test_the_confidential_data_can_be_left_out(sit, mapped):
    async with sit(mapped, "f4", *"true_match_rate", "enter") as seat:
        with_own = seat.text.count("confidential data")
        await seat.press("act:confidential")
        assert seat.text.count("confidential data") == with_own - 1


@pytest.mark.slow
async def test_the_map_is_read_again_when_a_run_is_done(sit, mapped):
    async with sit(mapped) as seat:
        workspace = Workspace.open(mapped)
        with workspace.write_transaction() as connection:
            connection.execute("UPDATE run SET state = 'interrupted' WHERE id = 2")
        workspace.close()
        seat.app.refresh_page()
        await seat.press("shift")
        assert "1 run · " in seat.text
        seat.app.refresh_page()
        await seat.press("shift")
        assert "1 run · " in seat.text


@pytest.mark.slow
async def test_the_map_is_written_as_table_and_plot(sit, mapped, tmp_path):
    async with sit(mapped) as seat:
        for name in ("map.csv", "map.svg"):
            await seat.press("e")
            seat.app.screen.query_one(Input).value = str(tmp_path / name)
            await seat.press("enter")
    with (tmp_path / "map.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["run"] for row in rows} == {"1", "2"}
    assert "not dominated" in {row["efficient"] for row in rows}
    drawn = (tmp_path / "map.svg").read_text("utf-8")
    assert "not dominated" in drawn
    assert "lower is better" in drawn


@pytest.mark.slow
async def test_without_a_run_that_is_done_the_map_says_so(sit, directory):
    workspace = Workspace.open(directory)
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE run SET state = 'interrupted' WHERE state = 'done'")
    workspace.close()
    async with sit(directory, "f4", "enter", "e", tab="map") as seat:
        assert "No run of this project is done" in seat.text


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A run with a limit on the number across, and one relative to the confidential data."""
    rng = np.random.default_rng(21)
    visits = rng.poisson(4, 60)
    frame = pd.DataFrame({"visits": visits, "income": np.exp(rng.normal(7 + 0.2 * visits, 0.2, 60))})
    limits = [
        {"value": "utility.ecdf.max_abs_difference", "target": "income", "max": 0.1},
        {"value": "risk.identification.true_match_rate", "max_ratio": 0.5},
    ]
    plans = [{**RECIPE, "threshold": limit} for limit in (limits, [])]
    return finished_workspace(tmp_path_factory.mktemp("limited") / "workspace", plans, frame, "survey.csv")


@pytest.mark.slow
async def test_the_thresholds_of_the_run_are_lines_on_the_map(sit, limited, tmp_path):
    copy = shutil.copytree(limited, tmp_path / "workspace")
    save_state(copy, AppState(project=1, run=1, tab="map"))
    async with sit(copy) as seat:
        await seat.press("f4", *"true_match", "enter")
        found = seat.app.screen.query_one("#map")
        own = found._found.confidential_values[found.shown_axes[0].ident]
        assert found.shown_limits[0] == [("max", 0.5 * own)]
        assert f"x limit at most {number(0.5 * own)}" in seat.text
        save_state(copy, AppState(project=1, run=2, tab="map"))
    async with sit(copy) as seat:
        assert "x limit" not in seat.text


def place(x, y):
    return MapPoint(1, "a run", MapCoordinate(x, None, None), MapCoordinate(y, None, None), True)


def axis(key="risk.a.b", target="", params="{}", level=None):
    return MapAxis(key, target, params, level, "low", "")


def verdict(value="risk.a.b", target="", level=None, bound="max", limit=0.1, params=None):
    return Verdict(value, target, level, bound, limit, None, None, "met", "", params)


def test_a_threshold_is_an_axis_own_by_key_target_level_and_parameters():
    assert axis_limits([verdict(), verdict()], axis(), None) == [("max", 0.1)]
    assert axis_limits([verdict(bound="min")], axis(), None) == [("min", 0.1)]
    assert axis_limits([verdict(bound="max_ratio")], axis(), 0.5) == [("max", 0.05)]
    assert axis_limits([verdict(bound="max_ratio")], axis(), None) == []
    for other in (axis("risk.a.c"), axis(level=0.1)):
        assert axis_limits([verdict()], other, None) == []
    assert axis_limits([verdict(target="price")], axis(), None) == []
    assert axis_limits([verdict(params={"q": 0.5})], axis(params='{"q": 0.25}'), None) == []
    assert axis_limits([verdict(params={"q": 0.5})], axis(params='{"q": 0.5}'), None) == [("max", 0.1)]


def test_limits_are_lines_across_the_picture_and_far_ones_are_left_out():
    points = [place(0.1, 5.0), place(0.3, 9.0)]
    upright, level = map_limit_series(([("max", 0.2)], [("min", 7.0)]), points)
    assert (upright.x.tolist(), upright.y.tolist()) == ([0.2, 0.2], [5.0, 9.0])
    assert (level.x.tolist(), level.y.tolist()) == ([0.1, 0.3], [7.0, 7.0])
    assert map_limit_series(([("max", 50.0)], []), points) == []
    assert map_limit_series(([("max", 0.2)], []), []) == []
    (alone,) = map_limit_series(([("max", 0.2)], []), points[:1])
    assert alone.y.tolist() == [2.5, 7.5]


@pytest.mark.slow
async def test_thousands_of_axes_are_named_in_a_thread_and_enter_waits_for_them(sit, mapped):
    event_loop = threading.get_ident()
    named = []

    def name(place):
        named.append(threading.get_ident())
        if place == 19_999:
            time.sleep(0.2)
        return f"number {place}"

    async with sit(mapped) as seat:
        chosen = []
        await seat.app.open(ChoiceDialog("Number", 20_000, name, 0), chosen.append)
        await seat.press("shift")
        assert len(named) <= 1_500
        await seat.pilot.press(*"19999", "enter")
        for _ in range(200):
            await seat.pilot.pause(0.02)
            if chosen:
                break
        assert chosen == [19_999]
        assert event_loop not in named


@pytest.mark.slow
async def test_a_long_choice_is_shown_whole(sit, mapped):
    async with sit(mapped, size=(80, 24)) as seat:
        await seat.app.open(ChoiceDialog("Number", 2, ["short", "long " * 20 + "end"].__getitem__, 0))
        await seat.press("shift")
        assert "end" not in seat.text
        await seat.press("down")
        assert "end" in seat.text


async def test_choices_in_wide_characters_are_shown_whole(sit, mapped):
    async with sit(mapped, size=(80, 24)) as seat:
        await seat.app.open(ChoiceDialog("Variable", 1, ["収入と支出の合計"].__getitem__, 0))
        assert "収入と支出の合計" in await seat.press("shift")
