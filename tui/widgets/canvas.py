"""Rasterise lines, points, bars and bands into boolean masks, and draw masks and text into pictures made of characters.

A mask has shape (rows, columns) in dots, row 0 at the top. Coordinates are in dots, dot (r, c) being the unit
square centred on y = r, x = c. Nothing here depends on a screen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from sfumato.tui.terminal.glyphs import Glyphs
from sfumato.tui.terminal.text import cut_text, split_cells
from sfumato.workspace.visible_text import replace_unprintable

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Shape = tuple[int, int]

SOLID = (True,)
SAMPLES_AT_ONCE = 1_000_000


def rasterise_points(x: Floats, y: Floats, shape: Shape) -> Mask:
    """Mark the dots of points (n,); points outside ``shape`` or not finite are left out."""
    mask = np.zeros(shape, dtype=np.bool_)
    finite = np.isfinite(x) & np.isfinite(y)
    # Adding a half before `floor` rounds to the dot that the point is in; `rint` would round halves to even dots.
    column, row = np.floor(x[finite] + 0.5), np.floor(y[finite] + 0.5)
    inside = (column >= 0) & (column < shape[1]) & (row >= 0) & (row < shape[0])
    mask[row[inside].astype(np.intp), column[inside].astype(np.intp)] = True
    return mask


def rasterise_line(x: Floats, y: Floats, shape: Shape, dash: tuple[bool, ...] = SOLID) -> Mask:
    """Mark the dots of the polyline through points (n,), broken at NaN; ``dash`` repeats along its length in dots."""
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = _thin_line(np.where(finite, x, np.nan), np.where(finite, y, np.nan), shape[1])
    lone = _isolated_points(x, y)
    mask = rasterise_points(x[lone], y[lone], shape)
    length = np.maximum(np.abs(np.diff(x)), np.abs(np.diff(y)))
    drawn = np.isfinite(length)
    # Dashes go on over corners, so every segment starts where the length of those before it ends.
    start = np.concatenate([[0.0], np.cumsum(np.where(drawn, length, 0.0))[:-1]]) if length.size else length
    segments = np.column_stack([x[:-1], y[:-1], np.diff(x), np.diff(y), start])[drawn]
    # Zoomed far in, a segment can be millions of dots long: only its part on the canvas may be sampled.
    near, far, seen = _clip_segments(segments, shape)
    segments, near, far = segments[seen], near[seen], far[seen]
    longest = (far - near) * np.abs(segments[:, 2:4]).max(axis=1, initial=0.0)
    steps = np.maximum(np.ceil(longest), 1).astype(np.intp)
    # Chunks keep the sample arrays in bounds where many long segments cross the canvas.
    for chunk in np.array_split(np.arange(steps.size), 1 + int(steps.sum()) // SAMPLES_AT_ONCE):
        _draw_segments(mask, segments[chunk], near[chunk], far[chunk], steps[chunk], np.array(dash))
    return mask


def _draw_segments(
    mask: Mask, segments: Floats, near: Floats, far: Floats, steps: NDArray[np.intp], dash: Mask
) -> None:
    """Set the dots at ``steps`` + 1 equal steps of each segment between its fractions ``near`` and ``far``."""
    which = np.repeat(np.arange(steps.size), steps + 1)
    first = np.concatenate([[0], np.cumsum(steps + 1)[:-1]]) if steps.size else steps
    position = (np.arange(which.size) - first[which]) / steps[which]
    fraction = near[which] + position * (far - near)[which]
    x0, y0, dx, dy, start = segments[which].T
    travelled = start + fraction * np.maximum(np.abs(dx), np.abs(dy))
    inked = dash[np.mod(np.floor(travelled + 0.5), dash.size).astype(np.intp)]
    column = np.floor(x0 + fraction * dx + 0.5).clip(0, mask.shape[1] - 1).astype(np.intp)
    row = np.floor(y0 + fraction * dy + 0.5).clip(0, mask.shape[0] - 1).astype(np.intp)
    mask[row[inked], column[inked]] = True


def _clip_segments(segments: Floats, shape: Shape) -> tuple[Floats, Floats, Mask]:
    """Return where each segment (x, y, dx, dy, …) enters and leaves the canvas, as fractions, and whether any of it is
    visible.
    """
    # Liang and Barsky (1984), A new concept and method for line clipping.
    near, far = np.zeros(len(segments)), np.ones(len(segments))
    for axis, extent in ((0, shape[1]), (1, shape[0])):
        start, step = segments[:, axis], segments[:, axis + 2]
        # A segment parallel to a side never crosses it; the divisor 1 only avoids a division by 0.
        flat = step == 0
        divisor = np.where(flat, 1.0, step)
        with np.errstate(over="ignore"):
            one, other = (-0.5 - start) / divisor, (extent - 0.5 - start) / divisor
        inside = (start >= -0.5) & (start <= extent - 0.5)
        near = np.maximum(near, np.where(flat, np.where(inside, 0.0, np.inf), np.minimum(one, other)))
        far = np.minimum(far, np.where(flat, 1.0, np.maximum(one, other)))
    return near, far, near <= far


def _thin_line(x: Floats, y: Floats, columns: int) -> tuple[Floats, Floats]:
    """Return at most four points for each dot column (first, lowest, highest, last), which draw the same dots as all
    points.

    The input is returned if it is short or if x falls somewhere.
    """
    # M4: Jugel, Jerzak, Hackenbroich and Markl (2014), PVLDB 7(10).
    if x.size <= 8 * columns:
        return x, y
    missing = np.isnan(x)
    # A line that turns back in x visits a column more than once, in which first and last mean nothing.
    if np.any(np.diff(x[~missing]) < 0):
        return x, y
    column = np.floor(np.where(missing, np.inf, x) + 0.5)
    first = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
    last = np.concatenate([first[1:], [x.size]]) - 1
    low, high = np.minimum.reduceat(y, first), np.maximum.reduceat(y, first)
    few_x = np.column_stack([x[first], x[first], x[first], x[last]])
    few_y = np.column_stack([y[first], low, high, y[last]])
    return few_x.ravel(), few_y.ravel()


def _isolated_points(x: Floats, y: Floats) -> Mask:
    """Mark the points (n,) that no segment reaches: single points, also between gaps."""
    finite = np.isfinite(x) & np.isfinite(y)
    framed = np.concatenate([[False], finite, [False]])
    return np.asarray(finite & ~framed[:-2] & ~framed[2:])


def rasterise_bars(left: Floats, right: Floats, base: Floats, top: Floats, shape: Shape) -> Mask:
    """Mark the dots of filled bars (n,) from ``base`` to ``top``, at least one dot wide; overlaps show the union."""
    upper, lower = np.full(shape[1], np.nan), np.full(shape[1], np.nan)
    seen = np.isfinite(left) & np.isfinite(top) & (right >= -0.5) & (left <= shape[1] - 0.5)
    first = np.floor(left[seen] + 0.5).clip(0, shape[1] - 1).astype(np.intp)
    last = np.maximum(first, np.ceil(right[seen] - 0.5).clip(0, shape[1]).astype(np.intp) - 1)
    width = last - first + 1
    starts = np.repeat(np.cumsum(width) - width, width)
    column = np.repeat(first, width) + np.arange(starts.size) - starts
    # `ufunc.at`, since bars that share a dot column must both count; indexing would keep the last alone.
    np.fmin.at(upper, column, np.repeat(np.minimum(top, base)[seen], width))
    np.fmax.at(lower, column, np.repeat(np.maximum(top, base)[seen], width))
    return rasterise_band(upper, lower, shape)


def rasterise_band(upper: Floats, lower: Floats, shape: Shape) -> Mask:
    """Mark the dots from ``upper`` down to ``lower`` in every dot column, both (columns,); NaN leaves a
    column empty.
    """
    row = np.arange(shape[0])[:, np.newaxis]
    return np.asarray((row >= np.floor(upper + 0.5)) & (row <= np.floor(lower + 0.5)))


def hatch_pattern(shape: Shape, glyphs: Glyphs, order: int, every: int = 2) -> Mask:
    """Return a mask with one dot in each ``every``-th cell of a row, which shades the area of number ``order`` without
    colour.
    """
    mask = np.zeros(shape, dtype=np.bool_)
    apart = every * glyphs.dots_across
    mask[order % glyphs.dots_down :: glyphs.dots_down, order * glyphs.dots_across % apart :: apart] = True
    return mask


def covered_cells(mask: Mask, glyphs: Glyphs) -> Mask:
    """Mark the cells, (rows, columns), at least half of whose dots are set."""
    rows, columns = mask.shape[0] // glyphs.dots_down, mask.shape[1] // glyphs.dots_across
    counts = mask.reshape(rows, glyphs.dots_down, columns, glyphs.dots_across).sum(axis=(1, 3))
    return np.asarray(counts >= math.ceil(glyphs.dots_down * glyphs.dots_across / 2))


BLANK, TEXT, FAINT, STRONG, CURSOR, SERIES = range(6)
"""Inks. Series k (from 0) is drawn in ink SERIES + k. A fill of k + 1 is the tint of series k; 0 is no fill."""


@dataclass(frozen=True, eq=False)
class CharacterPicture:
    """Picture made of characters.

    characters: characters, (height, width)
    inks: ink of each character, (height, width)
    fills: fill behind each character, (height, width); 0 means no fill
    """

    characters: NDArray[np.str_]
    inks: NDArray[np.int16]
    fills: NDArray[np.int16]

    @property
    def height(self) -> int:
        """Return the height in cells."""
        return int(self.characters.shape[0])

    @property
    def width(self) -> int:
        """Return the width in cells."""
        return int(self.characters.shape[1])

    def row_text(self, row: int) -> str:
        """Return the characters of a row."""
        return "".join(self.characters[row])

    def ink_runs(self, row: int) -> Iterator[tuple[str, int, int]]:
        """Yield (text, ink, fill) for each piece of ``row`` with one ink and one fill; blanks take a
        neighbour's ink.
        """
        characters, inks, fills = (part[row].tolist() for part in (self.characters, self.inks, self.fills))
        start = 0
        for fill, span in groupby(fills):
            end = start + len(list(span))
            places = iter(characters[start:end])
            # A blank shows no ink, so it need not end a run: fewer changes of style are fewer bytes.
            for ink, run in groupby(_extend_inks(characters[start:end], inks[start:end])):
                yield "".join(islice(places, len(list(run)))), ink, fill
            start = end

    def changed_rows(self, other: CharacterPicture) -> NDArray[np.intp]:
        """Return the rows in which two pictures of the same size differ, (k,)."""
        pairs = ((self.characters, other.characters), (self.inks, other.inks), (self.fills, other.fills))
        differ = np.zeros(self.characters.shape, dtype=np.bool_)
        for mine, theirs in pairs:
            differ |= mine != theirs
        return np.flatnonzero(differ.any(axis=1))


def _extend_inks(characters: Sequence[str], inks: Sequence[int]) -> list[int]:
    """Return ``inks`` with the ink of the character before for every blank, at the start that of the first character.

    All are BLANK if all characters are blank.
    """
    # The cursor is reversed, so its blank shows and keeps its own ink.
    own = [BLANK if character == " " else ink for character, ink in zip(characters, inks, strict=True)]
    carried = next((ink for ink in own if ink not in (BLANK, CURSOR)), BLANK)
    spread = []
    for ink in own:
        carried = carried if ink in (BLANK, CURSOR) else ink
        spread.append(CURSOR if ink == CURSOR else carried)
    return spread


class PictureDraft:
    """Picture under construction; everything outside its edges is dropped."""

    def __init__(self, width: int, height: int, ellipsis: str) -> None:
        """Create a blank picture of this width and height in cells."""
        self.width, self.height, self.ellipsis = max(width, 0), max(height, 0), ellipsis
        self.characters = np.full((self.height, self.width), " ", dtype="<U1")
        self.inks = np.full((self.height, self.width), BLANK, dtype=np.int16)
        self.fills = np.zeros((self.height, self.width), dtype=np.int16)

    def put_text(self, row: int, column: int, text: str, ink: int, room: int | None = None) -> None:
        """Write ``text`` from cell (``row``, ``column``) on, cut to ``room`` cells and to the edge."""
        if not (0 <= row < self.height and 0 <= column < self.width):
            return
        space = self.width - column if room is None else min(room, self.width - column)
        written = split_cells(cut_text(replace_unprintable(text), space, self.ellipsis))
        self.characters[row, column : column + len(written)] = written
        self.inks[row, column : column + len(written)] = ink

    def to_picture(self) -> CharacterPicture:
        """Return the finished picture, which shares the arrays of the draft."""
        return CharacterPicture(self.characters, self.inks, self.fills)

    @classmethod
    def from_picture(cls, picture: CharacterPicture, ellipsis: str) -> PictureDraft:
        """Start a draft as a copy of ``picture``."""
        draft = cls(picture.width, picture.height, ellipsis)
        draft.characters[:], draft.inks[:], draft.fills[:] = picture.characters, picture.inks, picture.fills
        return draft
