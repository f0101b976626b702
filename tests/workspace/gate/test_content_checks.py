"""The gate judges what a release shows of people: leaks block with a sentence about people, honest releases do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
MEMBERS, CONTROLS = 500, 150
KINDS = {
    "region": "categorical",
    "job": "categorical",
    "visits": "count",
    "income": "continuous",
    "illness": "categorical",
}
ROLES = {"region": "quasi_identifier", "job": "quasi_identifier", "visits": "quasi_identifier", "income": "sensitive", "illness": "sensitive"}  # fmt: skip
CONTENT = {
    "membership_evidence",
    "disguised_columns",
    "own_values",
    "unanimous_classes",
    "roles_elsewhere",
    "extremes",
    "equal_records",
    "identifying_columns",
}
Judge = Callable[..., dict[str, Finding]]


def people(seed: int, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    region = rng.geometric(0.3, n) % 9
    return pd.DataFrame(
        {
            "region": [f"r{i}" for i in region],
            "job": [f"j{i}" for i in (region + rng.geometric(0.3, n)) % 12],
            "visits": rng.poisson(2 + region),
            "income": np.round(np.exp(rng.normal(7 + 0.1 * region, 0.5, n)), -1),
            "illness": [f"i{i}" for i in (region + rng.geometric(0.2, n)) % 20],
        }
    )


MINE = people(1, MEMBERS + CONTROLS)
FRESH = people(2, MEMBERS)


@pytest.fixture
def judge(workspace: Workspace) -> Judge:
    """The findings on a table that another tool made of the members; columns that are ``kept`` are in their order."""

    def find(
        released: pd.DataFrame, kept: tuple[str, ...] = (), mine: pd.DataFrame = MINE, roles: Mapping[str, str] = ROLES,
        kinds: Mapping[str, str] = KINDS, held_out: bool = True, form: Mapping[str, Any] | None = None, datasets: int = 1,
    ) -> dict[str, Finding]:  # fmt: skip
        names = list(kinds)
        table = {
            "variables": {n: {"kind": kinds[n], **({"role": roles[n]} if roles.get(n) else {})} for n in names},
            "data": {"holdout": "held_out"} if held_out else {},
            "release": {
                "released": [n for n in names if n not in kept], "order": "original" if kept else "shuffled", "m": datasets,
                **(form or {}),
            },
            "measure": [{"method": "quality.non_suppressed"} if form else {"method": "utility.propensity", "permutations": 2}],
        }  # fmt: skip
        recipe = Recipe.from_table(table)
        data = conform_to_schema(mine[names][:MEMBERS], recipe.schema)
        if held_out:
            data = data.with_controls(conform_to_schema(mine[names][MEMBERS:].reset_index(drop=True), recipe.schema))
        order = slice(None) if kept else np.random.default_rng(9).permutation(len(released))
        frame = released[names].iloc[order].reset_index(drop=True)
        made = conform_to_schema(frame, recipe.released_schema, origin=recipe.origin)
        made = replace(made, linked=recipe.linked, generalised=recipe.generalised)
        files = [(SourceFile(f"made{k}.csv", b"made%d" % k), made) for k in range(datasets)]
        run = run_recipe(workspace, recipe, data, "people.csv", b"people", external_datasets=files)
        return {one.check: one for one in examine_release(workspace, plan_release(workspace, run), Policy()).findings}

    return find


def blocking(findings: Mapping[str, Finding]) -> set[str]:
    return {key for key, one in findings.items() if one.status == "block"} & CONTENT


def test_fresh_people_pass_and_forty_copied_ones_block_with_their_number(judge: Judge) -> None:
    assert blocking(judge(FRESH)) == set()
    findings = judge(pd.concat([MINE[:40], FRESH[40:]]))
    found = findings["membership_evidence"]
    assert found.status == "block"
    assert "; of 150 such hold-out people none" in found.message
    assert "a release that copies no person shows as much in 0." in found.message
    assert "would be noticed in four of five releases" in found.message
    assert "whoever made the files" in found.advice
    assert len(set(found.records) & set(range(40))) >= 30


def test_copies_in_another_spelling_block_whatever_their_kinds(judge: Judge) -> None:
    members = MINE[:MEMBERS]
    recoded = members.assign(income=np.sqrt(members["income"]), visits=members["visits"] * 3 + 1)
    found = judge(recoded)["membership_evidence"]
    assert found.status == "block"
    texts = [
        one.assign(visits=one["visits"].map("{}x".format), income=one["income"].map("{}x".format))
        for one in (MINE, members)
    ]
    kinds = dict.fromkeys(KINDS, "categorical")
    assert "membership_evidence" in blocking(judge(texts[1], mine=texts[0], kinds=kinds))


def test_forty_people_among_others_block_under_other_names_of_levels_and_forty_others_do_not(judge: Judge) -> None:
    def renamed(one: pd.DataFrame) -> pd.DataFrame:
        return one.assign(
            **{name: "level " + one[name].str[1:].map("{0}{0}".format) for name in ("region", "job", "illness")}
        )

    found = judge(renamed(pd.concat([MINE[:40], FRESH[40:]])))
    assert blocking(found) == {"membership_evidence"}
    records = set(found["membership_evidence"].records)
    assert len(records & set(range(40))) >= 0.8 * len(records) >= 15
    assert blocking(judge(renamed(FRESH))) == set()
    assert blocking(judge(renamed(pd.concat([MINE[MEMBERS:], FRESH[CONTROLS:]])))) == set()


def test_copies_whose_numbers_are_all_multiplied_block_and_other_people_do_not(judge: Judge) -> None:
    rng = np.random.default_rng(5)
    kinds = {**KINDS, "spending": "continuous"}
    mine, fresh = (one.assign(spending=np.round(rng.lognormal(6, 0.7, len(one)), 1)) for one in (MINE, FRESH))
    copies = mine[:40].assign(income=mine["income"] * 1.02, spending=mine["spending"] * 1.02)
    found = judge(pd.concat([copies, fresh[40:]]), mine=mine, kinds=kinds)["membership_evidence"]
    assert found.status == "block"
    assert "stand in the release once income and spending are divided by 1.02" in found.message
    assert judge(fresh, mine=mine, kinds=kinds)["membership_evidence"].status == "pass"


def test_without_a_hold_out_a_copy_blocks_and_fresh_people_do_not(judge: Judge) -> None:
    honest = judge(FRESH, held_out=False)
    assert blocking(honest) == set()
    assert honest["membership_evidence"].status == "not checked"
    assert "no record was held out" in honest["membership_evidence"].message
    assert {"membership_evidence", "equal_records"} <= blocking(judge(MINE[:MEMBERS], held_out=False))


def test_beside_kept_columns_only_what_is_remembered_blocks(judge: Judge) -> None:
    kept = ("region", "job", "visits")
    drawn = FRESH.sample(MEMBERS, random_state=1)[["income", "illness"]].reset_index(drop=True)
    honest = MINE[:MEMBERS].assign(**drawn)
    assert blocking(judge(honest, kept)) == set()
    told = honest.assign(illness=np.where(np.arange(MEMBERS) < 150, MINE["illness"][:MEMBERS], honest["illness"]))
    assert "own_values" in blocking(judge(told, kept))


def test_datasets_for_which_there_is_no_room_are_named_and_those_looked_at_still_block(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.workspace.gate.joint.MOST_CELLS", 5 * (len(MINE) + 2 * MEMBERS))
    found = judge(pd.concat([MINE[:40], FRESH[40:]]), datasets=3)["membership_evidence"]
    assert (found.status, found.message.count("2 of 3 datasets were looked at")) == ("block", 1)
    assert "2 of 3 datasets were looked at" in judge(FRESH, datasets=3)["membership_evidence"].message
    kept = ("region", "job", "visits")
    monkeypatch.setattr("sfumato.workspace.gate.joint.MOST_CELLS", 2 * (len(MINE) + 2 * MEMBERS))
    told = MINE[:MEMBERS].assign(income=FRESH["income"])
    found = judge(told, kept, datasets=3)["own_values"]
    assert (found.status, found.message.count("2 of 3 datasets were looked at")) == ("block", 1)


HONEST = ("margins", "noise of rare levels", "five times as many rows", "fewer digits", "another joint distribution")


@pytest.mark.parametrize("kind", HONEST)
def test_honest_releases_of_whatever_joint_distribution_size_and_digits_do_not_block(judge: Judge, kind: str) -> None:
    """At 1697ce64 margins and fewer digits block: their null was the data's own distribution, or members' values alone (REVIEW A11)."""
    rng = np.random.default_rng(13)
    n, kinds, roles = len(MINE), dict(KINDS), dict(ROLES)
    mine, made = MINE, FRESH
    if kind == "margins":  # cases/j1: two columns that are equal in all people but one
        first = rng.choice(["x", "y"], n)
        second = first.copy()
        second[0] = "y" if first[0] == "x" else "x"
        mine = MINE.assign(a=first, b=second)
        kinds = {"a": "binary", "b": "binary", "visits": KINDS["visits"], "income": KINDS["income"]}
        roles = {"a": "quasi_identifier", "b": "quasi_identifier", "visits": "quasi_identifier", "income": "sensitive"}
        made = FRESH.assign(a=rng.choice(["x", "y"], MEMBERS), b=rng.choice(["x", "y"], MEMBERS))
    elif kind == "noise of rare levels":  # each column of the members in an order of its own
        town = np.where(rng.random(n) < 0.1, 1000 + np.arange(n), rng.integers(0, 30, n))
        mine, kinds = MINE.assign(town=[f"t{code}" for code in town]), {**KINDS, "town": "categorical"}
        made = mine[:MEMBERS].apply(lambda column: rng.permutation(column.to_numpy()))
        made = made.assign(income=FRESH["income"], visits=FRESH["visits"])
    elif kind == "five times as many rows":
        made = people(3, 5 * MEMBERS)
    elif kind == "fewer digits":  # each is nearest to somebody's value; to members' alone it is a member's
        exact = 1e6 + 1000 * rng.random(n)
        mine, made = MINE.assign(income=exact), FRESH.assign(income=np.round(1e6 + 1000 * rng.random(MEMBERS)))
    else:
        made = FRESH.apply(lambda column: rng.permutation(column.to_numpy()))
    findings = judge(made, mine=mine, kinds=kinds, roles=roles)
    assert blocking(findings) == set()
    assert findings["membership_evidence"].status == "pass"


def test_copies_written_with_fewer_digits_block(judge: Judge) -> None:
    """The negative control of the last one."""
    rng = np.random.default_rng(14)
    mine = MINE.assign(income=1e6 + 1000 * rng.random(len(MINE)))
    made = pd.concat([mine[:40], FRESH[40:].assign(income=1e6 + 1000 * rng.random(MEMBERS - 40))])
    made = made.assign(income=np.round(made["income"]))
    assert "membership_evidence" in blocking(judge(made, mine=mine))


def test_columns_that_say_a_hidden_one_and_identifiers_block_whatever_their_role(judge: Judge) -> None:
    code = MINE["illness"].map({name: i for i, name in enumerate(sorted(MINE["illness"].unique()))})
    mine = MINE.assign(code=(code * 7) % 23, number=np.random.default_rng(3).permutation(len(MINE)))
    kinds, kept = {**KINDS, "code": "count", "number": "count"}, ("region", "job", "visits", "code", "number")
    roles = {**ROLES, "number": "quasi_identifier"}
    made = mine[:MEMBERS].assign(income=FRESH["income"], illness=FRESH["illness"])
    findings = judge(made, kept, mine, roles, kinds)
    assert {"disguised_columns", "identifying_columns"} <= blocking(findings)
    assert "code stays" in findings["disguised_columns"].message
    assert "number is released unchanged" in findings["identifying_columns"].message


def test_a_column_that_another_run_calls_sensitive_is_not_kept_under_another_role(judge: Judge) -> None:
    judge(FRESH)
    kept = ("region", "job", "visits", "illness")
    made = MINE[:MEMBERS].assign(income=FRESH["income"])
    findings = judge(made, kept, roles={**ROLES, "illness": "quasi_identifier"})
    assert findings["roles_elsewhere"].status == "block"
    assert "illness (sensitive in run 1)" in findings["roles_elsewhere"].message


def test_classes_of_one_illness_block_and_mixed_ones_do_not(judge: Judge) -> None:
    kinds = {name: KINDS[name] for name in ("region", "visits", "illness")}
    form = {"generalised": ["visits"]}
    low = MINE["visits"] // 5 * 5
    shown = MINE.assign(visits=[f"[{a}, {a + 5})" for a in low])
    first = MINE[:MEMBERS].groupby([MINE["region"], low])["illness"].transform("first")
    same = MINE.assign(illness=first.reindex(MINE.index).fillna(MINE["illness"]))
    made = shown.assign(illness=same["illness"])[:MEMBERS]
    findings = judge(made, ("region", "illness"), same, ROLES, kinds, form=form)
    assert findings["unanimous_classes"].status == "block"
    assert "hold-out people like them" in findings["unanimous_classes"].message
    findings = judge(shown[:MEMBERS], ("region", "illness"), MINE, ROLES, kinds, form=form)
    assert findings["unanimous_classes"].status != "block"


def test_a_propensity_score_far_below_that_of_a_model_warns(judge: Judge) -> None:
    assert judge(MINE[:MEMBERS])["memorised"].status == "warn"
    assert judge(FRESH)["memorised"].status == "pass"
