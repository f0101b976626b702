"""The record of disclosure control follows its schema, whatever was released, and is bound to what leaves."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from sfumato.workspace import documents
from sfumato.workspace.documents.disclosure_control import SCHEMA, SCHEMA_FILE, disclosure_control_record
from sfumato.workspace.documents.written import WrittenFile, json_document
from sfumato.workspace.gate.gate import Approval, Examination, Finding
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import parse_policy
from sfumato.workspace.recipes import shipped_recipes
from sfumato.workspace.release.dossier import ReleaseDossier
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

Read = Callable[..., ReleaseDossier]
MANIFEST = (WrittenFile("public", "manifest.json", 3, "a" * 64),)
pytestmark = pytest.mark.slow
LONG = {"acs", "adult-attacks", "airbnb", "airbnb-cart", "youth-in-custody"}
"""Recipes that take long to release: their records have no part that those of the others lack, and are tried among the studies."""


@pytest.fixture(scope="module")
def validate() -> Callable[[Any], Any]:
    schema = json.loads(files(documents).joinpath(SCHEMA_FILE).read_text("utf-8"))
    assert schema["$id"] == SCHEMA
    check: Callable[[Any], Any] = fastjsonschema.compile(schema)
    return check


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(recipe.name, marks=[pytest.mark.study] if recipe.name in LONG else [])
        for recipe in shipped_recipes()
    ],
)
def test_the_release_of_every_shipped_recipe_follows_the_schema(
    name: str, shipped: Callable[[str], Path], validate: Callable[[Any], Any]
) -> None:
    out = shipped(name)
    found = json.loads((out / "internal/disclosure-control.json").read_text("utf-8"))
    validate(found)
    assert (
        found["bound_to"]["public_manifest_sha256"]
        == hashlib.sha256((out / "public/manifest.json").read_bytes()).hexdigest()
    )
    assert (out / "internal" / SCHEMA_FILE).read_bytes() == files(documents).joinpath(SCHEMA_FILE).read_bytes()
    assert found["perturbation"] or found["suppression"]["anonymisation"] or found["suppression"]["tables"]["printed"]
    assert found["tools"]["sfumato"]


def test_policy_rules_thresholds_findings_and_reason_are_as_they_were(
    workspace: Workspace, enter: Callable[..., int], dossier_for: Read, validate: Callable[[Any], Any]
) -> None:
    run_id = enter(threshold=[{"value": "risk.identification.true_match_rate", "max": 0.0}])
    run_worker(workspace.directory, idle=0)
    policy = parse_policy(
        b'name = "Office"\nsmallest_cell = 7\n[findings.equal_records]\nblock = 0.01\nsource = "rules"'
    )
    found = Finding("equal_records", "block", "equal rows", "3 of 80", 0.0375, None, 0.01, (1, 2), "drop them")
    dossier = replace(
        dossier_for(run_id, "asked for"),
        policy=policy,
        examination=Examination(run_id, policy.sha256, (found,)),
        judgements={"owner": "Maria"},
    )
    made = json.loads(json_document(disclosure_control_record(dossier, MANIFEST)))
    validate(made)
    assert made["risk_appetite"]["smallest_cell"] == 7
    assert made["risk_appetite"]["findings"]["equal_records"]["block"] == 0.01
    assert made["bound_to"]["policy_sha256"] == policy.sha256
    assert [rule["variables"] for rule in made["perturbation"]] == [["visits"], ["income"]]
    assert made["thresholds"] == [{"value": "risk.identification.true_match_rate", "max": 0.0}]
    assert [one["outcome"] for one in made["verdicts"]] == ["not met"]
    assert made["gate"]["status"] == "block"
    assert made["gate"]["findings"][0]["records"] == [1, 2]
    assert (made["reason"], made["judgements"]) == ("asked for", {"owner": "Maria"})
    assert made["questions"] == {
        "singling out": "measured", "linkability": "measured", "inference": "not measured", "membership": "not measured"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("bound_to", "public_manifest_sha256"), None),
        (("bound_to", "tables_sha256"), []),
        (("release", "kind"), "real"),
        (("gate", "status"), "fine"),
        (("risk_appetite", "smallest_cell"), 0),
        (("questions", "membership"), "safe"),
        (("schema",), "urn:sfumato:disclosure-control:2"),
        (("extra",), 1),
        (("thresholds",), [{"value": "x", "max": 1, "min": 0}]),
    ],
)
def test_a_record_that_says_less_or_otherwise_does_not_follow_the_schema(
    done_run: int, dossier_for: Read, validate: Callable[[Any], Any], place: tuple[str, ...], value: Any
) -> None:
    made = json.loads(json_document(disclosure_control_record(dossier_for(done_run), MANIFEST)))
    validate(made)
    wrong = copy.deepcopy(made)
    inside = wrong
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        validate(wrong)


def test_hostile_words_hide_nothing_in_the_record(
    workspace: Workspace, hostile: int, tmp_path: Path, validate: Callable[[Any], Any]
) -> None:
    write_run_release(workspace, hostile, tmp_path / "out", reason="\u202e\x00agreed with the board\u200b")
    text = (tmp_path / "out/internal/disclosure-control.json").read_text("utf-8")
    assert not [char for char in text if char != "\n" and not char.isprintable()]
    validate(json.loads(text))
    assert json.loads(text)["reason"] == "\ufffd\ufffdagreed with the board\ufffd"


def test_a_number_that_json_has_not_is_never_written() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        json_document({"value": float("nan")})


def test_the_approval_of_a_second_person_follows_the_schema(
    done_run: int, dossier_for: Read, validate: Callable[[Any], Any]
) -> None:
    dossier = dossier_for(done_run)
    assert "approval" not in disclosure_control_record(dossier, MANIFEST)
    approval = Approval(
        "jo", "2026-09-21T14:13:20+00:00", "why", "0" * 64, "maria", "2026-09-21T14:14:20+00:00", "looked"
    )
    approved = replace(dossier, examination=replace(dossier.examination, approval=approval))
    found = json.loads(json_document(disclosure_control_record(approved, MANIFEST)))
    validate(found)
    del found["approval"]["approved_at"]
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate(found)
