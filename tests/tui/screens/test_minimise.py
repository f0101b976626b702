import csv
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of
from prepared_workspaces import finished_workspace
from textual.widgets import Input

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import registry
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.findings.study import StudyDialog
from sfumato.tui.findings.study_answers import LimitView, answer_text, study_limit_series
from sfumato.tui.parts.form import Form
from sfumato.tui.plan.guided_minimisation import GuidedMinimisation
from sfumato.tui.session.state import AppState, save_state
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.service.guided_minimisation import list_project_tables, minimisation_recipe, prepare_minimisation
from sfumato.workspace.store.runs import RunState, find_run, list_runs
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows
from sfumato.workspace.views.studies import StudyAnswer, StudyResult, read_studies

FOUND, NONE = 1, 2
SIZES = pytest.mark.parametrize("size", [(80, 24), pytest.param((160, 50), marks=pytest.mark.sizes)], ids=str)
STUDY = {"method": "studies.minimisation", "k": 2, "step": 0.25, "subsamples": 2, "nmi": 0.3}
RECIPE = {
    "title": "Census",
    "variables": variables_of(
        "age: count quasi_identifier", "town: categorical quasi_identifier", "status: categorical sensitive"
    ),
    "release": {"seed": 7},
    "anonymisation": [{"method": "mondrian", "k": 2}],
    "measure": [{"method": "risk.anonymity"}],
    "study": [STUDY, {**STUDY, "k": 3}],
}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Run 1 finds answers; run 2 asks for more than anonymised data can have."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, 200),
         "town": rng.choice(["x", "y"], 200), "status": rng.choice(["a", "b"], 200)}
    )  # fmt: skip
    plans = (RECIPE, {**RECIPE, "study": [{**STUDY, "k": 20, "rho": 1.0}]})
    return finished_workspace(tmp_path_factory.mktemp("minimise") / "workspace", plans, frame, "census.csv")


def look(directory, run_id, tab="results"):
    save_state(directory, AppState(project=1, run=run_id, tab=tab))
    return directory


def studies_of(directory, run_id):
    with Workspace.open(directory, read_only=True) as reader:
        return read_studies(reader, run_id)


@pytest.mark.slow
def test_the_answer_is_the_smallest_size_that_holds_every_limit_in_the_stored_rows(two):
    workspace = Workspace.open(two)
    rows = [r for r in read_result_rows(workspace, FOUND) if r.method == "minimisation" and r.dataset == "confidential"]
    workspace.close()
    for study, k in zip(studies_of(two, FOUND), (2, 3), strict=True):
        own = [row for row in rows if row.params["k"] == k]
        shares = {row.params["size"]: row.value for row in own if row.measure == "passing"}
        found = (study.settings["k"], study.points, study.values["", "passing"])
        assert found == (k, tuple(shares), tuple(shares.values()))
        assert study.answer_on_axis().value == min(size for size, share in shares.items() if share == 1)
        least = {row.params["size"]: row.value for row in own if row.measure == "rho"}
        assert dict(zip(study.points, study.values["", "rho"], strict=True)) == least
        assert study.least_values == {"rho": 0.9, "rilm_categorical": 0.9, "nmi": 0.3, "non_suppressed": 0.99}


@pytest.mark.slow
def test_where_no_size_is_enough_there_is_no_answer(two):
    study = studies_of(two, NONE)[0]
    assert study.answer_on_axis().value is None
    assert "No size is enough: no size has" in answer_text(study).plain
    assert not [one for one in study_limit_series(study, ["rho"]) if one.name.startswith("answer")]


def minimisation_result(passing, answer):
    values = {"rho": (0.8, 0.95, None), "nmi": (0.7, 0.9, 0.85), "passing": passing}
    return StudyResult(
        registry()["studies.minimisation"], {"k": 5, "subsamples": 2}, (100, 150, 200),
        {("", name): one for name, one in values.items()}, {"rho": 0.9, "nmi": 0.9}, (StudyAnswer("smallest_size", answer),),
    )  # fmt: skip


def test_larger_sizes_that_fail_are_told():
    assert "larger" not in answer_text(minimisation_result((0.0, 1.0, 1.0), 150)).plain
    assert (
        "but 1 larger sizes did not always pass (first 200)"
        in answer_text(minimisation_result((0.0, 1.0, 0.5), 150)).plain
    )


def test_limits_of_the_same_height_share_a_line_and_the_answer_stands_upright():
    series = {one.name: one for one in study_limit_series(minimisation_result((0.0, 1.0, 0.5), 150), ["rho", "nmi"])}
    assert list(series) == ["rho", "nmi", "answer 150", "limit 0.9: rho, nmi"]
    assert series["answer 150"].x.tolist() == [150, 150]
    assert np.isnan(series["rho"].y[2])


def test_limits_and_the_answer_are_named_at_their_lines_and_sizes_are_marked():
    view = LimitView(minimisation_result((0.0, 1.0, 0.5), 150))
    drawn = view.plot_series(0)
    named = {one.labels[-1] for one in drawn if one.labels}
    assert named == {one.name for one in drawn if one.name.startswith(("limit ", "answer "))} != set()
    assert all(one.thin for one in drawn if one.labels), "the legend has the measures alone"
    assert {one.name for one in drawn if one.marker == "points"} == set(view.measure_titles.values())


@pytest.mark.slow
@SIZES
async def test_sizes_are_drawn_with_limits_and_the_answer(sit, two, size):
    async with sit(look(two, FOUND), "act:limits", size=size) as seat:
        assert isinstance(seat.app.screen, StudyDialog)
        answer = int(studies_of(two, FOUND)[0].answer_on_axis().value)
        for words in (
            f"✓ {answer} records are enough",
            "study 1 of 2",
            "k = 2",
            "all measures",
            f"answer {answer}",
            "nmi",
        ):
            assert words in seat.text
        assert max(map(len, seat.text.splitlines())) <= size[0]
        text = await seat.press("home")
        assert "100 records (" in text
        assert "rho ✓ " in text
        text = await seat.press("m")
        assert "rho, the least of" in text
        assert "limit 0.9: rho" in text
        assert "limit 0.3" not in text
        assert "k = 3" in await seat.press("full_stop")
        assert "study 2 of 2" in seat.text
        text = await seat.press("t")
        assert "✗ " in text or "✓ " in text
        assert f"› {int(studies_of(two, FOUND)[1].answer_on_axis().value)}" in text
        await seat.press("t")
        assert isinstance(seat.app.focused, Plot)
        assert not isinstance((await seat.press("q"), seat.app.screen)[1], StudyDialog)


@pytest.mark.slow
async def test_a_run_without_an_answer_says_so(sit, two):
    async with sit(look(two, NONE), "act:limits", "t", "t") as seat:
        assert "✗ No size is enough" in seat.text


@pytest.mark.slow
async def test_sizes_are_written_with_all_digits(sit, two, tmp_path):
    async with sit(look(two, FOUND), "act:limits", "e") as seat:
        seat.app.screen.query_one(Input).value = str(tmp_path / "sizes.csv")
        await seat.press("enter")
    with (tmp_path / "sizes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    study = studies_of(two, FOUND)[0]
    assert [float(row["rho"]) for row in rows] == list(study.values["", "rho"])
    assert [row["records"] for row in rows if row["answer"]] == [str(int(study.answer_on_axis().value))]


@pytest.fixture
def copied(two, tmp_path):
    """A copy to enter runs in."""
    return look(shutil.copytree(two, tmp_path / "workspace"), FOUND)


@pytest.mark.slow
@SIZES
async def test_the_guided_form_starts_a_run_with_what_is_known_preselected(sit, copied, no_worker, size):
    async with sit(copied, "S", size=size) as seat:
        assert isinstance(seat.app.screen, GuidedMinimisation)
        assert "census.csv: 200 records, 3 variables" in seat.text
        text = await seat.press("enter")
        assert isinstance(seat.app.screen, Form)
        assert seat.app.screen.field_texts["known"] == "age, town"
        assert "what somebody might know of a person" in " ".join(text.split())
        seat.app.screen.query_one("#field-1", Input).value = "3"
        seat.app.screen.query_one("#field-2", Input).value = "60"
        seat.app.screen.query_one("#field-3", Input).value = "2"
        await seat.press("enter")
        assert seat.app.notices[-1].startswith("Run 3 looks for the smallest sample")
    assert [directory for directory, _ in no_worker] == [copied]
    with Workspace.open(copied, read_only=True) as reader:
        run = find_run(reader, 3)
        spec = run.recipe.studies[0].spec
        assert (spec.quasi_identifiers, spec.k, spec.n, spec.subsamples) == (("age", "town"), 3, 60, 2)
        assert run.dataset_id == find_run(reader, FOUND).dataset_id
        assert run.project_id == 1


@pytest.mark.slow
def test_what_the_form_enters_can_be_done(copied):
    workspace = Workspace.open(copied)
    data = list_project_tables(workspace, 1)[0]
    answers = {"known": ["town", "status", "age"], "k": 2, "n": 50, "r": 1}
    run_id = prepare_minimisation(workspace, data, answers).enter(workspace, data.project)
    run_worker(workspace.directory, idle=0)
    assert find_run(workspace, run_id).state is RunState.DONE
    assert read_studies(workspace, run_id)[0].points[0] == 50
    workspace.close()


def test_identifiers_do_not_get_into_the_run(copied):
    recipe = Recipe.from_table({**RECIPE, "anonymisation": [], "release": {"released": ["age"]}, "variables": {
        "name": {"kind": "categorical", "role": "identifier"}, "age": {"kind": "count"}}, "measure": [], "study": []})  # fmt: skip
    frame = pd.DataFrame({"name": [f"731954-{i}" for i in range(60)], "age": range(60)})
    workspace = Workspace.open(copied)
    with workspace.write_transaction():
        workspace.add_dataset(1, "people.csv", "0" * 64, conform_to_schema(frame, recipe.schema))
    data = list_project_tables(workspace, 1)[0]
    prepared = prepare_minimisation(workspace, data, {"known": ["age"], "k": 2})
    assert data.name == "people.csv"
    assert prepared.data.schema.names == prepared.recipe.schema.names == ("age",)
    workspace.close()


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({}, "name at least one"),
        ({"known": ["aeg"]}, 'did you mean "age"'),
        ({"known": ["name"]}, "identifier"),
        ({"known": ["age"], "n": 101}, "at most 100"),
        ({"known": ["age"], "n": 4}, "at least k, which is 5"),
        ({"known": ["age"], "k": 1}, "k"),
        ({"known": ["age"], "n": "many"}, "n"),
    ],
)
def test_answers_that_cannot_be_used_are_refused_before_anything_is_stored(two, answers, message):
    with Workspace.open(two, read_only=True) as reader:
        data = list_project_tables(reader, 1)[0]
        data = replace(data, variables={**data.variables, "name": {"kind": "categorical", "role": "identifier"}})
        with pytest.raises(BadInput, match=message):
            minimisation_recipe(data, answers)
    assert minimisation_recipe(data, {"known": ["age"]}).studies[0].spec.n == 100


@pytest.mark.slow
async def test_a_wrong_answer_is_told_in_the_form(sit, copied, no_worker):
    async with sit(copied, "S", "enter") as seat:
        seat.app.screen.query_one("#field-2", Input).value = "150"
        text = await seat.press("enter")
        assert isinstance(seat.app.screen, Form)
        assert "n: at most 100" in text
        await seat.press("escape")
    with Workspace.open(copied, read_only=True) as reader:
        assert len(list_runs(reader)) == 2
    assert no_worker == []


@pytest.mark.slow
async def test_a_project_without_data_says_so(sit, copied):
    workspace = Workspace.open(copied)
    with workspace.write_transaction():
        save_state(copied, AppState(project=workspace.ensure_project("Second project")))
    workspace.close()
    async with sit(copied, "S", "enter", "j", "k") as seat:
        assert "This project has no data yet" in seat.text
