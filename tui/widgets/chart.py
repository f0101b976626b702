"""Draw charts made of characters, with series, axes, legend and cursor, as a ``CharacterPicture`` or plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from sfumato.engine.wording import format_number
from sfumato.tui.terminal.glyphs import Glyphs, find_glyphs
from sfumato.tui.widgets.canvas import (
    BLANK,
    CURSOR,
    FAINT,
    SERIES,
    SOLID,
    STRONG,
    TEXT,
    CharacterPicture,
    Mask,
    PictureDraft,
    covered_cells,
    hatch_pattern,
    rasterise_band,
    rasterise_bars,
    rasterise_line,
    rasterise_points,
)
from sfumato.tui.widgets.frame import SAMPLE, ChartStyle, PlotFrame, PlotLabels, lay_out_frame
from sfumato.workspace.plots.axes import AxisUnit, Floats, Limits, unit_text
from sfumato.workspace.plots.series import Series, SeriesReading, styled_like, x_limits, y_limits

BLOCKS = " ▂▄▆█"
"""Characters of a bar's cell, by height."""
FEW_POINTS = 60
"""Number of points up to which each has a mark; more points become single dots."""
CELLS_OF_BAR = 3
"""Cells of the width of a chart that the interval of a point needs to be a bar of its own."""
LEAST_HALF_BAR = 3
"""Rows from which on an interval is drawn though the mark covers one of its ends."""
LEAST_ALIGNED = 10
"""Rows from which on lines go through the middle of their marks; in fewer they would lose too much of their slope."""
_PATTERNS = ("1", "11100", "100", "1111100100", "10000", "110000", "1111111001001000", "111111000000")
DOTTED = (True, False, False, False)
"""Dots of the ends of an interval where its area is not shaded."""
DASHES = tuple(tuple(dot == "1" for dot in pattern) for pattern in _PATTERNS)
PALETTE = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#f0e442", "#0072b2")
"""Okabe and Ito's colours, distinguishable with all common kinds of colour vision."""


@dataclass(frozen=True, eq=False)
class SeriesMasks:
    """Dots and cells that a series draws.

    mask: dots of its line, points or bars, (rows, columns)
    band: dots of its interval, (rows, columns)
    marks: (row, column) cells of its marks
    bars: (column, first row, last row) cells of the bars of its intervals
    """

    mask: Mask
    band: Mask
    marks: tuple[tuple[int, int], ...] = ()
    bars: tuple[tuple[int, int, int], ...] = ()


def series_mark(order: int, glyphs: Glyphs) -> str:
    """Return the mark of the series with this number."""
    return glyphs.marks[order % len(glyphs.marks)]


def draw_series(one: Series, order: int, series: Sequence[Series], frame: PlotFrame, look: ChartStyle) -> SeriesMasks:
    """Return the dots and marks of the series ``one``, number ``order`` of ``series``, in ``frame``."""
    x, y = frame.x_scale.to_dots(one.x), _row_dots(series, one.y, frame, look)
    empty = np.zeros(frame.dot_shape, dtype=np.bool_)
    if one.marker == "points":
        # Many marks would cover each other; without colour they are needed to tell series apart.
        few = not look.glyphs.is_coarse and _has_marks(one, look)
        dots = empty if few else rasterise_points(x, y, frame.dot_shape)
        return SeriesMasks(dots | _draw_whiskers(one, x, frame), empty, _point_cells(x, y, frame) if few else ())
    if one.marker == "bars":
        return SeriesMasks(_draw_bars(one, order, series, frame, look) | _draw_whiskers(one, x, frame), empty)
    vertices = _stair_corners(x[one.x_order], y[one.x_order]) if one.marker == "steps" else (x, y)
    if look.shade == "bounds":
        # A thin line in a colour of its own, such as a limit, is dashed.
        dash = DASHES[1] if one.thin else _dash_pattern(styled_like(series, order), look)
        line = rasterise_line(*vertices, frame.dot_shape, dash)
        if _has_interval_bars(one, series, frame, look):
            return SeriesMasks(line, empty, bars=_interval_bars(one, x, series, frame, look))
        return SeriesMasks(line | _draw_bounds(one, x, series, frame, look), empty)
    return SeriesMasks(
        rasterise_line(*vertices, frame.dot_shape, _dash_pattern(styled_like(series, order), look)),
        _keep_thick_band(_draw_band(one, frame), frame),
    )


def _has_interval_bars(one: Series, series: Sequence[Series], frame: PlotFrame, look: ChartStyle) -> bool:
    """Return whether the intervals of a line are bars through its marks: it has marks, and they stand apart."""
    is_marked = any(s.name == one.name and s.marker == "points" and _has_marks(s, look) for s in series)
    return is_marked and not look.glyphs.is_coarse and one.x.size * CELLS_OF_BAR <= frame.columns


def _interval_bars(
    one: Series, x: Floats, series: Sequence[Series], frame: PlotFrame, look: ChartStyle
) -> tuple[tuple[int, int, int], ...]:
    """Return the cells of the interval at each point: its column, first and last row; none for a point without."""
    if one.lower is None or one.upper is None:
        return ()
    down, across, (rows, columns) = frame.glyphs.dots_down, frame.glyphs.dots_across, frame.dot_shape
    ends = []
    for bound in (one.upper, one.lower):
        dots = _row_dots(series, bound, frame, look)
        # An end that a logarithmic axis cannot show lies below it.
        ends.append(np.where(np.isfinite(dots), dots, _bound_dots(bound, frame)))
    found = []
    marks, known = _row_dots(series, one.y, frame, look), np.isfinite(one.lower) & np.isfinite(one.upper)
    for place, top, bottom, mark, is_known in zip(x, *ends, marks, known, strict=True):
        if is_known and -0.5 <= place <= columns - 0.5 and bottom >= 0 and top < rows:
            first, last = (int(np.clip(np.floor(end + 0.5), 0, rows - 1)) // down for end in (top, bottom))
            middle = int(np.clip(np.floor(mark + 0.5), 0, rows - 1)) // down if np.isfinite(mark) else None
            # A mark covers the end within its cell; of a short interval half would be left, which says nothing.
            if middle in (first, last) and last - first < LEAST_HALF_BAR:
                continue
            found.append((int(np.floor(place + 0.5)) // across, first, last))
    return tuple(found)


def _has_marks(one: Series, look: ChartStyle) -> bool:
    """Return whether each point of a series has a mark: without colours always, otherwise if there are few."""
    return not look.colour or one.x.size <= FEW_POINTS


def _dash_pattern(order: int, look: ChartStyle) -> tuple[bool, ...]:
    """Return the dashes of a line: solid where colours distinguish the series."""
    return SOLID if look.colour else DASHES[order % len(DASHES)]


def _draw_bars(one: Series, order: int, series: Sequence[Series], frame: PlotFrame, look: ChartStyle) -> Mask:
    """Return the dots of a bar series: the first as hatched boxes, each further one as lines across them
    at its value.
    """
    group = [other for other in series if other.marker == "bars"]
    width = 0.8 * min(other.x_spacing for other in group)
    left, right = frame.x_scale.to_dots(one.x - width / 2), frame.x_scale.to_dots(one.x + width / 2)
    base = np.broadcast_to(frame.y_scale.to_dots(np.zeros(1)), left.shape)
    top = frame.y_scale.to_dots(one.y)
    # Lines at the same place can be compared with the boxes, and need few bytes.
    if one is not group[0]:
        gaps = np.full(left.size, np.nan)
        ends = np.column_stack([left, right, gaps]).ravel()
        return rasterise_line(ends, np.repeat(top, 3), frame.dot_shape, _dash_pattern(order, look))
    # A bar of height 0 has no top; NaN keeps its dot out of the picture.
    filled = rasterise_bars(left, right, base, np.where(one.y == 0, np.nan, top), frame.dot_shape)
    if look.glyphs.is_coarse or has_solid_bars(series, look):
        return filled
    return filled & (_mask_edge(filled) | hatch_pattern(frame.dot_shape, look.glyphs, order, every=4))


def has_solid_bars(series: Sequence[Series], look: ChartStyle) -> bool:
    """Return whether bars are drawn as solid blocks.

    That is so for a single series without intervals and without negative values, in a terminal that has block
    characters.
    """
    one = series[0] if len(series) == 1 else None
    return (
        one is not None
        and one.marker == "bars"
        and one.lower is None
        and not look.glyphs.is_coarse
        and bool(np.nanmin(one.y, initial=0.0) >= 0)
    )


def _block_heights(mask: Mask, glyphs: Glyphs) -> NDArray[np.intp]:
    """Return the index in ``BLOCKS`` for each cell of bars, from the dots of the cell's fuller column."""
    rows, columns = mask.shape[0] // glyphs.dots_down, mask.shape[1] // glyphs.dots_across
    dots = mask.reshape(rows, glyphs.dots_down, columns, glyphs.dots_across).sum(axis=1).max(axis=2)
    return np.asarray(dots * (len(BLOCKS) - 1) // glyphs.dots_down)


def _mask_edge(mask: Mask) -> Mask:
    """Mark the dots of ``mask`` next to a dot that is not in it, or to a side of the canvas."""
    framed = np.pad(mask, 1)
    inner = framed[:-2, 1:-1] & framed[2:, 1:-1] & framed[1:-1, :-2] & framed[1:-1, 2:]
    return np.asarray(mask & ~inner)


def _draw_whiskers(one: Series, x: Floats, frame: PlotFrame) -> Mask:
    """Return the dots of vertical lines from lower to upper at every x."""
    if one.lower is None or one.upper is None:
        return np.zeros(frame.dot_shape, dtype=np.bool_)
    gap = np.full(x.size, np.nan)
    ends = (_bound_dots(one.lower, frame), _bound_dots(one.upper, frame), gap)
    return rasterise_line(np.repeat(x, 3), np.column_stack(ends).ravel(), frame.dot_shape)


def _bound_dots(bound: Floats, frame: PlotFrame) -> Floats:
    """Return the rows of the ends of intervals, in dots; ends that a logarithmic axis cannot show lie
    below the axis.
    """
    # NaN would drop the whole interval, so it is drawn down to the axis instead.
    below = frame.dot_shape[0] + 1.0
    return (
        np.where(bound <= 0, below, frame.y_scale.to_dots(bound)) if frame.y_scale.log else frame.y_scale.to_dots(bound)
    )


def _draw_band(one: Series, frame: PlotFrame) -> Mask:
    """Return the dots between lower and upper, interpolated (or constant, for steps) at every dot column."""
    if one.lower is None or one.upper is None or one.x_order.size == 0:
        return np.zeros(frame.dot_shape, dtype=np.bool_)
    x = frame.x_scale.to_dots(one.x[one.x_order])
    columns = np.arange(frame.dot_shape[1], dtype=np.float64)
    inside = (columns >= x[0] - 0.5) & (columns <= x[-1] + 0.5)
    ends = []
    for bound in (one.upper, one.lower):
        y = _bound_dots(bound[one.x_order], frame)
        held = y[np.searchsorted(x, columns, side="right").clip(1) - 1]
        at = held if one.marker == "steps" else np.interp(columns, x, np.where(np.isfinite(y), y, np.nan))
        ends.append(np.where(inside, at, np.nan))
    return rasterise_band(ends[0], ends[1], frame.dot_shape)


def _row_dots(series: Sequence[Series], y: Floats, frame: PlotFrame, look: ChartStyle) -> Floats:
    """Return the rows of values in dots; where lines have a mark at each point and no area is shaded, those of the
    marks.
    """
    dots = frame.y_scale.to_dots(y)
    is_marked = any(one.marker == "points" and one.thin and _has_marks(one, look) for one in series)
    if look.shade != "bounds" or not is_marked or look.glyphs.is_coarse or frame.rows < LEAST_ALIGNED:
        return dots
    # A mark stands in the middle of its cell, and a line that passed above or below it would seem to miss it. All of a
    # chart move alike, so that none comes to lie on the other side of another.
    down = frame.glyphs.dots_down
    return np.asarray(np.floor((dots + 0.5) / down) * down + down // 2)


def _draw_bounds(one: Series, x: Floats, series: Sequence[Series], frame: PlotFrame, look: ChartStyle) -> Mask:
    """Return the dots of the ends of the interval of a line, dotted."""
    bounds = [one.lower, one.upper] if one.lower is not None and one.upper is not None else []
    drawn = np.zeros(frame.dot_shape, dtype=np.bool_)
    for bound in bounds:
        ends = _row_dots(series, bound[one.x_order], frame, look)
        # An end that a logarithmic axis cannot show lies below it.
        rows = np.where(np.isfinite(ends), ends, _bound_dots(bound[one.x_order], frame))
        drawn |= rasterise_line(x[one.x_order], rows, frame.dot_shape, DOTTED)
    return drawn


def _keep_thick_band(band: Mask, frame: PlotFrame) -> Mask:
    """Keep the band where it is at least a cell high."""
    # A narrower band would reach half of a cell in some columns and not in others, and appear in patches.
    across = frame.glyphs.dots_across
    least = band.sum(axis=0).reshape(-1, across).min(axis=1) >= frame.glyphs.dots_down
    return np.asarray(band & np.repeat(least, across))


def _stair_corners(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the corners (x, y) of a step function that keeps each y until the next x."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _point_cells(x: Floats, y: Floats, frame: PlotFrame) -> tuple[tuple[int, int], ...]:
    """Return the distinct (row, column) cells of the plotting area that contain points."""
    dots = np.argwhere(rasterise_points(x, y, frame.dot_shape))
    down, across = frame.glyphs.dots_down, frame.glyphs.dots_across
    return tuple(dict.fromkeys((int(row) // down, int(column) // across) for row, column in dots))


def legend_sample(one: Series, order: int, series: Sequence[Series], look: ChartStyle) -> str:
    """Return the sample of a series for the legend, SAMPLE cells wide."""
    glyphs = look.glyphs
    if glyphs.is_coarse:
        return series_mark(order, glyphs) * SAMPLE
    if has_solid_bars(series, look):
        return BLOCKS[-1] * SAMPLE
    shape = (glyphs.dots_down, SAMPLE * glyphs.dots_across)
    ends, middle = np.array([0.0, shape[1] - 1.0]), np.full(2, float((glyphs.dots_down - 1) // 2))
    marked = any(s.name == one.name and s.thin and s.marker == "points" and _has_marks(s, look) for s in series)
    if one.marker == "points" and _has_marks(one, look):
        return series_mark(order, glyphs).center(SAMPLE)
    if one.marker == "points":
        mask = rasterise_points(ends.mean(keepdims=True), middle[:1], shape)
    elif one.marker == "bars" and one is next(other for other in series if other.marker == "bars"):
        mask = _mask_edge(np.ones(shape, dtype=np.bool_))
    else:
        mask = rasterise_line(ends, middle, shape, _dash_pattern(order, look))
    line = "".join(glyphs.encode_mask(mask)[0])
    return f"{line[0]}{series_mark(order, glyphs)}{line[2:]}" if marked else line


@dataclass(frozen=True, eq=False)
class DrawnChart:
    """Picture of a chart with its frame.

    picture: the picture
    frame: the frame it was drawn in; None if there was nothing to draw
    """

    picture: CharacterPicture
    frame: PlotFrame | None


def draw_chart(
    series: Sequence[Series],
    size: tuple[int, int],
    labels: PlotLabels,
    look: ChartStyle,
    x_range: Limits | None = None,
    y_range: Limits | None = None,
) -> DrawnChart:
    """Draw ``series`` in ``size`` (width, height) cells, over the given ranges or those that the data need."""
    width, height = size
    draft = PictureDraft(width, height, look.glyphs.ellipsis)
    x = x_range or x_limits(series)
    log = labels.log_y
    # Without a value in the range of x in view, y keeps the range of all values, so that the axes stay.
    y = None if x is None else y_range or y_limits(series, x, log=log) or y_limits(series, (-np.inf, np.inf), log=log)
    if width <= 0 or height <= 0:
        return DrawnChart(draft.to_picture(), None)
    if x is None or y is None:
        return DrawnChart(_draw_empty(draft, series, labels.empty_text), None)
    frame = lay_out_frame(series, labels, size, look.glyphs, x, y)
    _draw_axes(draft, frame, labels)
    _draw_key(draft, frame, series, look)
    _draw_traces(draft, frame, series, look)
    return DrawnChart(draft.to_picture(), frame)


def _draw_empty(draft: PictureDraft, series: Sequence[Series], said: str) -> CharacterPicture:
    """Write why there is nothing to draw."""
    empty = "every value is missing" if any(one.x.size for one in series) else "no values"
    message = said or f"nothing to draw: {empty if series else 'no series'}"
    draft.put_text(draft.height // 2, max(0, (draft.width - len(message)) // 2), message, FAINT)
    return draft.to_picture()


def _draw_axes(draft: PictureDraft, frame: PlotFrame, labels: PlotLabels) -> None:
    """Draw the title, the axes with their ticks, and the labels."""
    glyphs = frame.glyphs
    if frame.has_title:
        draft.put_text(0, 0, labels.title, STRONG)
        start = len(labels.title) + 2 if labels.title else 0
        draft.put_text(0, start, labels.y_label, FAINT)
    for row in range(frame.rows):
        draft.put_text(frame.top + row, frame.left - 1, glyphs.vertical, FAINT)
    for row, label in frame.y_ticks:
        draft.put_text(frame.top + row, frame.left - 1 - len(label), label + glyphs.tick_y, FAINT)
    if not frame.has_axis:
        return
    below = frame.top + frame.rows
    draft.put_text(below, frame.left - 1, glyphs.corner + glyphs.horizontal * frame.columns, FAINT)
    for column, label, start in frame.x_ticks:
        draft.put_text(below, frame.left + column, glyphs.tick_x, FAINT)
        draft.put_text(below + 1, frame.left + start, label, FAINT)
    if frame.has_foot:
        draft.put_text(below + 2, max(frame.left, draft.width - len(labels.x_label)), labels.x_label, FAINT)


def _draw_key(draft: PictureDraft, frame: PlotFrame, series: Sequence[Series], look: ChartStyle) -> None:
    """Draw the legend, with the number of series left out."""
    for order, one in enumerate(series[: frame.legend.n_shown]):
        row, column = frame.legend.entry_cell(order)
        draft.put_text(row + frame.has_title, column, legend_sample(one, order, series, look), SERIES + order)
        draft.put_text(row + frame.has_title, column + SAMPLE + 1, one.name, TEXT, frame.legend.name_width)
    row, column = frame.legend.entry_cell(frame.legend.n_shown)
    if frame.legend.n_left_out and row < frame.legend.rows:
        draft.put_text(row + frame.has_title, column, f"+{frame.legend.n_left_out} more", FAINT)


def _draw_traces(draft: PictureDraft, frame: PlotFrame, series: Sequence[Series], look: ChartStyle) -> None:
    """Draw the dots of all series into the plotting area, bands behind lines."""
    glyphs = look.glyphs
    traces = [draw_series(one, order, series, frame, look) for order, one in enumerate(series)]
    area = np.s_[frame.top : frame.top + frame.rows, frame.left : frame.left + frame.columns]
    bits = np.zeros((frame.rows, frame.columns), dtype=np.intp)
    inks, fills, characters = draft.inks[area], draft.fills[area], draft.characters[area]
    for order, one in enumerate(traces):
        if look.shade == "background":
            # A fill colours whole cells, so a cell counts if half of its dots are in the band.
            fills[covered_cells(one.band, glyphs)] = order + 1
            continue
        own = glyphs.cell_bits(one.band & hatch_pattern(frame.dot_shape, glyphs, order))
        bits |= own
        inks[own > 0] = SERIES + order
    characters[:] = np.where(bits > 0, ".", " ")
    # Thin series, single datasets or bounds, are drawn first, so that the others lie over them.
    for order, one in sorted(enumerate(traces), key=lambda each: not series[each[0]].thin):
        own = glyphs.cell_bits(one.mask)
        bits |= own
        inks[own > 0] = SERIES + order
        characters[own > 0] = series_mark(styled_like(series, order), glyphs)
    if has_solid_bars(series, look):
        characters[:] = np.array(list(BLOCKS))[_block_heights(traces[0].mask, glyphs)]
    elif not glyphs.is_coarse:
        # The dots of all series in a cell make one character, in the ink of the series drawn last.
        characters[:] = np.array(list(glyphs.table))[bits]
    _put_marks(draft, frame, series, traces)


def _put_marks(draft: PictureDraft, frame: PlotFrame, series: Sequence[Series], traces: Sequence[SeriesMasks]) -> None:
    """Draw the intervals and the marks of points, and the labels beside them."""
    for order, one in enumerate(traces):
        for column, first, last in one.bars:
            # An interval within the cell of its mark has no bar.
            signs = ["┬", *["│"] * (last - first - 1), "┴"] if last > first else []
            for row, sign in enumerate(signs, start=first):
                draft.put_text(frame.top + row, frame.left + column, sign, SERIES + order)
    for order, one in enumerate(traces):
        for row, column in one.marks:
            mark = series_mark(styled_like(series, order), frame.glyphs)
            draft.put_text(frame.top + row, frame.left + column, mark, SERIES + order)
    _put_labels(draft, frame, series)


def _put_labels(draft: PictureDraft, frame: PlotFrame, series: Sequence[Series]) -> None:
    """Write the labels of points above or below them, or beside them, where no mark, interval or other label stands."""
    top, left = frame.top, frame.left
    area = np.s_[top : top + frame.rows, left : left + frame.columns]
    lines = {" ", *frame.glyphs.table}
    for order, one in enumerate(series):
        for x, y, text in zip(one.x, one.y, one.labels, strict=False):
            cell = frame.cell_of(float(x), float(y)) if text else None
            width = cell_len(text)
            if cell is None or width > frame.columns:
                continue
            row, column = cell[0] - top, cell[1] - left
            start = min(max(0, column - width // 2), frame.columns - width)
            # Above or below, then there beside the interval through the mark, then in the row of the mark.
            beside_mark = (column + 2, column - width - 1)
            places = [
                (row - 1, start),
                (row + 1, start),
                *((at, c) for c in beside_mark for at in (row - 1, row + 1, row)),
            ]
            inside = [(r, c) for r, c in places if 0 <= r < frame.rows and 0 <= c <= frame.columns - width]
            characters = draft.characters[area]
            # A label right beside another would read as one number with it: 0.4 and 0 as 0.40.
            apart = [(r, c) for r, c in inside if not _has_text_beside(characters, r, c, width)]
            found = [(r, c, set(characters[r, c : c + width])) for r, c in apart]
            clear = [(r, c) for r, c, seen in found if seen <= {" ", frame.glyphs.table[0]}]
            # Beside its mark a label takes the place of dots of its own line.
            beside = [(r, c) for r, c, seen in found if seen <= lines and (r == row or one.marker == "line")]
            if chosen := clear or beside:
                draft.put_text(top + chosen[0][0], left + chosen[0][1], text, SERIES + order)


def _has_text_beside(characters: NDArray[np.str_], row: int, column: int, width: int) -> bool:
    """Return whether a letter, digit or sign of a number stands right beside these cells."""
    ends = [characters[row, at] for at in (column - 1, column + width) if 0 <= at < characters.shape[1]]
    return any(sign.isalnum() or sign in "%.," for sign in map(str, ends))


def add_cursor(chart: DrawnChart, series: Sequence[Series], labels: PlotLabels, x: float) -> CharacterPicture:
    """Add the cursor: each series' value at ``x`` in the legend or below the plot, marks on the curves, and ``x`` below
    the axis.
    """
    frame = chart.frame
    if frame is None:
        return chart.picture
    draft = PictureDraft.from_picture(chart.picture, frame.glyphs.ellipsis)
    found = series_readings(frame, series, x)
    for order, reading in enumerate(found):
        if series[order].thin:
            continue
        at = None if reading.value is None else frame.cell_of(x, reading.value)
        if at is not None:
            draft.put_text(*at, series_mark(order, frame.glyphs), CURSOR)
        if order < frame.legend.n_shown and frame.legend.has_values:
            row, column = frame.legend.entry_cell(order)
            # The legend was laid out without room for intervals if they would have pushed entries out.
            told = reading if frame.legend.has_bands else replace(reading, lower=None, upper=None)
            draft.put_text(
                row + frame.has_title,
                column + SAMPLE + frame.legend.name_width + 2,
                reading_text(told, labels.y_unit),
                STRONG,
            )
    column_of_x = frame.cell_of(x, frame.y_scale.low)
    if frame.has_axis and column_of_x is not None:
        draft.put_text(frame.top + frame.rows, column_of_x[1], frame.glyphs.caret, STRONG)
    if frame.has_foot:
        alone = f": {reading_text(found[0], labels.y_unit)} {labels.y_label}".rstrip() if frame.legend.is_empty else ""
        text = f"{_x_text(labels, x)}{alone}"
        # It begins with the label of x, in whose place it stands.
        room = draft.width - frame.left
        draft.put_text(frame.top + frame.rows + 2, frame.left, text + " " * (room - cell_len(text)), STRONG)
    return draft.to_picture()


def series_readings(frame: PlotFrame, series: Sequence[Series], x: float) -> tuple[SeriesReading, ...]:
    """Return the value of every series at ``x``; of points and bars within half a cell."""
    tolerance = (frame.x_scale.high - frame.x_scale.low) / frame.columns / 2
    return tuple(one.read_at(x, tolerance) for one in series)


def reading_text(reading: SeriesReading, unit: AxisUnit = "number") -> str:
    """Return a reading as ``value (lower .. upper)``, or a dash without a value."""
    if reading.value is None:
        return "-"
    value = format_number(reading.value) if unit == "number" else unit_text(reading.value, unit)
    if reading.lower is None or reading.upper is None:
        return value
    return f"{value} ({format_number(reading.lower)} .. {format_number(reading.upper)})"


def _x_text(labels: PlotLabels, x: float) -> str:
    """Return the text of the cursor's place: the name of a category, or the value in its unit."""
    named = x == round(x) and 0 <= x < len(labels.x_names)
    value = labels.x_names[round(x)] if named else unit_text(x, labels.x_unit)
    if labels.name_of_zero:
        return f"{labels.x_label or 'x'}: {value if x else labels.name_of_zero}"
    return f"{labels.x_label or 'x'} = {value}"


def draw_chart_text(
    series: Sequence[Series],
    width: int,
    height: int,
    *,
    glyphs: str | None = None,
    colour: bool = False,
    colour_system: str = "truecolor",
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    x_names: Sequence[str] = (),
    x_range: Limits | None = None,
    x_unit: AxisUnit = "number",
    log_y: bool = False,
) -> str:
    """Draw the chart as ``height`` lines of at most ``width`` cells, with ANSI colours if ``colour``.

    ``colour_system`` is Rich's name of the colours. ``glyphs`` is braille, block or ascii (default: SFUMATO_GLYPHS,
    else braille). Raises ValueError for another.
    """
    look = ChartStyle(find_glyphs(glyphs), colour, "background" if colour else "dots")
    labels = PlotLabels(title, x_label, y_label, tuple(x_names), log_y, x_unit)
    picture = draw_chart(series, (width, height), labels, look, x_range).picture
    if not colour:
        return "\n".join(picture.row_text(row).rstrip() for row in range(picture.height))
    return "\n".join(_ansi_line(picture, row, series, colour_system) for row in range(picture.height))


def series_colours(series: Sequence[Series], palette: Sequence[str] = PALETTE) -> list[str]:
    """Return the Rich style of each series: its own, or the next of ``palette``."""
    return [one.style or palette[styled_like(series, order) % len(palette)] for order, one in enumerate(series)]


def _ansi_line(picture: CharacterPicture, row: int, series: Sequence[Series], colour_system: str) -> str:
    """Return a row of a picture with ANSI codes for its colours."""
    from rich.color import Color, blend_rgb
    from rich.color_triplet import ColorTriplet
    from rich.console import COLOR_SYSTEMS
    from rich.style import Style

    own = [Style.parse(colour) for colour in series_colours(series)]
    # The background of an unknown terminal is taken as black.
    black = ColorTriplet(0, 0, 0)
    tints = [blend_rgb(black, (s.color or Color.default()).get_truecolor(), 0.3) for s in own]
    plain = {
        BLANK: Style(),
        TEXT: Style(),
        FAINT: Style(dim=True),
        STRONG: Style(bold=True),
        CURSOR: Style(reverse=True),
    }
    parts: list[str] = []
    for text, ink, fill in picture.ink_runs(row):
        style = own[ink - SERIES] if ink >= SERIES else plain[ink]
        tint = Style(bgcolor=Color.from_triplet(tints[fill - 1])) if fill else Style()
        parts.append((style + tint).render(text, color_system=COLOR_SYSTEMS[colour_system]))
    return "".join(parts).rstrip()
