"""Every key of the app by the name of its binding, and which bindings can meet on one screen."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys, format_key
from textual.screen import Screen

import sfumato.tui.screens
import sfumato.tui.terminal
import sfumato.tui.widgets

__all__ = ["Bound", "bindings", "is_key", "long_name", "meet"]

MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
BLANKS = {",": "comma", " ": "space"}
"""What a list of keys is written with."""
NAMED = frozenset(key.value for key in Keys)


@dataclass(frozen=True)
class Bound:
    """A binding: ``keys`` do what ``description`` says wherever an ``owner`` has a say."""

    id: str
    keys: tuple[str, ...]
    description: str
    owner: type[DOMNode]


def _modules() -> Iterator[ModuleType]:
    for package in (sfumato.tui.screens, sfumato.tui.widgets, sfumato.tui.terminal):
        for info in pkgutil.iter_modules(package.__path__):
            yield importlib.import_module(f"{package.__name__}.{info.name}")
    yield importlib.import_module("sfumato.tui.app")


def _declared(owner: type[DOMNode]) -> Iterator[Bound]:
    for binding in vars(owner).get("BINDINGS", ()):
        if isinstance(binding, Binding) and binding.id:
            yield Bound(binding.id, tuple(binding.key.split(",")), binding.description, owner)


@cache
def bindings() -> Sequence[Bound]:
    """Every binding of the app, of its screens and of their widgets. Imports them all."""
    found = [
        bound
        for module in _modules()
        for kind in _kinds(module)
        if kind.__module__ == module.__name__
        for bound in _declared(kind)
    ]
    return sorted(found, key=lambda bound: (not issubclass(bound.owner, App), bound.owner.__module__))


def long_name(key: str) -> str:
    """``question_mark`` for ``?``."""
    if len(key) > 1:
        return key
    return BLANKS.get(key) or next(iter(Binding.make_bindings([Binding(key, "name")]))).key


def is_key(key: str) -> bool:
    """Whether a terminal can have such a key: ``f4``, ``ctrl+r``, ``question_mark``, ``?``."""
    *modifiers, name = key.split("+") if len(key) > 1 else [key]
    known = len(name) == 1 or name in NAMED or key in NAMED or len(format_key(name)) == 1
    return known and all(modifier in MODIFIERS for modifier in modifiers)


def meet(one: Bound, other: Bound) -> bool:
    """Whether a key of both could mean either on some screen."""
    first, second = one.owner, other.owner
    if (
        any(issubclass(owner, App) for owner in (first, second))
        or issubclass(first, second)
        or issubclass(second, first)
    ):
        return True
    return _shows(first, second) or _shows(second, first)


def _shows(outer: type[DOMNode], inner: type[DOMNode]) -> bool:
    """Whether what is an ``outer`` can have an ``inner`` in it, or be one too."""
    kinds = [kind for kind in _screens() if issubclass(kind, outer)] or [outer]
    return any(issubclass(part, inner) for kind in kinds for part in (kind, *_parts(kind)))


@cache
def _screens() -> frozenset[type[DOMNode]]:
    return frozenset(kind for module in _modules() for kind in _kinds(module) if issubclass(kind, Screen))


def _kinds(module: ModuleType) -> Iterator[type[DOMNode]]:
    """The classes of ours that a module knows."""
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, DOMNode) and value.__module__.startswith("sfumato.tui."):
            yield value


@cache
def _parts(owner: type[DOMNode]) -> frozenset[type[DOMNode]]:
    """The widgets that a screen or widget can be made of: those its module knows, and theirs."""
    found: set[type[DOMNode]] = set()
    waiting = [owner]
    while waiting:
        known = _kinds(importlib.import_module(waiting.pop().__module__))
        new = {kind for kind in known if not issubclass(kind, (Screen, App))} - found
        found |= new
        waiting += new
    return frozenset(found - {owner})
