"""The screen of distributions, key by key."""

import csv
import shutil

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import finished_workspace
from textual.widgets import Input

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.findings.distribution import DistributionsDialog, SidePlot
from sfumato.tui.manual.help import KeysDialog
from sfumato.tui.parts.dialogs import ChoiceDialog
from sfumato.tui.session.state import AppState, save_state
from sfumato.tui.widgets.heatmap import HeatMap
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.plots.series import styled_like
from sfumato.workspace.store.workspace import Workspace

RECIPE = {
    "title": "Household survey",
    "data": {"file": "survey.csv", "missing": "keep"},
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier", "labels": {"n": "north", "s": "south"}},
        "visits": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive"},
        "day": {"kind": "date", "role": "other"},
    },
    "release": {"m": 3, "seed": 7},
    "synthesis": [{"target": "income", "method": "cart", "predictors": ["region", "visits"]}],
    "measure": [{"method": "utility.ecdf"}],
}


def survey():
    rng = np.random.default_rng(20)
    visits = rng.poisson(4, 300)
    income = np.round(np.exp(rng.normal(7 + 0.1 * visits, 0.4)), 1)
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, 300), "D")
    income[:30] = np.nan
    return pd.DataFrame({"region": rng.choice(["n", "s"], 300), "visits": visits, "income": income, "day": days})


@pytest.fixture(scope="module")
def built_workspace(tmp_path_factory):
    """A run of three datasets; a tenth of the incomes is missing."""
    recipe = Recipe.from_table(RECIPE)
    data = conform_to_schema(survey(), recipe.schema, MissingPolicy.KEEP)
    return finished_workspace(tmp_path_factory.mktemp("distributions") / "workspace", [recipe], data, "survey.csv")


@pytest.fixture
def surveyed(built_workspace, tmp_path):
    """A copy of it, left on the runs."""
    copy = shutil.copytree(built_workspace, tmp_path / "workspace")
    save_state(copy, AppState(project=1, run=1, tab="runs"))
    return copy


def cursor_of(widget):
    """The bin across."""
    return widget.cursor_bin[0]


def fits(seat, size):
    return max(map(len, seat.text.splitlines())) <= size[0] and len(seat.text.splitlines()) <= size[1]


@pytest.mark.slow
async def test_the_variable_that_was_synthesised_comes_first_with_its_missing_share(sit, surveyed, size):
    async with sit(surveyed, "act:distributions", size=size) as seat:
        assert isinstance(seat.app.screen, DistributionsDialog)
        assert "run 1 · income · histogram 1/4 · 3 synthetic: mean, least and greatest" in seat.text
        assert "synthetic, mean of 3" in seat.text
        assert "no value: confidential 10 %" in seat.text
        for words in ("m Picture", ". Variable", "} Second", "b Datasets", "o Log scale", "? Help", "q Close"):
            assert words in seat.footer
        assert fits(seat, size)
        await seat.press("q")
        assert not isinstance(seat.app.screen, DistributionsDialog)


@pytest.mark.slow
async def test_m_goes_through_the_pictures_and_the_cursor_reads_each(sit, surveyed, size):
    async with sit(surveyed, "act:distributions", size=size) as seat:
        for name in ("histogram 1/4", "density 2/4", "ecdf 3/4", "difference 4/4"):
            assert name in seat.text
            text = await seat.press("right")
            reading = next(line for line in text.splitlines() if line.startswith(" income "))
            assert ": confidential" in reading or "difference" in name
            assert "synthetic" in reading
            assert fits(seat, size)
            await seat.press("m")
        assert "difference 4/4" in await seat.press("act:previous_picture")
        assert "largest difference" in seat.text


@pytest.mark.slow
async def test_the_histogram_says_the_shares_that_pandas_counts(sit, surveyed):
    async with sit(surveyed, "act:distributions", "home") as seat:
        plot = seat.app.screen.query_one("#distribution-plot", Plot)
        own = plot._series[0]
        width = own.x_spacing
        income = survey()["income"]
        for x, y in zip(own.x, own.y, strict=True):
            assert y == pytest.approx(((income >= x - width / 2) & (income < x + width / 2)).sum() / 300)


@pytest.mark.slow
async def test_brackets_choose_the_variable_and_levels_are_bars_by_name(sit, surveyed, size):
    async with sit(surveyed, "act:distributions", "full_stop", size=size) as seat:
        assert " day · histogram" in seat.text
        assert "2019" in seat.text
        text = await seat.press("full_stop")
        assert " region · shares 1/2" in text
        assert "north" in text
        assert "region north: confidential" in await seat.press("home")
        assert " day · " in await seat.press("comma")


@pytest.mark.slow
async def test_d_shows_a_band_each_dataset_or_one(sit, surveyed):
    async with sit(surveyed, "act:distributions", "m", "m") as seat:
        plot = seat.app.screen.query_one("#distribution-plot", Plot)
        assert plot._series[1].lower is not None
        assert "each, and mean" in await seat.press("b")
        assert [styled_like(plot._series, order) for order in range(5)] == [0, 1, 1, 1, 1]
        assert "synthetic 1/3" in await seat.press("b")
        assert "synthetic 3/3" in await seat.press("b", "b")
        assert "mean, least and greatest" in await seat.press("b")
        assert "synthetic 3/3" in await seat.press("act:previous_datasets")


@pytest.mark.slow
async def test_zoom_is_in_both_directions_and_logarithms_are_of_the_variable_or_of_the_shares(sit, surveyed):
    async with sit(surveyed, "act:distributions") as seat:
        before = seat.text
        plot = seat.app.screen.query_one("#distribution-plot", Plot)
        whole = plot.x_range
        await seat.press("home", "plus", "act:zoom_in_up")
        assert plot.x_range[1] - plot.x_range[0] < whole[1] - whole[0]
        assert plot._y_seen is not None
        assert await seat.press("0") == before
        await seat.press("o")
        assert "· log scale" in seat.text
        assert "1000" in seat.text
        assert "other axis log" in await seat.press("act:log_scale_other")
        assert "other axis log" not in await seat.press("act:log_scale_other")
        assert "· log scale" not in await seat.press("o")
        await seat.press("full_stop", "o")
        assert "· log scale" not in seat.text


@pytest.mark.slow
async def test_a_second_variable_makes_a_heat_map_with_a_cursor(sit, surveyed, size):
    async with sit(surveyed, "act:distributions", "right_curly_bracket", size=size) as seat:
        assert "income across, region up · heat map" in seat.text
        assert "north" in seat.text
        text = await seat.press("right_curly_bracket")
        assert "income across, visits up · heat map 5/6" in text
        assert "difference" in text
        assert "not in the picture: confidential 10 %" in text
        text = await seat.press("right", "left", "down")
        reading = next(line for line in text.splitlines() if line.startswith(" income "))
        assert ", visits " in reading
        assert ": confidential" in reading
        assert fits(seat, size)
        assert "income across, region up" in await seat.press("left_curly_bracket")
        assert " income · histogram" in await seat.press("left_curly_bracket")


@pytest.mark.slow
async def test_a_heat_map_holds_the_counts_of_pandas_and_zooms_about_its_cursor(sit, surveyed):
    async with sit(surveyed, "act:distributions", "right_curly_bracket", "right_curly_bracket", "right") as seat:
        widget = seat.app.screen.query_one(HeatMap)
        cells, data = widget._panes[0].cells, survey()
        binned = [
            pd.cut(data[name], bins.edges, right=False) for name, bins in (("visits", cells.y), ("income", cells.x))
        ]
        assert cells.shares * 300 == pytest.approx(pd.crosstab(*binned, dropna=False).to_numpy())
        edges = cells.x.edges
        low = edges[cursor_of(widget)]
        await seat.press("plus", "act:zoom_in_up", "plus")
        closer = widget._panes[0].cells.x.edges
        assert closer[-1] - closer[0] < (edges[-1] - edges[0]) / 2
        assert closer[0] <= low <= closer[-1]
        place = cursor_of(widget)
        assert closer[place] <= low + (edges[1] - edges[0])
        assert low <= closer[place + 1]
        await seat.press("minus", "act:zoom_out_up")
        assert np.array_equal((await seat.press("0"), widget._panes[0].cells.x.edges)[1], edges)


@pytest.mark.slow
async def test_p_shows_one_map_and_c_shades_by_logarithm(sit, surveyed):
    async with sit(surveyed, "act:distributions", "right_curly_bracket", "right_curly_bracket") as seat:
        widget = seat.app.screen.query_one(HeatMap)
        assert len(widget._panes) == 3
        for title in ("confidential", "synthetic, mean of 3", "difference"):
            await seat.press("act:arrange")
            assert [pane.title for pane in widget._panes] == [title]
        await seat.press("act:arrange")
        assert len(widget._panes) == 3
        assert "shades by logarithm" in await seat.press("act:shades")
        assert "synthetic 1/3" in await seat.press("b", "b")


@pytest.mark.slow
async def test_points_are_beside_each_other_or_over_each_other(sit, surveyed, size):
    async with sit(surveyed, "act:distributions", "right_curly_bracket", "right_curly_bracket", "m", size=size) as seat:
        side = seat.app.screen.query_one(SidePlot)
        assert "scatter 6/6" in seat.text
        assert side.display
        assert "confidential 270 of 300 (30 cannot be drawn)" in seat.text
        text = await seat.press("right")
        assert "points, " in text
        assert side.cursor_x is not None
        await seat.press("plus", "act:zoom_in_up")
        plot = seat.app.screen.query_one("#distribution-plot", Plot)
        assert (side.x_range, side._y_seen) == (plot.x_range, plot._y_seen)
        await seat.press("act:arrange")
        assert not side.display
        assert len(plot._series) == 2
        assert fits(seat, size)


@pytest.mark.slow
async def test_variables_are_chosen_by_name(sit, surveyed):
    async with sit(surveyed, "act:distributions", "act:upward") as seat:
        assert isinstance(seat.app.screen, ChoiceDialog)
        assert "income across, visits up" in await seat.press(*"vis", "enter")
        await seat.press("act:upward", "escape")
        assert "income across, visits up" in seat.text
        assert " income · histogram" in await seat.press("act:upward", *"non", "enter")
        assert " visits · histogram" in await seat.press("f4", *"vis", "enter")


@pytest.mark.slow
async def test_numbers_take_the_place_of_the_picture(sit, surveyed, size):
    async with sit(surveyed, "act:distributions", "t", size=size) as seat:
        assert "confidential" in seat.text
        assert fits(seat, size)
        assert "income, from" in await seat.press("j", "right_curly_bracket")
        assert not seat.app.screen.query_one(HeatMap).has_focus
        await seat.press("t")
        assert seat.app.screen.query_one(HeatMap).has_focus


@pytest.mark.slow
async def test_files_say_that_they_are_confidential(sit, surveyed, tmp_path):
    async with sit(surveyed, "act:distributions") as seat:
        for keys, name in ((), "one"), (("right_curly_bracket", "right_curly_bracket"), "heat"), (("m",), "points"):
            await seat.press(*keys)
            for suffix in (".csv", ".svg") if name != "points" else (".svg",):
                await seat.press("e")
                field = seat.app.screen.query_one(Input)
                assert "/confidential-run-1-income" in field.value
                field.value = str(tmp_path / f"{name}{suffix}")
                await seat.press("enter")
    for name in ("one", "heat", "points"):
        assert "CONFIDENTIAL: income" in (tmp_path / f"{name}.svg").read_text("utf-8")
    with (tmp_path / "heat.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(float(row["confidential"]) for row in rows) == pytest.approx(0.9)
    assert all(float(row["income, from"]) < float(row["income, below"]) for row in rows)
    with (tmp_path / "one.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["data"] == "confidential"]
    assert sum(float(row["share"]) for row in rows) == pytest.approx(0.9)


@pytest.mark.slow
async def test_from_data_and_results_the_variable_under_the_cursor_is_shown(sit, surveyed):
    async with sit(surveyed, "1", "down", "act:distributions") as seat:
        assert " visits · histogram" in seat.text
        await seat.press("q", "act:results", "t")
        assert isinstance(seat.app.screen, DistributionsDialog)
        assert " · histogram" in seat.text or " · shares" in seat.text


@pytest.mark.slow
async def test_help_names_the_keys(sit, surveyed):
    async with sit(surveyed, "act:distributions", "question_mark", size=(120, 60)) as seat:
        assert isinstance(seat.app.screen, KeysDialog)
        for words in ("Log scale", "Shades by logarithm", "Zoom in up and down", "Numbers"):
            assert words in seat.text


@pytest.mark.slow
async def test_without_a_run_that_is_done_the_confidential_data_are_shown_alone(sit, surveyed):
    workspace = Workspace.open(surveyed)
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE run SET state = 'interrupted'")
    workspace.close()
    async with sit(surveyed, "act:distributions") as seat:
        assert "confidential data alone · region · shares 1/1" in seat.text
        await seat.press("b", "full_stop", "right_curly_bracket")
        assert len(seat.app.screen.query_one(HeatMap)._panes) == 1


@pytest.mark.slow
async def test_a_project_without_data_says_so(sit, directory):
    save_state(directory, AppState(project=2, run=None, tab="runs"))
    async with sit(directory, "act:distributions", "m", "b", "t", "e") as seat:
        assert "This project has no data yet" in seat.text


@pytest.mark.slow
async def test_without_colour_and_in_ascii_they_are_shown_too(sit, surveyed, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    async with sit(surveyed, "act:distributions", size=(80, 24)) as seat:
        text = await seat.press("right", "b", "right_curly_bracket", "right_curly_bracket", "right")
        picture = "\n".join(text.splitlines()[1:-4])
        assert picture.isascii()
        assert "@" in picture
        assert "scatter" in await seat.press("m")
