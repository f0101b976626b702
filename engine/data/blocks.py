"""Blocks of rows, so that computations as long as a table and as wide as a design need memory for columns, not for
rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .arrays import Integers

# Most tables are then one block, whose sums are added in one go.
CELLS_PER_BLOCK = 4_000_000
"""Numbers of a block: 32 MB of float64."""


def row_blocks(rows: int, width: int = 1, cells: int | None = None) -> Iterator[slice]:
    """Yield consecutive slices that cover ``rows``, each of at most ``cells`` (``CELLS_PER_BLOCK``) numbers at
    ``width`` numbers a row.

    All blocks but the last have one size, of at least one row. A table without rows has none.
    """
    size = max(1, (CELLS_PER_BLOCK if cells is None else cells) // max(1, width))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def blocks_of_sizes(sizes: Integers, most: int) -> Iterator[slice]:
    """Yield consecutive slices that cover things of some ``sizes`` (k,), each of one thing or of at most ``most`` in
    all.
    """
    ends, first = sizes.cumsum(), 0
    while first < len(sizes):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(ends.searchsorted(before + most, "right")))
        yield slice(first, last)
        first = last
