"""What a grid has read of its source and what it should read next. Threads, if any, are the caller's affair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .pages import PAGE, PageCache, Pages, TableRow


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
        """The source that is shown."""
        return self._source

    def offer(self, source: Pages, index: int) -> None:
        """Open ``source`` at row ``index``; what is shown stays until its first page has come."""
        self._opening = Order(source, index, None)

    def row(self, index: int) -> TableRow | None:
        """TableRow ``index`` if it has been read."""
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
