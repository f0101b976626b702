"""Pictures of one line of text: histograms and trends of values."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " .:-=+*%#"
HIGHEST = 6
"""Eighths of a line that the highest bar takes, so that pictures in adjacent lines do not touch."""
COURSE = BLOCKS[1 : HIGHEST + 1]
COURSE_ASCII = "_.-~^"


def sparkline(counts: Sequence[int], cells: int) -> str:
    """Draw ``counts`` as at most ``cells`` bars; neighbours are added up if there are more."""
    if not counts or cells < 1:
        return ""
    bars = min(cells, len(counts))
    edges = [len(counts) * i // bars for i in range(bars + 1)]
    sums = [sum(counts[low:high]) for low, high in pairwise(edges)]
    most = max(sums)
    is_ascii = os.environ.get("SFUMATO_GLYPHS") == "ascii"
    signs, high = (ASCII, len(ASCII) - 1) if is_ascii else (BLOCKS, HIGHEST)
    # Rounded up, so that a count above 0 is never blank.
    return "".join(signs[-(-value * high // most)] if most else " " for value in sums)


def trend_line(values: Sequence[float], cells: int) -> str:
    """Draw ``values`` in at most ``cells`` signs, higher for larger values; values are skipped if there are more."""
    known = [value for value in values if math.isfinite(value)]
    if not known or cells < 1:
        return ""
    signs = COURSE_ASCII if os.environ.get("SFUMATO_GLYPHS") == "ascii" else COURSE
    low, high = min(known), max(known)
    shown = min(cells, len(values))
    # Averages would hide quick ups and downs.
    picked = [values[i * (len(values) - 1) // max(1, shown - 1)] for i in range(shown)]
    return "".join(_height_sign(value, low, high, signs) for value in picked)


def _height_sign(value: float, low: float, high: float, signs: str) -> str:
    """Return the sign of a value between ``low`` and ``high``; blank if it is missing."""
    if not math.isfinite(value):
        return " "
    # A constant is drawn at half height.
    share = (value - low) / (high - low) if high > low else 0.5
    return signs[min(len(signs) - 1, int(share * len(signs)))]
