"""From data to places on a drawing: linear and logarithmic scales with round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.workspace.plots.ticks import Limits, limits, short_number

from .figure import Figure, Panel
from .units import AxisUnit, log_ticks, unit_ticks

__all__ = ["Scale", "x_scale", "y_scale"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """``low`` falls on ``start`` and ``high`` on ``end``; on a logarithmic scale, their logarithms do.

    What a logarithmic scale has no place for falls on ``start``.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    unit: AxisUnit = "number"

    def shows(self, value: float) -> bool:
        """Whether the scale has a place for a value."""
        return not self.log or value > 0

    def at(self, value: float) -> float:
        """Where a value falls."""
        if self.log and value <= 0:
            return self.start
        value, low, high = (math.log10(v) if self.log else v for v in (value, self.low, self.high))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """At most ``most`` round values, each with its label; on a logarithmic scale 1, 2, 5 or powers of ten."""
        if self.log:
            return [(value, short_number(value)) for value in log_ticks(self.low, self.high, most).tolist()]
        ticks, labels = unit_ticks(self.low, self.high, most, self.unit)
        return list(zip(ticks.tolist(), labels, strict=True))


def _limits(columns: Sequence[Floats]) -> Limits:
    found = limits(np.concatenate(columns)) if columns else None
    return found or (0.0, 1.0)


def x_scale(figure: Figure, panel: Panel, start: float, end: float) -> Scale:
    """The scale of a panel's x axis, with room for whole bars, and for points to stand apart from the sides."""
    if panel.cells is not None:
        return Scale(float(panel.cells.x.edges[0]), float(panel.cells.x.edges[-1]), start, end, unit=panel.cells.x.unit)
    if panel.x_names:
        return Scale(-0.6, len(panel.x_names) - 0.4, start, end)
    low, high = _limits([one.x for one in panel.series])
    room = panel.bar / 2 if figure.marker == "bars" else 0.05 * (high - low) if figure.kind == "map" else 0.0
    return Scale(low - room, high + room, start, end, panel.log_x, panel.x_unit)


def y_scale(figure: Figure, panel: Panel, start: float, end: float) -> Scale:
    """The scale of a panel's y axis: bars and densities rise from 0, everything else has a margin.

    A logarithmic one spans what is above 0.
    """
    if panel.cells is not None:
        return Scale(float(panel.cells.y.edges[0]), float(panel.cells.y.edges[-1]), start, end, unit=panel.cells.y.unit)
    columns = [c for one in panel.series for c in (one.y, one.lower, one.upper) if c is not None]
    from_zero = figure.kind in ("histogram", "shares", "density")
    if panel.log_y:
        low, high = _limits([column[column > 0] for column in columns])
        return Scale(low, high, start, end, log=low > 0)
    low, high = _limits([*columns, np.zeros(1)] if from_zero else columns)
    margin = 0.05 * (high - low)
    return Scale(low if from_zero else low - margin, high + margin, start, end, unit=panel.y_unit)
