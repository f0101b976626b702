"""What the gate says: a pass has its counts, a list of repeats names its largest, and a noun is that of the recipe."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato.engine.disclosure.evidence import Found
from sfumato.engine.disclosure.people import Multiplied
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.release import content_checks
from sfumato.workspace.release.checks import Case, Sighting
from sfumato.workspace.release.gate import CHECKS, Finding, finding_of
from sfumato.workspace.release.run_checks import UNKNOWN
from sfumato.workspace.reporting.findings import finding_text, state_text


def joint(noun: str = "people", *, controlled: bool = True) -> Any:
    case = SimpleNamespace(controls=object() if controlled else None, noun=noun)
    return SimpleNamespace(case=case, size="1 dataset of 417 records, compared with 417")


def test_a_pass_prints_the_counts_that_come_nearest_to_a_finding() -> None:
    counts = [
        Found("all 566 people", "all columns", 5, 417, 0, 149, records=np.arange(5)),
        Found("the 60 rarest people", "all numbers", 1, 40, 1, 20, records=np.arange(1)),
    ]
    seen = content_checks._by_people(
        joint(), counts, "stand in the release with {what}", "no test shows that {noun} stand there"
    )
    assert seen.held == 0
    assert seen.said.startswith(
        "no test shows that people stand there; at most, 5 of 417 people of the data stand in the release with all columns; "
        "of 149 equally rare hold-out people none does"
    )
    years = content_checks._by_people(joint("person-years"), counts, "stand in {what}", "no {noun}")
    assert "people" not in years.said
    assert "5 of 417 person-years of the data" in years.said
    nobody = content_checks._by_people(joint(), [], "stand in {what}", "no {noun}")
    assert nobody.said.startswith("no people; nobody was found (")


@pytest.mark.parametrize(("people", "words"), [(18, "18 people who are alone"), (1, "1 person who is alone")])
def test_repeats_name_the_most_repeated_row_and_not_a_step_of_a_list(
    people: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18 people in 52 rows cannot each stand there twice: two is the step at which they were counted."""
    found = Multiplied("all columns", 2, 9, people, 0.4, 1e-9, 52, 800, np.arange(people))
    standing = SimpleNamespace(standing=SimpleNamespace(multiplied=(found,)), size="1 dataset")
    monkeypatch.setattr(content_checks, "_whole", lambda _: None)
    monkeypatch.setattr(content_checks, "_fits", lambda _: None)
    monkeypatch.setattr(content_checks, "_joint", lambda *_: standing)
    monkeypatch.setattr(content_checks, "pooled", lambda case, fits, look, together: look(None))
    case = SimpleNamespace(noun="people", count=lambda number: f"{number:,} {'person' if number == 1 else 'people'}")
    said = content_checks._multiplied(case).said  # type: ignore[arg-type]
    assert said.startswith(words)
    assert "52 of 800 released rows, 2 times or more each and at most 9 times" in said
    assert "one of them in 2" not in said


def test_a_case_counts_its_records_by_their_noun() -> None:
    def count(rows: str, number: int) -> str:
        case = Case.__new__(Case)
        case.plan = SimpleNamespace(run=SimpleNamespace(recipe=SimpleNamespace(data=SimpleNamespace(rows=rows))))  # type: ignore[assignment]
        return case.count(number)

    assert [count("", number) for number in (1, 1200)] == ["1 person", "1,200 people"]
    assert [count("person-years", number) for number in (1, 3)] == ["1 person-year", "3 person-years"]


def test_a_value_that_is_not_the_compared_one_is_printed_with_it() -> None:
    """A record at .8 that counts as just above one half: both numbers stand there, and no share in per cent."""
    (check,) = (one for one in CHECKS if one.key == "worst_records")
    finding = finding_of(check, Policy(), lambda: Sighting("record 7 is at 0.8", 0.8, judged=UNKNOWN, at_most="warn"))
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
