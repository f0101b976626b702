"""What is written to the app's terminal beside its pictures."""

from __future__ import annotations

from typing import Any

from textual.app import App


def send(app: App[Any], text: str) -> None:
    """Write to the app's terminal, between two pictures; nothing where it has none. The bell alone where Textual changed."""
    driver = getattr(app, "_driver", None)
    if not text or app.is_headless:
        return
    if driver is None:
        app.bell()
    else:
        driver.write(text)
