import csv

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of
from prepared_workspaces import finished_workspace
from textual.widgets import Input

from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.findings.distribution import DistributionsDialog
from sfumato.tui.findings.quality import NO_RECORDS, QualityDialog, board_row_text, deciding_column, verdict_reason
from sfumato.tui.session.state import AppState, save_state
from sfumato.tui.widgets.grid import Grid
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.quality import (
    QualityBoard,
    QualityMetric,
    QualityScore,
    has_quality_results,
    read_quality_board,
)
from sfumato.workspace.views.studies import has_study_answers

GOOD, POOR, PLAIN = 1, 2, 3
SIZES = pytest.mark.parametrize("size", [(80, 24), pytest.param((160, 50), marks=pytest.mark.sizes)], ids=str)
RECIPE = {
    "title": "Census",
    "variables": variables_of("age: count quasi_identifier", "hours: count quasi_identifier", "town: categorical quasi_identifier", "flat: count", "status: categorical sensitive"),
    "release": {"seed": 7},
    "anonymisation": [{"method": "mondrian", "k": 2}],
    "measure": [
        {"method": "quality.pearson", "variables": ["age", "flat"]},
        {"method": "quality.rilm"},
        {"method": "quality.nmi_v1", "variables": ["age"]},
        {"method": "quality.non_suppressed"},
    ],
    "threshold": [{"value": "quality.nmi_v1.minimum_nmi", "min": 0.5}, {"value": "quality.rilm.minimum_categorical", "min": 0.1}],
}  # fmt: skip


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Run 1 keeps its recipe's limits, run 2 has classes too large for them, run 3 measures no quality."""
    rng = np.random.default_rng(4)
    age = rng.integers(18, 80, 300)
    frame = pd.DataFrame(
        {"age": age, "hours": rng.poisson(30, 300), "town": rng.choice(["x", "y"], 300), "flat": 3,
         "status": rng.choice(["a", "b"], 300)}
    )  # fmt: skip
    plain = {"measure": [{"method": "utility.ecdf"}], "threshold": []}
    changes = ({}, {"anonymisation": [{"method": "mondrian", "k": 150}]}, plain)
    plans = [{**RECIPE, **change} for change in changes]
    return finished_workspace(tmp_path_factory.mktemp("quality") / "workspace", plans, frame, "census.csv")


def board_of(directory, run_id):
    with Workspace.open(directory, read_only=True) as reader:
        return read_quality_board(reader, run_id)


def look(directory, run_id, tab="results"):
    save_state(directory, AppState(project=1, run=run_id, tab=tab))
    return directory


@pytest.mark.slow
def test_scores_are_the_stored_rows_and_limits_the_recipes_else_lighthouses(three):
    board = board_of(three, GOOD)
    with Workspace.open(three, read_only=True) as reader:
        stored = dict(
            reader.connection.execute(
                """SELECT method || target, max(value) FROM result WHERE run_id = 1 AND draw IS NULL AND family = 'quality'
                   AND measure IN ('rho', 'nmi', 'categorical', 'share') GROUP BY 1"""
            ).fetchall()
        )
    assert board.column_scores["rho", "age"] == QualityScore(stored["pearsonage"], 0.90)
    assert board.column_scores["nmi v1", "age"] == QualityScore(stored["nmi_v1age"], 0.5)
    assert board.column_scores["rilm", "town"] == QualityScore(stored["rilmtown"], 0.1)
    assert board.table_scores["non-suppressed"] == QualityScore(stored["non_suppressed"], 0.99)
    assert board.column_scores["rho", "flat"].value is None
    assert "all the same" in board.column_scores["rho", "flat"].reason
    assert set(board.unscored_columns) == {("rho", "hours"), ("nmi v1", "hours")}
    assert board.outcome == "met"


def test_large_classes_do_not_meet_minimum_data_quality(three):
    board = board_of(three, POOR)
    assert board.table_scores["rho"].value < 0.9
    assert board.outcome == "not met"
    assert "rho 0." in verdict_reason(board)


def quality_board(whole, scores=(), expected=()):
    return QualityBoard((), (), dict(scores), whole, dict(expected))


def test_a_value_at_the_limit_passes_and_just_below_fails():
    assert quality_board({"rho": QualityScore(0.9, 0.9)}).outcome == "met"
    assert quality_board({"rho": QualityScore(0.9 - 1e-9, 0.9)}).outcome == "not met"
    assert quality_board({"rho": QualityScore(np.nextafter(0.9, 0), 0.9)}).outcome == "met", "rounding decides nothing"


def test_nothing_is_passed_that_was_not_computed_or_not_measured():
    good = {"rho": QualityScore(1.0, 0.9)}
    assert quality_board({**good, "nmi v1": QualityScore(None, 0.8, "why")}).outcome == "not computed"
    lacking = quality_board(good, expected={"rho": ["age"], "rilm": ["town"]})
    assert lacking.outcome == "not computed"
    assert "rilm not measured" in verdict_reason(lacking)
    assert quality_board({}).outcome == "not computed"
    assert quality_board({"rilm of numbers": QualityScore(0.1, None)}).outcome == "not computed"


def test_a_failure_outweighs_what_is_missing_and_a_limit_of_a_column_counts():
    assert quality_board({"rho": QualityScore(0.5, 0.9), "nmi v1": QualityScore(None, 0.8)}).outcome == "not met"
    assert (
        quality_board(
            {"rho": QualityScore(0.95, 0.9)}, {("rho", "age"): QualityScore(0.95, 0.99, has_own_limit=True)}
        ).outcome
        == "not met"
    )


def test_only_done_runs_with_such_rows_have_the_view(three):
    with Workspace.open(three, read_only=True) as reader:
        assert [has_quality_results(reader, find_run(reader, run_id)) for run_id in (GOOD, PLAIN)] == [True, False]
        assert [has_study_answers(reader, find_run(reader, run_id)) for run_id in (GOOD, PLAIN)] == [False, False]


@pytest.mark.slow
@SIZES
async def test_the_board_shows_verdict_limits_and_reasons(sit, three, size):
    async with sit(look(three, GOOD), "act:quality", size=size) as seat:
        text = seat.text
        assert isinstance(seat.app.screen, QualityDialog)
        assert "✓ met  meets minimum data quality" in text
        for words in (
            "at least 0.9",
            "at least 0.5",
            "at least 0.99",
            "? not computed",
            "not scored",
            "non-suppressed",
        ):
            assert words in text
        assert max(map(len, text.splitlines())) <= size[0]
        await seat.press("G", "k")
        await seat.until(lambda: "Minimum over" not in seat.text)
        await seat.press("G")
        flat = "flat: rho not computed, at least 0.9 (the original values are all the same"
        await seat.until(lambda: flat in " ".join(seat.text.split()))
        await seat.press("q")
        assert not isinstance(seat.app.screen, QualityDialog)


@pytest.mark.slow
async def test_a_release_that_fails_says_by_what(sit, three):
    async with sit(look(three, POOR), "act:quality", size=(80, 24)) as seat:
        assert "✗ not met  does not meet minimum data quality" in seat.text
        assert "rho 0." in seat.text.splitlines()[1]


@pytest.mark.slow
async def test_keys_and_commands_are_there_only_where_there_is_something(sit, three):
    async with sit(look(three, PLAIN), "act:quality", "act:planes", "act:limits") as seat:
        assert isinstance(seat.app.screen, ProjectScreen)
        titles = {command.title.partition("   ")[0] for command in seat.app.get_system_commands(seat.app.screen)}
        assert "Find the smallest sample" in titles
        assert not titles & {"Findings: data quality", "Findings: studies with curves", "Findings: studies with limits"}
        assert "data quality" not in await seat.press("question_mark")
    async with sit(look(three, GOOD)) as seat:
        assert "Findings: data quality" in [
            command.title.partition("   ")[0] for command in seat.app.get_system_commands(seat.app.screen)
        ]
        assert "data quality" in await seat.press("question_mark")


@pytest.mark.slow
async def test_in_the_list_of_runs_the_key_is_for_the_run_under_the_cursor(sit, three):
    async with sit(look(three, PLAIN, "runs"), "G", "act:quality") as seat:
        assert "Run 1  ✓ met" in seat.text


@pytest.mark.slow
async def test_the_board_is_written_with_all_digits(sit, three, tmp_path):
    async with sit(look(three, GOOD), "act:quality", "e") as seat:
        seat.app.screen.query_one(Input).value = str(tmp_path / "quality.csv")
        await seat.press("enter")
    with (tmp_path / "quality.csv").open(newline="") as file:
        rows = {(row["measure"], row["variable"]): row for row in csv.DictReader(file)}
    board = board_of(three, GOOD)
    assert float(rows["rho", "age"]["value"]) == board.column_scores["rho", "age"].value
    assert rows["rho", "flat"]["outcome"] == "not computed"


def test_a_row_is_read_in_words(three):
    board = board_of(three, GOOD)
    assert board_row_text(board, 0).startswith("Minimum over the columns: rho ")
    assert board_row_text(board, 2 + board.columns.index("town")).startswith("town: rilm 1, at least 0.1")


def board(**scores):
    metrics = [QualityMetric(name, "", f"quality.{name}.minimum", "numbers", 0.5) for name in ("rho", "nmi")]
    whole = {"rho": QualityScore(0.9, 0.5), "nmi": QualityScore(0.1, 0.5)}
    by_column = {
        (name, column): QualityScore(value, 0.5) for column, own in scores.items() for name, value in own.items()
    }
    return QualityBoard(metrics, list(scores), by_column, whole, {})


def test_the_minimum_leads_to_the_variable_that_has_it():
    assert deciding_column(board(age={"rho": 0.9, "nmi": 0.2}, hours={"rho": 0.95, "nmi": 0.1})) == "hours"
    assert deciding_column(board(age={"rho": 0.9}, hours={"rho": 0.95})) == "age"
    assert deciding_column(board(age={"nmi": None})) is None


async def beside(seat, words):
    for _ in range(200):
        if words in seat.text:
            return True
        await seat.press("shift")
        await seat.pilot.pause(0.02)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_enter_on_the_board_of_quality_leads_to_the_values(sit, three, size):
    async with sit(look(three, GOOD), "act:quality", size=size) as seat:
        assert isinstance(seat.app.screen, QualityDialog)
        if size[0] >= 160:
            assert await beside(seat, "Lighthouse")
        await seat.press("j", "enter")
        assert seat.app.notices[-1] == NO_RECORDS
        assert isinstance(seat.app.screen, QualityDialog)
        names = [seat.app.screen.query_one(Grid).row_at(index)[0] for index in (2, 3)]
        for key, name in (("k", "age"), ("j", None), ("j", None)):
            await seat.press(key)
            index = seat.app.screen.query_one(Grid).cursor
            if index == 1:
                continue
            await seat.press("enter")
            assert isinstance(seat.app.screen, DistributionsDialog)
            assert f"run 1 · {name or names[index - 2]}" in seat.text
            await seat.press("q")
