"""Everything is checked before anything is stored; files of other tools line up with the original."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import tomli_w

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.recipes import RecipeFile, find_recipe, shipped_recipes
from sfumato.workspace.service.prepare import prepare_evaluation, prepare_run
from sfumato.workspace.store.runs import find_run, list_project_summaries
from sfumato.workspace.store.workspace import Workspace


@pytest.fixture
def folder(tmp_path: Path, small_data: Microdata) -> Path:
    """The small data as a file beside a recipe."""
    folder = tmp_path / "study"
    folder.mkdir()
    small_data.frame.to_csv(folder / "people.csv", index=False)
    return folder


@pytest.fixture
def recipe_file(folder: Path, small_recipe: Any) -> Any:
    """The small recipe as a file; sections given replace its own."""

    def make(**sections: object) -> RecipeFile:
        recipe: Recipe = small_recipe()
        table = {**recipe.to_table(), "data": {"file": "people.csv"}, **sections}
        (folder / "recipe.toml").write_text(tomli_w.dumps(table))
        return find_recipe(str(folder / "recipe.toml"))

    return make


def test_a_recipe_finds_its_data_beside_it_and_enters_a_run(
    workspace: Workspace, recipe_file: Any, small_data: Microdata
) -> None:
    prepared = prepare_run(recipe_file(), key=PUBLIC)
    pd.testing.assert_frame_equal(prepared.data.frame, small_data.frame)
    assert list_project_summaries(workspace) == []
    run = find_run(workspace, prepared.enter(workspace))
    assert workspace.find_dataset(run.dataset_id).source_sha256 == prepared.source.sha256


def test_seed_settings_and_data_of_the_command_line_replace_the_recipes(recipe_file: Any, folder: Path) -> None:
    (folder / "other.csv").write_bytes((folder / "people.csv").read_bytes())
    prepared = prepare_run(recipe_file(), str(folder / "other.csv"), 99, ["release.m=5", "data.sample=70"], key=PUBLIC)
    assert (prepared.recipe.seed, prepared.recipe.m, prepared.source.name) == (99, 5, "other.csv")
    assert len(prepared.data) == 70


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ({"data": {"file": "nowhere.csv"}}, "data.file"),
        ({"data": {"file": "people.csv", "where": "age > "}}, "data.where"),
        ({"data": {"file": "people.csv", "sample": 81}}, "data.sample"),
        ({"synthesis": []}, "synthesis"),
    ],
)
def test_what_cannot_be_run_is_refused_at_its_place(recipe_file: Any, sections: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput) as caught:
        prepare_run(
            recipe_file(**sections, **({"measure": [], "threshold": []} if "synthesis" in sections else {})), key=PUBLIC
        )
    assert caught.value.place == place


@pytest.mark.parametrize("without", [(), ("synthesis", "measure", "threshold")])
def test_a_recipe_with_tables_is_run_with_them(
    recipe_file: Any, small_data: Microdata, without: tuple[str, ...]
) -> None:
    by = next(one.name for one in small_data.schema if one.kind.has_levels)
    tables = {"table": [{"name": "people", "by": [by]}], "tables": {"threshold": 3}}
    prepared = prepare_run(recipe_file(**tables, **{section: [] for section in without}), key=PUBLIC)
    assert prepared.recipe.tables[0].name == "people"
    assert prepared.recipe.makes_release == (not without)


def test_a_table_that_the_data_cannot_fill_is_refused_at_its_place(recipe_file: Any, small_data: Microdata) -> None:
    by = next(one.name for one in small_data.schema if one.kind.has_levels)
    nobody = {"name": "people", "by": [by], "where": "visits > 100000"}
    with pytest.raises(BadInput, match=r"^table\[0\]: no record is in this table"):
        prepare_run(recipe_file(table=[nobody], tables={"threshold": 3}), key=PUBLIC)


def test_a_step_that_the_data_cannot_carry_is_refused_before_anything_runs(recipe_file: Any) -> None:
    with pytest.raises(BadInput, match=r"^synthesis\[0\].target: every value"):
        prepare_run(recipe_file(data={"file": "people.csv", "where": "visits = 3"}), key=PUBLIC)


def test_released_files_are_coded_like_the_original(recipe_file: Any, folder: Path) -> None:
    frame = pd.read_csv(folder / "people.csv")
    frame.assign(income=frame["income"] * 1.1).to_csv(folder / "released.csv", index=False)
    files = [str(folder / "released.csv")] * 2
    prepared = prepare_evaluation(recipe_file(), str(folder / "people.csv"), files, key=PUBLIC)
    assert (prepared.recipe.m, prepared.recipe.released) == (2, ("visits", "income"))
    assert prepared.recipe.synthesis == ()
    for _, released in prepared.external_datasets:
        assert released.origin == "synthetic"
        assert released.column("region").dtype == prepared.data.column("region").dtype
        assert released.numbers("income") == pytest.approx(prepared.data.numbers("income") * 1.1)


def test_a_released_file_with_other_records_or_levels_is_refused_by_its_name(recipe_file: Any, folder: Path) -> None:
    frame = pd.read_csv(folder / "people.csv")
    frame.head(79).to_csv(folder / "short.csv", index=False)
    frame.assign(region="nowhere").to_csv(folder / "strange.csv", index=False)
    with pytest.raises(BadInput, match=r"--released short.csv: 79 records, the original has 80"):
        prepare_evaluation(recipe_file(), str(folder / "people.csv"), [str(folder / "short.csv")], key=PUBLIC)
    with pytest.raises(BadInput, match=r"--released strange.csv: variables.region.levels: 80 records"):
        prepare_evaluation(recipe_file(), str(folder / "people.csv"), [str(folder / "strange.csv")], key=PUBLIC)


def test_an_unknown_recipe_is_answered_with_the_near_miss_or_the_list() -> None:
    names = [recipe.name for recipe in shipped_recipes()]
    assert names
    with pytest.raises(BadInput, match=f'did you mean "{names[0]}"'):
        find_recipe(names[0][:-1])
    with pytest.raises(BadInput, match="shipped recipes: "):
        find_recipe("qqqqqqqq")


def test_a_recipe_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_bytes(b"\xff\xfe\0")
    with pytest.raises(BadInput, match="not a text file"):
        find_recipe(str(tmp_path / "recipe.toml"))


@pytest.mark.parametrize("recipe", shipped_recipes(), ids=lambda recipe: recipe.name)
def test_every_shipped_recipe_is_valid(recipe: RecipeFile) -> None:
    assert Recipe.from_table(recipe.table).title


HOMES = """
title = "Homes"
[data]
file = "homes.csv"
[variables]
home = { kind = "count", role = "unit" }
region = { kind = "categorical", level = "unit" }
income = { kind = "count", role = "sensitive" }
[release]
order = "ORDER"
[[synthesis]]
target = "income"
method = "cart"
predictors = []
"""


def write_homes(folder: Path, order: str) -> tuple[RecipeFile, pd.DataFrame, str]:
    """Write people in homes, a recipe for them, and a file of them without the number of the home."""
    frame = pd.DataFrame({"home": [i // 3 for i in range(60)], "income": [i * 37 % 91 for i in range(60)]})
    frame.insert(1, "region", (frame["home"] % 4).map({0: "a", 1: "b", 2: "c", 3: "d"}))
    frame.to_csv(folder / "homes.csv", index=False)
    released = frame.drop(columns="home").assign(income=frame["income"] + 1)
    released.to_csv(folder / "dataset-01.csv", index=False)
    (folder / "recipe.toml").write_text(HOMES.replace('order = "ORDER"\n', f'order = "{order}"\n' if order else ""))
    return find_recipe(str(folder / "recipe.toml")), frame, str(folder / "dataset-01.csv")


@pytest.mark.parametrize("order", ["original", "shuffled"])
def test_a_released_file_needs_no_number_of_the_unit(tmp_path: Path, order: str) -> None:
    recipe, frame, file = write_homes(tmp_path, order)
    prepared = prepare_evaluation(recipe, str(tmp_path / "homes.csv"), [file], key=PUBLIC)
    assert prepared.data.n_units == 20
    ((_, released),) = prepared.external_datasets
    assert released.schema.names == prepared.data.schema.names
    # as in partial synthesis, whose rows keep their records, and in one of new rows
    if order == "original":
        assert released.frame["home"].tolist() == frame["home"].tolist()
    else:
        assert released.frame["home"].isna().all()


def test_files_of_an_own_release_are_judged_by_the_units_of_the_original(tmp_path: Path) -> None:
    recipe, _, file = write_homes(tmp_path, "")
    line = {"name": "dataset-01.csv", "sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()}
    (tmp_path / "manifest.json").write_text(json.dumps({"order": "shuffled", "files": [line]}))
    prepared = prepare_evaluation(recipe, str(tmp_path / "homes.csv"), [file], key=PUBLIC)
    assert prepared.recipe.form.order == "shuffled"
    assert prepared.data.n_units == 20
