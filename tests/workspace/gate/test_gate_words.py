"""What the gate says: a pass has its counts, a list of repeats names its largest, and a noun is that of the recipe."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from sfumato.engine.adversary.membership_evidence import ProbeCounts
from sfumato.workspace.gate import history_checks, joint, people_checks
from sfumato.workspace.gate.checks import CheckResult, ExaminedRelease
from sfumato.workspace.gate.gate import CHECKS, Finding, make_finding
from sfumato.workspace.gate.record_risks import UNMEASURED_RISK
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.reporting.findings import finding_text, state_text


def counts(members: int, of_members: int, controls: int, of_controls: int, what: str = "stand there") -> ProbeCounts:
    return ProbeCounts("all people", what, members, of_members, controls, of_controls, 1.0, np.arange(members))


def test_counts_of_members_and_hold_out_people_are_said_with_the_noun_of_the_recipe() -> None:
    said = people_checks.look_counts_text(counts(5, 417, 0, 149), "people")
    assert said == "5 (1 %) of 417 people of the data stand there; of 149 such hold-out people none"
    years = people_checks.look_counts_text(counts(5, 417, 2, 149), "person-years")
    assert years == "5 (1 %) of 417 person-years of the data stand there; of 149 such hold-out person-years 2 (1 %)"
    together = people_checks.look_counts_text(counts(5, 417, 2, 149, ""), "people")
    assert "are found by the ways of comparing that find too many" in together


def test_what_a_pass_could_have_seen_is_said_in_people_and_as_a_share() -> None:
    assert people_checks.power_text([40, None], 1600, "people") == (
        "copies of 40 people (2.5 %) or more would be noticed in four of five releases"
    )
    assert people_checks.power_text([40, 3], 1600, "people").startswith("copies of 5 people"), "fewer never block"
    assert (
        people_checks.power_text([None], 1600, "people")
        == "too few people have rare values for copies of them to be noticed in four of five releases"
    )


def test_chance_puts_as_many_members_among_the_rows_found_as_a_draw_of_rows_has_on_average() -> None:
    """Of 7 people 5 are members; of rows that independent draws would repeat there are no more than are found."""
    table = SimpleNamespace(members=5, n_records=7, unit_of=None, n_protected_members=5, n_protected=7)
    for found in (1, 3, 6):
        drawn = np.mean([sum(one < 5 for one in some) for some in combinations(range(7), found)])
        for expected in (found, 10.0):
            rows = SimpleNamespace(test=SimpleNamespace(records=np.arange(found), expected=expected))
            assert people_checks._members_by_chance(table, rows) == pytest.approx(drawn)  # type: ignore[arg-type]
            beyond = people_checks._members_beyond_chance(table, rows)  # type: ignore[arg-type]
            assert beyond == pytest.approx(min(found, 5) - drawn)


@pytest.mark.parametrize(("cells", "used"), [(3000, 3), (2000, 2), (1400, 1), (1000, 1), (200, 1)])
def test_as_many_datasets_are_looked_at_as_there_is_room_for_and_one_at_least(
    cells: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two columns of 400 records beside three datasets of 300."""
    monkeypatch.setattr(joint, "MOST_CELLS", cells)
    case = SimpleNamespace(confidential=range(350), controls=range(50))
    release = SimpleNamespace(sizes=[300, 300, 300])
    pool = SimpleNamespace(datasets=[(release, place) for place in range(3)], size_text="3 datasets of 300")
    table = joint.JointTable(case, pool, ("age", "job"))  # type: ignore[arg-type]
    assert table.n_datasets_used == used
    assert (table.size_text == "3 datasets of 300") == (used == 3)


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
    assert "Compared: probability above 0.5, from the value 0.8; limit: at most 0.5." in text
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


def test_inference_is_said_to_count_less_only_where_it_raises_the_finding() -> None:
    worst, inferred = (CheckResult(said, value, at_most="warn") for said, value in (("found", 0.3), ("guessed", 0.9)))
    added = people_checks._add_inference(worst, inferred)
    assert added is not None
    assert added.compared_value == pytest.approx(UNMEASURED_RISK)
    assert "found. guessed: the gate counts 0.9 as above 0.5" in added.message
    for already in (UNMEASURED_RISK, 0.7):
        same = people_checks._add_inference(CheckResult("found", already), inferred)
        assert same is not None
        assert (same.message, same.compared_value) == ("found. guessed", already)
    little = people_checks._add_inference(worst, CheckResult("guessed", 0.4))
    assert little is not None
    assert (little.message, little.compared_value) == ("found. guessed", 0.4)
    assert people_checks._add_inference(None, inferred) is inferred
    assert people_checks._add_inference(worst, None) is worst


@pytest.mark.parametrize(
    ("before", "after", "beyond"), [(0.2, 0.6, 0.5), (0.0, 0.3, 0.3), (1.0, 1.0, 0.0), (0.5, 0.5, 0.0)]
)
def test_guesses_beyond_the_prior_are_a_share_of_those_that_were_wrong_before(
    before: float, after: float, beyond: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    belief = SimpleNamespace(
        is_informed=True,
        key="risk.bayesian_posterior",
        measure_text="measure",
        attacked_text="all records",
        right_after=SimpleNamespace(value=after, lower=None),
        right_before=SimpleNamespace(value=before),
    )
    monkeypatch.setattr(people_checks, "_intruder_beliefs", lambda case: [belief])
    case = SimpleNamespace(same_people_releases=())
    found = people_checks._check_guessed_beyond_prior(case)  # type: ignore[arg-type]
    assert (found.value, found.baseline, found.compared_value) == (after, before, pytest.approx(beyond))
    assert found.at_most == ("block" if after > before else "warn")


@pytest.mark.parametrize(
    ("limit", "spent", "allowed", "at_least"),
    [
        (None, 1e-4, 1e-3, "pass"),
        (None, 3e-4, 1e-3, "warn"),
        (None, 1e-3, 1e-3, "block"),
        (1e-5, 2e-5, 1e-5, "pass"),
        (0.5, 1e-5, 1e-3, "pass"),
    ],
)
def test_a_delta_is_held_against_the_policy_and_one_in_so_many_people(
    limit: float | None, spent: float, allowed: float, at_least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a thousand people."""
    ledger = SimpleNamespace(own=SimpleNamespace(steps=1), charges=(), n_people=1000)
    charge = SimpleNamespace(run_id=1, covered=True, delta=spent)
    monkeypatch.setattr(history_checks, "ledger_of_release", lambda case: ledger)
    monkeypatch.setattr(history_checks, "spending_of_charges", lambda own, charges: [charge])
    monkeypatch.setattr(history_checks, "_ledger_text", lambda ledger, charges: "")
    found = history_checks._check_privacy_delta(SimpleNamespace(policy=SimpleNamespace(delta=limit)))  # type: ignore[arg-type]
    assert (found.value, found.baseline, found.at_least) == (spent, allowed, at_least)
    assert found.compared_value == pytest.approx(spent / allowed)


@pytest.mark.parametrize(
    ("key", "value", "status"),
    [
        ("kept_tables", 0, "pass"), ("kept_tables", 1, "block"), ("identifying_columns", 0.5, "pass"),
        ("identifying_columns", 0.6, "warn"), ("identifying_columns", 0.9, "warn"), ("identifying_columns", 0.95, "block"),
        ("deleted_releases", 0, "pass"), ("deleted_releases", 1, "block"),
        ("newly_certain", 0, "pass"), ("newly_certain", 0.005, "warn"), ("newly_certain", 0.015, "block"),
    ],
)  # fmt: skip
def test_checks_warn_and_block_from_the_limits_that_their_sentences_name(key: str, value: float, status: str) -> None:
    (check,) = (one for one in CHECKS if one.key == key)
    assert make_finding(check, Policy(), lambda: CheckResult("said", value)).status == status
