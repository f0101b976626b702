"""Settings of the command line, applied to a recipe's table."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import BadInput

__all__ = ["with_settings"]


def with_settings(table: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """A copy of a recipe's table with ``key=value`` settings applied, such as ``release.m=5`` or ``synthesis[0].sampler=emcee``.

    The value is read as TOML, or as text when it is not TOML. Raises BadInput.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(table))
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"--set {setting}", "write key=value, such as release.m=5")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
        _put(changed, key.strip().replace("[", ".").replace("]", "").split("."), value, f"--set {key.strip()}")
    return changed


def _put(table: Any, path: list[str], value: object, place: str) -> None:
    for step in path[:-1]:
        table = _child(table, step, place)
    last = path[-1]
    if isinstance(table, list):
        _child(table, last, place)
        table[int(last)] = value
    elif isinstance(table, dict):
        table[last] = value
    else:
        raise BadInput(place, "leads into a value, not a table")


def _child(table: Any, step: str, place: str) -> Any:
    if isinstance(table, dict):
        return table.setdefault(step, {})
    if isinstance(table, list):
        if not step.isdecimal() or int(step) >= len(table):
            raise BadInput(place, f"has no entry {step}; there are {len(table)}, counted from 0")
        return table[int(step)]
    raise BadInput(place, "leads into a value, not a table")
