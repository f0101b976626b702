"""Entries of a list to choose from, and the search for typed words among them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

Rank = tuple[int, int]
LONGEST_SPAN = 20
"""Greatest number of letters of a note within which the letters of a word may be spread in their order."""


@dataclass(frozen=True, slots=True)
class OfferedValue:
    """Entry of a list to choose from.

    value: value that is chosen
    note: short note next to it
    explanation: text shown while the cursor is on it
    """

    value: str
    note: str = ""
    explanation: str = ""


BEGINS, BEGINS_WORD, INSIDE, IN_ORDER, IN_ORDER_BESIDE = range(5)


def search_offers(sought: str, offers: Sequence[OfferedValue]) -> list[OfferedValue]:
    """Return the entries that contain all words of ``sought``, ignoring case, the best matches first.

    A match ranks highest if a value begins with the word, then if one of its parts does, then anywhere in it or in its
    note;
    last if the letters are in the value, or close together in the note, in their order: ``tmr`` for
    ``true_match_rate``.
    """
    words = sought.lower().split()
    if not words:
        return list(offers)
    ranked = [(rank, place) for place, offer in enumerate(offers) if (rank := _rank_offer(words, offer)) is not None]
    return [offers[place] for _, place in sorted(ranked)]


def _rank_offer(words: Sequence[str], offer: OfferedValue) -> Rank | None:
    """Return the rank of the worst match of all words; None if one word does not match."""
    value, beside = offer.value.lower(), f"{offer.note} {offer.explanation}".lower()
    ranks = [_rank_word(word, value, beside) or _rank_in_note(word, offer.note.lower()) for word in words]
    # All words must match, so the worst match decides.
    return None if None in ranks else max((rank for rank in ranks if rank is not None), default=None)


def _rank_word(word: str, value: str, beside: str) -> Rank | None:
    """Return the rank of a word in a value or, where it is spelt out, beside it; None without a match."""
    if value.startswith(word):
        return BEGINS, 0
    if word in value:
        return (BEGINS_WORD if re.search(rf"(?:\b|_){re.escape(word)}", value) else INSIDE), 0
    if word in beside:
        return INSIDE, 1
    span = _subsequence_span(word, value)
    return None if span is None else (IN_ORDER, span)


def _rank_in_note(word: str, words: str) -> Rank | None:
    """Return the rank of a word whose letters are in the note in their order; None without a match."""
    span = _subsequence_span(word, words)
    return (IN_ORDER_BESIDE, span) if span is not None and span <= LONGEST_SPAN else None


def _subsequence_span(letters: str, value: str) -> int | None:
    """Return the length of the shortest stretch of ``value`` that has the letters in order and begins at the start of a
    part.

    Return None if there is no such stretch.
    """
    starts = [match.start() for match in re.finditer(r"[^\W_]+", value) if value[match.start()] == letters[0]]
    spans = []
    for start in starts:
        at = start
        for letter in letters[1:]:
            # The first possible place of each letter gives the shortest stretch from this start.
            at = value.find(letter, at + 1)
            if at < 0:
                break
        else:
            spans.append(at - start)
    return min(spans, default=None)
