"""Texts in lines of any width."""

import pytest

from sfumato.tui.widgets.facts import wrap_text


@pytest.mark.parametrize("width", [-2, 0, 1])
def test_a_place_without_width_gets_lines_of_one_cell(width):
    assert wrap_text("may leave", width) == list("mayleave")


def test_a_number_keeps_its_unit():
    assert wrap_text("found 12 % of them", 10) == ["found 12 %", "of them"]
