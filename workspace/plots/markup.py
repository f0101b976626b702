"""HTML and SVG put together from elements: text is escaped because it is text, not because somebody thought of it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from ..visible_text import replace_hidden

VOID = frozenset({"meta", "br", "hr", "col"})
Child: TypeAlias = "str | Iterable[Child]"


class Markup(str):
    __slots__ = ()


def text(value: str) -> Markup:
    """Return the text as markup shows it: passed through ``replace_hidden``, escaped."""
    return value if isinstance(value, Markup) else Markup(escape(replace_hidden(value), quote=True))


def joined(children: Iterable[Child]) -> Markup:
    """Children one after another: text is escaped, markup stays, lists are joined."""
    return Markup("".join(text(c) if isinstance(c, str) else joined(c) for c in children))


def element(tag: str, /, *children: Child, **attributes: str | float | None) -> Markup:
    """``<tag attribute="value">children</tag>``; attributes that are None are left out.

    An underscore in an attribute's name is written as a hyphen, and one at its end is dropped (``class_``).
    """
    given = [(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value is not None]
    opening = "".join([tag, *(f' {name}="{text(_written(value))}"' for name, value in given)])
    return Markup(f"<{opening}>" if tag in VOID else f"<{opening}>{joined(children)}</{tag}>")


def _written(value: str | float) -> str:
    if isinstance(value, str):
        return value
    rounded = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if rounded == "-0" else rounded
