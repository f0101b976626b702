"""Screens around a table: they declare its columns, what is said of a row, what enter does, and what is exported.

The grid lays the columns out, again when the room changes, with the cursor on its row; this leads from the cursor to rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from ..session.export import Exportable
from ..widgets.grid import Grid, LiveGrid
from ..widgets.lines import KeyLine, Line
from ..widgets.panel import Edge, Sides
from ..widgets.tables import Row, Table
from .page import Dialog, ScreenResult, grid_exportable
from .split import DetailQuery, Split

if TYPE_CHECKING:
    _Mixed = Widget
else:

    class _Mixed:
        """Textual takes styles from the first base that is a widget: this one has none to give."""


class TableScreen(_Mixed, Generic[Row]):
    """What has one table. The identifiers of its lines begin with ``called``; what the grid shows is exported where ``exports`` names it."""

    called: ClassVar[str] = ""
    exports: ClassVar[str] = ""

    @property
    def grid(self) -> LiveGrid:
        return self.query_one(LiveGrid)

    @property
    def here(self) -> Row | None:
        """The row under the cursor."""
        found: Row | None = self.grid.here
        return found

    def show_rows(self, table: Table[Row], rows: Sequence[Row], want: Hashable | None = None) -> None:
        """Show these rows; the cursor goes to the one with the key ``want``, or stays."""
        self.grid.show_table(table, rows, want)

    def reading(self, row: Row) -> Content | str:
        """What is said of the row under the cursor below the table."""
        return ""

    async def chosen(self, row: Row) -> None:
        """``enter`` on a row."""

    def detail(self, row: Row) -> DetailQuery | None:
        """What stands of a row beside the table, in a screen that is ``Split``."""
        return None

    def detail_query(self) -> DetailQuery | None:
        here = self.here
        return None if here is None else self.detail(here)

    def on_grid_highlighted(self) -> None:
        self.say_reading()

    def on_grid_opened(self) -> None:
        self.say_reading()

    def say_reading(self) -> None:
        """Say what there is to say of the row under the cursor."""
        here = self.here
        line = next(iter(self.query(f"#{self.called}-reading").results(Static)), None) if self.called else None
        text = "" if here is None else self.reading(here)
        if isinstance(line, Line):
            line.say(text)
        elif line is not None:
            line.update(text)

    async def on_grid_selected(self, event: Grid.Selected) -> None:
        row = self.grid.value(event.row[-1])
        if row is not None:
            await self.chosen(row)

    def take_focus(self) -> None:
        self.grid.focus()

    def exportable(self) -> Exportable | None:
        """The table as it is shown."""
        return grid_exportable(self.grid, self.export_name) if self.exports else None

    @property
    def export_name(self) -> str:
        """How the name of the file begins."""
        return self.exports

    @property
    def can_export(self) -> bool:
        return bool(self.exports) or type(self).exportable is not TableScreen.exportable


class TableDialog(TableScreen[Row], Dialog[ScreenResult]):
    """A table that fills the terminal, in a frame whose lower edge says all of the row under the cursor; below it the keys."""

    AUTO_FOCUS = "Grid"

    def compose(self) -> ComposeResult:
        with Vertical(classes="whole"):
            yield Edge(name=f"{self.called}-head")
            with Sides():
                yield from self.above()
                yield from self._table()
            yield Edge(name="" if self._has_below else f"{self.called}-reading", lower=True)
            yield KeyLine()

    def above(self) -> Iterator[Widget]:
        """What stands above the table, under the head in the frame."""
        yield from ()

    def make_grid(self) -> LiveGrid:
        return LiveGrid(empty="…")

    def below(self) -> Iterator[Widget]:
        """What stands below the table; without it what is said of the row stands in the frame."""
        yield from ()

    @property
    def _has_below(self) -> bool:
        return type(self).below is not TableDialog.below

    def _table(self) -> Iterator[Widget]:
        parts = (self.make_grid(), *self.below())
        return self.compose_split(*parts) if isinstance(self, Split) else iter(parts)

    def say_head(self, text: Content | str) -> None:
        self.query_one(f"#{self.called}-head", Line).say(text)
