"""Every key of the app by the name of its binding; and the user's own keys.

``keys.toml`` names bindings and says which keys do what they do; what is not named keeps its keys:

    app.help = "f2"
    runs.again = ["s", "ctrl+s"]
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys, format_key
from textual.screen import Screen

import sfumato.tui.screens
import sfumato.tui.terminal
import sfumato.tui.widgets
from sfumato.engine.errors import suggestion
from sfumato.tui.own_keys import MODIFIERS
from sfumato.workspace.errors import StrangeFile
from sfumato.workspace.plain_files import read_plain

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


SAME = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace", "ctrl+j": "enter", "ctrl+[": "escape"}
"""Keys that terminals cannot tell from others."""
MOST_BYTES = 100_000
_MEASURES = ("next_measure", "previous_measure")
RENAMED = {
    "sweep.next_study": "study.next",
    "sweep.previous_study": "study.previous",
    "calibrate.study": "study.next",
    "minimise.study": "study.next",
    "project.calibrate": "project.planes",
    "project.minimise": "project.limits",
    **{f"sweep.{name}": f"study.{name}" for name in (*_MEASURES, "log", "numbers")},
    **{f"calibrate.{name}": f"study.{name}" for name in (*_MEASURES, "higher", "lower", "suggested", "part")},
    **{f"minimise.{name}": f"study.{name}" for name in (*_MEASURES, "numbers")},
}
"""What bindings were called before one screen showed every study; files of keys may say it still."""


class BadKeymap(Exception):
    """The file of keys cannot be used; the text names file and line."""


def read_keymap(file: Path) -> dict[str, str]:
    """The keys by name of binding, as ``App.set_keymap`` takes them; empty where there is no file. Raises BadKeymap."""
    try:
        text = read_plain(file, MOST_BYTES, follow=True).decode("utf-8") if file.exists() else ""
    except StrangeFile as error:
        raise BadKeymap(f"{file}: it is {error.kind}, not a file of keys") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadKeymap(f"{file}: it cannot be read as text: {error}") from None
    try:
        asked = dict(_flat(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise BadKeymap(f"{file}: {error}") from None
    written = {RENAMED.get(name, name): name for name in asked}
    asked = {name: asked[old] for name, old in written.items()}
    problem = next(_problems(asked), None)
    if problem is not None:
        name, said = problem
        raise BadKeymap(f"{file}:{_line_of(text, written[name])}: {said}")
    return {name: ",".join(long_name(key) for key in _keys(value)) for name, value in asked.items()}


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _keys(value: Any) -> list[str]:
    """``"f1, ctrl+h"`` or a list; none where it is neither."""
    if isinstance(value, str):
        return [value] if value in (",", " ") else [key.strip() for key in value.split(",")]
    return value if isinstance(value, list) and all(isinstance(key, str) for key in value) else []


def _problems(asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with an entry, by its name."""
    known = {bound.id: bound for bound in bindings()}
    for name, value in asked.items():
        if name not in known:
            yield name, f'there is nothing called "{name}" to give keys to{suggestion(name, known)}'
        elif not _keys(value):
            yield name, f'{name} must be a key such as "f4", or a list of them'
        else:
            yield from ((name, said) for said in map(_wrong, _keys(value)) if said)
    yield from _clashes(asked, known)


def _wrong(key: str) -> str:
    if key in SAME:
        return f'a terminal cannot tell "{key}" from {SAME[key]}'
    return "" if is_key(key) else f'there is no key "{key}"; keys are written as in f4, ctrl+r, question_mark or "?"'


def _clashes(asked: Mapping[str, Any], known: Mapping[str, Bound]) -> Iterator[tuple[str, str]]:
    """Keys that would mean two things on one screen, and do not by default."""
    own = {name: {long_name(key) for key in _keys(value)} for name, value in asked.items()}
    now = {name: own.get(name, set(bound.keys)) for name, bound in known.items()}
    for name in asked:
        for other, bound in known.items():
            both = now[name] & now[other] - (set(known[name].keys) & set(bound.keys))
            if other != name and both and meet(known[name], bound):
                yield name, f'"{min(both)}" is {other} already ({bound.description}); give that other keys too'


def _line_of(text: str, name: str) -> int:
    """The line that a dotted name is given a value on, from 1."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        plain = re.sub(r"[\s\"']", "", line)
        if header := re.fullmatch(r"\[([^\[\]]+)\](#.*)?", plain):
            table = f"{header.group(1)}."
        elif f"{table}{plain.partition('=')[0]}" == name:
            return number
    return 1


def default_keys(file: Path) -> str:
    """The keys that hold without a file, as a ``file`` to start from."""
    head = [
        f"# The keys of Sfumato by name, to be kept in {file}",
        "# Keep the lines that you change; what is left out keeps these keys.",
        '# A value is one key or several: "f4", "ctrl+r", "question_mark", "s, space".',
    ]
    groups = groupby(bindings(), key=lambda bound: bound.id.partition(".")[0])
    return "\n".join([*head, *(line for _, group in groups for line in ("", *map(_entry, group)))])


def _entry(bound: Bound) -> str:
    return f'{bound.id} = "{", ".join(bound.keys)}"  # {bound.description or "Choose"}'
