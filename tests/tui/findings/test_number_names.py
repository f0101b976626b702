"""Names and cells of numbers in a narrow list: names are whole, and values beside each other say the same."""

from __future__ import annotations

import pytest

from sfumato.engine.methods.rows import Row
from sfumato.engine.wording import RecordCount
from sfumato.tui.findings.results import NumberEntry, Room, _fitting_cell, _number_name
from sfumato.workspace.reporting.numbers import NumberLine
from sfumato.workspace.reporting.words import NO_SETTINGS
from sfumato.workspace.views.number_lines import ShownLine

WIDTHS = {"confidential": 7, "release": 8, "limit": 8}


def line(by: str, dataset: str = "confidential", value: float = 0.5) -> NumberLine:
    params = {"by": by} if by else {}
    row = Row("risk", "identification", "true_match_rate", "", dataset, None, None, value, unit="share", params=params)
    return NumberLine(row, row)


def entry(front: NumberLine, *others: NumberLine, noun: str = "people") -> NumberEntry:
    members = (front, *others) if others else ()
    records = RecordCount(100, "records", RecordCount(40, noun))
    number = NumberLine(front.confidential, front.release, None, members)
    return NumberEntry(ShownLine(number), records, NO_SETTINGS)


def test_a_number_of_people_says_so_in_its_name_alone() -> None:
    by_person, by_record = line("unit"), line("")
    assert "by person" not in _number_name(60, 0, entry(by_person, by_record))
    assert "by record" in _number_name(60, 0, entry(by_record, by_person)), "unless its records stand in front"
    assert "by household" in _number_name(60, 0, entry(by_person, by_record, noun="households"))
    assert "by person" in _number_name(60, 0, entry(by_person)), "nothing is folded"


@pytest.mark.parametrize("more", range(4))
def test_the_sign_of_a_fold_costs_no_letter_of_a_name(more: int) -> None:
    number = entry(line("unit"), line(""))
    whole = _number_name(90, 0, number).removesuffix("▸").strip()
    assert "…" not in _number_name(len(whole) + more, 0, number)
    assert "…" in _number_name(len(whole) - 1, 0, number)


def test_a_narrow_list_counts_people_in_all_cells_or_in_none() -> None:
    number = entry(line("unit"), line(""))
    assert _fitting_cell("release", WIDTHS, Room.NARROW, number) == "20"
    assert _fitting_cell("confidential", WIDTHS, Room.NARROW, number) == "20"
    tight = {**WIDTHS, "confidential": 1}
    assert _fitting_cell("release", tight, Room.NARROW, number) == "50 %"
