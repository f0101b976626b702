"""A grid whose rows can be marked, and sifted by words."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType

from sfumato.tui.keys.acts import bind
from sfumato.workspace.reporting.tables import Column

from .grid import HEADER, Grid, LiveGrid
from .pages import TableRow
from .sifting import has_words

MARK = "*"
"""It stands in the first cell of a line, which is blank otherwise."""


class MarkedGrid(LiveGrid):
    """Space marks a row and goes on to the next. Rows that the words leave out keep their marks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("mark", "mark"),
        bind("mark_all", "mark_all", "Mark all that are shown, or none"),
    ]  # fmt: skip

    @dataclass
    class Marked(Grid.Event):
        pass

    _marked: tuple[Hashable, ...] = ()
    _columns: Sequence[Column] = ()
    _rows: Sequence[Sequence[object]] = ()
    _all: tuple[Hashable, ...] = ()
    _fields: Sequence[Mapping[str, object]] = ()
    _words = ""
    _unsifted: str | None = None

    @property
    def marked(self) -> tuple[Hashable, ...]:
        """The keys of the marked rows, shown or not, the one marked last at the end."""
        return self._marked

    @property
    def hidden_marks(self) -> int:
        """How many marked rows the words leave out."""
        return len(set(self._marked) - set(self._keys))

    @property
    def chosen(self) -> tuple[Hashable, ...]:
        """The keys that an act is for: the marked ones, else that of the row under the cursor."""
        return self._marked or (() if self.key is None else (self.key,))

    @property
    def words(self) -> str:
        """The words that rows must have to be shown."""
        return self._words

    def _fill(self, columns: Sequence[Column], rows: Sequence[TableRow], want: Hashable | None) -> None:
        fields = [self._declared.found_by(row) for row in self.rows]
        self.show_sifted(columns, rows, list(self._declared_rows), fields, want)

    def show_sifted(
        self,
        columns: Sequence[Column],
        rows: Sequence[Sequence[object]],
        keys: Sequence[Hashable],
        fields: Sequence[Mapping[str, object]],
        want: Hashable | None = None,
    ) -> None:
        """Show those of ``rows`` whose ``fields`` (by title) have the words; marks of keys that are gone go too."""
        self._columns, self._rows, self._all, self._fields = columns, rows, tuple(keys), fields
        known = set(keys)
        if any(key not in known for key in self._marked):
            self.set_marks(tuple(key for key in self._marked if key in known))
        self._show_rows(want)

    def sift(self, words: str) -> None:
        """Show the rows that have these words."""
        if words != self._words:
            self._words = words
            self._show_rows(None)

    def set_empty(self, text: str) -> None:
        """What stands in place of rows when there are none at all."""
        self._unsifted = text

    def _show_rows(self, want: Hashable | None) -> None:
        if self._unsifted is None:
            self._unsifted = self._empty
        shown = [
            place for place, fields in enumerate(self._fields) if not self._words or has_words(fields, self._words)
        ]
        super().set_empty(
            f'Nothing here has "{self._words}". Press / for other words.' if self._all else self._unsifted
        )
        self.show(self._columns, [self._rows[i] for i in shown], [self._all[i] for i in shown], want)

    def action_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away, and go on to the next."""
        if self.key is None:
            return
        others = tuple(key for key in self._marked if key != self.key)
        self.set_marks(others if self.key in self._marked else (*others, self.key))
        self.cursor += 1

    def action_mark_all(self) -> None:
        """Mark all rows that are shown; where they are, take the marks away."""
        bare = tuple(key for key in self._keys if key not in set(self._marked))
        shown = set(self._keys)
        self.set_marks((*self._marked, *bare) if bare else tuple(key for key in self._marked if key not in shown))

    def set_marks(self, keys: tuple[Hashable, ...]) -> None:
        changed = set(keys) ^ set(self._marked)
        self._marked = keys
        self._repaint(place for place, key in enumerate(self._keys) if key in changed)
        if changed:
            self.post_message(self.Marked(self))

    def _line(self, y: int) -> tuple[str, str]:
        text, part = super()._line(y)
        row = self.row(y - HEADER + self.scroll_offset.y) if y >= HEADER else None
        return (f"{MARK}{text[1:]}", part) if row is not None and row[-1] in self._marked else (text, part)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing can be marked in a table without rows."""
        return self.count > 0 if action in ("mark", "mark_all") else super().check_action(action, parameters)
