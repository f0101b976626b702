"""Overrides of a recipe's settings by the command line (``--set``)."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..data.toml import read_toml
from ..errors import BadInput

STEP = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^.\[\]="'][^.\[\]=]*|)\]?([.\[=])""")
"""A step of a path, bare or in quotation marks, and the sign behind it."""


def apply_settings(table: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return a copy of a recipe's table with ``key=value`` settings applied, such as ``release.m=5`` or
    ``synthesis[0].sampler=emcee``.

    A name with a dot, a bracket or an equals sign is in quotation marks, as in TOML: ``variables."a.b".kind=count``.
    The value is read as TOML, or as text where it is not TOML. Raises BadInput.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(table))
    for setting in map(str.strip, settings):
        path, text = _split_setting(setting)
        try:
            value = read_toml(f"value = {text}")["value"]
        except BadInput:
            value = text.strip()
        _set_value(changed, path, value, f"--set {setting.removesuffix(text).rstrip(' =')}")
    return changed


def _split_setting(setting: str) -> tuple[list[str], str]:
    """Return the path and the value's text of ``key=value``. Raises BadInput."""
    path, rest, sign = [], setting, ""
    while sign != "=":
        step = STEP.match(rest)
        if step is None and rest[:1] in ('"', "'"):
            raise BadInput(f"--set {setting}", "a quotation mark is opened and not closed before a dot, bracket or =")
        if step is None:
            raise BadInput(f"--set {setting}", "write key=value, such as release.m=5")
        path.append(_unquote_step(step[1], setting))
        rest, sign = rest[step.end() :], step[2]
    path[-1] = path[-1].rstrip()
    if path == [""]:
        raise BadInput(f"--set {setting}", "write key=value, such as release.m=5")
    return path, rest


def _unquote_step(step: str, setting: str) -> str:
    """Return a step of a path without its quotation marks. Raises BadInput."""
    if step[:1] not in ('"', "'"):
        return step
    try:
        return str(read_toml(f"name = {step}")["name"])
    except BadInput:
        raise BadInput(f"--set {setting}", "a name in quotation marks is written as in TOML") from None


def _set_value(table: Any, path: list[str], value: object, place: str) -> None:
    """Set the value at a path of a table. Raises BadInput."""
    for step in path[:-1]:
        table = _child_at(table, step, place)
    last = path[-1]
    if isinstance(table, list):
        _child_at(table, last, place)
        table[int(last)] = value
    elif isinstance(table, dict):
        table[last] = value
    else:
        raise BadInput(place, "leads into a value, not a table")


def _child_at(table: Any, step: str, place: str) -> Any:
    """Return the table or list entry of this name or number, adding a missing table. Raises BadInput."""
    if isinstance(table, dict):
        return table.setdefault(step, {})
    if isinstance(table, list):
        if not step.isdecimal() or int(step) >= len(table):
            raise BadInput(place, f"has no entry {step}; there are {len(table)}, counted from 0")
        return table[int(step)]
    raise BadInput(place, "leads into a value, not a table")
