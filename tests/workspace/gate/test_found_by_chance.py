"""The record most at risk, where people share all kept values: it warns where wrong rows match as often, and blocks where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace import library
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.policy.policy import Policy, own_policy_file, read_policy_of_workspace
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
VARIABLES = variables_of(
    "place: categorical quasi_identifier", "gain: categorical other", "rich: binary sensitive", "days: count sensitive"
)
BY_CHANCE = {"target": "rich", "method": "cart", "minbucket": 20}
OF_EACH_PERSON = {
    "target": "days", "method": "zero_inflated_truncated_poisson", "predictors": ["gain"], "random_effect": "record",
}  # fmt: skip


def people(seed: int, n: int) -> pd.DataFrame:
    """Mostly two of a place; whoever has a gain is rich, and of the others one in two is. Days are their own."""
    rng = np.random.default_rng(seed)
    gain = rng.random(n) < 0.1
    return pd.DataFrame(
        {
            "place": [f"p{i}" for i in rng.integers(0, n // 2, n)],
            "gain": np.where(gain, "yes", "no"),
            "rich": np.where(gain | (rng.random(n) < 0.5), "yes", "no"),
            "days": np.where(rng.random(n) < 0.1, 0, rng.lognormal(3.5, 1.2, n).astype(int)),
        }
    )


def worst(
    where: Path, seed: int, step: dict[str, Any], n: int = 1200, policy: str = "", m: int = 2, releases: int = 1, deleted: bool = False,
    measure: Mapping[str, Any] | None = None,
) -> Finding:  # fmt: skip
    """What is found of the last of so many releases of ``m`` datasets, all of the same people; those before may be ``deleted``."""
    other, near = ("rich", {"radius": {"days": 10}}) if step["target"] == "days" else ("days", {})
    table: dict[str, Any] = {
        "variables": {name: given for name, given in VARIABLES.items() if name != other},
        "release": {"m": m, "seed": 1},
        "synthesis": [step],
        "measure": [
            measure or {"method": "risk.identification", "known": ["place"], "synthesised": [step["target"]], **near}
        ],
    }
    frame = people(seed, n).drop(columns=other)
    # what is found depends on the draws, and these on the key
    Workspace.create(where, PUBLIC).close()
    for earlier in range(1, releases):
        number = library.synthesise(frame, {**table, "release": {"m": m, "seed": 100 + earlier}}, where)
        with Workspace.open(where) as workspace:
            write_run_release(workspace, number, where / f"out{earlier}", reason="the test releases it")
            if deleted:
                delete_run(workspace, number)
    number = library.synthesise(frame, table, where)
    if policy:
        file = own_policy_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(policy, "utf-8")
        file.chmod(0o600)
    with Workspace.open(where, read_only=True) as workspace:
        examination = examine_release(
            workspace, plan_release(workspace, number), read_policy_of_workspace(where) if policy else Policy()
        )
    return next(one for one in examination.findings if one.check == "worst_records")


@pytest.mark.parametrize(("seed", "predictors"), [(1, []), (2, []), (3, ["gain"])])
def test_people_found_as_often_as_wrong_ones_are_chance(tmp_path: Path, seed: int, predictors: list[str]) -> None:
    """Of two people of whom all that is kept is alike either is found, whatever the drawn value follows."""
    finding = worst(tmp_path / "w", seed, {**BY_CHANCE, "predictors": predictors})
    assert finding.compared_value == 1
    assert finding.status == "warn", finding.message
    assert "it may be chance" in finding.message


def test_people_whose_own_value_shines_through_are_not(tmp_path: Path) -> None:
    """With an effect of each record the drawn value follows the person's own."""
    finding = worst(tmp_path / "w", 1, OF_EACH_PERSON, n=400)
    assert finding.status == "block", finding.message
    assert "would be if their rows were dealt among them at random" in finding.message
    assert "it may be chance" not in finding.message


@pytest.mark.parametrize("method", ["risk.special_uniques", "risk.record_linkage"])
def test_measures_that_match_by_another_rule_block_without_a_reference(tmp_path: Path, method: str) -> None:
    measure = {"method": method, "keys": ["place", "gain", "days"]}
    assert worst(tmp_path / "w", 1, OF_EACH_PERSON, n=1200, measure=measure).status == "block"


def test_where_no_reference_can_be_computed_it_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotComputable("labels")

    monkeypatch.setattr("sfumato.workspace.gate.record_risks.count_wrong_matches", refuse)
    assert worst(tmp_path / "w", 1, {**BY_CHANCE, "predictors": []}).status == "block"


@pytest.mark.parametrize("deleted", [False, True], ids=["kept", "deleted"])
def test_several_releases_are_held_against_wrong_people_together(tmp_path: Path, deleted: bool) -> None:
    """A run that is deleted leaves what that takes. The control is whose own value shines through."""
    honest = worst(tmp_path / "w", 1, {**BY_CHANCE, "predictors": ["gain"]}, m=1, releases=2, deleted=deleted)
    assert (honest.status, honest.compared_value) == ("warn", 1), honest.message
    shines = worst(tmp_path / "shines", 1, OF_EACH_PERSON, n=400, m=1, releases=2, deleted=deleted)
    assert (shines.status, "2 releases together" in shines.message) == ("block", True), shines.message
    assert "would be if their rows were dealt among them at random" in shines.message


def test_the_limit_of_an_office_holds_whatever_chance_does(tmp_path: Path) -> None:
    policy = '[findings.worst_records]\nblock = 0.95\nsource = "rules, section 4"\n'
    assert worst(tmp_path / "w", 1, {**BY_CHANCE, "predictors": []}, policy=policy).status == "block"
