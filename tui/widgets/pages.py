"""Tables read a page at a time: what a grid asks of a source, a source for small tables, and a cache of pages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

from .text import Align

PAGE = 500
"""Rows in a page."""
TableRow = tuple[object, ...]
"""A row, one value a column."""


class ColumnLike(Protocol):
    """A column as a grid shows it: ``width`` in cells, ``align`` left or right."""

    @property
    def name(self) -> str:
        """What the table calls it."""
        ...

    @property
    def title(self) -> str:
        """What the header calls it."""
        ...

    @property
    def width(self) -> int:
        """TableRow."""
        ...

    @property
    def align(self) -> Align:
        """The side on which values line up."""
        ...


@dataclass(frozen=True)
class Column:
    """A column as a grid shows it: ``width`` in cells; numbers read best to the ``right``."""

    name: str
    title: str
    width: int
    align: Align = "left"


class Pages(Protocol):
    """A table of known length. ``count`` and ``rows`` are called off the event loop, from one thread at a time,
    though not always the same one; rows keep their order between calls.
    """

    @property
    def columns(self) -> Sequence[ColumnLike]:
        """The columns, in the order of the values of a row."""
        ...

    def count(self) -> int:
        """How many rows there are."""
        ...

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Rows ``offset`` to ``offset + limit - 1``, fewer at the end, one value a column."""
        ...


class ListPages:
    """A source for a table that fits in memory."""

    def __init__(self, columns: Iterable[ColumnLike], rows: Iterable[Sequence[object]]) -> None:
        self.columns: tuple[ColumnLike, ...] = tuple(columns)
        self._rows = tuple(tuple(row) for row in rows)

    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Rows ``offset`` to ``offset + limit - 1``."""
        return self._rows[offset : offset + limit]


class PageCache:
    """The pages read last, at most ``most`` of them. Those that went stale are shown until they are read again."""

    def __init__(self, most: int = 20) -> None:
        self._most = most
        self._pages: OrderedDict[int, Sequence[TableRow]] = OrderedDict()
        self._stale: set[int] = set()

    def row(self, index: int) -> TableRow | None:
        """TableRow ``index`` of the table; None where its page is not here, or ends before it."""
        rows = self._pages.get(index // PAGE)
        if rows is None:
            return None
        self._pages.move_to_end(index // PAGE)
        place = index % PAGE
        return rows[place] if place < len(rows) else None

    def put(self, page: int, rows: Sequence[TableRow]) -> list[int]:
        """Keep the ``rows`` of ``page``, forgetting what was not used for longest; the table's rows that changed."""
        old = self._pages.get(page, ())
        self._pages[page] = rows
        self._pages.move_to_end(page)
        self._stale.discard(page)
        while len(self._pages) > self._most:
            self._stale.discard(self._pages.popitem(last=False)[0])
        pairs = zip_longest(old, rows)
        return [page * PAGE + place for place, (before, after) in enumerate(pairs) if before != after]

    def age(self) -> None:
        """Make every page stale."""
        self._stale.update(self._pages)

    def missing(self, first: int, last: int) -> int | None:
        """The first page that rows ``first`` to ``last`` need and that is not here or stale; None when all are."""
        needed = range(first // PAGE, last // PAGE + 1)
        return next((page for page in needed if page not in self._pages or page in self._stale), None)
