"""One of a few words, chosen with the arrows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget


class Choice(Widget, can_focus=True):
    """Shows the words in a line, the chosen one in brackets; what has no room is left out around it."""

    DEFAULT_CSS = "Choice { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l,space", "step(1)", "Next choice", show=False, id="choice.next"),
        Binding("left,h", "step(-1)", "Choice before", show=False, id="choice.before"),
    ]

    value: reactive[str] = reactive("")

    @dataclass
    class Changed(Message):
        """Another word was chosen."""

        choice: Choice

        @property
        def control(self) -> Choice:
            """The choice, for ``@on`` with a selector."""
            return self.choice

    def __init__(
        self,
        words: Sequence[str],
        value: str,
        *,
        id: str | None = None,  # noqa: A002  (Textual's name)
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._words = tuple(words)
        self.set_reactive(Choice.value, value)

    def render(self) -> Content:
        """The words."""
        chosen = "reverse bold" if self.has_focus else "bold"
        parts = [(f"[{w}]", chosen) if w == self.value else (f" {w} ", "$text-muted") for w in self._words]
        if self.value not in self._words:
            parts.insert(0, (f"[{self.value}]", chosen))
        at = max((i for i, (text, _) in enumerate(parts) if text == f"[{self.value}]"), default=0)
        while at > 0 and sum(len(text) for text, _ in parts[: at + 1]) > self.size.width:
            del parts[0]
            at -= 1
        return Content.assemble(*parts)

    def action_step(self, by: int) -> None:
        """Choose the next word, or the one before."""
        at = self._words.index(self.value) if self.value in self._words else -1
        self.value = self._words[(at + by) % len(self._words)]
        self.post_message(self.Changed(self))
