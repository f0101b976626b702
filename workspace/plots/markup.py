"""HTML and SVG made from elements: text is always escaped, markup never."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from ..visible_text import replace_hidden

VOID_TAGS = frozenset({"meta", "br", "hr", "col"})
MarkupChild: TypeAlias = "str | Iterable[MarkupChild]"


class Markup(str):
    """Text that is markup and is not escaped again."""

    __slots__ = ()


def escape_text(value: str) -> Markup:
    """Return text as markup: hidden characters are replaced and special ones escaped; markup stays unchanged."""
    # hidden characters could make a name from an untrusted file read as something else
    return value if isinstance(value, Markup) else Markup(escape(replace_hidden(value), quote=True))


def join_markup(children: Iterable[MarkupChild]) -> Markup:
    """Return children joined as markup: text is escaped, markup stays, lists are joined."""
    return Markup("".join(escape_text(c) if isinstance(c, str) else join_markup(c) for c in children))


def element(tag: str, /, *children: MarkupChild, **attributes: str | float | None) -> Markup:
    """Return an element of HTML or SVG: ``<tag attribute="value">children</tag>``.

    Attributes that are None are left out. An underscore in an attribute's name is written as a hyphen; one at its end
    is dropped (``class_``).
    """
    given = [(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value is not None]
    opening = "".join([tag, *(f' {name}="{escape_text(_attribute_text(value))}"' for name, value in given)])
    return Markup(f"<{opening}>" if tag in VOID_TAGS else f"<{opening}>{join_markup(children)}</{tag}>")


def _attribute_text(value: str | float) -> str:
    """Return the value of an attribute as text; numbers have at most two decimals."""
    if isinstance(value, str):
        return value
    rounded = f"{value:.2f}".rstrip("0").rstrip(".")
    # equal figures must have equal bytes, and -0.001 differs from 0 by rounding alone
    return "0" if rounded == "-0" else rounded
