"""One of many, found by typing words of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from sfumato.tui.widgets.entry import Entry
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.pages import PAGE, TableRow
from sfumato.workspace.reporting.tables import Column
from sfumato.workspace.reporting.words import printable

from .page import Dialog

__all__ = ["Choose"]


@dataclass(frozen=True)
class Matches:
    """The choices at ``places``, in one column; each row ends with its place."""

    name: Callable[[int], str]
    places: Sequence[int]
    columns: Sequence[Column]

    def count(self) -> int:
        """How many there are."""
        return len(self.places)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Some of them."""
        return [(printable(self.name(place)), place) for place in self.places[offset : offset + limit]]


class Choose(Dialog[int]):
    """Answers the place of the choice, from 0. ``name`` is called in a thread, for all only once words are typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "step(1)", "Down", show=False, priority=True, id="choose.down"),
        Binding("up", "step(-1)", "Up", show=False, priority=True, id="choose.up"),
    ]
    DEFAULT_CSS = """
    Choose Grid > .grid--cursor { text-style: reverse; }
    Choose #choose-whole { height: 2; color: $text-muted; }
    """
    AUTO_FOCUS = "Input"

    @dataclass
    class Matched(Message):
        """These have the words; the cursor belongs on row ``at``."""

        found: Matches
        at: int

    def __init__(self, title: str, total: int, name: Callable[[int], str], chosen: int) -> None:
        super().__init__()
        self._title, self._total, self._name_of, self._chosen = title, total, name, chosen
        self._searched: Sequence[str] = ()
        self._settled = self._accepting = False

    def compose(self) -> ComposeResult:
        """A field for words, and what has them all."""
        with Vertical(classes="dialog tall"):
            yield Static(
                f"{self._title}   (words to find it, enter chooses, escape closes)",
                classes="dialog-title",
                markup=False,
            )
            yield Entry(placeholder="words that must occur", id="choose-words")
            yield Grid(empty="None has these words.")
            yield Static("", id="choose-whole", markup=False)

    def on_mount(self) -> None:
        """Show them all, the present one marked."""
        self._match("")

    def _match(self, words: str) -> None:
        self._settled = False
        self._find(words.lower().split())

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _find(self, words: list[str]) -> None:
        worker = get_current_worker()
        places: Sequence[int] = range(self._total)
        if words:
            self._searched = self._searched or [self._name_of(place).lower() for place in places]
            places = [i for i, text in enumerate(self._searched) if all(word in text for word in words)]
        widest = max((cell_len(printable(self._name_of(place))) for place in places[:PAGE]), default=0)
        column = Column("choice", f"{len(places):,} of {self._total:,}", widest)
        found = Matches(self._name_of, places, (column,))
        if not worker.is_cancelled:
            self.post_message(self.Matched(found, places.index(self._chosen) if self._chosen in places else 0))

    @on(Matched)
    def _show(self, event: Matched) -> None:
        offer = self.query_one(Grid)
        longest = event.found.columns[0].width
        self.query_one("#choose-whole").display = longest > offer.scrollable_content_region.width - 2
        offer.return_to(str(event.at))
        offer.set_source(event.found)

    @on(Grid.Highlighted)
    def _show_whole(self, event: Grid.Highlighted) -> None:
        whole = "" if event.row is None else str(event.row[0])
        self.query_one("#choose-whole", Static).update(whole)

    @on(Grid.Opened)
    def _settle(self) -> None:
        self._settled = True
        if self._accepting:
            self._submit()

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        self._match(event.value)

    def action_step(self, step: int) -> None:
        """Mark the next choice, or the one before; after the last comes the first."""
        offer = self.query_one(Grid)
        if offer.count:
            offer.cursor = (offer.cursor + step) % offer.count

    @on(Input.Submitted)
    def _submit(self) -> None:
        self._accepting = not self._settled
        if self._settled:
            self.query_one(Grid).action_select()

    @on(Grid.Selected)
    def _select(self, event: Grid.Selected) -> None:
        if isinstance(event.row[-1], int):
            self.dismiss(event.row[-1])
