"""Numbers and durations as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["duration", "number", "percentages"]


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


def percentages(shares: Sequence[float]) -> str:
    """``30/61/9``: shares of a whole in whole per cent."""
    return "/".join(f"{100 * share:.0f}" for share in shares)


def duration(seconds: float | None) -> str:
    """``4.2 s``, ``3 min``, ``2 h 5 min``; a dash for none."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = math.floor(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
