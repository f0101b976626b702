"""What sections of a report are made of: headings, tables, lists, and words for parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..plots.markup import Child, Markup, element, joined
from .numbers import number

__all__ = ["Section", "definitions", "interval", "section", "settings", "table"]


@dataclass(frozen=True)
class Section:
    """A part of the report under a heading, which the list of contents links to."""

    title: str
    children: tuple[Child, ...]

    @property
    def ident(self) -> str:
        """What links call it."""
        return re.sub("[^a-z0-9]+", "-", self.title.lower()).strip("-") or "section"

    @property
    def markup(self) -> Markup:
        """The heading and what stands below it."""
        return element("section", element("h2", self.title), *self.children, id=self.ident)


def section(title: str, *children: Child) -> Section:
    """Children under a heading."""
    return Section(title, children)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[int] = ()) -> Markup:
    """Rows under their heads; columns that are empty throughout are left out, ``numeric`` ones are set flush right."""
    lines, flush = [list(row) for row in rows], set(numeric)
    kept = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    head = element("tr", [element("th", heads[i], scope="col", class_=_class(i, flush)) for i in kept])
    body = [element("tr", _cells(line, kept, flush)) for line in lines]
    return element(
        "table", element("caption", caption) if caption else "", element("thead", head), element("tbody", body)
    )


def _cells(line: Sequence[str], kept: Sequence[int], flush: set[int]) -> list[Markup]:
    """The first cell of a row says what the others speak of."""
    return [
        element("th", line[i], scope="row") if i == kept[0] else element("td", line[i], class_=_class(i, flush))
        for i in kept
    ]


def _class(column: int, flush: set[int]) -> str | None:
    return "number" if column in flush else None


def definitions(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Terms and what there is to say of them; those without anything are left out."""
    return element(
        "dl", [joined([element("dt", term), element("dd", content)]) for term, content in pairs if content != ""]
    )


def interval(lower: float | None, upper: float | None) -> str:
    """``0.011 to 0.015``; empty without one."""
    return "" if lower is None or upper is None else f"{number(lower)} to {number(upper)}"


def settings(params: Mapping[str, Any], apart: Mapping[str, Any] | None = None) -> str:
    """Parameters in words: ``radius: availability_365 5, price 5%; q 0.9``.

    ``apart`` are the settings in which uses of the method differ, with the defaults of those that do not say them.
    """
    told = {**(apart or {}), **params}
    return "; ".join(_setting(key, value) for key, value in told.items() if value not in ("", [], {}, None))


def _setting(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        return f"{key}: " + ", ".join(f"{name} {_plain(item)}" for name, item in value.items())
    return f"{key}: {_plain(value)}" if isinstance(value, (list, tuple)) else f"{key} {_plain(value)}"


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
