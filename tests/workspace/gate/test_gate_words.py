"""What the gate says: a pass has its counts, a list of repeats names its largest, and a noun is that of the recipe."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from sfumato.engine.adversary.membership_evidence import ProbeCounts
from sfumato.workspace.gate import people_checks
from sfumato.workspace.gate.checks import CheckResult, ExaminedRelease
from sfumato.workspace.gate.gate import CHECKS, Finding, make_finding
from sfumato.workspace.gate.record_risks import UNMEASURED_RISK
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.reporting.findings import finding_text, state_text


def counts(members: int, of_members: int, controls: int, of_controls: int, what: str = "stand there") -> ProbeCounts:
    return ProbeCounts("all people", what, members, of_members, controls, of_controls, 1.0, np.arange(members))


def test_counts_of_members_and_hold_out_people_are_said_with_the_noun_of_the_recipe() -> None:
    said = people_checks.look_counts_text(counts(5, 417, 0, 149), "people")
    assert said == "5 of 417 people of the data stand there; of 149 such hold-out people none"
    years = people_checks.look_counts_text(counts(5, 417, 2, 149), "person-years")
    assert years == "5 of 417 person-years of the data stand there; of 149 such hold-out person-years 2"
    together = people_checks.look_counts_text(counts(5, 417, 2, 149, ""), "people")
    assert "are found by the looks that object" in together


def test_what_a_pass_could_have_seen_is_said_in_people_and_as_a_share() -> None:
    assert people_checks.power_text([40, None], 1600, "people") == (
        "copies of 40 people (2.5 %) or more would be seen with 80 % power"
    )
    assert people_checks.power_text([40, 3], 1600, "people").startswith("copies of 5 people"), "fewer never block"
    assert (
        people_checks.power_text([None], 1600, "people")
        == "too few people have rare values for copies of them to be seen with 80 % power"
    )


def test_a_finding_is_strong_by_people_and_by_what_being_a_member_explains() -> None:
    assert people_checks.is_strong(counts(30, 400, 0, 100), 400)
    assert not people_checks.is_strong(counts(20, 400, 0, 100), 400), "a hold-out of 100 may have missed half of them"
    assert not people_checks.is_strong(counts(4, 400, 0, 400), 400), "fewer than five people"
    assert not people_checks.is_strong(counts(100, 400, 20, 100), 400), "as often as hold-out people"
    assert not people_checks.is_strong(counts(30, 400, 0, 100), 400, follows_from_kept=True)
    assert people_checks.is_strong(counts(100, 400, 0, 100), 400, follows_from_kept=True)


def test_a_case_counts_its_records_by_their_noun() -> None:
    def count(rows: str, number: int) -> str:
        case = ExaminedRelease.__new__(ExaminedRelease)
        recipe = SimpleNamespace(data=SimpleNamespace(rows=rows), schema=SimpleNamespace(unit=None))
        case.plan = SimpleNamespace(run=SimpleNamespace(recipe=recipe))  # type: ignore[assignment]
        return case.count_text(number)

    assert [count("", number) for number in (1, 1200)] == ["1 person", "1,200 people"]
    assert [count("person-years", number) for number in (1, 3)] == ["1 person-year", "3 person-years"]


def test_a_value_that_is_not_the_compared_one_is_printed_with_it() -> None:
    """A record at .8 that counts as just above one half: both numbers stand there, and no share in per cent."""
    (check,) = (one for one in CHECKS if one.key == "worst_records")
    finding = make_finding(
        check, Policy(), lambda: CheckResult("record 7 is at 0.8", 0.8, adjusted_value=UNMEASURED_RISK, at_most="warn")
    )
    text = " ".join(finding_text(finding))
    assert "Compared: probability just above 0.5, from the value 0.8; limit: at most 0.5." in text
    assert "%" not in text.partition("Why:")[0]
    assert state_text(finding).endswith("to be judged")


def test_no_title_speaks_of_a_few_records_whatever_their_number() -> None:
    assert [one.key for one in CHECKS if "a few records" in one.title] == []


def test_more_records_than_a_finding_holds_are_counted_by_its_people() -> None:
    many = Finding("keys", "block", "people", "said", records=tuple(range(1000)), people=5049)
    assert any(
        line.startswith("5,049 records: 1, 2") and line.endswith("and 5,025 more") for line in finding_text(many)
    )
    few = Finding("keys", "block", "people", "said", records=(0, 1), people=5)
    assert "2 records: 1, 2" in finding_text(few), "records that are all there are counted themselves"
