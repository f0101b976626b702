"""Which columns one table repeats of another, whatever the order of its records: what a partly synthetic release leaves as it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from ..data.blocks import row_blocks

_MISSING = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD1B54A32D192ED03)
_MIXERS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)


def repeated_columns(ours: Sequence[Floats], theirs: Sequence[Floats]) -> list[bool]:
    """Whether each column (n,) of one table is repeated by that of the other (m,); both may miss values (NaN).

    That is: one after another, those whose values, with those of the columns found before, make the same records in both tables.

    Most are found or excluded without a sort: tables in the same order are compared as they are, and where the hashes of two
    tables' records add up to different sums, so do the tables. What is found is compared value by value.
    """
    mine: list[Floats] = []
    other: list[Floats] = []
    found = []
    in_order = True
    for one, two in zip(ours, theirs, strict=True):
        aligned = in_order and np.array_equal(one, two, equal_nan=True)
        same = aligned or (len(one) == len(two) and _same_records([*mine, one], [*other, two]))
        if same:
            in_order = aligned
            mine.append(one)
            other.append(two)
        found.append(same)
    return found


def _same_records(ours: Sequence[Floats], theirs: Sequence[Floats]) -> bool:
    """Whether two tables, columns (n,) each, have the same records, as often each."""
    if _total(ours[-1:]) != _total(theirs[-1:]) or (len(ours) > 1 and _total(ours) != _total(theirs)):
        return False
    return any(
        all(np.array_equal(a[first], b[second], equal_nan=True) for a, b in zip(ours, theirs, strict=True))
        for first, second in ((order(ours), order(theirs)) for order in (_by_hash, np.lexsort))
    )


def _by_hash(columns: Sequence[Floats]) -> Integers:
    """The records in the order of their hashes, in which equal ones stand together unless two others share a hash."""
    return np.argsort(np.concatenate([_hashes(columns, rows) for rows in row_blocks(len(columns[0]))]), kind="stable")


def _total(columns: Sequence[Floats]) -> int:
    """The sum of the records' hashes, to the power 2^64."""
    return sum(int(_hashes(columns, rows).sum()) for rows in row_blocks(len(columns[0]))) % 2**64


def _hashes(columns: Sequence[Floats], rows: slice) -> NDArray[np.uint64]:
    """64 bits of each record (b,), mixed as SplitMix64 does (Steele, Lea & Flood 2014); equal values have equal ones, 0 and -0 too."""
    found = np.zeros(rows.stop - rows.start, np.uint64)
    for column in columns:
        values = column[rows] + 0.0
        bits = values.view(np.uint64)
        bits[np.isnan(values)] = _MISSING
        found = found * _STEP + bits + _MISSING
        for shift, factor in _MIXERS:
            found = (found ^ (found >> shift)) * factor
        found ^= found >> _LAST_SHIFT
    return found
