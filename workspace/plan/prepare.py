"""From what a user names to a run that can be entered: everything is checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.engine.checks import check_steps
from sfumato.engine.errors import BadInput
from sfumato.engine.overrides import with_settings
from sfumato.engine.recipe import MAKERS, Recipe

from ..ingest.files import find_source, ingest
from ..jobs.runs import Entry, enter_runs
from ..recipes import RecipeFile
from ..release.external import read_given
from ..store.workspace import Workspace
from .hierarchy_files import with_trees

__all__ = ["Prepared", "prepare_evaluation", "prepare_run"]


class Prepared(Entry):
    """A run whose recipe and data have been checked against each other."""

    def enter(self, workspace: Workspace, project: str = "") -> int:
        """Enter the run in a workspace; returns its number."""
        return enter_runs(workspace, [self], project)[0]


def _settings(settings: Sequence[str], seed: int | None) -> list[str]:
    return [*settings, *([] if seed is None else [f"release.seed={seed}"])]


def prepare_run(
    recipe_file: RecipeFile, data_file: str | None = None, seed: int | None = None, settings: Sequence[str] = ()
) -> Prepared:
    """Check a recipe, read its data and check that its models can be fitted to them. Raises BadInput; stores nothing."""
    table = with_trees(with_settings(recipe_file.table, _settings(settings, seed)), recipe_file.beside)
    if not (table.get("synthesis") or table.get("anonymisation")):
        raise BadInput(
            "synthesis",
            "the recipe makes no release; add [[synthesis]] or [[anonymisation]], or score files with: sfumato evaluate",
        )
    recipe = Recipe.from_table(table)
    source = find_source(data_file, place="--data") if data_file else find_source(recipe.data.file, recipe_file.beside)
    data = ingest(source, recipe.data, recipe.schema, recipe.seed)
    check_steps(recipe, data)
    return Prepared(recipe, source, data)


def prepare_evaluation(
    recipe_file: RecipeFile, original: str, released: Sequence[str], settings: Sequence[str] = ()
) -> Prepared:
    """Check a recipe and the files to score with it: the original and released tables of any other tool.

    The recipe's steps of synthesis or anonymisation, if it has any, only say which variables are released, and as what.
    Raises BadInput.
    """
    table = with_trees(with_settings(recipe_file.table, settings), recipe_file.beside)
    recipe = Recipe.from_table(table)
    if not recipe.released:
        raise BadInput("release.released", 'name the variables that are released, such as ["price"]')
    recipe = _only_scoring(table, recipe, len(released))
    source = find_source(original, place="--original")
    data = ingest(source, recipe.data, recipe.schema, recipe.seed)
    check_steps(recipe, data)
    given = tuple(read_given(file, recipe, data) for file in released)
    return Prepared(recipe, source, data, given)


def _only_scoring(table: Mapping[str, Any], recipe: Recipe, files: int) -> Recipe:
    """The recipe without its steps: what they would release, and as what, is said under ``[release]`` instead."""
    release = {**table.get("release", {}), "released": list(recipe.released), "m": files}
    if recipe.anonymisation:
        means = [v.name for v in recipe.released_schema if v.kind is not recipe.schema[v.name].kind]
        release["generalised"] = sorted(recipe.generalised, key=recipe.schema.names.index)
        release["micro_aggregated"] = [name for name in means if name not in recipe.generalised]
    return Recipe.from_table({**{key: value for key, value in table.items() if key not in MAKERS}, "release": release})
