"""What the command line prints: plain tables and short numbers that read well without colour."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from sfumato.workspace.reporting.numbers import duration, number

from .widgets.text import printable

__all__ = ["duration", "fits", "number", "table"]


def fits(text: str) -> bool:
    """Whether the lines fit the terminal they go to; where they go to a file, any text does."""
    return not sys.stdout.isatty() or max(map(len, text.splitlines())) <= shutil.get_terminal_size().columns


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Columns of text under their heads; the columns numbered in ``right`` are set flush right.

    Names come from untrusted files: what is not printable is shown as a question mark.
    """
    cells = [[printable(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    lines = [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
