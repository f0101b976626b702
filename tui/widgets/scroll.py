"""A pane of text that scrolls with the keys of a pager."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from .line import alike


class Scroll(VerticalScroll, can_focus=True, inherit_bindings=False):
    """Text that may be longer than the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "lines(-1)", "Up", show=False, id="scroll.up"),
        Binding("down,j", "lines(1)", "Down", show=False, id="scroll.down"),
        Binding("pageup", "pages(-1)", "Page up", show=False, id="scroll.page_up"),
        Binding("pagedown,space", "pages(1)", "Page down", show=False, id="scroll.page_down"),
        Binding("ctrl+u", "pages(-0.5)", "Half a page up", show=False, id="scroll.half_up"),
        Binding("ctrl+d", "pages(0.5)", "Half a page down", show=False, id="scroll.half_down"),
        Binding("home,g", "ends(0)", "Top", show=False, id="scroll.top"),
        Binding("end,G", "ends(1)", "Bottom", show=False, id="scroll.bottom"),
    ]

    def __init__(self, text: Content | str = "") -> None:
        super().__init__()
        self._text = Static(text, markup=False)

    def compose(self) -> ComposeResult:
        """The text."""
        yield self._text

    def show(self, text: Content | str) -> None:
        """Show another text, from where the reader was."""
        shown = self._text.content
        if not alike(shown, text):
            self._text.update(text, layout=shown != text)

    def action_lines(self, lines: int) -> None:
        """Scroll by lines."""
        self.scroll_relative(y=lines, animate=False)

    def action_pages(self, pages: float) -> None:
        """Scroll by screens."""
        self.scroll_relative(y=round(pages * self.scrollable_content_region.height), animate=False)

    def action_ends(self, end: int) -> None:
        """Scroll to the top (0) or the bottom (1)."""
        self.scroll_to(y=self.max_scroll_y * end, animate=False)
