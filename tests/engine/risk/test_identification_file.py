"""An intruder with a file: its errors, its gaps, people of it who are not in the data, and who of the data it has."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.results import Measure
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.identification import HAS_FILE, KNOWS_VALUES, IdentificationSpec, check_data, identification
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.commitment import hashes_of_named_files
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

SCHEMA = schema_of(
    "id: categorical identifier",
    Variable("sex", Kind.BINARY, Role.QUASI_IDENTIFIER, levels=("1", "2")),
    "age: count quasi_identifier",
    "since: date",
    "pay: continuous sensitive",
)
RADIUS = {"pay": "5%", "age": 1}
KEY = b"k" * 32


def people(records: int, seed: int = 1) -> Microdata:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": rng.permutation(1000)[:records],
            "sex": rng.choice(["1", "2"], records),
            "age": rng.integers(20, 30, records),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 9, records), unit="D"),
            "pay": rng.choice([100.0, 103.0, 150.0, 151.0], records),
        }
    )
    return conform_to_schema(frame, SCHEMA)


def shuffle_pay(data: Microdata, seed: int = 5) -> Microdata:
    pay = data.column("pay").sample(frac=1, random_state=np.random.default_rng(seed)).reset_index(drop=True)
    return data.with_columns({"pay": pay}, "synthetic")


def lines_of(frame: pd.DataFrame) -> list[str]:
    return str(frame.to_csv(index=False)).splitlines()


def measure_release(data: Microdata, released: Microdata, run: Run | None = None, **table) -> Measure:
    spec = IdentificationSpec.from_table({"radius": RADIUS, **table}, "measure[0]")
    spec.check(SCHEMA, "measure[0]")
    spec.check_release(SCHEMA, ("pay",), "measure[0]")
    check_data(data, "", spec, "measure[0]")
    return identification(data, released, spec.for_release(SCHEMA, ("pay",)), run or Run(np.random.default_rng(0)))


def of_all_known(found: dict[str, float | None]) -> dict[str, float | None]:
    """The papers' four outputs, of an intruder who uses all that is known."""
    return {name: value for name, value in found.items() if not name.startswith("largest_")}


def intruder_estimates(measure: Measure, intruder: str) -> dict[str, float | None]:
    return {e.measure: e.value for e in measure.estimates if e.params.get("intruder", intruder) == intruder}


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 14), st.integers(0, 3))
def test_a_file_with_errors_gaps_and_strangers_is_scored_as_loops_score_it(
    seed: int, records: int, strangers: int
) -> None:
    data, released = people(records, seed), shuffle_pay(people(records, seed), seed + 1)
    rng = np.random.default_rng(seed + 2)
    frame = data.frame[["pay", "id", "sex", "age"]].astype(object).sample(frac=0.7, random_state=rng)
    if not len(frame):
        return
    frame["age"] = [
        None if u < 0.2 else age + (u > 0.8) for age, u in zip(frame.age, rng.random(len(frame)), strict=True)
    ]
    frame["sex"] = [None if u < 0.2 else sex for sex, u in zip(frame.sex, rng.random(len(frame)), strict=True)]
    if frame.age.isna().all() or frame.sex.isna().all():
        return
    others = pd.DataFrame(
        {
            "pay": [101.0] * strangers,
            "id": range(2000, 2000 + strangers),
            "sex": ["1"] * strangers,
            "age": [25] * strangers,
        }
    )
    file = pd.concat([frame, others.astype(object)], ignore_index=True)
    expected, unique, wrong, right = 0.0, 0, 0, 0
    theirs, ids = released.frame.to_dict("records"), [str(one) for one in data.frame.id]
    for a in file.itertuples():
        candidates = [
            j
            for j, b in enumerate(theirs)
            if (pd.isna(a.sex) or a.sex == b["sex"])
            and (pd.isna(a.age) or abs(a.age - b["age"]) <= 1)
            and abs(a.pay - b["pay"]) <= 5 * a.pay / 100
        ]  # fmt: skip
        own = ids.index(str(a.id)) if str(a.id) in ids else -1
        expected += 1 / len(candidates) if own in candidates else 0
        unique += len(candidates) == 1
        right += candidates == [own]
        wrong += len(candidates) == 1 and candidates != [own]
    measure = measure_release(data, released, external=lines_of(file), key="id")
    assert of_all_known(intruder_estimates(measure, HAS_FILE)) == {
        "expected_match_risk": pytest.approx(expected),
        "true_match_rate": pytest.approx(right / len(file)),
        "false_match_rate": pytest.approx(wrong / unique) if unique else None,
        "unique_matches": unique,
    }
    plain = identification(
        data, released, IdentificationSpec.from_table({"radius": RADIUS}, "").for_release(SCHEMA, ("pay",)), Run(rng)
    )
    assert intruder_estimates(measure, KNOWS_VALUES) == {e.measure: e.value for e in plain.estimates}, (
        "beside perfect knowledge"
    )
    assert (measure.per_record["candidates"] == plain.per_record["candidates"]).all()
    assert int((~np.isnan(measure.per_record["file_hit"])).sum()) == len(frame)


def test_a_faultless_file_of_everybody_is_perfect_knowledge_in_any_order_and_spelling() -> None:
    data, released = people(30), shuffle_pay(people(30))
    whole = data.frame.drop(columns="since")
    respelt = whole.sample(frac=1, random_state=2).assign(
        pay=lambda f: f.pay.map("{:.3e}".format),
        sex=lambda f: f.sex.astype(str) + ".0",
        id=lambda f: f.id.astype(str) + ".0",
    )
    for frame in (whole, respelt):
        measure = measure_release(data, released, external=lines_of(frame), key="id")
        assert intruder_estimates(measure, HAS_FILE) == pytest.approx(intruder_estimates(measure, KNOWS_VALUES))


def test_a_copy_is_found_by_its_own_file_and_noise_by_chance_only() -> None:
    data = people(200)
    frame = data.frame.assign(pay=np.arange(200) * 20.0 + 100)
    data = conform_to_schema(frame, SCHEMA)
    table = {"external": lines_of(frame.drop(columns="since")), "key": "id", "radius": {"pay": 1}}
    copy = measure_release(data, Microdata(SCHEMA, data.frame, "synthetic"), **table)
    assert of_all_known(intruder_estimates(copy, HAS_FILE)) == {
        "expected_match_risk": 200,
        "true_match_rate": 1,
        "false_match_rate": 0,
        "unique_matches": 200,
    }
    noise = intruder_estimates(measure_release(data, shuffle_pay(data), **table), HAS_FILE)
    assert noise["expected_match_risk"] < 5
    strange = frame.drop(columns="since").assign(id=[str(i) if at < 1 else f"x{i}" for at, i in enumerate(frame.id)])
    outside = intruder_estimates(
        measure_release(data, Microdata(SCHEMA, data.frame, "synthetic"), **{**table, "external": lines_of(strange)}),
        HAS_FILE,
    )
    assert outside["unique_matches"] == 200, "records that are not in the data are false matches"
    assert outside["false_match_rate"] == 199 / 200
    assert outside["true_match_rate"] == 1 / 200


@pytest.mark.parametrize("coverage", [1.0, 0.5])
def test_a_made_up_file_covers_and_errs_as_much_as_it_is_asked_to(coverage: float) -> None:
    """Every record is alone by pay: one with another's pay finds that other, or the own one by chance of the same value."""
    frame = people(400).frame.assign(pay=np.arange(400) * 20.0 + 100)
    data = conform_to_schema(frame, SCHEMA)
    copy = Microdata(SCHEMA, data.frame, "synthetic")
    found = intruder_estimates(
        measure_release(data, copy, radius={"pay": 1}, known=["pay"], coverage=coverage, errors={"pay": 0.25}), HAS_FILE
    )
    people_in_it = 400 * coverage
    assert of_all_known(found) == {
        "expected_match_risk": 0.75 * people_in_it,
        "true_match_rate": 0.75,
        "false_match_rate": 0.25,
        "unique_matches": people_in_it,
    }
    assert (
        intruder_estimates(
            measure_release(data, copy, radius={"pay": 1}, known=["pay"], coverage=coverage, errors={"pay": 1.0}),
            HAS_FILE,
        )["true_match_rate"]
        == 0
    )


@pytest.mark.slow
def test_who_is_in_a_made_up_file_hangs_on_the_key_and_not_on_the_order_of_the_file() -> None:
    frame = people(60).frame.assign(pay=np.arange(60) * 7.0 + 100)
    released = shuffle_pay(conform_to_schema(frame, SCHEMA)).frame
    turned = np.random.default_rng(1).permutation(60)
    recipe = Recipe.from_table(
        {
            "variables": {v.name: v.to_table() for v in SCHEMA},
            "release": {"m": 2, "released": ["pay"]},
            "measure": [
                {"method": "risk.identification", "radius": RADIUS, "coverage": 0.5, "errors": {"age": 0.3, "sex": 0.1}},
                {"method": "risk.identification", "radius": RADIUS, "coverage": 0.5, "errors": {"sex": 0.1, "age": 0.4}},
            ],
        }
    )  # fmt: skip

    def rows(order, key: bytes) -> list:
        data, given = (conform_to_schema(one.iloc[order].reset_index(drop=True), SCHEMA) for one in (frame, released))
        found = execute_run(recipe, data, [Microdata(SCHEMA, given.frame, "synthetic")] * 2, key=key).rows
        return [(row.series, row.dataset, row.draw, row.value) for row in found]

    def values(found) -> list:
        return [value for *_, value in found]

    plain = rows(np.arange(60), PUBLIC)
    assert len({series for series, *_ in plain}) == 6 * 2 * 2, "two uses, and two intruders of each, stay apart"
    assert values(plain) == pytest.approx(values(rows(turned, PUBLIC)))
    assert values(rows(np.arange(60), KEY)) != values(rows(np.arange(60), b"j" * 32))
    draws = [value for _, dataset, draw, value in plain if dataset == "synthetic" and draw == 1]
    assert draws == [value for _, dataset, draw, value in plain if dataset == "synthetic" and draw == 2], (
        "one file for all"
    )


GOOD = ["id,sex,age,pay", "{},1,25,100", "{},2,26,103"]


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({"external": GOOD}, "key", "name the identifier"),
        ({"key": "id"}, "key", "name the file as external"),
        ({"external": GOOD, "key": "age"}, "key", 'must have the role "identifier"'),
        ({"external": GOOD, "key": "id", "known": ["id"], "radius": {"pay": 1}}, "key", "not be matched by"),
        ({"external": GOOD, "key": "id", "coverage": 0.5}, "coverage", "leave this out"),
        ({"external": GOOD, "key": "id", "targets": 3}, "targets", "leave this out"),
        (
            {"external": GOOD, "key": "id", "known": ["since"], "radius": {"pay": 1}},
            "external",
            'has no column "since"',
        ),
        ({"external": ["sex,age,pay", "1,25,100"], "key": "id"}, "key", 'has no column "id"'),
        ({"external": ["id,sex,age,pay", "99999,1,25,100"], "key": "id"}, "key", "no match could be right"),
        ({"external": [*GOOD, GOOD[1]], "key": "id"}, "key", "2 records of the intruder's file share"),
        ({"external": [*GOOD, ",1,25,100"], "key": "id"}, "key", '1 record of the intruder\'s file has no "id"'),
        (
            {"external": [GOOD[0], "{},M,25,100", "{},F,26,100"], "key": "id"},
            "external.sex",
            "write them as the data do",
        ),
        ({"external": [GOOD[0], "{},1,old,100"], "key": "id"}, "external.age", "of the intruder's file"),
        ({"external": "file.csv", "key": "id"}, "external", "from the folder of a recipe's file"),
        ({"external": ["id,sex"], "key": "id"}, "external", "has no records"),
        ({"external": ["id,sex", "1"], "key": "id"}, "external", "line 2 of the intruder's file has 1 cells"),
        ({"errors": {"since": 0.1}}, "errors.since", "is not matched"),
        ({"errors": {"age": 1.5}}, "errors.age", "at most 1"),
        ({"coverage": 0.0}, "coverage", "above 0"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_place_and_the_fix(table, place: str, message: str) -> None:
    data = people(20)
    if isinstance(table.get("external"), list):
        ids = iter([*data.frame.id, *data.frame.id])
        first, second = next(ids), next(ids)
        lines = [line.format(second if at == 2 else first) for at, line in enumerate(table["external"])]
        table = {**table, "external": lines}
    with pytest.raises(BadInput, match=message) as caught:
        measure_release(data, data, **table)
    assert caught.value.place == f"measure[0].{place}"
    assert not any(str(pay) in caught.value.message for pay in data.frame.pay)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    folder.mkdir()
    data = people(60)
    data.frame.to_csv(folder / "people.csv", index=False)
    data.frame.drop(columns="since").head(30).to_csv(folder / "register.csv", index=False)
    recipe = {
        "data": {"file": "people.csv"},
        "variables": {v.name: v.to_table() for v in SCHEMA},
        "release": {"m": 2},
        "synthesis": [{"method": "linear_regression", "target": "pay", "predictors": ["age"]}],
        "measure": [{"method": "risk.identification", "external": "register.csv", "key": "id", "radius": RADIUS}],
        "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.9}],
    }
    (folder / "recipe.toml").write_text(tomli_w.dumps(recipe), "utf-8")
    return folder


@pytest.mark.slow
def test_a_run_keeps_the_file_commits_to_it_and_judges_both_intruders(folder: Path, tmp_path: Path) -> None:
    prepared = prepare_run(find_recipe(str(folder / "recipe.toml")), key=KEY)
    (folder / "register.csv").unlink()
    with Workspace.create(tmp_path / "w", KEY) as workspace:
        run_id = prepared.enter(workspace)
        run_worker(workspace.directory, idle=0)
        run = find_run(workspace, run_id)
        external = run.recipe.measures[0].spec.external  # type: ignore[attr-defined]
        assert hashes_of_named_files(run.recipe) == {"measure[0].external": external.sha256}
        rows = read_result_rows(workspace, run_id)
    assert {row.params["external"] for row in rows} == {f"30 records, SHA-256 {external.sha256[:16]}"}
    assert {row.params["intruder"] for row in rows} == {HAS_FILE, KNOWS_VALUES}
    assert "register" not in json.dumps([row.to_dict() for row in rows])


@pytest.mark.parametrize("name", ["../people.csv", "/etc/hostname", "gone.csv"])
def test_a_file_is_read_from_the_folder_of_the_recipe_alone(folder: Path, name: str) -> None:
    text = (folder / "recipe.toml").read_text("utf-8").replace("register.csv", name)
    (folder / "recipe.toml").write_text(text, "utf-8")
    with pytest.raises(BadInput, match=r"^measure\[0\].external: "):
        prepare_run(find_recipe(str(folder / "recipe.toml")), key=KEY)
