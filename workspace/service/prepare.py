"""Preparation of runs from a recipe or a plan: files are read and checked, with other tools' tables and companions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.engine.data.declaration import to_plain_value
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.in_passes import is_checked_in_blocks
from sfumato.engine.recipe.budget import privacy_cost_text
from sfumato.engine.recipe.checks import check_steps, check_steps_of_blocks
from sfumato.engine.recipe.overrides import apply_settings
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.steps import MAKERS

from ..gate.released_tables import find_earlier_tables
from ..ingest.conformed_blocks import ConformedBlocks
from ..ingest.files import find_source, read_file_in_blocks, read_file_microdata
from ..ingest.sources import SourceFile
from ..jobs.runs import RunData, RunEntry, enter_runs
from ..plan.drafts import PlanDraft
from ..plan.recipe_files import read_recipe_files
from ..policy.installed_packages import find_trusted_packages
from ..policy.policy import read_policy_of_workspace
from ..recipes import RecipeFile, find_recipe
from ..release.external import read_external
from ..release.own_files import order_in_manifests
from ..store.artefacts import controls_hash
from ..store.chains import kept_chains_remark
from ..store.keys import PUBLIC_NAME
from ..store.runs import find_run
from ..store.stored_blocks import StoredBlocks
from ..store.workspace import StoredDataset, Workspace
from .spool_place import spool_place

SHARED_SETTINGS = ("data.", "variables.", "release.")


class PreparedRun(RunEntry):
    """Run whose recipe and data have been checked against each other."""

    def enter(self, workspace: Workspace, project: str = "") -> int:
        """Enter the run in a workspace and return its number."""
        return enter_runs(workspace, [_with_earlier_tables(workspace, self)], project)[0]


def _settings_with_seed(settings: Sequence[str], seed: int | None) -> list[str]:
    """Return the settings with that of the seed, if one is given."""
    return [*settings, *([] if seed is None else [f"release.seed={seed}"])]


def prepare_run(
    recipe_file: RecipeFile,
    data_file: str | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
    *,
    key: bytes,
    directory: Path | None = None,
) -> PreparedRun:
    """Prepare a run of a recipe: read its data and check that its models can be fitted to them. Raises BadInput.

    Stores nothing. A long file is read and checked in blocks, on the disk of the workspace in ``directory``, where the
    recipe's steps work so. ``key`` is that of the workspace in which the run will be entered; with the seed it decides which
    records a sample has.
    """
    table = read_recipe_files(
        apply_settings(recipe_file.table, _settings_with_seed(settings, seed)), recipe_file.data_directory
    )
    if not (table.get("synthesis") or table.get("anonymisation") or table.get("table")):
        raise BadInput(
            "synthesis",
            "the recipe makes no release; add [[synthesis]] or [[anonymisation]], or score files with: sfumato evaluate",
        )
    recipe = Recipe.from_table(table)
    source = (
        find_source(data_file, place="--data")
        if data_file
        else find_source(recipe.data.file, recipe_file.data_directory)
    )
    if directory is not None and is_checked_in_blocks(recipe):
        spool = spool_place(directory)
        found = read_file_in_blocks(source, recipe.data, recipe.schema, recipe.seed, key=key, spool=spool)
        return PreparedRun(recipe, source, _checked_data(recipe, found))
    return prepare_on_source(recipe, source, key=key)


def _checked_data(recipe: Recipe, data: RunData) -> RunData:
    """Return data that pass the checks of a recipe, in blocks where these could be checked so. Raises BadInput."""
    if isinstance(data, ConformedBlocks):
        if is_checked_in_blocks(recipe) and check_steps_of_blocks(recipe, data):
            return data
        data = data.read_whole()
    assert isinstance(data, Microdata)
    check_steps(recipe, data, find_trusted_packages(recipe))
    return data


def prepare_on_source(recipe: Recipe, source: SourceFile, *, key: bytes) -> PreparedRun:
    """Prepare a run of a recipe on a file that was read already. Raises BadInput; stores nothing."""
    data = read_file_microdata(source, recipe.data, recipe.schema, recipe.seed, key=key)
    check_steps(recipe, data, find_trusted_packages(recipe))
    return PreparedRun(recipe, source, data)


def prepare_evaluation(
    recipe_file: RecipeFile,
    original: str,
    released: Sequence[str],
    settings: Sequence[str] = (),
    *,
    key: bytes,
) -> PreparedRun:
    """Prepare the evaluation of released files against the original by a recipe. Raises BadInput.

    The files may be of any other tool. Steps of synthesis or anonymisation in the recipe only say which variables are
    released, and as what.
    """
    table = read_recipe_files(apply_settings(recipe_file.table, settings), recipe_file.data_directory)
    recipe = Recipe.from_table(table)
    # Files of our own releases are recognised by the manifest next to them: their rows may be shuffled, and identifiers
    # are missing.
    if recipe.makes_release and "order" not in table.get("release", {}) and (order := order_in_manifests(released)):
        table = _table_for_own_files(table, recipe, order)
    own = partial(find_source, original, place="--original")
    return prepare_scoring(table, own, [partial(find_source, file, place="--released") for file in released], key=key)


def prepare_scoring(
    table: Mapping[str, Any],
    original: Callable[[], SourceFile],
    released: Sequence[Callable[[], SourceFile]],
    *,
    key: bytes,
) -> PreparedRun:
    """Prepare an evaluation as ``prepare_evaluation`` does, from a recipe's table and functions that read the files."""
    recipe = Recipe.from_table(table)
    if not recipe.released:
        raise BadInput("release.released", 'name the variables that are released, such as ["price"]')
    if isinstance(recipe.data.holdout, int | float):
        raise BadInput(
            "data.holdout",
            "whoever made these files may have made them of all records, and what a share of them is drawn for now was then no control; "
            'name the column of the original that says which records they were not made of, holdout = "column", or leave it out',
        )
    recipe = _scoring_recipe(table, recipe, len(released))
    source = original()
    data = read_file_microdata(source, recipe.data, recipe.schema, recipe.seed, key=key)
    check_steps(recipe, data, find_trusted_packages(recipe))
    shown = recipe.recode_data(data).without_controls
    given = tuple((file, read_external(file, recipe, shown)) for file in (read() for read in released))
    return PreparedRun(recipe, source, data, given)


def _table_for_own_files(table: Mapping[str, Any], recipe: Recipe, order: str) -> dict[str, Any]:
    """Return the recipe's table for files of our own release: with the order of their rows, and without identifiers.

    The number of a unit stays, by which the original's records are judged; files need not have it.
    """
    out = recipe.schema.names_by_role(Role.IDENTIFIER)
    variables = {name: about for name, about in table["variables"].items() if name not in out}
    release = {key: one for key, one in table.get("release", {}).items() if not key.startswith("surrogate_")}
    return {**table, "variables": variables, "release": {**release, "order": order}}


def _scoring_recipe(table: Mapping[str, Any], recipe: Recipe, files: int) -> Recipe:
    """Return the recipe without its steps and their weights, and with what these release under ``[release]``."""
    release = {**table.get("release", {}), "released": list(recipe.released), "m": files}
    for key in ("units", "until", "number_of_units", "surrogate_keys", "surrogate_scope"):
        release.pop(key, None)  # of releases that steps make
    if recipe.anonymisation:
        # A mean of a class is a number even where the values are not: so a changed kind shows micro-aggregation.
        means = [v.name for v in recipe.released_schema if v.kind is not recipe.schema[v.name].kind]
        release["generalised"] = sorted(recipe.generalised, key=recipe.schema.names.index)
        release["micro_aggregated"] = [name for name in means if name not in recipe.generalised]
    # Released files are scored; tables are protected by a run of the recipe itself.
    out = (*MAKERS, "weights", "table", "tables")
    return Recipe.from_table({**{key: one for key, one in table.items() if key not in out}, "release": release})


@dataclass(frozen=True)
class StoredSource(SourceFile):
    """File that was read before: its name and hash are kept, its bytes are not."""

    stored_sha256: str = ""

    @property
    def sha256(self) -> str:
        """Return the hash that the bytes had."""
        return self.stored_sha256


def prepare_plan(workspace: Workspace, draft: PlanDraft) -> PreparedRun:
    """Prepare a run of a plan, as ``prepare_run`` does. Raises BadInput; stores nothing."""
    table = read_toml(draft.toml)
    if not (table.get("synthesis") or table.get("anonymisation") or table.get("table")):
        raise BadInput("synthesis", "the plan makes no release; add a synthesis or an anonymisation step")
    recipe = Recipe.from_table(table)
    dataset = workspace.find_dataset(draft.dataset_id)
    # The result must be what a run of the recipe on the file would be: stored records serve only where the file would
    # give the same.
    source = StoredSource(dataset.name, b"", dataset.source_sha256)
    blocks = _stored_blocks(workspace, draft, recipe, dataset)
    if blocks is not None and check_steps_of_blocks(recipe, blocks):
        return PreparedRun(recipe, source, blocks)
    data = _stored_records(workspace, draft, recipe, dataset)
    if data is None:
        key = workspace.read_workspace_key()
        return prepare_run(RecipeFile("plan", draft.toml, None), key=key, directory=workspace.directory)
    check_steps(recipe, data, find_trusted_packages(recipe))
    return PreparedRun(recipe, source, data)


def _stored_blocks(
    workspace: Workspace, draft: PlanDraft, recipe: Recipe, dataset: StoredDataset
) -> StoredBlocks | None:
    """Return the parts of a long stored table as the plan reads them; None where it does not read just these."""
    wanted = recipe.data
    columns = {variable.name: variable for variable in dataset.schema}
    if (
        not workspace.tables.has_parts(dataset.table_sha256)
        or not is_checked_in_blocks(recipe)
        or dataset.dropped
        or wanted.is_random
        or wanted.holdout is not None
        or (wanted.missing is MissingPolicy.KEEP and wanted.complete_cases)
        or not draft.uses_same_data(read_toml(draft.toml))
        or not all(v.name in columns and _is_stored_alike(v, columns[v.name]) for v in recipe.schema)
    ):
        return None
    found = StoredBlocks(workspace.tables, dataset.table_sha256, recipe.schema, dataset.origin)
    for block in found.iterate_blocks():
        refused = wanted.missing is not MissingPolicy.KEEP and block.any_missing_mask(recipe.schema.names).any()
        if refused or any(_leaves_bounds(block, variable) for variable in recipe.schema):
            return None
    return found


def _is_stored_alike(planned: Variable, stored: Variable) -> bool:
    """Return whether the stored values are those of the planned variable, as they lie on the disk."""
    about = ("kind", "levels", "missing", "format", "may_be_missing", "runs_of", "level")
    return all(getattr(planned, name) == getattr(stored, name) for name in about)


def _leaves_bounds(block: Microdata, variable: Variable) -> bool:
    """Return whether some values of a variable are outside its bounds."""
    if variable.bounds is None:
        return False
    low = -np.inf if variable.lower is None else variable.lower
    high = np.inf if variable.upper is None else variable.upper
    numbers = block.present_numbers(variable.name)
    # the whole of the last day is inside
    return bool((numbers < low).any() or ((np.floor(numbers) if variable.kind is Kind.DATE else numbers) > high).any())


def _stored_records(workspace: Workspace, draft: PlanDraft, recipe: Recipe, dataset: StoredDataset) -> Microdata | None:
    """Return the stored records as the plan reads them; None where the file would give others."""
    drawn_alike = not recipe.data.is_random or _is_sampled_by_this_key(workspace, dataset.id)
    if not (
        drawn_alike and draft.uses_same_data(read_toml(draft.toml)) and _has_planned_columns(dataset, recipe.schema)
    ):
        return None
    stored, wanted = workspace.read_stored_dataset(dataset), recipe.data
    # The records that the plan wants to keep were not stored, unless they were dropped for just its complete cases.
    if dataset.dropped and wanted.missing is MissingPolicy.KEEP:
        cases = set(wanted.complete_cases)
        if not cases or cases != set(stored.missing_counts):
            return None
    data = conform_to_schema(
        stored.frame, recipe.schema, wanted.missing, tags=stored.kinds, complete_cases=wanted.complete_cases
    )
    # The file would give a sample, or controls, of the records that are left after dropping.
    if data.dropped and wanted.is_random:
        return None
    data = data.dropped_after(stored)
    if recipe.data.holdout is None:
        return data
    run_id = next(
        (
            run_id
            for run_id in _runs_on_dataset(workspace, dataset.id)
            if draft.uses_same_data(_recipe_table_of_run(workspace, run_id))
        ),
        None,
    )
    sha256 = "" if run_id is None else controls_hash(workspace, run_id)
    if not sha256:
        return None
    controls = workspace.tables.read_microdata(sha256, dataset.schema, "confidential")
    own = conform_to_schema(
        controls.frame, recipe.schema, wanted.missing, tags=controls.kinds, complete_cases=wanted.complete_cases
    )
    return None if own.dropped else data.with_controls(own)


def _runs_on_dataset(workspace: Workspace, dataset_id: int) -> list[int]:
    """Return the numbers of the runs on a dataset, newest first."""
    rows = workspace.connection.execute("SELECT id FROM run WHERE dataset_id = ? ORDER BY id DESC", (dataset_id,))
    return [int(row[0]) for row in rows]


def _recipe_table_of_run(workspace: Workspace, run_id: int) -> dict[str, Any]:
    return find_run(workspace, run_id).recipe_table


def cost_notice(workspace: Workspace, draft: PlanDraft) -> str:
    """Return a notice of the differential privacy that a run of a plan would cost, and of the chains it would keep.

    Empty for neither. The cost is left out where the stored records are not those of the plan. Raises BadInput where
    these cannot be used so, or the run would cost more than its budget.
    """
    recipe = Recipe.from_toml(draft.toml)
    if not any(step.method.synthesis.privacy.account for step in recipe.synthesis) and not kept_chains_remark(
        recipe, None
    ):
        return ""
    data = _stored_records(workspace, draft, recipe, workspace.find_dataset(draft.dataset_id))
    if data is None:
        return kept_chains_remark(recipe, None)
    packages = find_trusted_packages(recipe, workspace.directory)
    check_steps(recipe, data, packages)
    secret, limit = workspace.stored_fingerprint != PUBLIC_NAME, read_policy_of_workspace(workspace.directory).epsilon
    cost = privacy_cost_text(recipe, data, limit, secret=secret, trusted_packages=packages)
    return " ".join(filter(None, (cost, kept_chains_remark(recipe, data))))


def _is_sampled_by_this_key(workspace: Workspace, dataset_id: int) -> bool:
    """Return whether no run with another key is on these records."""
    # Older versions sampled by the seed alone: such a sample is another than this key would draw.
    query = "SELECT EXISTS (SELECT 1 FROM run WHERE dataset_id = ? AND key_fingerprint <> ?)"
    return not workspace.connection.execute(query, (dataset_id, workspace.stored_fingerprint)).fetchone()[0]


def _has_planned_columns(dataset: StoredDataset, schema: Schema) -> bool:
    """Return whether the stored columns are those that the plan would read from the file."""
    columns = {variable.name: variable for variable in dataset.schema}
    # Records were left out for a missing value in any stored column: with fewer columns, the file would give more
    # records.
    if dataset.dropped and set(schema.names) != set(columns):
        return False
    return all(v.name in columns and _is_read_alike(v, columns[v.name]) for v in schema)


def _is_read_alike(planned: Variable, stored: Variable) -> bool:
    """Return whether the stored values are those that the file would give: text stays text, numbers stay numbers."""
    numeric = {planned.kind.value, stored.kind.value} <= {"count", "continuous"}
    levelled = planned.kind.has_levels and stored.kind.has_levels
    # a date of another form, such as one with the month first, is another day
    same_kind = planned.kind is stored.kind and planned.date_form == stored.date_form
    return (same_kind or numeric or levelled) and set(planned.missing) >= set(stored.missing)


def enter_plan_run(workspace: Workspace, draft: PlanDraft) -> int:
    """Enter a run of a plan in its project and return its number. Raises BadInput; then nothing was stored."""
    prepared = prepare_plan(workspace, draft)
    name = workspace.connection.execute("SELECT name FROM project WHERE id = ?", (draft.project_id,)).fetchone()[0]
    return prepared.enter(workspace, str(name))


def prepare_companion_runs(
    main: PreparedRun, recipe_file: RecipeFile, settings: Sequence[str] = ()
) -> tuple[PreparedRun, ...]:
    """Prepare the runs of the recipes that ``main`` names as companions. Raises BadInput at ``companions[i]``.

    Stores nothing. Each uses ``main``'s data, seed and public rules, and the settings of data, variables and release.
    Companions of companions are ignored.
    """
    shared = [setting for setting in settings if setting.strip().startswith(SHARED_SETTINGS)]
    return tuple(
        _prepare_companion(main, recipe_file, name, shared, f"companions[{i}]")
        for i, name in enumerate(main.recipe.companions)
    )


def _prepare_companion(
    main: PreparedRun, recipe_file: RecipeFile, name: str, shared: Sequence[str], place: str
) -> PreparedRun:
    """Prepare the run of one companion on the data of ``main``. Raises BadInput at ``place``."""
    try:
        found = _find_companion(name, recipe_file)
    except BadInput as error:
        raise BadInput(place, error.message) from None
    if (found.name, found.data_directory) == (recipe_file.name, recipe_file.data_directory):
        raise BadInput(place, f'"{name}" is this recipe itself; leave it out')
    try:
        table = read_recipe_files(apply_settings(found.table, shared), found.data_directory)
        recipe = Recipe.from_table(_table_on_data_of(main, table))
        if recipe.schema != main.recipe.schema:
            raise BadInput("variables", "must be those of the recipe that it stands beside, in the same order")
        if not recipe.makes_release:
            raise BadInput("synthesis", "the recipe makes no release; add [[synthesis]] or [[anonymisation]]")
        data = _checked_data(recipe, main.data)
    except BadInput as error:
        raise BadInput(f'{place} "{name}": {error.place}', error.message) from None
    return PreparedRun(recipe, main.source, data)


def _find_companion(name: str, recipe_file: RecipeFile) -> RecipeFile:
    """Find a companion: next to the recipe that names it, else as any recipe is found."""
    if recipe_file.data_directory is not None:
        for path in (recipe_file.data_directory / name, recipe_file.data_directory / f"{name}.toml"):
            if path.is_file():
                return find_recipe(str(path))
    return find_recipe(name)


def _table_on_data_of(main: PreparedRun, table: dict[str, Any]) -> dict[str, Any]:
    """Return a companion's table with the data, the seed and the public rules of ``main``."""
    own = {key: value for key, value in table.items() if key != "companions"}
    release = {**table.get("release", {}), "seed": main.recipe.seed}
    if main.recipe.form.recode and not table.get("anonymisation"):
        release["recode"] = to_plain_value(main.recipe.form.recode)
    return {**own, "data": main.recipe.data.to_table(), "release": release}


def enter_with_companions(workspace: Workspace, main: PreparedRun, companions: Sequence[PreparedRun]) -> list[int]:
    """Enter a run and its companions, all or none, in one project; return their numbers, the main one's first."""
    return enter_runs(workspace, [_with_earlier_tables(workspace, one) for one in (main, *companions)])


def _with_earlier_tables(workspace: Workspace, prepared: PreparedRun) -> PreparedRun:
    """Return a run with the tables that earlier releases printed of the same people: what is printed stays printed."""
    if not prepared.recipe.tables:
        return prepared
    data = prepared.whole_data
    assert data is not None, "tables need all records at once"
    sha256 = workspace.tables.write_microdata(data)
    found = find_earlier_tables(workspace, prepared.recipe, data, sha256)
    return replace(prepared, earlier_tables=found)
