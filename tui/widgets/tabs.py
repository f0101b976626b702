"""A line of tabs: numbered, so that a digit leads to each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget


class TabLine(Widget, can_focus=True):
    """Titles by name; the active one stands out by brackets as well as by colour."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(-1)", "Tab to the left", show=False, id="tabs.left"),
        Binding("right,l", "step(1)", "Tab to the right", show=False, id="tabs.right"),
    ]

    active: reactive[str] = reactive("")

    @dataclass
    class Chosen(Message):
        """The user wants the tab called ``name``."""

        name: str

    def __init__(self, titles: Mapping[str, str]) -> None:
        super().__init__()
        self._titles = dict(titles)

    def render(self) -> Content:
        """The titles in a line."""
        return self._line()

    def _line(self) -> Content:
        chosen = "$foreground bold reverse" if self.has_focus else "$primary bold"
        parts = [(text, chosen if name == self.active else "dim") for name, text in self._texts()]
        return Content.assemble(*(piece for part in parts for piece in (part, " ")))

    def _texts(self) -> list[tuple[str, str]]:
        return [
            (name, f"[{number} {title}]" if name == self.active else f" {number} {title} ")
            for number, (name, title) in enumerate(self._titles.items(), start=1)
        ]

    def action_step(self, tabs: int) -> None:
        """Choose the tab so many to the right."""
        names = list(self._titles)
        self.post_message(self.Chosen(names[(names.index(self.active) + tabs) % len(names)]))

    def on_click(self, event: events.Click) -> None:
        """Choose the tab that was clicked."""
        at = event.get_content_offset(self)
        start = 0
        for name, text in self._texts():
            if at is not None and start <= at.x < start + len(text):
                self.post_message(self.Chosen(name))
            start += len(text) + 1
