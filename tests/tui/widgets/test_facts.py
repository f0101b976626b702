"""Texts in lines of any width."""

import pytest

from sfumato.tui.widgets.facts import fact_lines, titled_facts, wrap_text


@pytest.mark.parametrize("width", [-2, 0, 1])
def test_a_place_without_width_gets_lines_of_one_cell(width):
    assert wrap_text("may leave", width) == list("mayleave")


def test_a_number_keeps_its_unit():
    assert wrap_text("found 12 % of them", 10) == ["found 12 %", "of them"]


def test_two_blanks_part_the_longest_name_from_its_text_and_a_fact_without_a_name_is_a_blank_line():
    lines = [line.plain for line in fact_lines([("who can be found", "nobody"), ("", ""), ("goes", "away")], 60)]
    assert lines[0] == "who can be found  nobody"
    assert lines[1].strip() == ""
    assert lines[2] == "goes              away"


def test_the_name_of_a_file_keeps_its_hyphens():
    text = "5 datasets of person-years: dataset-SYNTHETIC-01.csv to dataset-SYNTHETIC-05.csv"
    for width in (30, 40, 50, 60):
        assert "".join(wrap_text(text, width)).count("dataset-SYNTHETIC-0") == 2
        assert not any(line.endswith(("dataset-", "SYNTHETIC-")) for line in wrap_text(text, width))


def test_facts_in_few_cells_have_blank_lines_between_them_where_there_is_room():
    facts = [("why", "it tells"), ("key", "risk")]
    assert titled_facts("Step", facts, 40).plain == "Step\nwhy  it tells\nkey  risk"
    assert titled_facts("Step", facts, 40, is_airy=True).plain == "Step\n\nwhy  it tells\n\nkey  risk"
