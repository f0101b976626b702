"""Numbering of the rows of tables by their values, such that equal rows have the same number.

    distinct_codes     one column, by value
    distinct_rows      several columns, by value, first column first
    number_groups      several columns of one table or of several, by first appearance

Each column becomes a digit, and the digits of a row form one key in mixed radix. A table needs 16 bytes a record of
additional memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .arrays import Floats, Integers
from .blocks import row_blocks
from .long_arrays import (
    compute_column,
    is_long,
    long_blocks,
    new_column,
    release_pages,
    running_sums,
    take_rows,
    zeros_column,
)
from .sorting import (
    Array,
    LongNumbering,
    count_whole_numbers,
    has_few_distinct,
    mark_distinct,
    number_long_column,
    sort_with_order,
)

T = TypeVar("T", bound=np.generic)
Values = NDArray[Any] | pd.Series
Renumber = Callable[[list[Integers], int], tuple[list[Integers], int]]

NARROW = 1 << 20
DENSE = 4
"""A digit's radix is at most ``NARROW``, or ``DENSE`` times the records."""
KEY_LIMIT = 2**63
KEYS_A_RECORD = 4
"""Possible keys for each record up to which keys are ranked by a table of them; above, by sorting."""


@dataclass(frozen=True, eq=False)
class DistinctNumbers:
    """Distinct values of some numbers, and the value of each number.

    values: distinct values, ascending, NaN once at the end, (u,)
    codes: index of the value of each number, (n,)
    numbering: how the numbers of a long table were found; None for others
    """

    values: Array
    codes: NDArray[np.int32]
    numbering: LongNumbering | None = None

    @cached_property
    def counts(self) -> Integers:
        """Return the number of occurrences of each value, (u,)."""
        if self.numbering is not None:
            return self.numbering.counts
        found = np.zeros(len(self.values), dtype=np.int64)
        for rows in long_blocks(len(self.codes)):
            found += np.bincount(self.codes[rows], minlength=len(self.values))
        return found

    @property
    def repeats(self) -> Integers:
        """Return the number of occurrences of each number's value, (n,)."""
        return self.take_by_row(self.counts)

    def take_by_row(self, of_values: NDArray[T]) -> NDArray[T]:
        """Return for each number what is given for its value, (n,)."""
        return take_rows(of_values, self.codes) if self.numbering is None else self.numbering.take_by_row(of_values)


def distinct_codes(numbers: Array) -> DistinctNumbers:
    """Return numbers of the values of a column (n,) in ascending order; NaN is one value, the last.

    The result is that of ``np.unique`` with ``return_inverse``, computed faster.
    """
    if (counted := count_whole_numbers(numbers)) is not None:
        values, place, counts = counted
        there = np.flatnonzero(counts)
        rank = np.zeros(len(counts), dtype=np.int32)
        rank[there] = np.arange(len(there))
        return DistinctNumbers(values[there], take_rows(rank, place))
    # Hashing is faster than sorting where few values are distinct.
    if has_few_distinct(numbers):
        if is_long(len(numbers)):
            values = np.unique(np.concatenate([np.unique(numbers[rows]) for rows in long_blocks(len(numbers))]))
            return DistinctNumbers(
                values, compute_column(len(numbers), np.int32, lambda rows: np.searchsorted(values, numbers[rows]))
            )
        appearance, values = pd.factorize(numbers, use_na_sentinel=False)
        order = np.argsort(values)
        rank = np.empty(len(values), dtype=np.int32)
        rank[order] = np.arange(len(values))
        return DistinctNumbers(values[order], rank[appearance])
    if is_long(len(numbers)):
        found = number_long_column(numbers)
        codes: NDArray[np.int32] = new_column(len(numbers), np.int32)
        found.ranges.write_in_table_order(found.places, codes)
        return DistinctNumbers(found.values, codes, found)
    order, ascending = sort_with_order(numbers)
    first = mark_distinct(ascending)
    codes = np.empty(len(first), dtype=np.int32)
    codes[order] = np.cumsum(first, dtype=np.int32) - np.int32(1)
    return DistinctNumbers(ascending[first], codes)


@dataclass(frozen=True, eq=False)
class DistinctRecords:
    """Distinct combinations of values, d of them, sorted by value in the order of the columns.

    first: first record of each combination, (d,)
    combination_of: combination of each record, (n,)
    """

    first: Integers
    combination_of: Integers

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def counts(self) -> Integers:
        """Return the number of records of each combination, (d,)."""
        return np.bincount(self.combination_of, minlength=len(self)).astype(np.int64, copy=False)

    def sum_by_combination(self, values: Floats | None = None) -> Floats:
        """Sum ``values`` (n,) over the records of each combination, (d,); without values, count the records."""
        found = np.zeros(len(self))
        for rows in row_blocks(len(self.combination_of)):
            found += np.bincount(self.combination_of[rows], None if values is None else values[rows], len(self))
        return found

    def records_of(self, combinations: Integers) -> Integers:
        """Return the records of some combinations (k,), combination by combination, ascending within each."""
        counts = self.counts[combinations]
        start = np.cumsum(self.counts) - self.counts
        place = np.repeat(start[combinations] - np.cumsum(counts) + counts, counts)
        return self.order[place + np.arange(int(counts.sum()))]

    @cached_property
    def order(self) -> Integers:
        """Return the records, combination by combination, ascending within each, (n,)."""
        return np.argsort(self.combination_of, kind="stable")


def distinct_rows(columns: Iterable[Array], records: int) -> DistinctRecords:
    """Find the distinct combinations of the values of some columns of numbers, (records,) each.

    NaN is one value, after all others. For the columns of a table without NaN, the combinations are the rows of
    ``np.unique(table, axis=0)``, computed faster.
    """
    return distinct_combinations((ranked_digit(column) for column in columns), records)


def distinct_combinations(digits: Iterable[DigitColumn], records: int) -> DistinctRecords:
    """Find the distinct combinations of the digits of ``records`` records, in ascending order."""
    (key,), size = _mixed_radix_keys(digits, [records], _rank_keys, max(1, KEYS_A_RECORD * records))
    combination_of, size = dense_ranks(key, size)
    return DistinctRecords(first_records(combination_of, size), combination_of)


def first_records(groups: Integers, count: int) -> Integers:
    """Return the first record of each of ``count`` groups, (count,), given the group of each record (n,).

    No group is empty.
    """
    first: Integers = new_column(count, np.int64)
    # Of records that are written to one place the last counts, so that they are written in reverse.
    for rows in reversed(list(long_blocks(len(groups)))):
        first[groups[rows][::-1]] = np.arange(rows.start, rows.stop, dtype=np.int64)[::-1]
        release_pages()
    return first


def number_groups(columns: Sequence[Sequence[Values]], records: Sequence[int]) -> tuple[list[Integers], int]:
    """Assign numbers to the groups of records that agree on all columns, from 0 by first appearance.

    Tables follow each other in order of appearance. Without columns there is one group. A missing value equals another
    missing value and nothing else.

    Parameters
    ----------
    columns : sequence of sequences
        For each column its values in each table, (n,) each.
    records : sequence of int
        Number of records of each table.

    Returns
    -------
    list of arrays, int
        The group of each record, (n,) for each table, and the number of groups.
    """
    keys, size = _mixed_radix_keys(map(_column_digit, columns), records, _renumber_by_appearance)
    return _number_by_appearance(keys) if columns else (keys, size)


@dataclass(frozen=True, eq=False)
class DigitColumn:
    """Column of each table, written as whole numbers in a known range.

    codes: numbers of any type, at least ``low`` and below ``low + radix``, (n,) for each table
    low: smallest number
    radix: size of the range
    """

    codes: Sequence[NDArray[Any]]
    low: int
    radix: int


def _mixed_radix_keys(
    digits: Iterable[DigitColumn], records: Sequence[int], renumber: Renumber, largest: int | None = None
) -> tuple[list[Integers], int]:
    """Return one key for each record, (n,) for each table, from its digits, and the number of possible keys.

    ``renumber`` maps the keys to a smaller range where more than ``largest`` are possible.
    """
    keys: list[Integers] = [zeros_column(n, np.int64) for n in records]
    size = 1
    for digit in digits:
        # Before a key could exceed 64 bits, those that occur are numbered again.
        if size * digit.radix >= KEY_LIMIT:
            keys, size = renumber(keys, size)
        for key, codes in zip(keys, digit.codes, strict=True):
            # In place, so that no table of digits is ever formed.
            for rows in long_blocks(len(key)):
                own = key[rows]
                np.multiply(own, digit.radix, out=own)
                np.add(own, codes[rows], out=own)
                np.subtract(own, digit.low, out=own)
        size *= digit.radix
        if largest is not None and size > largest:
            keys, size = renumber(keys, size)
            if size == sum(records):
                break  # No two records are equal so far, and no further column changes their order.
    return keys, size


def dense_ranks(key: Integers, size: int) -> tuple[Integers, int]:
    """Return the rank of each key (n,), from 0 to ``size`` - 1, among the keys that occur, and their number."""
    if size > KEYS_A_RECORD * len(key):
        found = distinct_codes(key)
        return compute_column(len(key), np.int64, found.codes.__getitem__), len(found.values)
    present = zeros_column(size, np.bool_)
    for rows in long_blocks(len(key)):
        present[key[rows]] = True
    place = running_sums(present)
    ranks = take_rows(place, key)
    for rows in long_blocks(len(ranks)):
        ranks[rows] -= 1
    return ranks, int(place[-1]) if size else 0


def _rank_keys(keys: list[Integers], size: int) -> tuple[list[Integers], int]:
    """Return the ranks of the keys of one table, and their number."""
    (key,) = keys
    ranks, size = dense_ranks(key, size)
    return [ranks], size


def _renumber_by_appearance(keys: list[Integers], size: int) -> tuple[list[Integers], int]:
    return _number_by_appearance(keys)


def ranked_digit(column: Array) -> DigitColumn:
    """Return the rank of each number of a column among its distinct values, as a digit."""
    digit = _narrow_digit([column])
    if digit is None:
        found = distinct_codes(column)
        digit = DigitColumn([found.codes], 0, max(len(found.values), 1))
    return digit


def _column_digit(column: Sequence[Values]) -> DigitColumn:
    """Return a column of all tables as a digit: level codes and narrow whole numbers unchanged, other values numbered."""
    if all(isinstance(part.dtype, pd.CategoricalDtype) for part in column):
        return _digit_from_levels([part for part in column if isinstance(part, pd.Series)])
    arrays = [_as_plain_array(part) for part in column]
    if (narrow := _narrow_digit(arrays)) is not None:
        return narrow
    codes, distinct = _number_by_appearance(arrays)
    return DigitColumn(codes, 0, max(distinct, 1))


def _narrow_digit(arrays: Sequence[NDArray[Any]]) -> DigitColumn | None:
    """Return whole numbers in a narrow range as a digit; None for others."""
    if not (all(array.dtype.kind in "bi" for array in arrays) and all(map(len, arrays))):
        return None
    low, high = min(int(array.min()) for array in arrays), max(int(array.max()) for array in arrays)
    if high - low >= max(NARROW, DENSE * sum(map(len, arrays))):
        return None
    return DigitColumn(
        [array.view(np.int8) if array.dtype.kind == "b" else array for array in arrays], low, high - low + 1
    )


def _digit_from_levels(column: Sequence[pd.Series]) -> DigitColumn:
    """Return level codes of all tables as a digit, -1 where missing."""
    levels = column[0].cat.categories
    codes: list[NDArray[Any]] = []
    for part in column:
        own = part.cat.categories
        if own is levels or own.equals(levels[: len(own)]):
            codes.append(part.cat.codes.to_numpy())
            continue
        # Levels or orders that differ between tables are matched by label.
        levels = levels.append(own[levels.get_indexer(own) < 0])
        codes.append(np.append(levels.get_indexer(own), -1)[part.cat.codes.to_numpy()])
    return DigitColumn(codes, -1, len(levels) + 1)


def _as_plain_array(column: Values) -> NDArray[Any]:
    """Return a column as an array, categoricals by their values."""
    if isinstance(column, pd.Series) and isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(column.astype(column.cat.categories.dtype))
    return np.asarray(column)


def _number_by_appearance(arrays: Sequence[NDArray[Any]]) -> tuple[list[Integers], int]:
    """Return the number of each value by first appearance, (n,) for each array, and the number of values."""
    kind = np.result_type(*arrays)
    if kind.kind not in "biuf" and len(arrays) > 1:
        joint, distinct = pd.factorize(np.concatenate(arrays), use_na_sentinel=False)
        ends = np.cumsum([len(array) for array in arrays])[:-1]
        return [part.astype(np.int64) for part in np.split(joint, ends)], len(distinct)
    codes, distinct = pd.factorize(arrays[0].astype(kind, copy=False), use_na_sentinel=False)
    found: list[Integers] = [codes.astype(np.int64, copy=False)]
    for array in arrays[1:]:
        place = (
            pd.Index(distinct, copy=False)
            .get_indexer(pd.Index(array.astype(kind, copy=False), copy=False))
            .astype(np.int64, copy=False)
        )
        if (new := place < 0).any():
            more, others = pd.factorize(array[new].astype(kind, copy=False), use_na_sentinel=False)
            place[new] = len(distinct) + more
            distinct = np.concatenate([distinct, others])
        found.append(place)
    return found, len(distinct)
