"""One list of findings and limits: the most harmful first, and what is folded counted."""

from __future__ import annotations

import pytest

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.gate.gate import Finding
from sfumato.workspace.reporting.harm import (
    harm_counts_text,
    harm_rank,
    not_applying_text,
    passes_text,
    people_concerned,
    sort_by_harm,
)


def finding(check: str, status: str, people: int | None = None, *, applies: bool = True) -> Finding:
    return Finding(check, status, f"title of {check}", "seen", people=people, applies=applies)  # type: ignore[arg-type]


def verdict(outcome: str, observed: float | None = 0.01) -> Verdict:
    value = "risk.identification.true_match_rate"
    return Verdict(value, "", None, "max", 0.02, observed, None, outcome, "", None)  # type: ignore[arg-type]


FINDINGS = [
    finding("passes", "pass"),
    finding("none", "not checked", applies=False),
    finding("unmade", "not checked"),
    finding("judged", "warn", 7),
    finding("few", "block", 5),
    finding("many", "block", 50),
]
VERDICTS = [verdict("met"), verdict("undecided"), verdict("not met", 0.2), verdict("not computed", None)]


def test_what_harms_most_people_stands_first_and_what_passes_last() -> None:
    listed = sort_by_harm(FINDINGS, VERDICTS, 100)
    names = [one.outcome if isinstance(one, Verdict) else one.check for one in listed]
    assert names == [
        "many", "not met", "few", "judged", "undecided", "unmade", "not computed", "passes", "met", "none",
    ]  # fmt: skip
    assert [harm_rank(one) for one in listed] == sorted(harm_rank(one) for one in listed)


def test_a_waived_block_is_no_worse_than_what_is_to_be_judged() -> None:
    assert [harm_rank(finding("one", "block"), frozenset(waived)) for waived in ((), ("one",), ("other",))] == [0, 1, 0]


def test_a_limit_counts_people_only_where_its_number_does() -> None:
    assert people_concerned(verdict("not met", 0.2), 100) == pytest.approx(20)
    assert people_concerned(verdict("not computed", None), 100) == 0
    assert people_concerned(verdict("not met", 0.2)) == 0


def test_what_is_folded_is_counted_in_words() -> None:
    assert passes_text(FINDINGS, VERDICTS) == "1 check passes · 1 limit met"
    assert passes_text([finding("a", "pass"), finding("b", "pass")], []) == "2 checks pass"
    assert passes_text([], []) == ""
    assert not_applying_text(FINDINGS) == "1 check does not apply"
    assert not_applying_text([]) == ""


def test_the_counts_name_what_is_open_and_the_limits() -> None:
    assert (
        harm_counts_text(FINDINGS, VERDICTS)
        == "decides: 2 checks block · then 1 to be judged · 1 not checked · 1 of 4 plan limits met"
    )
    assert harm_counts_text([finding("a", "pass")], []) == "the plan sets no limits"


def test_limits_that_are_met_are_not_enough_beside_what_is_open() -> None:
    met = [verdict("met")]
    assert harm_counts_text(FINDINGS[-3:-2], met) == "decides: 1 to be judged · not enough alone: 1 of 1 plan limit met"
    assert harm_counts_text([finding("a", "pass")], met) == "1 of 1 plan limit met", "nothing is open"
