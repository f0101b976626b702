"""Figures as SVG, including heat maps and their legend.

Styles differ without colour too: by dashes, hatches and shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from .axes import AxisUnit, Limits, finite_limits, log_ticks, short_number, unit_ticks
from .figure import (
    CONFIDENTIAL,
    SHADES,
    SIDES,
    BinShares,
    Figure,
    Panel,
    ShadeSteps,
    describe_figure,
    make_shade_steps,
    short_percent,
)
from .markup import Markup, element, join_markup
from .series import Series

# ColorBrewer's blues (Harrower and Brewer 2003)
SHARE_COLOURS = ("#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b", "#041c40")
"""Colours of the steps of a share, the least first."""
MORE_COLOURS = ("#fdd0a2", "#fd8d3c", "#d94801", "#7f2704")
FEWER_COLOURS = ("#c6dbef", "#6baed6", "#2171b5", "#08306b")
Floats = NDArray[np.float64]
WIDTH = 760.0
# Okabe and Ito's palette, darkened where a line on white would be too pale; black is for the confidential data
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#56b4e9", "#997700")
"""Colours of released series."""
DASHES = ("7 3", "2 2", "9 3 2 3", "4 2 1 2", "12 4", "1 3")
HATCHES = ("M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", "M-1,5 l2,2 M0,0 l6,6 M5,-1 l2,2", "M0,3 h6", "M3,0 v6")
LEGEND_ROW = 20.0


def shade_colour(step: int, *, signed: bool) -> str:
    """Return the colour of a step of shade; negative differences are blue, positive ones orange."""
    if not signed:
        return SHARE_COLOURS[step - 1]
    return MORE_COLOURS[step - 1] if step > 0 else FEWER_COLOURS[-step - 1]


def heat_map_marks(
    cells: BinShares, shades: ShadeSteps, left: float, top: float, right: float, bottom: float
) -> Iterator[Markup]:
    """Yield the bins of a heat map that have a share."""
    rows, columns = cells.shares.shape
    width, height = (right - left) / columns, (bottom - top) / rows
    for row, steps in enumerate(shades.step_of(cells.shares).tolist()):
        start = 0
        # one rectangle for each run of a shade: thousands of bins would make a page large
        for step, run in groupby(steps):
            count = len(list(run))
            if step:
                yield element(
                    "rect", x=left + start * width, y=bottom - (row + 1) * height, width=count * width,
                    height=height, fill=shade_colour(step, signed=shades.signed), shape_rendering="crispEdges",
                )  # fmt: skip
            start += count


def shade_legend_marks(shades: ShadeSteps, x: float, y: float) -> Iterator[Markup]:
    """Yield the legend of a heat map: patches from the least step to the greatest, with the ends in per cent."""
    steps = [*range(-SIDES, 0), *range(1, SIDES + 1)] if shades.signed else list(range(1, SHADES + 1))
    low = (
        f"-{short_percent(float(shades.ends[-1]))}"
        if shades.signed
        else f"up to {short_percent(float(shades.ends[0]))}"
    )
    high = f"{'+' if shades.signed else ''}{short_percent(float(shades.ends[-1]))}"
    start = x + 90
    yield element("text", low, x=start - 6, y=y + 10, text_anchor="end", font_size=10)
    for place, step in enumerate(steps):
        fill = shade_colour(step, signed=shades.signed)
        yield element("rect", x=start + 16 * place, y=y, width=16, height=12, fill=fill)
    yield element("text", high, x=start + 16 * len(steps) + 6, y=y + 10, font_size=10)


@dataclass(frozen=True)
class SvgScale:
    """Scale from data to SVG units: ``low`` lies at ``start`` and ``high`` at ``end``.

    A logarithmic scale puts a value that is not above 0 at ``start``.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    unit: AxisUnit = "number"

    def has_position(self, value: float) -> bool:
        """Return whether a value can be shown on the scale."""
        return not self.log or value > 0

    def to_position(self, value: float) -> float:
        """Return the position of a value in SVG units."""
        if self.log and value <= 0:
            return self.start
        value, low, high = (math.log10(v) if self.log else v for v in (value, self.low, self.high))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def labelled_ticks(self, most: int) -> list[tuple[float, str]]:
        """Return at most ``most`` round values with their labels."""
        if self.log:
            return [(value, short_number(value)) for value in log_ticks(self.low, self.high, most).tolist()]
        ticks, labels = unit_ticks(self.low, self.high, most, self.unit)
        return list(zip(ticks.tolist(), labels, strict=True))


def _limits_or_unit_interval(columns: Sequence[Floats]) -> Limits:
    """Return the range of the finite values of all columns, or (0, 1) without any."""
    found = finite_limits(np.concatenate(columns)) if columns else None
    return found or (0.0, 1.0)


def x_scale(figure: Figure, panel: Panel, start: float, end: float) -> SvgScale:
    """Return the scale of a panel's x axis, with room for whole bars and around points."""
    if panel.cells is not None:
        return SvgScale(
            float(panel.cells.x.edges[0]), float(panel.cells.x.edges[-1]), start, end, unit=panel.cells.x.unit
        )
    if panel.x_names:
        return SvgScale(-0.6, len(panel.x_names) - 0.4, start, end)
    low, high = _limits_or_unit_interval([one.x for one in panel.series])
    room = panel.bar_width / 2 if figure.marker == "bars" else 0.05 * (high - low) if figure.kind == "map" else 0.0
    return SvgScale(low - room, high + room, start, end, panel.log_x, panel.x_unit)


def y_scale(figure: Figure, panel: Panel, start: float, end: float) -> SvgScale:
    """Return the scale of a panel's y axis: from 0 for bars and densities, otherwise with a margin.

    A logarithmic scale spans the values above 0.
    """
    if panel.cells is not None:
        return SvgScale(
            float(panel.cells.y.edges[0]), float(panel.cells.y.edges[-1]), start, end, unit=panel.cells.y.unit
        )
    columns = [c for one in panel.series for c in (one.y, one.lower, one.upper) if c is not None]
    from_zero = figure.kind in ("histogram", "shares", "density")
    if panel.log_y:
        low, high = _limits_or_unit_interval([column[column > 0] for column in columns])
        # without a value above 0 the limits are 0 and 1, which have no logarithmic scale
        return SvgScale(low, high, start, end, log=low > 0)
    low, high = _limits_or_unit_interval([*columns, np.zeros(1)] if from_zero else columns)
    margin = 0.05 * (high - low)
    return SvgScale(low if from_zero else low - margin, high + margin, start, end, unit=panel.y_unit)


LEFT, RIGHT, TOP, BOTTOM, GAP = 56.0, 20.0, 26.0, 44.0, 14.0
LETTER_WIDTH, BOLD_LETTER_WIDTH = 6.6, 7.0
FAINT, INK = "#d9d9d9", "#333333"


@dataclass(frozen=True)
class _SeriesStyle:
    """Style of the series of one name: shape of points, colour, dashes, and fill of bars."""

    shape_number: int
    colour: str
    dash: str | None
    fill: str

    @classmethod
    def from_name(cls, name: str, figure: Figure, ident: str) -> _SeriesStyle:
        """Return the style of the series of this name; the confidential data are black."""
        if name == CONFIDENTIAL:
            return cls(0, "#000000", None, "#bdbdbd")
        order = [one for one in figure.series_names if one != CONFIDENTIAL].index(name)
        fill = f"url(#{ident}-hatch-{order % len(HATCHES)})"
        colour = figure.series_colour(name) or COLOURS[order % len(COLOURS)]
        return cls(order + 1, colour, DASHES[order % len(DASHES)], fill)


@dataclass(frozen=True)
class _PanelBox:
    """Position of a panel and its scales."""

    left: float
    top: float
    right: float
    bottom: float
    x: SvgScale
    y: SvgScale


def figure_svg(figure: Figure, ident: str) -> Markup:
    """Return the figure as an ``<svg>`` element, 760 units wide.

    ``ident`` begins the ids in it, which must differ between figures of one page.
    """
    across = 1 if len(figure.panels) == 1 or figure.kind == "shares" else 2
    height = 260.0 if across == 1 else 230.0
    legend = _legend_marks(figure, ident) if figure.kind != "intervals" else []
    rows = math.ceil(len(figure.panels) / across)
    head = LEGEND_ROW * (1 + max((row for _, row in _legend_places(figure)), default=0)) if legend else 0.0
    panels = [
        _panel_group(
            figure, panel, ident, i % across * (WIDTH / across), head + i // across * height, WIDTH / across, height
        )
        for i, panel in enumerate(figure.panels)
    ]
    return element(
        "svg",
        element("title", figure.title, id=f"{ident}-title"),
        element("desc", describe_figure(figure), id=f"{ident}-desc"),
        _hatch_definitions(figure, ident) if figure.marker == "bars" else "",
        legend,
        panels,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:g} {head + rows * height:g}",
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        font_family="system-ui, 'DejaVu Sans', sans-serif",
        font_size=11,
        fill=INK,
    )


def _hatch_definitions(figure: Figure, ident: str) -> Markup:
    """Return the definitions of the hatches with which bars are filled."""
    count = min(len(HATCHES), len(figure.series_names))
    patterns = [
        element(
            "pattern",
            element("rect", width=6, height=6, fill=COLOURS[i], fill_opacity=0.15),
            element("path", d=HATCHES[i], stroke=COLOURS[i], stroke_width=1.2),
            id=f"{ident}-hatch-{i}",
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )
        for i in range(count)
    ]
    return element("defs", patterns)


def _legend_places(figure: Figure) -> list[tuple[float, int]]:
    """Return the start and the row of each name in the legend."""
    places, x, row = [], LEFT, 0
    for name in figure.series_names:
        width = 40 + LETTER_WIDTH * len(name) + 16
        if x + width > WIDTH and x > LEFT:
            x, row = LEFT, row + 1
        places.append((x, row))
        x += width
    return places


def _legend_marks(figure: Figure, ident: str) -> list[Markup]:
    """Return the legend: a sample and the name of each series."""
    return [
        join_markup(
            [
                _legend_sample(figure, name, _SeriesStyle.from_name(name, figure, ident), x, 12 + row * LEGEND_ROW),
                _text_mark(name, x + 40, 16 + row * LEGEND_ROW),
            ]
        )
        for name, (x, row) in zip(figure.series_names, _legend_places(figure), strict=True)
    ]


def _legend_sample(figure: Figure, name: str, style: _SeriesStyle, x: float, y: float) -> Markup:
    """Return the sample of a series in the legend."""
    marker = figure.series_marker(name)
    if marker == "bars":
        return element("rect", x=x + 4, y=y - 6, width=26, height=12, fill=style.fill, stroke=style.colour)
    if marker == "points":
        return element("path", d=_shape_path(style.shape_number, x + 16, y), fill=style.colour)
    return _polyline_mark([(x, y), (x + 32, y)], style)


def _text_mark(
    words: str, x: float, y: float, anchor: str | None = None, size: float | None = None, **more: str
) -> Markup:
    """Return a text element."""
    return element("text", words, x=x, y=y, text_anchor=anchor, font_size=size, **more)


def _line_mark(x1: float, y1: float, x2: float, y2: float, colour: str) -> Markup:
    """Return a line element."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour)


def _panel_group(figure: Figure, panel: Panel, ident: str, x: float, y: float, width: float, height: float) -> Markup:
    """Return a panel with its title, axes, marks and notes."""
    left, right = x + LEFT, x + width - RIGHT
    top, bottom = (
        y + TOP + (GAP if panel.y_label else 0),
        y + height - BOTTOM - (GAP if panel.note or panel.cells else 0),
    )
    box = _PanelBox(left, top, right, bottom, x_scale(figure, panel, left, right), y_scale(figure, panel, bottom, top))
    drawn = [
        mark
        # thin lines first, so that their mean lies above them
        for one in sorted(panel.series, key=lambda one: not one.thin)
        for mark in _series_marks(figure, panel, one, _SeriesStyle.from_name(one.name, figure, ident), box)
    ]
    if panel.cells is not None:
        shades = make_shade_steps([p.cells for p in figure.panels if p.cells and p.cells.signed == panel.cells.signed])
        drawn = [
            *heat_map_marks(panel.cells, shades, left, top, right, bottom),
            *shade_legend_marks(shades, x, y + height - 14),
        ]
    head = element("text", _fitted_title(panel.title, width - LEFT), x=left, y=y + 16, font_weight="bold")
    unit = _text_mark(panel.y_label, left, top - 6, size=10) if panel.y_label else ""
    foot = _text_mark(panel.x_label, right, bottom + 34, "end", 10) if panel.x_label else ""
    note = _text_mark(panel.note, left, bottom + (34 if panel.x_names else 48), size=10) if panel.note else ""
    return element("g", head, unit, list(_axis_marks(figure, panel, box)), drawn, foot, note)


def _fitted_title(words: str, room: float) -> list[str | Markup]:
    """Return a title cut to its room, with a tooltip of the whole where it is cut."""
    letters = int(room / BOLD_LETTER_WIDTH)
    return [words] if len(words) <= letters else [f"{words[: letters - 1]}…", element("title", words)]


def _axis_marks(figure: Figure, panel: Panel, box: _PanelBox) -> Iterator[Markup]:
    """Yield the axes of a panel with their ticks and labels."""
    for value, label in _level_ticks(panel) or box.y.labelled_ticks(max(2, int((box.bottom - box.top) / 34))):
        yield _line_mark(box.left, box.y.to_position(value), box.right, box.y.to_position(value), FAINT)
        yield _text_mark(label, box.left - 6, box.y.to_position(value) + 4, "end")
    yield _line_mark(box.left, box.bottom, box.right, box.bottom, INK)
    yield from _named_tick_marks(figure, panel, box) if panel.x_names else _number_tick_marks(box)


def _level_ticks(panel: Panel) -> list[tuple[float, str]]:
    """Return the positions and names of levels along the y axis of a heat map, as many as have room."""
    names = panel.cells.y.names if panel.cells else ()
    every, letters = math.ceil(len(names) / 14), int((LEFT - 8) / LETTER_WIDTH)
    cut = [name if len(name) <= letters else f"{name[: letters - 1]}…" for name in names]
    # without names ``every`` is 0, which is no step of a slice
    return [(float(place), name) for place, name in list(enumerate(cut))[:: every or 1]]


def _number_tick_marks(box: _PanelBox) -> Iterator[Markup]:
    """Yield the ticks and labels of numbers along the x axis."""
    for value, label in box.x.labelled_ticks(max(2, int((box.right - box.left) / 52))):
        yield _line_mark(box.x.to_position(value), box.bottom, box.x.to_position(value), box.bottom + 4, INK)
        yield _text_mark(label, box.x.to_position(value), box.bottom + 17, "middle")


def _named_tick_marks(figure: Figure, panel: Panel, box: _PanelBox) -> Iterator[Markup]:
    """Yield the names of positions along the x axis: of bins as many as have room, of levels and runs all, cut to fit."""
    room = (box.right - box.left) / len(panel.x_names)
    least = LETTER_WIDTH * (2 + max(map(len, panel.x_names))) if figure.kind == "histogram" else 4 * LETTER_WIDTH
    every = max(1, math.ceil(least / room))
    letters = max(3, int(room * every / LETTER_WIDTH))
    for place, name in list(enumerate(panel.x_names))[::every]:
        shown = name if len(name) <= letters else f"{name[: letters - 1]}…"
        yield _line_mark(box.x.to_position(place), box.bottom, box.x.to_position(place), box.bottom + 4, INK)
        yield element(
            "text", shown, element("title", name), x=box.x.to_position(place), y=box.bottom + 17, text_anchor="middle"
        )


def _series_marks(figure: Figure, panel: Panel, one: Series, style: _SeriesStyle, box: _PanelBox) -> Iterator[Markup]:
    """Yield the marks of a series, by its marker."""
    marker, one = one.marker or figure.marker, one.with_known_x
    if marker == "bars":
        names = [series.name for series in panel.series if (series.marker or figure.marker) == "bars"]
        yield from _bar_marks(panel, one, style, box, names)
    elif marker == "points":
        yield from _named_path_marks(one, style, box)
        yield from _dots_mark(one, style, box) if figure.kind == "scatter" else _estimate_marks(one, style, box)
    else:
        yield from _band_marks(one, style, box)
        shape = _stair_corners if marker == "steps" else list
        yield from (_polyline_mark(shape(part), style, thin=one.thin) for part in _unbroken_parts(one, box))


def _stair_corners(part: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of steps that keep each y until the next x."""
    corners = [corner for (_, y), (x, later) in pairwise(part) for corner in ((x, y), (x, later))]
    return [*part[:1], *corners]


def _dots_mark(one: Series, style: _SeriesStyle, box: _PanelBox) -> Iterator[Markup]:
    """Yield the dots of a series as one path."""
    pairs = [
        (x, y) for x, y in zip(one.x.tolist(), one.y.tolist(), strict=True) if math.isfinite(x) and math.isfinite(y)
    ]
    # a line of length 0 with round caps is a dot
    d = " ".join(f"M{box.x.to_position(x):.1f},{box.y.to_position(y):.1f}h0" for x, y in pairs)
    yield element("path", d=d, stroke=style.colour, stroke_width=2, stroke_linecap="round", stroke_opacity=0.5)


def _bar_marks(
    panel: Panel, one: Series, style: _SeriesStyle, box: _PanelBox, names: Sequence[str]
) -> Iterator[Markup]:
    """Yield the bars of a series beside those of other series in each bin, with whiskers where it has a band."""
    names = list(dict.fromkeys(names))
    if one.thin:
        return
    width = 0.9 * panel.bar_width / len(names)
    for x, y in zip(one.x.tolist(), one.y.tolist(), strict=True):
        if math.isfinite(y) and y != 0 and box.y.has_position(y):
            start = box.x.to_position(x - 0.45 * panel.bar_width + names.index(one.name) * width)
            end = box.x.to_position(x - 0.45 * panel.bar_width + (names.index(one.name) + 1) * width)
            top, base = sorted((box.y.to_position(y), box.bottom if box.y.log else box.y.to_position(0.0)))
            yield element(
                "rect", x=start, y=top, width=end - start, height=base - top, fill=style.fill,
                stroke=style.colour, stroke_width=0.8,
            )  # fmt: skip
    yield from _bar_whisker_marks(one, style, box, names.index(one.name) + 0.5, width, panel.bar_width)


def _bar_whisker_marks(
    one: Series, style: _SeriesStyle, box: _PanelBox, place: float, width: float, bar: float
) -> Iterator[Markup]:
    """Yield the whiskers of bars; none without a band."""
    if one.lower is None or one.upper is None:
        return
    for x, low, high in zip(one.x.tolist(), one.lower.tolist(), one.upper.tolist(), strict=True):
        if math.isfinite(low) and math.isfinite(high) and box.y.has_position(high):
            at = box.x.to_position(x - 0.45 * bar + place * width)
            yield _line_mark(at, box.y.to_position(low), at, box.y.to_position(high), style.colour)


def _unbroken_parts(one: Series, box: _PanelBox) -> Iterator[list[tuple[float, float]]]:
    """Yield the parts of a line between missing values, as positions."""
    part: list[tuple[float, float]] = []
    for x, y in zip(one.x.tolist(), one.y.tolist(), strict=True):
        if math.isfinite(y) and box.y.has_position(y):
            part.append((box.x.to_position(x), box.y.to_position(y)))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _polyline_mark(points: Sequence[tuple[float, float]], style: _SeriesStyle, *, thin: bool = False) -> Markup:
    """Return a line through points, faint if ``thin``."""
    return element(
        "polyline", points=_coordinates_text(points), fill="none", stroke=style.colour, stroke_width=0.5 if thin else 1.6,
        stroke_dasharray=style.dash, stroke_opacity=0.5 if thin else None,
    )  # fmt: skip


def _coordinates_text(points: Sequence[tuple[float, float]]) -> str:
    """Return points as the coordinates of an SVG element."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _band_marks(one: Series, style: _SeriesStyle, box: _PanelBox) -> Iterator[Markup]:
    """Yield the band of a series, interrupted where it is missing."""
    if one.lower is None or one.upper is None:
        return
    known = np.isfinite(one.lower) & np.isfinite(one.upper)
    for part in np.split(np.arange(known.size), np.flatnonzero(~known)):
        at = part[known[part]]
        ends = [
            [
                (box.x.to_position(x), box.y.to_position(y))
                for x, y in zip(one.x[at].tolist(), column[at].tolist(), strict=True)
            ]
            for column in (one.upper, one.lower)
        ]
        if at.size:
            points = _coordinates_text([*ends[0], *ends[1][::-1]])
            yield element("polygon", points=points, fill=style.colour, fill_opacity=0.18)


def _estimate_marks(one: Series, style: _SeriesStyle, box: _PanelBox) -> Iterator[Markup]:
    """Yield each estimate as a shape on the line of its interval."""
    for i, (x, y) in enumerate(zip(one.x.tolist(), one.y.tolist(), strict=True)):
        if not (math.isfinite(y) and box.y.has_position(y)):
            continue
        at = box.x.to_position(x)
        ends = [float(bound[i]) for bound in (one.lower, one.upper) if bound is not None and np.isfinite(bound[i])]
        if len(ends) == 2:
            yield element(
                "path",
                d=_whisker_path(at, box.y.to_position(ends[0]), box.y.to_position(ends[1])),
                stroke=style.colour,
                stroke_width=1.6,
            )
        yield element("path", d=_shape_path(style.shape_number, at, box.y.to_position(y)), fill=style.colour)


def _named_path_marks(one: Series, style: _SeriesStyle, box: _PanelBox) -> Iterator[Markup]:
    """Yield the path through named points, and the names of its two ends."""
    if not one.stops:
        return
    places = [(box.x.to_position(x), box.y.to_position(y)) for x, y in zip(one.x.tolist(), one.y.tolist(), strict=True)]
    yield _polyline_mark(places, style, thin=True)
    for (x, y), name in {places[0]: one.stops[0], places[-1]: one.stops[-1]}.items():
        yield _text_mark(name, x, y - 7, "middle", 9, fill=style.colour)


def _whisker_path(x: float, low: float, high: float) -> str:
    """Return the path of an interval with a bar at either end."""
    return f"M{x:.1f},{low:.1f} V{high:.1f} M{x - 5:.1f},{low:.1f} h10 M{x - 5:.1f},{high:.1f} h10"


def _shape_path(order: int, x: float, y: float) -> str:
    """Return the path of a square, a circle, a triangle or a diamond around (x, y)."""
    at = f"M{x:.1f},{y:.1f}"
    return (
        f"{at} m-4,-4 h8 v8 h-8 z",
        f"{at} m-4.5,0 a4.5,4.5 0 1,0 9,0 a4.5,4.5 0 1,0 -9,0 z",
        f"{at} m0,-5 l5,9 h-10 z",
        f"{at} m0,-5.5 l5,5.5 l-5,5.5 l-5,-5.5 z",
    )[order % 4]
