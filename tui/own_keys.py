"""The key that a binding has now: as it comes, or as the user's own keys have it."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.keys import format_key

from .app_protocol import app_of

MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
"""Keys that do nothing by themselves."""


def key_for(app: App[Any], name: str, default: str) -> str:
    """The key that a binding has now, as the terminal names it; ``default`` where the user has given it none."""
    given = app_of(app).own_keys.get(name)
    return default if given is None else format_key(given.partition(",")[0])
