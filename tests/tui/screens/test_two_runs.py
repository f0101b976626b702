"""Runs compared and records drilled into, on a workspace with runs of two recipes and of other data."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import enter_recipe

from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import agreeing_word
from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.findings.records import RecordDialog
from sfumato.tui.parts.dialogs import ConfirmDialog
from sfumato.tui.parts.split import Detail
from sfumato.tui.runs.compare import ComparisonDialog
from sfumato.tui.widgets.grid import Grid
from sfumato.workspace.jobs.runs import reenter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.drafts import draft_of_run
from sfumato.workspace.reporting.recipe_difference import difference_sentence
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.recipe_difference import changes_since_newest_run, differences_between_runs
from sfumato.workspace.views.records import (
    find_candidates,
    find_risk_drivers,
    rank_records,
    record_measures,
    values_of_records,
)

ONE, TWO, OTHER, PLAIN = 1, 2, 3, 4
SECRET = "zqxregion"
RECIPE = {
    "title": "Household survey",
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier"},
        "visits": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive", "bounds": [0, 100_000]},
        "name": {"kind": "categorical", "role": "identifier"},
    },
    "release": {"m": 3, "seed": 7},
    "synthesis": [
        {"target": "income", "method": "linear_regression", "transform": "log", "predictors": ["region", "visits"]}
    ],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "risk.identification", "radius": {"income": "25%", "visits": 1}},
        {"method": "risk.attribute", "radius": {"income": "5%", "visits": 2}},
    ],
    "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.9}],
}
SIZES = [(80, 24), pytest.param((160, 50), marks=pytest.mark.sizes)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Runs 1 and 2: one data, two recipes; run 3: other data; run 4: no risk."""
    workspace = Workspace.create(tmp_path_factory.mktemp("compared") / "workspace", PUBLIC)
    rng = np.random.default_rng(20)
    visits = rng.poisson(4, 90)
    frame = pd.DataFrame(
        {
            "region": rng.choice([SECRET, "south"], 90),
            "visits": visits,
            "income": np.round(np.exp(rng.normal(7 + 0.05 * visits, 0.4, 90)), 2),
            "name": [f"zqxname{i}" for i in range(90)],
        }
    )

    def enter(frame, content=b"simulated", **sections):
        recipe = Recipe.from_table({**RECIPE, **sections})
        enter_recipe(workspace, recipe, frame, "survey.csv", content)

    enter(frame)
    poor = [{"target": "income", "method": "linear_regression", "predictors": ["visits"]}]
    enter(frame, synthesis=poor, release={"m": 4, "seed": 8}, threshold=[])
    enter(frame.head(60), content=b"other")
    enter(frame, measure=RECIPE["measure"][:1], threshold=[])
    run_worker(workspace.directory, idle=0)
    workspace.close()
    return workspace.directory


@pytest.fixture
def directory(built, tmp_path):
    return shutil.copytree(built, tmp_path / "workspace")


@pytest.fixture
def workspace(directory):
    opened = Workspace.open(directory)
    yield opened
    opened.close()


@pytest.fixture(params=SIZES, ids=lambda size: "x".join(map(str, size)))
def size(request):
    return request.param


async def compare(seat, *runs):
    """Mark runs (newest first in the list) and press c."""
    for run in runs:
        await seat.press("g", *["j"] * (PLAIN - run), "space")
    return await seat.press("c")


@pytest.mark.slow
async def test_space_marks_two_runs_and_c_compares_them(sit, directory, size):
    async with sit(directory, "enter", size=size) as seat:
        text = await compare(seat, ONE, TWO)
        assert isinstance(seat.app.screen, ComparisonDialog)
        assert "run 1 beside run 2 Household survey, on the same data" in text
        header = text.splitlines()[2]
        assert header.split()[0] == "number"
        assert header.index("run 1") < header.index("run 2") < header.index("better")
        assert "[numbers]" in text
        row = next(line for line in text.splitlines() if line.strip().startswith("Largest gap"))
        if size[0] > 100:
            assert "run 1 better" in row or "not distinguishable" in row
        else:  # the name is whole, who is better is said by a sign, and the line below has the words
            assert row.strip().startswith("Largest gap between distributions (income) ")
            words = re.search(r"(< run 1) better|(> run 2) better|(~) not distinguishable", text.splitlines()[-2])
            assert words
            assert row.endswith(f"  {words[words.lastindex or 0]}")
        assert "m Numbers, verdicts, only one run, plans" in seat.footer
        assert "all the same" not in seat.footer
        await seat.press("q")
        assert isinstance(seat.app.screen, ProjectScreen)


@pytest.mark.slow
async def test_in_a_wide_terminal_each_row_is_explained_beside_the_list(sit, directory):
    async with sit(directory, "enter", size=(160, 50)) as seat:
        await compare(seat, ONE, TWO)
        text = ""
        for view in ("definition", "limit", "", "was "):
            for _ in range(200):
                await seat.press("shift")
                text = str(seat.app.screen.query_one(Detail)._text.content)
                if view in text and bool(view) == bool(text):
                    break
                await seat.pilot.pause(0.02)
            assert view in text, seat.app.notices
            assert bool(view) == bool(text), "of what only one run has there is nothing to explain here"
            assert seat.app.screen.query_one(Detail).region.x == 96
            await seat.press(*(["enter"] if view == "was " else ["m"]))
        assert seat.app.notices[-1] in text.replace("\n", " "), "in the view of plans enter says the same"


@pytest.mark.slow
async def test_the_cursor_reads_what_the_table_has_no_room_for(sit, directory):
    async with sit(directory, "enter", size=(80, 24)) as seat:
        await compare(seat, ONE, TWO)
        readings = set()
        for _ in range(4):
            await seat.press("j")
            readings.add(seat.reading.strip())
        assert len(readings) == 4
        assert any(" · run 2 - run 1: " in reading and " .. " in reading for reading in readings)


@pytest.mark.slow
async def test_t_shows_verdicts_and_what_only_one_run_has(sit, directory, size):
    async with sit(directory, "enter", size=size) as seat:
        await compare(seat, ONE, TWO)
        text = await seat.press("m")
        assert "[verdicts]" in text
        assert "✓ met" in text
        assert "no threshold" in text
        text = await seat.press("m")
        assert "There is nothing of this kind" in text
        await seat.press("q")
        await seat.press("g", "space")
        text = await seat.press("c")
        assert "run 2 beside run 4 Household survey" in text
        text = await seat.press("m", "m")
        assert "People found for certain (" in text
        assert "income within 25%" in text or size[0] < 120


@pytest.mark.slow
async def test_marks_are_shown_and_the_two_last_are_compared(sit, directory):
    def marked(seat):
        return [line[1:].split()[0] for line in seat.text.splitlines() if line.startswith("*")]

    async with sit(directory, "enter") as seat:
        await seat.press("g", "space", "space")
        assert marked(seat) == ["4", "3"]
        await seat.press("space")
        assert marked(seat) == ["4", "3", "2"]
        await seat.press("c")
        assert [f"run {run}:" in seat.text for run in (4, 3, 2)] == [False, True, True]
        await seat.press("q", "k", "space")
        assert marked(seat) == ["4", "3"]


@pytest.mark.slow
async def test_c_without_two_runs_says_what_to_do(sit, directory):
    async with sit(directory, "enter", "c") as seat:
        assert isinstance(seat.app.screen, ProjectScreen)
        assert "Mark two runs with space" in " ".join(seat.app.notices)


@pytest.mark.slow
async def test_runs_on_different_data_are_compared_on_request_only(sit, directory, size):
    async with sit(directory, "enter", size=size) as seat:
        text = await compare(seat, ONE, OTHER)
        assert "The runs are on different data. Compare anyway with ? or ctrl+p" in text
        assert "run 1: 90 records of survey.csv" in text
        assert "run 3: 60 records of survey.csv" in text
        assert "Largest gap" not in text
        text = await seat.press("act:any_data")
        assert "on DIFFERENT data" in text
        assert "Largest gap" in text


def shown_records(text):
    """Record numbers of the lines of the table, without the explanation below it."""
    words = [line.split() for line in text.partition("├")[0].splitlines()[4:-1]]
    return [int(line[0]) for line in words if line and line[0].isdigit()]


@pytest.mark.slow
async def test_the_records_tab_lists_the_records_most_at_risk(sit, directory, workspace, size):
    (measure, _) = record_measures(workspace, ONE)
    records = rank_records(workspace, ONE, measure)
    top = records.lines(0, 10)
    found = find_risk_drivers(workspace, records, [line.record for line in top])
    async with sit(directory, "enter", "G", "enter", "act:records", size=size) as seat:
        assert "[Records]" in seat.text
        assert "Identification risk 1/2 · average over 3 datasets · 90 records" in seat.text
        certain = records.count_by_probability([1.0, 0.0])[0]
        assert (
            f"{certain} of 90 records {'is' if certain == 1 else 'are'} found for certain in all 3 datasets."
            in seat.text
        )
        shown = shown_records(seat.text)[:10]
        assert len(shown) >= 8
        assert shown == [line.record for line in top][: len(shown)]
        first = next(line for line in seat.text.splitlines() if line.split()[:1] == [str(top[0].record)])
        driver = found.driver(0)
        assert driver is not None
        assert driver.variable in first
        assert "enter Why" in seat.footer


@pytest.mark.slow
async def test_m_shows_another_measure_and_brackets_another_dataset(sit, directory, workspace):
    _, attribute = record_measures(workspace, ONE)
    async with sit(directory, "enter", "G", "enter", "act:records") as seat:
        await seat.press("m")
        assert "Attribute risk 2/2" in seat.text
        assert "only candidate" not in seat.text
        await seat.press("full_stop")
        assert "dataset 1" in seat.text
        expected = rank_records(workspace, ONE, attribute, 1).lines(0, 10)
        assert shown_records(seat.text)[:10] == [line.record for line in expected]
        await seat.press("comma")
        assert "average over 3 datasets" in seat.text
        await seat.press("comma")
        assert "dataset 3" in seat.text


@pytest.mark.slow
async def test_a_run_without_risks_of_records_says_so(sit, directory):
    async with sit(directory, "enter", "g", "enter", "act:records") as seat:
        assert "This run keeps no values of single records" in seat.text


@pytest.mark.slow
async def test_enter_shows_who_matches_a_record_and_why_but_no_values(sit, directory, workspace, size):
    (measure, _) = record_measures(workspace, ONE)
    top = rank_records(workspace, ONE, measure).lines(0, 1)[0].record
    async with sit(directory, "enter", "G", "enter", "act:records", "enter", size=size) as seat:
        assert isinstance(seat.app.screen, RecordDialog)
        (draw,) = (d for d in (1, 2, 3) if f"dataset {d} of 3" in seat.text)
        found = find_candidates(workspace, ONE, measure, top, draw)
        assert f"record {top} of run 1 · Identification risk" in seat.text
        assert (
            f"{len(found.matching)} of 90 released records {agreeing_word(len(found.matching), 'matches', 'match')}; its own record is among them."
            in seat.text
        )
        for variable in ("region", "visits", "income"):
            assert variable in seat.text
        assert shown_rows(seat.text) == list(found.matching)
        assert_no_value(seat.text, workspace, top)


def shown_rows(text):
    """Numbers of the released records that are listed."""
    words = [line.split() for line in text.splitlines()]
    return [int(line[0]) for line in words if len(line) > 1 and line[0].isdigit() and line[1] in ("the", "another's")]


def value_texts(workspace, record):
    own = values_of_records(workspace, ONE, [record])[0]
    return [str(own["name"]), f"{own['income']:.6g}", SECRET, "south"]


def assert_no_value(text, workspace, record):
    assert not [value for value in value_texts(workspace, record) if value in text]


@pytest.mark.slow
async def test_v_shows_values_after_a_yes_and_hides_them_again(sit, directory, workspace):
    (measure, _) = record_measures(workspace, ONE)
    top = rank_records(workspace, ONE, measure).lines(0, 1)[0].record
    own = values_of_records(workspace, ONE, [top])[0]
    async with sit(directory, "enter", "G", "enter", "act:records", "enter", size=(160, 50)) as seat:
        text = await seat.press("v")
        assert f"Show the values of record {top}" in text
        await seat.press("enter")  # the question takes y or n alone
        assert isinstance(seat.app.screen, ConfirmDialog)
        assert_no_value(seat.text, workspace, top)
        await seat.press("n")
        assert isinstance(seat.app.screen, RecordDialog)
        assert_no_value(seat.text, workspace, top)
        text = await seat.press("v", "y")
        assert own["region"] in text
        assert str(own["income"]) in text
        released = next(
            line for line in text.splitlines() if line.split()[:1] == [str(top)] and "the record's own" in line
        )
        assert own["name"] in released
        text = await seat.press("]")
        assert own["region"] in text
        await seat.press("v")
        assert_no_value(seat.text, workspace, top)
        await seat.press("q", "enter")
        assert_no_value(seat.text, workspace, top)


@pytest.mark.slow
async def test_no_value_is_said_or_kept(sit, directory, workspace):
    """Neither messages nor the saved state hold what was shown."""
    async with sit(directory, "enter", "G", "enter", "act:records", "enter", "v", "y") as seat:
        assert SECRET in seat.text or "south" in seat.text
        assert not seat.app.notices
    for file in directory.rglob("*"):
        if file.is_file() and "tables" not in file.parts:
            assert b"zqxname" not in file.read_bytes()


@pytest.mark.slow
async def test_the_tab_and_the_footers_fit_a_small_terminal(sit, directory):
    async with sit(directory, "enter", "G", "enter", "act:records", size=(80, 24)) as seat:
        assert all(len(line) <= 80 for line in seat.text.splitlines())
        await seat.press("enter")
        assert " ".join(seat.footer.split()).startswith(". Dataset v Values e Export ? Keys q Close")


@pytest.mark.slow
async def test_a_number_of_two_runs_is_explained(sit, directory):
    async with sit(directory, size=(80, 24)) as seat:
        await seat.app.open(ComparisonDialog(ONE, TWO))
        await seat.press("shift")
        text = await seat.press("enter")
        assert "╭─ Largest gap between distributions ─" in text
        for name in ("run 1", "run 2", "run 2 - run 1", "better", "definition", "direction", "source", "key"):
            assert f" {name} " in text, name
        assert "Keys of this place" in await seat.press("q", "question_mark")
        text = await seat.press("q", "m", "enter")
        assert "╭─ People found for certain ─" in text
        assert re.search(r"✓ met, \d[\d.]* %", text)


@pytest.mark.slow
async def test_compare_shows_what_differs_between_the_plans(sit, directory, size):
    async with sit(directory, "enter", size=size) as seat:
        text = await compare(seat, ONE, TWO)
        assert "the plans differ in 5 places" in text.splitlines()[0] or size[0] == 80
        text = await seat.press("m", "m", "m")
        assert "[plans] the plans differ in 5 places" in text
        assert any(line.split()[:2] == ["release", "m"] for line in text.splitlines())
        await seat.press("j")
        assert "synthesis" in seat.text
        await seat.press("m")
        assert "[numbers]" in seat.text


async def test_a_run_repeated_has_the_same_plan(workspace):
    first = find_run(workspace, ONE)
    again = find_run(workspace, reenter_run(workspace, ONE))
    assert differences_between_runs(first, again) == ()
    assert differences_between_runs(first, find_run(workspace, TWO)), "the control"
    draft = draft_of_run(workspace, ONE)
    since = changes_since_newest_run(workspace, draft)
    assert (since.run_id, since.changes, since.is_other_data) == (again.id, (), False)
    edited = changes_since_newest_run(workspace, draft.with_text(draft.toml.replace("seed = 7", "seed = 9")))
    assert [difference_sentence(one) for one in edited.changes] == ["release.seed was 7, is 9"]
    assert changes_since_newest_run(workspace, replace(draft, dataset_id=2)).is_other_data


async def test_a_plan_in_old_words_is_the_same_plan(workspace):
    """The role was called otherwise, and a draft may say so still."""
    draft = draft_of_run(workspace, PLAIN)
    old = draft.with_text(draft.toml.replace("quasi_identifier", "known"))
    assert "known" in old.toml
    assert changes_since_newest_run(workspace, old).changes == ()


@pytest.mark.slow
async def test_before_a_plan_runs_it_says_what_is_new_in_it(sit, directory, no_worker, size):
    async with sit(directory, "enter", "2", "R", size=size) as seat:
        assert "Nothing is changed since run 4" in seat.text
        await seat.press("n", "G", "delete", "R")
        assert "Changed since run 4:" in seat.text
        assert "- measure[0] utility.ecdf: removed" in seat.text


@pytest.mark.slow
async def test_until_the_rows_of_a_view_have_come_the_row_of_the_view_before_is_not_taken_for_one_of_them(
    sit, directory, monkeypatch
):
    async with sit(directory, "enter", size=(160, 50)) as seat:
        await compare(seat, ONE, TWO)
        await seat.press("G")
        screen, grid = seat.app.screen, seat.app.screen.query_one(Grid)
        assert screen.detail_query() is not None
        with monkeypatch.context() as held:
            held.setattr(Grid, "_read_next", lambda self: None)
            screen.action_view()
            assert grid.cursor > 5, "more than there are verdicts"
            assert screen.detail_query() is None
            grid.action_select()
            await seat.pilot.pause()
            assert seat.app.screen is screen
        grid._read_next()
        assert "threshold" in await seat.press("shift")
        assert screen.detail_query() is not None
