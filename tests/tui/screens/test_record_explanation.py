from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.execution.record_risk import LeaveOneOutCandidates
from sfumato.tui.findings.records import candidates_explanation
from sfumato.workspace.views.records import MatchingCandidates


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
