"""Which rows have the words that somebody types: ``kind:count !income``."""

from __future__ import annotations

from collections.abc import Mapping

HINT = "words that must occur; !word must not; role:sensitive only in that column"


def has_words(fields: Mapping[str, object], words: str) -> bool:
    """Whether the fields of a row, by title, have every word, in any case of letters; of ``!word`` none of them.

    ``title:word`` looks only in the fields whose title begins so. Where there is no such title the colon is part of the word.
    """
    texts = {title.lower(): str(value).lower() for title, value in fields.items() if value is not None}
    return all(_has(texts, word) for word in words.lower().split())


def _has(texts: Mapping[str, str], word: str) -> bool:
    wanted = word.removeprefix("!")
    title, colon, rest = wanted.partition(":")
    own = [text for name, text in texts.items() if name.startswith(title)] if colon and title else []
    found = any(rest in text for text in own) if own else any(wanted in text for text in texts.values())
    return found is not word.startswith("!") if wanted else True
