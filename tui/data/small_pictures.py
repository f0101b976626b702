"""Small pictures of the values of all variables, side by side in the lines that nothing else needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from textual.content import Content

from sfumato.tui.terminal.glyphs import find_glyphs
from sfumato.tui.terminal.text import fit_text
from sfumato.tui.widgets.sparkline import BLOCKS
from sfumato.workspace.visible_text import replace_unprintable

HEADING = "Values of all variables"
LEAST_WIDTH, MOST_WIDTH, PICTURE_GAP = 18, 30, 3
"""Least and greatest width of a picture, and blanks between two of them, in cells."""
HEIGHTS = (5, 4, 3, 2)
"""Lines of bars in a picture, from the best."""


def small_pictures(counts: Mapping[str, Sequence[int]], current: str, width: int, room: int) -> list[Content]:
    """Return pictures of all variables in ``width`` cells and at most ``room`` lines; nothing if not all of them fit.

    counts: number of records in each bar, by variable
    current: variable whose name is drawn with more weight than those of others
    """
    most = (width + PICTURE_GAP) // (LEAST_WIDTH + PICTURE_GAP)
    if not counts or most < 1:
        return []
    names = list(counts)
    # Rows of equal length leave no corner empty.
    across = -(-len(names) // -(-len(names) // most))
    cells = min(MOST_WIDTH, (width + PICTURE_GAP) // across - PICTURE_GAP)
    rows = [names[start : start + across] for start in range(0, len(names), across)]
    height = next((one for one in HEIGHTS if len(rows) * (one + 2) <= room), None)
    if height is None:
        return []
    gap, lines = " " * PICTURE_GAP, [Content.styled(HEADING, "bold")]
    for place, row in enumerate(rows):
        drawn = [bar_lines(counts[name], cells, height) for name in row]
        lines += [
            Content.styled(gap.join(fit_text("".join(one), cells) for one in level), "$primary")
            for level in zip(*drawn, strict=True)
        ]
        titles = [
            (fit_text(replace_unprintable(name), cells), "bold" if name == current else "$text-muted") for name in row
        ]
        lines.append(Content(gap).join(Content.styled(*one) for one in titles))
        if place < len(rows) - 1:
            lines.append(Content(""))
    return lines


def bar_lines(counts: Sequence[int], width: int, height: int) -> list[str]:
    """Return bars for ``counts`` in at most ``width`` cells and ``height`` lines; neighbours are added up if there are more."""
    if not counts:
        return [" " * width] * height
    bars = min(width, len(counts))
    edges = [len(counts) * i // bars for i in range(bars + 1)]
    sums = [sum(counts[low:high]) for low, high in pairwise(edges)]
    # Few levels have bars of several cells with a blank between them; bins of numbers touch.
    cells = width // bars
    blank = 1 if cells > 2 else 0
    most, full = max(sums), len(BLOCKS) - 1
    heights = [-(-value * height * full // most) if most else 0 for value in sums]
    is_ascii = find_glyphs().is_coarse
    lines = []
    for line in range(height):
        below = (height - 1 - line) * full
        signs = (max(0, min(full, one - below)) for one in heights)
        bar = ("#" if is_ascii and sign else BLOCKS[sign] for sign in signs)
        lines.append("".join(one * (cells - blank) + " " * blank for one in bar).ljust(width))
    return lines
