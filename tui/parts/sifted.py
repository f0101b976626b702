"""Mixin for screens whose rows can be filtered by words: the key, the field, and the filtering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Input

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.entries import FilterField
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.tui.widgets.sifting import HINT


class FilteredList(Widget):
    """Mixin that filters the rows of its grid while words are typed.

    Escape restores the previous words; words in effect stay visible.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("filter", "sift", "Filter"),
    ]
    DEFAULT_CSS = ".sift { display: none; }"

    _before = ""

    def compose_filter(self) -> Iterator[Widget]:
        """Yield the field for words, hidden at first."""
        yield FilterField(placeholder=HINT, classes="sift")

    def action_sift(self) -> None:
        """Show the field for words that rows must contain."""
        field, grid = self.query_one(".sift", FilterField), self.query_one(MarkedGrid)
        self._before = field.value = grid.filter_words
        field.display = True
        field.focus()

    @property
    def filter_words(self) -> str:
        """Return the words that the rows have."""
        return self.query_one(MarkedGrid).filter_words

    def filter_rows(self, words: str) -> None:
        """Show the rows that contain these words."""
        self.query_one(MarkedGrid).filter_by(words)
        self.show_filter_result()
        self._leave_filter()

    @on(Input.Changed, ".sift")
    def _filter_typed(self, event: Input.Changed) -> None:
        """Filter by the words typed so far."""
        event.stop()
        # The field also changes while it is hidden, when it takes the words in effect.
        if event.input.display:
            self.query_one(MarkedGrid).filter_by(event.value.strip())
            self.show_filter_result()

    @on(Input.Submitted, ".sift")
    def _accept_filter(self, event: Input.Submitted) -> None:
        """Keep the filter and return to the grid."""
        event.stop()
        self._leave_filter()

    @on(FilterField.FilterCancelled)
    def _restore_filter(self, event: FilterField.FilterCancelled) -> None:
        """Restore the previous words and return to the grid."""
        event.stop()
        self.query_one(MarkedGrid).filter_by(self._before)
        self.show_filter_result()
        self._leave_filter()

    def _leave_filter(self) -> None:
        """Return to the grid, and hide the field unless words are in effect."""
        field, grid = self.query_one(".sift", FilterField), self.query_one(MarkedGrid)
        grid.focus()
        field.value = grid.filter_words
        field.display = bool(grid.filter_words)

    def show_filter_result(self) -> None: ...
