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
from ..methods.passes import measure_blocks, run_passes
from ..methods.registry import Method
from ..methods.results import Fit, Measure
from ..methods.rows import Row
from ..methods.run import Progress, Randomness, Run, ignore_progress
from ..recipe.provenance import release_provenance
from ..recipe.recipe import Recipe
from .making import Report, draw_release
from .tasks import TaskKind, dataset_recipe_hash, explain_not_computed, rows_of_measure


def works_in_passes(recipe: Recipe, kind: TaskKind, item: int) -> bool:
    """Return whether tasks of a kind, of the recipe's step ``item``, can be computed block by block."""
    if not _has_plain_records(recipe):
        return False
    match kind:
        case TaskKind.FIT:
            step = recipe.synthesis[item]
            fitted = step.method.synthesis.fit_passes
            return fitted is not None and fitted.suits(step.spec, recipe.schema)
        case TaskKind.DRAW:
            return all(step.method.synthesis.draws_by_block for step in recipe.synthesis)
        case TaskKind.MEASURE:
            measured = recipe.measures[item].method.measurement.measure_passes
            return measured is not None and measured.suits(_measure_spec(recipe, item), recipe.schema)
    return False


def is_checked_in_blocks(recipe: Recipe) -> bool:
    """Return whether a long table of the recipe is checked block by block (``recipe.checks.check_steps_of_blocks``)."""
    made = all(
        works_in_passes(recipe, TaskKind.FIT, item) or step.method.synthesis.draws_by_block
        for item, step in enumerate(recipe.synthesis)
    )
    return (
        bool(recipe.synthesis)
        and _has_plain_records(recipe)
        and made
        and all(works_in_passes(recipe, TaskKind.MEASURE, item) for item in range(len(recipe.measures)))
        and not (recipe.tables or recipe.studies or recipe.anonymisation)
        # how much room chains take depends on the number of records
        and not any(getattr(step.spec, "keep_chains", False) for step in recipe.synthesis)
    )


def _has_plain_records(recipe: Recipe) -> bool:
    """Return whether records are all that there is: no units, weights, rules or constraints, which need other records."""
    return (
        recipe.schema.unit is None
        and recipe.weights is None
        and not recipe.schema.names_by_role(Role.WEIGHT)
        and not recipe.form.recode
        and not recipe.form.units
        and recipe.form.records is None
        and not any((*recipe.constraint_plan.constraints, *recipe.constraint_plan.computed))
        and not any(step.is_private or step.table is not None for step in recipe.synthesis)
        and recipe.origin != "anonymised"
        and not recipe.generalised
    )


def _measure_spec(recipe: Recipe, item: int) -> Any:
    """Return the parameters of measure ``item``, with what follows from the release."""
    return recipe.measures[item].spec.for_release(recipe.schema, recipe.released)


def block_streams(recipe: Recipe, confidential: TableBlocks, key: bytes) -> Randomness:
    """Return the streams of ``tasks.synthesis_streams`` for a table that is read in blocks."""
    bound_to = (confidential.data_sha256, dataset_recipe_hash(recipe)) if key else ()
    return Randomness(recipe.seed, key, bound_to)


def fit_in_passes(
    recipe: Recipe, item: int, confidential: TableBlocks, report: Report = ignore_progress, *, key: bytes
) -> Fit:
    """Fit the recipe's synthesis step ``item``, with m posterior draws, as ``tasks.fit_model`` does."""
    step, passes = recipe.synthesis[item], recipe.synthesis[item].method.synthesis.fit_passes
    assert passes is not None
    (target,) = step.targets
    streams = block_streams(recipe, confidential, key)
    provenance = release_provenance(recipe, len(confidential))
    run = Run(streams.generator("fit", item), report=report, provenance=provenance)
    first = passes.start(confidential.head, target, step.spec, confidential.n_blocks)
    answer = run_passes(first, [confidential], passes.block, passes.merge, report)
    return passes.fit(answer, confidential.head, target, step.spec, run, recipe.m)


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
) -> tuple[Measure, list[Row]]:
    """Return measure ``item`` of the recipe and its rows, as ``tasks.measure_dataset`` does.

    Both tables have the same blocks of records; for the confidential data themselves (``draw`` None) they are one. Rows
    that a pass brings together go to files that ``open_file`` opens. Values of single records are read from these, so that
    they have to be read before the files are closed.
    """
    step = recipe.measures[item]
    measure = _measure_or_explain(recipe, step.method, item, confidential, released, report, open_file)
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
) -> Measure:
    """Return the measure, or its outputs as not computed with the reason."""
    passes = method.measurement.measure_passes
    assert passes is not None
    try:
        return measure_blocks(passes, confidential, released, _measure_spec(recipe, item), report, open_file)
    except NotComputable as error:
        return explain_not_computed(method, error, confidential.head)
