"""What surrounds a chart: its labels and axes, how it is drawn, and which part of it is in view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.cells import cell_len

from sfumato.tui.terminal.glyphs import BRAILLE, Glyphs
from sfumato.tui.terminal.text import cut, window
from sfumato.workspace.plots.axes import AxisUnit, Floats, Limits, Scale, fit_ticks, log_ticks, place, unit_ticks
from sfumato.workspace.plots.series import Series
from sfumato.workspace.visible_text import replace_unprintable

Shade = Literal["background", "dots"]
LEAST_NAME = 4
"""Cells of the name of a place on an axis, the sign that it goes on among them."""
CLOSEST = 1e-9
"""The narrowest view, as a share of the whole."""


@dataclass(frozen=True)
class Look:
    """Without ``colour`` series differ in dashes, textures and marks; areas are ``shade``d by either means."""

    glyphs: Glyphs = BRAILLE
    colour: bool = True
    shade: Shade = "background"


LEAST_ROWS, LEAST_COLUMNS = 3, 10
SAMPLE, VALUE, BAND, LONGEST_NAME = 4, 8, 19, 24


@dataclass(frozen=True)
class Labels:
    """Words on a plot. ``x_names`` name the places x = 0, 1, 2, … of a categorical axis; ``log_y`` that y is logarithmic.

    ``x_unit`` and ``y_unit`` say what is drawn: numbers, logarithms of them (the axis then names the numbers), or days.
    ``empty`` stands where there is nothing to draw; left out, that.
    """

    title: str = ""
    x: str = ""
    y: str = ""
    x_names: tuple[str, ...] = ()
    log_y: bool = False
    x_unit: AxisUnit = "number"
    y_unit: AxisUnit = "number"
    empty: str = ""


@dataclass(frozen=True)
class Key:
    """The legend: ``rows`` rows of ``across`` entries, each ``slot`` cells wide, names in ``name`` cells.

    The first ``shown`` of the series have an entry; ``more`` have none, and those that look like another need none. Where all
    have one only without the ends of bands beside their values, these are left out, and it is not ``banded``. A single series that the
    axis names has no entry.
    """

    rows: int
    across: int
    slot: int
    name: int
    shown: int
    more: int
    banded: bool = False

    @property
    def empty(self) -> bool:
        """Whether no series needs an entry."""
        return not self.shown and not self.more

    def at(self, order: int) -> tuple[int, int]:
        """The (row, column), within the key, of the entry of the ``order``-th series."""
        return order // self.across, order % self.across * (self.slot + 2)


@dataclass(frozen=True)
class Frame:
    """Rows and columns in cells; the plotting area is ``rows`` by ``columns`` from (``top``, ``left``)."""

    top: int
    left: int
    rows: int
    columns: int
    x: Scale
    y: Scale
    glyphs: Glyphs
    x_ticks: tuple[tuple[int, str, int], ...]
    y_ticks: tuple[tuple[int, str], ...]
    key: Key
    titled: bool
    axis: bool
    footed: bool

    @property
    def dots(self) -> tuple[int, int]:
        """Rows and columns of dots in the plotting area."""
        return self.rows * self.glyphs.down, self.columns * self.glyphs.across

    def cell(self, x: float, y: float) -> tuple[int, int] | None:
        """The (row, column) of the picture in which a point falls; None outside the plotting area."""
        dots = np.floor([self.y.to_dots(np.array(y)) + 0.5, self.x.to_dots(np.array(x)) + 0.5])
        if not (np.isfinite(dots).all() and 0 <= dots[0] < self.dots[0] and 0 <= dots[1] < self.dots[1]):
            return None
        return self.top + int(dots[0]) // self.glyphs.down, self.left + int(dots[1]) // self.glyphs.across


def layout(
    series: Sequence[Series], labels: Labels, size: tuple[int, int], glyphs: Glyphs, x: Limits, y: Limits
) -> Frame:
    """The frame for a picture of ``size`` (width, height); what has no room is left out, the axes last."""
    width, height = size
    spare = height - LEAST_ROWS
    axis = spare >= 2
    spare -= 2 * axis
    said = _named_by_the_axis(series, labels)
    key = _key(() if said else series, width, max(0, min(spare, max(1, round(height / 5)))))
    spare -= key.rows
    titled = bool(labels.title or labels.y) and spare >= 1 + said
    spare -= titled
    footed = axis and spare >= 1
    rows = max(1, height - 2 * axis - key.rows - titled - footed)
    y_scale = Scale(*y, rows * glyphs.down, downward=True, log=labels.log_y)
    y_ticks = _y_ticks(y_scale, rows, glyphs, labels.y_unit)
    left = max((len(label) for _, label in y_ticks), default=0) + 1
    if width - left < LEAST_COLUMNS:
        left, y_ticks = min(1, width - 1), ()
    columns = width - left
    x_scale = Scale(*x, columns * glyphs.across)
    x_ticks = _named_ticks(labels.x_names, x_scale, columns, glyphs) or _x_ticks(
        x_scale, columns, glyphs, labels.x_unit
    )
    top = titled + key.rows
    return Frame(top, left, rows, columns, x_scale, y_scale, glyphs, x_ticks, y_ticks, key, titled, axis, footed)


def _named_by_the_axis(series: Sequence[Series], labels: Labels) -> bool:
    """Whether there is one series and the axis says what it is: its legend would say it again. The foot has what it says at the cursor."""
    return len(series) == 1 and series[0].name in ("", labels.y)


def _key(series: Sequence[Series], width: int, most_rows: int) -> Key:
    series = [one for one in series if not one.thin]
    name = min(LONGEST_NAME, max((cell_len(replace_unprintable(s.name)) for s in series), default=0))
    if any(s.lower is not None for s in series):
        banded = _of_slot(len(series), name, BAND, width, most_rows)
        if not banded.more:
            return banded
    return _of_slot(len(series), name, 0, width, most_rows)


def _of_slot(count: int, name: int, band: int, width: int, most_rows: int) -> Key:
    slot = SAMPLE + 1 + name + 1 + VALUE + band
    across = max(1, (width + 2) // (slot + 2))
    rows = min(most_rows, -(-count // across))
    room = rows * across
    shown = count if count <= room else max(room - 1, min(room, 1))
    return Key(rows, across, slot, name, shown, count - shown, banded=bool(band))


def _y_ticks(scale: Scale, rows: int, glyphs: Glyphs, unit: AxisUnit) -> tuple[tuple[int, str], ...]:
    """(row, label) of each tick, at most one a row."""
    most = max(1, (rows + 1) // 3)
    if scale.log:
        ticks = log_ticks(scale.low, scale.high, most)
        labels = [f"{tick:g}" for tick in ticks.tolist()]
    else:
        ticks, labels = unit_ticks(scale.low, scale.high, most, unit)
    at = np.floor(scale.to_dots(ticks) + 0.5).astype(int) // glyphs.down
    return tuple(dict(zip(at.tolist(), labels, strict=True)).items())


def _x_ticks(scale: Scale, columns: int, glyphs: Glyphs, unit: AxisUnit) -> tuple[tuple[int, str, int], ...]:
    """(column, label, column at which the label starts) of each tick."""
    ticks, labels = fit_ticks(scale.low, scale.high, columns, unit)
    at = (np.floor(scale.to_dots(ticks) + 0.5).astype(int) // glyphs.across).tolist()
    starts = place(at, labels, columns)
    return tuple((column, label, start) for column, (start, label) in zip(at, starts, strict=False))


def _named_ticks(names: Sequence[str], scale: Scale, columns: int, glyphs: Glyphs) -> tuple[tuple[int, str, int], ...]:
    """Ticks at the named places in view, or at every second, third, … where names would be too short to be told apart."""
    dots = np.floor(scale.to_dots(np.arange(len(names), dtype=np.float64)) + 0.5)
    seen = [
        (int(dot) // glyphs.across, replace_unprintable(name))
        for dot, name in zip(dots, names, strict=True)
        if 0 <= dot < scale.dots
    ]
    least = min(LEAST_NAME, max((cell_len(name) for _, name in seen), default=0))
    every = max(1, -(-(least + 1) * len(seen) // max(1, columns)))
    seen = seen[::every]
    room = max(1, columns // max(1, len(seen)) - 1)
    shown = _told_apart([name for _, name in seen], room, glyphs.ellipsis)
    free, ticks = 0, []
    for (column, _), label in zip(seen, shown, strict=True):
        start = max(0, min(column - cell_len(label) // 2, columns - cell_len(label)))
        if start >= free:
            ticks.append((column, label, start))
            free = start + cell_len(label) + 1
    return tuple(ticks)


def _told_apart(names: Sequence[str], room: int, ellipsis: str) -> list[str]:
    """Names in ``room`` cells; those that would be cut to the same lose what they begin with alike: ``…civ``, ``…spo``."""
    cuts = [cut(name, room, ellipsis) for name in names]
    for shown in {one for one in cuts if cuts.count(one) > 1}:
        alike = {name for name, one in zip(names, cuts, strict=True) if one == shown}
        first, last = min(alike), max(alike)
        begin = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
        ends = {name: window(f"{ellipsis}{name[begin:]}", 0, room).rstrip() for name in alike if room > 2}
        cuts = [ends.get(name, one) for name, one in zip(names, cuts, strict=True)]
    return cuts


@dataclass(frozen=True)
class View:
    """The range in view, ``seen``, within the ``whole``: of x, or of y."""

    whole: Limits
    seen: Limits

    @property
    def width(self) -> float:
        return self.seen[1] - self.seen[0]

    def zoomed(self, factor: float, centre: float) -> View:
        """A view ``factor`` times as wide in which ``centre`` keeps its place."""
        width = self.width * factor
        if width < CLOSEST * (self.whole[1] - self.whole[0]):
            return self
        return self.starting(centre - (centre - self.seen[0]) * factor, width)

    @property
    def narrow(self) -> bool:
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
