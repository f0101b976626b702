"""Screens around a table: its columns, the text about a row, what enter does, and what is exported.

The grid lays the columns out again when the width changes; this module leads from the cursor to rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from ..session.export import ScreenExport
from ..widgets.grid import Grid, LiveGrid
from ..widgets.lines import KeyLine, Line
from ..widgets.panel import FrameEdge, FrameSides
from ..widgets.tables import GridTable, Row
from .page import Dialog, ScreenResult, grid_exportable
from .split import DetailQuery, SplitView

if TYPE_CHECKING:
    _WidgetMixin = Widget
else:

    class _WidgetMixin:
        """Base class without styles: Textual takes styles from the first base class that is a widget."""


class TableScreen(_WidgetMixin, Generic[Row]):
    """Mixin for a screen with one table.

    The ids of its lines begin with ``id_prefix``; the grid is exported if ``export_file`` is set.
    """

    id_prefix: ClassVar[str] = ""
    export_file: ClassVar[str] = ""

    @property
    def grid(self) -> LiveGrid:
        """Return the grid."""
        return self.query_one(LiveGrid)

    @property
    def current_row(self) -> Row | None:
        """Return the row under the cursor; None in an empty table."""
        found: Row | None = self.grid.current_row
        return found

    def show_rows(self, table: GridTable[Row], rows: Sequence[Row], want: Hashable | None = None) -> None:
        """Show these rows; the cursor goes to the row with the key ``want``, or stays."""
        self.grid.show_table(table, rows, want)

    def describe_row(self, row: Row) -> Content | str:
        """Return the text below the table about the row under the cursor."""
        return ""

    async def open_row(self, row: Row) -> None:
        """Open a row that was chosen with ``enter``."""

    def detail_of_row(self, row: Row) -> DetailQuery | None:
        """Return the query for the explanation of a row beside the table, in a ``SplitView``."""
        return None

    def detail_query(self) -> DetailQuery | None:
        """Return the query for the explanation of the row under the cursor; None in an empty table."""
        here = self.current_row
        return None if here is None else self.detail_of_row(here)

    # Named handlers, not decorated ones: Textual looks for decorated handlers in widgets alone, and this is a plain
    # mixin.
    def on_grid_row_highlighted(self) -> None:
        self._follow_row()

    def on_grid_source_opened(self) -> None:
        self._follow_row()

    def _follow_row(self) -> None:
        """Show the text about the row under the cursor, and in the footer what enter does there."""
        here = self.current_row
        self.grid.set_open_word(None if here is None else self.open_word_of(here))
        self.show_row_text()

    def open_word_of(self, row: Row) -> str | None:
        """Return what ``enter`` does on a row, as the footer says it; None for what the binding says."""
        return None

    def show_row_text(self) -> None:
        """Show the text about the row under the cursor."""
        here = self.current_row
        line = next(iter(self.query(f"#{self.id_prefix}-reading").results(Static)), None) if self.id_prefix else None
        text = "" if here is None else self.describe_row(here)
        if isinstance(line, Line):
            line.set_text(text)
        elif line is not None:
            line.update(text)

    async def on_grid_row_selected(self, event: Grid.RowSelected) -> None:
        """Open the chosen row."""
        row = self.grid.row_with_key(event.row[-1])
        # The row may have gone since the key was pressed.
        if row is not None:
            await self.open_row(row)

    def take_focus(self) -> None:
        self.grid.focus()

    def make_exportable(self) -> ScreenExport | None:
        """Return the table as shown, for export."""
        return grid_exportable(self.grid, self.export_name) if self.export_file else None

    @property
    def export_name(self) -> str:
        """Return the beginning of the exported file's name."""
        return self.export_file

    @property
    def can_export(self) -> bool:
        """Return whether the table can be exported."""
        return bool(self.export_file) or type(self).make_exportable is not TableScreen.make_exportable


class TableDialog(TableScreen[Row], Dialog[ScreenResult]):
    """Dialog with a table that fills the terminal, and the text about the row under the cursor in the frame's lower
    edge.
    """

    AUTO_FOCUS = "Grid"

    def compose(self) -> ComposeResult:
        """Yield the head, the table with the widgets around it, the lower edge and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name=f"{self.id_prefix}-head")
            with FrameSides():
                yield from self.compose_above_table()
                yield from self._compose_table()
            yield FrameEdge(name="" if self._has_widgets_below else f"{self.id_prefix}-reading", lower=True)
            yield KeyLine()

    def compose_above_table(self) -> Iterator[Widget]:
        """Yield the widgets above the table, under the head in the frame."""
        yield from ()

    def make_grid(self) -> LiveGrid:
        """Return the grid of the table."""
        return LiveGrid(empty="…")

    def compose_below_table(self) -> Iterator[Widget]:
        """Yield the widgets under the table; without any, the text about the row stands in the frame."""
        yield from ()

    @property
    def _has_widgets_below(self) -> bool:
        """Return whether there are widgets under the table."""
        return type(self).compose_below_table is not TableDialog.compose_below_table

    def _compose_table(self) -> Iterator[Widget]:
        """Yield the table with the widgets under it, beside an explanation if the dialog has one."""
        parts = (self.make_grid(), *self.compose_below_table())
        return self.compose_split(*parts) if isinstance(self, SplitView) else iter(parts)

    def set_head(self, text: Content | str) -> None:
        """Set the text in the upper edge."""
        self.query_one(f"#{self.id_prefix}-head", Line).set_text(text)
