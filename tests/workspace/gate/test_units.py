"""The gate by unit: households that are copied whole block, honest releases of people in households do not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from households import SCHEMA, as_microdata, copy_households, draw_households, hold_out
from prepared_workspaces import run_recipe

from sfumato.engine.data.schema import Role
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.answer import answer_for_run, answer_from_examination
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Examination, Finding, examine_release
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.store import runs
from sfumato.workspace.store.runs import count_records_and_units, find_run
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
Examine = Callable[..., tuple[int, Examination]]
DRAWN = SCHEMA.non_identifiers


@pytest.fixture
def examine(workspace: Workspace) -> Examine:
    """What the gate says of a table that another tool made of the data, the numbers of its households left or not."""

    def find(
        data: pd.DataFrame,
        controls: pd.DataFrame,
        released: pd.DataFrame,
        *,
        numbered: bool = True,
        role: str = "unit",
        kept: Collection[str] = (),
    ) -> tuple[int, Examination]:
        variables = {}
        for one in SCHEMA:
            declared = {"kind": str(one.kind), "role": str(one.role)}
            if one.level and role == "unit":
                declared["level"] = one.level
            variables[one.name] = declared if one.role is not Role.UNIT else {**declared, "role": role}
        recipe = Recipe.from_table(
            {
                "variables": variables,
                "data": {"holdout": "held_out"},
                "release": {
                    "released": [name for name in DRAWN if name not in kept],
                    "order": "original" if kept else "shuffled",
                },
                "measure": [{"method": "utility.propensity", "permutations": 2}],
            }
        )
        members, others = (as_microdata(one, recipe.schema) for one in (data, controls))
        made = as_microdata(released, recipe.schema)
        if not numbered:
            made = replace(made, frame=made.frame.assign(household=np.nan))
        made = replace(made, origin="synthetic", linked=recipe.linked)
        files = [(SourceFile("made.csv", b"made"), made)]
        run = run_recipe(
            workspace, recipe, members.with_controls(others), "people.csv", b"people", external_datasets=files
        )
        return run, examine_release(workspace, plan_release(workspace, run), Policy())

    return find


def draw_case(seed: int, copied: float, households: int = 1200) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return data, hold-out and an honest release of fresh households, a share of which is copied from the data."""
    rng = np.random.default_rng(seed)
    data, controls = hold_out(draw_households(rng, households), rng)
    return data, controls, copy_households(draw_households(rng, households // 2), data, copied, rng)


def membership(examination: Examination) -> Finding:
    """Return the finding on membership."""
    return next(one for one in examination.findings if one.check == "membership_evidence")


def test_copied_households_block_and_are_counted_as_households(examine: Examine, workspace: Workspace) -> None:
    data, controls, released = draw_case(1, 0.1)
    run, found = examine(data, controls, released)
    finding = membership(found)
    assert finding.status == "block"
    # 60 households are copied; an honest release has some of so many by chance too
    copied = set(data.index[data["household"].isin(copied_households(data, released))])
    assert len(set(finding.records) & copied) > 0.9 * len(copied)
    units = data["household"].iloc[list(finding.records)].nunique()
    assert finding.value == units
    assert finding.compared_value is not None
    assert finding.people == math.ceil(finding.compared_value), "whom chance brings about are not counted"
    assert re.search(rf"\b{units} \([\d.]+ %\) of 600 households of the data", finding.message)
    assert "of 600 such hold-out households" in finding.message
    assert finding.unit == "households beyond what hold-out records show"
    answer = answer_for_run(workspace, run)
    assert answer is not None
    assert finding.headline in answer.found
    assert answer.sentence.startswith(f"About {finding.people} of 600 households (")
    assert finding.how == answer.how
    assert finding.how.startswith(f"Who knows their {DRAWN[0]}"), "the columns that are compared are named"
    assert f"; all 600 have {len(data):,} records)" in answer.sentence


def copied_households(data: pd.DataFrame, released: pd.DataFrame) -> list[int]:
    """Return the households of the data that the release has with all values of their people in their order."""
    sides = []
    for frame in (data, released):
        rows = frame[list(DRAWN)].astype(str).agg("|".join, axis=1)
        sides.append(rows.groupby(frame["household"]).agg("#".join))
    return sides[0].index[sides[0].isin(set(sides[1]))].tolist()


@pytest.mark.parametrize("order", [["person", "wave"], ["wave", "person"]])
def test_waves_in_turn_show_who_is_the_same_person(workspace: Workspace, order: list[str]) -> None:
    """Row i of each wave is person i: sixteen patterns of four waves, whatever the table is sorted by."""
    rng = np.random.default_rng(11)
    frame = pd.DataFrame({"person": np.repeat(np.arange(120), 4) * 7, "wave": np.tile(np.arange(4), 120)})
    frame = frame.assign(ill=rng.integers(0, 2, 480), income=rng.integers(0, 900, 480)).sort_values(order)
    kinds = {"person": "count", "wave": "count", "ill": "count", "income": "count"}
    roles = {"person": "unit", "income": "sensitive"}
    recipe = Recipe.from_table(
        {
            "variables": {name: {"kind": kind, "role": roles.get(name, "other")} for name, kind in kinds.items()},
            "release": {"m": 1, "seed": 1, "order": "original"},
            "synthesis": [{"target": "income", "method": "cart", "predictors": []}],
        }
    )
    run = run_recipe(workspace, recipe, as_microdata(frame.reset_index(drop=True), recipe.schema))
    found = examine_release(workspace, plan_release(workspace, run), Policy()).findings
    kept = next(one for one in found if one.check == "kept_keys")
    patterns = frame.sort_values(["person", "wave"]).groupby("person")["ill"].agg(tuple)
    assert kept.people == int((patterns.map(patterns.value_counts()) < 11).sum())
    assert kept.status == "block"


@pytest.mark.parametrize("is_in_turn", [True, False])
def test_waves_that_some_people_miss_show_who_is_the_same_person(workspace: Workspace, is_in_turn: bool) -> None:
    """A fifth misses each wave; in any order of the records nothing shows whose they are, and records are judged."""
    rng = np.random.default_rng(13)
    frame = pd.DataFrame({"person": np.tile(np.arange(120) * 7, 4), "wave": np.repeat(np.arange(4), 120)})
    frame = frame.assign(ill=rng.integers(0, 2, 480), income=rng.integers(0, 900, 480))[rng.random(480) >= 0.2]
    frame = (frame if is_in_turn else frame.sample(frac=1, random_state=1)).reset_index(drop=True)
    roles = {"person": "unit", "income": "sensitive"}
    recipe = Recipe.from_table(
        {
            "variables": {name: {"kind": "count", "role": roles.get(name, "other")} for name in frame},
            "release": {"m": 1, "seed": 1, "order": "original"},
            "synthesis": [{"target": "income", "method": "cart", "predictors": []}],
        }
    )
    run = run_recipe(workspace, recipe, as_microdata(frame, recipe.schema))
    found = examine_release(workspace, plan_release(workspace, run), Policy()).findings
    kept = next(one for one in found if one.check == "kept_keys")
    assert kept.status == ("block" if is_in_turn else "pass")


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_an_honest_release_of_households_passes(examine: Examine, seed: int) -> None:
    """The negative control."""
    found = examine(*draw_case(seed, 0.0))[1]
    assert membership(found).status == "pass"
    assert not {one.check for one in found.blocking_findings} & {"membership_evidence", "equal_records"}


def test_neither_the_order_of_records_nor_the_numbers_of_households_matter(examine: Examine) -> None:
    data, controls, released = draw_case(5, 0.02, households=600)
    before = membership(examine(data, controls, released)[1])
    rng = np.random.default_rng(6)
    numbers = dict(enumerate(rng.permutation(10_000)[:600].tolist()))
    shuffled = [
        frame.assign(household=frame["household"].map(numbers)).sample(frac=1, random_state=k).reset_index(drop=True)
        for k, frame in enumerate((data, controls))
    ]
    after = membership(examine(*shuffled, released)[1])
    assert (before.status, before.message, before.value) == (after.status, after.message, after.value)


def test_a_table_with_a_record_a_unit_is_examined_as_without_units(examine: Examine) -> None:
    rng = np.random.default_rng(7)
    frame = draw_households(rng, 1200).drop_duplicates("household")
    data, controls = hold_out(frame, rng)
    released = pd.concat([data.iloc[:30], draw_households(rng, 600).drop_duplicates("household").iloc[30:]])
    found = [examine(data, controls, released, role=role)[1] for role in ("unit", "identifier")]
    assert membership(found[0]).status == "block"
    assert membership(found[0]) == membership(found[1])
    assert found[0].units is None


def test_kept_columns_of_a_household_are_judged_together_where_its_rows_stand_together(examine: Examine) -> None:
    """Nobody is alone by region, relation and sex, and most large households are."""
    data, controls, _ = draw_case(8, 0.0, households=600)
    kept = ("region", "relation", "sex")
    released = data.assign(income=np.random.default_rng(9).permutation(data["income"].to_numpy()))
    found = {one.check: one for one in examine(data, controls, released, kept=kept)[1].findings}["kept_keys"]
    # by loops: households by what their people are, rows by what they are
    rows = data[list(kept)].astype(str).agg("|".join, axis=1)
    composition = rows.groupby(data["household"]).agg(lambda some: "#".join(sorted(some)))
    shared = composition.map(composition.value_counts())
    # rows of one household hide nobody from each other
    households = rows.map(data["household"].groupby(rows).nunique())
    fewest = np.minimum(data["household"].map(shared), households).to_numpy()
    assert found.records == tuple(np.flatnonzero(fewest < 11)[: len(found.records)].tolist())
    assert found.value == pytest.approx(np.mean(fewest < 11))
    assert found.people == data["household"][fewest < 11].nunique()
    assert "rows of one unit are seen to belong together" in found.message
    # One person who stands apart hides no other household.
    someone = int(np.flatnonzero(data["household"].duplicated(keep=False))[0])
    apart = np.append(np.delete(np.arange(len(data)), someone), someone)
    moved = [frame.iloc[apart].reset_index(drop=True) for frame in (data, released)]
    seen = {one.check: one for one in examine(moved[0], controls, moved[1], kept=kept)[1].findings}["kept_keys"]
    assert seen.value == pytest.approx(found.value)
    # The control: in random order it is not seen who lives together.
    order = np.random.default_rng(10).permutation(len(data))
    mixed = [frame.iloc[order].reset_index(drop=True) for frame in (data, released)]
    alone = {one.check: one for one in examine(mixed[0], controls, mixed[1], kept=kept)[1].findings}["kept_keys"]
    assert alone.value == pytest.approx(np.mean(households < 11))
    assert alone.value < found.value


def test_an_answer_names_units_where_the_examination_comes_from_another_process() -> None:
    """The number of the units has then lost what it counts."""
    recipe = Recipe.from_table({"variables": {"home": {"kind": "count", "role": "unit"}, "age": {"kind": "count"}}})
    plain = Examination(1, "", (), units=7)
    found = answer_from_examination(plain, recipe, Policy(), 20)
    assert (found.records, found.records.noun) == (7, recipe.schema.unit_noun)


def test_without_the_table_of_the_people_nothing_may_leave_and_records_are_still_counted(
    examine: Examine, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, controls, released = draw_case(1, 0.0, 200)
    number, _ = examine(data, controls, released)
    run = find_run(workspace, number)
    counted = count_records_and_units(workspace, run)
    assert (int(counted), counted.units) == (len(data), data["household"].nunique())
    for table in workspace.directory.rglob("*.parquet"):
        table.unlink()
    # Another process, since this one remembers how many units the table had.
    monkeypatch.setattr(runs, "_unit_numbers", {})
    assert count_records_and_units(workspace, run) == len(data)
    assert count_records_and_units(workspace, run).units is None
    answer = answer_for_run(workspace, number)
    assert answer is not None
    assert answer.may_leave == "no"
