"""Search of the manual by words: the sections that match them best.

A section's score is the weighted sum of BM25 (Robertson & Zaragoza 2009, section 3.4) over its heading, the terms that
its lists define and its text. The score is raised where the words stand near each other.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.engine.errors import BadInput

from . import TOPICS, ManualSection, all_sections

MOST_HITS = 8
SATURATION = 1.2
"""k1 of BM25: how soon further occurrences of a word add little."""
FIELDS = {"heading": (4.0, 0.75), "terms": (0.5, 0.3), "body": (1.0, 0.5)}
"""For each field of a section its weight, terms being part of the text too, and b of BM25: how far a long field weakens a word."""
NEARNESS = 1.0
"""By which share the score is raised at most, where all words stand side by side."""

_WORD = re.compile(r"[^\W_]+")
_STOP = _WORD.findall(
    "a about after all an and are as at be before by can do does for from get has have how i if in into is it its many me much my no of on"
    " or our own sfumato the their them there this to was what when where which who why will with you your"
)
_ENDS = ("ations", "ation", "ings", "ing", "iers", "ier", "ers", "er", "ies", "ied", "ed", "es", "s", "e", "y")


@dataclass(frozen=True)
class ManualHit:
    """Section that contains words of a search.

    section: the section
    lines: its lines that contain most of them
    missing_words: words that it lacks
    """

    section: ManualSection
    lines: tuple[str, ...]
    missing_words: tuple[str, ...] = ()


@dataclass(frozen=True)
class _IndexedSection:
    """Section as stems of words.

    section: the section
    stem_counts: occurrences of each stem, by field
    stem_sequence: stems of heading and body in their order
    """

    section: ManualSection
    stem_counts: Mapping[str, Counter[str]]
    stem_sequence: tuple[str, ...]

    def has_stem(self, stem: str) -> bool:
        return any(stem in counts for counts in self.stem_counts.values())


@functools.cache
def _word_stem(word: str) -> str:
    """Return the stem that the forms of a word share: ``waive``, ``waived`` and ``waiver`` are ``waiv``."""
    end = next((end for end in _ENDS if word.endswith(end) and len(word) - len(end) >= 3), "")
    # Doubled consonants are undone below: ``planning`` is ``plan``, but ``passing`` stays ``pass``.
    stem = word.removesuffix(end)
    return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "aeiouls" else stem


def _text_stems(text: str) -> list[str]:
    return [_word_stem(word) for word in _WORD.findall(text.lower())]


@functools.cache
def _manual_index() -> tuple[_IndexedSection, ...]:
    return tuple(_index_section(section) for section in all_sections())


def _index_section(section: ManualSection) -> _IndexedSection:
    """Return a section as stems, counted by field."""
    heading, body = (_text_stems(text) for text in (section.title, section.body))
    terms = [stem for term in section.terms for stem in _text_stems(term)]
    fields = {"heading": [one for one in heading if one not in _STOP], "terms": terms, "body": body}
    counts = {name: Counter(stems) for name, stems in fields.items()}
    return _IndexedSection(section, counts, (*heading, *body))


def _query_words(words: str) -> dict[str, str]:
    """Return the words of a query by their stems, without stop words unless it has no others."""
    asked = re.sub(r"^what (?:does|do|is|are) (.*?)(?: mean)?\??$", r"\1", " ".join(words.lower().split()))
    typed = _WORD.findall(asked)
    # A query of stop words alone is searched as it is.
    return {_word_stem(word): word for word in [word for word in typed if word not in _STOP] or typed}


def search_manual(words: str) -> list[ManualHit]:
    """Return the sections that match the words best, in any form and order.

    Raises BadInput, also for a word that is on no page.
    """
    asked = _query_words(words)
    if not asked:
        raise BadInput("--find", "needs a word to look for, such as: sfumato help --find hold-out")
    nowhere = [word for stem, word in asked.items() if not any(one.has_stem(stem) for one in _manual_index())]
    if nowhere:
        why = f'"{nowhere[0]}" is on no page; try fewer or other words, or sfumato help for the pages'
        raise BadInput("--find", why)
    scored = [(score, one) for one in _manual_index() if (score := _section_score(one, list(asked)))]
    scored.sort(key=lambda found: (-found[0], TOPICS.index(found[1].section.page), found[1].section.position))
    return [_manual_hit(one, asked) for _, one in scored[:MOST_HITS]]


def _manual_hit(one: _IndexedSection, asked: Mapping[str, str]) -> ManualHit:
    """Return the hit of a section: its best lines, and the words that it lacks."""
    lacks = tuple(word for stem, word in asked.items() if not one.has_stem(stem))
    return ManualHit(one.section, _best_lines(one.section, list(asked)), lacks)


@functools.cache
def _mean_lengths() -> Mapping[str, float]:
    """Return the mean number of stems of a section, by field."""
    return {
        name: sum(one.stem_counts[name].total() for one in _manual_index()) / len(_manual_index()) for name in FIELDS
    }


@functools.cache
def _stem_rarity(stem: str) -> float:
    """Return the inverse document frequency of BM25, never below 0."""
    having = sum(one.has_stem(stem) for one in _manual_index())
    return math.log(1 + (len(_manual_index()) - having + 0.5) / (having + 0.5))


def _section_score(one: _IndexedSection, asked: Sequence[str]) -> float:
    """Return the score of a section for the stems of a query."""
    score = 0.0
    for name, (weight, b) in FIELDS.items():
        counts = one.stem_counts[name]
        # BM25: a word counts by its rarity, and the more the shorter the field is.
        damping = SATURATION * (1 - b + b * counts.total() / _mean_lengths()[name])
        score += sum(weight * _stem_rarity(stem) * counts[stem] / (counts[stem] + damping) for stem in asked)
    return score * (1 + NEARNESS * _word_nearness(one.stem_sequence, asked))


def _word_nearness(stream: Sequence[str], asked: Sequence[str]) -> float:
    """Return the number of words over the length of the shortest stretch with all of them, at most 1; 0 for one word.

    .
    """
    last: dict[str, int] = {}
    shortest = math.inf
    for place, stem in enumerate(stream):
        if stem in asked:
            last[stem] = place
            if len(last) == len(asked):
                shortest = min(shortest, place - min(last.values()) + 1)
    return len(asked) / shortest if len(asked) > 1 else 0.0


def _best_lines(section: ManualSection, asked: Sequence[str]) -> tuple[str, ...]:
    """Return the two parts of a section with most of the words, in its order; its first where only the heading matches.

    .
    """
    text = re.sub(r"^(?:#.*|!\[.*|\|[-| :]+\||```.*)$", "", section.body, flags=re.MULTILINE)
    split = re.split(r"\n\s*\n|\n *- |(?<=[.;])\s", f"\n{text}")
    parts = [" ".join(part.split()).removeprefix("- ") for part in split if part.strip()]
    counted = [(len(set(asked) & set(_text_stems(part))), place) for place, part in enumerate(parts)]
    best = sorted(sorted(counted, key=lambda one: (-one[0], one[1]))[:2], key=lambda one: one[1])
    return tuple(parts[place] for number, place in best if number) or tuple(parts[:1])
