"""Sorting and searching of millions of numbers, several times faster than NumPy's own functions, with the same results.

Large arrays are first distributed into buckets by 16 bits of each number, which NumPy sorts by radix, and then sorted
bucket by bucket in the processor's cache. Whole numbers of a small range, and numbers with few distinct values, are
counted instead.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .arrays import Integers

FEW_TO_SEARCH = 4096
"""Numbers among which it is quicker to search as they come."""
MANY_TO_SORT = 1 << 15
"""Numbers from which on buckets are quicker than one sort."""
SORTED_TOGETHER = 1000
"""Numbers that are sorted together, about."""
WIDEST_COUNTED_RANGE = 1 << 20
"""The widest range of whole numbers that are counted."""
SAMPLE, DIFFERENT = 1024, 128
"""Size of the sample of numbers, and the number of different ones below which the whole column is taken to have few."""
Array = NDArray[Any]


def _assign_buckets(values: Array) -> tuple[NDArray[np.uint16], bool]:
    """Return a monotone bucket for each number (n,), NaN in the largest; and whether all numbers of a bucket are equal."""
    if values.dtype.kind == "f":
        # The bits of doubles sort as integers do once those of negative numbers are flipped; + 0.0 turns -0.0 into 0.0.
        bits = (values.astype(np.float64, copy=False) + 0.0).view(np.int64)
        bits ^= (bits >> 63) & np.int64(2**63 - 1)
        missing = np.isnan(values)
        if missing.any():
            bits[missing] = bits[~missing].max(initial=0)
    else:
        bits, missing = values, np.zeros(0, dtype=np.bool_)
    least = bits.min()
    # The difference of two int64 can overflow, but read as uint64 it is right.
    above = (bits - least).astype(np.uint64, copy=False) if bits.dtype.kind == "u" else (bits - least).view(np.uint64)
    shift = max(0, int(above.max()).bit_length() - 16)
    return (above >> np.uint64(shift)).astype(np.uint16), shift == 0 and not missing.any()


def _bucket_group_ends(buckets: NDArray[np.uint16]) -> list[int]:
    """Return the ends of groups of whole buckets that are sorted together."""
    ends = np.cumsum(np.bincount(buckets))
    some = np.searchsorted(ends, np.arange(SORTED_TOGETHER, len(buckets) + SORTED_TOGETHER, SORTED_TOGETHER)).clip(
        max=len(ends) - 1
    )
    return [int(end) for end in dict.fromkeys(ends[some].tolist())]


def sort_with_order(values: Array) -> tuple[Integers, Array]:
    """Return the stable order of the numbers (n,), and the sorted numbers; NaN at the end."""
    if len(values) < MANY_TO_SORT or values.dtype.itemsize < 8:
        order = np.argsort(values, kind="stable")
        return order, values[order]
    buckets, equal = _assign_buckets(values)
    order = np.argsort(buckets, kind="stable")
    ascending, start = values[order], 0
    for end in [] if equal else _bucket_group_ends(buckets):
        part = ascending[start:end]
        inner = part.argsort(kind="stable")
        ascending[start:end], order[start:end] = part[inner], order[start:end][inner]
        start = end
    return order, ascending


def sort_order(values: Array) -> Integers:
    """Return the stable order of the numbers (n,); NaN at the end."""
    return sort_with_order(values)[0]


def sorted_values(values: Array) -> Array:
    """Return the numbers (n,), ascending, NaN at the end."""
    if len(values) < MANY_TO_SORT or values.dtype.itemsize < 8:
        return np.sort(values)
    buckets, equal = _assign_buckets(values)
    ascending, start = values[np.argsort(buckets, kind="stable")], 0
    for end in [] if equal else _bucket_group_ends(buckets):
        ascending[start:end].sort()
        start = end
    return ascending


def is_run_start(ascending: Array) -> NDArray[np.bool_]:
    """Mark the ascending numbers (n,) that differ from the one before, and the first."""
    first = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return first


def sorted_unique(numbers: Array) -> Array:
    """Return the distinct values among numbers without NaN, ascending."""
    if (counted := count_whole_numbers(numbers)) is not None:
        return np.asarray(counted[0][np.flatnonzero(counted[2])])
    # np.unique hashes them, which takes many times longer for millions.
    ascending = sorted_values(numbers)
    return np.asarray(ascending[is_run_start(ascending)])


def count_whole_numbers(numbers: Array) -> tuple[Array, NDArray[np.int32], Integers] | None:
    """Count whole numbers (n,) in a narrow range; None where they are not such.

    Returns all values of the range, with NaN as another at the end; the index of each number's value; and the count of
    each value.
    """
    if len(numbers) < MANY_TO_SORT or numbers.dtype.kind != "f":
        return None
    missing = np.isnan(numbers)
    some = missing.any()
    present = numbers[~missing] if some else numbers
    if not len(present):
        return None
    with np.errstate(invalid="ignore"):
        # A sample dismisses most columns before their range is computed.
        if not (np.rint(present[:SAMPLE]) == present[:SAMPLE]).all():
            return None
        low, high = float(present.min()), float(present.max())
    if not high - low < min(WIDEST_COUNTED_RANGE, 4 * len(numbers)):
        return None
    place = ((np.where(missing, high + 1, numbers) if some else numbers) - low).astype(np.int32)
    values = np.append(np.arange(int(high - low) + 1) + low, [np.nan] if some else [])
    # Exact only if every number is whole, not just the sample.
    if not np.array_equal(values[place], numbers, equal_nan=bool(some)):
        return None
    return values, place, np.asarray(np.bincount(place, minlength=len(values)), dtype=np.int64)


def has_few_distinct(numbers: Array) -> bool:
    """Return whether a sample suggests that the numbers (n,) have few distinct values."""
    if len(numbers) < MANY_TO_SORT:
        return False
    some = numbers[:: len(numbers) // SAMPLE]
    return len(np.unique(some)) <= DIFFERENT


def sorted_search(
    ascending: Array,
    needles: Array,
    side: Literal["left", "right"] = "left",
    order: Integers | None = None,
) -> Integers:
    """Return the places of the needles (k,) in ascending numbers, as ``np.searchsorted`` does.

    ``order`` (k,) may give a nearly ascending order of the needles.
    """
    if len(ascending) <= FEW_TO_SEARCH:
        return np.searchsorted(ascending, needles, side)
    if order is None:
        order, needles = sort_with_order(needles)
    else:
        needles = needles[order]
    # Needles looked up in ascending order find their part of a large table in the cache.
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.searchsorted(ascending, needles, side)
    return found
