"""Spellings: whether two texts denote one value, and which confidential value a rounded number stands for.

    numbers      12, 12.0, 1.2e1, and 12,0 in a column of decimal commas; a number rounded to the last place that its
                 column is written to, if at least seven of its digits are left
    categories   1, 1.0 and 1e0, where that makes one level of one text; never a and A, or 1 and 01
    dates        2019-07-31, 2019-07-31 00:00:00, 2019-07-31T00:00:00Z; a date without its time of day is another date

A column has decimal commas where it contains only whole numbers and numbers with one comma. The last place of a column
is a setting of the program that wrote it, a number of significant digits (R's ``write.csv`` 15, ``%g`` 6) or of
decimals (``%.2f``). Seven digits, an error of at most ``LARGEST_ERROR`` of the number, separate writing from rounding:
single precision and R's ``print`` leave them. Rounding to fewer protects, so the release has to state it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .arrays import Floats
from .rows import distinct_codes
from .sorting import sorted_search, sorted_unique

Flags = NDArray[np.bool_]

LARGEST_ERROR = 1e-6
SURE_DIGITS = 15
DECIMAL_COMMA = re.compile(r"\s*[+-]?(?:\d+,\d*|,\d+)(?:[eE][+-]?\d+)?\s*")
WHOLE_NUMBER = re.compile(r"\s*[+-]?\d+(?:[eE][+-]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")
WHOLE_LEVEL = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.0*)?(?:[eE][+]?0{1,3})?")


def read_numbers(values: pd.Series) -> pd.Series:
    """Return the numbers that a column (n,) writes, as float64; NaN where it writes none."""
    if has_decimal_commas(values):
        values = values.astype("str").str.replace(",", ".", regex=False).where(values.notna())
    return pd.to_numeric(values, errors="coerce").astype("float64")


def may_be_thousands(values: pd.Series) -> bool:
    """Return whether the commas of a column may be thousands separators rather than decimal ones."""
    # All commas are followed by exactly three digits, as in 1,234.
    commas = _texts_with_comma(values)
    return bool(commas) and all(THOUSANDS.fullmatch(text) for text in commas)


def has_decimal_commas(values: pd.Series) -> bool:
    """Return whether every value of a column (n,) is a whole number or has a decimal comma, and some have one."""
    # Most columns are dismissed by their first values, without looking at all of them.
    first = values.dropna().head(100)
    if not all(
        isinstance(text, str) and (DECIMAL_COMMA.fullmatch(text) or WHOLE_NUMBER.fullmatch(text)) for text in first
    ):
        return False
    commas = _texts_with_comma(values)
    if not commas or not all(DECIMAL_COMMA.fullmatch(text) for text in commas):
        return False
    others = (text for text in map(str, values.dropna().unique()) if "," not in text)
    return all(WHOLE_NUMBER.fullmatch(text) for text in others) and not may_be_thousands(values)


def _texts_with_comma(values: pd.Series) -> list[str]:
    """Return the distinct texts with a comma in a column; empty for numbers and dates."""
    if pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_datetime64_any_dtype(values.dtype):
        return []
    return [text for text in values.dropna().unique() if isinstance(text, str) and "," in text]


def spell_as_whole(text: str) -> str:
    """Return ``1`` for ``1.0`` and ``1e0``; any other text, including ``01``, unchanged."""
    plain = "." not in text and "e" not in text and "E" not in text
    if plain or not WHOLE_LEVEL.fullmatch(text):
        return text
    return re.split(r"[.eE]", text)[0]


def level_spellings(found: Iterable[str], levels: Sequence[str]) -> Mapping[str, str]:
    """Return the level that each unlisted text stands for, where a whole number is spelt differently."""
    known = {spell_as_whole(level): level for level in levels}
    texts = list(found)
    spelt = {text: known.get(spell_as_whole(text), text) for text in texts}
    one_to_one = len(known) == len(levels) and len(set(spelt.values())) == len(texts)
    # Nothing unless one text stands for one level: where 1 and 1.0 both occur, they may be two levels.
    return {text: level for text, level in spelt.items() if text != level} if one_to_one else {}


def digits_and_decimals(numbers: Floats) -> tuple[int, int]:
    """Return the most significant digits and the most decimals that any of the numbers (n,) needs.

    Decimals of 1,200 are -2.
    """
    digits, decimals = 1, -sys.float_info.max_10_exp
    for number in sorted_unique(numbers[np.isfinite(numbers)]).tolist():
        _, figures, exponent = Decimal(repr(number)).normalize().as_tuple()
        # Programs drop trailing zeros, so no single number shows the setting; the column's maximum does.
        digits, decimals = max(digits, len(figures)), max(decimals, -int(exponent))
        # The result is then that of full precision, whatever follows.
        if digits > SURE_DIGITS:
            break
    return digits, decimals


def rounding_uncertainty(written: Floats, digits_known: tuple[int, int] | None = None) -> Floats:
    """Return the largest difference of each number of a column (n,) from the number that was written so: half a unit of
    its last place.

    ``digits_known`` are the column's digits and decimals, where they are known.
    """
    digits, decimals = digits_known or digits_and_decimals(written)
    size = np.abs(written)
    with np.errstate(all="ignore"):
        # Digits beyond the fifteenth do not count: a double keeps no more (IEEE 754, DBL_DIG), and programs read them
        # differently.
        last = 10.0 ** (_power_of_ten(size) + 1 - min(digits, SURE_DIGITS))
        if digits <= SURE_DIGITS:
            last = np.maximum(last, 10.0 ** float(-decimals))
        half = last / 2 + np.spacing(size)
        # A column of single-precision numbers is uncertain by half of their spacing.
        single = size.astype(np.float32)
        if (single == size).all():
            half = np.maximum(half, np.spacing(single).astype(np.float64) / 2)
    return np.asarray(half, dtype=np.float64)


def _power_of_ten(size: Floats) -> Floats:
    """Return the power of ten of the first digit of each number (n,), all at least 0; 0 for 0."""
    found = np.floor(np.log10(np.where(size > 0, size, 1)))
    # log10 is rounded near powers of ten, so both neighbours are compared.
    found = np.where(10.0**found > size, found - 1, found)
    return np.where(size > 0, np.where(10.0 ** (found + 1) <= size, found + 1, found), 0)


def equal_when_rounded(original: Floats, written: Floats) -> Flags:
    """Return whether each number (n,) is the original (n,) rounded to the last place of its column, however coarse.

    Missing values, NaN, equal missing ones only.
    """
    return _equal_within(original, written, np.inf)


def denote_same_number(original: Floats, written: Floats) -> Flags:
    """Return whether each number (n,) writes the original one (n,), possibly with fewer digits. NaN equals NaN only."""
    return _equal_within(original, written, LARGEST_ERROR)


def _equal_within(original: Floats, written: Floats, largest_error: float) -> Flags:
    """Return whether numbers agree within rounding, and within a relative ``largest_error``."""
    same = np.asarray((original == written) | (np.isnan(original) & np.isnan(written)))
    both = np.isfinite(original) & np.isfinite(written)
    if not (both & ~same).any():
        return same
    ours, theirs = original[both], written[both]
    with np.errstate(invalid="ignore", over="ignore"):
        allowed = np.minimum(rounding_uncertainty(theirs), np.where(ours == 0, 0, largest_error * np.abs(ours)))
        same[both] |= np.abs(ours - theirs) <= allowed
    return same


def unround_to_originals(original: Floats, written: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the original value that each number of a column (k,) writes, and the number of originals it may write,
    (k,) each.

    ``original`` (n,) are the values of all records. Where several are possible the nearest is returned, where none is,
    NaN.
    """
    # All records are candidates, since the rows are not linked.
    values = sorted_unique(original[np.isfinite(original)])
    different = distinct_codes(written)
    found, candidates = _unround_distinct(values, different.values)
    return found[different.codes], candidates[different.codes]


def _unround_distinct(values: Floats, written: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the result of ``unround_to_originals``, given the distinct original values, ascending."""
    given = written[np.isfinite(written)]
    found, candidates = np.full(len(written), np.nan), np.zeros(len(written), dtype=np.int64)
    if not len(values) or not len(given):
        return found, candidates
    there = np.isfinite(written)
    # A column of originals with full precision needs no search, and is left unchanged.
    exact = bool((values[sorted_search(values, given).clip(max=len(values) - 1)] == given).all())
    if exact and (_are_far_apart(values) or digits_and_decimals(given)[0] > SURE_DIGITS):
        return np.where(there, written, np.nan), there.astype(np.int64)
    reach = np.minimum(rounding_uncertainty(given), LARGEST_ERROR * np.abs(given))
    count = np.searchsorted(values, given + reach, side="right") - np.searchsorted(values, given - reach, side="left")
    found[there] = np.where(count > 0, nearest_values(values, given), np.nan)
    candidates[there] = count
    return found, candidates


def nearest_values(values: Floats, numbers: Floats) -> Floats:
    """Return the nearest of at least one ascending values to each number (k,)."""
    above = np.searchsorted(values, numbers).clip(max=len(values) - 1)
    below = (above - 1).clip(min=0)
    nearer = np.abs(values[above] - numbers) < np.abs(numbers - values[below])
    return np.asarray(np.where(nearer, values[above], values[below]), dtype=np.float64)


def _are_far_apart(values: Floats) -> bool:
    """Return whether no two of the ascending values could be written as each other."""
    widest = LARGEST_ERROR * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    return bool((np.diff(values) > 2 * widest).all())


def looks_like_header(header: Iterable[str]) -> bool:
    """Return whether a file's first line can only be names: each begins with a letter or ``_``."""
    # A record with a number or a date cannot look so.
    return all(name[:1].isalpha() or name[:1] == "_" for name in header)
