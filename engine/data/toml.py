"""Tables as TOML gives them, and their keys: one message that names the place where a key or a value is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import BadInput, suggestion


def read_toml(text: str) -> dict[str, Any]:
    """The table of a TOML text; BadInput with the line where it is not TOML."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput("recipe", f"not valid TOML: {error}") from None
    if _deeper(table, DEEPEST):
        raise BadInput("recipe", f"tables and lists are nested deeper than {DEEPEST}; no recipe needs that")
    return table


DEEPEST = 50


def _deeper(table: Any, most: int) -> bool:
    """Whether a value is nested deeper than this."""
    level = [table]
    for _ in range(most):
        level = [
            value
            for one in level
            for value in (one.values() if isinstance(one, dict) else one)
            if isinstance(value, dict | list)
        ]
        if not level:
            return False
    return True


def known_keys(table: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    """BadInput at the first key of a table that is none of the known."""
    for key in table:
        if key not in known:
            where = f"{place}.{key}" if place else key
            raise BadInput(where, f"unknown key{suggestion(key, known) or '; known: ' + ', '.join(known)}")


def text_of(table: Mapping[str, Any], key: str, place: str) -> str:
    """The text under a key; empty where there is none. Raises BadInput."""
    value = table.get(key, "")
    if not isinstance(value, str):
        raise BadInput(f"{place}.{key}" if place else key, f"{value!r} must be text")
    return value


def names_of(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The names listed under a key, each once. Raises BadInput."""
    names = table.get(key, [])
    if not isinstance(names, list):
        raise BadInput(key, 'must be a list of recipes, such as ["airbnb-cart"]')
    for i, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            raise BadInput(f"{key}[{i}]", f"{name!r} must be the name of a recipe")
        if name in names[:i]:
            raise BadInput(f"{key}[{i}]", f'"{name}" is listed twice')
    return tuple(names)


def whole_number(table: Mapping[str, Any], key: str, place: str, default: int, ge: int) -> int:
    """The whole number under a key, at least ``ge``; ``default`` where there is none. Raises BadInput."""
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < ge:
        raise BadInput(f"{place}.{key}", f"{value!r} must be a whole number, at least {ge}")
    return value


def section_of(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The table under a key; empty where there is none. Raises BadInput."""
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise BadInput(key, f"must be a table, [{key}]")
    return value


def tables_of(table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The tables under a key, ``[[key]]``. Raises BadInput."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BadInput(key, f"must be tables, [[{key}]]")
    return value
