"""A recipe with anonymisation through the workspace: the same as the engine alone, with its trees from files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.runs import reenter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.drafts import draft_of_run
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.report import report_page
from sfumato.workspace.service.prepare import prepare_evaluation, prepare_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.artefacts import read_released_dataset
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.figures import draw_run_figures
from sfumato.workspace.views.results import read_diagnostics, read_result_rows, read_verdicts

Enter = Callable[..., int]
MEASURES = [
    {"method": "utility.ecdf"},
    {"method": "risk.anonymity"},
    {"method": "risk.identification", "radius": {"age": 5}},
    {"method": "quality.non_suppressed"},
]


def sections(**step: Any) -> dict[str, Any]:
    threshold = [{"value": "risk.anonymity.k", "min": 4}]
    making = [{"method": "mondrian", "k": 4, **step}]
    return {
        "synthesis": [],
        "release": {"seed": 7},
        "anonymisation": making,
        "measure": MEASURES,
        "threshold": threshold,
    }


HOW = [{}, {"output": "generalised"}, {"max_suppressed": 0.05, "output": "generalised"}, {"max_suppressed": 0.05}]


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_a_run_finds_what_the_engine_finds(
    workspace: Workspace, enter: Enter, small_recipe: Callable[..., Recipe], small_data: Microdata, how: dict[str, Any]
) -> None:
    run_id = enter(**sections(**how))
    run_worker(workspace.directory, idle=0)
    alone = execute_run(small_recipe(**sections(**how)), small_data, key=PUBLIC)
    assert read_result_rows(workspace, run_id) == list(alone.rows)
    (verdict,) = read_verdicts(workspace, run_id)
    assert (verdict.value, verdict.outcome, verdict.limit) == ("risk.anonymity.k", "met", 4)
    assert (verdict.observed or 0) >= 4
    assert [replace(found, target="") for found in read_diagnostics(workspace, run_id)] == list(alone.notes)
    run = find_run(workspace, run_id)
    released = read_released_dataset(workspace, run_id, run.recipe, 1)
    assert released is not None
    assert (released.schema, released.generalised) == (alone.releases[0].schema, alone.releases[0].generalised)
    assert released.classes is not None
    assert np.array_equal(released.classes, alone.releases[0].classes)
    assert released.frame.astype("str").equals(alone.releases[0].frame.astype("str"))


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_reports_and_figures_are_made_of_anonymised_runs(
    workspace: Workspace, enter: Enter, how: dict[str, Any]
) -> None:
    run_id = enter(**sections(**how))
    run_worker(workspace.directory, idle=0)
    page = report_page(workspace, run_id)
    assert "Anonymisation, in this order" in page
    assert "LeFevre" in page
    drawn = draw_run_figures(workspace, [find_run(workspace, run_id)])
    assert bool(drawn) == ("output" not in how), "labels have no distribution beside the confidential values"


def test_a_run_can_be_done_again(workspace: Workspace, enter: Enter) -> None:
    first = enter(**sections())
    second = reenter_run(workspace, first)
    run_worker(workspace.directory, idle=0)
    assert read_result_rows(workspace, first) == read_result_rows(workspace, second)


def test_a_run_of_a_version_that_wrote_no_means_keeps_its_shares(workspace: Workspace, enter: Enter) -> None:
    """Its stored table has the shares of binary variables; it is read, scored and run again as it was made."""
    variables = {
        "smokes": {"kind": "binary", "role": "quasi_identifier"},
        "age": {"kind": "count", "role": "quasi_identifier"},
    }
    step = {"method": "mondrian", "k": 4, "means": "exact"}
    recipe = Recipe.from_table({"title": "Shares", "variables": variables, "anonymisation": [step]})
    frame = pd.DataFrame({"smokes": (["no"] * 5 + ["yes"]) * 3, "age": range(18)})
    first = run_recipe(workspace, recipe, frame, "people.csv", b"x")
    workspace.connection.execute(
        "UPDATE run SET recipe = replace(recipe, ?, '') WHERE id = ?", (', means = "exact"', first)
    )
    run = find_run(workspace, first)
    assert "means" not in run.recipe_toml
    before = read_released_dataset(workspace, first, run.recipe, 1)
    assert before is not None
    assert before.schema["smokes"].kind == "continuous"
    assert {0.0, 1.0} != set(before.frame["smokes"]), "the control: some classes are mixed"
    again = reenter_run(workspace, first)
    run_worker(workspace.directory, idle=0)
    after = read_released_dataset(workspace, again, find_run(workspace, again).recipe, 1)
    assert after is not None
    assert after.frame.equals(before.frame)
    assert 'means = "exact"' in find_run(workspace, again).recipe_toml
    assert 'means = "exact"' in draft_of_run(workspace, first).toml


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    """A recipe whose tree lies in a file beside it, and its data."""
    pd.DataFrame({"city": ["foo", "bar", "test"] * 4, "income": range(12)}).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "city.csv").write_text("foo;foobar;*\nbar;foobar;*\ntest;test;*\n")
    path = tmp_path / "recipe.toml"
    path.write_text(
        """
        [data]
        file = "data.csv"
        [variables]
        city = { kind = "categorical", role = "quasi_identifier" }
        income = { kind = "count", role = "sensitive" }
        [[anonymisation]]
        method = "generalisation"
        levels = { city = 1 }
        hierarchies = { city = "city.csv" }
        [[measure]]
        method = "risk.anonymity"
        """
    )
    return path


def test_trees_are_read_into_the_recipe(recipe_file: Path, tmp_path: Path) -> None:
    prepared = prepare_run(find_recipe(str(recipe_file)), key=PUBLIC)
    assert "foobar" in prepared.recipe.to_toml()
    again = Recipe.from_toml(prepared.recipe.to_toml())
    (tmp_path / "city.csv").unlink()
    shown = execute_run(again, prepared.data, key=PUBLIC).releases[0].frame["city"].unique()
    assert list(shown) == ["foobar", "test"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, '"city.csv" cannot be read'),
        (b"\xff\xfe", '"city.csv" is not text in UTF-8'),
        (b"", "has no rows"),
        (b"foo;a;*\nbar;b\n", "every row needs as many levels"),
        (b"foo;a;*\nbar;a;*\n", "1 of 3 values of the data are not in the tree"),
    ],
)
def test_a_tree_that_cannot_be_used_is_refused_at_its_place(
    recipe_file: Path, tmp_path: Path, content: bytes | None, message: str
) -> None:
    tree = tmp_path / "city.csv"
    tree.unlink() if content is None else tree.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        prepare_run(find_recipe(str(recipe_file)), key=PUBLIC)
    assert caught.value.place == "anonymisation[0].hierarchies.city"
    assert message in caught.value.message


@pytest.mark.slow
def test_what_another_tool_anonymised_is_scored(recipe_file: Path, tmp_path: Path, workspace: Workspace) -> None:
    released = pd.DataFrame({"city": ["test"] * 12, "income": range(12)})
    released.to_csv(tmp_path / "released.csv", index=False)
    found = prepare_evaluation(
        find_recipe(str(recipe_file)), str(tmp_path / "data.csv"), [str(tmp_path / "released.csv")], key=PUBLIC
    )
    run_id = found.enter(workspace)
    run_worker(workspace.directory, idle=0)
    rows = {row.measure: row.value for row in read_result_rows(workspace, run_id) if row.draw == 1 and not row.target}
    assert (rows["k"], rows["p"]) == (12, 12)


@pytest.mark.slow
def test_the_release_holds_the_anonymised_table_and_not_the_classes(
    workspace: Workspace, enter: Enter, tmp_path: Path
) -> None:
    run_id = enter(**sections(output="generalised", max_suppressed=0.05))
    run_worker(workspace.directory, idle=0)
    found = write_run_release(workspace, run_id, tmp_path / "out", reason="a test of public data")
    assert [name for name in found.files if "dataset" in name] == ["public/dataset-ANONYMISED-01.csv"]
    table = pd.read_csv(tmp_path / "out" / "public" / "dataset-ANONYMISED-01.csv", keep_default_na=False)
    assert table.groupby(["region", "age"]).size().min() >= 4
    codebook = pd.read_csv(tmp_path / "out" / "public" / "codebook.csv")
    assert codebook.set_index("variable")["kind"].to_dict() == {
        "region": "categorical", "age": "categorical", "visits": "count", "income": "continuous"
    }  # fmt: skip
