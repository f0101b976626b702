"""Grid whose rows can be marked, and filtered by words."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType

from sfumato.tui.keys.acts import bind_act
from sfumato.workspace.reporting.tables import DisplayColumn

from .grid import HEADER, Grid, LiveGrid
from .pages import TableRow
from .sifting import matches_words

MARK = "*"
"""Sign of a marked row, in the first cell of its line, which is blank otherwise."""


class MarkedGrid(LiveGrid):
    """Grid in which space marks a row and moves to the next. Rows hidden by a filter keep their marks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("mark", "mark"),
        bind_act("mark_all", "mark_all", "Mark all that are shown, or none"),
    ]  # fmt: skip

    @dataclass
    class MarksChanged(Grid.GridMessage):
        """Message that the set of marked rows has changed."""

    _marked: tuple[Hashable, ...] = ()
    _columns: Sequence[DisplayColumn] = ()
    _rows: Sequence[Sequence[object]] = ()
    _all: tuple[Hashable, ...] = ()
    _fields: Sequence[Mapping[str, object]] = ()
    _words = ""
    _unsifted: str | None = None

    @property
    def marked_keys(self) -> tuple[Hashable, ...]:
        """Return the keys of the marked rows, shown or hidden, in the order of marking."""
        return self._marked

    @property
    def hidden_marks(self) -> int:
        """Return the number of marked rows that the filter hides."""
        return len(set(self._marked) - set(self._keys))

    @property
    def chosen_keys(self) -> tuple[Hashable, ...]:
        """Return the keys that an act applies to: those of marked rows, otherwise that of the row under the cursor."""
        return self._marked or (() if self.row_key is None else (self.row_key,))

    @property
    def filter_words(self) -> str:
        """Return the words that rows must contain to be shown."""
        return self._words

    def _fill_grid(self, columns: Sequence[DisplayColumn], rows: Sequence[TableRow], want: Hashable | None) -> None:
        """Show the finished rows that contain the filter's words."""
        fields = [self._declared.filter_fields(row) for row in self.table_rows]
        self.show_filtered_rows(columns, rows, list(self._declared_rows), fields, want)

    def show_filtered_rows(
        self,
        columns: Sequence[DisplayColumn],
        rows: Sequence[Sequence[object]],
        keys: Sequence[Hashable],
        fields: Sequence[Mapping[str, object]],
        want: Hashable | None = None,
    ) -> None:
        """Show the ``rows`` whose ``fields`` (by title) contain the words; marks of keys that are gone are removed."""
        self._columns, self._rows, self._all, self._fields = columns, rows, tuple(keys), fields
        known = set(keys)
        # A deleted run must not stay marked, or the next act would fail on it.
        if any(key not in known for key in self._marked):
            self.set_marks(tuple(key for key in self._marked if key in known))
        self._show_rows(want)

    def filter_by(self, words: str) -> None:
        """Show the rows that contain these words."""
        if words != self._words:
            self._words = words
            self._show_rows(None)

    def set_empty_text(self, text: str) -> None:
        """Set the text in place of the rows of an empty list."""
        self._unsifted = text

    def _show_rows(self, want: Hashable | None) -> None:
        """Show the rows that contain the words."""
        if self._unsifted is None:
            self._unsifted = self._empty
        shown = [
            place for place, fields in enumerate(self._fields) if not self._words or matches_words(fields, self._words)
        ]
        # An empty list and a filter without matches need different texts.
        super().set_empty_text(
            f'Nothing here has "{self._words}". Press / for other words.' if self._all else self._unsifted
        )
        self.show_keyed_rows(self._columns, [self._rows[i] for i in shown], [self._all[i] for i in shown], want)

    def action_mark(self) -> None:
        """Mark the row under the cursor, or remove its mark, and move to the next."""
        if self.row_key is None:
            return
        others = tuple(key for key in self._marked if key != self.row_key)
        self.set_marks(others if self.row_key in self._marked else (*others, self.row_key))
        self.cursor += 1

    def action_mark_all(self) -> None:
        """Mark all rows that are shown; if they are marked, remove the marks."""
        bare = tuple(key for key in self._keys if key not in set(self._marked))
        shown = set(self._keys)
        self.set_marks((*self._marked, *bare) if bare else tuple(key for key in self._marked if key not in shown))

    def set_marks(self, keys: tuple[Hashable, ...]) -> None:
        """Set the marked rows, and repaint those whose mark has changed."""
        changed = set(keys) ^ set(self._marked)
        self._marked = keys
        self._repaint_rows(place for place, key in enumerate(self._keys) if key in changed)
        if changed:
            self.post_message(self.MarksChanged(self))

    def _line_text(self, y: int) -> tuple[str, str]:
        """Return the text of a line, with the sign of a marked row."""
        text, part = super()._line_text(y)
        row = self.row_at(y - HEADER + self.scroll_offset.y) if y >= HEADER else None
        return (f"{MARK}{text[1:]}", part) if row is not None and row[-1] in self._marked else (text, part)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable marking in a table without rows."""
        return self.row_count > 0 if action in ("mark", "mark_all") else super().check_action(action, parameters)
