"""Text for a fixed number of terminal cells. Names and values come from untrusted files, so nothing unprintable
(escape sequences, newlines, direction marks) passes.
"""

from __future__ import annotations

from typing import Literal

from rich.cells import cell_len, set_cell_size

Align = Literal["left", "right"]


def printable(text: str) -> str:
    """``text`` with white space as spaces and every other unprintable character as ``?``."""
    if text.isprintable():
        return text
    return "".join(" " if c.isspace() else c if c.isprintable() else "?" for c in text)


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    """``text`` in at most ``width`` cells; what does not fit gives way to ``ellipsis`` (one cell)."""
    if width <= 0:
        return ""
    fits = len(text) <= width if text.isascii() else cell_len(text) <= width
    return text if fits else set_cell_size(text, width - 1) + ellipsis


def fit(text: str, width: int, align: Align = "left", ellipsis: str = "…") -> str:
    """``text`` in exactly ``width`` cells, cut or padded."""
    shown = cut(text, width, ellipsis)
    if shown.isascii():
        return shown.rjust(width) if align == "right" else shown.ljust(width)
    padding = " " * (max(width, 0) - cell_len(shown))
    return padding + shown if align == "right" else shown + padding


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
    return printable(str(value))


def _is_missing(value: object) -> bool:
    """Whether ``value`` is NaN, NaT (unequal to itself) or pandas' NA (neither equal nor unequal)."""
    try:
        return bool(value != value)  # noqa: PLR0124
    except TypeError:
        return True
    except ValueError:
        return False
