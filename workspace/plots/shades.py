"""The shades of heat maps as SVG: a rectangle a run of one shade, and the legend."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from .figure import SHADES, SIDES, Cells, Shading, percent
from .markup import Markup, element

MANY = ("#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b", "#041c40")
"""ColorBrewer's blues (Harrower and Brewer 2003)."""
MORE = ("#fdd0a2", "#fd8d3c", "#d94801", "#7f2704")
FEWER = ("#c6dbef", "#6baed6", "#2171b5", "#08306b")


def colour_of(step: int, *, signed: bool) -> str:
    """The colour of a step; blue is few or fewer, orange more."""
    if not signed:
        return MANY[step - 1]
    return MORE[step - 1] if step > 0 else FEWER[-step - 1]


def cell_marks(cells: Cells, shades: Shading, left: float, top: float, right: float, bottom: float) -> Iterator[Markup]:
    """The bins with a share, each run of one shade in a row as one rectangle."""
    rows, columns = cells.shares.shape
    width, height = (right - left) / columns, (bottom - top) / rows
    for row, steps in enumerate(shades.of(cells.shares).tolist()):
        start = 0
        for step, run in groupby(steps):
            count = len(list(run))
            if step:
                yield element(
                    "rect", x=left + start * width, y=bottom - (row + 1) * height, width=count * width,
                    height=height, fill=colour_of(step, signed=shades.signed), shape_rendering="crispEdges",
                )  # fmt: skip
            start += count


def shade_legend(shades: Shading, x: float, y: float) -> Iterator[Markup]:
    """Patches from the least step to the greatest, with the ends in per cent."""
    steps = [*range(-SIDES, 0), *range(1, SIDES + 1)] if shades.signed else list(range(1, SHADES + 1))
    low = f"-{percent(float(shades.ends[-1]))}" if shades.signed else f"up to {percent(float(shades.ends[0]))}"
    high = f"{'+' if shades.signed else ''}{percent(float(shades.ends[-1]))}"
    start = x + 90
    yield element("text", low, x=start - 6, y=y + 10, text_anchor="end", font_size=10)
    for place, step in enumerate(steps):
        fill = colour_of(step, signed=shades.signed)
        yield element("rect", x=start + 16 * place, y=y, width=16, height=12, fill=fill)
    yield element("text", high, x=start + 16 * len(steps) + 6, y=y + 10, font_size=10)
