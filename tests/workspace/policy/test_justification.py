"""A reason has letters in it, wherever one is given."""

from __future__ import annotations

import pytest

from sfumato.engine.errors import BadInput
from sfumato.workspace.policy.justification import checked_justification

NO_REASONS = [
    "",
    " ",
    "\u200b",
    "\u2060\ufeff",
    "\u202e\u202c",
    "...",
    "2026-11-23",
    "\u3164",
    "\u115f",
    "\x00\x1b",
    "\u0301",
    "✓",
    "\U000e0041",
]


@pytest.mark.parametrize("text", NO_REASONS)
def test_what_shows_no_letter_is_no_reason(text: str) -> None:
    with pytest.raises(BadInput, match=r"^--reason: needs a reason in words, with at least one letter$"):
        checked_justification(text, "--reason")


@pytest.mark.parametrize("text", ["agreed", "因为", "می\u200cخواهم", "β", "x\u200b", "1. agreed\n2. known"])
def test_words_of_any_script_are_a_reason_and_stay_as_they_are(text: str) -> None:
    assert checked_justification(f"  {text} \n", "--reason") == text
