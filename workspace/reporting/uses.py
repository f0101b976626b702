"""Several uses of one method in a recipe, or in the runs that stand side by side: what tells their numbers apart in words."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

__all__ = ["NOTHING", "Apart", "apart_in", "differing", "settings_apart"]

Apart = Mapping[str, Mapping[str, Any]]
"""By method key the settings in which its uses differ, each with its default."""
NOTHING: Apart = MappingProxyType({})


def differing(key: str, tables: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The settings in which uses of method ``key`` differ, each with its default; None where it has none."""
    names = dict.fromkeys(name for table in tables for name in table)
    found = [name for name in names if any(table.get(name) != tables[0].get(name) for table in tables)]
    return _with_defaults(key, found) if found else {}


def _with_defaults(key: str, names: Sequence[str]) -> dict[str, Any]:
    from sfumato.engine.methods import registry
    from sfumato.engine.spec import written

    method = registry().get(key)
    infos = () if method is None else method.spec.params()
    defaults = {info.name: written(info.default) for info in infos if not info.required}
    return {name: defaults.get(name) for name in names}


def apart_in(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Apart:
    """The same for rows of several runs: pairs of method key and parameters."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for key, params in rows:
        tables.setdefault(key, []).append(params)
    return {key: found for key, own in tables.items() if (found := differing(key, own))}


@lru_cache(maxsize=64)
def settings_apart(recipe_toml: str) -> Apart:
    """The same for the steps of a recipe. Methods that it uses once are not loaded."""
    table = tomllib.loads(recipe_toml)
    steps = [*table.get("measure", []), *table.get("study", [])]
    given = [(str(step["method"]), {name: value for name, value in step.items() if name != "method"}) for step in steps]
    return MappingProxyType(dict(apart_in(given)))
