"""Surrogate keys: released tables join by them, and nothing else can be learned from one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w
from prepared_workspaces import run_recipe

from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.surrogate_keys import surrogate_key_columns
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.prepare import prepare_evaluation
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

WHY = "simulated people of a test"
HOMES = 300


def homes(seed: int = 3) -> pd.DataFrame:
    """People in homes of two: an age in steps, a region, an income, a number of the person and one of the home."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "person": rng.permutation(2 * HOMES) + 10_000,
            "home": np.repeat(rng.permutation(HOMES), 2),
            "age": rng.choice(["young", "middle", "old"], 2 * HOMES),
            "region": rng.choice(["north", "south"], 2 * HOMES),
            "income": rng.integers(100, 900, 2 * HOMES),
        }
    )


def table(drawn: str = "income", **release: Any) -> dict[str, Any]:
    kinds = {"person": "count", "home": "count", "age": "categorical", "region": "categorical", "income": "count"}
    roles = {"person": "identifier", "home": "identifier", "income": "sensitive"}
    return {
        "variables": {name: {"kind": kind, "role": roles.get(name, "other")} for name, kind in kinds.items()},
        "synthesis": [{"target": drawn, "method": "cart", "predictors": []}],
        "release": {"m": 1, "seed": 1, **release},
        "measure": [{"method": "utility.propensity"}],
    }


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with a key that nobody knows."""
    with Workspace.create(tmp_path / "secret") as opened:
        yield opened


def write_release(workspace: Workspace, run_id: int, out: Path, form: str = "csv") -> pd.DataFrame:
    """Release a run with all findings waived; return its first dataset."""
    plan = plan_release(workspace, run_id)
    found = examine_release(workspace, plan, read_policy_of_workspace(workspace.directory))
    waive = {one.check: WHY for one in found.unwaived_findings}
    write_run_release(workspace, run_id, out, form=form, reason=WHY, waive=waive)
    return read_dataset(out, form)


def read_dataset(out: Path, form: str = "csv") -> pd.DataFrame:
    file = next((out / "public").glob("dataset-*-01.*"))
    readers: dict[str, Callable[..., pd.DataFrame]] = {
        "csv": pd.read_csv, "parquet": pd.read_parquet, "spss": pd.read_spss, "stata": pd.read_stata,
    }  # fmt: skip
    return readers[form](file)


def finding(workspace: Workspace, run_id: int) -> Finding:
    plan = plan_release(workspace, run_id)
    found = examine_release(workspace, plan, read_policy_of_workspace(workspace.directory))
    return next(one for one in found.findings if one.check == "joined_releases")


@pytest.mark.slow
def test_two_releases_join_by_the_key_alone(secret: Workspace, tmp_path: Path) -> None:
    """Rows are in another order in each; the join puts each true column beside the others of the same person."""
    data = homes()
    first = run_recipe(secret, table(surrogate_keys=["person"]), data)
    second = run_recipe(secret, table("age", surrogate_keys=["person", "home"]), data)
    one, two = write_release(secret, first, tmp_path / "one"), write_release(secret, second, tmp_path / "two")
    assert list(one) == ["person", "age", "region", "income"]
    assert list(two) == ["person", "home", "age", "region", "income"]
    assert one["person"].tolist() != two["person"].tolist()
    joined = one.merge(two, on="person", validate="one_to_one", suffixes=("", " of two"))
    assert len(joined) == len(data)
    assert (joined["region"] == joined["region of two"]).all()
    truth = data.groupby(["age", "region"], observed=True)["income"].apply(sorted).to_dict()
    found = joined.groupby(["age", "region of two"])["income of two"].apply(sorted).to_dict()
    assert found == truth, "age is true in the first release, income in the second"
    assert two["home"].value_counts().eq(2).all()
    # Nothing of the identifiers or of the order of the records is in the files.
    for file in (tmp_path / "two" / "public").rglob("*"):
        if file.is_file() and file.suffix in (".csv", ".json", ".html"):
            assert "10017" not in file.read_text("utf-8"), file.name
    assert one["person"].str.fullmatch("[a-z2-7]{16}").all()


@pytest.mark.slow
def test_keys_say_nothing_of_order_and_other_scopes_do_not_join(secret: Workspace, tmp_path: Path) -> None:
    data = homes().sort_values("person").reset_index(drop=True)
    run_id = run_recipe(secret, table(surrogate_keys=["person"]), data, content=b"sorted")
    other = run_recipe(secret, table(surrogate_keys=["person"], surrogate_scope="B"), data, content=b"sorted")
    here = write_release(secret, run_id, tmp_path / "here")
    there = write_release(secret, other, tmp_path / "there")
    assert set(here["person"]).isdisjoint(there["person"])
    # The rank correlation of 600 independent pairs is within .16 with probability 1 - 1e-4; the control is of order alone.
    stored = secret.tables.read_stored_table(plan_release(secret, run_id).tables[0]).to_pandas()
    keys = surrogate_key_columns(
        secret.tables.read_stored_table(plan_release(secret, run_id).tables[0]),
        Recipe.from_table(table(surrogate_keys=["person"])).form,
        secret.read_workspace_key(),
    )["person"]
    assert set(keys) == set(here["person"])
    assert abs(keys.rank().corr(stored["person"].rank())) < 0.16
    assert stored["person"].rank().corr(pd.Series(range(len(stored)))) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "spss", "stata"])
def test_every_format_has_the_keys(secret: Workspace, tmp_path: Path, form: str) -> None:
    run_id = run_recipe(secret, table(surrogate_keys=["home"]), homes())
    found = write_release(secret, run_id, tmp_path / "out", form)
    assert found["home"].astype(str).str.fullmatch("[a-z2-7]{16}").all()
    assert found["home"].nunique() == HOMES
    codebook = pd.read_csv(tmp_path / "out/public/codebook.csv")
    assert codebook.loc[codebook["variable"] == "home", "title"].str.contains("surrogate key").all()


@pytest.mark.slow
def test_a_public_key_gives_no_surrogate_keys(tmp_path: Path) -> None:
    """Whoever has a list of the identifiers could compute the keys."""
    with Workspace.create(tmp_path / "public", PUBLIC) as opened:
        run_id = run_recipe(opened, table(surrogate_keys=["person"], audience="enclave"), homes())
        assert finding(opened, run_id).status == "block"
        with pytest.raises(NotReleased, match="public"):
            write_release(opened, run_id, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ({"surrogate_keys": ["age"]}, "no identifier"),
        ({"surrogate_keys": ["nobody"]}, "nobody"),
        ({"surrogate_scope": "A"}, "no surrogate key"),
        ({"surrogate_keys": ["person"], "records": 50}, "no released row"),
    ],
)
def test_a_recipe_that_cannot_have_keys_is_refused(release: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Recipe.from_table(table(**release))


@pytest.mark.slow
def test_whom_joined_tables_show_is_counted_by_hand(secret: Workspace, tmp_path: Path) -> None:
    """Alone each release keeps columns that many share; joined, age beside region and the other person of the home find some."""
    data = homes()
    alone = run_recipe(secret, table("age"), data)
    assert finding(secret, alone).state == "does not apply"
    first = run_recipe(secret, table(surrogate_keys=["home"]), data)
    found = finding(secret, first)
    rows = data["age"] + " " + data["region"]
    own = rows.groupby(data["home"]).transform(lambda home: " | ".join(sorted(home)))
    same = (own + "; " + rows).map((own + "; " + rows).value_counts())
    assert found.people == int((same < 11).sum()) > 0
    assert found.status == "block"
    # The control: nobody is found by the rows alone, without the home.
    assert rows.map(rows.value_counts()).min() >= 11


@pytest.mark.slow
def test_people_of_one_home_hide_nobody_of_it(secret: Workspace) -> None:
    """Each home is alone with its number of people, and has more of them than the smallest class."""
    size = np.arange(12, 32)
    home = np.repeat(np.arange(len(size)), size)
    data = homes().iloc[: len(home)].assign(home=home, region="north")
    recipe = table(surrogate_keys=["home"])
    recipe["variables"]["home"]["role"] = "unit"
    recipe["synthesis"] = [{"target": name, "method": "cart", "predictors": []} for name in ("age", "income")]
    found = finding(secret, run_recipe(secret, recipe, data))
    assert found.status == "block"
    assert found.people == len(size)


@pytest.mark.slow
def test_an_earlier_release_adds_its_columns(secret: Workspace, tmp_path: Path) -> None:
    """The second release keeps age alone, and the first one region and income."""
    data = homes()
    earlier = run_recipe(secret, table("age", surrogate_keys=["person"]), data)
    write_release(secret, earlier, tmp_path / "one")
    recipe = table("income", surrogate_keys=["person"])
    recipe["synthesis"] = [
        {"target": "income", "method": "cart", "predictors": []},
        {"target": "region", "method": "cart", "predictors": ["income"]},
    ]
    second = run_recipe(secret, recipe, data)
    found = finding(secret, second)
    counted = data["age"] + data["region"] + data["income"].astype(str)
    assert found.people == int((counted.map(counted.value_counts()) < 11).sum())
    assert found.status == "block"
    assert "run" in found.message
    apart = {**recipe, "release": {**recipe["release"], "surrogate_scope": "others"}}
    assert finding(secret, run_recipe(secret, apart, data)).status == "pass"


def draw_columns(*drawn: str, **release: Any) -> dict[str, Any]:
    """A recipe that draws these columns and keeps the others true."""
    steps = [{"target": name, "method": "cart", "predictors": []} for name in drawn]
    return {**table(**release), "synthesis": steps}


def count_few(data: pd.DataFrame, columns: list[str], homes_too: bool) -> int:
    """People whose columns, and those of their home where that counts, fewer than 11 share."""
    rows = data[columns].astype(str).agg("|".join, axis=1)
    if homes_too:
        rows = rows + "; " + rows.groupby(data["home"]).transform(lambda home: " / ".join(sorted(home)))
    return int((rows.map(rows.value_counts()) < 11).sum())


@pytest.mark.slow
def test_a_key_that_an_earlier_release_adds_joins_homes(secret: Workspace, tmp_path: Path) -> None:
    """The earlier release draws all columns and says who lives together; the later one keeps age and region."""
    data = homes()
    earlier = run_recipe(secret, draw_columns("age", "region", "income", surrogate_keys=["person", "home"]), data)
    write_release(secret, earlier, tmp_path / "one")
    found = finding(secret, run_recipe(secret, draw_columns("income", surrogate_keys=["person"]), data))
    assert found.people == count_few(data, ["age", "region"], homes_too=True) > 0
    assert found.status == "block"


@pytest.mark.slow
def test_releases_join_through_a_third_one(secret: Workspace, tmp_path: Path) -> None:
    """The first has the key of persons, the third that of homes, and the second both."""
    data = homes()
    first = run_recipe(secret, draw_columns("region", surrogate_keys=["person"]), data)
    write_release(secret, first, tmp_path / "one")
    second = run_recipe(secret, draw_columns("age", "region", "income", surrogate_keys=["person", "home"]), data)
    write_release(secret, second, tmp_path / "two")
    found = finding(secret, run_recipe(secret, draw_columns("age", "income", surrogate_keys=["home"]), data))
    assert found.people == count_few(data, ["age", "region", "income"], homes_too=True) == len(data)
    assert found.status == "block"


@pytest.mark.slow
def test_a_deleted_release_joins_as_before(secret: Workspace, tmp_path: Path) -> None:
    """Of the same table its columns count; of a table of another year it blocks, since they cannot be counted."""
    data = homes()
    later = data.assign(income=np.random.default_rng(1).integers(100, 900, len(data)))
    same = run_recipe(secret, draw_columns("region", surrogate_keys=["person"]), data)
    write_release(secret, same, tmp_path / "one")
    other = run_recipe(secret, draw_columns("region", surrogate_keys=["person"]), later, content=b"later")
    write_release(secret, other, tmp_path / "two")
    run_id = run_recipe(secret, draw_columns("age", "income", surrogate_keys=["person"]), data)
    before = finding(secret, run_id)
    delete_run(secret, same)
    delete_run(secret, other)
    after = finding(secret, run_id)
    assert (after.status, after.people, after.message) == (before.status, before.people, before.message)
    assert after.status == "block"
    assert after.people == count_few(data, ["age", "region", "income"], homes_too=False)
    assert f"runs {other} join too" in after.message


@pytest.mark.slow
@pytest.mark.parametrize("role", ["identifier", "weight"])
def test_a_new_role_does_not_hide_what_was_released(secret: Workspace, tmp_path: Path, role: str) -> None:
    data = homes()
    earlier = run_recipe(secret, draw_columns("region", surrogate_keys=["person"]), data)
    write_release(secret, earlier, tmp_path / "one")
    recipe = draw_columns("region", "age", surrogate_keys=["person"])
    recipe["variables"] = {**recipe["variables"], "income": {"kind": "continuous", "role": role}}
    found = finding(secret, run_recipe(secret, recipe, data))
    assert found.status == "block"


@pytest.mark.slow
def test_drawn_values_of_several_datasets_are_to_be_judged(secret: Workspace) -> None:
    recipe = table("income", surrogate_keys=["person"], m=3)
    recipe["synthesis"] = [
        {"target": "income", "method": "cart", "predictors": []},
        {"target": "region", "method": "cart", "predictors": ["income"]},
        {"target": "age", "method": "cart", "predictors": ["income"]},
    ]
    found = finding(secret, run_recipe(secret, recipe, homes()))
    assert found.status == "warn"
    assert "put together" in found.message


@pytest.mark.slow
def test_the_record_of_the_release_names_the_keys(secret: Workspace, tmp_path: Path) -> None:
    run_id = run_recipe(secret, table(surrogate_keys=["person"]), homes())
    write_release(secret, run_id, tmp_path / "out")
    record = json.loads((tmp_path / "out/internal/disclosure-control.json").read_text("utf-8"))
    assert "person" in json.dumps(record)
    page = (tmp_path / "out/public/using-these-data.html").read_text("utf-8")
    assert "joins the released tables that have it" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", ["person", "home"])
def test_files_with_surrogate_keys_are_scored_by_the_recipe_that_made_them(
    name: str, secret: Workspace, tmp_path: Path
) -> None:
    """The keys of homes keep their people together, so that measures of units count as in the run itself."""
    data, recipe = homes(), table(surrogate_keys=[name], surrogate_scope="A")
    if name == "home":
        del recipe["variables"]["person"]
        recipe["variables"]["home"]["role"] = "unit"
        recipe["release"]["units"] = "kept"
        recipe["measure"] = [{"method": "utility.units"}]
    run_id = run_recipe(secret, recipe, data[list(recipe["variables"])])
    released = write_release(secret, run_id, tmp_path / "out")
    assert released[name].map(len).unique().tolist() == [16]
    data.to_csv(tmp_path / "homes.csv", index=False)
    (tmp_path / "homes.toml").write_text(tomli_w.dumps({**recipe, "data": {"file": "homes.csv"}}), "utf-8")
    file = next((tmp_path / "out/public").glob("dataset-*.csv"))
    scored = prepare_evaluation(
        find_recipe(str(tmp_path / "homes.toml")), str(tmp_path / "homes.csv"), [str(file)], key=b""
    )
    ((_, theirs),) = scored.external_datasets
    assert theirs.n_units == (HOMES if name == "home" else 2 * HOMES)
    rows = execute_run(scored.recipe, scored.data, [theirs], key=b"").rows
    if name == "home":
        sizes = {row.value for row in rows if row.measure == "size_distance" and row.dataset == "synthetic"}
        assert sizes == {0.0}
