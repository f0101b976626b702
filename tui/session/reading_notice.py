"""Notice that a file is being read: shown for as long as that may take, and removed when it is over."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

NOTICE_SECONDS = 5.0
BYTES_A_SECOND = 4 << 20
"""Of a file that is imported, on a machine that has much else to do."""


class ShowsNotices(Protocol):
    """Interface of the app that the notice uses."""

    def say(self, text: str, severity: Any = "information", seconds: float | None = None) -> None:
        """Show a message for ``seconds`` seconds, and keep it in the list of notices."""

    def clear_notifications(self) -> None: ...


class ReadingNotice:
    """Notice that a file is being read, shown by the app from ``begin`` to ``end``."""

    def __init__(self, app: ShowsNotices) -> None:
        self._app = app
        self._shown = False

    def begin(self, file: str) -> None:
        """Show that a file is being read, with the size of a large one."""
        path = Path(file).expanduser()
        size = path.stat().st_size if path.is_file() else 0
        seconds = NOTICE_SECONDS + size / BYTES_A_SECOND
        much = f" ({size >> 20:,} MiB)" if seconds > 2 * NOTICE_SECONDS else ""
        self._app.say(f"{path.name}{much} is being read", seconds=seconds)
        self._shown = True

    def end(self) -> None:
        """Remove the notice, if it is shown."""
        if self._shown:
            self._app.clear_notifications()
        self._shown = False
