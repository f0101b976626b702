"""Names of columns that a statistical program accepts, derived from names that it refuses.

A derived name follows from the names of the released columns alone. It is the same in whatever order they stand.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class NameRules:
    """Rules of a program for the names of columns.

    reserved: words that are no names
    longest: most bytes of a name, or characters where ``counts_characters``
    signs: signs that a name may have beside letters, digits and ``_``
    may_begin_low: a name may begin with ``_``
    has_accents: letters of other alphabets, and with accents, are letters
    folds_case: names that differ by capitals alone are one name
    """

    reserved: re.Pattern[str]
    longest: int
    counts_characters: bool = False
    signs: str = ""
    may_begin_low: bool = True
    has_accents: bool = True
    folds_case: bool = True

    def accepts(self, name: str) -> bool:
        """Return whether the program takes a name unchanged."""
        return bool(name) and self.derive_name(name, clean=False) == name

    def derive_name(self, name: str, taken: Collection[str] = (), *, clean: bool = True) -> str:
        """Derive a name that the program accepts and whose ``key`` is not ``taken``; ``clean`` removes ``_`` at its ends."""
        text = self._replace_signs(name)
        text = text.strip("_") if clean else text
        if not (text[:1].isalpha() or (self.may_begin_low and text[:1] == "_")):
            text = f"v{text}"
        if self.reserved.fullmatch(text):
            text = f"{text}_"
        found, number = self._truncate(text), 1
        while self.key(found) in taken:
            number += 1
            found = f"{self._truncate(text, len(f'_{number}'))}_{number}"
        return found

    def key(self, name: str) -> str:
        """Return a text that is equal for names that the program does not tell apart."""
        return name.casefold() if self.folds_case else name

    def _replace_signs(self, name: str) -> str:
        """Return a name with ``_`` in place of each run of characters that no name may have."""
        if not self.has_accents:
            parts = unicodedata.normalize("NFKD", name)
            name = "".join(char for char in parts if not unicodedata.combining(char))
        return re.sub("\0+", "_", "".join(char if self._is_in_names(char) else "\0" for char in name))

    def _is_in_names(self, char: str) -> bool:
        """Return whether a name may have a character."""
        if char.isascii():
            return char.isalnum() or char == "_" or char in self.signs
        # vowel signs of Indian scripts are marks
        return self.has_accents and (char.isalnum() or unicodedata.category(char).startswith("M"))

    def _truncate(self, name: str, room: int = 0) -> str:
        """Return as much of a name as fits with ``room`` more places."""
        longest = self.longest - room
        return name[:longest] if self.counts_characters else name.encode()[:longest].decode("utf-8", "ignore")


def derive_valid_names(names: Iterable[str], rules: NameRules) -> dict[str, str]:
    """Return the name that a program is to be given for each of these names: the same where it accepts that."""
    given = list(names)
    found: dict[str, str] = {}
    taken = set[str]()
    # sorted, so that the order of the columns decides nothing; accepted names first, since they are to stay
    for name in sorted(given, key=lambda name: (not rules.accepts(name), name)):
        kept = rules.accepts(name) and rules.key(name) not in taken
        found[name] = name if kept else rules.derive_name(name, taken)
        taken.add(rules.key(found[name]))
    return {name: found[name] for name in given}


SPSS_NAMES = NameRules(
    reserved=re.compile("ALL|AND|BY|EQ|GE|GT|LE|LT|NE|NOT|OR|TO|WITH", re.IGNORECASE),
    longest=64,
    signs=".@#$",
    may_begin_low=False,
)
STATA_NAMES = NameRules(
    reserved=re.compile(
        r"_all|_b|byte|_coef|_cons|double|float|if|in|int|long|_n|_N|_pi|_pred|_rc|_skip|str0*([1-9]\d{0,2}|1\d{3}|20[0-3]\d|204[0-5])|strL|using|with"
    ),
    longest=32,
    counts_characters=True,
    folds_case=False,
)
SAS_NAMES = NameRules(
    reserved=re.compile("_N_|_ERROR_|_NUMERIC_|_CHARACTER_|_ALL_", re.IGNORECASE), longest=32, has_accents=False
)
