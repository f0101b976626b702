"""Text on a terminal: width in cells, padding and folding."""

from __future__ import annotations

import re
import unicodedata

_WORDS = re.compile(r"\S*\s*")
_PARTS = re.compile(r"[^._/-]*[._/-]+|[^._/-]+")


def cell_width(text: str) -> int:
    """Return the number of cells of a terminal that a text takes."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    """Return the cells of a character: two for a wide one, none for one that combines with the character before it."""
    # combining marks take no cell of their own
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad_text(text: str, width: int, *, right: bool = False) -> str:
    """Pad a text with blanks to at least ``width`` cells, on its left if ``right``."""
    blanks = " " * (width - cell_width(text))
    return blanks + text if right else text + blanks


def split_at_width(text: str, width: int) -> tuple[str, str]:
    """Return the part of a text that fits into ``width`` cells, at least one character, and the rest."""
    if text.isascii():
        return text[: max(width, 1)], text[max(width, 1) :]
    used = 0
    for place, character in enumerate(text):
        used += _character_width(character)
        # at least one character, or a caller that splits again and again would never end
        if used > width and place > 0:
            return text[:place], text[place:]
    return text, ""


def fold_text(words: str, width: int, indent: str = "") -> list[str]:
    """Fold a text into lines of at most ``width`` cells; lines after the first begin with ``indent``.

    Lines break after a blank, or within a long word after a point, underscore, stroke or hyphen; elsewhere only where
    nothing else fits.
    """
    if cell_width(words) <= width:
        return [words]
    lines, line = [], ""
    for word in _WORDS.findall(words):
        for part in (
            [word]
            if cell_width((line + word).rstrip()) <= width
            else _PARTS.findall(word)
            if cell_width(indent + word) > width
            else [word]
        ):
            if line.strip() and cell_width((line + part).rstrip()) > width:
                lines.append(line.rstrip())
                line = indent
            line += part
            while cell_width(line.rstrip()) > width:
                head, rest = split_at_width(line, max(width, len(indent) + 2))
                lines.append(head)
                line = indent + rest
    return [*lines, line.rstrip()] if line.strip() else lines
