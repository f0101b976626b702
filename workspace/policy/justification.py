"""Justifications: the reasons that people give for a release, a waiver or an approval."""

from __future__ import annotations

import unicodedata

from sfumato.engine.errors import BadInput

from ..visible_text import is_hidden


def checked_justification(text: str, place: str) -> str:
    """Return ``text`` without blanks around it. Raises BadInput at ``place`` where it holds no visible letter."""
    if not any(unicodedata.category(c).startswith("L") and not is_hidden(c) for c in text):
        raise BadInput(place, "needs a reason in words, with at least one letter")
    return text.strip()


FEWEST_WORDS, FEWEST_LETTERS = 3, 12
"""Different words, and letters in all, of a reason that says anything."""


def checked_full_justification(text: str, place: str) -> str:
    """Return ``text`` as ``checked_justification`` does, where it says something: a few different words.

    For statements that free a budget: "ok" and "x x x" are none. Raises BadInput at ``place``.
    """
    reason = checked_justification(text, place)
    words = {"".join(c for c in word if c.isalpha()) for word in reason.casefold().split()}
    if len(words - {""}) < FEWEST_WORDS or sum(map(len, words)) < FEWEST_LETTERS:
        raise BadInput(place, f"needs a reason of at least {FEWEST_WORDS} words that says who was asked, and when")
    return reason
