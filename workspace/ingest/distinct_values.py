"""Distinct values of the columns of a file, from which the kind of a column is guessed.

A column of a long file is read some rows at a time. Of its numbers a million different ones are kept, with the least and
the greatest; the others are only counted. Its texts are all kept, once each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.distinct_values import count_codes, factorize_column, is_text_categorical

from .date_votes import MAX_NUMBER

if TYPE_CHECKING:
    from .spooled_columns import SpooledColumn

UNIQUE_VALUES_FROM = 1 << 16
"""Number of records above which a numeric column is reduced to its distinct values before it is examined."""
ROWS_AT_ONCE = 1 << 20
MOST_NUMBERS = 1 << 20
"""Different numbers that are kept."""
MOST_DATES = 1 << 22
"""Different numbers that are kept as long as they may be dates: there are 3,652,059 days up to the year 9999."""


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """Values of a column, or its distinct ones.

    records: number of records of the column
    values: values (n,), some of which may be missing; with ``times`` the distinct ones (k,)
    times: number of records with each, (k,); None where ``values`` are those of all records
    more_values: number of further distinct values, between the least and the greatest of ``values``. They are whole
        numbers where all of ``values`` are, and no dates
    more_records: number of records with these
    """

    records: int
    values: pd.Series
    times: NDArray[np.intp] | None = None
    more_values: int = 0
    more_records: int = 0


def distinct_of_series(values: pd.Series) -> DistinctValues:
    """Return the distinct values (k,) of a long column; of a short one its values (n,)."""
    if is_text_categorical(values):
        codes, texts = factorize_column(values)
        return DistinctValues(len(values), texts, count_codes(codes, len(texts)))
    if len(values) > UNIQUE_VALUES_FROM and values.dtype in (np.int64, np.float64):
        numbers = values.to_numpy()
        some = np.sort(numbers[~np.isnan(numbers)])
        found, counts = _count_equal(some, np.ones(len(some), dtype=np.intp))
        return DistinctValues(len(values), pd.Series(found), counts)
    return DistinctValues(len(values), values)


def distinct_of_spooled(column: SpooledColumn, *, keep_all: bool = False) -> DistinctValues:
    """Return the distinct values of a column of a long file, as ``distinct_of_series`` does of one in memory.

    ``keep_all`` keeps all different numbers, whatever their number.
    """
    records = len(column)
    if column.values is not None:
        return _distinct_of_codes(column, column.values)
    if records <= UNIQUE_VALUES_FROM:
        return distinct_of_series(column.read_series(0, records))
    kept = _KeptNumbers(keep_all=keep_all)
    for values in column.iterate_series(ROWS_AT_ONCE):
        kept.add_numbers(values.dropna().to_numpy())
    found = kept.found
    if kept.is_full and found.dtype.kind == "M":
        # whether dates are all different and regular is asked in the order of the file
        return distinct_of_series(column.read_series(0, records))
    if not kept.is_full:
        return DistinctValues(records, pd.Series(found), kept.counts)
    from .spooled_columns import count_distinct_numbers

    more = count_distinct_numbers(column) - len(found)
    return DistinctValues(
        records, pd.Series(found), np.ones(len(found), dtype=np.intp), more, kept.n_present - len(found)
    )


def _distinct_of_codes(column: SpooledColumn, values: pd.Series) -> DistinctValues:
    """Return the distinct values of a column of codes of ``values`` (k,)."""
    counts = np.zeros(len(values), dtype=np.intp)
    for first in range(0, len(column), ROWS_AT_ONCE):
        codes = column.read_numbers(first, min(len(column), first + ROWS_AT_ONCE))
        counts += count_codes(codes, len(values))
    if len(column) <= UNIQUE_VALUES_FROM and values.dtype in (np.int64, np.float64):
        return distinct_of_series(column.read_series(0, len(column)))
    if values.dtype not in (np.int64, np.float64) and not isinstance(values.dtype, pd.StringDtype):
        return distinct_of_series(column.read_series(0, len(column)))
    some = values.dropna()
    counts = counts[values.notna().to_numpy()]
    if isinstance(values.dtype, pd.StringDtype):
        own, texts = factorize_column(some)
        return DistinctValues(len(column), texts, np.bincount(own, counts, len(texts)).astype(np.intp))
    found, own = np.unique(some.to_numpy(), return_inverse=True)
    return DistinctValues(len(column), pd.Series(found), np.bincount(own, counts, len(found)).astype(np.intp))


class _KeptNumbers:
    """Different numbers of the blocks of a column, as many as are kept.

    found: the numbers that are kept, ascending, with the least and the greatest of all, (k,)
    counts: number of records with each, (k,), while none is left out
    n_present: number of records with a number
    is_full: whether numbers are left out
    """

    def __init__(self, *, keep_all: bool) -> None:
        self.found: NDArray[Any] = np.empty(0)
        self.counts = np.empty(0, dtype=np.intp)
        self.n_present, self.is_full = 0, False
        self._keep_all, self._may_be_dates = keep_all, True

    def add_numbers(self, numbers: NDArray[Any]) -> None:
        """Add the numbers (n,) of a block, none of them missing."""
        self.n_present += len(numbers)
        if not len(numbers):
            return
        if self.is_full:
            self._keep_ends(numbers)
            return
        some, counts = _count_equal(np.sort(numbers), np.ones(len(numbers), dtype=np.intp))
        self._may_be_dates = self._may_be_dates and _are_whole_and_small(some)
        if not len(self.found):
            self.found, self.counts = some, counts
        else:
            both = np.concatenate([self.found, some])
            order = np.argsort(both, kind="stable")
            self.found, self.counts = _count_equal(both[order], np.concatenate([self.counts, counts])[order])
        most = MOST_DATES if self._may_be_dates else MOST_NUMBERS
        self.is_full = len(self.found) > most and not self._keep_all

    def _keep_ends(self, numbers: NDArray[Any]) -> None:
        """Keep the least and the greatest of the numbers, and one that is not whole, where none was kept."""
        some = [numbers.min(), numbers.max()]
        if numbers.dtype.kind == "f":
            some += numbers[numbers % 1 != 0][:1].tolist()
        self.found = np.union1d(self.found, np.array(some, dtype=numbers.dtype))


def _count_equal(rising: NDArray[Any], counts: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the different ones of ascending numbers (n,), and the sum of the counts (n,) of each."""
    begins = np.flatnonzero(np.append(np.ones(min(1, len(rising)), dtype=np.bool_), rising[1:] != rising[:-1]))
    # sorting is ten times as fast as numpy.unique, which hashes
    return rising[begins], np.add.reduceat(counts, begins) if len(begins) else counts


def _are_whole_and_small(numbers: NDArray[Any]) -> bool:
    """Return whether numbers are whole and of a size that dates written as numbers have."""
    if numbers.dtype.kind == "M":
        return False
    return bool((np.abs(numbers) < MAX_NUMBER).all()) and bool((numbers % 1 == 0).all())
