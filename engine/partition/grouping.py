"""Keys of records as whole numbers, equal for records that agree on all columns, in one table or in several.

A column of levels or of whole numbers in a narrow range is itself a digit; any other is numbered as its values appear. The digits of
a record make one number in mixed radix while that fits 64 bits; where it would not, the combinations that occur are numbered again. No
table
is joined to another: the columns need 16 bytes a record more, and a hash of the combinations that occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.blocks import row_blocks

Values = NDArray[Any] | pd.Series

NARROW = 1 << 20
DENSE = 4
"""A digit's radix is at most ``NARROW``, or ``DENSE`` times the records."""

KEY_LIMIT = 2**63


@dataclass(frozen=True, eq=False)
class DigitColumn:
    """A column of each table as whole numbers in a known range.

    codes: numbers of any type, at least ``low`` and below ``low + radix``, (n,) for each table
    low: smallest number
    radix: size of the range
    """

    codes: Sequence[NDArray[Any]]
    low: int
    radix: int


def number_groups(columns: Sequence[Sequence[Values]], records: Sequence[int]) -> tuple[list[Integers], int]:
    """Number the groups of records that agree on all columns: the group of each record, (n,) for each table, and how many groups there are.

    ``records`` is the number of records of each table; ``columns`` hold one column for each table. Groups are numbered from 0 as they
    appear,
    in one table after the other; without columns there is one. A missing value equals another missing value and nothing else.
    """
    keys: list[Integers] = [np.zeros(n, dtype=np.int64) for n in records]
    size = 1
    for column in columns:
        digit = _column_digit(column)
        if size * digit.radix >= KEY_LIMIT:
            keys, size = _number_by_appearance(keys)
        for key, codes in zip(keys, digit.codes, strict=True):
            np.multiply(key, digit.radix, out=key)
            np.add(key, codes, out=key)
            np.subtract(key, digit.low, out=key)
        size *= digit.radix
    return _number_by_appearance(keys) if columns else (keys, 1)


def _column_digit(column: Sequence[Values]) -> DigitColumn:
    if all(isinstance(part.dtype, pd.CategoricalDtype) for part in column):
        return _digit_from_levels([part for part in column if isinstance(part, pd.Series)])
    arrays = [_as_plain_array(part) for part in column]
    if all(array.dtype.kind in "bi" for array in arrays) and all(map(len, arrays)):
        low, high = min(int(array.min()) for array in arrays), max(int(array.max()) for array in arrays)
        if high - low < max(NARROW, DENSE * sum(map(len, arrays))):
            return DigitColumn(
                [array.view(np.int8) if array.dtype.kind == "b" else array for array in arrays], low, high - low + 1
            )
    codes, distinct = _number_by_appearance(arrays)
    return DigitColumn(codes, 0, max(distinct, 1))


def _digit_from_levels(column: Sequence[pd.Series]) -> DigitColumn:
    """Return codes of levels, -1 where missing; levels that differ between tables, or their order, are matched by the labels."""
    levels = column[0].cat.categories
    codes: list[NDArray[Any]] = []
    for part in column:
        own = part.cat.categories
        if own is levels or own.equals(levels[: len(own)]):
            codes.append(part.cat.codes.to_numpy())
            continue
        levels = levels.append(own[levels.get_indexer(own) < 0])
        codes.append(np.append(levels.get_indexer(own), -1)[part.cat.codes.to_numpy()])
    return DigitColumn(codes, -1, len(levels) + 1)


def _as_plain_array(column: Values) -> NDArray[Any]:
    if isinstance(column, pd.Series) and isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(column.astype(column.cat.categories.dtype))
    return np.asarray(column)


def _number_by_appearance(arrays: Sequence[NDArray[Any]]) -> tuple[list[Integers], int]:
    """Number the values as they appear, and return the codes and how many values there are."""
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


def rank_values(values: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """Return the different values, ascending, and the rank of each value among them, (n,): ``np.unique`` with less memory, and faster.

    Missing ones (NaN) are one value, the last. Whole numbers in a narrow range are counted, others sorted and then searched block by block.
    """
    found = _rank_whole_numbers(values)
    if found is not None:
        return found
    distinct = np.unique(values)
    ranks = np.empty(len(values), dtype=np.int32)
    for rows in row_blocks(len(values), 4):
        order = np.argsort(values[rows])
        ranks[rows][order] = np.searchsorted(distinct, values[rows][order])
    return distinct, ranks


def _rank_whole_numbers(values: Floats) -> tuple[Floats, NDArray[np.int32]] | None:
    low, high = (float(end(values)) if len(values) else np.nan for end in (np.min, np.max))
    if not abs(low) + abs(high) < NARROW:
        return None
    occurs = np.zeros(int(high - low) + 1, dtype=np.bool_)
    places = np.empty(len(values), dtype=np.int32)
    for rows in row_blocks(len(values), 4):
        places[rows] = values[rows]
        if not np.array_equal(places[rows], values[rows]):
            return None
        places[rows] -= int(low)
        occurs[places[rows]] = True
    distinct = (np.flatnonzero(occurs) + low).astype(np.float64)
    return distinct, (np.cumsum(occurs) - 1).astype(np.int32)[places]
