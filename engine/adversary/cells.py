"""Cells and rows as 64-bit keys that are equal where values are equal, for fast comparison of large tables.

Numbers are equal if they agree to 40 bits, twelve digits: a number survives a logarithm and back. A released column
with fewer digits is first mapped to the confidential values that it stands for (``sfumato.engine.data.spelling``).
Levels are equal by text, dates by second, a missing value to a missing one only.

The key of a row is the sum of its cells' keys, each mixed with its column's name (splitmix64, Steele, Lea & Flood
2014). Two different rows collide with probability 2^-64: among 50,000 rows and a million others once in 400 million
releases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.bits import MISSING_KEY, Keys, mix_bits
from ..data.long_arrays import (
    compress_column,
    compute_column,
    is_long,
    long_blocks,
    marked_rows,
    new_column,
    sample_column,
    take_block,
)
from ..data.microdata import Microdata
from ..data.sorting import count_equal, is_run_start, sorted_search, sorted_unique, sorted_values
from ..data.spelling import SURE_DIGITS, digits_and_decimals, unround_to_originals
from ..data.units import Units

Cells = Mapping[str, Keys]

LOOKED_AT = 500
MANY = 20_000
"""Number of values above which a sample of digits is checked before sorting."""
BITS = 40


def round_to_40_bits(numbers: Floats) -> Floats:
    """Round numbers (n,) to 40 significant bits."""
    # Adding 0.0 turns -0.0 into 0.0, whose bits differ.
    if _are_whole_numbers(numbers):
        return compute_column(len(numbers), np.float64, lambda rows: numbers[rows] + 0.0)

    def rounded(rows: slice) -> Floats:
        mantissa, exponent = np.frexp(numbers[rows])
        return np.asarray(np.ldexp(np.rint(mantissa * 2.0**BITS), exponent - BITS) + 0.0)

    return compute_column(len(numbers), np.float64, rounded)


def _are_whole_numbers(numbers: Floats) -> bool:
    """Return whether all are integers below 2^40."""
    # A few values settle most columns without a pass over all.
    first = numbers[:LOOKED_AT]
    with np.errstate(invalid="ignore"):
        return bool((np.rint(first) == first).all()) and all(
            (np.rint(numbers[rows]) == numbers[rows]).all() and (np.abs(numbers[rows]) < 2.0**BITS).all()
            for rows in long_blocks(len(numbers))
        )


def comparable_numbers(data: Microdata, name: str, original: Microdata | None = None) -> Floats:
    """Return the numbers or days of a variable without levels, (n,), NaN if missing, as ``original`` spells them."""
    return align_with_originals(None if original is None else original.numbers(name), data.numbers(name))


def align_with_originals(originals: Floats | None, numbers: Floats) -> Floats:
    """Return numbers (k,) as the equal ``originals`` (n,) if these have more digits, rounded to 40 bits."""
    return round_to_40_bits(numbers if originals is None else _restore_originals(originals, numbers))


def number_keys(numbers: Floats) -> Keys:
    """Return the keys of numbers (n,), NaN if missing."""
    return compute_column(
        len(numbers),
        np.uint64,
        lambda rows: np.where(np.isnan(numbers[rows]), MISSING_KEY, mix_bits(numbers[rows].view(np.uint64))),
    )


def _restore_originals(original: Floats, written: Floats) -> Floats:
    """Return the originals (n,) that a rounded column (k,) stands for; the column itself if it is not rounded."""
    if len(original) == len(written) and all(
        np.array_equal(original[rows], written[rows], equal_nan=True) for rows in long_blocks(len(written))
    ):
        return written
    digits = _most_significant_digits(written)
    if digits > SURE_DIGITS or _most_significant_digits(original) <= digits:
        return written
    found = unround_to_originals(original, written)[0]
    return compute_column(
        len(written), np.float64, lambda rows: np.where(np.isnan(found[rows]), written[rows], found[rows])
    )


def _most_significant_digits(numbers: Floats) -> int:
    """Return the largest number of significant digits among some of the numbers (n,)."""
    finite = compute_column(len(numbers), np.bool_, lambda rows: np.isfinite(numbers[rows]))
    present = numbers if finite.all() else compress_column(numbers, finite)
    if len(present) > MANY and _have_all_digits(sample_column(present, len(present) // LOOKED_AT)):
        return SURE_DIGITS + 1
    return sampled_digits(sorted_unique(present))[0]


def sampled_digits(different: Floats) -> tuple[int, int]:
    """Return the most significant digits and the most decimals in a sample of distinct numbers (k,), ascending."""
    return digits_and_decimals(sample_column(different, max(1, len(different) // LOOKED_AT)))


def _have_all_digits(some: Floats) -> bool:
    """Return whether more than a tenth of some distinct numbers (k,) have all digits."""
    # Then so have some in any sample, and sorting all numbers is spared.
    return sum(digits_and_decimals(np.array([one]))[0] > SURE_DIGITS for one in set(some.tolist())) > len(some) // 10


def cell_keys(data: Microdata, names: Sequence[str], original: Microdata | None = None) -> Cells:
    """Return the cell keys of each named variable, (n,) each; numbers as spelled by ``original`` if given."""
    return {name: _column_cell_keys(data, name, original) for name in names}


def _column_cell_keys(data: Microdata, name: str, original: Microdata | None) -> Keys:
    """Return the cell keys of one variable, (n,)."""
    column = data.frame[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = np.array([_text_key(str(level)) for level in column.cat.categories], dtype=np.uint64)
        codes = column.cat.codes.to_numpy()
        # the code of a missing level is -1, the last
        keys = np.append(texts, MISSING_KEY)
        return compute_column(len(codes), np.uint64, lambda rows: keys[codes[rows]])
    like = original if original is not None and name not in original.generalised else None
    return number_keys(comparable_numbers(data, name, like))


def _text_key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def unit_keys(row_keys: Keys, units: Units) -> Keys:
    """Return the key of the records of each unit, (U,), which is equal where these are equal in any order.

    It is the sum of the mixed row keys (n,) modulo 2^64, so that it stands for a multiset: a record that occurs twice
    differs from one that occurs once.
    """
    # the mixed bits of 0 are 0, and a row with this key would not count
    return np.asarray(units.sum_by_unit(mix_bits(row_keys + MISSING_KEY)), dtype=np.uint64)


def sum_of_neighbours(row_keys: Keys, size: int) -> Keys:
    """Return the keys of the ``size`` records from each one on, (n - size + 1,), as ``unit_keys`` has those of a unit."""
    # unsigned sums are modulo 2^64, and so are their differences
    sums = np.cumsum(np.concatenate([np.zeros(1, dtype=np.uint64), mix_bits(row_keys + MISSING_KEY)]), dtype=np.uint64)
    return np.asarray(sums[size:] - sums[:-size], dtype=np.uint64)


def break_ties_by_unit(row_keys: Keys, units: Units) -> Keys:
    """Return keys (n,) that sort records as their row keys do, and equal rows by the records of their units.

    Records that are equal, of units that are not, are not the same where whole units are compared: the order of the file
    must not choose among them.
    """
    # 48 bits tell rows apart well enough to order them
    low = np.uint64(0xFFFF)
    return np.asarray((row_keys & ~low) | (unit_keys(row_keys, units)[units.unit_of] & low))


def row_keys(cells: Cells, names: Sequence[str], records: int = 0) -> Keys:
    """Return the key of each record's row of these variables, (n,); zeros for ``records`` records without variables."""
    total: Keys | None = None
    for name in names:
        keys, text = cells[name], np.uint64(_text_key(name))
        is_first, total = total is None, new_column(len(keys), np.uint64) if total is None else total
        # A sum, so that the keys of disjoint sets of variables add up to that of their union.
        for rows in long_blocks(len(keys)):
            own = mix_bits(keys[rows] ^ text)
            total[rows] = own if is_first else total[rows] + own
    return np.zeros(records, dtype=np.uint64) if total is None else total


def count_occurrences(rows: Keys, among: Keys) -> NDArray[np.int64]:
    """Count the occurrences of each of the rows (k,) among others (n,)."""
    if rows is among and is_long(len(rows)):
        return count_equal(rows)
    return look_up_counts(*distinct_key_counts(among), rows)


def count_sharing(rows: Keys, units: Units | None) -> NDArray[np.int64]:
    """Count those who share each of the rows (n,): the records, or the units of which some record has the row.

    Who is found in four rows of one household is found: these are no four people among whom somebody hides.
    """
    if units is None:
        return count_occurrences(rows, rows)
    # one mix within the other: rows may be small numbers, as those of units are
    pairs = mix_bits(rows ^ mix_bits(units.unit_of.astype(np.uint64) + np.uint64(1)))
    return count_occurrences(rows, rows[np.unique(pairs, return_index=True)[1]])


def look_up_counts(distinct_keys: Keys, counts: NDArray[np.int64], rows: Keys) -> NDArray[np.int64]:
    """Return the count of each of the rows (k,), given distinct keys, ascending, with counts."""
    if not len(distinct_keys):
        return np.zeros(len(rows), dtype=np.int64)

    def counts_of(some: slice) -> NDArray[np.int64]:
        place = sorted_search(distinct_keys, rows[some]).clip(max=len(distinct_keys) - 1)
        is_there = take_block(distinct_keys, place) == rows[some]
        return np.where(is_there, take_block(counts, place), 0).astype(np.int64, copy=False)

    return compute_column(len(rows), np.int64, counts_of)


def distinct_key_counts(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Return the distinct keys, ascending, and their counts."""
    ascending = sorted_values(keys)
    first = is_run_start(ascending)
    return compress_column(ascending, first), _run_lengths(first)


def run_starts_and_lengths(ascending: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and length of each run of equal keys in ascending keys (n,)."""
    first = is_run_start(ascending)
    return marked_rows(first), _run_lengths(first)


def _run_lengths(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the length of each run, given the marks of their first rows, (n,)."""
    starts = marked_rows(first)

    def lengths(rows: slice) -> NDArray[np.int64]:
        own = starts[rows.start : rows.stop + 1]
        return np.diff(own if rows.stop < len(starts) else np.append(own, len(first)))

    return compute_column(len(starts), np.int64, lengths)


def find_positions(values: Keys, rows: Keys) -> NDArray[np.int64]:
    """Return the position of each row (k,) among ascending values (n,), -1 if it is not among them."""
    if not len(values):
        return np.full(len(rows), -1, dtype=np.int64)

    def positions_of(some: slice) -> NDArray[np.int64]:
        place = sorted_search(values, rows[some]).clip(max=len(values) - 1)
        return np.where(take_block(values, place) == rows[some], place, -1).astype(np.int64, copy=False)

    return compute_column(len(rows), np.int64, positions_of)
