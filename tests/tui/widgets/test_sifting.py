"""Rows that have the words."""

import pytest

from sfumato.tui.widgets.sifting import matches_words

ROW = {"name": "Monthly income", "kind": "continuous", "role": "left out sensitive", "label": None, "at": "12:30"}


@pytest.mark.parametrize(
    ("words", "has"),
    [
        ("", True), ("income", True), ("INC month", True), ("income age", False), ("!age", True), ("!income", False),
        ("kind:cont", True), ("role:cont", False), ("ki:cont ro:sens", True), ("!kind:count", True), ("!kind:cont", False),
        ("12:30", True), ("12:31", False), ("kind:", True), ("!", True), ("role:sens !role:out", False), (":30", True),
    ],
)  # fmt: skip
def test_words(words, has):
    assert matches_words(ROW, words) is has
