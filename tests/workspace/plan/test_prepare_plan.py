"""A plan runs on the stored records exactly where the file would give the same; else the file is read."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.plan.drafts import PlanDraft, find_draft
from sfumato.workspace.plan.edits import replace_sections, replace_variable
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import enter_plan_run, prepare_plan, prepare_run
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

RECIPE = """
title = "People"
[data]
file = "people.csv"
where = "age > 19"
sample = 40
missing = "drop"
[variables]
age = { kind = "count", role = "quasi_identifier" }
code = { kind = "categorical" }
cost = { kind = "continuous", role = "sensitive" }
[release]
m = 1
seed = 3
[[synthesis]]
target = "cost"
method = "linear_regression"
predictors = ["age"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [(19 + i % 30, f"{i % 3:03}", None if i == 7 else (i * 37) % 91 + 0.5, i % 2) for i in range(80)]
    pd.DataFrame(rows, columns=["age", "code", "cost", "extra"]).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path


@pytest.fixture
def draft(workspace: Workspace, folder: Path) -> PlanDraft:
    """The plan of a project with one run, the file named by its whole path."""
    recipe = find_recipe(str(folder / "recipe.toml"))
    prepare_run(recipe, settings=[f"data.file={folder / 'people.csv'}"], key=PUBLIC).enter(workspace)
    found = find_draft(workspace, 1)
    assert found is not None
    return found


def same_as_file(workspace: Workspace, draft: PlanDraft, folder: Path) -> None:
    (folder / "plan.toml").write_text(draft.toml)
    ours, theirs = prepare_plan(workspace, draft), prepare_run(find_recipe(str(folder / "plan.toml")), key=PUBLIC)
    pd.testing.assert_frame_equal(ours.data.frame, theirs.data.frame)
    assert (ours.source.sha256, ours.data.dropped) == (theirs.source.sha256, theirs.data.dropped)
    assert ours.recipe.sha256 == theirs.recipe.sha256


def test_the_plan_of_a_run_is_that_run(workspace: Workspace, draft: PlanDraft, folder: Path) -> None:
    same_as_file(workspace, draft, folder)
    again = find_run(workspace, enter_plan_run(workspace, draft))
    first = find_run(workspace, 1)
    assert (again.recipe_sha256, again.dataset_id, again.project_id) == (first.recipe_sha256, first.dataset_id, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("cost", {"kind": "continuous", "role": "sensitive", "bounds": [0, 100]}),
        ("code", {"kind": "count"}),
        ("code", {"kind": "ordinal"}),
        ("extra", {"kind": "binary"}),
    ],
)
def test_a_variable_described_otherwise_is_as_the_file_gives_it(
    workspace: Workspace, draft: PlanDraft, folder: Path, name: str, variable: dict[str, object]
) -> None:
    same_as_file(workspace, draft.with_text(replace_variable(draft.toml, name, variable)), folder)


@pytest.mark.slow
@pytest.mark.parametrize("release", [{"m": 1, "seed": 4}, {"m": 2, "seed": 3}])
def test_another_seed_is_another_sample(
    workspace: Workspace, draft: PlanDraft, folder: Path, release: dict[str, int]
) -> None:
    same_as_file(workspace, draft.with_text(replace_sections(draft.toml, {"release": release})), folder)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"where": "age > 25"}, {"sample": 30}])
def test_another_filter_or_sample_reads_the_file(
    workspace: Workspace, draft: PlanDraft, folder: Path, changes: dict[str, object]
) -> None:
    data = {**read_toml(draft.toml)["data"], **changes}
    same_as_file(workspace, draft.with_text(replace_sections(draft.toml, {"data": data})), folder)


def test_without_the_file_the_stored_records_serve_and_only_they(
    workspace: Workspace, draft: PlanDraft, folder: Path
) -> None:
    (folder / "people.csv").unlink()
    assert len(prepare_plan(workspace, draft).data) == 40
    with pytest.raises(BadInput, match="no such file"):
        prepare_plan(workspace, draft.with_text(replace_variable(draft.toml, "extra", {"kind": "binary"})))


def test_fewer_columns_may_mean_more_records(workspace: Workspace, draft: PlanDraft, folder: Path) -> None:
    variables = {key: table for key, table in read_toml(draft.toml)["variables"].items() if key != "code"}
    same_as_file(workspace, draft.with_text(replace_sections(draft.toml, {"variables": variables})), folder)


def test_a_plan_without_a_release_is_refused(workspace: Workspace, draft: PlanDraft) -> None:
    with pytest.raises(BadInput, match="the plan makes no release"):
        prepare_plan(workspace, draft.with_text(replace_sections(draft.toml, {"synthesis": None})))


@pytest.mark.parametrize("data", ["sample = 40", "holdout = 0.3"])
def test_a_unit_declared_later_is_sampled_and_held_out_whole(workspace: Workspace, folder: Path, data: str) -> None:
    rows = pd.read_csv(folder / "people.csv", dtype={"code": str}).assign(home=[i // 4 for i in range(80)])
    rows.to_csv(folder / "people.csv", index=False)
    text = RECIPE.replace("sample = 40", data).replace('where = "age > 19"\n', "")
    text = text.replace("[release]", 'home = { kind = "count" }\n[release]')
    (folder / "recipe.toml").write_text(text.replace("people.csv", str(folder / "people.csv")))
    prepare_run(find_recipe(str(folder / "recipe.toml")), key=PUBLIC).enter(workspace)
    draft = find_draft(workspace, 1)
    assert draft is not None
    same_as_file(workspace, draft, folder)
    by_home = draft.with_text(replace_variable(draft.toml, "home", {"kind": "count", "role": "unit"}))
    same_as_file(workspace, by_home, folder)


def test_a_level_declared_later_is_checked(workspace: Workspace, folder: Path) -> None:
    text = RECIPE.replace("sample = 40\n", "").replace("people.csv", str(folder / "people.csv"))
    text = text.replace("[release]", 'extra = { kind = "binary" }\n[release]')
    (folder / "recipe.toml").write_text(text)
    prepare_run(find_recipe(str(folder / "recipe.toml")), key=PUBLIC).enter(workspace)
    draft = find_draft(workspace, 1)
    assert draft is not None
    toml = replace_variable(draft.toml, "code", {"kind": "categorical", "role": "unit"})
    toml = replace_variable(toml, "extra", {"kind": "binary", "level": "unit"})
    with pytest.raises(BadInput, match="differs within 3 of 3 units"):
        prepare_plan(workspace, draft.with_text(toml))
