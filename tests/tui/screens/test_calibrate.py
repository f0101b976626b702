import csv
import json

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of
from prepared_workspaces import finished_workspace
from textual.widgets import Input

from sfumato.engine.methods.registry import registry
from sfumato.tui.findings.study import StudiesPane, StudyDialog
from sfumato.tui.findings.study_answers import (
    axis_slider,
    draw_plane,
    place_text,
    spread_text,
    suggested_place,
    tables_text,
)
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.reporting.words import number
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.studies import StudyAnswer, StudyResult, read_studies

SIZES = pytest.mark.parametrize("size", [(80, 24), pytest.param((160, 50), marks=pytest.mark.sizes)], ids=str)
RECIPE = {
    "title": "Census",
    "variables": variables_of(
        "age: count quasi_identifier",
        "hours: count quasi_identifier",
        "sex: categorical quasi_identifier",
        "status: categorical sensitive",
    ),
    "release": {"seed": 7},
    "anonymisation": [{"method": "mondrian", "k": 5}],
    "measure": [{"method": "risk.anonymity"}],
    "study": [
        {"method": "studies.calibration", "generators": 3, "ks": [2, 40, 150], "subsets": 4, "smallest_group": 10}
    ],
}


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """A run with one small calibration."""
    rng = np.random.default_rng(1)
    age = rng.integers(18, 80, 200)
    status = np.where(rng.random(200) < age / 160, "a", rng.choice(["b", "c"], 200))
    frame = pd.DataFrame(
        {
            "age": age,
            "hours": rng.poisson(30, 200) + 3 * (status == "a"),
            "sex": rng.choice(["f", "m"], 200),
            "status": status,
        }
    )
    directory = finished_workspace(tmp_path_factory.mktemp("calibrate") / "workspace", [RECIPE], frame, "census.csv")
    save_state(directory, AppState(project=1, run=1, tab="results"))
    return directory


@pytest.fixture(scope="module")
def study(calibrated):
    with Workspace.open(calibrated, read_only=True) as reader:
        return read_studies(reader, 1)[0]


@pytest.fixture(scope="module")
def labels(calibrated):
    """Scores of rho, -inf where it has none, with the tests and the errors each speaks of."""
    with Workspace.open(calibrated, read_only=True) as reader:
        found = reader.connection.execute(
            """SELECT value, result.params AS params FROM result JOIN task ON task.id = result.task_id
               WHERE task.kind = 'study' AND measure = 'rho'"""
        ).fetchall()
    rows = [(value, params) for value, params in ((v, json.loads(p)) for v, p in found) if "tests" in params]
    errors = [params["lost"] + params["spurious"] + params["sign_flip"] for _, params in rows]
    scores = [-np.inf if value is None else value for value, _ in rows]
    return np.array(scores), np.array([params["tests"] for _, params in rows]), np.array(errors)


def plane_series(study, plane, at=0):
    return list(draw_plane(study, "rho", study.method.study.planes[plane], at).series)


@pytest.mark.slow
def test_the_curves_are_those_of_the_simulations_counted_again(study, labels):
    scores, tests, errors = labels
    assert errors.sum() > 0
    assert len(study.points) == 21
    for place, level in enumerate(study.points):
        passing = scores >= level - 1e-12
        total = tests[passing].sum()
        rate = study.values["rho", "error_rate"][place]
        assert rate == (pytest.approx(errors[passing].sum() / total) if total else None)
        assert study.values["rho", "false_positive_rate"][place] == pytest.approx(errors[passing].sum() / errors.sum())
        assert study.values["rho", "true_positive_rate"][place] == pytest.approx(
            (tests - errors)[passing].sum() / (tests - errors).sum()
        )


@pytest.mark.slow
def test_the_area_is_the_chance_that_a_good_label_scores_higher(study, labels):
    scores, tests, errors = labels
    good, bad = np.repeat(scores, tests - errors), np.repeat(scores, errors)
    above = (good[:, None] > bad).mean() + (good[:, None] == bad).mean() / 2
    assert study.find_answer("auc", "rho", generators="all").value == pytest.approx(above)


@pytest.mark.slow
def test_no_smaller_threshold_than_the_suggested_one_keeps_the_errors_few(study, labels):
    scores, tests, errors = labels

    def rate(threshold):
        passing = scores >= threshold - 1e-12
        return errors[passing].sum() / tests[passing].sum()

    suggested = study.answer_on_axis("rho").value
    assert suggested > 0
    assert rate(suggested) <= 0.05
    assert all(rate(t / 100) > 0.05 for t in range(round(100 * suggested)))


def calibration_result(suggested=(0.82, ""), rates=(0.2, 0.1, None), auc=(0.75, ""), more=()):
    columns = {
        "true_positive_rate": (1.0, 0.6, 0.0), "false_positive_rate": (1.0, 0.2, 0.0), "precision": (0.8, 0.9, None),
        "error_rate": rates,
    }  # fmt: skip
    rho = {"score": "rho"}
    answers = [
        *(StudyAnswer("auc", *one, {**rho, "generators": end}) for end, one in
          (("all", auc), ("best", (0.9, "")), ("worst", (0.6, "")))),
        StudyAnswer("good", 0.8, "", rho), StudyAnswer("suggested_threshold", *suggested, rho), *more,
    ]  # fmt: skip
    values = {("rho", name): one for name, one in columns.items()}
    return StudyResult(registry()["studies.calibration"], {}, (0.0, 0.85, 1.0), values, {}, tuple(answers))


def test_curves_start_where_nothing_passes_and_pr_has_no_point_there():
    roc, guess, here = plane_series(calibration_result(), 0, 1)
    assert (roc.x.tolist(), roc.y.tolist()) == ([0, 0, 0.2, 1], [0, 0, 0.6, 1])
    assert (here.x[0], here.y[0]) == (0.2, 0.6)
    assert guess.x.tolist() == guess.y.tolist()
    assert plane_series(calibration_result(), 1, 2)[0].x.tolist() == [0.6, 1.0]
    assert len(plane_series(calibration_result(), 1, 2)) == 2


def test_the_suggested_threshold_is_marked_and_its_level_is_not_below_it():
    assert suggested_place(calibration_result(), "rho") == 1
    assert suggested_place(calibration_result(suggested=(None, "why")), "rho") == 1
    assert suggested_place(calibration_result(suggested=(0.99, "")), "rho") == 2
    marked = next(one for one in plane_series(calibration_result(), 2) if one.name == "suggested 0.82")
    assert marked.x.tolist() == [0.82, 0.82]
    bar = axis_slider(calibration_result(), "rho", 2, 101).partition(" 0 ")[2]
    assert (bar.index("|"), bar.index("●")) == (82, 100)
    assert not [one for one in plane_series(calibration_result(suggested=(None, "why")), 2) if "suggested" in one.name]


def test_what_is_not_computed_says_why():
    assert spread_text(calibration_result(auc=(None, "no bad labels")), "rho").startswith(
        "AUC not computed: no bad labels"
    )
    assert spread_text(calibration_result(), "rho").startswith("AUC 0.75 (0.6 .. 0.9)")
    assert "error rate -" in place_text(calibration_result(), "rho", 2)
    assert "none suggested: too many errors" in place_text(
        calibration_result(suggested=(None, "too many errors")), "rho", 0
    )
    assert plane_series(calibration_result(rates=(None,) * 3), 2) == []


def test_the_slider_is_ascii_where_asked(monkeypatch):
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    assert axis_slider(calibration_result(), "rho", 1, 40).isascii()


def test_the_error_table_sets_tables_that_pass_beside_the_others():
    errors = [
        StudyAnswer(kind, 0.01 if passed else 0.25, "", {"passed": passed, "tests": 1200 if passed else 30})
        for kind in ("lost", "spurious", "sign_flip", "errors")
        for passed in (True, False)
    ]
    text = tables_text(calibration_result(more=errors), "rho")
    line = next(line for line in text.splitlines() if line.startswith("lost"))
    assert line.split()[-2:] == ["0.01", "0.25"]
    assert "1,200" in text


def parts_that_fit(text, width):
    """Return the first parts of a line that fit into a width."""
    while len(text) > width:
        text = text.rpartition(" · ")[0]
    return text


@pytest.mark.slow
@SIZES
async def test_left_and_right_move_the_threshold_and_the_error_rate_follows(sit, calibrated, study, size):
    async with sit(calibrated, "act:planes", size=size) as seat:
        assert isinstance(seat.app.screen, StudyDialog)
        at = suggested_place(study, "rho")
        assert f"threshold {study.points[at]:.2f}  0 " in seat.text
        assert parts_that_fit(place_text(study, "rho", at), size[0] - 6) in seat.text
        assert "…" not in seat.reading, "what does not fit is left out whole"
        assert f"rho (1 of 7) · {spread_text(study, 'rho')}" in seat.text
        step, key = (1, "right") if at == 0 else (-1, "left")
        await seat.press(key)
        assert parts_that_fit(place_text(study, "rho", at + step), size[0] - 6) in seat.text
        await seat.press(*["l"] * 3, *["h"] * 2)
        assert f"threshold {study.points[at]:.2f}" in await seat.press("act:suggested")
        assert "rilm_numerical (2 of 7)" in await seat.press("m")
        assert "rho (1 of 7)" in await seat.press("act:previous_picture")
        assert "non_suppressed (7 of 7)" in await seat.press("act:previous_picture")
        await seat.press("full_stop")
        assert "rho (1 of 7)" in seat.text
        assert max(map(len, seat.text.splitlines())) <= size[0]
        await seat.press("q")
        assert not isinstance(seat.app.screen, StudyDialog)


@pytest.mark.slow
async def test_the_threshold_stays_between_0_and_1(sit, calibrated):
    async with sit(calibrated, "act:planes", size=(80, 24)) as seat:
        seat.app.screen.query_one(StudiesPane).action_place(30)
        assert "threshold 1.00" in await seat.press("right")
        seat.app.screen.query_one(StudiesPane).action_place(-30)
        assert "threshold 0.00" in await seat.press("left")


@pytest.mark.slow
async def test_where_there_is_room_all_parts_are_in_sight(sit, calibrated):
    async with sit(calibrated, "act:planes", size=(160, 50)) as seat:
        for words in ("ROC", "PR", "Error rate above the threshold", "lost (Type I)", "suggested"):
            assert words in seat.text
        assert "Next plot" not in seat.footer


@pytest.mark.slow
async def test_where_there_is_little_room_v_goes_through_the_parts(sit, calibrated):
    async with sit(calibrated, "act:planes", size=(80, 24)) as seat:
        for words in ("false positive rate", "precision", "Error rate above", "lost (Type I)"):
            assert words in seat.text
            await seat.press("tab")
        assert "false positive rate" in seat.text


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 120, 200])
async def test_no_line_of_the_tables_is_broken_and_columns_come_back_with_the_room(sit, calibrated, study, columns):
    async with sit(calibrated, "act:planes", size=(columns, 60)) as seat:
        if columns < 100:
            await seat.press("tab", "tab", "tab")
        heading = next(line for line in seat.text.splitlines() if " suggested " in line and "score" in line)
        assert ("AP worst" in heading) == (columns == 200)
        assert "AUC" in heading
        assert ("AUC best" in heading) == ("AUC worst" in heading)
        for name in study.curve_names:
            assert any(name in line and number(study.find_answer("auc", name, generators="all").value) in line
                       for line in seat.text.splitlines())  # fmt: skip
        await seat.pilot.resize_terminal(240, 60)
        assert "AP worst" in await seat.press("shift")


@pytest.mark.slow
async def test_curves_are_written_as_table_and_plot(sit, calibrated, study, tmp_path):
    async with sit(calibrated, "act:planes") as seat:
        for name in ("rho.csv", "rho.svg"):
            await seat.press("e")
            seat.app.screen.query_one(Input).value = str(tmp_path / name)
            await seat.press("enter")
    with (tmp_path / "rho.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["true_positive_rate"]) for row in rows] == list(study.values["rho", "true_positive_rate"])
    assert "false positive rate" in (tmp_path / "rho.svg").read_text("utf-8")
