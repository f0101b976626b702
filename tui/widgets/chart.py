"""Charts made of characters: series, axes, key and cursor drawn into a ``Picture``, on a screen or as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.tui.terminal.glyphs import Glyphs, glyphs_named
from sfumato.tui.widgets.canvas import (
    BLANK,
    CURSOR,
    FAINT,
    SERIES,
    SOLID,
    STRONG,
    TEXT,
    Draft,
    Mask,
    Picture,
    bar_dots,
    covered,
    fill_dots,
    hatch,
    line_dots,
    point_dots,
)
from sfumato.tui.widgets.frame import SAMPLE, Frame, Labels, Look, layout
from sfumato.workspace.plots.axes import AxisUnit, Floats, Limits, short_number, unit_text
from sfumato.workspace.plots.series import Reading, Series, likeness, x_limits, y_limits

MARKS = "ox+*#%@&"
BLOCKS = " ▂▄▆█"
"""A cell of a bar by its height."""
FEW_POINTS = 60
"""So many points, or fewer, get a mark each; more become single dots."""
_PATTERNS = ("1", "11100", "100", "1111100100", "10000", "110000", "1111111001001000", "111111000000")
DASHES = tuple(tuple(dot == "1" for dot in pattern) for pattern in _PATTERNS)
PALETTE = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#f0e442", "#0072b2")
"""Okabe and Ito's colours, told apart by all common kinds of colour vision."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Masks in dots, (rows, columns), and the (row, column) cells of marks."""

    mask: Mask
    band: Mask
    marks: tuple[tuple[int, int], ...] = ()


def mark(order: int) -> str:
    """The character that stands for the ``order``-th series."""
    return MARKS[order % len(MARKS)]


def trace(one: Series, order: int, series: Sequence[Series], frame: Frame, look: Look) -> Trace:
    """What ``one``, the ``order``-th of ``series``, draws in ``frame``."""
    x, y = frame.x.to_dots(one.x), frame.y.to_dots(one.y)
    empty = np.zeros(frame.dots, dtype=np.bool_)
    if one.marker == "points":
        few = not look.glyphs.coarse and _few(one, look)
        dots = empty if few else point_dots(x, y, frame.dots)
        return Trace(dots | _whiskers(one, x, frame), empty, _cells(x, y, frame) if few else ())
    if one.marker == "bars":
        return Trace(_bars(one, order, series, frame, look) | _whiskers(one, x, frame), empty)
    vertices = _stairs(x[one.order], y[one.order]) if one.marker == "steps" else (x, y)
    return Trace(
        line_dots(*vertices, frame.dots, _dash(likeness(series, order), look)), _thick(_band(one, frame), frame)
    )


def _few(one: Series, look: Look) -> bool:
    return not look.colour or one.x.size <= FEW_POINTS


def _dash(order: int, look: Look) -> tuple[bool, ...]:
    return SOLID if look.colour else DASHES[order % len(DASHES)]


def _bars(one: Series, order: int, series: Sequence[Series], frame: Frame, look: Look) -> Mask:
    """The first bars series is drawn as hatched boxes, each further one as lines across them at its value.

    So series are compared where they stand, and few bytes are needed.
    """
    group = [other for other in series if other.marker == "bars"]
    width = 0.8 * min(other.spacing for other in group)
    left, right = frame.x.to_dots(one.x - width / 2), frame.x.to_dots(one.x + width / 2)
    base = np.broadcast_to(frame.y.to_dots(np.zeros(1)), left.shape)
    top = frame.y.to_dots(one.y)
    if one is not group[0]:
        gaps = np.full(left.size, np.nan)
        ends = np.column_stack([left, right, gaps]).ravel()
        return line_dots(ends, np.repeat(top, 3), frame.dots, _dash(order, look))
    filled = bar_dots(left, right, base, np.where(one.y == 0, np.nan, top), frame.dots)
    if look.glyphs.coarse or is_solid(series, look):
        return filled
    return filled & (_edge(filled) | hatch(frame.dots, look.glyphs, order, every=4))


def is_solid(series: Sequence[Series], look: Look) -> bool:
    """Whether bars are drawn as blocks: those of a single series without intervals, none below 0, in a terminal that has blocks."""
    one = series[0] if len(series) == 1 else None
    return (
        one is not None
        and one.marker == "bars"
        and one.lower is None
        and not look.glyphs.coarse
        and bool(np.nanmin(one.y, initial=0.0) >= 0)
    )


def _heights(mask: Mask, glyphs: Glyphs) -> NDArray[np.intp]:
    """How many of the ``BLOCKS`` stand for each cell of bars: the dots of its fuller column, in eighths of two."""
    rows, columns = mask.shape[0] // glyphs.down, mask.shape[1] // glyphs.across
    dots = mask.reshape(rows, glyphs.down, columns, glyphs.across).sum(axis=1).max(axis=2)
    return np.asarray(dots * (len(BLOCKS) - 1) // glyphs.down)


def _edge(mask: Mask) -> Mask:
    """The dots of ``mask`` beside a dot, or a side of the canvas, that is not in it."""
    framed = np.pad(mask, 1)
    inner = framed[:-2, 1:-1] & framed[2:, 1:-1] & framed[1:-1, :-2] & framed[1:-1, 2:]
    return np.asarray(mask & ~inner)


def _whiskers(one: Series, x: Floats, frame: Frame) -> Mask:
    """A vertical line from lower to upper at every x."""
    if one.lower is None or one.upper is None:
        return np.zeros(frame.dots, dtype=np.bool_)
    gap = np.full(x.size, np.nan)
    ends = (_bound_dots(one.lower, frame), _bound_dots(one.upper, frame), gap)
    return line_dots(np.repeat(x, 3), np.column_stack(ends).ravel(), frame.dots)


def _bound_dots(bound: Floats, frame: Frame) -> Floats:
    """Where the ends of intervals fall; those that a logarithmic axis has no place for, below the axis."""
    below = frame.dots[0] + 1.0
    return np.where(bound <= 0, below, frame.y.to_dots(bound)) if frame.y.log else frame.y.to_dots(bound)


def _band(one: Series, frame: Frame) -> Mask:
    """The dots between lower and upper, interpolated (or held, for steps) at every dot column."""
    if one.lower is None or one.upper is None or one.order.size == 0:
        return np.zeros(frame.dots, dtype=np.bool_)
    x = frame.x.to_dots(one.x[one.order])
    columns = np.arange(frame.dots[1], dtype=np.float64)
    inside = (columns >= x[0] - 0.5) & (columns <= x[-1] + 0.5)
    ends = []
    for bound in (one.upper, one.lower):
        y = _bound_dots(bound[one.order], frame)
        held = y[np.searchsorted(x, columns, side="right").clip(1) - 1]
        at = held if one.marker == "steps" else np.interp(columns, x, np.where(np.isfinite(y), y, np.nan))
        ends.append(np.where(inside, at, np.nan))
    return fill_dots(ends[0], ends[1], frame.dots)


def _thick(band: Mask, frame: Frame) -> Mask:
    """The band where it is at least a cell high; a narrower one would be shown in patches, and its line says enough."""
    across = frame.glyphs.across
    least = band.sum(axis=0).reshape(-1, across).min(axis=1) >= frame.glyphs.down
    return np.asarray(band & np.repeat(least, across))


def _stairs(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The corners of a step function that keeps each y until the next x."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _cells(x: Floats, y: Floats, frame: Frame) -> tuple[tuple[int, int], ...]:
    """The different (row, column) cells of the plotting area in which points fall."""
    dots = np.argwhere(point_dots(x, y, frame.dots))
    down, across = frame.glyphs.down, frame.glyphs.across
    return tuple(dict.fromkeys((int(row) // down, int(column) // across) for row, column in dots))


def sample(one: Series, order: int, series: Sequence[Series], look: Look) -> str:
    """How a series looks, in SAMPLE cells, for the key."""
    glyphs = look.glyphs
    if glyphs.coarse:
        return mark(order) * SAMPLE
    if is_solid(series, look):
        return BLOCKS[-1] * SAMPLE
    shape = (glyphs.down, SAMPLE * glyphs.across)
    ends, middle = np.array([0.0, shape[1] - 1.0]), np.full(2, float((glyphs.down - 1) // 2))
    if one.marker == "points" and _few(one, look):
        return mark(order).center(SAMPLE)
    if one.marker == "points":
        mask = point_dots(ends.mean(keepdims=True), middle[:1], shape)
    elif one.marker == "bars" and one is next(other for other in series if other.marker == "bars"):
        mask = _edge(np.ones(shape, dtype=np.bool_))
    else:
        mask = line_dots(ends, middle, shape, _dash(order, look))
    return "".join(glyphs.encode(mask)[0])


@dataclass(frozen=True, eq=False)
class Chart:
    """A picture, and the frame it was drawn in: None when there was nothing to draw."""

    picture: Picture
    frame: Frame | None


def draw(
    series: Sequence[Series],
    size: tuple[int, int],
    labels: Labels,
    look: Look,
    x_range: Limits | None = None,
    y_range: Limits | None = None,
) -> Chart:
    """The chart of ``series`` in ``size`` (width, height) cells, over the ranges given or what the data need."""
    width, height = size
    draft = Draft(width, height, look.glyphs.ellipsis)
    x = x_range or x_limits(series)
    log = labels.log_y
    y = None if x is None else y_range or y_limits(series, x, log=log) or y_limits(series, (-np.inf, np.inf), log=log)
    if width <= 0 or height <= 0:
        return Chart(draft.finish(), None)
    if x is None or y is None:
        return Chart(_nothing(draft, series, labels.empty), None)
    frame = layout(series, labels, size, look.glyphs, x, y)
    _draw_axes(draft, frame, labels)
    _draw_key(draft, frame, series, look)
    _draw_traces(draft, frame, series, look)
    return Chart(draft.finish(), frame)


def _nothing(draft: Draft, series: Sequence[Series], said: str) -> Picture:
    empty = "every value is missing" if any(one.x.size for one in series) else "no values"
    message = said or f"nothing to draw: {empty if series else 'no series'}"
    draft.put(draft.height // 2, max(0, (draft.width - len(message)) // 2), message, FAINT)
    return draft.finish()


def _draw_axes(draft: Draft, frame: Frame, labels: Labels) -> None:
    glyphs = frame.glyphs
    if frame.titled:
        draft.put(0, 0, labels.title, STRONG)
        start = len(labels.title) + 2 if labels.title else 0
        draft.put(0, start, labels.y, FAINT)
    for row in range(frame.rows):
        draft.put(frame.top + row, frame.left - 1, glyphs.vertical, FAINT)
    for row, label in frame.y_ticks:
        draft.put(frame.top + row, frame.left - 1 - len(label), label + glyphs.tick_y, FAINT)
    if not frame.axis:
        return
    below = frame.top + frame.rows
    draft.put(below, frame.left - 1, glyphs.corner + glyphs.horizontal * frame.columns, FAINT)
    for column, label, start in frame.x_ticks:
        draft.put(below, frame.left + column, glyphs.tick_x, FAINT)
        draft.put(below + 1, frame.left + start, label, FAINT)
    if frame.footed:
        draft.put(below + 2, max(frame.left, draft.width - len(labels.x)), labels.x, FAINT)


def _draw_key(draft: Draft, frame: Frame, series: Sequence[Series], look: Look) -> None:
    for order, one in enumerate(series[: frame.key.shown]):
        row, column = frame.key.at(order)
        draft.put(row + frame.titled, column, sample(one, order, series, look), SERIES + order)
        draft.put(row + frame.titled, column + SAMPLE + 1, one.name, TEXT, frame.key.name)
    row, column = frame.key.at(frame.key.shown)
    if frame.key.more and row < frame.key.rows:
        draft.put(row + frame.titled, column, f"+{frame.key.more} more", FAINT)


def _draw_traces(draft: Draft, frame: Frame, series: Sequence[Series], look: Look) -> None:
    glyphs = look.glyphs
    traces = [trace(one, order, series, frame, look) for order, one in enumerate(series)]
    area = np.s_[frame.top : frame.top + frame.rows, frame.left : frame.left + frame.columns]
    bits = np.zeros((frame.rows, frame.columns), dtype=np.intp)
    inks, fills, characters = draft.inks[area], draft.fills[area], draft.characters[area]
    for order, one in enumerate(traces):
        if look.shade == "background":
            fills[covered(one.band, glyphs)] = order + 1
            continue
        own = glyphs.bits(one.band & hatch(frame.dots, glyphs, order))
        bits |= own
        inks[own > 0] = SERIES + order
    characters[:] = np.where(bits > 0, ".", " ")
    for order, one in sorted(enumerate(traces), key=lambda each: not series[each[0]].thin):
        own = glyphs.bits(one.mask)
        bits |= own
        inks[own > 0] = SERIES + order
        characters[own > 0] = mark(likeness(series, order))
    if is_solid(series, look):
        characters[:] = np.array(list(BLOCKS))[_heights(traces[0].mask, glyphs)]
    elif not glyphs.coarse:
        characters[:] = np.array(list(glyphs.table))[bits]
    _put_marks(draft, frame, traces)


def _put_marks(draft: Draft, frame: Frame, traces: Sequence[Trace]) -> None:
    for order, one in enumerate(traces):
        for row, column in one.marks:
            draft.put(frame.top + row, frame.left + column, mark(order), SERIES + order)


def with_cursor(chart: Chart, series: Sequence[Series], labels: Labels, x: float) -> Picture:
    """The picture with what every series says at ``x``: in the key or at the foot, on the curves, and ``x`` itself below the axis."""
    frame = chart.frame
    if frame is None:
        return chart.picture
    draft = Draft.over(chart.picture, frame.glyphs.ellipsis)
    found = readings(frame, series, x)
    for order, reading in enumerate(found):
        if series[order].thin:
            continue
        at = None if reading.value is None else frame.cell(x, reading.value)
        if at is not None:
            draft.put(*at, mark(order), CURSOR)
        if order < frame.key.shown:
            row, column = frame.key.at(order)
            told = reading if frame.key.banded else replace(reading, lower=None, upper=None)
            draft.put(
                row + frame.titled, column + SAMPLE + frame.key.name + 2, reading_text(told, labels.y_unit), STRONG
            )
    column_of_x = frame.cell(x, frame.y.low)
    if frame.axis and column_of_x is not None:
        draft.put(frame.top + frame.rows, column_of_x[1], frame.glyphs.caret, STRONG)
    if frame.footed:
        alone = f": {reading_text(found[0], labels.y_unit)} {labels.y}".rstrip() if frame.key.empty else ""
        draft.put(frame.top + frame.rows + 2, frame.left, f"{_x_text(labels, x)}{alone}", STRONG)
    return draft.finish()


def readings(frame: Frame, series: Sequence[Series], x: float) -> tuple[Reading, ...]:
    """What every series says at ``x``; points and bars within half a cell."""
    tolerance = (frame.x.high - frame.x.low) / frame.columns / 2
    return tuple(one.at(x, tolerance) for one in series)


def reading_text(reading: Reading, unit: AxisUnit = "number") -> str:
    """``value [lower, upper]``, or a dash."""
    if reading.value is None:
        return "-"
    value = unit_text(reading.value, unit)
    if reading.lower is None or reading.upper is None:
        return value
    return f"{value} [{short_number(reading.lower)}, {short_number(reading.upper)}]"


def _x_text(labels: Labels, x: float) -> str:
    named = x == round(x) and 0 <= x < len(labels.x_names)
    value = labels.x_names[round(x)] if named else unit_text(x, labels.x_unit)
    return f"{labels.x or 'x'} = {value}"


def draw_text(
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
    """The chart as ``height`` lines of at most ``width`` cells, with ANSI colours when ``colour``: in those of ``colour_system``, as Rich calls it.

    ``glyphs`` is braille, block or ascii (default: SFUMATO_GLYPHS, else braille); ValueError for another.
    """
    look = Look(glyphs_named(glyphs), colour, "background" if colour else "dots")
    labels = Labels(title, x_label, y_label, tuple(x_names), log_y, x_unit)
    picture = draw(series, (width, height), labels, look, x_range).picture
    if not colour:
        return "\n".join(picture.line(row).rstrip() for row in range(picture.height))
    return "\n".join(_ansi_line(picture, row, series, colour_system) for row in range(picture.height))


def colours(series: Sequence[Series], palette: Sequence[str] = PALETTE) -> list[str]:
    """The Rich style of each series: its own, or the next of ``palette``."""
    return [one.style or palette[likeness(series, order) % len(palette)] for order, one in enumerate(series)]


def _ansi_line(picture: Picture, row: int, series: Sequence[Series], colour_system: str) -> str:
    from rich.color import Color, blend_rgb
    from rich.color_triplet import ColorTriplet
    from rich.console import COLOR_SYSTEMS
    from rich.style import Style

    own = [Style.parse(colour) for colour in colours(series)]
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
    for text, ink, fill in picture.runs(row):
        style = own[ink - SERIES] if ink >= SERIES else plain[ink]
        tint = Style(bgcolor=Color.from_triplet(tints[fill - 1])) if fill else Style()
        parts.append((style + tint).render(text, color_system=COLOR_SYSTEMS[colour_system]))
    return "".join(parts).rstrip()
