"""What a finding is compared with, and its limit, in the app's list."""

from __future__ import annotations

import pytest

from sfumato.tui.release.release import FINDING_COLUMNS
from sfumato.workspace.gate.checks import CheckResult, GateCheck
from sfumato.workspace.gate.gate import CHECKS, Finding, make_finding
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.reporting.findings import (
    compact_finding_cells,
    compared_text,
    finding_counts_text,
    finding_limit_text,
    finding_table,
    finding_text,
    findings_of_same_leak,
    folded_counts_text,
    state_text,
    stored_message,
)
from sfumato.workspace.reporting.tables import format_table

BY_KEY = {check.key: check for check in CHECKS}
SHOWN = {column.name: column.width for column in FINDING_COLUMNS}
WIDTHS = {"compared_value": SHOWN["found"], "limit": SHOWN["limit"]}


def cells(check: GateCheck, compared_value: float | None) -> dict[str, str]:
    return compact_finding_cells(make_finding(check, Policy(), lambda: CheckResult("seen", compared_value)))


@pytest.mark.parametrize(
    ("key", "compared_value", "shown", "limit", "words", "limit_words"),
    [
        ("kept_keys", 0.06667, "6.67 %", "≤ 0 %", "6.67 %", "at most 0 %"),
        ("membership_evidence", 2.0, "2", "none allowed", "2 people", "none allowed"),
        ("membership_evidence", 1.0, "1", "none allowed", "1 person", "none allowed"),
        ("membership_evidence", 12.0, "12", "≤ 4 people", "12 people", "at most 4 people"),
        ("questions_open", 1.0, "1", "none allowed", "1 question", "none allowed"),
        ("thresholds_set", 3.0, "3", "≥ 1 limit", "3 limits", "at least 1 limit"),
        ("risk_measured", 0.0, "none", "≥ 1 measure", "none", "at least 1 measure"),
        ("privacy_budget", 1.2, "1.2", "≤ 1", "1.2 of the budget", "at most 1 of the budget"),
        ("worst_records", 0.95, "0.95", "≤ 0.9", "probability 0.95", "at most 0.9"),
        ("membership_excess", 0.48, "0.48", "≤ 0.2", "0.48 above chance", "at most 0.2"),
        ("risk_above_confidential", 0.07591, "0.07591", "≤ 1", "ratio 0.07591", "at most 1"),
        ("memorised", 0.4, "0.4", "≥ 0.5", "multiple of chance 0.4", "at least 0.5"),
        ("memorised", 1.334, "1.334", "≥ 0.5", "multiple of chance 1.334", "at least 0.5"),
        ("weighted_records", 3.0, "3", "", "3 weights", ""),
    ],
)
def test_a_number_has_its_unit_and_a_limit_its_direction_and_what_it_counts(
    key: str, compared_value: float, shown: str, limit: str, words: str, limit_words: str
) -> None:
    assert cells(BY_KEY[key], compared_value) == {"compared_value": shown, "limit": limit}
    finding = make_finding(BY_KEY[key], Policy(), lambda: CheckResult("seen", compared_value))
    assert (compared_text(finding), finding_limit_text(finding)) == (words, limit_words)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.key)
def test_only_shares_of_people_are_in_percent_and_no_lower_limit_is_drawn_as_an_upper_one(check: GateCheck) -> None:
    finding = make_finding(check, Policy(), lambda: CheckResult("seen", 0.48))
    assert ("%" in compared_text(finding)) == check.unit.startswith("share of the people")
    if finding.limit is not None:
        assert finding_limit_text(finding).startswith("at least" if check.is_minimum else ("at most", "none allowed"))
        assert compact_finding_cells(finding)["limit"].startswith("≥" if check.is_minimum else ("≤", "none allowed"))


def test_a_share_that_is_nearly_the_limit_does_not_read_as_the_limit() -> None:
    found = cells(BY_KEY["kept_weight"], 0.500001)
    assert found["limit"] == "≤ 50 %"
    assert found["compared_value"] != "50 %"
    found = cells(BY_KEY["worst_records"], 0.9000001)
    assert found["limit"] == "≤ 0.9"
    assert found["compared_value"] != "0.9"


def test_every_limit_has_room() -> None:
    for check in CHECKS:
        for compared_value in (None, 0.0, 1.0, 0.123456):
            found = cells(check, compared_value)
            assert all(len(found[name]) <= WIDTHS[name] for name in found), (check.key, found)
            assert "share" not in found["limit"]
            _, _, named = found["limit"].partition(" ")
            assert not named.startswith("1 ") or not named.endswith("s"), check.key


def examined() -> list[Finding]:
    """Return one leak that three checks see, and findings of every other state."""
    return [
        Finding("lead", "block", "people who can be found", "7 of 100 people", value=0.07, compared_value=0.07, limit=0.0, people=7,
                unit="share of the people", records=(0, 1), advice="make age coarser", reason="it matters"),
        Finding("one", "block", "singling out people", "as many", leak="lead"),
        Finding("two", "warn", "linking the records of people", "as many too", leak="lead"),
        Finding("judge", "warn", "rare categories", "two levels", value=0.4, baseline=0.2, compared_value=0.25, limit=0.2, unit="excess (0 by chance, 1 for all)", reason="r"),
        Finding("open", "not checked", "telling who is in the data", "no controls"),
        Finding("fine", "pass", "rules", "all kept"),
        Finding("good", "pass", "columns", "none"),
        Finding("out", "not checked", "classes", "does not apply: no classes", applies=False),
    ]  # fmt: skip


def test_a_leak_is_counted_and_shown_once_with_the_checks_that_see_it_too() -> None:
    findings = examined()
    assert finding_counts_text(findings) == "1 blocks, 1 to be judged, 1 not checked, 2 pass, 1 does not apply"
    assert folded_counts_text(findings) == "2 pass, 1 does not apply"
    shown = format_table(finding_table(findings))
    assert "people who can be found; also seen by: singling out people, linking the records of people" in shown
    lines = shown.splitlines()[2:]
    assert [line.split()[0] for line in lines] == ["x", "!", "?"], "blocks, to be judged, not checked"
    assert "at most 0 %" in lines[0]
    assert lines[0].split()[-1] == "7"
    assert "0.25 above chance" in lines[1]
    assert "%" not in lines[1]


def test_every_finding_is_listed_where_all_are_asked_for() -> None:
    findings = examined()
    assert [line[2] for line in finding_table(findings, every=True).rows] == [
        "lead", "judge", "open", "fine", "good", "out",
    ]  # fmt: skip


def test_a_finding_is_explained_with_its_witnesses_and_the_value_behind_the_compared_number() -> None:
    findings = examined()
    said = "\n".join(finding_text(findings[0], findings_of_same_leak(findings[0], findings)))
    assert "Also seen by: singling out people, linking the records of people." in said
    assert "linking the records of people (two): as many too." in said
    explained = "\n".join(finding_text(findings[3]))
    assert "Compared: 0.25 above chance (0 by chance, 1 for all), from the value 0.4 and the baseline 0.2" in explained


def test_no_two_states_read_alike() -> None:
    shown = {state_text(one) for one in examined()}
    assert len(shown) == 5
    assert len({one.split()[0] for one in shown}) == 5, "nor their signs"


def test_stored_findings_of_before_are_read_and_new_ones_have_the_old_keys_too() -> None:
    finding = make_finding(BY_KEY["kept_weight"], Policy(), lambda: CheckResult("two of three people", 0.6))
    table = finding.to_table()
    assert (table["message"], table["compared_value"]) == ("two of three people", 0.6)
    assert (table["said"], table["held"]) == ("two of three people", 0.6)
    assert stored_message(table) == "two of three people"
    assert stored_message({"said": "as an earlier version wrote it"}) == "as an earlier version wrote it"


def test_a_number_beyond_its_limit_that_passes_does_not_read_as_if_it_were_within() -> None:
    finding = make_finding(
        BY_KEY["membership_excess"], Policy(), lambda: CheckResult("seen", 0.5165, 0.5, 0.2378, at_most="pass")
    )
    assert finding.status == "pass"
    assert compared_text(finding) == "0.2378 above chance"
    assert finding_limit_text(finding) == "not counted: may be chance"
    assert compact_finding_cells(finding) == {"compared_value": "0.2378", "limit": "may be chance"}
    within = make_finding(BY_KEY["membership_excess"], Policy(), lambda: CheckResult("seen", 0.5, 0.5, 0.01))
    assert finding_limit_text(within).startswith("at most 0.")
