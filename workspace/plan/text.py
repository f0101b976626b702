"""A recipe's table as TOML that is good to read and edit: a line a variable, a ``[[table]]`` a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomli_w

__all__ = ["ORDER", "inline", "plan_text"]

ORDER = (
    "title", "label", "description", "companions", "data", "variables", "release", "synthesis", "anonymisation",
    "measure", "study", "threshold", "published",
)  # fmt: skip


def plan_text(table: Mapping[str, Any]) -> str:
    """The table as TOML: single values first, then tables, keys in a recipe's order and unknown ones at the end."""
    known = {key: table[key] for key in ORDER if key in table}
    ordered = {**known, **{key: value for key, value in table.items() if key not in known}}
    single = {key: value for key, value in ordered.items() if not isinstance(value, Mapping) and not _steps(value)}
    parts = [_lines(single)] if single else []
    for key, value in ordered.items():
        if isinstance(value, Mapping):
            parts.append(f"[{_key(key)}]\n{_lines(value)}")
        elif _steps(value):
            parts += [f"[[{_key(key)}]]\n{_lines(step)}" for step in value]
    return "\n".join(parts)


def _steps(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {inline(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    return tomli_w.dumps({key: 0}).removesuffix(" = 0\n")


def inline(value: object) -> str:
    """A value as TOML on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {inline(item)}' for key, item in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").removesuffix("\n")
