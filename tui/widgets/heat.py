"""Heat maps made of characters: panes of shaded bins side by side on common axes, with a bar of the shades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from sfumato.tui.terminal.glyphs import Glyphs
from sfumato.tui.terminal.text import cut_text
from sfumato.tui.widgets.canvas import CURSOR, FAINT, STRONG, TEXT, CharacterPicture, PictureDraft
from sfumato.tui.widgets.frame import AxisView
from sfumato.workspace.plots.axes import DotScale, Limits, fit_ticks, place_labels, unit_ticks
from sfumato.workspace.plots.figure import (
    CONFIDENTIAL,
    SHADES,
    SIDES,
    AxisBins,
    BinShares,
    ShadeSteps,
    make_shade_steps,
    short_percent,
)
from sfumato.workspace.plots.joint import JointDistribution
from sfumato.workspace.visible_text import replace_unprintable

RAMP = ".:-=+*#%@"
FEWER, MORE = "-=%@", "+*#&"
"""Signs of the steps without colours: for negative and for positive differences."""
# In cells: the labels of the vertical axis at most, the gap between panes, a patch in the bar of shades.
LEFT_MOST, GAP, PATCH = 14, 1, 2
ROWS_AROUND = 4
MOST_RUNS = 2800
"""Greatest number of changes of shade in a picture: at under 20 bytes each the page stays below 55 kB."""


@dataclass(frozen=True, eq=False)
class HeatPane:
    """One map of a heat map.

    title: title above it
    cells: shares of the bins
    shades: shade of each share
    """

    title: str
    cells: BinShares
    shades: ShadeSteps


@dataclass(frozen=True)
class HeatFrame:
    """Layout of the panes.

    left: first column of the first pane
    rows, columns: size of each pane in cells
    n_panes: number of panes
    """

    left: int
    rows: int
    columns: int
    n_panes: int

    def pane_column(self, pane: int) -> int:
        """Return the first column of a pane."""
        return self.left + pane * (self.columns + GAP)

    def bins_across(self, bins: int) -> NDArray[np.intp]:
        """Return the bin that each column of a pane shows, (columns,)."""
        return np.arange(self.columns) * bins // self.columns

    def bins_up(self, bins: int) -> NDArray[np.intp]:
        """Return the bin that each row of a pane shows, from the top, (rows,)."""
        return (np.arange(self.rows) * bins // self.rows)[::-1]

    def bin_at(self, x: int, y: int, bins: tuple[int, int]) -> tuple[int, int] | None:
        """Return the bin (across, up) under a cell of the picture; None outside the panes."""
        pane, column = divmod(x - self.left, self.columns + GAP)
        row = y - 1
        if not (0 <= pane < self.n_panes and 0 <= column < self.columns and 0 <= row < self.rows):
            return None
        return int(self.bins_across(bins[0])[column]), int(self.bins_up(bins[1])[row])


def lay_out_panes(size: tuple[int, int], panes: int, label: int = LEFT_MOST) -> HeatFrame:
    """Return the layout in ``size`` (width, height) if labels of the vertical axis need ``label`` cells."""
    width, height = size
    left = min(label, LEFT_MOST) + 1 if width >= 30 else 1
    columns = max(1, (width - left - GAP * (panes - 1)) // max(1, panes))
    return HeatFrame(left, max(1, height - ROWS_AROUND), columns, panes)


def most_bins(frame: HeatFrame) -> tuple[int, int]:
    """Return the greatest numbers of bins (across, up) for a layout."""
    # A map of noise changes its shade in every cell; with these numbers it is still sent quickly over a slow line.
    return max(2, min(frame.columns, MOST_RUNS // (frame.n_panes * frame.rows))), max(2, frame.rows)


def frame_of_panes(size: tuple[int, int], panes: Sequence[HeatPane]) -> HeatFrame:
    """Return the layout of panes, all of which have the same vertical bins."""
    bins = panes[0].cells.y
    labels = bins.names or unit_ticks(float(bins.edges[0]), float(bins.edges[-1]), 6, bins.unit)[1]
    return lay_out_panes(size, len(panes), max((cell_len(replace_unprintable(label)) for label in labels), default=1))


def draw_heat_map(
    panes: Sequence[HeatPane],
    size: tuple[int, int],
    glyphs: Glyphs,
    *,
    colour: bool,
    labels: tuple[str, str] = ("", ""),
    empty: str = "nothing to draw",
) -> CharacterPicture:
    """Draw the panes in a picture of ``size`` (width, height).

    With ``colour`` fills 1 to 9 are shades, 10 to 13 negative and 14 to 17 positive differences; otherwise signs stand
    for them. ``empty`` is the text if there is nothing to draw.
    """
    draft = PictureDraft(size[0], size[1], glyphs.ellipsis)
    if not panes or size[0] < 4 or size[1] < ROWS_AROUND + 1:
        draft.put_text(max(0, size[1] // 2), 0, empty, FAINT)
        return draft.to_picture()
    frame = frame_of_panes(size, panes)
    _draw_vertical_axis(draft, frame, panes[0].cells.y, glyphs)
    for number, pane in enumerate(panes):
        draft.put_text(0, frame.pane_column(number), pane.title, STRONG, frame.columns)
        _draw_cells(draft, frame, number, pane, colour=colour)
        _draw_horizontal_axis(draft, frame, number, pane.cells.x, glyphs)
    _draw_shade_bar(draft, frame, panes, labels, colour=colour)
    return draft.to_picture()


def _draw_cells(draft: PictureDraft, frame: HeatFrame, number: int, pane: HeatPane, *, colour: bool) -> None:
    """Draw the bins of a pane, as fills or as signs."""
    rows, columns = pane.cells.shares.shape
    steps = pane.shades.step_of(pane.cells.shares)[np.ix_(frame.bins_up(rows), frame.bins_across(columns))]
    left = frame.pane_column(number)
    area = np.s_[1 : 1 + frame.rows, left : left + frame.columns]
    if colour:
        draft.fills[area] = shade_fills(steps, signed=pane.shades.signed)
        return
    signs = np.array([*(FEWER[::-1] if pane.shades.signed else ""), " ", *(MORE if pane.shades.signed else RAMP)])
    draft.characters[area] = signs[steps + (SIDES if pane.shades.signed else 0)]
    draft.inks[area] = TEXT


def shade_fills(steps: NDArray[np.int16], *, signed: bool) -> NDArray[np.int16]:
    """Return the fill of each step: 0 for none, then shades, negative and positive differences."""
    if not signed:
        return steps
    return np.asarray(
        np.where(steps < 0, SHADES - steps, np.where(steps > 0, SHADES + SIDES + steps, 0)), dtype=np.int16
    )


def _draw_vertical_axis(draft: PictureDraft, frame: HeatFrame, bins: AxisBins, glyphs: Glyphs) -> None:
    """Draw the vertical axis of all panes, with labels at the first."""
    for row in range(frame.rows):
        for pane in range(frame.n_panes):
            draft.put_text(1 + row, frame.pane_column(pane) - 1, glyphs.vertical, FAINT)
    for row, label in _vertical_labels(frame, bins):
        text = cut_text(replace_unprintable(label), frame.left - 1, glyphs.ellipsis)
        draft.put_text(1 + row, frame.left - 1 - cell_len(text), text + glyphs.tick_y, FAINT)


def _vertical_labels(frame: HeatFrame, bins: AxisBins) -> list[tuple[int, str]]:
    """Return (row, label) for the vertical axis: each level once, or the ticks of numbers."""
    if bins.names:
        # A level may fill several rows; in reverse order the topmost of them is kept.
        rows = {int(place): row for row, place in reversed(list(enumerate(frame.bins_up(len(bins)))))}
        return [(row, bins.names[place]) for place, row in rows.items()]
    scale = DotScale(float(bins.edges[0]), float(bins.edges[-1]), frame.rows + 1, downward=True)
    ticks, labels = unit_ticks(scale.low, scale.high, max(1, (frame.rows + 1) // 3), bins.unit)
    rows_of = np.ceil(scale.to_dots(ticks)).astype(int).clip(1, frame.rows) - 1
    return list(zip(rows_of.tolist(), labels, strict=True))


def _draw_horizontal_axis(draft: PictureDraft, frame: HeatFrame, number: int, bins: AxisBins, glyphs: Glyphs) -> None:
    """Draw the horizontal axis of a pane with its labels."""
    below, left = 1 + frame.rows, frame.pane_column(number)
    draft.put_text(below, left - 1, glyphs.corner + glyphs.horizontal * frame.columns, FAINT)
    for column, label, start in _horizontal_labels(frame, bins, glyphs):
        draft.put_text(below, left + column, glyphs.tick_x, FAINT)
        draft.put_text(below + 1, left + start, label, FAINT)


def _horizontal_labels(frame: HeatFrame, bins: AxisBins, glyphs: Glyphs) -> list[tuple[int, str, int]]:
    """Return (column, label, first column of the label) for the horizontal axis of a pane."""
    if not bins.names:
        scale = DotScale(float(bins.edges[0]), float(bins.edges[-1]), frame.columns + 1)
        ticks, labels = fit_ticks(scale.low, scale.high, frame.columns, bins.unit)
        columns = np.floor(scale.to_dots(ticks)).astype(int).clip(0, frame.columns - 1).tolist()
        return [
            (at, label, start)
            for at, (start, label) in zip(columns, place_labels(columns, labels, frame.columns), strict=False)
        ]
    every, room = 1, max(1, frame.columns // len(bins) - 1)
    # Names of fewer than three cells say nothing, so levels are skipped until there is room for three.
    while room < 3 and every < len(bins):
        every += 1
        room = max(1, frame.columns * every // len(bins) - 1)
    starts = {int(which): column for column, which in reversed(list(enumerate(frame.bins_across(len(bins)))))}
    shown = [
        (starts[i], cut_text(replace_unprintable(bins.names[i]), room, glyphs.ellipsis))
        for i in range(0, len(bins), every)
        if i in starts
    ]
    return [(column, label, column) for column, label in shown]


def _draw_shade_bar(
    draft: PictureDraft, frame: HeatFrame, panes: Sequence[HeatPane], labels: tuple[str, str], *, colour: bool
) -> None:
    """Draw the bar of shades with the shares or differences that they stand for, and the names of the axes."""
    row, at = 1 + frame.rows + 2, 0
    for shades in {pane.shades.signed: pane.shades for pane in panes}.values():
        low, high = shade_bar_ends(shades)
        draft.put_text(row, at, low, TEXT)
        at += cell_len(low) + 1
        steps = [*range(-SIDES, 0), *range(1, SIDES + 1)] if shades.signed else list(range(1, SHADES + 1))
        for step in steps:
            if 0 <= at < draft.width - PATCH and row < draft.height:
                _put_patch(draft, row, at, step, signed=shades.signed, colour=colour)
            at += PATCH
        draft.put_text(row, at + 1, high, TEXT)
        at += cell_len(high) + 4
    words = " · ".join(
        part for part in (f"up {labels[1]}" if labels[1] else "", f"across {labels[0]}" if labels[0] else "") if part
    )
    if at + cell_len(words) <= draft.width:
        draft.put_text(row, draft.width - cell_len(replace_unprintable(words)), words, FAINT)


def _put_patch(draft: PictureDraft, row: int, column: int, step: int, *, signed: bool, colour: bool) -> None:
    """Draw the patch of one step in the bar of shades."""
    if colour:
        draft.fills[row, column : column + PATCH] = int(shade_fills(np.array([step], dtype=np.int16), signed=signed)[0])
    else:
        sign = RAMP[step - 1] if not signed else MORE[step - 1] if step > 0 else FEWER[-step - 1]
        draft.put_text(row, column, sign * PATCH, TEXT)


def shade_bar_ends(shades: ShadeSteps) -> tuple[str, str]:
    """Return the texts for both ends of the bar of shades."""
    first, last = short_percent(float(shades.ends[0])), short_percent(float(shades.ends[-1]))
    return (f"-{last}", f"+{last}") if shades.signed else (f"to {first}", last)


def add_heat_cursor(
    picture: CharacterPicture, panes: Sequence[HeatPane], glyphs: Glyphs, at: tuple[int, int]
) -> CharacterPicture:
    """Return the picture with a mark on bin ``at`` (across, up) of every pane."""
    draft = PictureDraft.from_picture(picture, glyphs.ellipsis)
    if picture.height < ROWS_AROUND + 1 or not panes:
        return picture
    frame = frame_of_panes((picture.width, picture.height), panes)
    rows, columns = panes[0].cells.shares.shape
    down = np.flatnonzero(frame.bins_up(rows) == at[1])
    right = np.flatnonzero(frame.bins_across(columns) == at[0])
    if down.size and right.size:
        for pane in range(len(panes)):
            draft.put_text(
                1 + int(down[len(down) // 2]), frame.pane_column(pane) + int(right[len(right) // 2]), "x", CURSOR
            )
    return draft.to_picture()


@dataclass(frozen=True)
class HeatView:
    """Ranges in view of both axes.

    across: range of the horizontal axis
    up: range of the vertical axis

    A range is None if the axis has levels or is not known yet.
    """

    across: AxisView | None = None
    up: AxisView | None = None

    def visible_range(self, axis: str) -> Limits | None:
        """Return the range that an axis is zoomed to; None if all is in view."""
        view = self.across if axis == "across" else self.up
        return view.visible if view is not None and view.is_zoomed else None

    def with_whole_ranges(self, found: JointDistribution) -> HeatView:
        """Return the view whose whole ranges are those of the bins, where they were not known."""
        own = found.confidential
        return HeatView(self.across or _whole_view(own.x), self.up or _whole_view(own.y))

    def zoom(self, factors: tuple[float, float], centre: tuple[float, float] | None) -> HeatView:
        """Return the view with ranges scaled by the factors about a place, or about their middles."""
        at = centre or (None, None)
        across, up = (
            _zoom_axis(view, factor, place)
            for view, factor, place in zip((self.across, self.up), factors, at, strict=True)
        )
        return replace(self, across=across, up=up)


def _whole_view(bins: AxisBins) -> AxisView | None:
    """Return the whole range of the bins; None for levels."""
    ends = float(bins.edges[0]), float(bins.edges[-1])
    return None if bins.names else AxisView(ends, ends)


def _zoom_axis(view: AxisView | None, factor: float, place: float | None) -> AxisView | None:
    """Return the range scaled about a place, or about its middle."""
    if view is None or factor == 1:
        return view
    return view.zoom(factor, sum(view.visible) / 2 if place is None else place)


def joint_panes(found: JointDistribution, which: int | None, *, log: bool) -> list[HeatPane]:
    """Return the maps of the confidential data, the released data and their difference; one alone for ``which`` (from
    1).
    """
    # Confidential and released shares have common shades, or the maps could not be compared.
    alike = [cells for cells in (found.confidential, found.released) if cells is not None]
    parts = [(CONFIDENTIAL, found.confidential), (found.release_name, found.released), ("difference", found.difference)]
    if which is not None:
        parts = parts[which - 1 : which] if found.released is not None else parts[:1]
    return [
        HeatPane(title, cells, make_shade_steps([cells] if cells.signed else alike, log=log))
        for title, cells in parts
        if cells is not None
    ]


def bin_centre(bins: AxisBins, i: int) -> float:
    """Return the value in the middle of a bin."""
    return float(bins.edges[i] + bins.edges[i + 1]) / 2


def nearest_bin(bins: AxisBins, value: float) -> int:
    """Return the bin that contains a value, or the nearest one."""
    return int(np.clip(np.searchsorted(bins.edges, value, side="right") - 1, 0, len(bins) - 1))
