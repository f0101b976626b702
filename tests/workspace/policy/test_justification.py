"""A reason has a few words, wherever one is given."""

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
    "x",
    "ok",
    "agreed",
    "x x x x x x",
    "a b c",
    "no no no no no",
    "xxxxxxxxxxxxxxxxxxxxxxxx",
    "xxx xxxx xxxxx xxxxxx",
    "abababababababababab",
    "x\u200bx\u200bx\u200by",
    "..................",
    "1234567890 1234567890",
    "因为",
    "因因因因因因因因因因",
]


@pytest.mark.parametrize("text", NO_REASONS)
def test_what_is_no_reason_in_words_is_refused(text: str) -> None:
    with pytest.raises(
        BadInput,
        match=r"^--reason: needs a reason in words: at least 3 different words, or 15 characters, that tell a reader why$",
    ):
        checked_justification(text, "--reason")


@pytest.mark.parametrize(
    "text",
    [
        "agreed by the board",
        "因为研究需要这些数据",
        "برای آموزش دانشجویان می\u200cخواهم",
        "für die Lehre",
        "it may leave",
        "1. agreed\n2. known",
        "Unterrichtszwecke",
        "in a hurry",
    ],
)
def test_words_of_any_script_are_a_reason_and_stay_as_they_are(text: str) -> None:
    assert checked_justification(f"  {text} \n", "--reason") == text
