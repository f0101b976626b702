"""Tasks of a run that are computed block by block, from a table that need not fit into memory.

A fit and a measure are passes of their method (``sfumato.engine.methods.passes``). A dataset is drawn block by block,
each with random numbers of its own: those of block b have b behind their path. ``works_in_passes`` says which tasks of a
recipe can be computed so; the others take the whole table.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from ..data.microdata import Microdata
from ..data.row_buckets import OpenFile
from ..data.schema import Role
from ..data.table_blocks import TableBlocks
from ..errors import NotComputable
from ..methods.passes import PartialStore, measure_blocks, run_passes
from ..methods.registry import Method
from ..methods.results import Fit, Measure
from ..methods.rows import Row
from ..methods.run import Progress, Randomness, Run, ignore_progress
from ..recipe.provenance import release_provenance
from ..recipe.recipe import Recipe
from ..recipe.steps import RecipeStep
from ..wording import join_names
from .making import Report, draw_release
from .tasks import TaskKind, dataset_recipe_hash, explain_not_computed, rows_of_measure


def works_in_passes(recipe: Recipe, kind: TaskKind, item: int) -> bool:
    """Return whether tasks of a kind, of the recipe's step ``item``, can be computed block by block."""
    return not whole_table_reason(recipe, kind, item)


def whole_table_reason(recipe: Recipe, kind: TaskKind, item: int) -> str:
    """Return why tasks of a kind, of the recipe's step ``item``, need the whole table, in words; empty where they work
    in passes.
    """
    if there := _needs_other_records(recipe):
        return f"{join_names(there)} of the recipe need it"
    match kind:
        case TaskKind.FIT:
            step = recipe.synthesis[item]
            return _reason_of_passes(step.method, step.method.synthesis.fit_passes, step.spec, recipe)
        case TaskKind.DRAW:
            needing = {step.method.key for step in recipe.synthesis if not _draws_by_block(step, recipe)}
            return f"draws of {join_names(sorted(needing))} need it" if needing else ""
        case TaskKind.MEASURE:
            method = recipe.measures[item].method
            return _reason_of_passes(method, method.measurement.measure_passes, _measure_spec(recipe, item), recipe)
    return "tasks of this kind need it"


def _reason_of_passes(method: Method, passes: Any, spec: Any, recipe: Recipe) -> str:
    """Return why a method needs the whole table, in words; empty where it has passes that suit."""
    if passes is None:
        return f"{method.key} needs it"
    if passes.suits(spec, recipe.schema):
        return ""
    needs = f"; it needs {passes.needs}" if getattr(passes, "needs", "") else ""
    return f"{method.key} works part by part, but not with these settings and variables{needs}"


def _draws_by_block(step: RecipeStep, recipe: Recipe) -> bool:
    """Return whether a step's draws of a record depend on no other one: what they need of others is in a fit by passes."""
    declared = step.method.synthesis
    return declared.draws_by_block and (
        declared.fit_passes is None or declared.fit_passes.suits(step.spec, recipe.schema)
    )


def is_checked_in_blocks(recipe: Recipe) -> bool:
    """Return whether a long table of the recipe is checked block by block (``recipe.checks.check_steps_of_blocks``)."""
    made = all(
        works_in_passes(recipe, TaskKind.FIT, item) or _draws_by_block(step, recipe)
        for item, step in enumerate(recipe.synthesis)
    )
    return (
        bool(recipe.synthesis)
        and not _needs_other_records(recipe)
        and made
        and all(works_in_passes(recipe, TaskKind.MEASURE, item) for item in range(len(recipe.measures)))
        and not (recipe.tables or recipe.studies or recipe.anonymisation)
        # how much room chains take depends on the number of records
        and not any(getattr(step.spec, "keep_chains", False) for step in recipe.synthesis)
    )


def _needs_other_records(recipe: Recipe) -> list[str]:
    """Return what of the recipe needs other records than a block has, in words; none where records are all there is."""
    there = {
        "units": recipe.schema.unit is not None or bool(recipe.form.units),
        "weights": recipe.weights is not None or bool(recipe.schema.names_by_role(Role.WEIGHT)),
        "rules of recoding": bool(recipe.form.recode or recipe.generalised),
        "another number of records": recipe.form.records is not None,
        "constraints": any((*recipe.constraint_plan.constraints, *recipe.constraint_plan.computed)),
        "steps with an epsilon": any(step.is_private for step in recipe.synthesis),
        "steps of another table": any(step.table is not None for step in recipe.synthesis),
        "steps of an anonymisation": recipe.origin == "anonymised",
    }
    return [words for words, is_there in there.items() if is_there]


def _measure_spec(recipe: Recipe, item: int) -> Any:
    """Return the parameters of measure ``item``, with what follows from the release."""
    return recipe.measures[item].spec.for_release(recipe.schema, recipe.released)


def block_streams(recipe: Recipe, confidential: TableBlocks, key: bytes) -> Randomness:
    """Return the streams of ``tasks.synthesis_streams`` for a table that is read in blocks."""
    bound_to = (confidential.data_sha256, dataset_recipe_hash(recipe)) if key else ()
    return Randomness(recipe.seed, key, bound_to)


def fit_in_passes(
    recipe: Recipe,
    item: int,
    confidential: TableBlocks,
    report: Report = ignore_progress,
    store: PartialStore | None = None,
    open_file: OpenFile = io.BytesIO,
    *,
    key: bytes,
) -> Fit:
    """Fit the recipe's synthesis step ``item``, with m posterior draws, as ``tasks.fit_model`` does.

    ``store`` keeps the answers of blocks, for whoever resumes or helps. Rows that a pass brings together go to files that
    ``open_file`` opens.
    """
    step, passes = recipe.synthesis[item], recipe.synthesis[item].method.synthesis.fit_passes
    assert passes is not None
    streams = block_streams(recipe, confidential, key)
    provenance = release_provenance(recipe, len(confidential))
    run = Run(streams.generator("fit", item), report=report, provenance=provenance)
    answer = _answer_of_fit_passes(recipe, item, confidential, report, store, open_file)
    targets = step.method.targets_of_passes(step.targets)
    return passes.fit(answer, confidential.head, targets, step.spec, run, recipe.m)


def _answer_of_fit_passes(
    recipe: Recipe,
    item: int,
    confidential: TableBlocks,
    report: Report,
    store: PartialStore | None,
    open_file: OpenFile = io.BytesIO,
) -> Any:
    """Return the answer of the passes of the recipe's synthesis step ``item``."""
    step, passes = recipe.synthesis[item], recipe.synthesis[item].method.synthesis.fit_passes
    assert passes is not None
    targets = step.method.targets_of_passes(step.targets)
    first = passes.start(confidential.head, targets, step.spec, confidential.n_blocks)
    return run_passes(first, [confidential], passes.block, passes.merge, report, store, open_file)


def compute_partials(
    recipe: Recipe, kind: TaskKind, item: int, confidential: TableBlocks, released: TableBlocks, store: PartialStore
) -> None:
    """Compute answers of blocks into ``store`` beside whoever carries out a fit or a measure of the recipe's ``item``.

    ``store`` ends it by an exception of its own. Raises NotComputable and BadInput as the task does.
    """
    if kind == TaskKind.FIT:
        _answer_of_fit_passes(recipe, item, confidential, ignore_progress, store)
    else:
        passes = recipe.measures[item].method.measurement.measure_passes
        assert passes is not None
        measure_blocks(passes, confidential, released, _measure_spec(recipe, item), store=store)


def draw_blocks(
    recipe: Recipe,
    draw: int,
    confidential: TableBlocks,
    fits: Sequence[Fit],
    report: Report = ignore_progress,
    *,
    key: bytes,
) -> Iterator[Microdata]:
    """Yield dataset ``draw`` (from 1) block by block, each as ``making.draw_release`` draws a table."""
    streams = block_streams(recipe, confidential, key)
    for number, block in enumerate(confidential.iterate_blocks()):
        yield draw_release(recipe, draw, block, fits, streams.with_path_suffix(number))
        report(Progress(number + 1, confidential.n_blocks, f"dataset {draw}"))


def measure_in_passes(
    recipe: Recipe,
    item: int,
    confidential: TableBlocks,
    released: TableBlocks,
    draw: int | None,
    report: Report = ignore_progress,
    open_file: OpenFile = io.BytesIO,
    store: PartialStore | None = None,
) -> tuple[Measure, list[Row]]:
    """Return measure ``item`` of the recipe and its rows, as ``tasks.measure_dataset`` does.

    Both tables have the same blocks of records; for the confidential data themselves (``draw`` None) they are one. Rows
    that a pass brings together go to files that ``open_file`` opens. Values of single records are read from these, so that
    they have to be read before the files are closed. ``store`` keeps the answers of blocks, for whoever resumes or
    helps.
    """
    step = recipe.measures[item]
    measure = _measure_or_explain(recipe, step.method, item, confidential, released, report, open_file, store)
    origin = released.head.origin
    return measure, rows_of_measure(step.method, measure, origin, draw, settings=recipe.settings(step))


def _measure_or_explain(
    recipe: Recipe,
    method: Method,
    item: int,
    confidential: TableBlocks,
    released: TableBlocks,
    report: Report,
    open_file: OpenFile,
    store: PartialStore | None,
) -> Measure:
    """Return the measure, or its outputs as not computed with the reason."""
    passes = method.measurement.measure_passes
    assert passes is not None
    try:
        return measure_blocks(passes, confidential, released, _measure_spec(recipe, item), report, open_file, store)
    except NotComputable as error:
        return explain_not_computed(method, error, confidential.head)
