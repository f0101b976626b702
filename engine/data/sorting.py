"""Sorting and searching of millions of numbers, several times faster than NumPy's stable sort, with the same results.

NumPy's quicker order, which need not be stable, is mended where numbers are equal. Whole numbers of a small range, and
numbers with few distinct values, are counted instead. Numbers of a long table (``long_arrays``) are first put into ranges
of ascending values, a block at a time, so that memory is needed for a block and a range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from .arrays import Integers
from .bits import Keys
from .long_arrays import (
    column_pieces,
    compress_column,
    compute_column,
    for_each_part,
    is_long,
    long_blocks,
    new_column,
    release_pages,
    sample_column,
)

FEW_TO_SEARCH = 4096
"""Numbers among which it is quicker to search as they come."""
MANY_TO_SORT = 1 << 15
"""Numbers from which on another way than NumPy's stable sort is quicker."""
WIDEST_COUNTED_RANGE = 1 << 20
"""The widest range of whole numbers that are counted."""
SAMPLE, DIFFERENT = 1024, 128
"""Size of the sample of numbers, and the number of different ones below which the whole column is taken to have few."""
BUCKETS = 1 << 16
"""Buckets of 16 bits."""
Array = NDArray[Any]
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class _BucketScale:
    """Monotone buckets of numbers, NaN in the largest.

    least, largest: of the ordered bits of the numbers
    shift: low bits that do not count
    ends: smallest and largest number where the buckets are equally wide; None where they are those of bits
    """

    least: Any
    largest: Any
    shift: int
    ends: tuple[float, float] | None = None

    @classmethod
    def from_blocks(cls, blocks: Iterable[Array]) -> _BucketScale:
        """Return the scale of some numbers, at least one, that come in blocks."""
        ends = [(own.min(), own.max()) for own in map(_present_bits, blocks) if len(own)]
        if not ends:  # nothing but NaN
            return cls(np.int64(0), np.int64(0), 0)
        least, largest = min(low for low, _ in ends), max(high for _, high in ends)
        return cls(least, largest, max(0, (int(largest) - int(least)).bit_length() - 16))

    def suited_to(self, values: Array) -> _BucketScale:
        """Return the scale whose largest bucket holds fewer of a sample of some numbers (n,): bits of numbers on both sides
        of 0 tell large ones poorly apart.
        """
        if values.dtype.kind != "f":
            return self
        low, high = (float(_number_of_bits(end)) for end in (self.least, self.largest))
        if not 0 < high - low < np.inf:
            return self
        some = sample_column(values, max(1, len(values) // BUCKETS))
        some = some[~np.isnan(some)]
        both = (self, replace(self, ends=(low, high)))
        return min(both, key=lambda one: np.bincount(one.bucket_of(some), minlength=1).max())

    def bucket_of(self, values: Array) -> NDArray[np.uint16]:
        """Return the bucket of each number, (n,)."""
        if self.ends is not None:
            low, high = self.ends
            with np.errstate(invalid="ignore"):
                place = (values - low) * ((BUCKETS - 1) / (high - low))
            return np.where(np.isnan(place), BUCKETS - 1, place).astype(np.uint16)
        bits = _ordered_bits(values)
        if values.dtype.kind == "f" and (missing := np.isnan(values)).any():
            bits[missing] = self.largest
        above = bits - self.least
        # The difference of two int64 can overflow, but read as uint64 it is right.
        above = above.astype(np.uint64, copy=False) if bits.dtype.kind == "u" else above.view(np.uint64)
        return np.asarray(above >> np.uint64(self.shift), dtype=np.uint16)


def _ordered_bits(values: Array) -> Array:
    """Return whole numbers that are in the order of the numbers, (n,); those of NaN say nothing."""
    if values.dtype.kind != "f":
        return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64, copy=False)
    # The bits of doubles sort as integers do once those of negative numbers are flipped; + 0.0 turns -0.0 into 0.0.
    bits = (values.astype(np.float64, copy=False) + 0.0).view(np.int64)
    bits ^= (bits >> 63) & np.int64(2**63 - 1)
    return bits


def _number_of_bits(bits: np.int64) -> np.float64:
    """Return the number whose ordered bits these are."""
    own = np.asarray(bits, dtype=np.int64)
    return np.float64((own ^ ((own >> 63) & np.int64(2**63 - 1))).view(np.float64))


def _present_bits(values: Array) -> Array:
    """Return the ordered bits of the numbers (n,) but NaN."""
    if values.dtype.kind == "f" and (missing := np.isnan(values)).any():
        return _ordered_bits(values[~missing])
    return _ordered_bits(values)


@dataclass(frozen=True, eq=False)
class _ValueRanges:
    """Ranges of ascending values among the numbers of a long table (n,), and what of each block goes into each.

    values: the numbers
    blocks: blocks of rows
    sizes: numbers of each block in each range, (blocks, ranges)
    first: their first place among the numbers of all ranges one after another, (blocks, ranges)
    ranges: places of each range
    rows: rows of each block, from 0, range after range, (n,)
    """

    values: Array
    blocks: Sequence[slice]
    sizes: Integers
    first: Integers
    ranges: Sequence[slice]
    rows: NDArray[np.int32]

    @classmethod
    def from_values(cls, values: Array) -> _ValueRanges:
        """Choose the ranges, each of as many numbers as a block has at most, or of one bucket."""
        blocks = list(long_blocks(len(values)))
        scale = _BucketScale.from_blocks(values[rows] for rows in long_blocks(len(values))).suited_to(values)
        counts = np.zeros((len(blocks), BUCKETS), dtype=np.int32)

        def count(block: int) -> None:
            counts[block] = np.bincount(scale.bucket_of(values[blocks[block]]), minlength=BUCKETS)

        for_each_part(range(len(blocks)), count)
        total, room = counts.sum(axis=0, dtype=np.int64), blocks[0].stop
        # as many buckets as fit one after another; a larger one, which often holds one value many times, is a range of its own
        window, is_large = (np.cumsum(total) - total) // room, total > room
        begins = (np.diff(window, prepend=-1) != 0) | is_large | np.append(False, is_large[:-1])
        sizes = np.add.reduceat(counts, np.flatnonzero(begins), axis=1, dtype=np.int64)
        sizes = sizes[:, (is_used := sizes.sum(axis=0) > 0)]
        ends = np.cumsum(sizes.sum(axis=0))
        starts = np.append(0, ends[:-1])
        range_of = (np.cumsum(is_used) - 1)[np.cumsum(begins) - 1].astype(np.uint16)
        ranges = [slice(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        rows: NDArray[np.int32] = new_column(len(values), np.int32)

        def sort_block(block: int) -> None:
            there = blocks[block]
            rows[there] = np.argsort(range_of[scale.bucket_of(values[there])], kind="stable")

        for_each_part(range(len(blocks)), sort_block)
        return cls(values, blocks, sizes, starts + np.cumsum(sizes, axis=0) - sizes, ranges, rows)

    def _places(self, block: int) -> Iterator[tuple[slice, slice]]:
        """Yield where the numbers of a block are in each range, and among its rows range after range."""
        done = 0
        for first, size in zip(self.first[block].tolist(), self.sizes[block].tolist(), strict=True):
            if size:
                yield slice(first, first + size), slice(done, done + size)
                done += size

    def write(self, ranged: Array, order: Integers | None = None) -> None:
        """Write the numbers range after range, in each in the order of the table, and their rows into ``order``, (n,)."""

        def write_block(block: int) -> None:
            rows = self.rows[self.blocks[block]]
            own = self.values[self.blocks[block]][rows]
            for there, here in self._places(block):
                ranged[there] = own[here]
                if order is not None:
                    order[there] = rows[here] + self.blocks[block].start

        for_each_part(range(len(self.blocks)), write_block)

    def write_in_table_order(self, ranged: Array, found: Array) -> None:
        """Write numbers that lie range after range, as those of ``write`` do, in the order of the table, (n,)."""

        def write_block(block: int) -> None:
            own = np.empty(self.blocks[block].stop - self.blocks[block].start, dtype=found.dtype)
            for there, here in self._places(block):
                own[here] = ranged[there]
            in_order = np.empty_like(own)
            in_order[self.rows[self.blocks[block]]] = own
            found[self.blocks[block]] = in_order

        for_each_part(range(len(self.blocks)), write_block)


def _is_constant(ranged: Array, rows: slice) -> bool:
    """Return whether the numbers of a range are all equal."""
    first = ranged[rows.start]
    return bool(ranged[rows.stop - 1] == first) and all(
        (ranged[rows][some] == first).all() for some in long_blocks(rows.stop - rows.start)
    )


def _sort_long(values: Array, order: Integers | None) -> Array:
    """Return the numbers of a long table (n,), ascending, and write their stable order into ``order``."""
    ascending, found = new_column(len(values), values.dtype), _ValueRanges.from_values(values)
    found.write(ascending, order)

    def sort_range(rows: slice) -> None:
        if _is_constant(ascending, rows):
            return
        part = np.array(ascending[rows])
        if order is None:
            ascending[rows] = _sorted_in_memory(part)
        else:
            inner, ascending[rows] = _sort_in_memory(part)
            order[rows] = order[rows][inner]

    for_each_part(found.ranges, sort_range)
    return ascending


@dataclass(frozen=True, eq=False)
class LongNumbering:
    """Distinct numbers of a long table.

    values: distinct numbers, ascending, NaN once at the end, (u,)
    counts: number of occurrences of each, (u,)
    ranges: ranges of the numbers of the table
    places: index of the distinct number of each number, range after range, (n,)
    """

    values: Array
    counts: Integers
    ranges: _ValueRanges
    places: NDArray[np.int32]

    def take_by_row(self, of_values: NDArray[T]) -> NDArray[T]:
        """Return for each number of the table what is given for its distinct number, (n,)."""
        # numbers of a range are near each other, those of the table are anywhere
        ranged, found = (new_column(len(self.places), of_values.dtype) for _ in range(2))

        def take_range(rows: slice) -> None:
            for some in long_blocks(rows.stop - rows.start):
                ranged[rows][some] = of_values[self.places[rows][some]]

        for_each_part(self.ranges.ranges, take_range)
        self.ranges.write_in_table_order(ranged, found)
        return found


def number_long_column(values: Array) -> LongNumbering:
    """Return the distinct numbers of a long table (n,)."""
    ranged, found = new_column(len(values), values.dtype), _ValueRanges.from_values(values)
    found.write(ranged)
    places: NDArray[np.int32] = new_column(len(values), np.int32)
    times: NDArray[np.int32] = new_column(len(values), np.int32)
    counts = np.zeros(len(found.ranges), dtype=np.int64)

    def number_range(at: int) -> None:
        rows = found.ranges[at]
        if _is_constant(ranged, rows):
            counts[at], times[rows.start] = 1, rows.stop - rows.start
            for some in long_blocks(rows.stop - rows.start):
                places[rows][some] = 0
            return
        part = np.array(ranged[rows])
        order = np.argsort(part)
        ascending = part[order]
        first = mark_distinct(ascending)
        ranks = np.empty(len(part), dtype=np.int32)
        ranks[order] = np.cumsum(first, dtype=np.int32) - np.int32(1)
        own, starts = ascending[first], np.flatnonzero(first)
        if part.dtype.kind == "f" and len(zeros := np.flatnonzero(own == 0)):
            own[zeros] = part[part == 0][0]  # of either sign, whose order a quick sort does not keep
        few = slice(rows.start, rows.start + len(own))
        places[rows], ranged[few], times[few] = ranks, own, np.diff(starts, append=len(part))
        counts[at] = len(own)

    for_each_part(range(len(found.ranges)), number_range)
    before = np.cumsum(counts) - counts
    distinct, repeats = new_column(int(counts.sum()), values.dtype), new_column(int(counts.sum()), np.int64)

    def join_range(at: int) -> None:
        rows, own = found.ranges[at], slice(int(before[at]), int(before[at] + counts[at]))
        few = slice(rows.start, rows.start + int(counts[at]))
        distinct[own], repeats[own] = ranged[few], times[few]
        for some in long_blocks(rows.stop - rows.start):
            places[rows][some] += np.int32(before[at])

    for_each_part(range(len(found.ranges)), join_range)
    return LongNumbering(distinct, repeats, found, places)


def count_equal(values: Keys) -> Integers:
    """Return how many of the keys (n,) of a long table are equal to each, with itself, (n,)."""
    ranged, found = new_column(len(values), values.dtype), _ValueRanges.from_values(values)
    found.write(ranged)

    def count_range(rows: slice) -> None:
        if _is_constant(ranged, rows):
            for some in long_blocks(rows.stop - rows.start):
                ranged[rows][some] = rows.stop - rows.start
            return
        part = np.array(ranged[rows])
        order = np.argsort(part)
        lengths = np.diff(np.flatnonzero(is_run_start(part[order])), append=len(part))
        part[order] = np.repeat(lengths, lengths)
        ranged[rows] = part

    for_each_part(found.ranges, count_range)
    counts: Integers = new_column(len(values), np.int64)
    found.write_in_table_order(ranged, counts)
    return counts


def sort_with_order(values: Array) -> tuple[Integers, Array]:
    """Return the stable order of the numbers (n,), and the sorted numbers; NaN at the end."""
    if is_long(len(values)):
        places: Integers = new_column(len(values), np.int64)
        return places, _sort_long(values, places)
    return _sort_in_memory(values)


def _sort_in_memory(values: Array) -> tuple[Integers, Array]:
    """Return the stable order of the numbers (n,), and the sorted numbers; NaN at the end."""
    if len(values) < MANY_TO_SORT or values.dtype.itemsize < 8 or values.dtype.kind not in "fiu":
        order = np.argsort(values, kind="stable")
        return order, values[order]
    # NumPy's own order is found several times sooner where it need not be stable; of equal numbers it is mended.
    order = np.argsort(values)
    ascending = values[order]
    starts = np.append(True, ascending[1:] != ascending[:-1])
    if values.dtype.kind == "f":
        starts[int(np.searchsorted(ascending, np.nan)) + 1 :] = False
    if not starts.all():
        first = (np.cumsum(starts) - 1) * len(order)
        places = first + order
        places.sort()
        order = places - first
        ascending = values[order]
    return order, ascending


def sort_order(values: Array) -> Integers:
    """Return the stable order of the numbers (n,); NaN at the end."""
    return sort_with_order(values)[0]


def sorted_values(values: Array) -> Array:
    """Return the numbers (n,), ascending, NaN at the end."""
    return _sort_long(values, None) if is_long(len(values)) else _sorted_in_memory(values)


def _sorted_in_memory(values: Array) -> Array:
    """Return the numbers (n,), ascending, NaN at the end; zeros of either sign in their own order."""
    found = np.sort(values)
    if values.dtype.kind == "f":
        first, end = np.searchsorted(found, 0.0, "left"), np.searchsorted(found, 0.0, "right")
        found[first:end] = values[values == 0] if end > first else 0.0
    return found


def numbers_at_ranks(values: Array, ranks: Sequence[int]) -> Array:
    """Return the numbers of some ranks from 0, ascending, among numbers (n,) without NaN."""
    if not is_long(len(values)):
        return np.asarray(np.partition(values, ranks)[list(ranks)])
    scale = _BucketScale.from_blocks(values[rows] for rows in long_blocks(len(values)))
    counts = np.zeros(BUCKETS, dtype=np.int64)
    for rows in long_blocks(len(values)):
        counts += np.bincount(scale.bucket_of(values[rows]), minlength=BUCKETS)
    ends = np.cumsum(counts)
    found = np.empty(len(ranks), dtype=values.dtype)
    for at, rank in enumerate(ranks):
        bucket = int(np.searchsorted(ends, rank, side="right"))
        some = [values[rows][scale.bucket_of(values[rows]) == bucket] for rows in long_blocks(len(values))]
        place = rank - int(ends[bucket] - counts[bucket])
        found[at] = np.partition(np.concatenate(some), place)[place]
    return found


def is_run_start(ascending: Array) -> NDArray[np.bool_]:
    """Mark the ascending numbers (n,) that differ from the one before, and the first."""
    first: NDArray[np.bool_] = new_column(len(ascending), np.bool_)
    first[:1] = True
    for rows in long_blocks(len(first[1:])):
        np.not_equal(ascending[1:][rows], ascending[:-1][rows], out=first[1:][rows])
    return first


def mark_distinct(ascending: Array) -> NDArray[np.bool_]:
    """Mark the first of each distinct value among ascending numbers (n,), of which NaN is one, the last."""
    first = is_run_start(ascending)
    if ascending.dtype.kind == "f":
        # NaN differs from NaN, so that each would start a run.
        first[int(np.searchsorted(ascending, np.nan)) + 1 :] = False
    return first


def sorted_unique(numbers: Array) -> Array:
    """Return the distinct values among numbers without NaN, ascending."""
    if (counted := count_whole_numbers(numbers)) is not None:
        return np.asarray(counted[0][np.flatnonzero(counted[2])])
    # np.unique hashes them, which takes many times longer for millions.
    ascending = sorted_values(numbers)
    return compress_column(ascending, is_run_start(ascending))


def count_by_value(blocks: Iterable[Array]) -> tuple[Array, Integers]:
    """Return the different numbers in some blocks without NaN, ascending, and how often each occurs."""
    found: tuple[Array, Integers] | None = None
    for block in blocks:
        values, counts = np.unique(block, return_counts=True)
        if found is not None:
            values, place = np.unique(np.concatenate([found[0], values]), return_inverse=True)
            counts = np.bincount(place, np.concatenate([found[1], counts]), len(values)).astype(np.int64)
        found = values, counts.astype(np.int64, copy=False)
    return (np.zeros(0), np.zeros(0, dtype=np.int64)) if found is None else found


def count_whole_numbers(numbers: Array) -> tuple[Array, NDArray[np.int32], Integers] | None:
    """Count whole numbers (n,) in a narrow range; None where they are not such.

    Returns all values of the range, with NaN as another at the end; the index of each number's value; and the count of
    each value.
    """
    if len(numbers) < MANY_TO_SORT or numbers.dtype.kind != "f":
        return None
    low, high, some = np.inf, -np.inf, False
    for rows in long_blocks(len(numbers)):
        missing = np.isnan(numbers[rows])
        present = numbers[rows][~missing] if missing.any() else numbers[rows]
        some |= len(present) < len(missing)
        # A sample dismisses most columns before their range is computed.
        with np.errstate(invalid="ignore"):
            if not (np.rint(present[:SAMPLE]) == present[:SAMPLE]).all():
                return None
        low, high = min(low, present.min(initial=low)), max(high, present.max(initial=high))
    with np.errstate(invalid="ignore"):
        if not 0 <= high - low < min(WIDEST_COUNTED_RANGE, 4 * len(numbers)):
            return None
    values = np.append(np.arange(int(high - low) + 1) + low, [np.nan] if some else [])
    place: NDArray[np.int32] = new_column(len(numbers), np.int32)
    counts = np.zeros(len(values), dtype=np.int64)
    for rows in long_blocks(len(numbers)):
        own = numbers[rows]
        place[rows] = (np.where(np.isnan(own), high + 1, own) if some else own) - low
        # Exact only if every number is whole, not just the sample.
        if not np.array_equal(values[place[rows]], own, equal_nan=some):
            return None
        counts += np.bincount(place[rows], minlength=len(values))
    return values, place, counts


def has_few_distinct(numbers: Array) -> bool:
    """Return whether a sample suggests that the numbers (n,) have few distinct values."""
    if len(numbers) < MANY_TO_SORT:
        return False
    some = sample_column(numbers, len(numbers) // SAMPLE)
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
    if is_long(len(needles)):
        return compute_column(len(needles), np.int64, lambda rows: sorted_search(ascending, needles[rows], side))
    if len(ascending) <= FEW_TO_SEARCH:
        return np.searchsorted(ascending, needles, side)
    if order is None:
        order, needles = sort_with_order(needles)
    else:
        needles = needles[order]
    # Needles looked up in ascending order find their part of a large table in the cache.
    found = np.empty(len(order), dtype=np.int64)
    found[order] = (
        _search_pieces(ascending, needles, side)
        if is_long(len(ascending))
        else np.searchsorted(ascending, needles, side)
    )
    return found


def _search_pieces(ascending: Array, needles: Array, side: Literal["left", "right"]) -> Integers:
    """Return the places of nearly ascending needles (k,) in a long column, of which a piece at a time is in memory."""
    pieces = column_pieces(ascending)
    # What lies before a piece is smaller than a needle whose place is in it, and equal to it at most for places from the right.
    piece_of = np.searchsorted(ascending[[one.start for one in pieces[1:]]], needles, side)
    found = np.empty(len(needles), dtype=np.int64)
    for number, piece in enumerate(pieces):
        own = np.flatnonzero(piece_of == number)
        if len(own):
            found[own] = piece.start + np.searchsorted(ascending[piece], needles[own], side)
            release_pages()
    return found
