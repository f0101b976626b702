"""Heat maps made of characters: panes of shaded bins side by side on common axes, with a bar of the shades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from sfumato.tui.terminal.glyphs import Glyphs
from sfumato.tui.terminal.text import cut
from sfumato.tui.widgets.canvas import CURSOR, FAINT, STRONG, TEXT, Draft, Picture
from sfumato.tui.widgets.frame import View
from sfumato.workspace.plots.axes import Limits, Scale, fit_ticks, place, unit_ticks
from sfumato.workspace.plots.figure import CONFIDENTIAL, SHADES, SIDES, Bins, Cells, Shading, percent, shading
from sfumato.workspace.plots.joint import Joint
from sfumato.workspace.visible_text import replace_unprintable

RAMP = ".:-=+*#%@"
FEWER, MORE = "-=%@", "+*#&"
"""What stands for a step where colours cannot: few to many, and for differences both ways."""
LEFT_MOST, GAP, PATCH = 14, 1, 2
ROWS_AROUND = 4
MOST_RUNS = 2800
"""So many changes of shade, of under 20 bytes each, stay below 55 kB with what else is on the page."""


@dataclass(frozen=True, eq=False)
class Pane:
    title: str
    cells: Cells
    shades: Shading


@dataclass(frozen=True)
class HeatFrame:
    """Where the panes stand: ``rows`` by ``columns`` cells each, the first from (1, ``left``), the others beside it."""

    left: int
    rows: int
    columns: int
    panes: int

    def column(self, pane: int) -> int:
        return self.left + pane * (self.columns + GAP)

    def across(self, bins: int) -> NDArray[np.intp]:
        """The bin that each of the ``columns`` shows."""
        return np.arange(self.columns) * bins // self.columns

    def up(self, bins: int) -> NDArray[np.intp]:
        """The bin that each of the ``rows``, from the top, shows."""
        return (np.arange(self.rows) * bins // self.rows)[::-1]

    def bin_at(self, x: int, y: int, bins: tuple[int, int]) -> tuple[int, int] | None:
        """The bin (across, up) under a cell of the picture."""
        pane, column = divmod(x - self.left, self.columns + GAP)
        row = y - 1
        if not (0 <= pane < self.panes and 0 <= column < self.columns and 0 <= row < self.rows):
            return None
        return int(self.across(bins[0])[column]), int(self.up(bins[1])[row])


def room_for(size: tuple[int, int], panes: int, label: int = LEFT_MOST) -> HeatFrame:
    """The frame in ``size`` (width, height) when labels of the axis up need ``label`` cells."""
    width, height = size
    left = min(label, LEFT_MOST) + 1 if width >= 30 else 1
    columns = max(1, (width - left - GAP * (panes - 1)) // max(1, panes))
    return HeatFrame(left, max(1, height - ROWS_AROUND), columns, panes)


def most_bins(frame: HeatFrame) -> tuple[int, int]:
    """How many bins (across, up) a frame has room for, so that a page of noise is not too many bytes for a slow line."""
    return max(2, min(frame.columns, MOST_RUNS // (frame.panes * frame.rows))), max(2, frame.rows)


def heat_frame(size: tuple[int, int], panes: Sequence[Pane]) -> HeatFrame:
    """The frame of some panes, all with the same bins up."""
    bins = panes[0].cells.y
    labels = bins.names or unit_ticks(float(bins.edges[0]), float(bins.edges[-1]), 6, bins.unit)[1]
    return room_for(size, len(panes), max((cell_len(replace_unprintable(label)) for label in labels), default=1))


def draw_heat(
    panes: Sequence[Pane],
    size: tuple[int, int],
    glyphs: Glyphs,
    *,
    colour: bool,
    labels: tuple[str, str] = ("", ""),
    empty: str = "nothing to draw",
) -> Picture:
    """The picture of ``size`` (width, height). Where there is ``colour``, fills 1 to 9 are shades, 10 to 13 fewer and
    14 to 17 more; elsewhere signs stand for them. ``empty`` stands where there is nothing to draw.
    """
    draft = Draft(size[0], size[1], glyphs.ellipsis)
    if not panes or size[0] < 4 or size[1] < ROWS_AROUND + 1:
        draft.put(max(0, size[1] // 2), 0, empty, FAINT)
        return draft.finish()
    frame = heat_frame(size, panes)
    _draw_up(draft, frame, panes[0].cells.y, glyphs)
    for number, pane in enumerate(panes):
        draft.put(0, frame.column(number), pane.title, STRONG, frame.columns)
        _draw_cells(draft, frame, number, pane, colour=colour)
        _draw_across(draft, frame, number, pane.cells.x, glyphs)
    _draw_bar(draft, frame, panes, labels, colour=colour)
    return draft.finish()


def _draw_cells(draft: Draft, frame: HeatFrame, number: int, pane: Pane, *, colour: bool) -> None:
    rows, columns = pane.cells.shares.shape
    steps = pane.shades.of(pane.cells.shares)[np.ix_(frame.up(rows), frame.across(columns))]
    left = frame.column(number)
    area = np.s_[1 : 1 + frame.rows, left : left + frame.columns]
    if colour:
        draft.fills[area] = fill_of(steps, signed=pane.shades.signed)
        return
    signs = np.array([*(FEWER[::-1] if pane.shades.signed else ""), " ", *(MORE if pane.shades.signed else RAMP)])
    draft.characters[area] = signs[steps + (SIDES if pane.shades.signed else 0)]
    draft.inks[area] = TEXT


def fill_of(steps: NDArray[np.int16], *, signed: bool) -> NDArray[np.int16]:
    if not signed:
        return steps
    return np.asarray(
        np.where(steps < 0, SHADES - steps, np.where(steps > 0, SHADES + SIDES + steps, 0)), dtype=np.int16
    )


def _draw_up(draft: Draft, frame: HeatFrame, bins: Bins, glyphs: Glyphs) -> None:
    for row in range(frame.rows):
        for pane in range(frame.panes):
            draft.put(1 + row, frame.column(pane) - 1, glyphs.vertical, FAINT)
    for row, label in _up_labels(frame, bins):
        text = cut(replace_unprintable(label), frame.left - 1, glyphs.ellipsis)
        draft.put(1 + row, frame.left - 1 - cell_len(text), text + glyphs.tick_y, FAINT)


def _up_labels(frame: HeatFrame, bins: Bins) -> list[tuple[int, str]]:
    if bins.names:
        rows = {int(place): row for row, place in reversed(list(enumerate(frame.up(len(bins)))))}
        return [(row, bins.names[place]) for place, row in rows.items()]
    scale = Scale(float(bins.edges[0]), float(bins.edges[-1]), frame.rows + 1, downward=True)
    ticks, labels = unit_ticks(scale.low, scale.high, max(1, (frame.rows + 1) // 3), bins.unit)
    rows_of = np.ceil(scale.to_dots(ticks)).astype(int).clip(1, frame.rows) - 1
    return list(zip(rows_of.tolist(), labels, strict=True))


def _draw_across(draft: Draft, frame: HeatFrame, number: int, bins: Bins, glyphs: Glyphs) -> None:
    below, left = 1 + frame.rows, frame.column(number)
    draft.put(below, left - 1, glyphs.corner + glyphs.horizontal * frame.columns, FAINT)
    for column, label, start in _across_labels(frame, bins, glyphs):
        draft.put(below, left + column, glyphs.tick_x, FAINT)
        draft.put(below + 1, left + start, label, FAINT)


def _across_labels(frame: HeatFrame, bins: Bins, glyphs: Glyphs) -> list[tuple[int, str, int]]:
    if not bins.names:
        scale = Scale(float(bins.edges[0]), float(bins.edges[-1]), frame.columns + 1)
        ticks, labels = fit_ticks(scale.low, scale.high, frame.columns, bins.unit)
        columns = np.floor(scale.to_dots(ticks)).astype(int).clip(0, frame.columns - 1).tolist()
        return [
            (at, label, start)
            for at, (start, label) in zip(columns, place(columns, labels, frame.columns), strict=False)
        ]
    every, room = 1, max(1, frame.columns // len(bins) - 1)
    while room < 3 and every < len(bins):
        every += 1
        room = max(1, frame.columns * every // len(bins) - 1)
    starts = {int(which): column for column, which in reversed(list(enumerate(frame.across(len(bins)))))}
    shown = [
        (starts[i], cut(replace_unprintable(bins.names[i]), room, glyphs.ellipsis))
        for i in range(0, len(bins), every)
        if i in starts
    ]
    return [(column, label, column) for column, label in shown]


def _draw_bar(draft: Draft, frame: HeatFrame, panes: Sequence[Pane], labels: tuple[str, str], *, colour: bool) -> None:
    """The shades with the shares that they stand for, of shares and of differences; and the names of the axes."""
    row, at = 1 + frame.rows + 2, 0
    for shades in {pane.shades.signed: pane.shades for pane in panes}.values():
        low, high = bar_ends(shades)
        draft.put(row, at, low, TEXT)
        at += cell_len(low) + 1
        steps = [*range(-SIDES, 0), *range(1, SIDES + 1)] if shades.signed else list(range(1, SHADES + 1))
        for step in steps:
            if 0 <= at < draft.width - PATCH and row < draft.height:
                _put_patch(draft, row, at, step, signed=shades.signed, colour=colour)
            at += PATCH
        draft.put(row, at + 1, high, TEXT)
        at += cell_len(high) + 4
    words = " · ".join(
        part for part in (f"up {labels[1]}" if labels[1] else "", f"across {labels[0]}" if labels[0] else "") if part
    )
    if at + cell_len(words) <= draft.width:
        draft.put(row, draft.width - cell_len(replace_unprintable(words)), words, FAINT)


def _put_patch(draft: Draft, row: int, column: int, step: int, *, signed: bool, colour: bool) -> None:
    if colour:
        draft.fills[row, column : column + PATCH] = int(fill_of(np.array([step], dtype=np.int16), signed=signed)[0])
    else:
        sign = RAMP[step - 1] if not signed else MORE[step - 1] if step > 0 else FEWER[-step - 1]
        draft.put(row, column, sign * PATCH, TEXT)


def bar_ends(shades: Shading) -> tuple[str, str]:
    """What the first and the last shade stand for."""
    first, last = percent(float(shades.ends[0])), percent(float(shades.ends[-1]))
    return (f"-{last}", f"+{last}") if shades.signed else (f"to {first}", last)


def with_heat_cursor(picture: Picture, panes: Sequence[Pane], glyphs: Glyphs, at: tuple[int, int]) -> Picture:
    """The picture with a mark on bin ``at`` (across, up) of every pane."""
    draft = Draft.over(picture, glyphs.ellipsis)
    if picture.height < ROWS_AROUND + 1 or not panes:
        return picture
    frame = heat_frame((picture.width, picture.height), panes)
    rows, columns = panes[0].cells.shares.shape
    down = np.flatnonzero(frame.up(rows) == at[1])
    right = np.flatnonzero(frame.across(columns) == at[0])
    if down.size and right.size:
        for pane in range(len(panes)):
            draft.put(1 + int(down[len(down) // 2]), frame.column(pane) + int(right[len(right) // 2]), "x", CURSOR)
    return draft.finish()


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
    return float(bins.edges[i] + bins.edges[i + 1]) / 2


def bin_of(bins: Bins, value: float) -> int:
    """The bin that holds a value, or the nearest one."""
    return int(np.clip(np.searchsorted(bins.edges, value, side="right") - 1, 0, len(bins) - 1))
