"""Rows of a table as lines of text in columns of fixed width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from .pages import ColumnLike, TableRow
from .text import fit, printable, shown

GAP = 2
"""TableRow between columns."""


@dataclass(frozen=True)
class Table:
    """The columns of a table, and the one-cell ``ellipsis`` that shows where a text was cut."""

    columns: Sequence[ColumnLike]
    ellipsis: str = "…"

    @property
    def width(self) -> int:
        """TableRow in a line: a blank at either end, GAP between columns."""
        return sum(column.width for column in self.columns) + GAP * max(len(self.columns) - 1, 0) + 2

    @property
    def starts(self) -> list[int]:
        """The cell, less the leading blank, at which each column starts."""
        return list(accumulate((column.width + GAP for column in self.columns), initial=0))[:-1]

    def header(self) -> str:
        """The titles in ``width`` cells."""
        return self._line([printable(column.title) for column in self.columns])

    def line(self, row: TableRow) -> str:
        """``row`` in ``width`` cells; columns it has no value for stay empty."""
        missing = "–" if self.ellipsis == "…" else "-"
        return self._line([shown(value, missing) for value in row[: len(self.columns)]])

    def waiting(self) -> str:
        """The line of a row that has not been read yet."""
        return self._line([self.ellipsis])

    def _line(self, texts: Sequence[str]) -> str:
        padded = [*texts, *[""] * (len(self.columns) - len(texts))]
        parts = (fit(text, c.width, c.align, self.ellipsis) for text, c in zip(padded, self.columns, strict=True))
        return f" {(' ' * GAP).join(parts)} "
