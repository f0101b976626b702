"""What goes over the wire: of every picture that Textual paints, only the cells that differ from what stands there.

Textual repaints whole regions, often several times for one key; over a slow connection that is most of the waiting.
Rests on parts of Textual 8.2 that are not public: ``App._display``, ``LayoutUpdate``, ``ChopsUpdate``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

from sfumato.tui.widgets.text import narrow

from ..glyph_choice import ascii_sign
from .sgr import for_blank, on_blank, turned

__all__ = ["Piece", "Thinned", "Wire"]

Piece = tuple[int, int, Strip]
"""Row, column, and what is to stand from there on."""
Cell = tuple[str, str]
"""A character with what has no width of its own, empty in the second half of a wide one; and the codes of its style."""
BRIDGE = 6
"""Unchanged cells between changed ones that are sent again: moving the cursor would take more bytes."""


class Wire:
    """Knows what stands on the terminal; ``ascii_only`` puts characters of ASCII in place of all others."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        self._ascii_only = ascii_only
        self._standing: dict[int, list[Cell | None]] = {}

    def forget(self) -> None:
        """The terminal may show anything now; the next picture is sent whole."""
        self._standing = {}

    def send(self, pieces: Iterable[Piece], console: Console) -> str:
        """The escape sequences that bring the terminal to show ``pieces``; empty when it does already."""
        system = console._color_system or ColorSystem.TRUECOLOR
        parts: list[str] = []
        pen: str | None = None
        for y, x, strip in pieces:
            cells, looks = _cells(strip, system)
            if looks is None:
                self._stand(y, x, [None] * strip.cell_length)
                rendered = strip.render(console)
                text = "".join(map(ascii_sign, rendered)) if self._ascii_only else rendered
                parts.append(f"\x1b[0m\x1b[{y + 1};{x + 1}H{text}")
                pen = None
                continue
            if self._ascii_only:
                cells = [(ascii_sign(text[0]) if text else " ", codes) for text, codes in cells]
            for start, stop in self._changes(y, x, cells, looks):
                parts.append(f"\x1b[{y + 1};{x + start + 1}H")
                for (text, codes), (seen, behind) in zip(cells[start:stop], looks[start:stop], strict=True):
                    wanted = for_blank(pen, behind) if seen == " " else codes
                    if wanted != pen:
                        parts.append(turned(pen, wanted))
                        pen = wanted
                    parts.append(text)
        return "".join([*parts, "\x1b[0m" if pen else ""])

    def _changes(self, y: int, x: int, cells: Sequence[Cell], looks: Sequence[Cell]) -> Iterator[tuple[int, int]]:
        """Where ``looks`` differ from what stands there, which is now taken to be them."""
        before = self._stand(y, x, looks)
        if before == looks:
            return
        changed = [i for i, (look, stood) in enumerate(zip(looks, before, strict=True)) if look != stood]
        for start, stop in _joined(changed):
            yield start - (not cells[start][0] and start > 0), stop

    def _stand(self, y: int, x: int, cells: Sequence[Cell | None]) -> list[Cell | None]:
        """Take ``cells`` to stand at row ``y`` from column ``x`` on; returns what stood there."""
        row = self._standing.setdefault(y, [])
        stop = x + len(cells)
        row.extend(repeat(None, stop - len(row)))
        before = row[x:stop]
        row[x:stop] = cells
        return before


class Thinned(CompositorUpdate):
    """An update of Textual's, thinned out when it is written and not before: some never are."""

    def __init__(self, update: LayoutUpdate | ChopsUpdate, wire: Wire) -> None:
        self._update, self._wire = update, wire

    def render_segments(self, console: Console) -> str:
        """The escape sequences."""
        update = self._update
        pieces = _of_layout(update) if isinstance(update, LayoutUpdate) else _of_chops(update)
        return self._wire.send(pieces, console)


def _of_layout(update: LayoutUpdate) -> Iterator[Piece]:
    for y, line in enumerate(update.strips, update.region.y):
        yield y, update.region.x, Strip.join(line)


def _of_chops(update: ChopsUpdate) -> Iterator[Piece]:
    """The parts of the chops that lie in the spans, as ``ChopsUpdate.render_segments`` takes them."""
    for y, x1, x2 in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x <= x2 and end > x1:
                whole = x2 > x >= x1 and end <= x2
                yield y, x, strip if whole else strip.crop(0, min(end, x2) - x)


def _cells(strip: Strip, system: ColorSystem) -> tuple[Sequence[Cell], Sequence[Cell] | None]:
    """The cells of a strip, and how they look: a blank has no colour of its own, only that behind it.

    No looks where it has a link, or characters that do not add up to its width one by one.
    """
    cells: list[Cell] = []
    looks: list[Cell] = []
    for text, style, _ in strip:
        if style is not None and style.link:
            return (), None
        codes, behind = _codes(style, system)
        start = len(cells)
        if narrow(text):
            cells.extend(zip(text, repeat(codes)))
        else:
            _extend(cells, text, codes)
            for place in range(max(0, start - 2), start):
                looks[place] = cells[place] if len(cells[place][0]) > 1 else looks[place]
        if codes == behind or " " not in text:
            looks.extend(cells[start:])
        else:
            blank = (" ", behind)
            looks.extend([blank if cell[0] == " " else cell for cell in cells[start:]])
    return cells, looks if len(cells) == strip.cell_length else None


@lru_cache(4096)
def _codes(style: Style | None, system: ColorSystem) -> tuple[str, str]:
    """The codes of a style, and of what is to be seen of it where there is no character."""
    if style is None:
        return "", ""
    codes = Strip.render_ansi(style, system)
    return codes, on_blank(codes)


def _extend(cells: list[Cell], text: str, codes: str) -> None:
    for character in text:
        width = cell_len(character)
        if width:
            cells.extend([(character, codes), *[("", codes)] * (width - 1)])
        elif cells:
            at = -1 if cells[-1][0] or len(cells) == 1 else -2
            cells[at] = (cells[at][0] + character, cells[at][1])


def _joined(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Start and stop of the runs of rising ``places``, those that are nearly together joined."""
    start = stop = -1
    for place in places:
        if start >= 0 and place - stop > BRIDGE:
            yield start, stop
            start = place
        start, stop = place if start < 0 else start, place + 1
    if start >= 0:
        yield start, stop
