"""From what a user names to a run that can be entered: everything is checked before anything is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.checks import check_steps
from engine.errors import BadInput
from engine.microdata import Microdata, MissingPolicy
from engine.recipe import MAKERS, DataSource, Recipe, with_settings
from engine.schema import Schema

from .ingest import Source, find_source, ingest
from .recipes import RecipeFile
from .runs import Entry, enter_runs
from .trees import with_trees
from .workspace import Workspace

__all__ = ["Prepared", "prepare_evaluation", "prepare_run"]

ROUNDING = 1e-6  # numbers that were not released may have been written with fewer digits


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

    The recipe's steps of synthesis or anonymisation, if it has any, only say which variables are released. Raises BadInput.
    """
    table = with_trees(with_settings(recipe_file.table, settings), recipe_file.beside)
    recipe = Recipe.from_table(table)
    names = list(recipe.released)
    if not names:
        raise BadInput("release.released", 'name the variables that are released, such as ["price"]')
    release = {**table.get("release", {}), "released": names, "m": len(released)}
    kept = {key: value for key, value in table.items() if key not in MAKERS}
    recipe = Recipe.from_table({**kept, "release": release})
    source = find_source(original, place="--original")
    data = ingest(source, recipe.data, recipe.schema, recipe.seed)
    check_steps(recipe, data)
    given = tuple(_given(file, recipe, data) for file in released)
    return Prepared(recipe, source, data, given)


def _given(file: str, recipe: Recipe, data: Microdata) -> tuple[Source, Microdata]:
    source = find_source(file, place="--released")
    place = f"--released {source.name}"
    try:
        table = ingest(
            source, DataSource(missing=_policy_of(recipe)), _levels_of(recipe, data), recipe.seed, "synthetic"
        )
    except BadInput as error:
        raise BadInput(f"{place}: {error.place}", error.message) from None
    _check_pairing(table, data, recipe, place)
    return source, table


def _policy_of(recipe: Recipe) -> MissingPolicy:
    """Released files may have missing values where the original may; records must not leave, which would undo the pairing."""
    return MissingPolicy.KEEP if recipe.data.missing is MissingPolicy.KEEP else MissingPolicy.REFUSE


def _check_pairing(table: Microdata, data: Microdata, recipe: Recipe, place: str) -> None:
    """BadInput unless record i of the release is record i of the original: as many, and alike where nothing is released."""
    if len(table) != len(data):
        left_out = f" after {data.dropped:,} with missing values were left out" if data.dropped else ""
        raise BadInput(
            place,
            f"{len(table):,} records, the original has {len(data):,}{left_out}; record i of a release must be record i "
            "of the original, so filter, sample and leave out alike in both",
        )
    for variable in recipe.schema:
        if variable.name in recipe.released:
            continue
        ours, theirs = data.numbers(variable.name), table.numbers(variable.name)
        if different := int(np.sum(~np.isclose(ours, theirs, rtol=ROUNDING, atol=0, equal_nan=True))):
            raise BadInput(
                f"{place}: {variable.name}",
                f"{different:,} of {len(data):,} records differ from the original, and it is not released; keep the "
                f'records in the original\'s order, or name "{variable.name}" under [release] released',
            )


def _levels_of(recipe: Recipe, data: Microdata) -> Schema:
    """The schema with the original's levels written out, so that both tables code them alike."""
    return Schema(
        tuple(
            replace(variable, levels=tuple(data.column(variable.name).cat.categories))
            if variable.kind.has_levels
            else variable
            for variable in recipe.schema
        )
    )
