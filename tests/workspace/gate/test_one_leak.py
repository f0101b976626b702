"""Findings that are one leak are said once: the same people, the same advice, the same sentence."""

from __future__ import annotations

from sfumato.workspace.gate.files_advice import ADVICE_BY_CHECK, advice_for_files
from sfumato.workspace.gate.gate import CHECKS, Examination, Finding, name_leaks


def blocking_finding(check: str, records: tuple[int, ...] = (), said: str = "", advice: str = "smooth") -> Finding:
    return Finding(check, "block", f"title of {check}", said or f"{check} found", records=records, advice=advice)


PEOPLE = tuple(range(35))


def test_findings_of_the_same_people_are_one_and_others_stay_apart() -> None:
    """What the assessment says in one line the gate has named: the documents have no rule of their own."""
    given = [
        blocking_finding("standing", PEOPLE), blocking_finding("near", PEOPLE[:25]), blocking_finding("rare", PEOPLE[:7]), blocking_finding("ends", (90, 91)), blocking_finding("linking"),
        blocking_finding("equal", PEOPLE),
    ]  # fmt: skip
    examination = Examination(1, "0" * 64, name_leaks([(one, one.records) for one in given]))
    groups = [[one, *examination.witnesses_of(one)] for one in examination.lead_findings]
    assert [[one.check for one in group] for group in groups] == [
        ["standing", "near", "equal"], ["rare"], ["ends"], ["linking"],
    ]  # fmt: skip


def test_advice_for_files_of_another_tool_names_no_setting_of_a_plan() -> None:
    settings = ("[[synthesis]]", "[[anonymisation]]", "[release]", "minbucket", "= true", "leaves", "[variables]")
    keys = {one.key for one in CHECKS}
    assert set(ADVICE_BY_CHECK) <= keys
    for check in CHECKS:
        told = advice_for_files(check.key, check.advice)
        assert told or not check.advice
        assert not any(one in told for one in settings), check.key
    assert any(one in check.advice for check in CHECKS for one in settings), "the control"
    assert advice_for_files("membership_evidence", "") == ""
