"""One of many, found by typing words of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui.widgets.entry import Entry
from tui.widgets.text import printable

from .page import Dialog


class Choose(Dialog[int]):
    """Answers the place of the choice, from 0."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "step(1)", "Down", show=False, priority=True, id="choose.down"),
        Binding("up", "step(-1)", "Up", show=False, priority=True, id="choose.up"),
    ]
    DEFAULT_CSS = "Choose OptionList { height: 1fr; margin-top: 1; }"
    AUTO_FOCUS = "Input"

    def __init__(self, title: str, choices: Sequence[str], chosen: int) -> None:
        super().__init__()
        self._title, self._choices, self._chosen = title, choices, chosen

    def compose(self) -> ComposeResult:
        """A field for words, and what has them all."""
        with Vertical(classes="dialog tall"):
            yield Static(
                f"{self._title}   (words to find it, enter chooses, escape closes)",
                classes="dialog-title",
                markup=False,
            )
            yield Entry(placeholder="words that must occur", id="choose-words")
            yield OptionList(compact=True)

    def on_mount(self) -> None:
        """Show them all, the present one marked."""
        self._fill("")

    def _fill(self, words: str) -> None:
        found = [
            i for i, text in enumerate(self._choices) if all(word in text.lower() for word in words.lower().split())
        ]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(Content(printable(self._choices[i])), id=str(i)) for i in found])
        options.highlighted = None if not found else found.index(self._chosen) if self._chosen in found else 0

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        self._fill(event.value)

    def action_step(self, step: int) -> None:
        """Mark the next choice, or the one before."""
        options = self.query_one(OptionList)
        if options.option_count:
            options.highlighted = ((options.highlighted or 0) + step) % options.option_count

    @on(Input.Submitted)
    def _submit(self) -> None:
        option = self.query_one(OptionList).highlighted_option
        if option is not None:
            self.dismiss(int(str(option.id)))

    @on(OptionList.OptionSelected)
    def _select(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(int(str(event.option_id)))
