"""The user's own keys, by the name of the act that they are for.

Acts that ``keys.toml`` does not name keep their keys:

    keys = "f2"
    run = ["R", "ctrl+g"]
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from textual.binding import Binding
from textual.keys import Keys, format_key

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.workspace.errors import StrangeFile
from sfumato.workspace.plain_files import read_plain

from .acts import ACTS, BY_NAME, KeyAct
from .own_keys import MODIFIERS

BLANKS = {",": "comma", " ": "space"}
"""Names of the keys that separate a list of keys."""
NAMED = frozenset(key.value for key in Keys)
SAME = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace", "ctrl+j": "enter", "ctrl+[": "escape"}
"""Keys that terminals cannot distinguish from others."""
MOST_BYTES = 100_000
OLD_NAME = re.compile(r"[a-z_]+\.[a-z_]+")
OLD = (
    'keys belong to acts that mean the same everywhere, no longer to screens, so there is no "{}": '
    "sfumato keys lists the acts by name"
)


def long_key_name(key: str) -> str:
    """Return Textual's name for a key, such as ``question_mark`` for ``?``."""
    if len(key) > 1:
        return key
    # Textual converts a character into the name of its key only when it reads a list of bindings.
    return BLANKS.get(key) or next(iter(Binding.make_bindings([Binding(key, "name")]))).key


def is_known_key(key: str) -> bool:
    """Return whether a terminal can have such a key: ``f4``, ``ctrl+r``, ``question_mark``, ``?``."""
    *modifiers, name = key.split("+") if len(key) > 1 else [key]
    known = len(name) == 1 or name in NAMED or key in NAMED or len(format_key(name)) == 1
    return known and all(modifier in MODIFIERS for modifier in modifiers)


class BadKeymap(Exception):
    """Error for a file of keys that cannot be used; the message names file and line."""


def read_keymap(file: Path) -> dict[str, str]:
    """Return the keys by name of act, as ``App.set_keymap`` takes them; empty without a file. Raises BadKeymap."""
    try:
        # Links are followed: many people keep such files in a folder of their own.
        text = read_plain(file, MOST_BYTES, follow=True).decode("utf-8") if file.exists() else ""
    except StrangeFile as error:
        raise BadKeymap(f"{file}: it is {error.kind}, not a file of keys") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadKeymap(f"{file}: it cannot be read as text: {error}") from None
    try:
        asked = dict(_flatten_table(read_toml(text)))
    except BadInput as error:
        raise BadKeymap(f"{file}: {error.message}") from None
    problem = next(_keymap_problems(asked), None)
    if problem is not None:
        name, said = problem
        raise BadKeymap(f"{file}:{_line_number(text, name)}: {said}")
    return {name: ",".join(long_key_name(key) for key in _listed_keys(value)) for name, value in asked.items()}


# A table may come from an old file with keys by screen, such as ``runs.compare``, which gets a message of its own.
def _flatten_table(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the value of each entry."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten_table(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _listed_keys(value: Any) -> list[str]:
    """Return the keys in ``"f1, ctrl+h"`` or a list; none for another value."""
    if isinstance(value, str):
        return [value] if value in (",", " ") else [key.strip() for key in value.split(",")]
    return value if isinstance(value, list) and all(isinstance(key, str) for key in value) else []


def _keymap_problems(asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the problem of each wrong entry."""
    for name, value in asked.items():
        if name not in BY_NAME:
            old = OLD.format(name) if OLD_NAME.fullmatch(name) else ""
            yield name, old or f'there is no act called "{name}" to give keys to{near_miss_hint(name, BY_NAME)}'
        elif not _listed_keys(value):
            yield name, f'{name} must be a key such as "f4", or a list of them'
        else:
            yield from ((name, said) for said in map(_key_problem, _listed_keys(value)) if said)
    yield from _key_clashes(asked)


def _key_problem(key: str) -> str:
    """Return what is wrong with a key; empty if nothing is."""
    if key in SAME:
        return f'a terminal cannot tell "{key}" from {SAME[key]}'
    return (
        "" if is_known_key(key) else f'there is no key "{key}"; keys are written as in f4, ctrl+r, question_mark or "?"'
    )


def _key_clashes(asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the acts with a key that would have two meanings."""
    # ``?`` and ``question_mark`` are the same key.
    own = {name: {long_key_name(key) for key in _listed_keys(value)} for name, value in asked.items()}
    now = {act.name: own.get(act.name, set(act.keys)) for act in ACTS}
    for name in own:
        for other, act in BY_NAME.items():
            both = now[name] & now[other] if name in now else ()
            if other != name and both:
                yield name, f'"{min(both)}" is {other} already ({act.description}); give that other keys too'


def _line_number(text: str, name: str) -> int:
    """Return the line on which a dotted name is given a value, from 1."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        plain = re.sub(r"[\s\"']", "", line)
        if header := re.fullmatch(r"\[([^\[\]]+)\](#.*)?", plain):
            table = f"{header.group(1)}."
        elif f"{table}{plain.partition('=')[0]}" == name:
            return number
    return 1


def default_keys(file: Path) -> str:
    """Return the text of a ``file`` with the default keys, to start from."""
    head = [
        f"# The acts of Sfumato and their keys, to be kept in {file}",
        "# Keep the lines that you change; an act that is left out keeps these keys.",
        '# A value is one key or several: "f4", "ctrl+r", "question_mark", "s, space".',
    ]
    keyed = groupby((act for act in ACTS if act.keys), key=lambda act: act.group)
    bare = ", ".join(act.name for act in ACTS if not act.keys)
    rest = textwrap.wrap(
        f"Acts without a key, which ? and ctrl+p run; give one a key by its name: {bare}",
        100, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False,
    )  # fmt: skip
    lines = [line for group, acts in keyed for line in ("", f"# {group}", *map(_act_line, acts))]
    return "\n".join([*head, *lines, "", *rest])


def _act_line(act: KeyAct) -> str:
    """Return the line of an act in the file."""
    return f'{act.name} = "{", ".join(act.keys)}"  # {act.description}'
