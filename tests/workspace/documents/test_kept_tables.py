"""A release that was drawn from protected tables has them beside it, and no table that its protection does not cover."""

from __future__ import annotations

import csv
import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import fastjsonschema
import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import release_recipe

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace import documents
from sfumato.workspace.documents.disclosure_control import SCHEMA_FILE
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow

LEVELS = ["city", "town", "village", "hamlet"]
VARIABLES: dict[str, Any] = {
    "area": {"kind": "categorical", "levels": LEVELS},
    "age": {"kind": "count", "bounds": [0, 99]},
    "pay": {"kind": "count", "bounds": [0, 5000]},
}


def planned(variables: dict[str, Any] = VARIABLES, **step: Any) -> tuple[Recipe, Microdata]:
    rng = np.random.default_rng(4)
    age = rng.integers(0, 100, 900)
    frame = pd.DataFrame(
        {
            "area": rng.choice(LEVELS[:3], 900),
            "age": age,
            "pay": np.clip(age * 40 + rng.integers(0, 1000, 900), 0, 5000),
        }
    )
    frame.loc[0, "area"] = "hamlet"
    table = {
        "variables": variables,
        "synthesis": [
            {
                "method": "margins",
                "target": ["area", "age", "pay"],
                "bins": {"age": "width 20", "pay": "width 1000"},
                **step,
            }
        ],
        "release": {"m": 1, "seed": 1, "records": 500},
        "measure": [{"method": "utility.ecdf"}],
    }
    recipe = Recipe.from_table(table)
    return recipe, conform_to_schema(frame, recipe.schema, recipe.data.missing)


def lines(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_the_queue_for_output_checking_has_every_kept_table_as_counts(workspace: Workspace, tmp_path: Path) -> None:
    recipe, data = planned(margins=["area : age", "age : pay"])
    public = release_recipe(workspace, recipe, data, tmp_path) / "public"
    folder = public.parent / "internal" / "acro"
    queue = json.loads((folder / "results.json").read_text("utf-8"))["results"].values()
    kept = {one["files"][0]["name"]: one for one in queue if one["files"][0]["name"].startswith("kept-")}
    tables = sorted((public / "tables").iterdir())
    assert sorted(kept) == [f"kept-{at:02}.csv" for at in range(1, len(tables) + 1)]
    for at, table in enumerate(tables, start=1):
        own = kept[f"kept-{at:02}.csv"]
        assert (folder / f"kept-{at:02}.csv").read_bytes() == table.read_bytes()
        assert own["fair"]["statbarn"] == "Frequencies"
        assert "rounded to the nearest multiple" in own["summary"]


def test_coarsened_tables_leave_with_a_page_and_without_a_rare_level(workspace: Workspace, tmp_path: Path) -> None:
    recipe, data = planned(margins=["area : age", "age : pay"])
    public = release_recipe(workspace, recipe, data, tmp_path) / "public"
    first, second = lines(public / "tables/01.csv"), lines(public / "tables/02.csv")
    assert first[0] == ["area", "age", "count"]
    assert second[0] == ["age", "pay", "count"]
    assert all(int(line[-1]) % 10 == 0 for line in [*first[1:], *second[1:]])
    counts = data.frame.groupby(
        ["area", pd.cut(data.frame["age"], [0, 20, 40, 60, 80, 100], right=False)], observed=True
    ).size()
    assert {line[-1] for line in first[1:] if line[:2] == ["city", "[20, 40)"]} == {
        str(10 * int(np.floor(counts["city"].iloc[1] / 10 + 0.5)))
    }
    assert not any("hamlet" in line for line in first), "a level of one person is in no line"
    page = html.unescape((public / "what-this-file-keeps.html").read_text("utf-8"))
    assert "rounded to the nearest multiple of 10" in page
    assert re.search(r"Not kept: 1 pair of 3 pairs.*area and pay", page, re.DOTALL)
    manifest = json.loads((public / "manifest.json").read_text("utf-8"))
    assert {"tables/01.csv", "what-this-file-keeps.html"} <= {file["name"] for file in manifest["files"]}
    made = pd.read_csv(next(public.glob("dataset-*.csv")))
    assert "hamlet" not in set(made["area"])
    assert made["age"].corr(made["pay"]) > 0.85
    assert abs(pd.get_dummies(made["area"])["city"].corr(made["pay"])) < 0.2


def test_noisy_tables_leave_with_their_noise_and_a_delta(workspace: Workspace, tmp_path: Path) -> None:
    recipe, data = planned(epsilon=5.0, delta=1e-6)
    public = release_recipe(workspace, recipe, data, tmp_path) / "public"
    page = html.unescape((public / "what-this-file-keeps.html").read_text("utf-8"))
    assert "normal noise, standard deviation" in page
    assert any("hamlet" in line for line in lines(public / "tables/01.csv")), "declared levels are all listed"
    promise = (public / "privacy.txt").read_text("utf-8")
    assert "differentially private with epsilon 5 and delta 1e-06, all datasets together" in promise.replace(
        "5.001", "5"
    )
    assert "any number of datasets and records costs no more" in promise
    found = json.loads((public.parent / "internal/disclosure-control.json").read_text("utf-8"))
    fastjsonschema.compile(json.loads(files(documents).joinpath(SCHEMA_FILE).read_text("utf-8")))(found)
    assert found["privacy"]["delta"] == pytest.approx(1e-6)
    assert found["privacy"]["epsilon"] == pytest.approx(5.0)


@pytest.mark.parametrize(
    "step",
    [
        {"protection": "exact", "margins": ["area : age"]},
        {"audit": False, "margins": ["area : age"]},
    ],
)
def test_tables_that_protection_does_not_cover_stay(workspace: Workspace, tmp_path: Path, step: dict[str, Any]) -> None:
    public = release_recipe(workspace, *planned(**step), tmp_path) / "public"
    assert not (public / "tables").exists()
    assert not (public / "what-this-file-keeps.html").exists()


def test_levels_that_noise_found_are_published_and_a_lone_one_stands_in_no_public_file(
    workspace: Workspace, tmp_path: Path
) -> None:
    plan = planned({**VARIABLES, "area": {"kind": "categorical"}}, epsilon=10.0)
    public = release_recipe(workspace, *plan, tmp_path) / "public"
    area = lines(public / "tables" / "01.csv")
    assert {row[0] for row in area[1:]} == {"city", "town", "village", "(other levels)"}
    texts = [path.read_bytes() for path in public.rglob("*") if path.is_file()]
    assert any(b"village" in text for text in texts), "the control: a level that is kept"
    assert not [text for text in texts if b"hamlet" in text]
    promise = json.loads((public.parent / "internal/disclosure-control.json").read_text("utf-8"))["privacy"]
    assert promise["epsilon"] == pytest.approx(10.0)
