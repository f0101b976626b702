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
        parts = [(text, chosen if name == self.active else "$text-muted") for name, text in self._texts()]
        return Content.assemble(*(piece for part in parts for piece in (part, " ")))

    def _texts(self) -> list[tuple[str, str]]:
        """Names and what stands for them; where there is no room, the others lose their blanks and then their ends."""
        longest = max(map(len, self._titles.values()), default=0)
        fitting = (room for room in range(longest, 2, -1) if self._needed(room) <= self.content_size.width)
        room = next(fitting, 2)
        return [(name, self._text(number, name, room)) for number, name in enumerate(self._titles, start=1)]

    def _needed(self, room: int) -> int:
        """Cells that the line takes with titles cut to ``room``."""
        texts = [self._text(number, name, room) for number, name in enumerate(self._titles, start=1)]
        return sum(len(text) + 1 for text in texts) - 1

    def _text(self, number: int, name: str, room: int) -> str:
        title = self._titles[name]
        if name == self.active:
            return f"[{number} {title}]"
        wide = sum(len(title) + 5 for title in self._titles.values()) <= self.content_size.width + 1
        return f" {number} {title} " if wide else f"{number} {title[:room]}"

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
