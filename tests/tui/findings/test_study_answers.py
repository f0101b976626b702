"""A study that nobody has thought of gets its screen from what it declares, and a quality measure its column of the board."""

from dataclasses import replace

import pytest

from sfumato.engine.methods.outputs import Axis, Limit, Output, Plane, QualityOutput, StudyOutput
from sfumato.engine.methods.registry import registry
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.findings.study_answers import LimitView, PlaneView, make_study_view
from sfumato.workspace.views import quality
from sfumato.workspace.views.studies import StudyAnswer, StudyResult

BUDGETS = (1.0, 2.0, 4.0)
LOSS = Output("loss", "what the release loses at this budget", "low", short="lost")
GAIN = Output("gain", "what the intruder gains at this budget", "low")
BEST = Output(
    "best",
    "budget at which loss and gain are the same",
    "none",
    "epsilon",
    study=StudyOutput(answer=True, on_axis=True),
)


AXIS = Axis("epsilon", "the privacy budget", heading="Loss by budget")


def invented(*outputs, axis=AXIS, planes=(), family="studies", name="budget"):
    """A method of a study that only declares."""
    like = registry()["studies.minimisation"]
    declared = replace(like.study, axis=axis, planes=planes)
    return replace(like, family=family, name=name, title="Budgets", outputs=outputs, study=declared)


def study(method, answer=2.0, reason=""):
    values = {("", "loss"): (3.0, 2.0, 1.0), ("", "gain"): (1.0, None, 3.0)}
    return StudyResult(method, {}, BUDGETS, values, {}, (StudyAnswer("best", answer, reason),))


@pytest.fixture
def view():
    return make_study_view(study(invented(LOSS, GAIN, BEST)))


def test_its_answer_is_said_with_the_meaning_that_it_declares(view):
    assert isinstance(view, LimitView)
    assert view.title == "Budgets"
    assert view.answer_content.plain.endswith("budget at which loss and gain are the same: 2")
    none = make_study_view(study(invented(LOSS, GAIN, BEST), None, "they never meet"))
    assert none.answer_content.plain.endswith("budget at which loss and gain are the same: they never meet")


def test_its_measures_are_drawn_along_its_axis_and_the_answer_upright(view):
    assert list(view.pictures) == ["all measures", "lost", "gain"]
    panel = view.panel_at(0)
    assert panel.x_label == "epsilon"
    assert [one.name for one in panel.series] == ["lost", "gain", "answer 2"]
    assert panel.series[-1].x.tolist() == [2.0, 2.0]
    assert [one.name for one in view.panel_at(1).series] == ["lost", "answer 2"]


def test_its_numbers_stand_in_rows_and_files_and_are_read_at_the_cursor(view):
    found = view.study_table(0)
    assert [column.title for column in found.columns] == ["epsilon", "lost", "gain"]
    assert [(row["loss"], row["gain"]) for row in found.rows] == [("3", "1"), ("2", "-"), ("1", "3")]
    assert (list(found.keys), found.cursor_key) == ([1.0, 2.0, 4.0], 2.0)
    assert view.reading_at(0, 3.7).startswith("4 epsilon: lost 1  gain 3")
    heads, rows = view.export_rows(0)
    assert list(heads) == ["epsilon", "loss", "gain", "answer"]
    assert list(rows)[1] == (2.0, 2.0, None, "answer")
    assert view.make_figure(0, log=False).panels[0].x_label == "epsilon"


def test_measures_that_it_sets_against_each_other_have_a_plane():
    found = make_study_view(study(invented(LOSS, GAIN, BEST, planes=(Plane("Trade", "loss", "gain"),))))
    assert isinstance(found, PlaneView)
    curve, here = found.plane_panels(0, 2)[0].series
    assert (curve.x.tolist(), curve.y.tolist()) == ([1.0, 3.0], [3.0, 1.0])
    assert (here.x.tolist(), here.y.tolist()) == ([1.0], [3.0])


def test_a_study_without_points_is_shown_without_them():
    empty = replace(study(invented(LOSS, GAIN, BEST, planes=(Plane("Trade", "loss", "gain"),))), points=(), values={})
    assert make_study_view(empty).panel_at(0).series == ()


def test_a_quality_measure_of_another_package_is_on_the_board_with_its_limit(monkeypatch):
    twin = Output("rho", "another correlation of a column", "high", quality=QualityOutput(scores="numbers"))
    rank = Output("rank", "rank correlation of a column", "high", quality=QualityOutput(scores="numbers"))
    least = Output(
        "least_rank",
        "the least of them",
        "high",
        quality=QualityOutput(minimum_of="rank", limit=Limit(0.7, "our institute")),
    )
    method = invented(
        rank,
        least,
        twin,
        replace(least, name="least_rho", quality=replace(least.quality, minimum_of="rho")),
        family="quality",
        name="rank",
        axis=None,
    )
    monkeypatch.setattr(quality, "registry", lambda: {**registry(), method.key: method})
    recipe = Recipe.from_table(
        {"title": "T", "variables": {"age": {"kind": "count"}}, "release": {"released": ["age"]}}
    )
    found = {metric.name: metric for metric in quality.quality_metrics(recipe)}
    assert (found["rank"].column_key, found["rank"].table_key) == ("quality.rank.rank", "quality.rank.least_rank")
    assert (found["rank"].scale, found["rank"].default_limit) == ("numbers", 0.7)
    assert (found["rho"].table_key, found["rho"].default_limit) == ("quality.pearson.minimum_rho", 0.9)
    assert found["quality.rank.least_rho"].column_key == "quality.rank.rho"
