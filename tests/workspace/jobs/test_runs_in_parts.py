"""A run on a table in parts: block by block where methods can, whole elsewhere, with the same bytes for any workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import enter_recipe, run_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.design.regression_rows import stack_triangles
from sfumato.engine.execution.making import draw_release
from sfumato.engine.execution.tasks import synthesis_streams
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs import run_task
from sfumato.workspace.jobs.memory import MemoryLimit
from sfumato.workspace.jobs.task_costs import estimate_task_costs, memory_refusal
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store import table_manifests
from sfumato.workspace.store.artefacts import read_record_values
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.records import read_record_risks, record_measures
from sfumato.workspace.views.results import read_result_rows

RECORDS = 700
KEY = b"k" * 32
PLAN = {
    "variables": {
        "region": {"kind": "categorical"},
        "age": {"kind": "continuous"},
        "visits": {"kind": "count"},
        "income": {"kind": "continuous"},
        "spent": {"kind": "continuous"},
    },
    "release": {"m": 2, "seed": 3},
    "synthesis": [
        {"target": "income", "method": "linear_regression", "transform": "log", "predictors": ["region", "age"], "prior": "scaled"},
        {"target": "spent", "method": "linear_regression", "predictors": ["income", "visits"]},
    ],
    "measure": [{"method": "utility.ecdf"}, {"method": "utility.summary", "variables": ["income", "spent", "region", "visits"]},
                {"method": "risk.uniqueness", "keys": ["region", "visits", "income"]},
                {"method": "risk.identification", "known": ["region", "visits"], "synthesised": ["income"], "radius": {"income": "5%"}},
                {"method": "utility.propensity"},
                {"method": "utility.interval_overlap", "means": ["income"], "quantiles": ["spent"], "models": ["spent ~ region + visits", "logit: income > 6 ~ visits"]}],
}  # fmt: skip


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    region, age = rng.integers(0, 3, RECORDS), rng.normal(50, 10, RECORDS)
    income = np.exp(1 + 0.2 * region + 0.01 * age + rng.normal(0, 0.3, RECORDS))
    return pd.DataFrame(
        {
            "region": np.array(["north", "south", "west"])[region],
            "age": age,
            "visits": rng.poisson(3, RECORDS),
            "income": income,
            "spent": 0.6 * income + rng.normal(0, 0.5, RECORDS),
        }
    )


@pytest.fixture
def run_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    opened = []

    def run(name: str, part_rows: int, jobs: int = 0, dask: str = "", **changes: Any) -> tuple[Workspace, int]:
        monkeypatch.setattr(table_manifests, "PART_ROWS", part_rows)
        workspace = Workspace.create(tmp_path / name, KEY)
        opened.append(workspace)
        run_id = enter_recipe(workspace, {**PLAN, **changes}, people())
        run_worker(workspace.directory, jobs, idle=0, dask=dask)
        run = find_run(workspace, run_id)
        assert run.state.value == "done", run.error
        return workspace, run_id

    yield run
    for one in opened:
        one.close()


def artefacts(workspace: Workspace) -> dict[str, str]:
    return {row["name"]: row["sha256"] for row in workspace.connection.execute("SELECT name, sha256 FROM artefact")}


def values(workspace: Workspace, run_id: int) -> dict[tuple[Any, ...], float | None]:
    return {
        (row.measure, row.target, row.dataset, row.draw, repr(sorted(row.params.items()))): row.value
        for row in read_result_rows(workspace, run_id)
    }


@pytest.mark.slow
def test_one_process_and_two_make_the_same_fits_datasets_and_numbers(run_in_parts: Any) -> None:
    one, two = run_in_parts("one", 200), run_in_parts("two", 200, jobs=2)
    assert artefacts(one[0]) == artefacts(two[0])
    assert values(*one) == values(*two)
    draws = [sha256 for name, sha256 in artefacts(one[0]).items() if name.startswith("draw/")]
    assert [[part.rows for part in one[0].tables.read_manifest(draw).parts] for draw in draws] == [
        [200, 200, 200, 100]
    ] * 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_two_workers_makes_the_same(run_in_parts: Any) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", protocol="tcp://"
    ) as cluster:
        there = run_in_parts("there", 200, dask=cluster.scheduler_address)
    here = run_in_parts("here", 200)
    assert artefacts(there[0]) == artefacts(here[0])
    assert values(*there) == values(*here)


@pytest.mark.slow
def test_tasks_read_no_whole_table(run_in_parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the whole table was read")

    for name in ("_read_confidential_table", "_read_released_table"):
        monkeypatch.setattr(run_task, name, refuse)
    workspace, run_id = run_in_parts("w", 100)
    assert len(values(workspace, run_id)) > 40


@pytest.mark.slow
def test_parts_of_other_sizes_change_rounding_alone(run_in_parts: Any) -> None:
    whole, *others = (run_in_parts(f"parts-{rows}", rows) for rows in (1000, 100, 350, 699))
    own = values(*whole)
    for one in others:
        found = values(*one)
        assert set(found) == set(own)
        for row, value in found.items():
            if "confidential" in row:
                assert value == pytest.approx(own[row], rel=1e-12), row
    fits = [[w.tables.read_arrays(artefacts(w)[f"fit/{k}"]) for k in (0, 1)] for w, _ in others]
    for one in fits[1:]:
        for first, second in zip(fits[0], one, strict=True):
            for name in first:
                np.testing.assert_allclose(second[name], first[name], rtol=1e-11)


@pytest.mark.slow
def test_each_block_has_random_numbers_of_its_own(run_in_parts: Any) -> None:
    workspace, _ = run_in_parts("w", 350)
    recipe = Recipe.from_table(PLAN)
    data = workspace.read_stored_dataset(workspace.list_datasets(1)[0])
    fits = [Fit(workspace.tables.read_arrays(artefacts(workspace)[f"fit/{k}"])) for k in (0, 1)]
    streams = synthesis_streams(recipe, data, KEY)
    drawn = workspace.tables.read_microdata(artefacts(workspace)["draw/1"], data.schema, "synthetic")
    for block, rows in enumerate((slice(0, 350), slice(350, 700))):
        own = Microdata(data.schema, data.frame.iloc[rows].reset_index(drop=True))
        expected = draw_release(recipe, 1, own, fits, streams.with_path_suffix(block))
        assert np.array_equal(drawn.frame["spent"].to_numpy()[rows], expected.frame["spent"].to_numpy())


@pytest.mark.slow
def test_matches_of_single_records_are_kept_part_by_part(run_in_parts: Any) -> None:
    workspace, run_id = run_in_parts("w", 200)
    step = Recipe.from_table(PLAN).measures[3]
    data = workspace.read_stored_dataset(workspace.list_datasets(1)[0])
    drawn = workspace.tables.read_microdata(artefacts(workspace)["draw/2"], data.schema, "synthetic")
    spec = step.spec.for_release(data.schema, ("income", "spent"))
    expected = step.method.measure(data, drawn, spec, Run(np.random.default_rng(1)))
    found = read_record_values(workspace.tables, artefacts(workspace)["records/3/2"])
    assert workspace.tables.has_parts(artefacts(workspace)["records/3/2"])
    assert set(found) == set(expected.per_record)
    for name, own in expected.per_record.items():
        np.testing.assert_array_equal(found[name], own)
    (measure,) = record_measures(workspace, run_id)
    assert read_record_risks(workspace, measure).probability.shape == (RECORDS,)


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        {"target": "region", "method": "multinomial_logistic", "predictors": ["age", "visits"]},
        {"target": ["ill", "often"], "method": "sequential_logistic", "predictors": ["age", "visits"]},
        {"target": "region", "method": "cart", "predictors": ["visits", "ill"], "minbucket": 20},
        {"target": "income", "method": "cart", "predictors": ["visits", "region"], "minbucket": 20, "smoothing": True},
    ],
    ids=["multinomial", "sequential", "classes", "numbers"],
)
def test_steps_are_fitted_and_drawn_part_by_part(
    run_in_parts: Any, monkeypatch: pytest.MonkeyPatch, step: dict[str, Any]
) -> None:
    rng, plain = np.random.default_rng(2), people()
    more = {name: rng.choice(["no", "yes"], RECORDS) for name in ("ill", "often")}
    monkeypatch.setattr(sys.modules[__name__], "people", lambda: plain.assign(**more))
    variables = {**PLAN["variables"], **{name: {"kind": "binary"} for name in more}}
    recipe = {"variables": variables, "synthesis": [step], "measure": [{"method": "utility.summary"}]}
    assert not any(cost.needs_table for cost in estimate_task_costs(Recipe.from_table({**PLAN, **recipe}), 10**9))
    tables = [run_in_parts(name, rows, **recipe)[0] for name, rows in (("many", 100), ("few", 350))]
    many, few = (workspace.tables.read_arrays(artefacts(workspace)["fit/0"]) for workspace in tables)
    assert set(many) == set(few)
    for name, own in few.items():
        np.testing.assert_allclose(many[name], own, rtol=1e-12, atol=1e-12)
    assert all(workspace.tables.has_parts(artefacts(workspace)["draw/2"]) for workspace in tables)


@pytest.mark.slow
def test_a_recipe_whose_methods_need_the_table_gives_the_same_from_parts(run_in_parts: Any) -> None:
    trees = {"synthesis": [{"target": "income", "method": "cart", "predictors": ["age", "region"], "proper": True}]}
    whole, parts = run_in_parts("whole", 1000, **trees), run_in_parts("parts", 100, **trees)
    drawn = [
        workspace.tables.read_microdata(
            artefacts(workspace)["draw/1"], Recipe.from_table(PLAN).schema, "synthetic"
        ).frame
        for workspace, _ in (whole, parts)
    ]
    pd.testing.assert_frame_equal(*drawn)
    own, found = values(*whole), values(*parts)
    assert set(own) == set(found)
    for row, value in own.items():
        assert found[row] == pytest.approx(value, rel=1e-12, abs=1e-15), row


def test_sums_in_another_order_have_other_bytes() -> None:
    """Control: that the order of blocks matters at all."""
    triangles = [np.linalg.qr(np.random.default_rng(seed).normal(size=(50, 4)), mode="r") for seed in range(4)]
    there, back = stack_triangles(triangles), stack_triangles(triangles[::-1])
    np.testing.assert_allclose(there, back, rtol=1e-12, atol=1e-12)
    assert not np.array_equal(there, back)


def test_a_task_that_needs_the_table_is_refused_with_what_does_not() -> None:
    limit = MemoryLimit(4_000_000_000, "what there is")
    plain = estimate_task_costs(Recipe.from_table(PLAN), 10**9)
    assert memory_refusal(plain, limit) == ""
    assert not any(cost.needs_table for cost in plain)
    measured = {**PLAN, "measure": [{"method": "utility.propensity", "model": "cart"}]}
    said = memory_refusal(estimate_task_costs(Recipe.from_table(measured), 10**9), limit)
    assert "(utility.propensity) needs about" in said
    assert "in parts: utility.propensity works part by part, but not with these settings and variables. Part" in said
    assert "risk.uniqueness. Take a sample" in said
    stored_by_an_older_version = estimate_task_costs(Recipe.from_table(PLAN), 10**9, in_parts=False)
    assert "whole table" not in (text := memory_refusal(stored_by_an_older_version, limit))
    assert text
    assert memory_refusal(estimate_task_costs(Recipe.from_table(measured), 10**6), limit) == ""


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("units", {"variables": {**PLAN["variables"], "number": {"kind": "count", "role": "unit"}}}),
        ("weights", {"variables": {**PLAN["variables"], "visits": {"kind": "count", "role": "weight"}}}),
        ("constraints", {"constraints": {"spends": "spent <= 1000"}}),
    ],
)
def test_recipes_with_units_weights_or_constraints_take_the_whole_table(words: str, changes: dict[str, Any]) -> None:
    recipe = Recipe.from_table({**PLAN, **changes})
    reasons = {cost.needs_table for cost in estimate_task_costs(recipe, 10**7) if cost.task.kind != "combine"}
    assert reasons == {f"{words} of the recipe need it"}


def test_a_short_table_is_one_block_whatever_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Workspace.create(tmp_path / "w", KEY) as workspace:
        run_recipe(workspace, PLAN, people())
        assert not any(map(workspace.tables.has_parts, artefacts(workspace).values()))
