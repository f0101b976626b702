"""Cells and rows as 64-bit numbers that are equal where what they write is equal, so that a million rows are compared in a second.

Numbers are equal that agree to 2^-40, twelve digits: what comes back from a logarithm is the number that went in. A released
column that is written with fewer digits is first taken back to the confidential values that it writes
(``sfumato.engine.data.spelling``). Levels are equal by their text, dates by their second, a missing value to a missing one alone.

The number of a row is the sum of its cells' numbers, each mixed with its column's name (splitmix64, Steele, Lea & Flood 2014). Two different
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
from ..data.sorting import distinct, is_first, sorted_search, sorted_values
from ..data.spelling import SURE_DIGITS, digits_and_decimals, unround

Keys = NDArray[np.uint64]
Cells = Mapping[str, Keys]

MISSING = np.uint64(0x9E3779B97F4A7C15)
LOOKED_AT = 500
MANY = 20_000
"""Numbers from which on a sample of their digits is looked at before they are sorted."""
BITS = 40


def canonical(numbers: Floats) -> Floats:
    """Numbers (n,) to 40 binary digits."""
    if _are_whole(numbers):
        return numbers + 0.0
    mantissa, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.rint(mantissa * 2.0**BITS), exponent - BITS) + 0.0, dtype=np.float64)


def _are_whole(numbers: Floats) -> bool:
    """Whether all are whole numbers of at most 40 binary digits."""
    first = numbers[:LOOKED_AT]
    with np.errstate(invalid="ignore"):
        return bool((np.rint(first) == first).all() and (np.rint(numbers) == numbers).all() and (np.abs(numbers) < 2.0**BITS).all())  # fmt: skip


def comparable(data: Microdata, name: str, original: Microdata | None = None) -> Floats:
    """The numbers or days of a variable without levels, (n,), NaN missing; as the original has them, where fewer digits write them."""
    return written_as(None if original is None else original.numbers(name), data.numbers(name))


def written_as(originals: Floats | None, numbers: Floats) -> Floats:
    """Return numbers (k,) as the ``originals`` (n,) have them, where fewer digits write these; to 40 binary digits."""
    return canonical(numbers if originals is None else _as_originals(originals, numbers))


def number_cells(numbers: Floats) -> Keys:
    """Return the cells of numbers (n,), NaN missing."""
    return np.where(np.isnan(numbers), MISSING, mixed(numbers.view(np.uint64)))


def _as_originals(original: Floats, written: Floats) -> Floats:
    """What a column (k,) writes of the originals (n,); itself where it writes all its digits."""
    if np.array_equal(original, written, equal_nan=True):
        return written
    digits = _digits(written)
    if digits > SURE_DIGITS or _digits(original) <= digits:
        return written
    found = unround(original, written)[0]
    return np.where(np.isnan(found), written, found)


def _digits(numbers: Floats) -> int:
    """The most significant digits among some of the numbers (n,)."""
    finite = np.isfinite(numbers)
    present = numbers if finite.all() else numbers[finite]
    if len(present) > MANY and _have_all_digits(present[:: len(present) // LOOKED_AT]):
        return SURE_DIGITS + 1
    return some_digits(distinct(present))[0]


def some_digits(different: Floats) -> tuple[int, int]:
    """The most significant digits and the most decimals among some of the different numbers of a column (k,), ascending."""
    return digits_and_decimals(different[:: max(1, len(different) // LOOKED_AT)])


def _have_all_digits(some: Floats) -> bool:
    """Whether one in ten of some numbers (k,) has more than the digits that are sure, each counted once: then so have some of all different ones."""
    return sum(digits_and_decimals(np.array([one]))[0] > SURE_DIGITS for one in set(some.tolist())) > len(some) // 10


def cells_of(data: Microdata, names: Sequence[str], original: Microdata | None = None) -> Cells:
    """The cells of each named variable, (n,) each; held against those of ``original`` where one is given."""
    return {name: _cells(data, name, original) for name in names}


def _cells(data: Microdata, name: str, original: Microdata | None) -> Keys:
    column = data.frame[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = np.array([_text_key(str(level)) for level in column.cat.categories], dtype=np.uint64)
        codes = column.cat.codes.to_numpy()
        return np.where(codes < 0, MISSING, texts[codes]) if len(texts) else np.full(len(codes), MISSING)
    like = original if original is not None and name not in original.generalised else None
    return number_cells(comparable(data, name, like))


def _text_key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def mixed(keys: Keys) -> Keys:
    """Numbers (n,) so mixed that each of their bits moves half of the others (splitmix64's finaliser)."""
    found = keys >> np.uint64(30)
    found ^= keys
    found *= np.uint64(0xBF58476D1CE4E5B9)
    shifted = found >> np.uint64(27)
    found ^= shifted
    found *= np.uint64(0x94D049BB133111EB)
    found ^= np.right_shift(found, np.uint64(31), out=shifted)
    return found


def rows_of(cells: Cells, names: Sequence[str], records: int = 0) -> Keys:
    """The row of these variables of each record, (n,); ``records`` that are all alike where there are no variables.

    A sum over the variables, which are asked for one after the other: those of two disjoint sets of variables add up to that of both.
    """
    total: Keys | None = None
    for name in names:
        keys = mixed(cells[name] ^ np.uint64(_text_key(name)))
        total = keys if total is None else np.add(total, keys, out=total)
    return np.zeros(records, dtype=np.uint64) if total is None else total


def occurrences(rows: Keys, among: Keys) -> NDArray[np.int64]:
    """How often each of the rows (k,) occurs among others (n,)."""
    return times_in(*counted_keys(among), rows)


def times_in(held: Keys, counts: NDArray[np.int64], rows: Keys) -> NDArray[np.int64]:
    """How often each of the rows (k,) occurs, by the different keys, ascending, and how often each of these does (``counted_keys``)."""
    if not len(held):
        return np.zeros(len(rows), dtype=np.int64)
    place = sorted_search(held, rows).clip(max=len(held) - 1)
    return np.where(held[place] == rows, counts[place], 0).astype(np.int64)


def counted_keys(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """The different ones of some keys (n,), ascending, and how often each occurs."""
    ascending = sorted_values(keys)
    starts, counts = runs_in(ascending)
    return ascending[starts], counts


def runs_in(ascending: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each different one of the keys (n,), ascending, begins, and how often it occurs."""
    starts = np.flatnonzero(is_first(ascending))
    return starts, np.diff(np.append(starts, len(ascending)))


def positions_in(values: Keys, rows: Keys) -> NDArray[np.int64]:
    """Where each of the rows (k,) stands among values, ascending (n,); -1 where it is none of them."""
    if not len(values):
        return np.full(len(rows), -1, dtype=np.int64)
    place = sorted_search(values, rows).clip(max=len(values) - 1)
    return np.where(values[place] == rows, place, -1).astype(np.int64)
