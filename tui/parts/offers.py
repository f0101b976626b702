"""What a list offers to choose from, and which of it a typed text seeks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

Rank = tuple[int, int]
LONGEST_SPAN = 20
"""Letters of the words beside a value within which those of a text stand in their order."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing to choose: the ``value`` that is taken, a few ``words`` beside it, and ``more`` that is said of it alone."""

    value: str
    words: str = ""
    more: str = ""


BEGINS, BEGINS_WORD, INSIDE, IN_ORDER, IN_ORDER_BESIDE = range(5)


def found(sought: str, offers: Sequence[Offer]) -> list[Offer]:
    """The offers that have every word of a text, whatever its case, the best first and else in their order.

    A word is best where a value begins with it, then where one of its parts does, then anywhere in it or in the words beside it;
    last where its letters stand in the value, or close together in the words beside it, in their order: ``tmr`` for ``true_match_rate``.
    """
    words = sought.lower().split()
    if not words:
        return list(offers)
    ranked = [(rank, place) for place, offer in enumerate(offers) if (rank := _rank(words, offer)) is not None]
    return [offers[place] for _, place in sorted(ranked)]


def _rank(words: Sequence[str], offer: Offer) -> Rank | None:
    """How well all words are found, the worst of them first; None where one is not."""
    value, beside = offer.value.lower(), f"{offer.words} {offer.more}".lower()
    ranks = [_rank_of(word, value, beside) or _close(word, offer.words.lower()) for word in words]
    return None if None in ranks else max((rank for rank in ranks if rank is not None), default=None)


def _rank_of(word: str, value: str, beside: str) -> Rank | None:
    if value.startswith(word):
        return BEGINS, 0
    if word in value:
        return (BEGINS_WORD if re.search(rf"(?:\b|_){re.escape(word)}", value) else INSIDE), 0
    if word in beside:
        return INSIDE, 1
    span = _in_order(word, value)
    return None if span is None else (IN_ORDER, span)


def _close(word: str, words: str) -> Rank | None:
    span = _in_order(word, words)
    return (IN_ORDER_BESIDE, span) if span is not None and span <= LONGEST_SPAN else None


def _in_order(letters: str, value: str) -> int | None:
    """Between how many letters of a value these stand, in their order and beginning with the first that begins one of its parts."""
    starts = [match.start() for match in re.finditer(r"[^\W_]+", value) if value[match.start()] == letters[0]]
    spans = []
    for start in starts:
        at = start
        for letter in letters[1:]:
            at = value.find(letter, at + 1)
            if at < 0:
                break
        else:
            spans.append(at - start)
    return min(spans, default=None)
