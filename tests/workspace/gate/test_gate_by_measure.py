"""Every measure of risk at the gate, alone: by which checks a copy of the data is found, and that none blocks fresh people or mixed columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.engine.methods.registry import registry
from sfumato.workspace import library
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.gate.people_checks import PEOPLE_CHECKS
from sfumato.workspace.gate.run_checks import RUN_CHECKS
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
VARIABLES = variables_of(
    "region: categorical quasi_identifier",
    "sex: binary quasi_identifier",
    "age: count quasi_identifier",
    "days: count sensitive",
    "income: continuous sensitive",
    "illness: binary sensitive",
)
KNOWN = ["region", "sex", "age"]
BINS = {"income": "5 equal count", "days": "5 equal count"}
MEASURES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "risk.anonymity": ({}, {}),
    "risk.attribute": ({"known": KNOWN, "sensitive": ["illness", "days"]}, {"worst_records": "warn"}),
    "risk.attribute_inference": ({"radius": {"income": "5%"}}, {"inference_excess": "block"}),
    "risk.correct_attribution": ({"bins": BINS}, {"worst_records": "warn", "inference_excess": "warn"}),
    "risk.exact_copies": ({}, {}),
    "risk.identification": (
        {"known": KNOWN, "synthesised": ["days"], "radius": {"days": 2}}, {"worst_records": "block"}
    ),
    "risk.inference_attack": ({"known": KNOWN, "sensitive": "illness"}, {"worst_records": "warn"}),
    "risk.linkability": ({}, {"linkability_excess": "block"}),
    "risk.membership_inference": ({}, {"membership_excess": "block"}),
    "risk.population_uniqueness": ({"fraction": 0.98}, {"worst_records": "block", "singling_out_excess": "warn"}),
    "risk.record_linkage": ({"radius": {"income": "5%"}}, {"worst_records": "block", "linkability_excess": "block"}),
    "risk.singling_out": ({}, {"singling_out_excess": "block"}),
    "risk.special_uniques": ({}, {"worst_records": "block"}),
    "risk.uniqueness": ({}, {"singling_out_excess": "warn", "linkability_excess": "warn"}),
}  # fmt: skip
"""Settings of each measure, and what the gate's checks find by it of a copy."""
OF_MODELS = {"risk.record_audit", "risk.bayesian_posterior"}
"""They ask the models of a run, and have none of files: ``test_beliefs`` and ``test_question_checks`` have their cases."""
LOOKED_AT = tuple(
    check
    for check in (*PEOPLE_CHECKS, *RUN_CHECKS)
    if check.key in ("worst_records", "risk_above_confidential") or check.key.endswith("_excess")
)
Release = Callable[[pd.DataFrame, int], pd.DataFrame]
Look = Callable[..., dict[str, tuple[str, str]]]


def people(seed: int, n: int = 600) -> pd.DataFrame:
    """Others of one population; mostly alone in region, sex and age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    return pd.DataFrame(
        {
            "region": rng.choice(list("abcdef"), n),
            "sex": np.where(rng.random(n) < 0.5, "m", "f"),
            "age": age,
            "days": np.where(rng.random(n) < 0.1, 0, rng.lognormal(2.5, 0.8, n).astype(int)),
            "income": np.round(np.exp(rng.normal(7 + age / 100, 0.5, n)), 2),
            "illness": np.where(rng.random(n) < 0.1 + age / 200, "yes", "no"),
        }
    )


def copied(data: pd.DataFrame, number: int) -> pd.DataFrame:
    return data


def fresh(data: pd.DataFrame, number: int) -> pd.DataFrame:
    return people(1000 + number, len(data))


def mixed(data: pd.DataFrame, number: int) -> pd.DataFrame:
    """Columns of fresh people, each in an order of its own: those of the data themselves would show each value that only one person has."""
    rng = np.random.default_rng(2000 + number)
    return fresh(data, number).apply(lambda column: rng.permutation(column.to_numpy()))


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Status and words of the checks that look at measures, by key, of two files that were released of people, with a hold-out."""
    monkeypatch.setattr("sfumato.workspace.gate.gate.CHECKS", LOOKED_AT)

    def outcomes_by_check(release: Release, seed: int, *measures: str) -> dict[str, tuple[str, str]]:
        data, others = people(seed), people(seed + 1, 150)
        original = pd.concat([data.assign(held="no"), others.assign(held="yes")], ignore_index=True)
        files = [release(data, 2 * seed + number) for number in (0, 1)]
        table = {
            "variables": VARIABLES, "data": {"holdout": "held"}, "release": {"m": 2, "seed": 1, "released": [*VARIABLES]},
            "measure": [{"method": key, **MEASURES[key][0]} for key in measures],
        }  # fmt: skip
        number = library.score(original, files, table, tmp_path / str(seed))
        with Workspace.open(tmp_path / str(seed), read_only=True) as workspace:
            findings = examine_release(workspace, plan_release(workspace, number), Policy()).findings
        return {one.check: (one.status, one.message) for one in findings}

    return outcomes_by_check


def test_every_measure_of_risk_has_a_case_and_every_question_is_blocked_by_one() -> None:
    assert set(MEASURES) | OF_MODELS == {key for key in registry() if key.startswith("risk.")}
    blocked = {check for _, found in MEASURES.values() for check, status in found.items() if status == "block"}
    assert blocked == {check.key for check in LOOKED_AT} - {"risk_above_confidential"}


@pytest.mark.parametrize("key", MEASURES)
def test_a_copy_is_found_by_every_measure_that_a_check_looks_at(look: Look, key: str) -> None:
    found = look(copied, 10, key)
    seen = {check: status for check, (status, _) in found.items() if status in ("warn", "block")}
    assert seen == MEASURES[key][1], found


@pytest.mark.parametrize("release", [fresh, mixed])
@pytest.mark.parametrize("seed", [20, pytest.param(30, marks=pytest.mark.study)])
def test_fresh_people_and_mixed_columns_are_blocked_by_none(look: Look, release: Release, seed: int) -> None:
    found = look(release, seed, *MEASURES)
    assert {check: said for check, (status, said) in found.items() if status == "block"} == {}
