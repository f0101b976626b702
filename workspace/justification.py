"""A justification that a person gives: text that says something."""

from __future__ import annotations

import unicodedata

from sfumato.engine.errors import BadInput


def checked_justification(text: str, place: str) -> str:
    """The text without blanks around it. Raises BadInput where it has no letter: blanks and invisible characters are none."""
    if not any(unicodedata.category(character).startswith("L") for character in text):
        raise BadInput(place, "has no letters; write the reason in words")
    return text.strip()
