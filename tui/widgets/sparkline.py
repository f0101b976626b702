"""A histogram in one line of text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["sparkline"]

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " .:-=+*%#"


def sparkline(counts: Sequence[int], cells: int) -> str:
    """``counts`` as at most ``cells`` bars, neighbours added up where there are more; what is not 0 is never blank."""
    if not counts or cells < 1:
        return ""
    bars = min(cells, len(counts))
    edges = [len(counts) * i // bars for i in range(bars + 1)]
    sums = [sum(counts[low:high]) for low, high in pairwise(edges)]
    most = max(sums)
    signs = ASCII if os.environ.get("SFUMATO_GLYPHS") == "ascii" else BLOCKS
    return "".join(signs[-(-value * 8 // most)] if most else " " for value in sums)
