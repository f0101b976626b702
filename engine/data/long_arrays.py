"""Columns of long tables outside memory: where a caller offers a place, computations put theirs there, a block at a time.

A caller names the place for a while with ``placing_long_arrays``. Inside, ``new_column`` returns arrays of that place for
columns of more rows than it says, and arrays in memory for all others. Whoever computes in ``long_blocks`` needs memory
for a block, and not for a column: after each block the pages that were read or written are given back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .arrays import map_on_threads
from .blocks import row_blocks

T = TypeVar("T", bound=np.generic)
P = TypeVar("P")
PIECE_BYTES = 1 << 26
"""Bytes of a long column whose rows are read or written together."""


class ArrayPlace(Protocol):
    """Place of arrays that the system may keep out of memory."""

    def new_array(self, rows: int, kind: np.dtype[Any]) -> NDArray[Any]:
        """Return an array to be filled, (rows,). Raises OSError where there is no room."""

    def release_pages(self) -> None:
        """Give the memory of all arrays back; what is read of them again comes from their place."""


@dataclass(frozen=True)
class _LongArrays:
    """Place of columns of more than ``rows`` rows, which is also the size of their blocks; ``threads`` compute them."""

    place: ArrayPlace
    rows: int
    threads: int


_long_arrays: ContextVar[_LongArrays | None] = ContextVar("place of long arrays", default=None)


@contextlib.contextmanager
def placing_long_arrays(place: ArrayPlace, rows: int, threads: int = 1) -> Iterator[None]:
    """Put columns of more than ``rows`` rows there while the block lasts; they stay as long as somebody uses them.

    ``threads`` compute a column, each in memory for a block of its own.
    """
    token = _long_arrays.set(_LongArrays(place, rows, threads))
    try:
        yield
    finally:
        _long_arrays.reset(token)


def is_long(rows: int) -> bool:
    """Return whether a column of so many rows is computed in blocks, outside memory."""
    found = _long_arrays.get()
    return found is not None and rows > found.rows


def new_column(rows: int, kind: DTypeLike) -> NDArray[Any]:
    """Return a column (rows,) to be filled: of a long table outside memory, unless its place has no room."""
    found = _long_arrays.get()
    if found is not None and rows > found.rows:
        with contextlib.suppress(OSError):
            return found.place.new_array(rows, np.dtype(kind))
    return np.empty(rows, dtype=kind)


def release_pages() -> None:
    """Give the memory of columns outside memory back, where there are such."""
    found = _long_arrays.get()
    if found is not None:
        found.place.release_pages()


def long_blocks(rows: int) -> Iterator[slice]:
    """Yield consecutive slices that cover ``rows``, and give the pages back after each of a long column."""
    for one in _blocks_of(rows):
        yield one
        if is_long(rows):
            release_pages()


def _blocks_of(rows: int) -> Iterator[slice]:
    found = _long_arrays.get()
    return row_blocks(rows, cells=None if found is None or rows <= found.rows else found.rows)


def for_each_part(parts: Iterable[P], compute: Callable[[P], object]) -> None:
    """Compute with parts of long columns, in any order, on as many threads as the place allows; each writes its own rows."""
    found = _long_arrays.get()

    def compute_and_release(part: P) -> None:
        compute(part)
        release_pages()

    if found is None or found.threads == 1:
        for part in parts:
            compute_and_release(part)
    else:
        map_on_threads(compute_and_release, parts, threads=found.threads)


def compute_column(rows: int, kind: DTypeLike, compute: Callable[[slice], NDArray[Any]]) -> NDArray[Any]:
    """Return the column (rows,) whose values in each block of rows ``compute`` returns, whatever the order of the blocks."""
    blocks = list(_blocks_of(rows))
    if len(blocks) == 1:
        return compute(blocks[0]).astype(kind, copy=False)
    found = new_column(rows, kind)

    def fill(some: slice) -> None:
        found[some] = compute(some)

    if is_long(rows):
        for_each_part(blocks, fill)
    else:
        for some in blocks:
            fill(some)
    return found


def zeros_column(rows: int, kind: DTypeLike) -> NDArray[Any]:
    """Return a column of zeros (rows,)."""
    return compute_column(rows, kind, lambda some: np.zeros(some.stop - some.start, dtype=kind))


def take_rows(values: NDArray[T], rows: NDArray[np.integer[Any]], kind: DTypeLike | None = None) -> NDArray[T]:
    """Return the values (n,) in some rows, (k,), as numbers of a type where one is given."""
    return compute_column(
        len(rows), values.dtype if kind is None else kind, lambda some: take_block(values, rows[some])
    )


def take_block(values: NDArray[T], rows: NDArray[np.integer[Any]]) -> NDArray[T]:
    """Return the values (n,) in a block of rows, (k,); those of a long column are read piece by piece of it."""
    found = np.empty(len(rows), dtype=values.dtype)
    for near in near_places(rows, values.nbytes):
        found[near] = values[rows[near]]
    return found


def sample_column(values: NDArray[T], step: int) -> NDArray[T]:
    """Return every ``step``-th of the values (n,), from the first on."""
    # Taken piece by piece: a value of each page would bring all of a long column into memory.
    return take_rows(values, np.arange(0, len(values), step))


def column_pieces(column: NDArray[Any]) -> list[slice]:
    """Return consecutive slices that cover a column, (n,), of which one at a time is read or written in any order."""
    return list(row_blocks(len(column), cells=max(1, PIECE_BYTES // column.itemsize)))


def near_places(rows: NDArray[np.integer[Any]], column_bytes: int) -> Iterator[Any]:
    """Yield the places in a block of row numbers (k,) whose rows lie close together, for a column of so many bytes.

    A long column is so read or written piece by piece, and the pages of a piece are given back before the next: rows in any
    order would bring all of the column into memory.
    """
    found = _long_arrays.get()
    pieces = -(-column_bytes // PIECE_BYTES)
    if found is None or pieces < 2 or len(rows) <= pieces:
        yield slice(None)
        return
    order = None if (rows[:-1] <= rows[1:]).all() else np.argsort(rows)
    ascending = rows if order is None else rows[order]
    ends = np.linspace(int(ascending[0]), int(ascending[-1]) + 1, pieces + 1)
    cuts = np.searchsorted(ascending, np.ceil(ends))
    for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        yield slice(start, end) if order is None else order[start:end]
        found.place.release_pages()


def running_sums(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return the sum of each whole number or mark (n,) and all before it, (n,)."""
    found, before = new_column(len(numbers), np.int64), 0
    for one in long_blocks(len(numbers)):
        np.cumsum(numbers[one], out=found[one])
        found[one] += before
        before = int(found[one.stop - 1])
    return found


def join_columns(parts: Sequence[NDArray[T]]) -> NDArray[T]:
    """Return columns of one type one after another; a single one is returned as it is."""
    if len(parts) == 1 or not is_long(sum(map(len, parts))):
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    found, filled = new_column(sum(map(len, parts)), parts[0].dtype), 0
    for part in parts:
        for one in long_blocks(len(part)):
            found[filled + one.start : filled + one.stop] = part[one]
        filled += len(part)
    return found


def compress_column(values: NDArray[T], kept: NDArray[np.bool_]) -> NDArray[T]:
    """Return the values (n,) that are marked as kept, in their order."""
    if not is_long(len(values)):
        return values[kept]
    found, filled = new_column(int(np.count_nonzero(kept)), values.dtype), 0
    for one in long_blocks(len(values)):
        own = values[one][kept[one]]
        found[filled : filled + len(own)] = own
        filled += len(own)
    return found


def marked_rows(marked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the numbers of the marked rows of a column (n,), ascending."""
    if not is_long(len(marked)):
        return np.flatnonzero(marked)
    found, filled = new_column(int(np.count_nonzero(marked)), np.int64), 0
    for one in long_blocks(len(marked)):
        own = np.flatnonzero(marked[one]) + one.start
        found[filled : filled + len(own)] = own
        filled += len(own)
    return found
