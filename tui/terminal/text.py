"""Text for a fixed number of terminal cells.

Names and values come from untrusted files, so unprintable characters (escape sequences, newlines, direction marks) are
replaced.
"""

from __future__ import annotations

import re
from typing import Literal

from rich.cells import cell_len, set_cell_size

from sfumato.workspace.visible_text import replace_unprintable

Align = Literal["left", "right"]
_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff–…›\u2500-\u259f\u2800-\u28ff]*").fullmatch


def is_narrow(text: str) -> bool:
    """Return whether every character certainly takes one cell: western letters, lines, blocks and braille."""
    return (text.isascii() and text.isprintable()) or _NARROW(text) is not None


def cut_text(text: str, width: int, ellipsis: str = "…") -> str:
    """Return ``text`` in at most ``width`` cells; what does not fit is replaced by ``ellipsis`` (one cell)."""
    if width <= 0:
        return ""
    # Measuring cells takes longer than counting characters, and most texts are narrow.
    fits = len(text) <= width if is_narrow(text) else cell_len(text) <= width
    if fits:
        return text
    return (text[: width - 1] if is_narrow(text) else set_cell_size(text, width - 1)) + ellipsis


def fit_text(text: str, width: int, align: Align = "left", ellipsis: str = "…") -> str:
    """Return ``text`` in exactly ``width`` cells, cut or padded."""
    shown = cut_text(text, width, ellipsis)
    if is_narrow(shown):
        return shown.rjust(width) if align == "right" else shown.ljust(width)
    padding = " " * (max(width, 0) - cell_len(shown))
    return padding + shown if align == "right" else shown + padding


def cut_words(text: str, width: int) -> str:
    """Return a text in ``width`` cells, without its last words where it is longer."""
    if cell_len(text) <= width:
        return text
    words = text.split(" ")
    tried = (f"{' '.join(words[:most]).rstrip(',;:')} …" for most in range(len(words) - 1, 0, -1))
    return next((one for one in tried if cell_len(one) <= width), cut_text(text, width))


def text_window(text: str, left: int, width: int) -> str:
    """Return cells ``left`` to ``left + width - 1`` of ``text``, padded; half of a wide character is a blank."""
    if is_narrow(text):
        return text[left : left + width].ljust(width)
    seen = [cell or " " if place == left else cell for place, cell in enumerate(split_cells(text)) if place >= left][
        :width
    ]
    return fit_text(set_cell_size("".join(seen), min(len(seen), width)), width)


def split_cells(text: str) -> list[str]:
    """Return one string for each cell: a wide character is followed by an empty string, a zero-width one is dropped."""
    if text.isascii():
        return list(text)
    found: list[str] = []
    for character in text:
        width = cell_len(character)
        found.extend([character, ""][:width])
    return found


def cell_text(value: object, missing: str = "–") -> str:
    """Return a value of a table as one line of text; None and NaN as ``missing``."""
    if value is None or _is_missing(value):
        return missing
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return replace_unprintable(str(value))


def _is_missing(value: object) -> bool:
    """Return whether ``value`` is NaN, NaT (unequal to itself) or pandas' NA (neither equal nor unequal)."""
    try:
        return bool(value != value)  # noqa: PLR0124
    except TypeError:
        return True
    except ValueError:
        return False
