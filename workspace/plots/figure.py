"""A figure as a value: panels of series with their labels, whatever draws them."""

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
Kind = Literal["histogram", "shares", "density", "ecdf", "difference", "intervals", "sweep", "map", "scatter", "heat"]

CONFIDENTIAL = "confidential"
DESCRIBED_POINTS = 40


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins along an axis: ``edges`` (k + 1,) in ``unit``, or k ``names`` around the places 0, 1, 2, …"""

    edges: Floats
    names: tuple[str, ...] = ()
    unit: AxisUnit = "number"

    def __len__(self) -> int:
        return len(self.edges) - 1

    def words(self, i: int) -> str:
        """``100 .. 120``, or the name of a level."""
        if self.names:
            return self.names[i]
        low, high = (unit_text(float(edge), self.unit) for edge in self.edges[i : i + 2])
        return f"{low} .. {high}"


@dataclass(frozen=True, eq=False)
class Cells:
    """A share of the records in every bin of two axes, ``shares`` (len(y), len(x)); ``signed`` where they are differences."""

    shares: Floats
    x: Bins
    y: Bins
    signed: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes. ``x_names`` name the places x = 0, 1, 2, …; ``bar`` is the width of a bar on the x axis.

    ``log_x`` and ``log_y`` draw on logarithmic axes; ``x_unit`` and ``y_unit`` say that the numbers are logarithms or days.
    """

    title: str
    series: tuple[Series, ...]
    x_label: str = ""
    y_label: str = ""
    x_names: tuple[str, ...] = ()
    bar: float = 1.0
    log_x: bool = False
    note: str = ""
    log_y: bool = False
    x_unit: AxisUnit = "number"
    y_unit: AxisUnit = "number"
    cells: Cells | None = None


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels of one kind under a title; ``caption`` says what is to be known to read them."""

    title: str
    kind: Kind
    panels: tuple[Panel, ...]
    caption: str = ""

    @property
    def marker(self) -> Marker:
        """How the series of this kind are drawn."""
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

    def drawn(self, panel: Panel) -> list[Series]:
        """A panel's series as they are drawn, thin ones last: each with its marker, over logarithms where the axis has them."""
        return [
            replace(one, x=np.log10(one.x) if panel.log_x else one.x, marker=one.marker or self.marker)
            for one in sorted(panel.series, key=lambda one: one.thin)
        ]

    def marker_of(self, name: str) -> Marker:
        """How the series of this name is drawn."""
        own = (series.marker for panel in self.panels for series in panel.series if series.name == name)
        return next((marker for marker in own if marker), self.marker)

    def colour_of(self, name: str) -> str | None:
        """The colour that the series of this name asks for."""
        return next(
            (one.style for panel in self.panels for one in panel.series if one.name == name and one.style), None
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all series, each once, the confidential data first."""
        names = dict.fromkeys(series.name for panel in self.panels for series in panel.series)
        return tuple(sorted(names, key=lambda name: name != CONFIDENTIAL))


def marked_internal(figure: Figure) -> Figure:
    """The figure with what says in its caption that it is as confidential as the data."""
    if INTERNAL in figure.caption:
        return figure
    return replace(figure, caption=" ".join(part for part in (figure.caption, f"{INTERNAL}.") if part))


def description(figure: Figure) -> str:
    """The figure in words: its caption, and the values of every series that has not too many."""
    parts = [figure.caption] if figure.caption else []
    for panel in figure.panels:
        head = panel.title or figure.title
        parts += [f"{head}: {_words(series, panel)}." for series in panel.series if not series.thin]
        parts += [f"{head}: {_cell_words(panel.cells)}."] if panel.cells else []
        parts += [f"{panel.note}."] if panel.note else []
    return " ".join(parts)


def _cell_words(cells: Cells) -> str:
    if not np.isfinite(cells.shares).any():
        return "nothing shown"
    place = int(np.nanargmax(np.abs(cells.shares)))
    row, column = divmod(place, len(cells.x))
    value = f"{100 * cells.shares[row, column]:.3g} %"
    return f"largest {'difference' if cells.signed else 'share'} {value}, at {cells.x.words(column)} by {cells.y.words(row)}"


def _words(series: Series, panel: Panel) -> str:
    if series.x.size > DESCRIBED_POINTS:
        finite = series.y[np.isfinite(series.y)]
        return (
            f"{series.name}, a curve of at most {finite.max():.3g}" if finite.size else f"{series.name}, nothing shown"
        )
    series = series.located
    points = [f"{_place(x, panel)} {_value(series, i)}" for i, x in enumerate(series.x.tolist())]
    if series.stops:
        points = [f"{point} [{stop}]" if stop else point for point, stop in zip(points, series.stops, strict=True)]
    return f"{series.name}, " + ", ".join(points)


def _place(x: float, panel: Panel) -> str:
    if panel.x_names:
        return f"{panel.x_names[round(x)]}:"
    return f"at {x:g}" if panel.x_unit == "number" else f"at {unit_text(x, panel.x_unit)}"


def _value(series: Series, i: int) -> str:
    if not np.isfinite(series.y[i]):
        return "not shown"
    bounds: Sequence[Floats | None] = (series.lower, series.upper)
    ends = [float(bound[i]) for bound in bounds if bound is not None and np.isfinite(bound[i])]
    return f"{series.y[i]:.4g}" + (f" ({ends[0]:.4g} to {ends[1]:.4g})" if len(ends) == 2 else "")


SHADES, SIDES = 9, 4


@dataclass(frozen=True, eq=False)
class Shading:
    """The upper ends of the steps, rising, of the size of a share: (SHADES,), or (SIDES,) where ``signed``."""

    ends: Floats
    signed: bool

    def of(self, values: Floats) -> NDArray[np.int16]:
        """The step of each share, from 1; 0 where there is none, and below 0 for a difference that is: shape of ``values``."""
        sizes = np.abs(values)
        steps = np.searchsorted(self.ends * (1 - 1e-12), sizes, side="left").clip(0, len(self.ends) - 1) + 1
        found = np.where(sizes > 0, steps, 0) * np.where(values < 0, -1, 1)
        return np.asarray(np.where(np.isfinite(values), found, 0), dtype=np.int16)


def shading(parts: list[Cells], *, log: bool = False) -> Shading:
    """One shading for several panels: steps even in the square root of the share, or in its logarithm if ``log``."""
    signed = any(one.signed for one in parts)
    count = SIDES if signed else SHADES
    sizes = np.concatenate([np.abs(one.shares).ravel() for one in parts]) if parts else np.empty(0)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not sizes.size:
        return Shading(np.linspace(0, 1, count + 1)[1:], signed)
    steps = np.arange(1, count + 1) / count
    low, high = float(sizes.min()), float(sizes.max())
    ends = low * (high / low) ** steps if log and high > low else high * steps**2
    ends[-1] = high
    return Shading(ends, signed)


def percent(share: float) -> str:
    """``0.35 %``, two digits or all those before the point."""
    value = 100 * share
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.2g} %"
