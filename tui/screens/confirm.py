"""A question before something is stopped: No has the focus."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from .page import Dialog


class Confirm(Dialog[bool]):
    """Answers True only for a deliberate Yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "close", "No", id="confirm.no"),
        Binding("y", "agree", "Yes", id="confirm.yes"),
        Binding("left,right,h,l", "app.focus_next", "Other answer", show=False, id="confirm.other"),
    ]
    AUTO_FOCUS = "#no"

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self._question, self._consequence = question, consequence

    def compose(self) -> ComposeResult:
        """The question, what follows, and two answers."""
        with Vertical(classes="dialog"):
            yield Static(self._question, classes="dialog-title", markup=False)
            yield Static(self._consequence, markup=False)
            with Horizontal(classes="buttons"):
                yield Button("No", id="no", compact=True)
                yield Button("Yes", id="yes", variant="error", compact=True)

    @on(Button.Pressed, "#yes")
    def action_agree(self) -> None:
        """Yes."""
        self.dismiss(True)

    @on(Button.Pressed, "#no")
    def action_close(self) -> None:
        """No."""
        self.dismiss(False)
