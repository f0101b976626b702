"""Messages of this session: a toast goes, its text stays here."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from sfumato.tui.widgets.scroll import Scroll

from .page import Dialog


class Notices(Dialog[None]):
    """What the app has said since it started, the last first."""

    AUTO_FOCUS = "Scroll"

    def __init__(self, notices: Sequence[str]) -> None:
        super().__init__()
        self._notices = notices

    def compose(self) -> ComposeResult:
        """A title and text that scrolls."""
        with Vertical(classes="dialog tall"):
            yield Static("Messages   (q closes)", classes="dialog-title", markup=False)
            yield Scroll("\n\n".join(reversed(self._notices)) or "Nothing has been said yet.")
