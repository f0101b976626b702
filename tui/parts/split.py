"""Mixin that shows the explanation of a row beside its list, or below it, if both have room; otherwise the list alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from sfumato.tui.terminal.painting import Backdrop
from sfumato.tui.widgets.facts import wrap_paragraphs
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import OverflowScroll
from sfumato.tui.widgets.panel import SECOND, FrameRule, SideColumn
from sfumato.workspace.store.workspace import Workspace

from .page import CallInProcess, WorkspaceReader, unexpected_error

DETAIL_PERCENT = 40
LEAST_DETAIL = 38
"""Width of the explanation: a share of the width in per cent, reduced if the list needs more, and the least width to be
readable.
"""
LEAST_HEIGHT_BELOW = 30
"""Lines of a terminal from which an explanation may stand below its list, in the lower third."""
SIDES = 2
"""Cells of a terminal's width that the frame around both takes."""
FRAME = 4
"""Cells of the explanation that its text cannot use: a line to the left, a blank on either side, the scrollbar."""
REST_SECONDS = 0.15
"""Seconds that the cursor must rest on a row before its explanation is read."""
WAIT_SECONDS = 0.4
"""Seconds after which a text says that the explanation is being read, so that the previous one is not taken for it."""
READING = "Reading …"
DETAIL = "detail"
"""Group of the threads that read explanations."""

LaidOut = Callable[[int], Content]
"""Function that returns the explanation of a row for a width in cells."""
DetailQuery = tuple[object, object, Callable[[Workspace], LaidOut]]
"""Identity of a row, its state, and the query for its explanation."""


class Detail(OverflowScroll):
    """Explanation of the row under the cursor."""

    DEFAULT_CLASSES = SECOND
    pane_title = "Explanation"

    DEFAULT_CSS = """
    Detail {
        height: 1fr; padding: 0 0 0 1; scrollbar-size: 1 1; scrollbar-gutter: stable;
        border-left: solid $secondary;
        &:focus { border-left: heavy $primary; }
    }
    """


class _ListSide(Vertical, Backdrop):
    """List with the widgets above and below it."""


class _SplitSides(Horizontal, Backdrop):
    """List and explanation side by side, or below each other."""

    DEFAULT_CSS = "_SplitSides.below { layout: vertical; }"


class _DetailRule(FrameRule):
    """Rule above an explanation that stands below its list."""


class TwoPanes(Vertical):
    """Two panes above each other, or side by side in a terminal of ``beside_from`` columns or more."""

    def __init__(self, id: str, beside_from: int) -> None:  # noqa: A002 (Textual's name)
        """Create the panes."""
        super().__init__(id=id)
        self._beside_from = beside_from
        self.arrange_panes()

    def arrange_panes(self) -> None:
        """Arrange the panes for the terminal's width; the screen calls this when it changes."""
        self.set_class(self.app.size.width >= self._beside_from, "beside")


class SplitView(WorkspaceReader):
    """Mixin that explains the row under the cursor beside its list.

    The explanation is read in a thread once the cursor rests. ``tab`` moves the focus there to scroll it.
    """

    least_list: ClassVar[int] = 60
    """Cells in which the list has the columns that a reader needs; the explanation takes none of them."""
    full_list: ClassVar[int] = 0
    """Cells in which the list cuts no name; it has them if the explanation can still be read."""
    beside_from: ClassVar[int] = 0
    """Columns of a terminal from which the explanation stands beside the list. In a narrower one it stands below it; 0
    for beside wherever both have room, and never below.
    """
    least_height_below: ClassVar[int] = LEAST_HEIGHT_BELOW
    """Lines of a terminal from which it stands below the list."""
    _shown_row: tuple[object, object] | None = None
    _home: object = None
    _laid_out: LaidOut | None = None
    _rests: Timer | None = None

    def compose_split(self, *parts: Widget, below_detail: Sequence[Widget] = ()) -> Iterator[Widget]:
        """Yield ``parts`` above each other, and beside them the explanation with ``below_detail`` below it."""
        with _SplitSides() as both:
            with _ListSide():
                yield from parts
            rules, detail = [_DetailRule(text=Detail.pane_title)] if self.beside_from else [], Detail()
            sides = [detail, SideColumn(detail, *below_detail)] if below_detail else [detail]
            self._arrange_sides(both, rules, sides)
            yield from rules
            yield sides[-1]

    def detail_query(self) -> DetailQuery | None:
        """Return the row under the cursor and the query for its explanation; None if there is no row."""
        return None

    @property
    def is_split(self) -> bool:
        """Return whether there is room for list and explanation."""
        return self.is_below or self._detail_width > 0

    @property
    def is_below(self) -> bool:
        """Return whether the explanation stands below the list."""
        size = self.app.size
        return size.width < self.beside_from and size.height >= self.least_height_below

    @property
    def _detail_width(self) -> int:
        """Return the width of the explanation beside the list in cells; 0 if there is no room for it."""
        both = self.app.size.width - SIDES
        if self.app.size.width < self.beside_from:
            return 0
        room = both - self.full_list if self.full_list else both
        width = min(both * DETAIL_PERCENT // 100, max(LEAST_DETAIL, room), both - self.least_list)
        return width if width >= LEAST_DETAIL else 0

    @property
    def list_width(self) -> int:
        """Return the width of the list in cells."""
        return self.app.size.width - SIDES - self._detail_width

    @on(Grid.RowHighlighted)
    @on(Grid.SourceOpened)
    def follow_cursor(self) -> None:
        """Read the explanation of the row under the cursor once the cursor rests."""
        if self._rests is not None:
            self._rests.stop()
        if self.is_split:
            self._rests = self.set_timer(REST_SECONDS, self._read_detail)

    def on_resize(self) -> None:
        """Lay the explanation out in the new width, or read it if there was no room before."""
        for both in self.query(_SplitSides):
            self._arrange_sides(both, both.query(_DetailRule), [*self.query(Detail), *self.query(SideColumn)])
        if not self.is_split:
            self.call_after_refresh(self._focus_list)
        if self._laid_out is None:
            self.follow_cursor()
        else:
            self._draw_detail()

    def _arrange_sides(self, both: Widget, rules: Iterable[Widget], sides: Sequence[Widget]) -> None:
        """Place the explanation and its column beside the list or below it; they are hidden if there is no room."""
        below = self.is_below
        both.set_class(below, "below")
        for rule in rules:
            rule.display = below
        for side in sides:
            side.display = self.is_split
            side.set_class(below, "below")
            side.styles.width = "1fr" if below else max(1, self._detail_width)
            share = 3 if self.app.size.height >= LEAST_HEIGHT_BELOW else 4
            side.styles.height = self.app.size.height // share if below else "1fr"

    def _focus_list(self) -> None:
        """Focus the list if the widget with the focus was hidden."""
        # Textual would leave no widget with the focus, so that the keys of the list did nothing.
        if self.is_attached and self.is_on_screen and self.app.focused in (None, self.query_one(Detail)):
            first = next((one for one in self.query_one(_ListSide).walk_children(Widget) if one.focusable), None)
            if first is not None:
                first.focus()

    def _read_detail(self) -> None:
        """Read the explanation of the row under the cursor, unless it is shown already."""
        asked = self.detail_query() if self.is_attached else None
        if asked is None:
            self._shown_row = self._laid_out = self._home = None
            self.query_one(Detail).show_text("")
            return
        row, query = asked[:2], asked[2]
        if row == self._shown_row:
            return
        self._shown_row = row
        directory = self.sfumato.directory

        def read_row(_: CallInProcess) -> LaidOut:
            """Read the explanation on a connection of this thread."""
            with Workspace.open(directory, read_only=True) as workspace:
                return query(workspace)

        take = partial(self._show_detail, row)
        self.compute_in_processes(
            read_row,
            take,
            group=DETAIL,
            refuse=lambda text: self.AnswerReceived(take, partial(wrap_paragraphs, [text])),
        )
        # The previous explanation stays for a moment, so that the text does not flicker when a row is read quickly.
        self.set_timer(WAIT_SECONDS, partial(self._show_reading, row, self._laid_out))

    @on(Worker.StateChanged)
    def _show_detail_error(self, event: Worker.StateChanged) -> None:
        """Show an unexpected error in place of the explanation."""
        if event.worker.group == DETAIL and event.state is WorkerState.ERROR and event.worker.error is not None:
            # Forgetting the row lets it be read again when the cursor returns.
            self._shown_row = self._laid_out = self._home = None
            self.query_one(Detail).show_text(Content(unexpected_error(event.worker.error)))

    def _show_detail(self, row: tuple[object, object], laid_out: LaidOut) -> None:
        """Show an explanation from its top, unless another row is wanted by now."""
        if row == self._shown_row:
            self._laid_out = laid_out
            self._draw_detail()
            if self._home != row[0]:
                self._home = row[0]
                self.query_one(Detail).scroll_home(animate=False)

    def _show_reading(self, row: tuple[object, object], before: LaidOut | None) -> None:
        """Show that the explanation is being read, if it has not come by now."""
        if self.is_attached and row == self._shown_row and self._home != row[0] and self._laid_out is before:
            self.query_one(Detail).show_text(Content.styled(READING, "$text-muted"))

    def _draw_detail(self) -> None:
        """Lay the explanation out in the width that it has."""
        if self._laid_out is not None and self.is_split:
            width = self.app.size.width - SIDES if self.is_below else self._detail_width
            self.query_one(Detail).show_text(self._laid_out(max(20, width - FRAME)))
