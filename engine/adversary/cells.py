"""Cells and rows as 64-bit keys that are equal where what they write is equal, so that a million rows are compared in a second.

Numbers are equal that agree to 2^-40, twelve digits: what comes back from a logarithm is the number that went in. A released
column that is written with fewer digits is first mapped to the confidential values that it stands for
(``sfumato.engine.data.spelling``). Levels are equal by their text, dates by their second, a missing value to a missing one alone.

The key of a row is the sum of its cells' keys, each mixed with its column's name (splitmix64, Steele, Lea & Flood 2014). Two different
rows have the same one with probability 2^-64: among 50,000 rows and a million others once in 400 million releases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..data.sorting import is_run_start, sorted_search, sorted_unique, sorted_values
from ..data.spelling import SURE_DIGITS, digits_and_decimals, unround_to_originals

Keys = NDArray[np.uint64]
Cells = Mapping[str, Keys]

MISSING_KEY = np.uint64(0x9E3779B97F4A7C15)
LOOKED_AT = 500
MANY = 20_000
"""Numbers from which on a sample of their digits is looked at before they are sorted."""
BITS = 40


def round_to_40_bits(numbers: Floats) -> Floats:
    """Round numbers (n,) to 40 binary digits."""
    if _are_whole_numbers(numbers):
        return numbers + 0.0
    mantissa, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.rint(mantissa * 2.0**BITS), exponent - BITS) + 0.0, dtype=np.float64)


def _are_whole_numbers(numbers: Floats) -> bool:
    """Return whether all are whole numbers of at most 40 binary digits."""
    first = numbers[:LOOKED_AT]
    with np.errstate(invalid="ignore"):
        return bool((np.rint(first) == first).all() and (np.rint(numbers) == numbers).all() and (np.abs(numbers) < 2.0**BITS).all())  # fmt: skip


def comparable_numbers(data: Microdata, name: str, original: Microdata | None = None) -> Floats:
    """Return the numbers or days of a variable without levels, (n,), NaN missing; as the original has them, where fewer digits write them."""
    return align_with_originals(None if original is None else original.numbers(name), data.numbers(name))


def align_with_originals(originals: Floats | None, numbers: Floats) -> Floats:
    """Return numbers (k,) as the ``originals`` (n,) have them, where fewer digits write these; to 40 binary digits."""
    return round_to_40_bits(numbers if originals is None else _restore_originals(originals, numbers))


def number_keys(numbers: Floats) -> Keys:
    """Return the keys of numbers (n,), NaN missing."""
    return np.where(np.isnan(numbers), MISSING_KEY, mix_bits(numbers.view(np.uint64)))


def _restore_originals(original: Floats, written: Floats) -> Floats:
    """Return the originals (n,) that a column (k,) writes with fewer digits; the column itself where it writes all its digits."""
    if np.array_equal(original, written, equal_nan=True):
        return written
    digits = _most_significant_digits(written)
    if digits > SURE_DIGITS or _most_significant_digits(original) <= digits:
        return written
    found = unround_to_originals(original, written)[0]
    return np.where(np.isnan(found), written, found)


def _most_significant_digits(numbers: Floats) -> int:
    """Return the most significant digits among some of the numbers (n,)."""
    finite = np.isfinite(numbers)
    present = numbers if finite.all() else numbers[finite]
    if len(present) > MANY and _have_all_digits(present[:: len(present) // LOOKED_AT]):
        return SURE_DIGITS + 1
    return sampled_digits(sorted_unique(present))[0]


def sampled_digits(different: Floats) -> tuple[int, int]:
    """Return the most significant digits and the most decimals among some of the different numbers of a column (k,), ascending."""
    return digits_and_decimals(different[:: max(1, len(different) // LOOKED_AT)])


def _have_all_digits(some: Floats) -> bool:
    """Return whether one in ten of some numbers (k,), each counted once, has more digits than are sure: then so have some of all different
    ones.
    """
    return sum(digits_and_decimals(np.array([one]))[0] > SURE_DIGITS for one in set(some.tolist())) > len(some) // 10


def cell_keys(data: Microdata, names: Sequence[str], original: Microdata | None = None) -> Cells:
    """Return the keys of the cells of each named variable, (n,) each; written as those of ``original`` where one is given."""
    return {name: _column_cell_keys(data, name, original) for name in names}


def _column_cell_keys(data: Microdata, name: str, original: Microdata | None) -> Keys:
    column = data.frame[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = np.array([_text_key(str(level)) for level in column.cat.categories], dtype=np.uint64)
        codes = column.cat.codes.to_numpy()
        return np.where(codes < 0, MISSING_KEY, texts[codes]) if len(texts) else np.full(len(codes), MISSING_KEY)
    like = original if original is not None and name not in original.generalised else None
    return number_keys(comparable_numbers(data, name, like))


def _text_key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def mix_bits(keys: Keys) -> Keys:
    """Return numbers (n,) so mixed that each of their bits changes half of the others (splitmix64's finaliser)."""
    found = keys >> np.uint64(30)
    found ^= keys
    found *= np.uint64(0xBF58476D1CE4E5B9)
    shifted = found >> np.uint64(27)
    found ^= shifted
    found *= np.uint64(0x94D049BB133111EB)
    found ^= np.right_shift(found, np.uint64(31), out=shifted)
    return found


def row_keys(cells: Cells, names: Sequence[str], records: int = 0) -> Keys:
    """Return the key of each record's row of these variables, (n,); ``records`` equal ones where there are no variables.

    It is a sum over the variables, whose cells are read one after the other: those of two disjoint sets of variables add up to that of
    both.
    """
    total: Keys | None = None
    for name in names:
        keys = mix_bits(cells[name] ^ np.uint64(_text_key(name)))
        total = keys if total is None else np.add(total, keys, out=total)
    return np.zeros(records, dtype=np.uint64) if total is None else total


def count_occurrences(rows: Keys, among: Keys) -> NDArray[np.int64]:
    """Count how often each of the rows (k,) occurs among others (n,)."""
    return look_up_counts(*distinct_key_counts(among), rows)


def look_up_counts(distinct_keys: Keys, counts: NDArray[np.int64], rows: Keys) -> NDArray[np.int64]:
    """Return how often each of the rows (k,) occurs, by the different keys, ascending, and their counts (``distinct_key_counts``)."""
    if not len(distinct_keys):
        return np.zeros(len(rows), dtype=np.int64)
    place = sorted_search(distinct_keys, rows).clip(max=len(distinct_keys) - 1)
    return np.where(distinct_keys[place] == rows, counts[place], 0).astype(np.int64)


def distinct_key_counts(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Return the different ones of some keys (n,), ascending, and how often each occurs."""
    ascending = sorted_values(keys)
    starts, counts = run_starts_and_lengths(ascending)
    return ascending[starts], counts


def run_starts_and_lengths(ascending: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each different one of the keys (n,), ascending, begins, and how often it occurs."""
    starts = np.flatnonzero(is_run_start(ascending))
    return starts, np.diff(np.append(starts, len(ascending)))


def find_positions(values: Keys, rows: Keys) -> NDArray[np.int64]:
    """Return the place of each row (k,) among ascending values (n,); -1 for a row that is not among them."""
    if not len(values):
        return np.full(len(rows), -1, dtype=np.int64)
    place = sorted_search(values, rows).clip(max=len(values) - 1)
    return np.where(values[place] == rows, place, -1).astype(np.int64)
