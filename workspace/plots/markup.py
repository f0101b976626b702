"""HTML and SVG built from elements: text is always escaped, markup never."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from ..visible_text import replace_hidden

VOID_TAGS = frozenset({"meta", "br", "hr", "col"})
MarkupChild: TypeAlias = "str | Iterable[MarkupChild]"


class Markup(str):
    __slots__ = ()


def escape_text(value: str) -> Markup:
    """Return the text as markup shows it: passed through ``replace_hidden``, escaped."""
    return value if isinstance(value, Markup) else Markup(escape(replace_hidden(value), quote=True))


def join_markup(children: Iterable[MarkupChild]) -> Markup:
    """Join children one after another: text is escaped, markup stays, lists are joined."""
    return Markup("".join(escape_text(c) if isinstance(c, str) else join_markup(c) for c in children))


def element(tag: str, /, *children: MarkupChild, **attributes: str | float | None) -> Markup:
    """Return ``<tag attribute="value">children</tag>``; attributes that are None are left out.

    An underscore in an attribute's name is written as a hyphen, and one at its end is dropped (``class_``).
    """
    given = [(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value is not None]
    opening = "".join([tag, *(f' {name}="{escape_text(_attribute_text(value))}"' for name, value in given)])
    return Markup(f"<{opening}>" if tag in VOID_TAGS else f"<{opening}>{join_markup(children)}</{tag}>")


def _attribute_text(value: str | float) -> str:
    if isinstance(value, str):
        return value
    rounded = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if rounded == "-0" else rounded
