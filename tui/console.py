"""What the command line prints: plain tables and short numbers that read well without colour."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["duration", "number", "table"]


def number(value: float | None) -> str:
    """Four significant digits; thousands separated; very small numbers in powers of ten; a dash for none."""
    if value is None:
        return "-"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = abs(value)
    if size >= 10_000:
        return f"{value:,.0f}"
    if size < 1e-4:
        return f"{value:.3g}"
    decimals = max(0, 3 - math.floor(math.log10(size)))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration(seconds: float | None) -> str:
    """``4.2 s``, ``3 min``, ``2 h 5 min``; a dash for none."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = math.floor(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


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
