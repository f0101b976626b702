"""Epsilon beside evidence: one table of the account, the copies and the attack, which says what is missing."""

from __future__ import annotations

from dataclasses import replace

from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.reporting.evidence import NOT_MEASURED, evidence_lines, evidence_table, methods_by_evidence
from sfumato.workspace.reporting.measured import result_tables
from sfumato.workspace.reporting.release_summary import summary_lines
from sfumato.workspace.reporting.tables import DisplayTable, format_table

RECIPE = Recipe.from_table({"variables": {"job": {"kind": "categorical", "role": "sensitive"}}})
EPSILON = Row("synthesis", "perturbed_gibbs", "epsilon_release", "", "synthetic", None, None, 12.5)
COPIES = Row("risk", "exact_copies", "copies", "", "synthetic", None, None, 0.25, 0.2, 0.3, baseline=0.5)
ATTACK = Row("risk", "inference_attack", "misclassification", "job", "synthetic", None, None, 0.75, baseline=0.5)
OWN = replace(ATTACK, dataset="confidential", value=0.625, baseline=None)
OTHER = Row("risk", "uniqueness", "sample_uniques", "", "synthetic", None, None, 7.0)


def cells(table: DisplayTable | None) -> list[list[str]]:
    assert table is not None
    return [[cell if isinstance(cell, str) else cell.text for cell in row] for row in table.rows]


def test_account_and_evidence_stand_in_one_table() -> None:
    table = evidence_table([EPSILON, COPIES, ATTACK, OWN, OTHER])
    assert cells(table) == [
        ["privacy account", "Privacy loss of the release (epsilon) (Perturbed Gibbs sampler)", "12.5", "", "", "", ""],
        ["exact copies", "Released records equal to a person's", "0.25", "0.2 .. 0.3", "", "0.5", ""],
        ["inference attack", "Wrong inferences from similar records, job", "0.75", "", "0.625", "0.5", ""],
        ["audit by shadow releases", NOT_MEASURED, "", "", "", "", "add [[measure]] risk.record_audit"],
    ]
    assert "12.5" in format_table(table) if table else False
    assert evidence_lines([EPSILON, COPIES, ATTACK, OWN]) == [
        "epsilon: of the release 12.5",
        "exact copies: Released records equal to a person's 0.25 (baseline 0.5)",
        "inference attack: Wrong inferences from similar records 0.75 (baseline 0.5)",
        "audit by shadow releases: NOT MEASURED",
    ]


def test_what_was_not_measured_is_said_and_how_to_measure_it() -> None:
    (_, copies, attack, audit) = cells(evidence_table([EPSILON]))
    assert copies == ["exact copies", NOT_MEASURED, "", "", "", "", "add [[measure]] risk.exact_copies"]
    assert attack == ["inference attack", NOT_MEASURED, "", "", "", "", "add [[measure]] risk.inference_attack"]
    assert audit == ["audit by shadow releases", NOT_MEASURED, "", "", "", "", "add [[measure]] risk.record_audit"]
    not_measured = [
        f"{kind}: NOT MEASURED" for kind in ("exact copies", "inference attack", "audit by shadow releases")
    ]
    assert evidence_lines([EPSILON])[1:] == not_measured


def test_what_could_not_be_computed_is_no_evidence() -> None:
    failed = replace(COPIES, value=None, lower=None, upper=None, baseline=None, status="not computed", reason="why")
    lines = cells(evidence_table([EPSILON, failed]))
    assert ["exact copies", "Released records equal to a person's", "not computed", "", "", "", "why"] in lines
    assert ["exact copies", NOT_MEASURED, "", "", "", "", "what was asked for could not be computed"] in lines


def test_an_account_without_an_epsilon_says_why() -> None:
    why = replace(EPSILON, value=None, status="not computed", reason="bins were learned")
    assert cells(evidence_table([why]))[0] == [
        "privacy account",
        "Privacy loss of the release (epsilon) (Perturbed Gibbs sampler)",
        "not computed",
        "",
        "",
        "",
        "bins were learned",
    ]
    assert evidence_lines([why])[0] == "epsilon: of the release not computed"


def test_two_uses_of_one_measure_stand_apart_and_single_datasets_do_not_count() -> None:
    second = replace(ATTACK, target="pay", value=0.5, params={"sensitive": "pay"})
    lines = cells(evidence_table([EPSILON, ATTACK, OWN, second, replace(ATTACK, draw=1, value=0.1)]))
    attacks = [line for line in lines if line[0] == "inference attack"]
    assert [line[1:5:3] for line in attacks] == [
        ["Wrong inferences from similar records, job", "0.625"],
        ["Wrong inferences from similar records, pay", ""],
    ]


def test_a_run_without_an_account_has_no_such_table() -> None:
    rows = [COPIES, ATTACK, OTHER]
    assert evidence_table(rows) is None
    assert evidence_lines(rows) == []
    assert [table.title for table, _ in result_tables(rows)] == ["Disclosure risk"]


def test_it_stands_right_below_the_account_and_in_the_summary() -> None:
    rows = [EPSILON, COPIES, ATTACK, OWN]
    assert [table.title for table, _ in result_tables(rows)][:2] == ["Privacy account", "Epsilon beside evidence"]
    said = summary_lines("1 dataset.", (), rows, RECIPE)
    assert "exact copies: Released records equal to a person's 0.25 (baseline 0.5)." in said
    assert "exact copies: NOT MEASURED." in summary_lines("1 dataset.", (), [EPSILON, ATTACK], RECIPE)


def test_the_kinds_of_evidence_are_those_that_methods_declare() -> None:
    assert {kind: [method.key for method in methods] for kind, methods in methods_by_evidence().items()} == {
        "exact copies": ["risk.exact_copies"],
        "inference attack": ["risk.inference_attack"],
        "audit by shadow releases": ["risk.record_audit"],
    }
    assert all(method.family == "risk" for methods in methods_by_evidence().values() for method in methods)
    assert any(output.risk.evidence for method in registry().values() for output in method.outputs)
