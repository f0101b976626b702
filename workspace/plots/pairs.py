"""Pairs of released variables as heat maps for a report: bins of one or two confidential records are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from .column import Column
from .density import prefers_log
from .figure import Cells, Figure
from .joint import Joint, Window, joint
from .suppression import LEAST_RECORDS, shown_range

__all__ = ["pair_figures"]

MOST_VARIABLES = 3
ACROSS, UP = 30, 20


def pair_figures(columns: Sequence[Column], origin: str = "synthetic") -> list[Figure]:
    """The joint distribution of every two of the first three variables: confidential, released, and their difference."""
    drawn = [column for column in columns if column.released][:MOST_VARIABLES]
    return [_pair(x, y, origin) for x, y in combinations(drawn, 2)]


def _pair(x: Column, y: Column, origin: str) -> Figure:
    found = joint(x, y, _window(x, ACROSS), _window(y, UP), "band", origin)
    figure = _suppressed(found, x.confidential.size).figure(f"{x.name} by {y.name}", x.name, y.name)
    caption = f"{figure.caption} Bins of fewer than {LEAST_RECORDS} confidential records are left out."
    return replace(figure, caption=caption)


def _window(column: Column, most: int) -> Window:
    """All that is released, and the confidential values but for the two smallest and the two largest.

    Positive numbers with a long tail are binned by their logarithms, as densities are.
    """
    if column.levels:
        return Window(most)
    present = [values[~np.isnan(values)] for values in (column.confidential, *column.released)]
    log = column.unit == "number" and prefers_log(present[0]) and all((values > 0).all() for values in present)
    scaled = [np.log10(values) if log else values for values in present]
    ranges = [(float(values.min()), float(values.max())) for values in scaled[1:] if values.size]
    ranges += [found for found in [shown_range(scaled[0])] if found is not None]
    span = (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
    return Window(most, span, log)


def _suppressed(found: Joint, records: int) -> Joint:
    """The same without the confidential share, and the difference, of bins that hold too few records."""
    few = np.rint(found.confidential.shares * records) < LEAST_RECORDS

    def hidden(cells: Cells) -> Cells:
        return replace(cells, shares=np.where(few, np.nan, cells.shares))

    difference = None if found.difference is None else hidden(found.difference)
    return replace(found, confidential=hidden(found.confidential), difference=difference)
