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
