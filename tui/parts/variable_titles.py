"""The titles of variables beside the short names that columns have."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache


@lru_cache(maxsize=8)
def titles_of(recipe_toml: str) -> Mapping[str, str]:
    """The titles that a recipe gives its variables, by name; none where it cannot be read."""
    try:
        variables = tomllib.loads(recipe_toml).get("variables", {})
    except tomllib.TOMLDecodeError:
        return {}
    found = variables.items() if isinstance(variables, Mapping) else ()
    titles = {name: one.get("title") for name, one in found if isinstance(one, Mapping)}
    return {name: title for name, title in titles.items() if isinstance(title, str) and title}


def titled(name: str, titles: Mapping[str, str]) -> str:
    """``mdvis: visits to a doctor``; the name alone where it has no title."""
    return f"{name}: {titles[name]}" if name in titles else name


def first_titled(text: str, titles: Mapping[str, str]) -> str:
    """A text that begins with a variable's name, as ``lpi, log_normal``, with its title in place of the name."""
    name, comma, rest = text.partition(",")
    return f"{titles[name]} ({name}){comma}{rest}" if name in titles else text
