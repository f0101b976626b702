from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sfumato.engine.execution.record_risk import LeaveOneOutCandidates
from sfumato.tui.findings.records import candidates_explanation, found_sentence, sureness_lines, unit_detail
from sfumato.workspace.reporting.records import RecordLine
from sfumato.workspace.views.records import MatchingCandidates, UnitMatch


@pytest.mark.parametrize(
    ("hit", "words"),
    [
        (True, "its own record is among them"),
        (False, "its own record is not among them"),
        (None, "their owners are unknown: no released record is linked to a person"),
    ],
)
def test_whose_the_matching_records_are_is_said_where_something_says_it(hit: bool | None, words: str) -> None:
    alone = LeaveOneOutCandidates(("age",), np.array([2.0]), np.array([[5.0]]))
    found = MatchingCandidates(1, 1, (1, 3), {"age": "width 5"}, alone, hit)
    lines = candidates_explanation(found, 80, None, 120).plain.splitlines()
    assert lines[0].rstrip() == f"2 of 80 released records match; {words}."
    assert "within width 5 " in lines[4]


def test_one_record_matches_and_several_match() -> None:
    alone = LeaveOneOutCandidates(("age",), np.array([1.0]), np.array([[5.0]]))
    said = candidates_explanation(MatchingCandidates(1, 1, (1,), {"age": "equal"}, alone, True), 80, None, 120).plain
    assert said.startswith("1 of 80 released records matches;")


@pytest.mark.parametrize("width", [34, 38, 60, 120])
def test_no_number_of_the_pane_is_cut_however_narrow_it_is(width: int) -> None:
    names = ("income", "a_rather_long_name_of_a_variable")
    alone = LeaveOneOutCandidates(names, np.array([2.0]), np.array([[1401.0, 177.4]]))
    radii = {"income": "10%", names[1]: "equal"}
    lines = candidates_explanation(MatchingCandidates(1, 1, (1, 3), radii, alone, True), 80, None, width).plain
    table = lines.splitlines()[-3:]
    assert "without it" in table[0]
    assert "would match without it" in table[0] or width < 50
    assert [line.split()[-1] for line in table[1:]] == ["1,401", "177"]
    assert all(len(line.rstrip()) <= width for line in table)


def test_a_record_that_is_found_by_the_best_choice_says_what_is_ignored() -> None:
    alone = LeaveOneOutCandidates(("age",), np.array([1.0]), np.array([[5.0]]))
    found = MatchingCandidates(1, 1, (1,), {"age": "equal"}, alone, True, ("vote", "pay"))
    said = " ".join(candidates_explanation(found, 80, None, 200).plain.split())
    assert "its own record is among them. The intruder ignores vote and pay, which hide this record from him." in said


def test_a_unit_is_explained_by_how_it_reaches_its_probability() -> None:
    line = RecordLine(16092, 1.0, None, 1.0, None, None, unit=4146, members=7)
    found = UnitMatch(("sex", "age"), ("pay",), 1.0, 5, 5, 1.0)
    said = " ".join(unit_detail(found, line, "people", 200).plain.split())
    assert said.startswith(
        "person 4,146: 7 records An intruder who knows all 7 records of this person compares sex and"
    )
    assert "and ignores pay. 1 person of the release matches on average; its own rows are among them in 5 of 5" in said
    assert "right with probability 100 %. enter lists" in said
    alone = " ".join(unit_detail(UnitMatch(("sex",), (), 4.0, 1, 1, 0.25), line, "people", 200).plain.split())
    assert "4 people of the release match; its own rows are among them." in alone
    assert "Its record 16,092 alone is found with probability 100 %, which the list has." in alone
    assert "that of its record that is most at risk, 16,092" in unit_detail(None, line, "people", 200).plain


def test_how_surely_all_are_found_has_a_bar_for_each_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    class ListOfRecords:
        units = None

        def count_by_probability(self, bounds: object) -> list[int]:
            return [2, 0, 1, 0, 4000]

    lines = [line.plain for line in sureness_lines(ListOfRecords(), 50)]
    assert lines[1] == "How surely these records are found"
    assert [line.split()[-2] for line in (lines[2], lines[4], lines[6])] == ["2", "1", "4,000"]
    assert [line.count("▄") > 0 for line in lines[2:]] == [True, False, True, False, True], "few are not nobody"
    assert max(map(len, lines)) <= 50
    assert sureness_lines(ListOfRecords(), 20) == []
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    assert "▄" not in "".join(line.plain for line in sureness_lines(ListOfRecords(), 50))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "2 of 80 records are found for certain in all 3 datasets."),
        ({"draw": 2}, "2 of 80 records are found for certain in dataset 2."),
        ({"certain": 1, "n_datasets": 1}, "1 of 80 records is found for certain."),
        ({"certain": 0}, "0 of 80 records are found for certain in all 3 datasets."),
        ({"n_attacked": 50}, "At least 2 of 80 records are found for certain in all 3 datasets."),
        ({"ranked": 2}, "At least 2 of 80 records are found for certain in all 3 datasets."),
        ({"combined": "a"}, "2 of 80 records are found for certain from all datasets together."),
        ({"unique": None}, ""),
    ],
)
def test_how_many_are_found_for_certain_is_one_sentence_that_claims_no_more_than_is_known(changes, said) -> None:
    class Ranking:
        risk = SimpleNamespace(unique=changes.get("unique", np.ones(80)))

        def __len__(self) -> int:
            return changes.get("ranked", 80)

    certain = changes.get("certain", 2)
    listed = SimpleNamespace(
        units=None,
        n_records=80,
        n_attacked=changes.get("n_attacked", 80),
        n_datasets=changes.get("n_datasets", 3),
        draw=changes.get("draw"),
        ranking=Ranking(),
        measure=SimpleNamespace(combined_hash=changes.get("combined")),
        count_by_probability=lambda _: [certain, 80 - certain],
    )
    assert found_sentence(listed) == said


def test_by_what_all_are_found_is_said_where_it_is_known_of_all_and_the_same() -> None:
    lines = [RecordLine(n, 1.0, None, 1.0, None, None, unit=n, members=3) for n in (4, 9)]
    listed = SimpleNamespace(
        units=SimpleNamespace(noun="people", n_units=80, is_unit=np.ones(80, dtype=bool)),
        n_records=200,
        n_attacked=200,
        n_datasets=1,
        draw=None,
        ranking=SimpleNamespace(risk=SimpleNamespace(unique=np.ones(80))),
        measure=SimpleNamespace(combined_hash=None),
        count_by_probability=lambda _: [2, 78],
        lines=lambda first, most: lines[first : first + most],
    )
    listed.fold = lambda _: listed
    match = UnitMatch(("sex", "age"), ("pay",), 1.0, 1, 1, 1.0)
    said = "2 of 80 people are found for certain"
    assert found_sentence(listed, {4: match, 9: match}) == f"{said}, each by sex and age."
    assert found_sentence(listed, {4: match}) == f"{said}."
    assert found_sentence(listed, {4: match, 9: replace(match, used=("sex",))}) == f"{said}."
    assert found_sentence(listed, {4: match, 9: replace(match, probability=0.2)}) == f"{said}.", "by one record"
