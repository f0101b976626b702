"""Figures as values: panels of series with labels, independent of the code that draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.workspace.plots.axes import AxisUnit, unit_text

from ..policy.disclosure import INTERNAL
from .series import Marker, Series

Floats = NDArray[np.float64]
FigureKind = Literal[
    "histogram", "shares", "density", "ecdf", "difference", "intervals", "sweep", "map", "scatter", "heat"
]

CONFIDENTIAL = "confidential"
DESCRIBED_POINTS = 40
"""Most points of a series that a description in words lists."""


@dataclass(frozen=True, eq=False)
class AxisBins:
    """Bins along an axis: ``edges`` (k + 1,) in ``unit``, or k ``names`` around the positions 0, 1, 2, …"""

    edges: Floats
    names: tuple[str, ...] = ()
    unit: AxisUnit = "number"

    def __len__(self) -> int:
        return len(self.edges) - 1

    def bin_text(self, i: int) -> str:
        """Return a bin as text: ``100 .. 120``, or the name of its level."""
        if self.names:
            return self.names[i]
        low, high = (unit_text(float(edge), self.unit) for edge in self.edges[i : i + 2])
        return f"{low} .. {high}"


@dataclass(frozen=True, eq=False)
class BinShares:
    """Shares of the records in the bins of two axes.

    shares: the shares, (len(y), len(x))
    x, y: bins of the two axes
    signed: whether the shares are differences
    """

    shares: Floats
    x: AxisBins
    y: AxisBins
    signed: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """Pair of axes with its series.

    x_names: names of the positions x = 0, 1, 2, …
    bar_width: width of a bar in units of the x axis
    log_x, log_y: whether the axes are logarithmic
    x_unit, y_unit: unit of the numbers: numbers, logarithms or days
    cells: shares of a heat map
    """

    title: str
    series: tuple[Series, ...]
    x_label: str = ""
    y_label: str = ""
    x_names: tuple[str, ...] = ()
    bar_width: float = 1.0
    log_x: bool = False
    note: str = ""
    log_y: bool = False
    x_unit: AxisUnit = "number"
    y_unit: AxisUnit = "number"
    cells: BinShares | None = None


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels of one kind under a title, with a caption that explains them."""

    title: str
    kind: FigureKind
    panels: tuple[Panel, ...]
    caption: str = ""

    @property
    def marker(self) -> Marker:
        """Return the marker with which series of this kind of figure are drawn."""
        return {
            "histogram": "bars",
            "shares": "bars",
            "density": "line",
            "ecdf": "steps",
            "difference": "line",
            "scatter": "points",
            "heat": "points",
            "intervals": "points",
            "sweep": "line",
            "map": "points",
        }[self.kind]  # type: ignore[return-value]

    def drawn_series(self, panel: Panel) -> list[Series]:
        """Return a panel's series in drawing order, with their markers and logarithms of x where the axis has them."""
        return [
            replace(one, x=np.log10(one.x) if panel.log_x else one.x, marker=one.marker or self.marker)
            for one in sorted(panel.series, key=lambda one: one.thin)
        ]

    def series_marker(self, name: str) -> Marker:
        """Return the marker of the series of this name."""
        own = (series.marker for panel in self.panels for series in panel.series if series.name == name)
        return next((marker for marker in own if marker), self.marker)

    def series_colour(self, name: str) -> str | None:
        """Return the colour that the series of this name asks for; None for the next of the palette."""
        return next(
            (one.style for panel in self.panels for one in panel.series if one.name == name and one.style), None
        )

    @property
    def series_names(self) -> tuple[str, ...]:
        """Return the distinct names of all series, the confidential data first."""
        names = dict.fromkeys(series.name for panel in self.panels for series in panel.series)
        return tuple(sorted(names, key=lambda name: name != CONFIDENTIAL))


def mark_internal(figure: Figure) -> Figure:
    """Return the figure with a remark in its caption that it is as confidential as the data."""
    if INTERNAL in figure.caption:
        return figure
    return replace(figure, caption=" ".join(part for part in (figure.caption, f"{INTERNAL}.") if part))


def describe_figure(figure: Figure) -> str:
    """Describe the figure in words: its caption, and the values of every series that does not have too many."""
    parts = [figure.caption] if figure.caption else []
    for panel in figure.panels:
        head = panel.title or figure.title
        parts += [f"{head}: {_describe_series(series, panel)}." for series in panel.series if not series.thin]
        parts += [f"{head}: {_describe_cells(panel.cells)}."] if panel.cells else []
        parts += [f"{panel.note}."] if panel.note else []
    return " ".join(parts)


def _describe_cells(cells: BinShares) -> str:
    """Describe a heat map by its largest share."""
    if not np.isfinite(cells.shares).any():
        return "nothing shown"
    place = int(np.nanargmax(np.abs(cells.shares)))
    row, column = divmod(place, len(cells.x))
    value = f"{100 * cells.shares[row, column]:.3g} %"
    return f"largest {'difference' if cells.signed else 'share'} {value}, at {cells.x.bin_text(column)} by {cells.y.bin_text(row)}"


def _describe_series(series: Series, panel: Panel) -> str:
    """Describe a series by its points, or a long one by its maximum."""
    if series.x.size > DESCRIBED_POINTS:
        finite = series.y[np.isfinite(series.y)]
        return (
            f"{series.name}, a curve of at most {finite.max():.3g}" if finite.size else f"{series.name}, nothing shown"
        )
    series = series.with_known_x
    points = [f"{_x_text(x, panel)} {_y_text(series, i)}" for i, x in enumerate(series.x.tolist())]
    if series.stops:
        points = [f"{point} [{stop}]" if stop else point for point, stop in zip(points, series.stops, strict=True)]
    return f"{series.name}, " + ", ".join(points)


def _x_text(x: float, panel: Panel) -> str:
    """Return an x position as text."""
    if panel.x_names:
        return f"{panel.x_names[round(x)]}:"
    return f"at {x:g}" if panel.x_unit == "number" else f"at {unit_text(x, panel.x_unit)}"


def _y_text(series: Series, i: int) -> str:
    """Return the value of a series at point ``i`` as text, with its band."""
    if not np.isfinite(series.y[i]):
        return "not shown"
    bounds: Sequence[Floats | None] = (series.lower, series.upper)
    ends = [float(bound[i]) for bound in bounds if bound is not None and np.isfinite(bound[i])]
    return f"{series.y[i]:.4g}" + (f" ({ends[0]:.4g} to {ends[1]:.4g})" if len(ends) == 2 else "")


SHADES, SIDES = 9, 4


@dataclass(frozen=True, eq=False)
class ShadeSteps:
    """Upper limits of the steps of shade in a heat map, rising: (SHADES,), or (SIDES,) where ``signed``."""

    ends: Floats
    signed: bool

    def step_of(self, values: Floats) -> NDArray[np.int16]:
        """Return the step of each share, in the shape of ``values``: below 0 for negative ones, 0 without a share."""
        sizes = np.abs(values)
        # the tolerance keeps a share on the limit of a step, but for rounding, in that step
        steps = np.searchsorted(self.ends * (1 - 1e-12), sizes, side="left").clip(0, len(self.ends) - 1) + 1
        found = np.where(sizes > 0, steps, 0) * np.where(values < 0, -1, 1)
        return np.asarray(np.where(np.isfinite(values), found, 0), dtype=np.int16)


def make_shade_steps(parts: list[BinShares], *, log: bool = False) -> ShadeSteps:
    """Return steps of shade for several panels, even in the square root of the share, or in its logarithm if ``log``."""
    signed = any(one.signed for one in parts)
    count = SIDES if signed else SHADES
    sizes = np.concatenate([np.abs(one.shares).ravel() for one in parts]) if parts else np.empty(0)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not sizes.size:
        return ShadeSteps(np.linspace(0, 1, count + 1)[1:], signed)
    steps = np.arange(1, count + 1) / count
    low, high = float(sizes.min()), float(sizes.max())
    ends = low * (high / low) ** steps if log and high > low else high * steps**2
    # exactly, or rounding could put the largest share outside all steps
    ends[-1] = high
    return ShadeSteps(ends, signed)


def short_percent(share: float) -> str:
    """Return a share in per cent with two significant digits: ``0.35 %``."""
    value = 100 * share
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.2g} %"
