"""Small tables that a recipe holds as the lines of a CSV file, the first of them the names of the columns.

The lines become part of the recipe when it is read: a run is stored with them, can be repeated without the file, and
its commitment covers them.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self, TypeGuard

MAX_TABLE_RECORDS = 10_000
MAX_TABLE_BYTES = 512 << 10
"""Largest size of a table, so that a recipe with it is still read as a file."""


@dataclass(frozen=True)
class TableLines:
    """Lines of a CSV table, the header first."""

    lines: tuple[str, ...] = ()

    noun: ClassVar[str] = "the table"
    """What errors call the table."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read what a recipe holds. Raises ValueError."""
        raise NotImplementedError

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read the text of a CSV file, without its empty lines. Raises ValueError."""
        return cls.parse([line for line in text.splitlines() if line.strip()])

    @property
    def records(self) -> int:
        return max(0, len(self.lines) - 1)

    @cached_property
    def sha256(self) -> str:
        """Return the SHA-256 of the lines, each followed by a line feed, which is that of a file written so."""
        return hashlib.sha256("".join(f"{line}\n" for line in self.lines).encode()).hexdigest()

    @cached_property
    def cells(self) -> list[list[str]]:
        """Return the cells of each line, parsed once. Raises ValueError for quotes that do not close."""
        try:
            return list(csv.reader(self.lines, strict=True))
        except csv.Error:
            raise ValueError(f"{self.noun} is not a table with commas, a record a line") from None

    def check_lines(self) -> None:
        """Raise ValueError where there is no record, or too many, lines have different numbers of cells, or columns no
        names of their own.
        """
        if not self.records:
            raise ValueError(f"{self.noun} has no records: the first line names the columns, a record follows on each")
        if self.records > MAX_TABLE_RECORDS or sum(len(line.encode()) + 1 for line in self.lines) > MAX_TABLE_BYTES:
            raise ValueError(
                f"{self.noun} has more than {MAX_TABLE_RECORDS:,} records or {MAX_TABLE_BYTES >> 10} KiB; a sample of it is enough"
            )
        names, *rows = self.cells
        if len(set(names)) < len(names) or not all(names):
            raise ValueError(f"the columns of {self.noun} must have names, each its own")
        for number, row in enumerate(rows, start=2):
            if len(row) != len(names):
                raise ValueError(
                    f"line {number} of {self.noun} has {len(row)} cells, its first line {len(names)}; cells stand between commas"
                )


def is_list_of_lines(value: object) -> TypeGuard[Sequence[str]]:
    """Return whether a recipe's value is a list of texts."""
    return isinstance(value, list | tuple) and all(isinstance(line, str) for line in value)
