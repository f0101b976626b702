"""Justifications: the reasons that people give for a release, a waiver or an approval."""

from __future__ import annotations

import re
import unicodedata

from sfumato.engine.errors import BadInput

from ..visible_text import is_hidden

LEAST_WORDS, LEAST_CHARACTERS, LEAST_DIFFERENT = 3, 15, 5
WHAT_IS_NEEDED = (
    f"needs a reason in words: at least {LEAST_WORDS} different words, or {LEAST_CHARACTERS} characters, that tell "
    "a reader why"
)


def checked_justification(text: str, place: str) -> str:
    """Return ``text`` without blanks around it. Raises BadInput at ``place`` where it is no reason in words.

    A reason has at least three different words with seven letters together, or fifteen characters of which five letters
    differ. A wide character, such as a Chinese one, counts as two.
    """
    shown = "".join(c for c in unicodedata.normalize("NFC", text) if not is_hidden(c)).casefold()
    letters = [c for c in shown if unicodedata.category(c).startswith("L")]
    words = {word for word in re.findall(r"[\w'’-]+", shown) if any(map(str.isalpha, word))}
    width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in shown if not c.isspace())
    enough_words = (
        len(words) >= LEAST_WORDS and len(letters) >= 2 * LEAST_WORDS + 1 and len(set(letters)) >= LEAST_DIFFERENT
    )
    if not enough_words and (width < LEAST_CHARACTERS or len(set(letters)) < LEAST_DIFFERENT):
        raise BadInput(place, WHAT_IS_NEEDED)
    return text.strip()


FEWEST_WORDS, FEWEST_LETTERS = 3, 12
"""Different words, and letters in all, of a reason that says anything."""


def checked_full_justification(text: str, place: str) -> str:
    """Return ``text`` as ``checked_justification`` does, where it says something: a few different words.

    For statements that free a budget: "ok" and "x x x" are none. Raises BadInput at ``place``.
    """
    needed = f"needs at least {FEWEST_WORDS} different words that say who was asked, and when"
    try:
        reason = checked_justification(text, place)
    except BadInput:
        # Its own message names less than is needed here.
        raise BadInput(place, needed) from None
    words = {"".join(c for c in word if c.isalpha()) for word in reason.casefold().split()}
    if len(words - {""}) < FEWEST_WORDS or sum(map(len, words)) < FEWEST_LETTERS:
        raise BadInput(place, needed)
    return reason
