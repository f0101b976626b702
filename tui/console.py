"""What the command line prints: plain tables and short numbers that read well without colour."""

from __future__ import annotations

from collections.abc import Sequence

from workspace.numbers import duration, number

__all__ = ["duration", "number", "table"]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Columns of text under their heads; the columns numbered in ``right`` are set flush right."""
    cells = [list(heads), *[list(row) for row in rows]]
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
