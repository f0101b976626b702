"""The record most at risk, where what is inferred of it is so of people in general: it warns, and hides nothing that blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.workspace import library
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.policy.policy import Policy, read_policy_of_workspace
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.records import read_record_risks, record_measures

pytestmark = pytest.mark.slow
ATTACK = {"method": "risk.inference_attack", "sensitive": "ill", "known": ["sex", "age"]}
FOUND = {"method": "risk.identification", "known": ["sex", "age", "pay"]}
VARIABLES = variables_of(
    "sex: binary quasi_identifier", "age: count quasi_identifier", "pay: count sensitive", "ill: categorical sensitive"
)


def people(n: int = 300) -> pd.DataFrame:
    """Of whom one in twenty is ill, whatever their sex and age; everybody's pay is their own."""
    rng = np.random.default_rng(8)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(3, 6, n) * 10,
            "pay": np.arange(n) * 10,
            "ill": np.where(rng.random(n) < 0.05, "yes", "no"),
        }
    )


def synthesise_people(place: Path, *measures: dict[str, Any], synthesised: str = "ill") -> int:
    table = {
        "variables": VARIABLES,
        "release": {"m": 3, "seed": 1},
        "synthesis": [{"target": synthesised, "method": "cart"}],
        "measure": list(measures),
    }
    return library.synthesise(people(), table, place)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("inferred") / "workspace"
    assert synthesise_people(where, ATTACK) == 1
    assert synthesise_people(where, ATTACK, FOUND) == 2
    assert synthesise_people(where, FOUND) == 3
    return where


def worst(place: Path, number: int, policy: str = "", check: str = "worst_records") -> Finding:
    if policy:
        (place / "policy.toml").write_text(policy, "utf-8")
    try:
        with Workspace.open(place, read_only=True) as workspace:
            examination = examine_release(
                workspace, plan_release(workspace, number), read_policy_of_workspace(place) if policy else Policy()
            )
    finally:
        (place / "policy.toml").unlink(missing_ok=True)
    return next(one for one in examination.findings if one.check == check)


def test_a_guess_that_is_right_of_most_people_blocks_no_release(place: Path) -> None:
    """Illness was drawn at random: nothing is given away of anybody, and yet it is inferred of most with certainty."""
    with Workspace.open(place, read_only=True) as workspace:
        (measure,) = record_measures(workspace, 1)
        risk = read_record_risks(workspace, measure)
    assert float((risk.probability == 1).mean()) > 0.9
    assert risk.prior is not None
    assert (risk.prior[risk.probability == 1] == 1).all(), "as right without knowing anything of the person"
    finding = worst(place, 1)
    assert finding.status == "pass"
    assert "with probability 0, beyond a guess at everybody" in finding.message


def test_what_is_inferred_beyond_a_guess_warns_and_says_that_it_may_be_general(tmp_path: Path) -> None:
    frame = people().assign(ill=lambda all_: np.where(all_["sex"] == "f", "no", "yes"))
    table = {
        "variables": VARIABLES,
        "release": {"m": 3, "seed": 1},
        "synthesis": [{"target": "ill", "method": "cart", "predictors": ["sex"]}],
        "measure": [ATTACK],
    }
    library.synthesise(frame, table, tmp_path / "w")
    finding = worst(tmp_path / "w", 1)
    assert finding.status == "warn"
    assert "it may be so of people in general" in finding.message
    assert "with probability 1, beyond a guess at everybody" in finding.message


def test_a_record_that_is_found_by_what_stays_warns_whatever_is_inferred_beside(place: Path) -> None:
    """Kept pay alone finds every row, whatever was drawn; it is an identifier, and blocks as one."""
    alone, beside = worst(place, 3), worst(place, 2)
    assert alone.status == beside.status == "warn"
    assert "are alone in the columns that are released unchanged" in alone.message
    assert {worst(place, number, check="identifying_columns").status for number in (2, 3)} == {"block"}
    assert (alone.compared_value, alone.records) == (beside.compared_value, beside.records)


def test_a_stricter_policy_is_held_against_the_record_that_is_found(tmp_path: Path) -> None:
    """Where inference warns and identification alone would block, it does."""
    frame = people().assign(ill=lambda all_: np.where(all_["sex"] == "f", "no", "yes"))
    table = {
        "variables": VARIABLES,
        "release": {"m": 3, "seed": 1},
        "synthesis": [{"target": "ill", "method": "cart", "predictors": ["sex"]}],
        "measure": [ATTACK, {**FOUND, "known": ["sex", "age"]}],
    }
    library.synthesise(frame, table, tmp_path / "w")
    usual = worst(tmp_path / "w", 1)
    assert usual.status == "warn"
    assert "disclosed" in usual.message
    assert "inferred" in usual.message
    strict = '[approval]\nwaivers = ["maria"]\n[findings.worst_records]\nblock = 0.001\nsource = "rules"\n'
    assert worst(tmp_path / "w", 1, strict).status == "block"


def test_runs_of_an_earlier_version_are_not_blocked_for_what_is_generally_so(place: Path, monkeypatch: Any) -> None:
    """They left no guess: the probability stands as it is, and warns."""
    from sfumato.engine.execution import record_risk

    by_part = record_risk.arrays_by_part
    for module in ("sfumato.engine.execution.record_risk", "sfumato.workspace.store.rankings"):
        monkeypatch.setattr(
            f"{module}.arrays_by_part",
            lambda arrays, declared: {
                k: v for k, v in by_part(arrays, declared).items() if k not in ("prior", "guessed")
            },
            raising=False,
        )
    finding = worst(place, 1)
    assert finding.status == "warn"
    assert "beyond a guess" not in finding.message
