"""Diff output: of every picture that Textual paints, only the cells that differ from what the terminal shows are sent.

Textual repaints whole regions, often several times for one key; over a slow connection that is most of the waiting.
Codes of select graphic rendition (SGR, ECMA-48) are those that Rich gives a style: ``1;38;2;255;0;0;48;5;16``; empty is the
terminal's own look.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App
from textual.filter import LineFilter
from textual.screen import Screen
from textual.strip import Strip

from .device import ascii_driver
from .glyphs import CHOICE, ascii_sign
from .parts import DIFF_OUTPUT, is_on
from .text import is_narrow

if TYPE_CHECKING:
    from textual._compositor import ChopsUpdate, LayoutUpdate

Piece = tuple[int, int, Strip]
"""Row, column, and what is to stand from there on."""
Cell = tuple[str, str]
"""A character with what has no width of its own, empty in the second half of a wide one; and the codes of its style."""
BRIDGE = 6
"""Unchanged cells between changed ones that are sent again: moving the cursor would take more bytes."""
JOINER = "\u200d"
"""Makes one sign of several, such as a family; it neither hides nor turns anything."""
COLOURS = {"5": 3, "2": 5}
"""How many codes a colour has by its second one: a number of the palette, or red, green and blue."""
SEEN_ON_BLANKS = frozenset({"4", "5", "6", "7", "9", "21", "51", "52", "53"})
"""Lines above, through, below and around a character, and what swaps its colour with that behind it."""


class TerminalImage:
    """What the terminal shows, cell by cell; ``ascii_only`` puts characters of ASCII in place of all others."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        self._ascii_only = ascii_only
        self._standing: dict[int, list[Cell | None]] = {}

    def forget_image(self) -> None:
        """Assume nothing about the terminal: the next picture is sent whole."""
        self._standing = {}

    def update_sequences(self, pieces: Iterable[Piece], console: Console) -> str:
        """Return the escape sequences that make the terminal show ``pieces``; empty if it does already."""
        system = COLOR_SYSTEMS[console.color_system] if console.color_system else ColorSystem.TRUECOLOR
        parts: list[str] = []
        current: str | None = None
        for y, x, given in pieces:
            strip = printable_strip(given)
            cells, looks = _strip_cells(strip, system)
            if looks is None:
                self._replace_cells(y, x, [None] * strip.cell_length)
                rendered = strip.render(console)
                text = "".join(map(ascii_sign, rendered)) if self._ascii_only else rendered
                parts.append(f"\x1b[0m\x1b[{y + 1};{x + 1}H{text}")
                current = None
                continue
            if self._ascii_only:
                cells = [(ascii_sign(text[0]) if text else " ", codes) for text, codes in cells]
            for start, stop in self._changed_runs(y, x, cells, looks):
                parts.append(f"\x1b[{y + 1};{x + start + 1}H")
                for (text, codes), (seen, behind) in zip(cells[start:stop], looks[start:stop], strict=True):
                    wanted = codes_for_blank(current, behind) if seen == " " else codes
                    if wanted != current:
                        parts.append(sgr_change(current, wanted))
                        current = wanted
                    parts.append(text)
        return "".join([*parts, "\x1b[0m" if current else ""])

    def _changed_runs(self, y: int, x: int, cells: Sequence[Cell], looks: Sequence[Cell]) -> Iterator[tuple[int, int]]:
        """Yield start and stop of the runs in which ``looks`` differ from what stands there, which they now replace."""
        before = self._replace_cells(y, x, looks)
        if before == looks:
            return
        changed = [i for i, (look, stood) in enumerate(zip(looks, before, strict=True)) if look != stood]
        for start, stop in _join_runs(changed):
            yield start - (not cells[start][0] and start > 0), stop

    def _replace_cells(self, y: int, x: int, cells: Sequence[Cell | None]) -> list[Cell | None]:
        """Store ``cells`` at row ``y`` from column ``x`` on; return what stood there."""
        row = self._standing.setdefault(y, [])
        stop = x + len(cells)
        row.extend(repeat(None, stop - len(row)))
        before = row[x:stop]
        row[x:stop] = cells
        return before


def printable_strip(strip: Strip) -> Strip:
    """The strip without what could command the terminal; each cell stays where it is."""
    if all(segment.text.isprintable() for segment in strip):
        return strip
    return Strip(printable_segments(strip))


def printable_segments(segments: Iterable[Segment]) -> list[Segment]:
    """Return segments with ``?`` in place of what is not printable.

    Characters without width, such as escape and direction marks, are left out.
    """
    return [Segment(_printable_text(text), style) for text, style, _ in segments]


def _printable_text(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == JOINER else (" " if c.isspace() else "?") * cell_len(c) for c in text)


class PrintableFilter(LineFilter):
    """Does to Textual's own output what ``printable_strip`` does to ours."""

    def apply(self, segments: list[Segment], background: object) -> list[Segment]:
        """The segments without what could command the terminal."""
        return segments if all(text.isprintable() for text, _, _ in segments) else printable_segments(segments)


class DiffOutput(App[None]):
    """An app that sends what has changed; inline pictures are left to Textual."""

    _image: TerminalImage | None = None
    _only_seen = PrintableFilter()

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        ascii_only = os.environ.get(CHOICE) == "ascii"
        if is_on(DIFF_OUTPUT):
            self._image = TerminalImage(ascii_only=ascii_only)
        elif ascii_only:
            self.driver_class = ascii_driver(self.driver_class)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Where Textual writes by itself, nothing in a name commands the terminal either."""
        own = super().get_line_filters()
        return own if self._image is not None else [*own, self._only_seen]

    def forget_image(self) -> None:
        """The terminal may show anything now."""
        if self._image is not None:
            self._image.forget_image()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None, *others: Any) -> None:
        shown = renderable if self._image is None else diff_update(renderable, self._image)
        super()._display(screen, shown, *others)

    async def on_event(self, event: events.Event) -> None:
        """A terminal that changed its size may have been cleared."""
        if isinstance(event, events.Resize):
            self.forget_image()
        await super().on_event(event)


def diff_update(update: Any, image: TerminalImage) -> Any:
    """An update of Textual's, cut down to what differs when it is written and not before: some never are."""
    from textual._compositor import ChopsUpdate, LayoutUpdate

    return _diff_update_type()(update, image) if isinstance(update, (LayoutUpdate, ChopsUpdate)) else update


@cache
def _diff_update_type() -> Callable[[LayoutUpdate | ChopsUpdate, TerminalImage], object]:
    """A subclass of Textual's updates, which it asks for; made when the part is on."""
    from textual._compositor import CompositorUpdate, LayoutUpdate

    class DiffUpdate(CompositorUpdate):
        def __init__(self, update: LayoutUpdate | ChopsUpdate, image: TerminalImage) -> None:
            self._update, self._image = update, image

        def render_segments(self, console: Console) -> str:
            update = self._update
            pieces = _layout_pieces(update) if isinstance(update, LayoutUpdate) else _chop_pieces(update)
            return self._image.update_sequences(pieces, console)

    return DiffUpdate


def _layout_pieces(update: LayoutUpdate) -> Iterator[Piece]:
    for y, line in enumerate(update.strips, update.region.y):
        yield y, update.region.x, Strip.join(line)


def _chop_pieces(update: ChopsUpdate) -> Iterator[Piece]:
    """Yield the parts of the chops that lie in the spans, as ``ChopsUpdate.render_segments`` takes them."""
    for y, x1, x2 in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x <= x2 and end > x1:
                whole = x2 > x >= x1 and end <= x2
                yield y, x, strip if whole else strip.crop(0, min(end, x2) - x)


def _strip_cells(strip: Strip, system: ColorSystem) -> tuple[Sequence[Cell], Sequence[Cell] | None]:
    """Return the cells of a strip, and how they look: a blank has only the colour behind it.

    The looks are None if the strip has a link, or characters that do not add up to its width one by one.
    """
    cells: list[Cell] = []
    looks: list[Cell] = []
    for text, style, _ in strip:
        if style is not None and style.link:
            return (), None
        codes, behind = _style_codes(style, system)
        start = len(cells)
        if is_narrow(text):
            cells.extend(zip(text, repeat(codes)))
        else:
            _append_wide_cells(cells, text, codes)
            for place in range(max(0, start - 2), start):
                looks[place] = cells[place] if len(cells[place][0]) > 1 else looks[place]
        if codes == behind or " " not in text:
            looks.extend(cells[start:])
        else:
            blank = (" ", behind)
            looks.extend([blank if cell[0] == " " else cell for cell in cells[start:]])
    return cells, looks if len(cells) == strip.cell_length else None


@lru_cache(4096)
def _style_codes(style: Style | None, system: ColorSystem) -> tuple[str, str]:
    """Return the codes of a style, and those that are visible without a character."""
    if style is None:
        return "", ""
    codes = Strip.render_ansi(style, system)
    return codes, codes_on_blank(codes)


def _append_wide_cells(cells: list[Cell], text: str, codes: str) -> None:
    for character in text:
        width = cell_len(character)
        if width:
            cells.extend([(character, codes), *[("", codes)] * (width - 1)])
        elif cells:
            at = -1 if cells[-1][0] or len(cells) == 1 else -2
            cells[at] = (cells[at][0] + character, cells[at][1])


def _join_runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield start and stop of the runs of rising ``places``; runs that nearly touch are joined."""
    start = stop = -1
    for place in places:
        if start >= 0 and place - stop > BRIDGE:
            yield start, stop
            start = place
        start, stop = place if start < 0 else start, place + 1
    if start >= 0:
        yield start, stop


class SgrCodes(NamedTuple):
    """Codes of a style by their parts; an empty colour is the terminal's own.

    attributes: codes other than colours
    colour: code of the character's colour
    background: code of the colour behind it
    """

    attributes: frozenset[str]
    colour: str
    background: str


@lru_cache(4096)
def _parse_codes(codes: str) -> SgrCodes:
    attributes, colour, behind = set(), "", ""
    rest = codes.split(";") if codes else []
    while rest:
        length = COLOURS[rest[1]] if rest[0] in ("38", "48") else 1
        code, rest = rest[:length], rest[length:]
        kind = int(code[0])
        if 30 <= kind <= 38 or 90 <= kind <= 97:
            colour = ";".join(code)
        elif 40 <= kind <= 48 or 100 <= kind <= 107:
            behind = ";".join(code)
        elif kind not in (0, 39, 49):
            attributes.add(code[0])
    return SgrCodes(frozenset(attributes), colour, behind)


@lru_cache(16384)
def sgr_change(current: str | None, wanted: str) -> str:
    """Return the escape sequence that turns ``current`` into ``wanted``: only the differences, unless a reset is shorter.

    Where ``current`` is None nothing is known of it.
    """
    from_reset = f"\x1b[0;{wanted}m" if wanted else "\x1b[0m"
    if current is None:
        return from_reset
    have, want = _parse_codes(current), _parse_codes(wanted)
    if have.attributes - want.attributes:
        return from_reset
    changes = sorted(want.attributes - have.attributes)
    changes += [want.colour or "39"] if want.colour != have.colour else []
    changes += [want.background or "49"] if want.background != have.background else []
    return min(f"\x1b[{';'.join(changes)}m" if changes else "", from_reset, key=len)


@lru_cache(4096)
def codes_on_blank(current: str) -> str:
    """Return the codes that are visible without a character."""
    parts = _parse_codes(current)
    return current if parts.attributes & SEEN_ON_BLANKS else parts.background


def codes_for_blank(current: str | None, wanted: str) -> str:
    """Return ``current`` if a blank looks the same with it as with ``wanted``, otherwise ``wanted``."""
    return current if current is not None and codes_on_blank(current) == codes_on_blank(wanted) else wanted
