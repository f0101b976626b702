"""Tables read a page at a time: what a grid asks of a source, a source for small tables, a cache of pages, and what to read next.

Threads, if any, are the caller's affair.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Protocol

from sfumato.workspace.reporting.tables import GAP, Column, grid_width
from sfumato.workspace.visible_text import replace_unprintable

from ..terminal.text import fit, shown

PAGE = 500
"""Rows in a page."""
TableRow = tuple[object, ...]
"""A row, one value a column."""


class Pages(Protocol):
    """A table of known length. ``count`` and ``rows`` are called off the event loop, from one thread at a time,
    though not always the same one; rows keep their order between calls.
    """

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, in the order of the values of a row."""
        ...

    def count(self) -> int: ...

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Rows ``offset`` to ``offset + limit - 1``, fewer at the end, one value a column."""
        ...


class ListPages:
    """A source for a table that fits in memory."""

    def __init__(self, columns: Iterable[Column], rows: Iterable[Sequence[object]]) -> None:
        self.columns: tuple[Column, ...] = tuple(columns)
        self._rows = tuple(tuple(row) for row in rows)

    def count(self) -> int:
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
        self._stale.update(self._pages)

    def missing(self, first: int, last: int) -> int | None:
        """The first page that rows ``first`` to ``last`` need and that is not here or stale; None when all are."""
        needed = range(first // PAGE, last // PAGE + 1)
        return next((page for page in needed if page not in self._pages or page in self._stale), None)


@dataclass(frozen=True, eq=False)
class Delivery:
    """A page of ``source``, which has ``count`` rows."""

    source: Pages
    count: int
    page: int
    rows: Sequence[TableRow]


@dataclass(frozen=True, eq=False)
class Order:
    """A request for the page of row ``index``; the source is counted first when ``count`` is None."""

    source: Pages
    index: int
    count: int | None

    def fetch(self) -> Delivery:
        """Read the page, or the last one when the table ends before it. Raises what the source raises."""
        count = self.source.count() if self.count is None else self.count
        page = max(0, min(self.index, count - 1)) // PAGE
        return Delivery(self.source, count, page, self.source.rows(page * PAGE, PAGE) if count else ())


@dataclass(frozen=True)
class Change:
    """What a delivery changed: whether a source ``opened``, whether all is ``afresh``, which ``rows`` differ."""

    opened: bool
    afresh: bool
    rows: Sequence[int]


class Feed:
    """One source is shown while another may be opening; at most one order is out at any time."""

    def __init__(self) -> None:
        self.count = 0
        self._source: Pages | None = None
        self._opening: Order | None = None
        self._cache = PageCache()
        self._waiting = False

    @property
    def source(self) -> Pages | None:
        return self._source

    def offer(self, source: Pages, index: int) -> None:
        """Open ``source`` at row ``index``; what is shown stays until its first page has come."""
        self._opening = Order(source, index, None)

    def row(self, index: int) -> TableRow | None:
        """Row ``index`` if it has been read."""
        return self._cache.row(index)

    def order(self, wanted: Iterable[tuple[int, int]]) -> Order | None:
        """The next page to read so that the rows ``wanted`` (first, last), most urgent first, are here."""
        order = None if self._waiting else self._opening or self._missing(wanted)
        self._waiting = self._waiting or order is not None
        return order

    def take(self, delivery: Delivery, keep: bool) -> Change:
        """Keep what came, unless it is not wanted any more.

        When it opens another source with as many rows as the last, and ``keep``, the rows read before are shown until
        they have been read again.
        """
        self._waiting = False
        opened = self._opening is not None and delivery.source is self._opening.source
        afresh = opened and not (keep and delivery.count == self.count > 0)
        if opened:
            self._source, self._opening, self.count = delivery.source, None, delivery.count
            self._cache = PageCache() if afresh else self._cache
            self._cache.age()
        changed = self._cache.put(delivery.page, delivery.rows) if delivery.source is self._source else ()
        return Change(opened, afresh, changed)

    def fail(self, source: Pages) -> bool:
        """Give ``source`` up; True when it was shown or opening, and nothing is any more."""
        self._waiting = False
        opening = None if self._opening is None else self._opening.source
        if source not in (opening, self._source):
            return False
        self._source = self._opening = None
        self._cache, self.count = PageCache(), 0
        return True

    def _missing(self, wanted: Iterable[tuple[int, int]]) -> Order | None:
        if self._source is None or not self.count:
            return None
        last = self.count - 1
        found = (self._cache.missing(min(max(first, 0), last), min(end, last)) for first, end in wanted)
        page = next((page for page in found if page is not None), None)
        return None if page is None else Order(self._source, page * PAGE, self.count)


@dataclass(frozen=True)
class RowLayout:
    """The columns of a table, and the one-cell ``ellipsis`` that shows where a text was cut."""

    columns: Sequence[Column]
    ellipsis: str = "…"

    @property
    def width(self) -> int:
        return grid_width(self.columns)

    @property
    def starts(self) -> list[int]:
        """The cell, less the leading blank, at which each column starts."""
        return list(accumulate((column.width + GAP for column in self.columns), initial=0))[:-1]

    def header(self) -> str:
        return self._line([replace_unprintable(column.title) for column in self.columns])

    def line(self, row: TableRow) -> str:
        """``row`` in ``width`` cells; columns it has no value for stay empty."""
        missing = "–" if self.ellipsis == "…" else "-"
        return self._line([shown(value, missing) for value in row[: len(self.columns)]])

    def waiting(self) -> str:
        """The line of a row that has not been read yet."""
        return self._line([self.ellipsis])

    def _line(self, texts: Sequence[str]) -> str:
        padded = [*texts, *[""] * (len(self.columns) - len(texts))]
        parts = (fit(text, c.width, c.align, self.ellipsis) for text, c in zip(padded, self.columns, strict=True))
        return f" {(' ' * GAP).join(parts)} "
