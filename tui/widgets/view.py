"""Moving about a plot: which range of x is in view, and where the cursor stops next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .axes import Floats, Limits
from .frame import Frame

CLOSEST = 1e-9
"""The narrowest view, as a share of the whole."""


@dataclass(frozen=True)
class View:
    """The range in view, ``seen``, within the ``whole``: of x, or of y."""

    whole: Limits
    seen: Limits

    @property
    def width(self) -> float:
        """How much is in view."""
        return self.seen[1] - self.seen[0]

    def zoomed(self, factor: float, centre: float) -> View:
        """A view ``factor`` times as wide in which ``centre`` keeps its place."""
        width = self.width * factor
        if width < CLOSEST * (self.whole[1] - self.whole[0]):
            return self
        return self.starting(centre - (centre - self.seen[0]) * factor, width)

    @property
    def narrow(self) -> bool:
        """Whether not all is in view."""
        return self.seen != self.whole

    def moved(self, share: float) -> View:
        """The view moved by a ``share`` of its width."""
        return self.starting(self.seen[0] + share * self.width, self.width)

    def showing(self, x: float) -> View:
        """The view itself where it shows ``x``, else one as wide around it."""
        if self.seen[0] <= x <= self.seen[1]:
            return self
        return self.starting(x - self.width / 2, self.width)

    def starting(self, low: float, width: float) -> View:
        """``width`` from ``low`` on, pushed back into the whole."""
        if width >= self.whole[1] - self.whole[0]:
            return View(self.whole, self.whole)
        start = min(max(low, self.whole[0]), self.whole[1] - width)
        return View(self.whole, (start, start + width))


def next_stop(stops: Floats, frame: Frame, x: float, cells: int) -> float:
    """The stop at least ``cells`` cells from ``x`` (to the left when negative), or the last one that way.

    ``stops``, rising, (k,), must not be empty.
    """
    column = np.floor(frame.x.to_dots(np.append(stops, x)) + 0.5) // frame.glyphs.across
    beyond = (stops - x) * np.sign(cells) > 0
    if cells > 0:
        found = np.flatnonzero(beyond & (column[:-1] >= column[-1] + cells))
        return float(stops[found[0]] if found.size else max(stops[-1], x))
    found = np.flatnonzero(beyond & (column[:-1] <= column[-1] + cells))
    return float(stops[found[-1]] if found.size else min(stops[0], x))


def nearest_stop(stops: Floats, x: float) -> float:
    """The stop nearest ``x``; ``stops`` (k,) must not be empty."""
    return float(stops[np.argmin(np.abs(stops - x))])
