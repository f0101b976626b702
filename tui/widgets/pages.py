"""Tables read a page at a time: the source of a grid, a cache of pages, and the choice of the next page.

Starting threads is left to the caller.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Protocol

from rich.cells import cell_len

from sfumato.workspace.reporting.tables import COLUMN_GAP, DisplayColumn, grid_width
from sfumato.workspace.visible_text import replace_unprintable

from ..terminal.text import cell_text, fit_text

PAGE = 500
"""Number of rows in a page."""
MINOR_INDENT = 4
"""Cells before a heading below another, where the text of a table begins whose first column has a sign."""
TableRow = tuple[object, ...]
"""Values of a row, one for each column."""


@dataclass(frozen=True, slots=True)
class RowHeading:
    """Only cell of a row that is a heading across all columns; the cursor passes it.

    text: the heading
    is_minor: whether it stands below another heading
    """

    text: str
    is_minor: bool = False


class PageSource(Protocol):
    """Table of known length that is read a page at a time.

    ``count`` and ``rows`` are called off the event loop, from one thread at a time, though not always the same one;
    rows keep their order between calls.
    """

    @property
    def columns(self) -> Sequence[DisplayColumn]:
        """Return the columns, in the order of the values of a row."""
        ...

    def count(self) -> int: ...

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Return rows ``offset`` to ``offset + limit - 1``, fewer at the end, one value a column."""
        ...


class ListPages:
    """Source for a table that fits in memory."""

    def __init__(self, columns: Iterable[DisplayColumn], rows: Iterable[Sequence[object]]) -> None:
        """Create the source from columns and rows."""
        self.columns: tuple[DisplayColumn, ...] = tuple(columns)
        self._rows = tuple(tuple(row) for row in rows)

    def count(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Return rows ``offset`` to ``offset + limit - 1``."""
        return self._rows[offset : offset + limit]


class PageCache:
    """Cache of the ``most`` pages used last. Outdated pages are shown until they are read again."""

    def __init__(self, most: int = 20) -> None:
        """Create an empty cache."""
        self._most = most
        self._pages: OrderedDict[int, Sequence[TableRow]] = OrderedDict()
        self._stale: set[int] = set()

    def row_at(self, index: int) -> TableRow | None:
        """Return row ``index`` of the table; None if its page is not here, or ends before it."""
        rows = self._pages.get(index // PAGE)
        if rows is None:
            return None
        self._pages.move_to_end(index // PAGE)
        place = index % PAGE
        return rows[place] if place < len(rows) else None

    def put_page(self, page: int, rows: Sequence[TableRow]) -> list[int]:
        """Store the ``rows`` of ``page``, dropping the least recently used; return the numbers of the table's rows that
        changed.
        """
        old = self._pages.get(page, ())
        self._pages[page] = rows
        self._pages.move_to_end(page)
        self._stale.discard(page)
        while len(self._pages) > self._most:
            self._stale.discard(self._pages.popitem(last=False)[0])
        pairs = zip_longest(old, rows)
        return [page * PAGE + place for place, (before, after) in enumerate(pairs) if before != after]

    def mark_outdated(self) -> None:
        self._stale.update(self._pages)

    def missing_page(self, first: int, last: int) -> int | None:
        """Return the first page that rows ``first`` to ``last`` need and that is missing or outdated; None if all are
        current.
        """
        needed = range(first // PAGE, last // PAGE + 1)
        return next((page for page in needed if page not in self._pages or page in self._stale), None)


@dataclass(frozen=True, eq=False)
class PageDelivery:
    """Page that was read from a source.

    source: the source
    count: its number of rows
    page: number of the page
    rows: rows of the page
    """

    source: PageSource
    count: int
    page: int
    rows: Sequence[TableRow]


@dataclass(frozen=True, eq=False)
class PageRequest:
    """Request for the page of a row.

    source: the source
    index: row
    count: number of rows of the source; None to count them first
    """

    source: PageSource
    index: int
    count: int | None

    def fetch_page(self) -> PageDelivery:
        """Read the page, or the last one if the table ends before it. Raises what the source raises."""
        count = self.source.count() if self.count is None else self.count
        # The table may have become shorter than the row that was asked for.
        page = max(0, min(self.index, count - 1)) // PAGE
        return PageDelivery(self.source, count, page, self.source.rows(page * PAGE, PAGE) if count else ())


@dataclass(frozen=True)
class DeliveryChange:
    """Changes that a delivered page made.

    opened: whether another source is shown now
    all_changed: whether everything must be repainted
    changed_rows: rows that differ
    """

    opened: bool
    all_changed: bool
    changed_rows: Sequence[int]


class PageFeed:
    """Pages of the shown source, while another source may be opening; at most one request is under way at any time."""

    def __init__(self) -> None:
        """Create a feed without a source."""
        self.count = 0
        self._source: PageSource | None = None
        self._opening: PageRequest | None = None
        self._cache = PageCache()
        self._waiting = False

    @property
    def source(self) -> PageSource | None:
        """Return the shown source; None before the first."""
        return self._source

    def open_source(self, source: PageSource, index: int) -> None:
        """Open ``source`` at row ``index``; the old one is shown until the first page of the new one has been read."""
        self._opening = PageRequest(source, index, None)

    def row_at(self, index: int) -> TableRow | None:
        """Return row ``index`` if it has been read."""
        return self._cache.row_at(index)

    def next_request(self, wanted: Iterable[tuple[int, int]]) -> PageRequest | None:
        """Return the request for the next page that the rows ``wanted`` (first, last) need, most urgent first.

        Return None if no page is needed or one is being read.
        """
        order = None if self._waiting else self._opening or self._missing_request(wanted)
        self._waiting = self._waiting or order is not None
        return order

    def store_page(self, delivery: PageDelivery, keep: bool) -> DeliveryChange:
        """Store a delivered page, unless its source is no longer wanted, and return what changed.

        If it opens another source with as many rows as the last, and ``keep``, the rows read before are shown until
        they have been read again.
        """
        self._waiting = False
        opened = self._opening is not None and delivery.source is self._opening.source
        afresh = opened and not (keep and delivery.count == self.count > 0)
        if opened:
            self._source, self._opening, self.count = delivery.source, None, delivery.count
            self._cache = PageCache() if afresh else self._cache
            self._cache.mark_outdated()
        changed = self._cache.put_page(delivery.page, delivery.rows) if delivery.source is self._source else ()
        return DeliveryChange(opened, afresh, changed)

    def give_up(self, source: PageSource) -> bool:
        """Stop using ``source`` after an error; return True if it was shown or opening, so that nothing is shown any
        more.
        """
        self._waiting = False
        opening = None if self._opening is None else self._opening.source
        if source not in (opening, self._source):
            return False
        self._source = self._opening = None
        self._cache, self.count = PageCache(), 0
        return True

    def _missing_request(self, wanted: Iterable[tuple[int, int]]) -> PageRequest | None:
        """Return the request for the first missing page; None if all rows are read."""
        if self._source is None or not self.count:
            return None
        last = self.count - 1
        found = (self._cache.missing_page(min(max(first, 0), last), min(end, last)) for first, end in wanted)
        page = next((page for page in found if page is not None), None)
        return None if page is None else PageRequest(self._source, page * PAGE, self.count)


@dataclass(frozen=True)
class RowLayout:
    """Columns of a table, with the one-cell ``ellipsis`` that shows where a text was cut."""

    columns: Sequence[DisplayColumn]
    ellipsis: str = "…"

    @property
    def width(self) -> int:
        """Return the width of the table in cells."""
        return grid_width(self.columns)

    @property
    def column_starts(self) -> list[int]:
        """Return the first cell of each column, not counting the leading blank."""
        return list(accumulate((column.width + COLUMN_GAP for column in self.columns), initial=0))[:-1]

    def header_line(self) -> str:
        """Return the line with the columns' titles."""
        return self._pad_texts([replace_unprintable(column.title) for column in self.columns])

    def row_line(self, row: TableRow) -> str:
        """Return the line of ``row``, ``width`` cells wide; columns without a value stay empty."""
        if row and isinstance(row[0], RowHeading):
            lead = MINOR_INDENT if row[0].is_minor else 1
            return fit_text(f"{' ' * lead}{replace_unprintable(row[0].text)}", self.width, ellipsis=self.ellipsis)
        missing = "–" if self.ellipsis == "…" else "-"
        return self._pad_texts([cell_text(value, missing) for value in row[: len(self.columns)]])

    def unread_line(self) -> str:
        """Return the line of a row that has not been read yet."""
        return self._pad_texts([self.ellipsis])

    def _pad_texts(self, texts: Sequence[str]) -> str:
        """Return texts as a line, padded or cut to the columns."""
        padded = [*texts, *[""] * (len(self.columns) - len(texts))]
        parts: list[str] = []
        rest = list(zip(padded, self.columns, strict=True))
        while rest:
            (text, column), *rest = rest
            width = column.width
            while column.spills and cell_len(text) > width and rest and not rest[0][0]:
                width += COLUMN_GAP + rest.pop(0)[1].width
            parts.append(fit_text(text, width, column.align, self.ellipsis))
        return f" {(' ' * COLUMN_GAP).join(parts)} "
