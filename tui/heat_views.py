"""Which heat maps of a joint distribution are shown, and which ranges of their axes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfumato.workspace.plots.figure import CONFIDENTIAL, Bins
from sfumato.workspace.plots.joint import Joint
from sfumato.workspace.plots.shades import shading
from sfumato.workspace.plots.ticks import Limits

from .widgets.heat import Pane
from .widgets.view import View

__all__ = ["HeatView", "bin_of", "middle", "panes_of"]


@dataclass(frozen=True)
class HeatView:
    """The range in view of the axis across and of the one up, None where the axis has levels or is not known yet."""

    across: View | None = None
    up: View | None = None

    def span(self, axis: str) -> Limits | None:
        """The range that is asked for; None for all there is."""
        view = self.across if axis == "across" else self.up
        return view.seen if view is not None and view.narrow else None

    def taking(self, found: Joint) -> HeatView:
        """The same, with the whole ranges from the bins where they were not known."""
        own = found.confidential
        return HeatView(self.across or _whole(own.x), self.up or _whole(own.y))

    def zoomed(self, factors: tuple[float, float], centre: tuple[float, float] | None) -> HeatView:
        """Ranges so many times as wide and as high about a place, or about their middles."""
        at = centre or (None, None)
        across, up = (
            _zoomed(view, factor, place)
            for view, factor, place in zip((self.across, self.up), factors, at, strict=True)
        )
        return replace(self, across=across, up=up)


def _whole(bins: Bins) -> View | None:
    ends = float(bins.edges[0]), float(bins.edges[-1])
    return None if bins.names else View(ends, ends)


def _zoomed(view: View | None, factor: float, place: float | None) -> View | None:
    if view is None or factor == 1:
        return view
    return view.zoomed(factor, sum(view.seen) / 2 if place is None else place)


def panes_of(found: Joint, which: int | None, *, log: bool) -> list[Pane]:
    """The maps of the confidential data, of the released and of their difference; of ``which`` (from 1) one alone."""
    alike = [cells for cells in (found.confidential, found.released) if cells is not None]
    parts = [(CONFIDENTIAL, found.confidential), (found.name, found.released), ("difference", found.difference)]
    if which is not None:
        parts = parts[which - 1 : which] if found.released is not None else parts[:1]
    return [
        Pane(title, cells, shading([cells] if cells.signed else alike, log=log))
        for title, cells in parts
        if cells is not None
    ]


def middle(bins: Bins, i: int) -> float:
    """The middle of a bin."""
    return float(bins.edges[i] + bins.edges[i + 1]) / 2


def bin_of(bins: Bins, value: float) -> int:
    """The bin that holds a value, or the nearest one."""
    return int(np.clip(np.searchsorted(bins.edges, value, side="right") - 1, 0, len(bins) - 1))
