"""Filter rows by typed words, such as ``kind:count !income``."""

from __future__ import annotations

from collections.abc import Mapping

HINT = "words that must occur; !word must not; role:sensitive only in that column"


def matches_words(fields: Mapping[str, object], words: str) -> bool:
    """Return whether the fields of a row, by title, contain every word, ignoring case, and no ``!word``.

    ``title:word`` looks only in the fields whose title begins so. Without such a title the colon is part of the word.
    """
    texts = {title.lower(): str(value).lower() for title, value in fields.items() if value is not None}
    return all(_matches_word(texts, word) for word in words.lower().split())


def _matches_word(texts: Mapping[str, str], word: str) -> bool:
    """Return whether the lower-case texts, by title, agree with one word."""
    wanted = word.removeprefix("!")
    title, colon, rest = wanted.partition(":")
    own = [text for name, text in texts.items() if name.startswith(title)] if colon and title else []
    found = any(rest in text for text in own) if own else any(wanted in text for text in texts.values())
    # A lone ``!`` is a word that is still being typed.
    return found is not word.startswith("!") if wanted else True
