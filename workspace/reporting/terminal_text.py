"""Text on a terminal: how many cells it takes, and how it is padded and folded by them."""

from __future__ import annotations

import re
import unicodedata

_WORDS = re.compile(r"\S*\s*")
_PARTS = re.compile(r"[^._/-]*[._/-]+|[^._/-]+")


def cell_width(text: str) -> int:
    """How many cells of a terminal ``text`` takes: two for a wide character, none for one that joins the character before it."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, width: int, *, right: bool = False) -> str:
    """``text`` in at least ``width`` cells, blanks after it, or before it where it is set flush ``right``."""
    blanks = " " * (width - cell_width(text))
    return blanks + text if right else text + blanks


def split_at(text: str, width: int) -> tuple[str, str]:
    """What of ``text`` fits into ``width`` cells, at least one character, and the rest."""
    if text.isascii():
        return text[: max(width, 1)], text[max(width, 1) :]
    used = 0
    for place, character in enumerate(text):
        used += _width(character)
        if used > width and place > 0:
            return text[:place], text[place:]
    return text, ""


def folded(words: str, width: int, indent: str = "") -> list[str]:
    """``words`` in lines of at most ``width`` cells, broken behind a blank, else behind a point, underscore or stroke, and only a part that
    is longer than a line inside it. Lines after the first begin with ``indent``.
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
                head, rest = split_at(line, max(width, len(indent) + 2))
                lines.append(head)
                line = indent + rest
    return [*lines, line.rstrip()] if line.strip() else lines
