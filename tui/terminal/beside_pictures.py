"""Write to the app's terminal besides its pictures."""

from __future__ import annotations

from typing import Any

from textual.app import App


def send_to_terminal(app: App[Any], text: str) -> None:
    """Write to the app's terminal, between two pictures.

    Nothing is written without a terminal. If Textual has changed its driver, the bell rings instead.
    """
    driver = getattr(app, "_driver", None)
    if not text or app.is_headless:
        return
    if driver is None:
        app.bell()
    else:
        driver.write(text)
