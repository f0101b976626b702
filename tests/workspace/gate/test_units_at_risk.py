"""The gate's ``worst_records`` by unit: a household that is found by all its people counts where each alone has doubles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from households import SCHEMA, as_microdata, draw_households
from prepared_workspaces import run_recipe

from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.checks import ExaminedRelease
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.gate.people_checks import _units_alone_text
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
Judge = Callable[[pd.DataFrame, Sequence[pd.DataFrame]], Finding]
DRAWN = ["income", "education"]


@pytest.fixture
def judge(workspace: Workspace) -> Judge:
    """What the gate says of the record or household most at risk, if DRAWN are replaced in these datasets."""

    def find(own: pd.DataFrame, datasets: Sequence[pd.DataFrame]) -> Finding:
        recipe = Recipe.from_table(
            {
                "variables": {one.name: {"kind": str(one.kind), "role": str(one.role)} for one in SCHEMA},
                "release": {"released": DRAWN, "order": "original", "m": len(datasets)},
                "measure": [{"method": "risk.identification", "known": ["sex", "relation"], "synthesised": DRAWN}],
            }
        )
        made = [replace(as_microdata(one, recipe.schema), origin="synthetic", linked=True) for one in datasets]
        files = [(SourceFile(f"{place}.csv", b"%d" % place), one) for place, one in enumerate(made)]
        run = run_recipe(
            workspace, recipe, as_microdata(own, recipe.schema), "own.csv", b"own", external_datasets=files
        )
        findings = examine_release(workspace, plan_release(workspace, run), Policy()).findings
        return next(one for one in findings if one.check == "worst_records")

    return find


@pytest.fixture
def own() -> pd.DataFrame:
    """People of few values, so that each has doubles and many a household has none."""
    found = draw_households(np.random.default_rng(1), 300)
    richer = np.where(found["income"] > found["income"].median(), 1, 0)
    return found.assign(region="a", tenure="owned", age=30, income=richer, education="low")


@pytest.mark.parametrize(("is_by_unit", "judged"), [(True, "judges"), (False, "counts single person-years")])
def test_who_is_alone_only_with_all_records_is_not_said_to_be_counted_record_by_record(
    monkeypatch: pytest.MonkeyPatch, *, is_by_unit: bool, judged: str
) -> None:
    monkeypatch.setattr(
        "sfumato.workspace.gate.people_checks.kept_columns_of_release", lambda _: SimpleNamespace(is_by_unit=is_by_unit)
    )
    case = SimpleNamespace(record_noun="person-years", unit_noun="people")
    said = _units_alone_text(cast("ExaminedRelease", case), 20)
    assert "20 of them are alone in the columns that are released unchanged" in said
    assert "all their person-years together" in said
    assert judged in said
    assert ("which the check of these columns judges" in said) is is_by_unit


def test_released_as_they_are_households_block_that_hide_behind_their_people(judge: Judge, own: pd.DataFrame) -> None:
    finding = judge(own, [own, own])
    assert finding.status == "block"
    assert re.search(r"most surely household \d+ \(record \d+\)", finding.message), "as the list of people numbers it"
    assert "among households that have all that is kept in common" in finding.message
    homes = own["household"].to_numpy()
    found = set(homes[list(finding.records)])
    # a household is found if no other has the same people, in any order
    members = own[["sex", "relation", "income", "education"]].astype(str).agg("|".join, axis=1)
    people = members.groupby(own["household"]).agg(lambda some: "#".join(sorted(some)))
    assert found == set(people.index[~people.duplicated(keep=False)])
    assert set(np.flatnonzero(np.isin(homes, list(found)))) == set(finding.records)


def test_drawn_anew_for_all_people_they_do_not_block(judge: Judge, own: pd.DataFrame) -> None:
    rng = np.random.default_rng(2)
    fresh = [own.assign(income=rng.permutation(own["income"].to_numpy())) for _ in range(2)]
    assert judge(own, fresh).status == "warn"


def test_one_person_a_household_is_judged_as_records_are(judge: Judge, own: pd.DataFrame) -> None:
    alone = own.drop_duplicates("household").reset_index(drop=True)
    assert "household" not in judge(alone, [alone, alone]).message
