"""The present key of an act: the default one, or the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from textual.app import App
from textual.keys import format_key

from .acts import BY_NAME

MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
"""Keys that do nothing by themselves."""
NAMES = {"enter": "enter"}
"""Displayed names of keys whose sign is in few fonts."""


class HasOwnKeys(Protocol):
    """Protocol of an app whose user may have changed keys."""

    @property
    def own_keys(self) -> Mapping[str, str]:
        """Return the keys that the user has changed, by the name of their act."""


def key_text(key: str) -> str:
    """Return a key as people read it: ``?``, ``ctrl+r``, ``enter``."""
    *modifiers, name = key.split("+") if len(key) > 1 else [key]
    return "+".join([*modifiers, NAMES.get(name, format_key(name))])


def current_key(app: App[Any], act: str) -> str:
    """Return the first present key of an act, as people read it; without one, that of the palette."""
    given = cast("HasOwnKeys", app).own_keys.get(act)
    keys = BY_NAME[act].keys if given is None else given.split(",")
    return key_text(keys[0]) if keys else current_key(app, "palette")
