"""Titles of variables together with their short names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput


@lru_cache(maxsize=8)
def variable_titles(recipe_toml: str) -> Mapping[str, str]:
    """Return the titles that a recipe gives its variables, by name; none if it cannot be read."""
    try:
        variables = read_toml(recipe_toml).get("variables", {})
    except BadInput:
        return {}
    found = variables.items() if isinstance(variables, Mapping) else ()
    titles = {name: one.get("title") for name, one in found if isinstance(one, Mapping)}
    return {name: title for name, title in titles.items() if isinstance(title, str) and title}


def title_variable(name: str, titles: Mapping[str, str]) -> str:
    """Return name and title, ``mdvis: visits to a doctor``; the name alone if it has no title."""
    return f"{name}: {titles[name]}" if name in titles else name


def title_leading_variable(text: str, titles: Mapping[str, str]) -> str:
    """Replace the variable's name at the start of a text, such as ``lpi, log_normal``, by title and name."""
    name, comma, rest = text.partition(",")
    return f"{titles[name]} ({name}){comma}{rest}" if name in titles else text
