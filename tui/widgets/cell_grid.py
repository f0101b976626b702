"""Grid of cells with a cursor on one of them; the labels of rows and columns stay in view while it scrolls both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.terminal.glyphs import find_glyphs
from sfumato.tui.terminal.painting import draw_raw_lines
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.workspace.visible_text import replace_unprintable

HEAD_LINES = 2
"""Lines above the cells: the variable of the columns, and their labels."""
GAP = 2
MEASURED_CELLS, LEAST_MEASURED = 20_000, 20
"""Cells from whose texts the widths of all columns are taken, and least rows of each."""
WIDEST_TITLE = 14
LABEL_SHARE = 0.45
"""Share of the width that the labels of the rows may take."""
LEAST_LABEL = 6


@dataclass(frozen=True, eq=False)
class CellSheet:
    """Content of a grid of cells.

    row_names: name of each column of labels
    column_name: what the columns are by
    row_labels: labels of each row, one for each name
    columns: label of each column
    cell_text: function that returns the text of a cell by its row and column
    cell_ink: function that returns the ink of a cell: ``plain``, ``muted``, ``bad``, ``doubt`` or ``fixed``
    """

    row_names: Sequence[str]
    column_name: str
    row_labels: Sequence[Sequence[str]]
    columns: Sequence[str]
    cell_text: Callable[[int, int], str]
    cell_ink: Callable[[int, int], str]

    @cached_property
    def label_widths(self) -> list[int]:
        """Return the width that each column of labels needs, in cells."""
        return [
            max(cell_len(replace_unprintable(text)) for text in (name, *(row[at] for row in self.row_labels)))
            for at, name in enumerate(self.row_names)
        ]

    @cached_property
    def value_widths(self) -> list[int]:
        """Return the width that the values of each column need, in cells."""
        most = max(LEAST_MEASURED, MEASURED_CELLS // max(1, len(self.columns)))
        rows = range(min(len(self.row_labels), most))
        return [
            max((cell_len(self.cell_text(row, column)) for row in rows), default=1)
            for column in range(len(self.columns))
        ]

    @cached_property
    def title_widths(self) -> list[int]:
        """Return the width that the label of each column needs, in cells."""
        return [cell_len(replace_unprintable(title)) for title in self.columns]

    def column_widths(self, room: int) -> list[int]:
        """Return the width of each column in ``room`` cells: labels are cut where not all of them fit, values never."""
        whole = [max(pair) for pair in zip(self.value_widths, self.title_widths, strict=True)]
        if sum(whole) + GAP * len(whole) <= room:
            return whole
        cut = (min(width, WIDEST_TITLE) for width in self.title_widths)
        return [max(pair) for pair in zip(self.value_widths, cut, strict=True)]

    def fitted_label_widths(self, width: int) -> list[int]:
        """Return the widths of the columns of labels in a grid of ``width`` cells, the widest narrowed first."""
        found = list(self.label_widths)
        most = max(int(width * LABEL_SHARE) - GAP * len(found), LEAST_LABEL * len(found))
        while found and sum(found) > most and max(found) > LEAST_LABEL:
            found[found.index(max(found))] -= 1
        return found


EMPTY_SHEET = CellSheet((), "", (), (), lambda row, column: "", lambda row, column: "plain")


class CellGrid(Widget, can_focus=True, inherit_bindings=False):
    """Grid of a ``CellSheet`` with a cursor on one cell."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "cells--head", "cells--label", "cells--plain", "cells--muted", "cells--bad", "cells--doubt", "cells--fixed",
        "cells--cursor",
    }  # fmt: skip
    DEFAULT_CSS = """
    CellGrid {
        height: 1fr;
        & > .cells--head { text-style: bold; background: $panel; }
        & > .cells--label { background: $panel; }
        & > .cells--muted { color: $text-muted; }
        & > .cells--bad { color: $error; text-style: bold; }
        & > .cells--doubt { color: $warning; text-style: bold; }
        & > .cells--fixed { color: $primary; text-style: bold; }
        & > .cells--cursor { text-style: bold underline; }
        &:focus > .cells--cursor { text-style: reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("up", "move(-1, 0)"),
        bind_act("down", "move(1, 0)"),
        bind_act("left", "move(0, -1)"),
        bind_act("right", "move(0, 1)"),
        bind_act("page_up", "page(-1)"),
        bind_act("page_down", "page(1)"),
        bind_act("first", "go_to_row(0)", "First row"),
        bind_act("last", "go_to_row(-1)", "Last row"),
        bind_act("far_left", "go_to_column(0)", "First column"),
        bind_act("far_right", "go_to_column(-1)", "Last column"),
        bind_act("open", "select", "Why", show=True),
    ]

    @dataclass
    class CellHighlighted(Message):
        """Message that the cursor came to a cell."""

        row: int
        column: int

    @dataclass
    class CellSelected(Message):
        """Message that a cell was chosen with enter or a double click."""

        row: int
        column: int

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's name)
        """Create an empty grid."""
        super().__init__(id=id)
        draw_raw_lines(self)
        self._sheet = EMPTY_SHEET
        self._place = (0, 0)
        self._top = self._first = 0
        self._widths: tuple[tuple[int, CellSheet], list[int]] | None = None
        self._ellipsis = find_glyphs(None).ellipsis

    @property
    def place(self) -> tuple[int, int]:
        """Return row and column of the cursor."""
        return self._place

    @property
    def sheet(self) -> CellSheet:
        """Return the content that is shown."""
        return self._sheet

    @property
    def has_cells(self) -> bool:
        """Return whether there is a cell."""
        return bool(self._sheet.row_labels and self._sheet.columns)

    def show_sheet(self, sheet: CellSheet, place: tuple[int, int] = (0, 0)) -> None:
        """Show other content with the cursor at a place."""
        had = self.has_cells
        self._sheet = sheet
        self._top = self._first = 0
        self._place = self._nearest_place(place)
        self._scroll_to_cursor()
        self.refresh()
        if had != self.has_cells:
            self.refresh_bindings()

    def go_to(self, row: int, column: int) -> None:
        """Move the cursor to a cell, or to the nearest one."""
        place = self._nearest_place((row, column))
        if place == self._place:
            return
        self._place = place
        self._scroll_to_cursor()
        self.refresh()
        self.post_message(self.CellHighlighted(*place))

    def _nearest_place(self, place: tuple[int, int]) -> tuple[int, int]:
        """Return the existing cell nearest to a place."""
        rows, columns = len(self._sheet.row_labels), len(self._sheet.columns)
        return max(0, min(place[0], rows - 1)), max(0, min(place[1], columns - 1))

    def on_resize(self) -> None:
        """Keep the cursor in view."""
        self._scroll_to_cursor()
        self.refresh()

    @property
    def _visible_rows(self) -> int:
        """Return the number of rows below the head."""
        return max(1, self.size.height - HEAD_LINES)

    @property
    def _label_width(self) -> int:
        """Return the cells that the labels of the rows take."""
        names = self._sheet.row_names
        return sum(self._sheet.fitted_label_widths(self.size.width)) + GAP * max(len(names) - 1, 0) + 2

    @property
    def _column_widths(self) -> list[int]:
        """Return the width of each column in cells."""
        key = self.size.width, self._sheet
        if self._widths is None or self._widths[0] != key:
            self._widths = key, self._sheet.column_widths(self.size.width - self._label_width - 1)
        return self._widths[1]

    def _columns_from(self, first: int) -> list[int]:
        """Return the columns that are shown where the view begins at column ``first``."""
        room, found = self.size.width - self._label_width - 1, list[int]()
        for column in range(first, len(self._sheet.columns)):
            room -= self._column_widths[column] + GAP
            if found and room < -GAP:
                break
            found.append(column)
        return found

    def _scroll_to_cursor(self) -> None:
        """Scroll so far that the cursor is in view."""
        if not self.has_cells or not self.size.width:
            return
        row, column = self._place
        self._top = min(self._top, row)
        self._top = max(self._top, row - self._visible_rows + 1)
        self._first = min(self._first, column)
        while column not in self._columns_from(self._first) and self._first < column:
            self._first += 1

    def render_line(self, y: int) -> Strip:
        """Return a line of the head, or a row."""
        width = self.size.width
        if not self.has_cells:
            return Strip([Segment(" " * width, self.get_component_rich_style("cells--plain"))], width)
        row = self._top + y - HEAD_LINES
        if y < HEAD_LINES:
            return self._head_line(y)
        if row >= len(self._sheet.row_labels):
            return Strip([Segment(" " * width, self.get_component_rich_style("cells--plain"))], width)
        label = self.get_component_rich_style("cells--label")
        segments = [Segment(self._label_text(self._sheet.row_labels[row]), label)]
        for column in self._columns_from(self._first):
            text = self._sheet.cell_text(row, column)
            shown = fit_text(text, self._column_widths[column], "right", self._ellipsis)
            ink = "cursor" if (row, column) == self._place else self._sheet.cell_ink(row, column)
            style = self.get_component_rich_style(f"cells--{ink}")
            plain = self.get_component_rich_style("cells--plain")
            segments += [Segment(" " * GAP, plain), Segment(shown, style)]
        strip = Strip(segments)
        return strip.adjust_cell_length(width, self.get_component_rich_style("cells--plain"))

    def _label_text(self, labels: Sequence[str]) -> str:
        """Return the labels of a row, or their names, in their widths."""
        widths = self._sheet.fitted_label_widths(self.size.width)
        shown = (fit_text(replace_unprintable(label), width, "left", self._ellipsis)
                 for label, width in zip(labels, widths, strict=True))  # fmt: skip
        return f" {(' ' * GAP).join(shown)} "

    def _head_line(self, y: int) -> Strip:
        """Return the line with the variable of the columns, or that with their labels."""
        style, width = self.get_component_rich_style("cells--head"), self.size.width
        columns = self._columns_from(self._first)
        if y == 0:
            left = "" if not self._first else f"{self._first} more to the left"
            after = len(self._sheet.columns) - columns[-1] - 1
            right = "" if not after else f"{after} more to the right"
            text = "   ".join(filter(None, [self._sheet.column_name, left, right]))
            text = " " * self._label_width + " " * GAP + cut_text(replace_unprintable(text), width, self._ellipsis)
            return Strip([Segment(fit_text(text, width), style)], width)
        names = self._label_text(self._sheet.row_names) if self._sheet.row_names else " " * self._label_width
        titles = "".join(
            " " * GAP
            + fit_text(replace_unprintable(self._sheet.columns[at]), self._column_widths[at], "right", self._ellipsis)
            for at in columns
        )
        return Strip([Segment(fit_text(f"{names}{titles}", width), style)], width)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked cell; a second click chooses it."""
        at = event.get_content_offset(self)
        if at is None or not self.has_cells or at.y < HEAD_LINES:
            return
        row, left = self._top + at.y - HEAD_LINES, self._label_width
        for column in self._columns_from(self._first):
            left += GAP + self._column_widths[column]
            if at.x < left and row < len(self._sheet.row_labels):
                self.go_to(row, column)
                if event.chain == 2:
                    self.action_select()
                return

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable choosing where there is no cell."""
        return action != "select" or self.has_cells

    def action_move(self, rows: int, columns: int) -> None:
        """Move the cursor by rows and columns."""
        self.go_to(self._place[0] + rows, self._place[1] + columns)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages of rows."""
        self.go_to(self._place[0] + pages * self._visible_rows, self._place[1])

    def action_go_to_row(self, row: int) -> None:
        """Move the cursor to a row of its column; -1 for the last."""
        self.go_to(row if row >= 0 else len(self._sheet.row_labels) - 1, self._place[1])

    def action_go_to_column(self, column: int) -> None:
        """Move the cursor to a column of its row; -1 for the last."""
        self.go_to(self._place[0], column if column >= 0 else len(self._sheet.columns) - 1)

    def action_select(self) -> None:
        """Choose the cell under the cursor."""
        if self.has_cells:
            self.post_message(self.CellSelected(*self._place))
