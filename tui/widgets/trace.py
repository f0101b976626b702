"""One series inside a frame: which dots it sets, which its band covers, and where its marks stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .axes import Floats
from .canvas import SOLID, Mask, bar_dots, fill_dots, hatch, line_dots, point_dots
from .frame import SAMPLE, Frame
from .look import Look
from .series import Series

MARKS = "ox+*#%@&"
FEW_POINTS = 60
"""So many points, or fewer, get a mark each; more become single dots."""
_PATTERNS = ("1", "11100", "100", "1111100100", "10000", "110000", "1111111001001000", "111111000000")
DASHES = tuple(tuple(dot == "1" for dot in pattern) for pattern in _PATTERNS)


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
    looks = order if one.kin is None else one.kin
    return Trace(line_dots(*vertices, frame.dots, _dash(looks, look)), _thick(_band(one, frame), frame))


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
    if look.glyphs.coarse:
        return filled
    return filled & (_edge(filled) | hatch(frame.dots, look.glyphs, order, every=4))


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
