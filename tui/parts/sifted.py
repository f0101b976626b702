"""What a screen whose rows can be sifted by words has: the key, the field to type them in, and what is done with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Input

from sfumato.tui.keys.acts import bind
from sfumato.tui.widgets.entries import Filter
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.tui.widgets.sifting import HINT


class Sifted(Widget):
    """Its grid shows the rows that have the words, while they are typed; escape brings back those from before. Words that hold stay in sight."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("filter", "sift", "Filter"),
    ]
    DEFAULT_CSS = ".sift { display: none; }"

    _before = ""

    def compose_sift(self) -> Iterator[Widget]:
        """The field, out of sight until it is asked for."""
        yield Filter(placeholder=HINT, classes="sift")

    def action_sift(self) -> None:
        """Ask for words that rows must have."""
        field, grid = self.query_one(".sift", Filter), self.query_one(MarkedGrid)
        self._before = field.value = grid.words
        field.display = True
        field.focus()

    def sift_by(self, words: str) -> None:
        """Show the rows that have these words."""
        self.query_one(MarkedGrid).sift(words)
        self.sifted()
        self._leave()

    @on(Input.Changed, ".sift")
    def _sift(self, event: Input.Changed) -> None:
        event.stop()
        if event.input.display:
            self.query_one(MarkedGrid).sift(event.value.strip())
            self.sifted()

    @on(Input.Submitted, ".sift")
    def _keep_words(self, event: Input.Submitted) -> None:
        event.stop()
        self._leave()

    @on(Filter.Left)
    def _drop_words(self, event: Filter.Left) -> None:
        event.stop()
        self.query_one(MarkedGrid).sift(self._before)
        self.sifted()
        self._leave()

    def _leave(self) -> None:
        field, grid = self.query_one(".sift", Filter), self.query_one(MarkedGrid)
        grid.focus()
        field.value = grid.words
        field.display = bool(grid.words)

    def sifted(self) -> None: ...
