"""Charts made of characters: series, axes, key and cursor drawn into a ``Picture``, on a screen or as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .axes import AxisUnit, Limits, short_number, unit_text
from .canvas import covered, hatch
from .frame import SAMPLE, Frame, Labels, layout
from .glyphs import glyphs_named
from .look import Look
from .picture import BLANK, CURSOR, FAINT, SERIES, STRONG, TEXT, Draft, Picture
from .series import Reading, Series, x_limits, y_limits
from .trace import Trace, mark, sample, trace

PALETTE = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#f0e442", "#0072b2")
"""Okabe and Ito's colours, told apart by all common kinds of colour vision."""


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
        return Chart(_nothing(draft, series), None)
    frame = layout(series, labels, size, look.glyphs, x, y)
    _draw_axes(draft, frame, labels)
    _draw_key(draft, frame, series, look)
    _draw_traces(draft, frame, series, look)
    return Chart(draft.finish(), frame)


def _nothing(draft: Draft, series: Sequence[Series]) -> Picture:
    empty = "every value is missing" if any(one.x.size for one in series) else "no values"
    message = f"nothing to draw: {empty if series else 'no series'}"
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
    for order, one in sorted(enumerate(traces), key=lambda each: series[each[0]].kin is None):
        own = glyphs.bits(one.mask)
        bits |= own
        inks[own > 0] = SERIES + order
        characters[own > 0] = mark(_looks(series[order], order))
    if not glyphs.coarse:
        characters[:] = np.array(list(glyphs.table))[bits]
    _put_marks(draft, frame, traces)


def _looks(one: Series, order: int) -> int:
    """The place among the series of the one that this one looks like."""
    return order if one.kin is None else one.kin


def _put_marks(draft: Draft, frame: Frame, traces: Sequence[Trace]) -> None:
    for order, one in enumerate(traces):
        for row, column in one.marks:
            draft.put(frame.top + row, frame.left + column, mark(order), SERIES + order)


def with_cursor(chart: Chart, series: Sequence[Series], labels: Labels, x: float) -> Picture:
    """The picture with what every series says at ``x``: in the key, on the curves, and ``x`` itself below the axis."""
    frame = chart.frame
    if frame is None:
        return chart.picture
    draft = Draft.over(chart.picture, frame.glyphs.ellipsis)
    for order, reading in enumerate(readings(frame, series, x)):
        if series[order].kin is not None:
            continue
        at = None if reading.value is None else frame.cell(x, reading.value)
        if at is not None:
            draft.put(*at, mark(order), CURSOR)
        if order < frame.key.shown:
            row, column = frame.key.at(order)
            draft.put(
                row + frame.titled, column + SAMPLE + frame.key.name + 2, reading_text(reading, labels.y_unit), STRONG
            )
    column_of_x = frame.cell(x, frame.y.low)
    if frame.axis and column_of_x is not None:
        draft.put(frame.top + frame.rows, column_of_x[1], frame.glyphs.caret, STRONG)
    if frame.footed:
        draft.put(frame.top + frame.rows + 2, frame.left, _x_text(labels, x), STRONG)
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
    return f"{value} [{short_number(reading.lower, 3)}, {short_number(reading.upper, 3)}]"


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
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    x_names: Sequence[str] = (),
    x_range: Limits | None = None,
    x_unit: AxisUnit = "number",
    log_y: bool = False,
) -> str:
    """The chart as ``height`` lines of at most ``width`` cells, with ANSI colours when ``colour``.

    ``glyphs`` is braille, block or ascii (default: SFUMATO_GLYPHS, else braille); ValueError for another.
    """
    look = Look(glyphs_named(glyphs), colour, "background" if colour else "dots")
    labels = Labels(title, x_label, y_label, tuple(x_names), log_y, x_unit)
    picture = draw(series, (width, height), labels, look, x_range).picture
    if not colour:
        return "\n".join(picture.line(row).rstrip() for row in range(picture.height))
    return "\n".join(_ansi_line(picture, row, series) for row in range(picture.height))


def colours(series: Sequence[Series], palette: Sequence[str] = PALETTE) -> list[str]:
    """The Rich style of each series: its own, or the next of ``palette``."""
    return [one.style or palette[_looks(one, order) % len(palette)] for order, one in enumerate(series)]


def _ansi_line(picture: Picture, row: int, series: Sequence[Series]) -> str:
    from rich.color import Color, blend_rgb
    from rich.color_triplet import ColorTriplet
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
        parts.append((style + tint).render(text))
    return "".join(parts).rstrip()
