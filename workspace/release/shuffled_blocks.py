"""Rows of a long released table in an order that depends on the set of rows and on random numbers alone.

The rows are first put into an order that their values alone decide: into buckets by a hash of all values, and sorted
within each. Each then goes to a random bucket, and the rows of a bucket are permuted, so that all orders are equally
likely (Rao 1961; Sandelius 1962). Equal rows cannot be told apart: nothing is left of the order of the confidential
records, whoever knows the random numbers. Both lots of buckets lie in files without a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.arrays import BLOCK_THREADS, map_ahead
from sfumato.engine.data.bits import Keys, mix_bits
from sfumato.engine.data.row_buckets import BucketRows, OpenFile, RowBuckets

BUCKET_CELLS = 1 << 22
"""Values of a bucket, on average: 32 MB."""
MOST_BUCKETS = 4
"""A bucket by hash of more rows than so many on average has many equal ones: only distinct rows are sorted."""
MANY_ROWS = 1 << 18
"""Rows from which on it is quicker to sort buckets on threads."""

Cells = NDArray[np.int64]
"""Values of rows as 64 bits each, (n, k)."""


class CellCode:
    """How the columns of a table are written as 64 bits a cell, and back.

    columns: a table of the same columns, with types that hold the values of all rows and the categories of all
    """

    def __init__(self, columns: pd.DataFrame) -> None:
        self._columns = columns

    @staticmethod
    def has_code(columns: pd.DataFrame) -> bool:
        """Return whether all columns are of types that 64 bits hold."""
        return all(
            isinstance(kind, pd.CategoricalDtype) or kind in (np.float64, np.int64) or _is_moment(kind)
            for kind in columns.dtypes
        )

    def encode_rows(self, frame: pd.DataFrame) -> Cells:
        """Return the cells (n, k) of rows."""
        found = np.empty((len(frame), frame.shape[1]), dtype=np.int64)
        for at, (name, kind) in enumerate(self._columns.dtypes.items()):
            values = frame[name]
            if isinstance(kind, pd.CategoricalDtype):
                found[:, at] = values.cat.codes
                continue
            numbers = values.to_numpy().astype(kind, copy=False)
            if kind == np.float64:
                # all missing values are one, whatever their bits
                numbers = np.where(np.isnan(numbers), np.nan, numbers)
            found[:, at] = numbers.view(np.int64)
        return found

    def decode_rows(self, cells: Cells) -> pd.DataFrame:
        """Return the rows (n, k) of cells."""
        found = {}
        for at, (name, kind) in enumerate(self._columns.dtypes.items()):
            column = np.ascontiguousarray(cells[:, at])
            if isinstance(kind, pd.CategoricalDtype):
                found[name] = pd.Series(pd.Categorical.from_codes(column, dtype=kind))
            else:
                found[name] = pd.Series(column.view(kind))
        return pd.DataFrame(found, copy=False)


def _is_moment(kind: object) -> bool:
    """Return whether values of a type are dates without a time zone."""
    return isinstance(kind, np.dtype) and kind.kind == "M"


def shuffle_blocks(
    blocks: Iterable[Cells], rows: int, rng: np.random.Generator, open_file: OpenFile
) -> Iterator[Cells]:
    """Yield the rows (n, k) of blocks, about ``rows`` of them, in blocks of about ``BUCKET_CELLS`` and another order.

    The order depends on the set of rows, ``rows`` and ``rng`` alone. Files are closed at the end, or with the iterator.
    """
    by_value, by_chance = RowBuckets(open_file), RowBuckets(open_file)
    try:
        number, most = 1, 1
        for block in blocks:
            most = max(1, BUCKET_CELLS // max(1, block.shape[1]))
            number = max(1, -(-rows // most))
            _put_cells(by_value, _hash_of_rows(block) % np.uint64(number), block)
        # Read here, one bucket after another, and sorted on threads.
        held = (_read_small(by_value.read_bucket(bucket), most) for bucket in range(number))
        order = partial(_order_by_value, most)
        for lots in map_ahead(order, held, BLOCK_THREADS) if rows >= MANY_ROWS else map(order, held):
            for ordered in lots:
                _put_cells(by_chance, rng.integers(number, size=len(ordered)), ordered)
        for bucket in range(number):
            found = _cells_of_rows(by_chance.read_bucket(bucket).read_rows())
            if len(found):
                yield found[rng.permutation(len(found))]
    finally:
        by_value.close()
        by_chance.close()


def _put_cells(buckets: RowBuckets, bucket: NDArray[np.integer], cells: Cells) -> None:
    """Put rows into their buckets, bit for bit."""
    buckets.put_stacked(bucket.astype(np.int64), np.ascontiguousarray(cells).view(np.float64))


def _cells_of_rows(rows: NDArray[np.float64]) -> Cells:
    """Return the cells (n, k) that buckets hold as floats."""
    return np.ascontiguousarray(rows).view(np.int64)


def _hash_of_rows(cells: Cells) -> Keys:
    """Return a hash of the values of each row, (n,)."""
    found: Keys = np.zeros(len(cells), dtype=np.uint64)
    for at in range(cells.shape[1]):
        found = mix_bits(found ^ np.ascontiguousarray(cells[:, at]).view(np.uint64))
    return found


def _read_small(bucket: BucketRows, most: int) -> Cells | BucketRows:
    """Return the rows of a bucket, or a bucket of too many rows, unread."""
    return _cells_of_rows(bucket.read_rows()) if len(bucket) <= MOST_BUCKETS * most else bucket


def _order_by_value(most: int, rows: Cells | BucketRows) -> Iterable[Cells]:
    """Return the rows of a bucket, ordered by their values, about ``most`` at a time of one that is unread."""
    return _order_large(rows, most) if isinstance(rows, BucketRows) else [rows[_order_of_rows(rows)]]


def _order_large(bucket: BucketRows, most: int) -> Iterator[Cells]:
    """Yield the rows of a bucket of many rows, ordered by their values, about ``most`` at a time."""
    # A bucket by hash has about as many different rows as any other, so that a large one has equal rows.
    distinct, counts = None, np.empty(0, dtype=np.int64)
    for rows in bucket.iterate_rows(most):
        own = _cells_of_rows(rows)
        both = own if distinct is None else np.concatenate([distinct, own])
        order = _order_of_rows(both)
        weights = np.concatenate([counts, np.ones(len(own), dtype=np.int64)])[order]
        begins = _first_of_equal(both[order])
        distinct, counts = both[order][begins], np.add.reduceat(weights, np.flatnonzero(begins))
    assert distinct is not None
    ends = np.cumsum(counts)
    for first in range(0, int(ends[-1]), most):
        places = np.arange(first, min(int(ends[-1]), first + most))
        yield distinct[np.searchsorted(ends, places, side="right")]


def _order_of_rows(cells: Cells) -> NDArray[np.intp]:
    """Return an order of rows (n, k) that their values alone decide, (n,); equal rows stand together."""
    hashes = _hash_of_rows(cells)
    order = np.argsort(hashes)
    ordered = hashes[order]
    alike = np.append(False, ordered[1:] == ordered[:-1])
    if alike.any() and (alike & _first_of_equal(cells[order])).any():
        # different rows of one hash: one sort by a hash of all values is several times faster than this one
        return np.lexsort((*cells.T, hashes))
    return order


def _first_of_equal(ordered: Cells) -> NDArray[np.bool_]:
    """Mark the first of equal rows that follow each other, (n,)."""
    return np.append(np.ones(min(1, len(ordered)), dtype=np.bool_), (ordered[1:] != ordered[:-1]).any(axis=1))
