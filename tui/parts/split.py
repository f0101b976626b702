"""A list and what there is to say of its row under the cursor, side by side where both have room; elsewhere the list alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar

from textual import on
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from sfumato.tui.terminal.painting import Backdrop
from sfumato.tui.widgets.facts import lines_in
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import Scroll
from sfumato.tui.widgets.panel import SECOND
from sfumato.workspace.store.workspace import Workspace

from .page import Beside, Reads, unexpected_error

DETAIL_PERCENT = 40
LEAST_DETAIL = 38
"""Cells of the detail: a share of the width, less where the list needs more, and none where that would be too little to read."""
SIDES = 2
"""Cells of a terminal's width that the frame around both takes."""
FRAME = 4
"""Cells of the detail that are not for its text: a line to the left, a blank either side, the scrollbar."""
REST_SECONDS = 0.15
"""A row is read in detail once the cursor has stood on it for so long."""
WAIT_SECONDS = 0.4
"""What takes longer to read gives way to a word that it is being read: by then nobody takes it for the row before."""
READING = "Reading …"
DETAIL = "detail"
"""The group of the threads that read a row."""

LaidOut = Callable[[int], Content]
"""The detail of a row for a width in cells."""
DetailQuery = tuple[object, object, Callable[[Workspace], LaidOut]]
"""Which row it is, the state that it is in, and how its detail is read."""


class Detail(Scroll):
    """The row under the cursor, in full."""

    DEFAULT_CLASSES = SECOND
    pane_title = "Explanation"

    DEFAULT_CSS = """
    Detail {
        height: 1fr; padding: 0 0 0 1; scrollbar-size: 1 1; scrollbar-gutter: stable;
        border-left: solid $primary;
        &:focus { border-left: heavy $primary; }
    }
    """

    def take(self, width: int) -> None:
        """Be so many cells wide, or not there for 0."""
        self.display = width > 0
        self.styles.width = max(1, width)


class _Side(Vertical, Backdrop):
    """The list with what stands above and below it."""


class _Sides(Horizontal, Backdrop):
    pass


class TwoPanes(Vertical):
    """Two panes above each other; beside each other, of the class ``beside``, in a terminal of ``beside_from`` columns or more."""

    def __init__(self, id: str, beside_from: int) -> None:  # noqa: A002 (Textual's name)
        super().__init__(id=id)
        self._beside_from = beside_from
        self.lay_out()

    def lay_out(self) -> None:
        """Stand as the terminal has room; the screen says when that changes."""
        self.set_class(self.app.size.width >= self._beside_from, "beside")


class Split(Reads):
    """Has the row under the cursor in full beside its list, read in a thread once the cursor rests. ``tab`` goes there to scroll it."""

    least_list: ClassVar[int] = 60
    """Cells in which the list has the columns that a reader needs; the detail takes none of them."""
    full_list: ClassVar[int] = 0
    """Cells in which it cuts no name: it has them where the detail can still be read."""
    _shown_row: tuple[object, object] | None = None
    _home: object = None
    _laid_out: LaidOut | None = None
    _rests: Timer | None = None

    def compose_split(self, *parts: Widget) -> Iterator[Widget]:
        """``parts``, above each other, and beside them the detail."""
        with _Sides():
            with _Side():
                yield from parts
            detail = Detail()
            detail.take(self._detail_width)
            yield detail

    def detail_query(self) -> DetailQuery | None:
        """The row under the cursor, and how it is read; None where there is none."""
        return None

    @property
    def is_split(self) -> bool:
        """Whether there is room for both."""
        return self._detail_width > 0

    @property
    def _detail_width(self) -> int:
        both = self.app.size.width - SIDES
        room = both - self.full_list if self.full_list else both
        width = min(both * DETAIL_PERCENT // 100, max(LEAST_DETAIL, room), both - self.least_list)
        return width if width >= LEAST_DETAIL else 0

    @property
    def list_width(self) -> int:
        return self.app.size.width - SIDES - self._detail_width

    @on(Grid.Highlighted)
    @on(Grid.Opened)
    def follow(self) -> None:
        """Show the row under the cursor, once that rests."""
        if self._rests is not None:
            self._rests.stop()
        if self.is_split:
            self._rests = self.set_timer(REST_SECONDS, self._read_detail)

    def on_resize(self) -> None:
        """Break the lines anew, or read what there was no room for; the list has the keys where it is alone."""
        for detail in self.query(Detail):
            detail.take(self._detail_width)
        if not self.is_split:
            self.call_after_refresh(self._give_keys_back)
        if self._laid_out is None:
            self.follow()
        else:
            self._lay_out()

    def _give_keys_back(self) -> None:
        """Textual leaves nobody with the keys when what has them goes out of sight."""
        if self.is_attached and self.is_on_screen and self.app.focused in (None, self.query_one(Detail)):
            first = next((one for one in self.query_one(_Side).walk_children(Widget) if one.focusable), None)
            if first is not None:
                first.focus()

    def _read_detail(self) -> None:
        asked = self.detail_query() if self.is_attached else None
        if asked is None:
            self._shown_row = self._laid_out = self._home = None
            self.query_one(Detail).show("")
            return
        row, query = asked[:2], asked[2]
        if row == self._shown_row:
            return
        self._shown_row = row
        directory = self.sfumato.directory

        def ask(_: Beside) -> LaidOut:
            with Workspace.open(directory, read_only=True) as workspace:
                return query(workspace)

        take = partial(self._take_detail, row)
        self.call_beside(ask, take, group=DETAIL, refuse=lambda text: self.Answered(take, partial(lines_in, [text])))
        self.set_timer(WAIT_SECONDS, partial(self._say_reading, row, self._laid_out))

    @on(Worker.StateChanged)
    def _detail_failed(self, event: Worker.StateChanged) -> None:
        """Say beside the list what nobody had foreseen, and read the row again when the cursor comes back to it."""
        if event.worker.group == DETAIL and event.state is WorkerState.ERROR and event.worker.error is not None:
            self._shown_row = self._laid_out = self._home = None
            self.query_one(Detail).show(Content(unexpected_error(event.worker.error)))

    def _take_detail(self, row: tuple[object, object], laid_out: LaidOut) -> None:
        if row == self._shown_row:
            self._laid_out = laid_out
            self._lay_out()
            if self._home != row[0]:
                self._home = row[0]
                self.query_one(Detail).scroll_home(animate=False)

    def _say_reading(self, row: tuple[object, object], before: LaidOut | None) -> None:
        if self.is_attached and row == self._shown_row and self._home != row[0] and self._laid_out is before:
            self.query_one(Detail).show(Content.styled(READING, "$text-muted"))

    def _lay_out(self) -> None:
        if self._laid_out is not None and self.is_split:
            self.query_one(Detail).show(self._laid_out(max(20, self._detail_width - FRAME)))
