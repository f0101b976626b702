"""The rows of a release say nothing of the order of the confidential records, unless the recipe asks for that order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from prepared_workspaces import run_recipe

from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.jobs.runs import reenter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.release.tables import DatasetContext, dataset_bytes
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

Enter = Callable[..., int]
SCHEMA = Schema((Variable("id", Kind.COUNT), Variable("city", Kind.CATEGORICAL), Variable("income", Kind.CONTINUOUS)))
SEED = 7
ORIGINAL = {"m": 3, "seed": SEED, "order": "original", "audience": "enclave"}


def table(order: np.ndarray | None = None) -> pa.Table:
    """Sixty rows, whose ids count the confidential order, in that order or another."""
    n = 60
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "city": pd.Categorical(np.random.default_rng(1).choice(list("abc"), n)),
            "income": np.where(np.arange(n) % 7 == 0, np.nan, np.random.default_rng(2).permutation(n) * 1.5),
        }
    )
    return pa.Table.from_pandas(frame if order is None else frame.iloc[order], preserve_index=False)


def released_bytes(stored: pa.Table, seed: int = SEED, left_out: tuple[str, ...] = ("id",)) -> bytes:
    context = DatasetContext(rng=Randomness(seed, PUBLIC).generator("release", 1))
    return dataset_bytes(stored, SCHEMA, left_out, "csv", context)


def test_the_same_rows_in_any_order_give_the_same_file() -> None:
    first = released_bytes(table())
    for seed in range(5):
        assert released_bytes(table(np.random.default_rng(seed).permutation(60))) == first
    assert released_bytes(table(), seed=SEED + 1) != first
    plain = dataset_bytes(table(), SCHEMA, ("id",), "csv")
    assert sorted(plain.splitlines()) == sorted(first.splitlines())
    assert plain != first


def test_who_knows_the_seed_cannot_undo_the_shuffle() -> None:
    """A permutation by the published seed alone is undone at once; sorted first, the rows come back sorted, no more."""
    permuted = Randomness(SEED, PUBLIC).generator("release", 1).permutation(60)
    undone = np.argsort(permuted)
    careless = permuted[undone]
    assert careless.tolist() == list(range(60)), "the negative control: the original order is back"
    shown = released_bytes(table(), left_out=()).decode().splitlines()[1:]
    by_city = (
        dataset_bytes(
            table(), SCHEMA, ("id",), "csv", DatasetContext(rng=Randomness(SEED, PUBLIC).generator("release", 1))
        )
        .decode()
        .splitlines()[1:]
    )
    rows = [by_city[i] for i in undone]
    assert rows == sorted(rows, key=lambda row: (row.split(",")[0], float(row.split(",")[1] or "inf")))
    assert sorted(int(row.split(",")[0]) for row in shown) == list(range(60))


def released_rows(directory: Path) -> list[list[str]]:
    return [path.read_text("utf-8").splitlines()[1:] for path in sorted(directory.glob("public/dataset-*.csv"))]


def stored_rows(workspace: Workspace, run_id: int) -> list[list[str]]:
    names = [f"draw/{draw}" for draw in (1, 2, 3)]
    query = "SELECT sha256 FROM artefact WHERE run_id = ? AND name = ?"
    hashes = [workspace.connection.execute(query, (run_id, name)).fetchone()[0] for name in names]
    frames = [workspace.tables.read_stored_table(sha256).to_pandas() for sha256 in hashes]
    return [frame.to_csv(index=False).splitlines()[1:] for frame in frames]


@pytest.mark.slow
def test_a_synthetic_release_is_shuffled_unless_the_recipe_says_otherwise(
    workspace: Workspace, enter: Enter, tmp_path: Path
) -> None:
    shuffled, original = enter(), enter(release=ORIGINAL)
    run_worker(workspace.directory, idle=0)
    write_run_release(workspace, shuffled, tmp_path / "shuffled")
    write_run_release(workspace, original, tmp_path / "original")
    inside = stored_rows(workspace, shuffled)
    assert stored_rows(workspace, original) == released_rows(tmp_path / "original") == inside
    found = released_rows(tmp_path / "shuffled")
    for mine, theirs in zip(found, inside, strict=True):
        assert sorted(mine) == sorted(theirs)
        assert sum(a == b for a, b in zip(mine, theirs, strict=True)) < 10
    ages = [[row.split(",")[1] for row in rows] for rows in found]
    assert ages[0] != ages[1], "each dataset has an order of its own"
    assert read_result_rows(workspace, shuffled) == read_result_rows(workspace, original), (
        "inside, records stay where they are"
    )


@pytest.mark.slow
def test_an_anonymised_release_is_shuffled_and_measured_in_order(
    workspace: Workspace, enter: Enter, tmp_path: Path
) -> None:
    making: dict[str, Any] = {"synthesis": [], "anonymisation": [{"method": "mondrian", "k": 4}], "threshold": [],
                              "measure": [{"method": "quality.pearson"}, {"method": "risk.anonymity"}]}  # fmt: skip
    runs = [
        enter(**making, release={"seed": SEED, "audience": "enclave", **more}) for more in ({}, {"order": "original"})
    ]
    run_worker(workspace.directory, idle=0)
    for run_id, name in zip(runs, ("shuffled", "original"), strict=True):
        write_run_release(workspace, run_id, tmp_path / name)
    (mine,), (theirs,) = (released_rows(tmp_path / name) for name in ("shuffled", "original"))
    assert sorted(mine) == sorted(theirs)
    assert sum(a == b for a, b in zip(mine, theirs, strict=True)) < 10
    assert read_result_rows(workspace, runs[0]) == read_result_rows(workspace, runs[1])


@pytest.mark.slow
def test_the_manifest_says_that_rows_are_shuffled_and_not_how(
    workspace: Workspace, enter: Enter, tmp_path: Path
) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    write_run_release(workspace, run_id, tmp_path / "out")
    assert plan_release(workspace, run_id).is_shuffled
    manifest = json.loads((tmp_path / "out/public/manifest.json").read_text("utf-8"))
    assert manifest["order"] == "shuffled"
    lists = [value for value in manifest.values() if isinstance(value, list)]
    assert all(len(value) < 80 for value in lists), "nothing in it is as long as the table"


@pytest.mark.slow
def test_a_run_done_again_releases_the_same_bytes(workspace: Workspace, enter: Enter, tmp_path: Path) -> None:
    first = enter()
    again = reenter_run(workspace, first)
    run_worker(workspace.directory, idle=0)
    for run_id, name in ((first, "one"), (again, "two")):
        write_run_release(workspace, run_id, tmp_path / name)
    for path in (tmp_path / "one/public").glob("dataset-*"):
        assert path.read_bytes() == (tmp_path / "two/public" / path.name).read_bytes()


@pytest.mark.slow
def test_the_codebook_says_what_the_ends_of_a_share_stand_for(
    workspace: Workspace, small_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:

    variables = {
        "smokes": {"kind": "binary", "role": "quasi_identifier", "labels": {"1": "daily"}},
        "age": {"kind": "count", "role": "quasi_identifier"},
    }
    recipe = Recipe.from_table(
        {"title": "Shares", "variables": variables, "anonymisation": [{"method": "mondrian", "k": 3, "means": "exact"}]}
    )
    frame = pd.DataFrame({"smokes": ["0", "1"] * 10, "age": range(20)})
    run_id = run_recipe(workspace, recipe, frame, "people.csv", b"x")
    write_run_release(workspace, run_id, tmp_path / "out", reason="no risk is measured")
    lines = (tmp_path / "out/public/codebook.csv").read_text("utf-8").splitlines()
    assert lines == [
        "variable,title,kind,code,label,format,name_in_datasets",
        "smokes,,continuous,0,0,,",
        "smokes,,continuous,1,daily,,",
        "age,,continuous,,,,",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("release_table", "place"),
    [
        ({"order": "sorted"}, "release.order"),
        ({"link": "age"}, "release.link"),
        ({"link": "nobody"}, "release.link"),
        ({"generalised": ["age"]}, "release.generalised"),
        ({"micro_aggregated": ["age"]}, "release.micro_aggregated"),
    ],
)
def test_what_a_recipe_with_steps_cannot_say_of_its_release(
    small_recipe: Callable[..., Recipe], release_table: dict[str, Any], place: str
) -> None:
    with pytest.raises(BadInput) as caught:
        small_recipe(release=release_table)
    assert caught.value.place == place


def test_the_order_is_part_of_the_recipe_and_its_default_is_not_written(small_recipe: Callable[..., Recipe]) -> None:
    plain, kept = small_recipe(), small_recipe(release=ORIGINAL)
    assert "order" not in plain.to_toml()
    assert Recipe.from_toml(kept.to_toml()) == kept
    assert kept.sha256 != plain.sha256
    assert (
        small_recipe(release={"m": 3, "seed": SEED, "order": "shuffled", "audience": "enclave"}).sha256 == plain.sha256
    )
