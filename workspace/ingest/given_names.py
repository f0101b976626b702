"""Whether texts name people: many have a given name or a title among their words, as names of places rarely have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

GIVEN_NAMES = frozenset(
    """
    abdul abdullah ahmed albert alejandro alexander alfred ali alice amanda ana anders andreas andrew andrzej andré
    angela angelo anna anne anthony antonio arthur ashley barbara benjamin brian bruno carlo carlos carmen carol
    catherine charles christine christopher daniel david deborah dieter dolores domenico donna dr edward elizabeth
    emily emma eric erik fatima fernando francesco francisco franco frank françois gary george giovanna giovanni
    giuseppe gregory günter hans harold hassan heinz helen helga henry hussein ibrahim isabel isabelle ivan jack
    jacques james jan jason javier jean jennifer jessica jesús johan john jorge jose josefa joseph josé juan julia
    jürgen karen karl katherine kenneth kevin khalil klaus krzysztof larry lars laura laurent linda lisa louis lucia
    luigi luis manuel marco margaret maria marie mario mark martin mary matthew melissa michael michel michelle
    miguel miss mohamed mohammad monika monique mr mrs ms muhammad nancy nathalie nicola nicolas nils olaf olafur
    omar paolo patricia patrick paul pedro peter petra philip philippe pierre pietro pilar piotr raymond renate
    richard robert roger ronald rosa ruth sabine salvatore samuel sandra sarah scott sergei stefan stefano stephen
    steven susan sylvie teresa thomas timothy ursula vincenzo vladimir walter william wolfgang
    """.split()  # noqa: SIM905 (one name a line would be 200 lines)
)
"""Given names that are frequent in Europe, in the Americas and in the Arab world, and titles before a name."""
MIN_TEXTS = 10
"""Fewest different texts among which given names say something."""
MIN_SHARE = 0.12
"""Share of the different texts with a given name from which they may name people.

In the tables of ``tests/benchmarks/column_forms.toml`` 0.24 or more of the names of people have one, 0.15 of those of
sole traders and firms, and at most 0.09 of the names of places, firms and things, except 0.16 of 50 airports.
"""
MAX_WORDS = 7
"""Most words of a name."""


PLACE_WORDS = frozenset(
    ["airport", "airline", "station", "city", "town", "village", "county", "country", "street", "river"]
)
"""Words of a column's name that say that its values name something which is often named after a person."""


def names_places(words: Sequence[str]) -> bool:
    """Return whether the words of a column's name end in a place: a city's name is none of a person, its mayor's is."""
    nouns = [word for word in words if word not in ("name", "names")]
    return bool(nouns) and nouns[-1] in PLACE_WORDS


def may_name_people(texts: Iterable[str]) -> bool:
    """Return whether so many different texts have a given name that they may name people."""
    words = [re.findall(r"[^\W\d_]+", text.lower()) for text in texts]
    named = sum(len(some) <= MAX_WORDS and not GIVEN_NAMES.isdisjoint(some) for some in words)
    return len(words) >= MIN_TEXTS and named >= MIN_SHARE * len(words)
