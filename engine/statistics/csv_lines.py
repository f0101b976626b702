"""Small tables that a recipe holds as the lines of a CSV file, the first of them the names of the columns.

The lines become part of the recipe when it is read: a run is stored with them, can be repeated without the file, and
its commitment covers them.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence

MAX_TABLE_RECORDS = 10_000
MAX_TABLE_BYTES = 512 << 10
"""Largest size of a table, so that a recipe with it is still read as a file."""


def split_table_lines(text: str) -> list[str]:
    """Return the lines of a text that are not empty."""
    return [line for line in text.splitlines() if line.strip()]


def split_table_cells(lines: Sequence[str], what: str) -> list[list[str]]:
    """Parse the cells of each line. Raises ValueError for quotes that do not close, in the table called ``what``."""
    try:
        return list(csv.reader(lines, strict=True))
    except csv.Error:
        raise ValueError(f"{what} is not a table with commas, a record a line") from None


def check_table_cells(cells: Sequence[Sequence[str]], what: str) -> None:
    """Raise ValueError where lines have different numbers of cells, or columns no names of their own."""
    names, *rows = cells
    if len(set(names)) < len(names) or not all(names):
        raise ValueError(f"the columns of {what} must have names, each its own")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise ValueError(
                f"line {number} of {what} has {len(row)} cells, its first line {len(names)}; cells stand between commas"
            )


def check_table_size(lines: Sequence[str], what: str) -> None:
    """Raise ValueError where a table has no record, or too many."""
    if len(lines) < 2:
        raise ValueError(f"{what} has no records: the first line names the columns, a record follows on each")
    if len(lines) - 1 > MAX_TABLE_RECORDS or sum(len(line.encode()) + 1 for line in lines) > MAX_TABLE_BYTES:
        raise ValueError(
            f"{what} has more than {MAX_TABLE_RECORDS:,} records or {MAX_TABLE_BYTES >> 10} KiB; a sample of it is enough"
        )


def sha256_of_lines(lines: Sequence[str]) -> str:
    """Return the SHA-256 of the lines, each followed by a line feed, which is that of a file written so."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
