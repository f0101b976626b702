"""Detection of the decimal sign and the thousands sign with which a column of text writes numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WHOLE_NUMBER = r"[+-]?\d+"
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_NUMBER_PATTERNS: dict[tuple[str, str], re.Pattern[str]] = {
    (decimal, thousands): re.compile(
        rf"[+-]?(?=\d|{sign})(?:\d{{1,3}}(?:{group}\d{{3}})+|\d+)?(?:(?<=\d){sign}\d*|(?<!\d){sign}\d+)?{_EXPONENT}"
        if group
        else rf"[+-]?(?:\d+(?:{sign}\d*)?|{sign}\d+){_EXPONENT}"
    )
    for decimal, sign in ((".", r"\."), (",", ","))
    for thousands, group in (("", ""), (",", ","), (".", r"\."), (" ", "[ \u00a0\u202f\u2009]"), ("'", "['\u2019]"))
    if thousands != decimal
}
_ANY_NUMBER = re.compile(r"[+-]?[\d.,'\u2019 \u00a0\u202f\u2009]*\d[\d.,]*(?:[eE][+-]?\d+)?%?")


@dataclass(frozen=True, slots=True)
class NumberSigns:
    """Signs that read most numeric columns, with alternatives that read as many.

    decimal: decimal sign
    thousands: sign that groups thousands, empty for none
    n_read: number of columns that they read
    columns: number of columns with signs in their numbers
    other_decimals: decimal signs that read as many columns, but to other numbers
    other_thousands: thousands signs that read as many columns, but to other numbers
    """

    decimal: str
    thousands: str
    n_read: int
    columns: int
    other_decimals: tuple[str, ...]
    other_thousands: tuple[str, ...]


def write_padded_digits(texts: Iterable[str]) -> bool:
    """Return whether all texts are digits, and some begin with a zero that a number would lose, such as 01001."""
    padded = False
    for text in texts:
        if not (text.isascii() and text.isdigit()):
            return False
        padded |= len(text) > 1 and text[0] == "0"
    return padded


def looks_like_number(cell: str) -> bool:
    """Return whether a text writes a number under any signs."""
    return any(pattern.fullmatch(cell) and any(map(str.isdigit, cell)) for pattern in _NUMBER_PATTERNS.values())


def detect_number_signs(columns: Sequence[Sequence[str]]) -> NumberSigns | None:
    """Return the signs that read most of the columns that have signs in their numbers; None where no column has any.

    Of equally good signs the plainest are chosen: no thousands sign, a decimal point.
    """
    signed = [
        column
        for column in columns
        if column
        and all(_ANY_NUMBER.fullmatch(cell) for cell in column)
        # whole numbers without signs read alike under all of them
        and not all(re.fullmatch(WHOLE_NUMBER, cell) for cell in column)
    ]
    read = {
        signs: sum(all(pattern.fullmatch(cell) for cell in column) for column in signed)
        for signs, pattern in _NUMBER_PATTERNS.items()
    }
    best = min(read, key=lambda signs: (-read[signs], signs[1] != "", signs[0] != "."))
    if not signed or not read[best]:
        return None
    seen = "".join(cell for column in signed for cell in column)
    same = [signs for signs, count in read.items() if count == read[best] and _reads_differently(signs, best, signed)]
    decimals = tuple(dict.fromkeys(decimal for decimal, _ in same if decimal != best[0]))
    thousands = tuple(dict.fromkeys(group for _, group in same if group not in ("", best[1])))
    # a sign that occurs nowhere must not be declared
    grouped = best[1] if any(sign in seen for sign in _thousands_characters(best[1])) else ""
    return NumberSigns(best[0], grouped, read[best], len(signed), decimals, thousands)


def _thousands_characters(thousands: str) -> str:
    """Return the characters that a thousands sign stands for, such as the kinds of blanks and of apostrophes."""
    return {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}.get(thousands, thousands)


def _reads_differently(key: tuple[str, str], best: tuple[str, str], columns: Sequence[Sequence[str]]) -> bool:
    """Return whether other signs read some column too, but to other numbers."""
    return any(
        all(_NUMBER_PATTERNS[key].fullmatch(cell) for cell in column)
        and any(parse_number(cell, *key) != parse_number(cell, *best) for cell in column)
        for column in columns
    )


def parse_number(text: str, decimal: str, thousands: str) -> float | None:
    """Parse the number that a text writes under these signs; None where it writes none."""
    text = text.strip()
    if not _NUMBER_PATTERNS[decimal, thousands].fullmatch(text) or not any(map(str.isdigit, text)):
        return None
    for sign in _thousands_characters(thousands):
        text = text.replace(sign, "")
    return float(text.replace(decimal, "."))
