"""Grid widget: a table of any length, read a page at a time off the event loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from types import MappingProxyType
from typing import Any, ClassVar

from rich.segment import Segment
from textual import events, on, work
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from sfumato.tui.keys.acts import bind_act
from sfumato.workspace.reporting.tables import DisplayColumn

from ..terminal.glyphs import find_glyphs
from ..terminal.painting import draw_raw_lines
from ..terminal.text import text_window
from .pages import ListPages, PageDelivery, PageFeed, PageRequest, PageSource, RowHeading, RowLayout, TableRow
from .tables import GridTable, Row

HEADER = 1
"""Rows of the header."""
BAR = 1
"""Cells that the scrollbar may take."""
STATES = {"✓": "good", "✗": "bad", "!": "doubt", "~": "doubt", "‖": "doubt", "●": "going", "–": "waiting"}
"""Signs of a state that also have a colour. In ASCII ``!`` and ``~`` may be values, so they need a word behind them,
and stand at the beginning of a cell: a formula such as ``vote ~ age`` has no state. What begins with a dash is dim.
"""
SIGNS = re.compile(r"(?<!\S)(?:✓(?!\S)|(?:[✗‖●](?!\S)|(?<!\S )[!~–](?= [a-z\d]))(?: \S+)*)|[▁-█]+")
"""Parts of a row that have a colour of their own: signs of a state, and small pictures of a distribution."""


class Grid(ScrollView, can_focus=True, inherit_bindings=False):
    """Table of a ``PageSource`` with a cursor on one row."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "grid--header", "grid--row", "grid--cursor", "grid--waiting", "grid--good", "grid--bad", "grid--doubt", "grid--going", "grid--picture",
        "grid--heading",
    }  # fmt: skip
    DEFAULT_CSS = """
    Grid {
        height: 1fr;
        scrollbar-size: 1 1;
        & > .grid--header { text-style: bold; background: $panel; }
        & > .grid--waiting { color: $text-muted; }
        & > .grid--good { color: $success; text-style: bold; }
        & > .grid--bad { color: $error; text-style: bold; }
        & > .grid--doubt { color: $warning; text-style: bold; }
        & > .grid--going { color: $primary; text-style: bold; }
        & > .grid--picture { color: $primary; }
        & > .grid--heading { color: $primary; text-style: bold; }
        & > .grid--cursor { text-style: bold underline; }
        &:focus > .grid--cursor { text-style: reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("up", "move(-1)"),
        bind_act("down", "move(1)"),
        bind_act("left", "shift(-1)", "Column left"),
        bind_act("right", "shift(1)", "Column right"),
        bind_act("page_up", "page(-1)"),
        bind_act("page_down", "page(1)"),
        bind_act("first", "first", "First row"),
        bind_act("last", "last", "Last row"),
        bind_act("open", "select"),
    ]

    cursor: reactive[int] = reactive(0, repaint=False)
    """The row under the cursor."""

    open_word: str | None = None
    """What enter does on the row under the cursor, as the footer says it, empty for nothing; None for what the binding says.
    """

    @dataclass
    class GridMessage(Message):
        """Message about ``grid``."""

        grid: Grid

        @property
        def control(self) -> Grid:
            """Return the grid, for ``@on`` with a selector."""
            return self.grid

    @dataclass
    class RowHighlighted(GridMessage):
        """Message that the cursor came to row ``index``.

        ``row`` is None while it is being read; another message follows when it has been read.
        """

        index: int
        row: TableRow | None

    @dataclass
    class RowSelected(GridMessage):
        """Message that row ``index`` was chosen with enter or a double click."""

        index: int
        row: TableRow

    @dataclass
    class SourceOpened(GridMessage):
        """Message that a source with ``count`` rows is shown."""

        count: int

    @dataclass
    class SourceFailed(GridMessage):
        """Message that the source raised ``error``. Its text may contain values of the table: do not log it."""

        error: Exception

    @dataclass
    class PageDelivered(Message, bubble=False):
        """Message that a page was read."""

        delivery: PageDelivery

    @dataclass
    class PageUnreadable(Message, bubble=False):
        """Message that a thread could not read ``source``."""

        source: PageSource
        error: Exception

    def __init__(
        self,
        source: PageSource | None = None,
        *,
        empty: str = "No rows.",
        glyphs: str | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002  (Textual's name)
        classes: str | None = None,
    ) -> None:
        """Create the grid.

        ``empty`` is shown if there are no rows; ``glyphs`` is braille, block or ascii.
        """
        super().__init__(name=name, id=id, classes=classes)
        draw_raw_lines(self)
        self._table = RowLayout((), find_glyphs(glyphs).ellipsis)
        self._feed = PageFeed()
        self._empty, self._note = empty, ""
        self._keep_cursor = self._choosing = False
        self._returning = ""
        self._selectable = True
        self._pages_in: Callable[[int], PageSource] | None = None
        self._laid: Sequence[DisplayColumn] | None = None
        self._next_empty: str | None = None
        self._next_keep = False
        if source is not None:
            self.set_source(source)

    @property
    def row_count(self) -> int:
        """Return the number of rows of the shown source; 0 before it is open."""
        return self._feed.count

    @property
    def source(self) -> PageSource | None:
        """Return the source that is shown; None before one is open."""
        return self._feed.source

    def row_at(self, index: int) -> TableRow | None:
        """Return row ``index`` if it has been read."""
        return self._feed.row_at(index)

    def set_source(self, source: PageSource, *, empty: str | None = None, keep_cursor: bool = False) -> None:
        """Show another source once its first page has been read; until then the old one stays.

        The cursor goes to the first row, or stays on its row number with ``keep_cursor``. If columns and count are then
        the same as before, only the rows that differ are repainted.
        """
        self._keep_cursor = keep_cursor
        self._empty = self._empty if empty is None else empty
        self._feed.open_source(source, self.cursor if keep_cursor else 0)
        self._read_next()

    def set_open_word(self, word: str | None) -> None:
        """Set what enter does on the row under the cursor."""
        if word != self.open_word:
            self.open_word = word
            self.refresh_bindings()

    @property
    def cursor_place(self) -> str:
        """Return where the cursor is, for ``return_to``."""
        return str(self.cursor)

    def return_to(self, place: str) -> None:
        """Move the cursor to a place of an earlier session, once there are rows."""
        self._returning = place

    def show_pages(
        self, pages_in: Callable[[int], PageSource], *, empty: str | None = None, keep_cursor: bool = False
    ) -> None:
        """Show the source for the grid's width once the width is known, and again when other columns fit."""
        self._pages_in, self._laid = pages_in, None
        self._next_empty, self._next_keep = empty, keep_cursor
        self._lay_out_columns()

    def _lay_out_columns(self) -> None:
        """Show the source again if other columns fit into the width."""
        width = self.size.width - BAR
        pages = self._pages_in(width) if self._pages_in is not None and width > 0 else None
        if pages is not None and pages.columns != self._laid:
            # The first layout obeys the caller; a later one, for another width, must not move the cursor.
            keep, self._next_keep = self._next_keep, True
            self._laid = pages.columns
            self.set_source(pages, empty=self._next_empty, keep_cursor=keep)

    def on_mount(self) -> None:
        """Read the first page."""
        self._read_next()

    def on_resize(self) -> None:
        """Lay the columns out in the new width, and read the rows that a larger window shows."""
        self._lay_out_columns()
        self._show_cursor()
        self._read_next()

    def _read_next(self) -> None:
        """Read in a thread what is needed first: the rows in view, the cursor's row, a screen either way."""
        # A source may be set before the grid is mounted; it is read then.
        if not self.is_attached:
            return
        top, lines = self.scroll_offset.y, self._visible_rows
        order = self._feed.next_request(
            [(top, top + lines), (self.cursor, self.cursor), (top - lines, top + 2 * lines)]
        )
        if order is not None:
            self._fetch_page(order)

    @work(thread=True, group="pages", exit_on_error=False)
    def _fetch_page(self, order: PageRequest) -> None:
        """Read a page and post it, or the error that the source raised."""
        try:
            delivery = order.fetch_page()
        except Exception as error:  # noqa: BLE001  (whatever a source raises becomes a message)
            self.post_message(self.PageUnreadable(order.source, error))
        else:
            self.post_message(self.PageDelivered(delivery))

    @on(PageDelivered)
    def _show_page(self, event: PageDelivered) -> None:
        """Store a page and repaint the rows that differ."""
        columns = tuple(event.delivery.source.columns)
        change = self._feed.store_page(event.delivery, self._keep_cursor and columns == self._table.columns)
        if change.all_changed:
            self._open_source(columns)
        if change.opened:
            self.post_message(self.SourceOpened(self, self.row_count))
        self._repaint_rows(change.changed_rows)
        if self.cursor in change.changed_rows:
            self._announce_row()
        self._read_next()

    @on(PageUnreadable)
    def _show_failure(self, event: PageUnreadable) -> None:
        """Show that the rows could not be read, unless another source is wanted by now."""
        if self._feed.give_up(event.source):
            self._note = "The rows could not be read."
            self._table = replace(self._table, columns=())
            self.virtual_size = Size(0, 0)
            self.refresh()
            self.post_message(self.SourceFailed(self, event.error))
        self._read_next()

    def _open_source(self, columns: tuple[DisplayColumn, ...]) -> None:
        """Show the columns and the number of rows of another source, and place the cursor."""
        self._choosing = False
        self._table = replace(self._table, columns=columns)
        self._note = "" if self.row_count else self._empty
        self.virtual_size = Size(self._table.width, self.row_count + HEADER)
        row = self.cursor if self._keep_cursor else 0
        if self.row_count and self._returning.isdecimal():
            row, self._returning = int(self._returning), ""
        # Set without its watcher, which would post the row of a page that has not been read.
        self.set_reactive(Grid.cursor, self.validate_cursor(row))
        if not self._keep_cursor:
            self.scroll_to(x=0, y=0, animate=False)
        if self._selectable != (self.row_count > 0):
            self._selectable = not self._selectable
            self.refresh_bindings()
        # The height is known only after the layout.
        self.call_after_refresh(self._show_cursor)
        self.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable choosing in an empty table, and scrolling sideways if all columns are in view."""
        if action == "shift":
            return self._table.width > self.scrollable_content_region.width
        return action != "select" or self.source is None or self.row_count > 0

    def _announce_row(self) -> None:
        """Post the row under the cursor, now that it has been read; the cursor leaves a heading."""
        if self._is_heading(self.cursor):
            self.cursor = self.validate_cursor(self.cursor)
            return
        self.post_message(self.RowHighlighted(self, self.cursor, self.row_at(self.cursor)))
        if self._choosing:
            self.action_select()

    def validate_cursor(self, cursor: int) -> int:
        """Return the existing row nearest to ``cursor`` that is no heading, rather in the direction of the movement."""
        wanted = max(0, min(cursor, self.row_count - 1))
        step = -1 if wanted < self.cursor else 1
        for way in (step, -step):
            found = wanted
            while self._is_heading(found):
                found += way
            if 0 <= found < self.row_count:
                return found
        return wanted

    def _is_heading(self, index: int) -> bool:
        """Return whether row ``index`` has been read and is a heading."""
        row = self.row_at(index) if index >= 0 else None
        return row is not None and len(row) > 0 and isinstance(row[0], RowHeading)

    def watch_cursor(self, old: int, new: int) -> None:
        """Repaint the two rows that the cursor left and entered, and post the new one."""
        self._choosing = False
        self._repaint_rows((old, new))
        self._show_cursor()
        self._read_next()
        if self.row_count:
            self.post_message(self.RowHighlighted(self, new, self.row_at(new)))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Repaint the rows alone; the scrollbar only when its thumb moves by an eighth of a cell."""
        # Textual would repaint the whole widget with every step, which takes long over a slow line.
        if self.show_vertical_scrollbar:
            step = max(self.virtual_size.height / (8 * max(self.size.height, 1)), 1)
            self.vertical_scrollbar.position = round(new_value / step) * step
        if round(old_value) != round(new_value):
            self._repaint_rows(range(self.scroll_offset.y, self.scroll_offset.y + self._visible_rows))
        self._read_next()

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Repaint header and rows, not the other scrollbar."""
        if self.show_horizontal_scrollbar:
            self.horizontal_scrollbar.position = new_value
        if round(old_value) != round(new_value):
            self.refresh(self.scrollable_content_region.size.region)

    def action_move(self, rows: int) -> None:
        """Move the cursor by rows."""
        self.cursor += rows

    def action_page(self, pages: float) -> None:
        """Scroll by pages; the cursor keeps its height on the screen if it can."""
        rows = round(self._visible_rows * pages)
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False)
        self.cursor += rows

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self.cursor = 0

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self.cursor = self.row_count - 1

    def action_shift(self, columns: int) -> None:
        """Scroll sideways to the start of the next column."""
        now = self.scroll_offset.x
        starts = [x for x in self._table.column_starts if (x - now) * columns > 0]
        if starts:
            self.scroll_to(x=min(starts) if columns > 0 else max(starts), animate=False)

    def action_select(self) -> None:
        """Choose the row under the cursor, as soon as it has been read."""
        row = self.row_at(self.cursor)
        # Enter on a row that is still being read opens it once it has come.
        self._choosing = row is None
        if row is not None:
            self.post_message(self.RowSelected(self, self.cursor, row))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked row; a second click chooses it."""
        at = event.get_content_offset(self)
        if at is None or not HEADER <= at.y < self.row_count - self.scroll_offset.y + HEADER:
            return
        self.cursor = at.y - HEADER + self.scroll_offset.y
        if event.chain == 2:
            self.action_select()

    @property
    def _visible_rows(self) -> int:
        """Return the number of rows that fit below the header."""
        return max(1, self.scrollable_content_region.height - HEADER)

    def _show_cursor(self) -> None:
        """Scroll so far that the cursor is in view."""
        top, lines, first = self.scroll_offset.y, self._visible_rows, self.cursor
        while self._is_heading(first - 1) and first > self.cursor - lines + 1:
            first -= 1  # headings of the row come into view with it
        if first < top:
            self.scroll_to(y=first, animate=False)
        elif self.cursor >= top + lines:
            self.scroll_to(y=self.cursor - lines + 1, animate=False)

    def _repaint_rows(self, rows: Iterable[int]) -> None:
        """Repaint those of ``rows`` that are in view."""
        width, top, lines = self.scrollable_content_region.width, self.scroll_offset.y, self._visible_rows
        seen = [Region(0, row - top + HEADER, width, 1) for row in rows if top <= row < top + lines]
        if seen:
            self.refresh(*seen)

    def render_line(self, y: int) -> Strip:
        """Return the header, a row, or the note in place of rows as a strip."""
        text, part = self._line_text(y)
        style = self.get_component_rich_style(f"grid--{part}")
        width = self.scrollable_content_region.width
        shown = text_window(text, self.scroll_offset.x, width)
        # A picture under the cursor has the row's ink and ground: its own would be a hole in the row.
        if part != "row":
            return Strip([Segment(shown, style)], width)
        segments, done = [], 0
        for found in SIGNS.finditer(shown):
            sign = Segment(found[0], self.get_component_rich_style(f"grid--{STATES.get(found[0][0], 'picture')}"))
            segments += [Segment(shown[done : found.start()], style), sign]
            done = found.end()
        return Strip([*segments, Segment(shown[done:], style)], width)

    def _line_text(self, y: int) -> tuple[str, str]:
        """Return the text of a line, and the name of the grid's part for its style."""
        if y < HEADER:
            return self._table.header_line(), "header" if self._table.columns else "row"
        index = y - HEADER + self.scroll_offset.y
        if index >= self.row_count:
            note = self._note_lines()
            return (f" {note[index]}", "waiting") if index < len(note) else ("", "row")
        row = self.row_at(index)
        text = self._table.unread_line() if row is None else self._table.row_line(row)
        if index == self.cursor:
            return text, "cursor"
        if row and isinstance(row[0], RowHeading):
            return text, "row" if row[0].is_minor else "heading"
        return text, "waiting" if row is None else "row"

    def _note_lines(self) -> list[str]:
        """Return the note in place of rows, in lines as wide as the grid."""
        width = max(20, self.scrollable_content_region.width - 2)
        return [line for part in self._note.splitlines() for line in wrap(part, width)]


class LiveGrid(Grid):
    """Grid whose rows have keys: the cursor stays with its row when rows are added or removed."""

    _keys: tuple[Hashable, ...] = ()
    _followed: Hashable | None = None
    _declared: GridTable[Any] = GridTable(())
    _declared_rows: Mapping[Hashable, Any] = MappingProxyType({})
    _want: Hashable | None = None

    @property
    def row_keys(self) -> tuple[Hashable, ...]:
        """Return the keys of the shown rows, in their order."""
        return self._keys

    @property
    def row_key(self) -> Hashable | None:
        """Return the key of the row under the cursor; None in an empty grid."""
        row = self.row_at(self.cursor)
        # The key is the last cell of a row, which no column shows.
        return None if row is None else row[-1]

    @property
    def cursor_place(self) -> str:
        """Return the key of the row under the cursor, as text."""
        return "" if self.row_key is None else str(self.row_key)

    def set_empty_text(self, text: str) -> None:
        """Set the text in place of missing rows, from the next table on."""
        self._empty = text

    def show_table(self, table: GridTable[Row], rows: Sequence[Row], want: Hashable | None = None) -> None:
        """Show rows in the table's columns as soon as the width is known; the cursor goes to ``want``, or stays."""
        rows = table.sort_rows(rows)
        self._declared, self._declared_rows = table, dict(zip(table.row_keys(rows), rows, strict=True))
        self._laid, self._want = None, self._want if want is None else want
        self._lay_out_columns()

    def forget_rows(self) -> None:
        """Discard all rows and their values."""
        self._declared, self._declared_rows, self._laid = GridTable(()), {}, None
        self.show_keyed_rows((), [], [])

    def _lay_out_columns(self) -> None:
        """Lay the rows out again if other columns fit into the width."""
        rows, width = self.table_rows, self.size.width - BAR
        columns = self._declared.columns_in(rows, width) if width > 0 or not rows else ()
        if columns and columns != self._laid:
            self._laid = columns
            want, self._want = self._want, None
            self._fill_grid(columns, [self._declared.row_cells(columns, row) for row in rows], want)

    def _fill_grid(self, columns: Sequence[DisplayColumn], rows: Sequence[TableRow], want: Hashable | None) -> None:
        """Show finished rows in these columns."""
        self.show_keyed_rows(columns, rows, list(self._declared_rows), want)

    @property
    def table_rows(self) -> Sequence[Any]:
        """Return the rows in the table's order, as they were given."""
        return tuple(self._declared_rows.values())

    def row_with_key(self, key: Hashable) -> Any:
        """Return the row with this key, as it was given; None without such a row."""
        return self._declared_rows.get(key)

    @property
    def current_row(self) -> Any:
        """Return the row under the cursor, as it was given; None in an empty grid."""
        return self.row_with_key(self.row_key)

    def show_keyed_rows(
        self,
        columns: Sequence[DisplayColumn],
        rows: Sequence[Sequence[object]],
        keys: Sequence[Hashable],
        want: Hashable | None = None,
    ) -> None:
        """Show finished rows with a key each; the cursor goes to ``want``, or stays with its row."""
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
        self._followed = self.row_key

    @on(Grid.SourceOpened)
    def _restore_cursor(self) -> None:
        """Put the cursor on the row that it follows."""
        if self._followed in self._keys:
            # Rows may have been added above; the cursor stays with its row, not with its number.
            self.cursor = self._keys.index(self._followed)
        self._followed = self.row_key
