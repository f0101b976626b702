"""A course of values in one line of text."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

__all__ = ["trend"]

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-~^"


def trend(values: Sequence[float], cells: int) -> str:
    """``values`` in at most ``cells`` signs, the higher the larger; neighbours are left out where there are more.

    So what goes up and down quickly is seen to do so, where averages would make it look at rest.
    """
    known = [value for value in values if math.isfinite(value)]
    if not known or cells < 1:
        return ""
    signs = ASCII if os.environ.get("SFUMATO_GLYPHS") == "ascii" else BLOCKS
    low, high = min(known), max(known)
    shown = min(cells, len(values))
    picked = [values[i * (len(values) - 1) // max(1, shown - 1)] for i in range(shown)]
    return "".join(_sign(value, low, high, signs) for value in picked)


def _sign(value: float, low: float, high: float, signs: str) -> str:
    if not math.isfinite(value):
        return " "
    share = (value - low) / (high - low) if high > low else 0.5
    return signs[min(len(signs) - 1, int(share * len(signs)))]
