"""A picture made of characters: what every cell shows, in which ink and on which fill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from sfumato.workspace.reporting.words import printable

from .text import cells, cut

BLANK, TEXT, FAINT, STRONG, CURSOR, SERIES = range(6)
"""Inks. Series k (from 0) is drawn in ink SERIES + k; a fill of k + 1 is the tint of series k, 0 is none."""


@dataclass(frozen=True, eq=False)
class Picture:
    """``characters``, ``inks`` and ``fills``, all (height, width)."""

    characters: NDArray[np.str_]
    inks: NDArray[np.int16]
    fills: NDArray[np.int16]

    @property
    def height(self) -> int:
        """Rows."""
        return int(self.characters.shape[0])

    @property
    def width(self) -> int:
        """Cells in a row."""
        return int(self.characters.shape[1])

    def line(self, row: int) -> str:
        """The text of ``row``."""
        return "".join(self.characters[row])

    def runs(self, row: int) -> Iterator[tuple[str, int, int]]:
        """The text of ``row`` in pieces of one ink and one fill. Blanks take a neighbour's ink: none shows."""
        characters, inks, fills = (part[row].tolist() for part in (self.characters, self.inks, self.fills))
        start = 0
        for fill, span in groupby(fills):
            end = start + len(list(span))
            places = iter(characters[start:end])
            for ink, run in groupby(_spread(characters[start:end], inks[start:end])):
                yield "".join(islice(places, len(list(run)))), ink, fill
            start = end

    def changed_rows(self, other: Picture) -> NDArray[np.intp]:
        """The rows in which two pictures of the same size differ."""
        pairs = ((self.characters, other.characters), (self.inks, other.inks), (self.fills, other.fills))
        differ = np.zeros(self.characters.shape, dtype=np.bool_)
        for mine, theirs in pairs:
            differ |= mine != theirs
        return np.flatnonzero(differ.any(axis=1))


def _spread(characters: Sequence[str], inks: Sequence[int]) -> list[int]:
    """``inks`` with every blank in the ink before it, or at the start in the first one; BLANK when there is none."""
    own = [BLANK if character == " " else ink for character, ink in zip(characters, inks, strict=True)]
    carried = next((ink for ink in own if ink not in (BLANK, CURSOR)), BLANK)
    spread = []
    for ink in own:
        carried = carried if ink in (BLANK, CURSOR) else ink
        spread.append(CURSOR if ink == CURSOR else carried)
    return spread


class Draft:
    """A picture under construction; everything outside its edges is dropped."""

    def __init__(self, width: int, height: int, ellipsis: str) -> None:
        self.width, self.height, self.ellipsis = max(width, 0), max(height, 0), ellipsis
        self.characters = np.full((self.height, self.width), " ", dtype="<U1")
        self.inks = np.full((self.height, self.width), BLANK, dtype=np.int16)
        self.fills = np.zeros((self.height, self.width), dtype=np.int16)

    def put(self, row: int, column: int, text: str, ink: int, room: int | None = None) -> None:
        """Write ``text`` from (``row``, ``column``) on, cut to ``room`` cells and to the edge."""
        if not (0 <= row < self.height and 0 <= column < self.width):
            return
        space = self.width - column if room is None else min(room, self.width - column)
        written = cells(cut(printable(text), space, self.ellipsis))
        self.characters[row, column : column + len(written)] = written
        self.inks[row, column : column + len(written)] = ink

    def finish(self) -> Picture:
        """What has been drawn."""
        return Picture(self.characters, self.inks, self.fills)

    @classmethod
    def over(cls, picture: Picture, ellipsis: str) -> Draft:
        """A draft that starts as a copy of ``picture``."""
        draft = cls(picture.width, picture.height, ellipsis)
        draft.characters[:], draft.inks[:], draft.fills[:] = picture.characters, picture.inks, picture.fills
        return draft
