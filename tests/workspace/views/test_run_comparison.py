"""Two runs of a workspace compared: what is refused, and that the numbers are the runs' own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from prepared_workspaces import enter_recipe

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import DifferentData, NotFound, NotReady
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.comparison import compare_runs
from sfumato.workspace.views.results import read_result_rows

Enter = Callable[..., int]
SPARSE = [
    {"target": "visits", "method": "linear_regression", "predictors": ["region"]},
    {"target": "income", "method": "linear_regression", "predictors": ["region"]},
]


@pytest.mark.slow
def test_two_recipes_on_the_same_data(workspace: Workspace, enter: Enter) -> None:
    wider = [{"method": "utility.ecdf"}, {"method": "risk.identification", "radius": {"income": "50%", "visits": 2}}]
    limits = [
        {"value": "risk.identification.true_match_rate", "max": 0.4},
        {"value": "utility.ecdf.max_abs_difference", "max": 0.3},
    ]
    one, two = enter(), enter(synthesis=SPARSE, measure=wider, threshold=limits)
    run_worker(workspace.directory, idle=0)
    found = compare_runs(workspace, one, "last")
    assert (found.is_same_data, [run.id for run in found.runs]) == (True, [one, two])
    own = {
        row.series: row.value
        for row in read_result_rows(workspace, two)
        if row.draw is None and row.dataset == "synthetic"
    }
    shared = [row for row in found.shared_rows if row.second]
    assert {row.key for row in shared} == {"utility.ecdf.max_abs_difference", "utility.ecdf.mean_squared_difference"}
    for row in shared:
        assert row.second is not None
        assert row.second.value == own[row.key, row.target, json.dumps(row.params), row.level]
        assert len(row.second.draws) == 3
    assert [{row.key.rpartition(".")[0] for row in found.rows_of_one_run(place)} for place in (0, 1)] == [
        {"risk.identification"}
    ] * 2
    assert [row.params["radius"]["income"] for row in found.rows_of_one_run(1)] == ["50%"] * 6
    assert [(v.value, v.first is None) for v in found.verdicts] == [
        ("risk.identification.true_match_rate", False),
        ("risk.identification.true_match_rate", True),
        ("utility.ecdf.max_abs_difference", True),
        ("utility.ecdf.max_abs_difference", True),
    ]
    assert set(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == {
        "runs", "same_data", "plans", "rows", "only_first", "only_second", "verdicts",
    }  # fmt: skip


@pytest.mark.slow
def test_a_run_compared_with_its_repetition_differs_in_nothing(workspace: Workspace, enter: Enter) -> None:
    """The negative control: with another model the ecdf differs."""
    one, two, other = enter(), enter(), enter(synthesis=SPARSE, release={"m": 3, "seed": 8})
    run_worker(workspace.directory, idle=0)
    same = compare_runs(workspace, one, two)
    assert all(row.difference in (0, None) and not row.better_run for row in same.rows)
    assert any(row.difference and row.better_run for row in compare_runs(workspace, one, other).rows)


def test_runs_that_are_not_done_or_not_there_are_refused(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    with pytest.raises(NotReady, match=f"run {run_id} is queued; runs are compared when they are done"):
        compare_runs(workspace, run_id, run_id)
    with pytest.raises(NotFound):
        compare_runs(workspace, run_id, 7)


@pytest.fixture
def on_data(workspace: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata) -> Callable[..., int]:
    """Enter a run of some of the small data's rows under a source and recipe of one's own."""

    def make(rows: slice = slice(None), content: bytes = b"simulated", **sections: Any) -> int:
        recipe = small_recipe(measure=[{"method": "utility.ecdf"}], threshold=[], **sections)
        frame = small_data.frame.iloc[rows].reset_index(drop=True)
        data = (
            Microdata(small_data.schema, frame)
            if "variables" not in sections
            else conform_to_schema(frame, recipe.schema)
        )
        return enter_recipe(workspace, recipe, data, "simulated.csv", content)

    return make


@pytest.mark.slow
def test_other_records_are_refused_unless_any_data_will_do(workspace: Workspace, on_data: Callable[..., int]) -> None:
    one, two = on_data(), on_data(slice(0, 60), data={"sample": 60, "where": "age > 1"})
    run_worker(workspace.directory, idle=0)
    with pytest.raises(DifferentData) as refused:
        compare_runs(workspace, one, two)
    message = str(refused.value)
    assert f"run {one}: 80 records of simulated.csv (sha256 " in message
    assert f"run {two}: 60 records" in message
    assert 'where "age > 1", a sample with seed 7' in message
    assert "--any-data" in message
    found = compare_runs(workspace, one, two, any_data=True)
    assert (found.is_same_data, len(found.shared_rows)) == (False, 4)


@pytest.mark.slow
def test_samples_of_the_same_file_differ_by_their_seed(workspace: Workspace, on_data: Callable[..., int]) -> None:
    drawn = {"data": {"sample": 60}}
    one, two = on_data(slice(0, 60), **drawn), on_data(slice(20, 80), **drawn, release={"m": 3, "seed": 8})
    run_worker(workspace.directory, idle=0)
    with pytest.raises(DifferentData):
        compare_runs(workspace, one, two)


@pytest.mark.slow
def test_the_same_records_with_other_variables_are_the_same_data(
    workspace: Workspace, on_data: Callable[..., int], small_recipe: Callable[..., Recipe]
) -> None:
    variables = {variable.name: variable.to_table() for variable in small_recipe().schema}
    fewer = {name: variables[name] for name in ("region", "visits", "income")}
    one, two = on_data(), on_data(variables=fewer, synthesis=SPARSE)
    elsewhere = on_data(content=b"another file", variables=fewer, synthesis=SPARSE)
    run_worker(workspace.directory, idle=0)
    assert compare_runs(workspace, one, two).is_same_data
    with pytest.raises(DifferentData):
        compare_runs(workspace, one, elsewhere)
