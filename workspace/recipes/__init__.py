"""Recipes that ship with Sfumato, and the search for a recipe by file or name."""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput, near_miss_hint

from ..errors import StrangeFile
from ..plain_files import read_plain

MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class RecipeFile:
    """Text of a recipe with its name, and the directory in which its data file is looked up (None for a shipped one).

    .
    """

    name: str
    text: str
    data_directory: Path | None

    @property
    def table(self) -> dict[str, Any]:
        """Return the recipe as TOML reads it. Raises BadInput."""
        return read_toml(self.text)


def shipped_recipes() -> list[RecipeFile]:
    """List the recipes that ship, by name."""
    files = sorted(importlib.resources.files(__package__).iterdir(), key=lambda file: file.name)
    return [RecipeFile(f.name[:-5], f.read_text("utf-8"), None) for f in files if f.name.endswith(".toml")]


def recipe_names() -> list[str]:
    """List the names of the recipes that ship, without reading them."""
    # Shells call this to complete words: parsing would be slow.
    names = sorted(file.name for file in importlib.resources.files(__package__).iterdir())
    return [name.removesuffix(".toml") for name in names if name.endswith(".toml")]


def find_recipe(name: str) -> RecipeFile:
    """Return the recipe in a file, else the shipped one of this name. Raises BadInput."""
    path = Path(name).expanduser()
    # A directory with the name of a shipped recipe, such as an output folder, must not hide it.
    if path.exists() and not (path.is_dir() and name in {recipe.name for recipe in shipped_recipes()}):
        try:
            text = read_plain(path, MOST_BYTES, follow=True).decode("utf-8")
            return RecipeFile(path.stem, text.replace("\r\n", "\n").replace("\r", "\n"), path.resolve().parent)
        except StrangeFile as error:
            raise BadInput("recipe", f'"{name}" is {error.kind}, not a recipe') from None
        except UnicodeDecodeError:
            raise BadInput("recipe", f'"{name}" is not a text file; a recipe is TOML in UTF-8') from None
    shipped = {recipe.name: recipe for recipe in shipped_recipes()}
    if name in shipped:
        return shipped[name]
    hint = near_miss_hint(name, shipped) or f"; shipped recipes: {', '.join(shipped)}"
    raise BadInput("recipe", f'no such file or shipped recipe "{name}"{hint}')
