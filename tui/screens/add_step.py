"""Choosing what a plan is to do next: every method by its kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from sfumato.tui.widgets.entry import Entry

from .page import Dialog

__all__ = ["AddStep"]


class AddStep(Dialog[str]):
    """Answers a method's key, or ``threshold``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "focused.cursor_down", "Down", show=False, id="add_step.down"),
        Binding("k", "focused.cursor_up", "Up", show=False, id="add_step.up"),
        Binding("slash", "search", "Search", key_display="/", id="add_step.search"),
    ]
    AUTO_FOCUS = "OptionList"

    @dataclass
    class Arrived(Message):
        """The methods were found."""

        methods: list[tuple[str, str]]

    def __init__(self) -> None:
        super().__init__()
        self._methods: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        """The methods, and a field to search them."""
        with Vertical(classes="dialog tall"):
            yield Static("Add a step   (enter chooses, / searches, q closes)", classes="dialog-title", markup=False)
            yield OptionList(compact=True, markup=False)
            yield Entry(placeholder="search")

    def on_mount(self) -> None:
        """Have the methods found."""
        self._find()

    @work(thread=True, exit_on_error=False)
    def _find(self) -> None:
        from sfumato.engine.methods import registry

        found = [(method.key, method.title) for method in registry().values()]
        self.post_message(self.Arrived([*found, ("threshold", "A limit that a measure must keep")]))

    @on(Arrived)
    def _take(self, event: Arrived) -> None:
        self._methods = event.methods
        self._list()

    @on(Input.Changed)
    def _list(self) -> None:
        sought = self.query_one(Input).value.strip().lower()
        found = [(key, title) for key, title in self._methods if sought in f"{key} {title}".lower()]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(f"{key:<42} {title}", id=key) for key, title in found])
        options.highlighted = 0 if found else None

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(str(event.option_id))

    @on(Input.Submitted)
    def _submit(self) -> None:
        chosen = self.query_one(OptionList).highlighted_option
        if chosen is not None:
            self.dismiss(str(chosen.id))

    def action_search(self) -> None:
        """Type a part of a method's name."""
        self.query_one(Input).focus()
