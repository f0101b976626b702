"""Blocks of rows: what is as long as a table times as wide as a design is computed and forgotten block by block.

Memory then grows with columns, not with rows. A table of at most ``CELLS_PER_BLOCK`` cells is one block, so that its sums are added in one go.
"""

from __future__ import annotations

from collections.abc import Iterator

CELLS_PER_BLOCK = 4_000_000
"""Numbers of a block: 32 MB of float64."""


def row_blocks(rows: int, width: int = 1, cells: int | None = None) -> Iterator[slice]:
    """Yield consecutive slices that cover ``rows``, each of at most ``cells`` (``CELLS_PER_BLOCK``) numbers for
    ``width`` numbers a row, and at least one row.

    Blocks are of one size but for the last. A table without rows has none.
    """
    size = max(1, (CELLS_PER_BLOCK if cells is None else cells) // max(1, width))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))
