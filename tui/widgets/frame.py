"""Layout of a chart: labels, axes and legend, drawing style, and the part of the data in view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.cells import cell_len

from sfumato.tui.terminal.glyphs import BRAILLE, Glyphs
from sfumato.tui.terminal.text import cut_text, text_window
from sfumato.workspace.plots.axes import (
    AxisUnit,
    DotScale,
    Floats,
    Limits,
    fit_ticks,
    log_ticks,
    place_labels,
    unit_ticks,
)
from sfumato.workspace.plots.series import Series
from sfumato.workspace.visible_text import replace_unprintable

Shade = Literal["background", "dots", "bounds"]
MOST_DIGITS = 4
"""Most digits of a level that is a number, where all of its digits have no room."""
LEAST_NAME = 4
"""Least cells for a category's name on an axis, with the ellipsis."""
LEAST_TICKS = 4
"""Ticks of the axis of y for which it uses every second row."""
CLOSEST = 1e-9
"""Narrowest view, as a share of the whole range."""


@dataclass(frozen=True)
class ChartStyle:
    """Drawing style of a chart.

    glyphs: characters to draw with
    colour: whether series differ in colour; otherwise in dashes, textures and marks
    shade: how areas are shaded; "bounds" draws intervals as bars through the marks of a line that has few, and their ends
        as dotted lines otherwise
    """

    glyphs: Glyphs = BRAILLE
    colour: bool = True
    shade: Shade = "background"


LEAST_ROWS, LEAST_COLUMNS = 3, 10
SAMPLE, VALUE, BAND, LONGEST_NAME = 4, 8, 19, 24


@dataclass(frozen=True)
class PlotLabels:
    """Texts on a plot.

    title: title of the plot
    x_label, y_label: labels of the axes
    x_names: names of the places x = 0, 1, 2, … of a categorical axis
    log_y: whether y is logarithmic
    x_unit, y_unit: what is drawn: numbers, logarithms of them (the axis then names the numbers), or days
    empty_text: text if there is nothing to draw; by default it says so
    reads_in_legend: whether the legend has the values at the cursor; otherwise its entries are short
    name_of_zero: what x = 0 is called at the cursor, after a colon; by default the cursor has ``label = value``
    """

    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_names: tuple[str, ...] = ()
    log_y: bool = False
    x_unit: AxisUnit = "number"
    y_unit: AxisUnit = "number"
    empty_text: str = ""
    reads_in_legend: bool = True
    name_of_zero: str = ""


@dataclass(frozen=True)
class PlotLegend:
    """Legend of a plot. A single series that the axis names has no entry.

    rows: number of rows
    across: entries in a row
    entry_width: width of an entry in cells
    name_width: width of a name in cells
    n_shown: number of series that have an entry
    n_left_out: number of series without one; those that look like another need none
    has_bands: whether the ends of bands stand beside the values; left out if entries fit only without them
    has_values: whether an entry has room for the value at the cursor
    """

    rows: int
    across: int
    entry_width: int
    name_width: int
    n_shown: int
    n_left_out: int
    has_bands: bool = False
    has_values: bool = True

    @property
    def is_empty(self) -> bool:
        """Return whether no series needs an entry."""
        return not self.n_shown and not self.n_left_out

    def entry_cell(self, order: int) -> tuple[int, int]:
        """Return the (row, column), within the legend, of the entry of the series with this number."""
        return order // self.across, order % self.across * (self.entry_width + 2)


@dataclass(frozen=True)
class PlotFrame:
    """Layout of a chart, in cells.

    top, left: first cell of the plotting area
    rows, columns: size of the plotting area
    x_scale, y_scale: scales of the axes
    glyphs: characters to draw with
    x_ticks: (column, label, start of the label) of each tick
    y_ticks: (row, label) of each tick
    legend: the legend
    has_title: whether there is a line for the title
    has_axis: whether there is an axis of x
    has_foot: whether there is a line for the label of x
    """

    top: int
    left: int
    rows: int
    columns: int
    x_scale: DotScale
    y_scale: DotScale
    glyphs: Glyphs
    x_ticks: tuple[tuple[int, str, int], ...]
    y_ticks: tuple[tuple[int, str], ...]
    legend: PlotLegend
    has_title: bool
    has_axis: bool
    has_foot: bool

    @property
    def dot_shape(self) -> tuple[int, int]:
        """Return the rows and columns of dots in the plotting area."""
        return self.rows * self.glyphs.dots_down, self.columns * self.glyphs.dots_across

    def cell_of(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the (row, column) of the picture's cell that contains a point; None outside the plotting area."""
        dots = np.floor([self.y_scale.to_dots(np.array(y)) + 0.5, self.x_scale.to_dots(np.array(x)) + 0.5])
        if not (np.isfinite(dots).all() and 0 <= dots[0] < self.dot_shape[0] and 0 <= dots[1] < self.dot_shape[1]):
            return None
        return self.top + int(dots[0]) // self.glyphs.dots_down, self.left + int(dots[1]) // self.glyphs.dots_across


def lay_out_frame(
    series: Sequence[Series], labels: PlotLabels, size: tuple[int, int], glyphs: Glyphs, x: Limits, y: Limits
) -> PlotFrame:
    """Return the layout for a picture of ``size`` (width, height); parts that do not fit are left out, the
    axes last.
    """
    width, height = size
    # The lines beyond the least plotting area go to the axis first, then to legend, title and label.
    spare = height - LEAST_ROWS
    axis = spare >= 2
    spare -= 2 * axis
    said = _is_named_by_axis(series, labels)
    most = max(0, min(spare, max(1, round(height / 5))))
    key = _lay_out_legend(() if said else series, width, most, has_values=labels.reads_in_legend)
    spare -= key.rows
    titled = bool(labels.title or labels.y_label) and spare >= 1 + said
    spare -= titled
    footed = axis and spare >= 1
    rows = max(1, height - 2 * axis - key.rows - titled - footed)
    y_scale = DotScale(*y, rows * glyphs.dots_down, downward=True, log=labels.log_y)
    # Bars stand on the line of the axis, so that their 0 is that line and not the middle of the row above it.
    stands = axis and not labels.log_y and any(one.marker == "bars" for one in series)
    y_ticks = _y_ticks(y_scale, rows, glyphs, labels.y_unit, stands=stands)
    left = max((len(label) for _, label in y_ticks), default=0) + 1
    # Labels that leave no room to draw are dropped with their ticks.
    if width - left < LEAST_COLUMNS:
        left, y_ticks = min(1, width - 1), ()
    columns = width - left
    # The labels of y decide how much width is left for x, so y is laid out first.
    x_scale = DotScale(*x, columns * glyphs.dots_across)
    x_ticks = _named_ticks(labels.x_names, x_scale, columns, glyphs) or _x_ticks(
        x_scale, columns, glyphs, labels.x_unit
    )
    top = titled + key.rows
    return PlotFrame(top, left, rows, columns, x_scale, y_scale, glyphs, x_ticks, y_ticks, key, titled, axis, footed)


def _is_named_by_axis(series: Sequence[Series], labels: PlotLabels) -> bool:
    """Return whether there is one series and the axis names it, so that a legend would repeat it."""
    # Thin series have no entry in any case.
    shown = [one for one in series if not one.thin]
    return len(shown) == 1 and shown[0].name in ("", labels.y_label)


def _lay_out_legend(series: Sequence[Series], width: int, most_rows: int, *, has_values: bool) -> PlotLegend:
    """Lay out the legend within a number of rows, with intervals only if no entry is left out for them."""
    # Thin series are single datasets, which look like the series of the same name.
    series = [one for one in series if not one.thin]
    name = min(LONGEST_NAME, max((cell_len(replace_unprintable(s.name)) for s in series), default=0))
    if not has_values:
        return _legend_with_band(len(series), name, -VALUE, width, most_rows)
    if any(s.lower is not None for s in series):
        banded = _legend_with_band(len(series), name, BAND, width, most_rows)
        if not banded.n_left_out:
            return banded
    return _legend_with_band(len(series), name, 0, width, most_rows)


def _legend_with_band(count: int, name: int, band: int, width: int, most_rows: int) -> PlotLegend:
    """Lay out the legend with entries that have ``band`` cells more than a value needs, for an interval."""
    slot = SAMPLE + 1 + name + 1 + VALUE + band
    across = max(1, (width + 2) // (slot + 2))
    rows = min(most_rows, -(-count // across))
    room = rows * across
    # One slot of a full legend says how many series it leaves out.
    shown = count if count <= room else max(room - 1, min(room, 1))
    return PlotLegend(rows, across, slot, name, shown, count - shown, has_bands=band > 0, has_values=band >= 0)


def _y_ticks(
    scale: DotScale, rows: int, glyphs: Glyphs, unit: AxisUnit, *, stands: bool = False
) -> tuple[tuple[int, str], ...]:
    """Return (row, label) of each tick, at most one a row; where bars stand on the axis a tick at its low end is in the
    row of that line.
    """
    # A scale needs three values or more; a row between two labels keeps them apart.
    most = max(1, (rows + 1) // 3, min(LEAST_TICKS, (rows + 1) // 2))
    if scale.log:
        ticks = log_ticks(scale.low, scale.high, most)
        labels = [f"{tick:,.0f}" if 1e3 <= tick < 1e6 else f"{tick:g}" for tick in ticks.tolist()]
    else:
        ticks, labels = unit_ticks(scale.low, scale.high, most, unit)
    at = np.floor(scale.to_dots(ticks) + 0.5).astype(int) // glyphs.dots_down
    if stands:
        at = np.where(np.asarray(ticks) <= scale.low, rows, at)
    return tuple(dict(zip(at.tolist(), labels, strict=True)).items())


def _x_ticks(scale: DotScale, columns: int, glyphs: Glyphs, unit: AxisUnit) -> tuple[tuple[int, str, int], ...]:
    """Return (column, label, first column of the label) of each tick."""
    ticks, labels = fit_ticks(scale.low, scale.high, columns, unit)
    at = (np.floor(scale.to_dots(ticks) + 0.5).astype(int) // glyphs.dots_across).tolist()
    starts = place_labels(at, labels, columns)
    return tuple((column, label, start) for column, (start, label) in zip(at, starts, strict=False))


def _named_ticks(
    names: Sequence[str], scale: DotScale, columns: int, glyphs: Glyphs
) -> tuple[tuple[int, str, int], ...]:
    """Return ticks at the named places in view, or at every second, third, … if names would be too short to differ."""
    dots = np.floor(scale.to_dots(np.arange(len(names), dtype=np.float64)) + 0.5)
    seen = [
        (int(dot) // glyphs.dots_across, replace_unprintable(name))
        for dot, name in zip(dots, names, strict=True)
        if 0 <= dot < scale.dots
    ]
    least = min(LEAST_NAME, max((cell_len(name) for _, name in seen), default=0))
    every = max(1, -(-(least + 1) * len(seen) // max(1, columns)))
    seen = seen[::every]
    room = max(1, columns // max(1, len(seen)) - 1)
    whole = [name for _, name in seen]
    shown = _round_distinctly(whole, room) or _shorten_distinctly(whole, room, glyphs.ellipsis)
    free, ticks = 0, []
    for (column, _), label in zip(seen, shown, strict=True):
        start = max(0, min(column - cell_len(label) // 2, columns - cell_len(label)))
        if start >= free:
            ticks.append((column, label, start))
            free = start + cell_len(label) + 1
    return tuple(ticks)


def _round_distinctly(names: Sequence[str], room: int) -> list[str]:
    """Round numbers to ``room`` cells; empty where a name is no number, or two would become equal."""
    try:
        values = [float(name) for name in names]
    except ValueError:
        return []
    if all(cell_len(name) <= room for name in names) or not np.isfinite(values).all():
        return []
    # A code without decimals, such as 007, is no number to round.
    tried = (
        [f"{value:.{digits}g}" if "." in name else name for name, value in zip(names, values, strict=True)]
        for digits in range(MOST_DIGITS, 1, -1)
    )
    fits = (one for one in tried if max(map(len, one)) <= room and len(set(one)) == len(one))
    return next(fits, [])


def _shorten_distinctly(names: Sequence[str], room: int, ellipsis: str) -> list[str]:
    """Shorten names to ``room`` cells; names that would become equal lose their common beginning:
    ``…civ``, ``…spo``.
    """
    cuts = [cut_text(name, room, ellipsis) for name in names]
    for shown in {one for one in cuts if cuts.count(one) > 1}:
        alike = {name for name, one in zip(names, cuts, strict=True) if one == shown}
        first, last = min(alike), max(alike)
        begin = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
        ends = {name: text_window(f"{ellipsis}{name[begin:]}", 0, room).rstrip() for name in alike if room > 2}
        cuts = [ends.get(name, one) for name, one in zip(names, cuts, strict=True)]
    return cuts


@dataclass(frozen=True)
class AxisView:
    """Visible range of an axis.

    whole: the whole range
    visible: the range in view
    """

    whole: Limits
    visible: Limits

    @property
    def width(self) -> float:
        """Return the width of the range in view."""
        return self.visible[1] - self.visible[0]

    def zoom(self, factor: float, centre: float) -> AxisView:
        """Return the view ``factor`` times as wide in which ``centre`` keeps its place."""
        width = self.width * factor
        # Zooming further would lose the difference of the ends to rounding.
        if width < CLOSEST * (self.whole[1] - self.whole[0]):
            return self
        return self.start_at(centre - (centre - self.visible[0]) * factor, width)

    @property
    def is_zoomed(self) -> bool:
        """Return whether a part of the range is in view."""
        return self.visible != self.whole

    def shift(self, share: float) -> AxisView:
        """Return the view moved by a ``share`` of its width."""
        return self.start_at(self.visible[0] + share * self.width, self.width)

    def bring_into_view(self, x: float) -> AxisView:
        """Return the view itself if it shows ``x``, otherwise one of the same width around it."""
        if self.visible[0] <= x <= self.visible[1]:
            return self
        return self.start_at(x - self.width / 2, self.width)

    def start_at(self, low: float, width: float) -> AxisView:
        """Return the view of ``width`` from ``low`` on, moved back into the whole range."""
        if width >= self.whole[1] - self.whole[0]:
            return AxisView(self.whole, self.whole)
        start = min(max(low, self.whole[0]), self.whole[1] - width)
        return AxisView(self.whole, (start, start + width))


def next_stop(stops: Floats, frame: PlotFrame, x: float, cells: int) -> float:
    """Return the stop at least ``cells`` cells from ``x`` (to the left if negative), or the last one in that direction.

    ``stops``, rising, (k,), must not be empty.
    """
    column = np.floor(frame.x_scale.to_dots(np.append(stops, x)) + 0.5) // frame.glyphs.dots_across
    beyond = (stops - x) * np.sign(cells) > 0
    if cells > 0:
        found = np.flatnonzero(beyond & (column[:-1] >= column[-1] + cells))
        return float(stops[found[0]] if found.size else max(stops[-1], x))
    found = np.flatnonzero(beyond & (column[:-1] <= column[-1] + cells))
    return float(stops[found[-1]] if found.size else min(stops[0], x))


def nearest_stop(stops: Floats, x: float) -> float:
    """Return the stop nearest to ``x``; ``stops`` (k,) must not be empty."""
    return float(stops[np.argmin(np.abs(stops - x))])
