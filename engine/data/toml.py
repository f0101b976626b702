"""Reading of TOML tables and their keys, with messages that name the place of a wrong key or value."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from ..errors import BadInput

DEEPEST_TABLE = 50


def read_toml(text: str) -> dict[str, Any]:
    """Return the table of a TOML text. Raises BadInput with the line where it is not TOML."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput("recipe", f"not valid TOML: {error}") from None
    if _is_nested_deeper(table, DEEPEST_TABLE):
        raise BadInput("recipe", f"tables and lists are nested deeper than {DEEPEST_TABLE}; no recipe needs that")
    return table


def _is_nested_deeper(table: Any, most: int) -> bool:
    """Return whether tables and lists are nested deeper than ``most``."""
    # Level by level rather than by recursion, which deep nesting would exhaust.
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


def get_table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table under a key; empty without the key. Raises BadInput."""
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise BadInput(key, f"must be a table, [{key}]")
    return value


def get_tables(table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the tables under a key, ``[[key]]``. Raises BadInput."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BadInput(key, f"must be tables, [[{key}]]")
    return value
