"""By which signs a column of text writes numbers: the decimal sign and the one that groups thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

WHOLE = r"[+-]?\d+"
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_NUMBERS: dict[tuple[str, str], re.Pattern[str]] = {
    (decimal, thousands): re.compile(
        rf"[+-]?(?:\d{{1,3}}(?:{group}\d{{3}})+|\d+)?(?:(?<=\d){sign}\d*|(?<!\d){sign}\d+)?{_EXPONENT}"
        if group
        else rf"[+-]?(?:\d+(?:{sign}\d*)?|{sign}\d+){_EXPONENT}"
    )
    for decimal, sign in ((".", r"\."), (",", ","))
    for thousands, group in (("", ""), (",", ","), (".", r"\."), (" ", "[ \u00a0\u202f\u2009]"), ("'", "['\u2019]"))
    if thousands != decimal
}
_ANY_NUMBER = re.compile(r"[+-]?[\d.,'\u2019 \u00a0\u202f\u2009]*\d[\d.,]*(?:[eE][+-]?\d+)?%?")


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs that read ``read`` of ``columns`` columns, and others that read as many of them to other numbers."""

    decimal: str
    thousands: str
    read: int
    columns: int
    other_decimals: tuple[str, ...]
    other_thousands: tuple[str, ...]


def is_number(cell: str) -> bool:
    """Whether a text writes a number under any signs."""
    return any(pattern.fullmatch(cell) and any(map(str.isdigit, cell)) for pattern in _NUMBERS.values())


def signs_of(columns: Sequence[Sequence[str]]) -> Signs | None:
    """The signs that read most of the columns that have any in their numbers, the plainest of equals; None where no column has."""
    signed = [
        column
        for column in columns
        if column
        and all(_ANY_NUMBER.fullmatch(cell) for cell in column)
        and not all(re.fullmatch(WHOLE, cell) for cell in column)
    ]
    read = {
        signs: sum(all(pattern.fullmatch(cell) for cell in column) for column in signed)
        for signs, pattern in _NUMBERS.items()
    }
    best = min(read, key=lambda signs: (-read[signs], signs[1] != "", signs[0] != "."))
    if not signed or not read[best]:
        return None
    seen = "".join(cell for column in signed for cell in column)
    same = [signs for signs, count in read.items() if count == read[best] and _differs(signs, best, signed)]
    decimals = tuple(dict.fromkeys(decimal for decimal, _ in same if decimal != best[0]))
    thousands = tuple(dict.fromkeys(group for _, group in same if group not in ("", best[1])))
    grouped = best[1] if any(sign in seen for sign in _signs(best[1])) else ""
    return Signs(best[0], grouped, read[best], len(signed), decimals, thousands)


def _signs(thousands: str) -> str:
    return {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}.get(thousands, thousands)


def _differs(key: tuple[str, str], best: tuple[str, str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether a reading that is possible too gives other numbers."""
    return any(
        all(_NUMBERS[key].fullmatch(cell) for cell in column)
        and any(number(cell, *key) != number(cell, *best) for cell in column)
        for column in columns
    )


def number(text: str, decimal: str, thousands: str) -> float | None:
    """The number that a text writes under these signs; None where it writes none."""
    text = text.strip()
    if not _NUMBERS[decimal, thousands].fullmatch(text) or not any(map(str.isdigit, text)):
        return None
    for sign in _signs(thousands):
        text = text.replace(sign, "")
    return float(text.replace(decimal, "."))
