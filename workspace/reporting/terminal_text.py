"""Text on a terminal: its width in cells, padding and folding."""

from __future__ import annotations

import re
import unicodedata

_WORDS = re.compile(r"\S*\s*")
_PARTS = re.compile(r"[^._/-]*[._/-]+|[^._/-]+")


def cell_width(text: str) -> int:
    """Return how many cells of a terminal ``text`` takes: two for a wide character, none for one that joins the
    character before it.
    """
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad_text(text: str, width: int, *, right: bool = False) -> str:
    """Pad ``text`` to at least ``width`` cells with blanks after it, or before it if ``right``."""
    blanks = " " * (width - cell_width(text))
    return blanks + text if right else text + blanks


def split_at_width(text: str, width: int) -> tuple[str, str]:
    """Return the part of ``text`` that fits into ``width`` cells, at least one character, and the rest."""
    if text.isascii():
        return text[: max(width, 1)], text[max(width, 1) :]
    used = 0
    for place, character in enumerate(text):
        used += _character_width(character)
        if used > width and place > 0:
            return text[:place], text[place:]
    return text, ""


def fold_text(words: str, width: int, indent: str = "") -> list[str]:
    """Fold ``words`` into lines of at most ``width`` cells; lines after the first begin with ``indent``.

    Lines break behind a blank, else behind a point, underscore or stroke; only a part that is longer than a line is
    broken inside.
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
