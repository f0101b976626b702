"""Diff output: of every picture that Textual paints, only the cells that differ from the terminal's are sent.

Textual repaints whole regions, often several times for one key; over a slow connection that is most of the waiting.
Codes of select graphic rendition (SGR, ECMA-48) are those that Rich gives a style: ``1;38;2;255;0;0;48;5;16``; empty is
the terminal's own style.
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
"""Row and column of a strip, and the strip."""
Cell = tuple[str, str]
"""Character of a cell with the zero-width characters after it, empty in the second half of a wide one; and the codes of
its style.
"""
BRIDGE = 6
"""Number of unchanged cells between changed ones that are sent again, since moving the cursor would take more bytes."""
JOINER = "\u200d"
"""Zero-width joiner, which makes one sign of several, such as a family. It neither hides nor reverses text."""
COLOURS = {"5": 3, "2": 5}
"""Number of codes of a colour by its second code: a number of the palette, or red, green and blue."""
SEEN_ON_BLANKS = frozenset({"4", "5", "6", "7", "9", "21", "51", "52", "53"})
"""Attributes that are visible on a blank: lines above, through, below and around it, and reversed colours."""


class TerminalImage:
    """Contents of the terminal, cell by cell; with ``ascii_only`` all characters are replaced by ASCII ones."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        """Create an image of a terminal with unknown contents."""
        self._ascii_only = ascii_only
        self._standing: dict[int, list[Cell | None]] = {}

    def forget_image(self) -> None:
        """Treat the contents of the terminal as unknown, so that the next picture is sent whole."""
        self._standing = {}

    def update_sequences(self, pieces: Iterable[Piece], console: Console) -> str:
        """Return the escape sequences that make the terminal show ``pieces``; empty if it shows them already."""
        system = COLOR_SYSTEMS[console.color_system] if console.color_system else ColorSystem.TRUECOLOR
        parts: list[str] = []
        current: str | None = None
        for y, x, given in pieces:
            strip = printable_strip(given)
            cells, looks = _strip_cells(strip, system)
            # A strip whose cells are not known one by one is sent whole.
            if looks is None:
                # What the terminal shows there is unknown from now on, so the next strip is sent whole.
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
                    # A blank needs no change of style that would not be visible on it.
                    wanted = codes_for_blank(current, behind) if seen == " " else codes
                    if wanted != current:
                        parts.append(sgr_change(current, wanted))
                        current = wanted
                    parts.append(text)
        return "".join([*parts, "\x1b[0m" if current else ""])

    def _changed_runs(self, y: int, x: int, cells: Sequence[Cell], looks: Sequence[Cell]) -> Iterator[tuple[int, int]]:
        """Yield start and stop of the runs in which ``looks`` differ from the stored cells, which they replace."""
        before = self._replace_cells(y, x, looks)
        if before == looks:
            return
        changed = [i for i, (look, stood) in enumerate(zip(looks, before, strict=True)) if look != stood]
        for start, stop in _join_runs(changed):
            # A wide character is sent whole, even if only its second half has changed.
            yield start - (not cells[start][0] and start > 0), stop

    def _replace_cells(self, y: int, x: int, cells: Sequence[Cell | None]) -> list[Cell | None]:
        """Store ``cells`` at row ``y`` from column ``x`` on; return the cells that were there."""
        row = self._standing.setdefault(y, [])
        stop = x + len(cells)
        row.extend(repeat(None, stop - len(row)))
        before = row[x:stop]
        row[x:stop] = cells
        return before


def printable_strip(strip: Strip) -> Strip:
    """Return the strip without characters that could command the terminal; each cell keeps its place."""
    if all(segment.text.isprintable() for segment in strip):
        return strip
    return Strip(printable_segments(strip))


def printable_segments(segments: Iterable[Segment]) -> list[Segment]:
    """Return segments with ``?`` in place of unprintable characters.

    Characters without width, such as escape and direction marks, are left out.
    """
    return [Segment(_printable_text(text), style) for text, style, _ in segments]


def _printable_text(text: str) -> str:
    """Return a text with a blank or ``?`` in place of unprintable characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == JOINER else (" " if c.isspace() else "?") * cell_len(c) for c in text)


class PrintableFilter(LineFilter):
    """Filter that replaces unprintable characters in Textual's own output, as ``printable_strip`` does in ours."""

    def apply(self, segments: list[Segment], background: object) -> list[Segment]:
        """Return the segments without characters that could command the terminal."""
        return segments if all(text.isprintable() for text, _, _ in segments) else printable_segments(segments)


class DiffOutput(App[None]):
    """App that sends only changed cells to the terminal; inline pictures are left to Textual."""

    _image: TerminalImage | None = None
    _only_seen = PrintableFilter()

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        """Create the app; without diff output an ASCII terminal needs a driver of its own."""
        super().__init__(ansi_color=ansi_color)
        ascii_only = os.environ.get(CHOICE) == "ascii"
        if is_on(DIFF_OUTPUT):
            self._image = TerminalImage(ascii_only=ascii_only)
        elif ascii_only:
            self.driver_class = ascii_driver(self.driver_class)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters, with the one for unprintable characters if Textual writes by itself."""
        own = super().get_line_filters()
        # Names come from untrusted files, and must not command the terminal.
        return own if self._image is not None else [*own, self._only_seen]

    def forget_image(self) -> None:
        """Treat the contents of the terminal as unknown."""
        if self._image is not None:
            self._image.forget_image()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None, *others: Any) -> None:
        """Send the differences of a picture to the terminal."""
        shown = renderable if self._image is None else diff_update(renderable, self._image)
        super()._display(screen, shown, *others)

    async def on_event(self, event: events.Event) -> None:
        """Handle an event; after a change of its size the terminal may have been cleared."""
        if isinstance(event, events.Resize):
            self.forget_image()
        await super().on_event(event)


def diff_update(update: Any, image: TerminalImage) -> Any:
    """Return an update of Textual's that is reduced to the differences when it is written."""
    from textual._compositor import ChopsUpdate, LayoutUpdate

    # Some updates are never written, so the comparison must wait until then.
    return _diff_update_type()(update, image) if isinstance(update, (LayoutUpdate, ChopsUpdate)) else update


@cache
def _diff_update_type() -> Callable[[LayoutUpdate | ChopsUpdate, TerminalImage], object]:
    """Return a subclass of Textual's updates that writes the differences."""
    # Textual checks the class of an update. It is private, so the subclass is created only if this part is on.
    from textual._compositor import CompositorUpdate, LayoutUpdate

    class DiffUpdate(CompositorUpdate):
        """Update of the terminal by its differences."""

        def __init__(self, update: LayoutUpdate | ChopsUpdate, image: TerminalImage) -> None:
            """Create the update for one of Textual's."""
            self._update, self._image = update, image

        def render_segments(self, console: Console) -> str:
            """Return the escape sequences of the differences."""
            update = self._update
            pieces = _layout_pieces(update) if isinstance(update, LayoutUpdate) else _chop_pieces(update)
            return self._image.update_sequences(pieces, console)

    return DiffUpdate


def _layout_pieces(update: LayoutUpdate) -> Iterator[Piece]:
    """Yield the lines of a full update."""
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
    """Return the cells of a strip, and their looks: a blank has only the codes that are visible on it.

    The looks are None if the strip has a link, or characters that do not add up to its width one by one.
    """
    cells: list[Cell] = []
    looks: list[Cell] = []
    for text, style, _ in strip:
        # The codes of a link are not part of a cell's style.
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
    """Return the codes of a style, and those that are visible on a blank."""
    if style is None:
        return "", ""
    codes = Strip.render_ansi(style, system)
    return codes, codes_on_blank(codes)


def _append_wide_cells(cells: list[Cell], text: str, codes: str) -> None:
    """Append the cells of a text with wide or zero-width characters to ``cells``."""
    for character in text:
        width = cell_len(character)
        if width:
            cells.extend([(character, codes), *[("", codes)] * (width - 1)])
        elif cells:
            # A zero-width character belongs to the character before it, whose second half may come between.
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
    """Return the parts of a style's codes."""
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
    """Return the shortest escape sequence that turns the style ``current`` into ``wanted``.

    ``current`` is None if the present style is unknown.
    """
    from_reset = f"\x1b[0;{wanted}m" if wanted else "\x1b[0m"
    if current is None:
        return from_reset
    have, want = _parse_codes(current), _parse_codes(wanted)
    # The code that ends bold (22) also ends faint, so attributes are removed by a reset.
    if have.attributes - want.attributes:
        return from_reset
    changes = sorted(want.attributes - have.attributes)
    changes += [want.colour or "39"] if want.colour != have.colour else []
    changes += [want.background or "49"] if want.background != have.background else []
    return min(f"\x1b[{';'.join(changes)}m" if changes else "", from_reset, key=len)


@lru_cache(4096)
def codes_on_blank(current: str) -> str:
    """Return the codes that are visible on a blank."""
    parts = _parse_codes(current)
    return current if parts.attributes & SEEN_ON_BLANKS else parts.background


def codes_for_blank(current: str | None, wanted: str) -> str:
    """Return ``current`` if a blank looks the same with it as with ``wanted``, otherwise ``wanted``."""
    return current if current is not None and codes_on_blank(current) == codes_on_blank(wanted) else wanted
