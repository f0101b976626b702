"""A grid of a small table that changes while it is looked at."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from textual import on

from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.pages import ColumnLike, ListPages


class LiveGrid(Grid):
    """Rows have keys: the cursor stays with its row when others come and go."""

    _keys: tuple[Hashable, ...] = ()
    _followed: Hashable | None = None

    @property
    def key(self) -> Hashable | None:
        """The key of the row under the cursor; None when there is none."""
        row = self.row(self.cursor)
        return None if row is None else row[-1]

    @property
    def place(self) -> str:
        """The key of the row under the cursor."""
        return "" if self.key is None else str(self.key)

    def set_empty(self, text: str) -> None:
        """What stands in place of rows when there are none, from the next table on."""
        self._empty = text

    def show(
        self,
        columns: Sequence[ColumnLike],
        rows: Sequence[Sequence[object]],
        keys: Sequence[Hashable],
        want: Hashable | None = None,
    ) -> None:
        """Show ``rows`` with a key each; the cursor goes to ``want``, or stays with its row."""
        self._keys = tuple(keys)
        if keys and self._returning:
            want = next((key for key in keys if str(key) == self._returning), want)
            self._returning = ""
        self._followed = self._followed if want is None else want
        keyed = [(*row, key) for row, key in zip(rows, keys, strict=True)]
        self.set_source(ListPages(columns, keyed), keep_cursor=True)

    def watch_cursor(self, old: int, new: int) -> None:
        """Follow the row that the cursor came to."""
        super().watch_cursor(old, new)
        self._followed = self.key

    @on(Grid.Opened)
    def _follow(self) -> None:
        if self._followed in self._keys:
            self.cursor = self._keys.index(self._followed)
        self._followed = self.key
