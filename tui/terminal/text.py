"""Text for a fixed number of terminal cells. Names and values come from untrusted files, so nothing unprintable
(escape sequences, newlines, direction marks) passes.
"""

from __future__ import annotations

import re
from typing import Literal

from rich.cells import cell_len, set_cell_size

from sfumato.workspace.visible_text import replace_unprintable

Align = Literal["left", "right"]
_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff–…›\u2500-\u259f\u2800-\u28ff]*").fullmatch


def narrow(text: str) -> bool:
    """Whether every character is one that is known to take one cell: letters of the west, lines, blocks and braille."""
    return text.isascii() or _NARROW(text) is not None


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    """``text`` in at most ``width`` cells; what does not fit gives way to ``ellipsis`` (one cell)."""
    if width <= 0:
        return ""
    fits = len(text) <= width if narrow(text) else cell_len(text) <= width
    if fits:
        return text
    return (text[: width - 1] if narrow(text) else set_cell_size(text, width - 1)) + ellipsis


def fit(text: str, width: int, align: Align = "left", ellipsis: str = "…") -> str:
    """``text`` in exactly ``width`` cells, cut or padded."""
    shown = cut(text, width, ellipsis)
    if narrow(shown):
        return shown.rjust(width) if align == "right" else shown.ljust(width)
    padding = " " * (max(width, 0) - cell_len(shown))
    return padding + shown if align == "right" else shown + padding


def window(text: str, left: int, width: int) -> str:
    """Cells ``left`` to ``left + width - 1`` of ``text``, padded; half of a wide character is a blank."""
    if narrow(text):
        return text[left : left + width].ljust(width)
    seen = [cell or " " if place == left else cell for place, cell in enumerate(cells(text)) if place >= left][:width]
    return fit(set_cell_size("".join(seen), min(len(seen), width)), width)


def cells(text: str) -> list[str]:
    """One string a cell: a wide character is followed by an empty string, a zero-width one is dropped."""
    if text.isascii():
        return list(text)
    found: list[str] = []
    for character in text:
        width = cell_len(character)
        found.extend([character, ""][:width])
    return found


def shown(value: object, missing: str = "–") -> str:
    """A value of a table as one line of text; None and not-a-number as ``missing``."""
    if value is None or _is_missing(value):
        return missing
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return replace_unprintable(str(value))


def _is_missing(value: object) -> bool:
    """Whether ``value`` is NaN, NaT (unequal to itself) or pandas' NA (neither equal nor unequal)."""
    try:
        return bool(value != value)  # noqa: PLR0124
    except TypeError:
        return True
    except ValueError:
        return False
