"""A line of text that is repainted only when it changes, and never moves what is around it."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

__all__ = ["Line", "alike"]


class Line(Static):
    """One row; what does not fit is cut."""

    DEFAULT_CSS = "Line { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, *, name: str) -> None:
        super().__init__("", markup=False, id=name)

    def say(self, text: Content | str) -> None:
        """Show a text."""
        if not alike(self.content, text):
            self.update(text, layout=False)


def alike(shown: object, text: Content | str) -> bool:
    """Whether two texts are the same to the eye: for Textual those are equal that have the same characters."""
    if isinstance(shown, Content) and isinstance(text, Content):
        return shown.is_same(text)
    return type(shown) is type(text) and shown == text
