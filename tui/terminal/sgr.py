"""What a terminal writes with, and the shortest way from one pen to another (ECMA-48, select graphic rendition).

A pen is the codes of a style as Rich has them: ``1;38;2;255;0;0;48;5;16``; empty is the terminal's own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

__all__ = ["for_blank", "on_blank", "turned"]

COLOURS = {"5": 3, "2": 5}
"""How many codes a colour has by its second one: a number of the palette, or red, green and blue."""
SEEN_ON_BLANKS = frozenset({"4", "5", "6", "7", "9", "21", "51", "52", "53"})
"""Lines above, through, below and around a character, and what swaps its colour with that behind it."""


class Pen(NamedTuple):
    """A pen by its parts; a colour that is empty is the terminal's own."""

    attributes: frozenset[str]
    colour: str
    behind: str


@lru_cache(4096)
def _parts(codes: str) -> Pen:
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
    return Pen(frozenset(attributes), colour, behind)


@lru_cache(16384)
def turned(pen: str | None, wanted: str) -> str:
    """The escape sequence that makes ``wanted`` of ``pen``: only what differs, unless to begin anew is shorter.

    Of a pen that is None nothing is known.
    """
    anew = f"\x1b[0;{wanted}m" if wanted else "\x1b[0m"
    if pen is None:
        return anew
    have, want = _parts(pen), _parts(wanted)
    if have.attributes - want.attributes:
        return anew
    changes = sorted(want.attributes - have.attributes)
    changes += [want.colour or "39"] if want.colour != have.colour else []
    changes += [want.behind or "49"] if want.behind != have.behind else []
    return min(f"\x1b[{';'.join(changes)}m" if changes else "", anew, key=len)


@lru_cache(4096)
def on_blank(pen: str) -> str:
    """What is to be seen of a pen where there is no character."""
    parts = _parts(pen)
    return pen if parts.attributes & SEEN_ON_BLANKS else parts.behind


def for_blank(pen: str | None, wanted: str) -> str:
    """``pen`` where a blank looks the same with it as with ``wanted``, else ``wanted``."""
    return pen if pen is not None and on_blank(pen) == on_blank(wanted) else wanted
