"""A recipe's text to edit."""

from __future__ import annotations

import re
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea


class TomlText(TextArea):
    """TOML; escape leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back to the list", id="toml.leave"),
    ]

    class Left(Message):
        """The user is done with the text."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, compact=True, soft_wrap=False, highlight_cursor_line=False)
        self.cursor_blink = False

    def action_leave(self) -> None:
        """Say that the user is done."""
        self.post_message(self.Left())

    def show_table(self, section: str, index: int) -> None:
        """Scroll to a table: ``[section]``, or the ``[[section]]`` with this index."""
        header = re.compile(rf"\s*\[\[?\s*{re.escape(section)}\s*\]")
        rows = [row for row, line in enumerate(self.document.lines) if header.match(line)]
        if index < len(rows):
            self.move_cursor((rows[index], 0))
            self.scroll_to(y=max(0, rows[index] - 1), animate=False)
