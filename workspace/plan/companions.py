"""Companions: recipes that are carried out beside another on the same data, and the runs that came of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.engine.checks import check_steps
from sfumato.engine.errors import BadInput
from sfumato.engine.overrides import with_settings
from sfumato.engine.published import Findings, SourceTable, source_tables
from sfumato.engine.recipe import Recipe

from ..errors import NotReady
from ..jobs.runs import enter_runs, result_object
from ..recipes import RecipeFile, find_recipe
from ..store.workspace import Workspace
from ..views.results import result_rows
from ..views.runs import Run, RunState, find_run
from .hierarchy_files import with_trees
from .prepare import Prepared

__all__ = [
    "companions_of", "done_together", "enter_together", "names_of", "prepare_companions", "published_tables",
    "result_with_companions",
]  # fmt: skip

SHARED_SETTINGS = ("data.", "variables.", "release.")


def prepare_companions(main: Prepared, recipe_file: RecipeFile, settings: Sequence[str] = ()) -> tuple[Prepared, ...]:
    """Check the recipes that ``main`` names as companions. Raises BadInput at ``companions[i]``; stores nothing.

    Each takes over ``main``'s data, seed, and the settings of data, variables and release. Companions of companions
    are left out.
    """
    shared = [setting for setting in settings if setting.strip().startswith(SHARED_SETTINGS)]
    return tuple(
        _companion(main, recipe_file, name, shared, f"companions[{i}]") for i, name in enumerate(main.recipe.companions)
    )


def _companion(main: Prepared, recipe_file: RecipeFile, name: str, shared: Sequence[str], place: str) -> Prepared:
    try:
        found = _find(name, recipe_file)
    except BadInput as error:
        raise BadInput(place, error.message) from None
    if (found.name, found.beside) == (recipe_file.name, recipe_file.beside):
        raise BadInput(place, f'"{name}" is this recipe itself; leave it out')
    try:
        table = with_trees(with_settings(found.table, shared), found.beside)
        recipe = Recipe.from_table(_on_data_of(main, table))
        if recipe.schema != main.recipe.schema:
            raise BadInput("variables", "must be those of the recipe that it stands beside, in the same order")
        if not recipe.makes_release:
            raise BadInput("synthesis", "the recipe makes no release; add [[synthesis]] or [[anonymisation]]")
        check_steps(recipe, main.data)
    except BadInput as error:
        raise BadInput(f'{place} "{name}": {error.place}', error.message) from None
    return Prepared(recipe, main.source, main.data)


def _find(name: str, recipe_file: RecipeFile) -> RecipeFile:
    """The companion beside the recipe that names it, else as any recipe is found."""
    if recipe_file.beside is not None:
        for path in (recipe_file.beside / name, recipe_file.beside / f"{name}.toml"):
            if path.is_file():
                return find_recipe(str(path))
    return find_recipe(name)


def _on_data_of(main: Prepared, table: dict[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in table.items() if key != "companions"}
    release = {**table.get("release", {}), "seed": main.recipe.seed}
    return {**own, "data": main.recipe.data.to_table(), "release": release}


def enter_together(workspace: Workspace, main: Prepared, companions: Sequence[Prepared]) -> list[int]:
    """Enter a run and those beside it, all or none, in one project; returns their numbers, the main one's first."""
    return enter_runs(workspace, [main, *companions])


def companions_of(workspace: Workspace, run_id: int) -> list[int]:
    """The runs that were entered beside a run, in the order of its recipe."""
    query = "SELECT companion_id FROM companion WHERE run_id = ? ORDER BY position"
    return [int(row[0]) for row in workspace.connection.execute(query, (run_id,))]


def done_together(workspace: Workspace, run_id: int | str) -> list[Run]:
    """A run that is done, and those beside it that are. Raises NotFound and NotReady."""
    main = find_run(workspace, run_id)
    if main.state is not RunState.DONE:
        raise NotReady(f"run {main.id} is {main.state}; wait for it, or go on with: sfumato resume {main.id}")
    beside = [find_run(workspace, other) for other in companions_of(workspace, main.id)]
    return [main, *(run for run in beside if run.state is RunState.DONE)]


def names_of(runs: Sequence[Run]) -> list[str]:
    """What runs are called beside each other: a recipe's label, else the title, with the number where that is not enough."""
    plain = [run.recipe.label or (run.title if len(runs) > 1 else "release") for run in runs]
    return [f"{name} (run {run.id})" if plain.count(name) > 1 else name for name, run in zip(plain, runs, strict=True)]


def published_tables(workspace: Workspace, runs: Sequence[Run]) -> tuple[SourceTable, ...]:
    """The published figures that the recipes of these runs quote, beside what they found."""
    named = zip(names_of(runs), runs, strict=True)
    return source_tables([Findings(name, run.recipe.published, result_rows(workspace, run.id)) for name, run in named])


def result_with_companions(workspace: Workspace, run_id: int) -> dict[str, Any]:
    """The object that ``--json`` writes; a run with companions has theirs under ``companions``."""
    beside = [result_object(workspace, other) for other in companions_of(workspace, run_id)]
    return {**result_object(workspace, run_id), **({"companions": beside} if beside else {})}
