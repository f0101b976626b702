"""Tasks of a run: what is computed, in which order, what each task needs, and the computation of each.

The functions do not depend on who runs a task and where. ``key`` is that of the workspace, or ``PUBLIC`` by name: it
has no default, since a caller that forgot it would make datasets whose noise anyone with the seed can remove.
``synthesis_streams`` and ``measurement_streams`` state what random numbers depend on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.microdata import Microdata
from ..data.provenance import ReleaseProvenance
from ..data.recoding import align_levels
from ..data.schema import Role
from ..design.survey import INFORMATION, add_unweighted_remark
from ..errors import NotComputable
from ..methods.registry import Method, find_method, method_by_key
from ..methods.release_form import Anonymised
from ..methods.release_models import ReleaseModel
from ..methods.results import Diagnostic, Estimate, Fit, Measure, StudyPoint, WholeReleaseMeasure
from ..methods.rows import Row, average_each_series, row_from_estimate, row_params, with_confidential_baseline
from ..methods.run import Randomness, Run, ignore_progress
from ..recipe.budget import NO_PACKAGES, TrustedPackages, privacy_accounts
from ..recipe.data_source import HOW_TO_HOLD_OUT
from ..recipe.provenance import release_provenance
from ..recipe.recipe import Recipe
from ..recipe.steps import RecipeStep
from ..recipe.thresholds import Verdict, judge_thresholds
from .making import Note, Report, anonymise_table, draw_release, fit_step
from .refitting import make_shadow_maker

NOT_MADE_OF = (
    "title", "label", "description", "companions", "data", "weights", "measure", "study", "threshold", "published",
    "table", "tables",
)  # fmt: skip
"""The parts of a recipe that change no dataset: where data and weights come from, which enter themselves, and what is said of the release."""

NOT_OF_VARIABLES = ("title", "labels", "missing")
"""What a recipe says of a variable that changes no dataset; codes of missing values have been read."""
NOT_OF_DATASETS = (
    "order",
    "audience",
    "public_figures",
    "public_figures_epsilon",
    "surrogate_keys",
    "surrogate_scope",
)
"""Keys of [release] that change no dataset: with other public figures a run makes the same ones, and no second release of them costs more."""
TABLES, TABLES_AUDIT = "tables", "tables/audit"
"""Names of the tasks of tables, and of the artefacts that they leave."""
NOT_COMPUTED = "not computed"
"""The one array of a block that has no answer."""


def synthesis_streams(recipe: Recipe, confidential: Microdata, key: bytes) -> Randomness:
    """Return the random streams that fit, draw and anonymise, bound to all that makes the datasets.

    That is the data, their weights, the variables, the steps, m and further keys of the recipe, but not its measures
    and thresholds: with another measure a run makes the same datasets. Weights that are all 1 count as none.
    """
    # Two runs share random numbers only where they make the same datasets. Were seed and path enough, two runs that
    # differ in one record, or in one setting, would have the same noise nearly everywhere: whoever holds both releases
    # could subtract one from the other, which leaves the record, or the model without its noise
    # (tests/attacks/test_differences.py measures it). Public streams are bound to nothing: the seed alone decides, as
    # in earlier versions.
    bound_to = (confidential.sha256, _hash_for_data(recipe, confidential), *_weights_hash(confidential)) if key else ()
    return Randomness(recipe.seed, key, bound_to)


def measurement_streams(recipe: Recipe, confidential: Microdata, key: bytes) -> Randomness:
    """Return the random streams of measures and studies, bound to the data alone."""
    # No number of theirs enters a dataset, and candidates for one release are compared by the same ones.
    # The order of the variables changes no measure.
    return Randomness(recipe.seed, key, (confidential.sha256_in_any_order,) if key else ())


def _weights_hash(confidential: Microdata) -> tuple[str, ...]:
    weights = confidential.weights
    return () if weights is None else (hashlib.sha256(weights.astype("<f8").tobytes()).hexdigest(),)


def _hash_for_data(recipe: Recipe, confidential: Microdata) -> str:
    """Return the hash of what of a recipe changes the datasets of these data.

    Where each unit has one record, the variable that numbers units numbers records, as an identifier does: the datasets are
    the same, and so are their random numbers.
    """
    if recipe.schema.unit is None or confidential.units is not None or recipe.form.units:
        return dataset_recipe_hash(recipe)
    variables = tuple(
        replace(v, role=Role.IDENTIFIER, runs_of=()) if v.role is Role.UNIT else replace(v, level="")
        for v in recipe.schema
    )
    return dataset_recipe_hash(replace(recipe, schema=replace(recipe.schema, variables=variables)))


def dataset_recipe_hash(recipe: Recipe) -> str:
    """Return the hash of all parts of a recipe that change its datasets."""
    table = {name: part for name, part in recipe.to_table().items() if name not in NOT_MADE_OF}
    if recipe.synthesis:
        table["synthesis"] = [_dataset_settings(step) for step in recipe.synthesis]
    table["release"] = {said: value for said, value in table["release"].items() if said not in NOT_OF_DATASETS}
    if recipe.data.largest_unit is not None:
        # Which records are counted, and how much noise is added: two runs that differ in it share no random numbers.
        table["largest_unit"] = [recipe.data.largest_unit, recipe.data.order]
    # A list keeps the order of the variables, which changes the datasets; sorted keys would lose it.
    table["variables"] = [
        [name, {said: value for said, value in own.items() if said not in NOT_OF_VARIABLES}]
        for name, own in table["variables"].items()
    ]
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def _dataset_settings(step: RecipeStep) -> dict[str, object]:
    """Return the settings of a step that change its dataset."""
    beside = {info.name for info in step.spec.params() if info.param.changes_no_data}
    return {said: value for said, value in step.to_table().items() if said not in beside}


class TaskKind(StrEnum):
    """Kind of a task.

    These are to protect tables, audit them with all that is released beside them, anonymise the table, fit a model,
    draw a dataset, measure one, compute points of a study, and combine everything into verdicts.
    """

    TABLES = "tables"
    TABLES_AUDIT = "tables/audit"
    ANONYMISE = "anonymise"
    FIT = "fit"
    DRAW = "draw"
    MEASURE = "measure"
    STUDY = "study"
    COMBINE = "combine"


@dataclass(frozen=True, slots=True)
class Task:
    """One unit of a run's work. ``item`` numbers the recipe's steps of the kind from 0, ``draw`` the datasets from 1."""

    key: str
    kind: TaskKind
    item: int = 0
    draw: int | None = None
    point: float | None = None
    needs: tuple[str, ...] = ()


def plan_tasks(recipe: Recipe) -> tuple[Task, ...]:
    """Return every task of a run of this recipe, each after all that it needs.

    Anonymisation steps are one task, which makes dataset 1. A recipe without any steps scores given datasets: it has no
    fits and no draws.
    """
    tasks = tuple(_tasks_before_combining(recipe))
    return (*tasks, Task("combine", TaskKind.COMBINE, needs=tuple(task.key for task in tasks)))


def _tasks_before_combining(recipe: Recipe) -> Iterator[Task]:
    """Yield every task except the last, which needs them all."""
    if recipe.tables:
        yield Task(TABLES, TaskKind.TABLES)
        yield Task(TABLES_AUDIT, TaskKind.TABLES_AUDIT, needs=(TABLES,))
    fits = tuple(f"fit/{k}" for k in range(len(recipe.synthesis)))
    for k, key in enumerate(fits):
        yield Task(key, TaskKind.FIT, k)
    draws = tuple(f"draw/{draw}" for draw in range(1, recipe.m + 1)) if fits else ()
    for draw, key in enumerate(draws, start=1):
        yield Task(key, TaskKind.DRAW, draw=draw, needs=fits)
    if recipe.anonymisation:
        draws = ("draw/1",)
        yield Task(draws[0], TaskKind.ANONYMISE, draw=1)
    for j, step in enumerate(recipe.measures):
        if step.method.measurement.confidential:
            yield Task(f"measure/{j}/confidential", TaskKind.MEASURE, j)
    for draw in range(1, recipe.m + 1):
        for j, step in enumerate(recipe.measures):
            if not step.method.measures_whole_release:
                yield Task(f"measure/{j}/{draw}", TaskKind.MEASURE, j, draw, needs=draws[draw - 1 : draw])
    for j, step in enumerate(recipe.measures):
        if step.method.measures_whole_release:
            blocks = tuple(Task(block_name(j, b), TaskKind.MEASURE, j, point=b, needs=draws) for b in step.spec.grid())
            yield from blocks
            yield Task(f"measure/{j}/whole", TaskKind.MEASURE, j, needs=tuple(block.key for block in blocks))
    for s, step in enumerate(recipe.studies):
        grid = step.spec.grid()
        for some in _point_ranges(step.method, len(grid)):
            named = f"{some.start}" if len(some) == 1 else f"{some.start}-{some.stop - 1}"
            yield Task(f"study/{s}/{named}", TaskKind.STUDY, s, point=grid[some.start], needs=draws)


def _point_ranges(method: Method, points: int) -> list[range]:
    """Return the places of the points that each task of a study computes."""
    # Half of the points where shared work is prepared once, so that two cores share the study.
    size = 1 if method.study.points is None else (points + 1) // 2
    return [range(first, min(points, first + size)) for first in range(0, points, size)]


def points_of_task(recipe: Recipe, item: int, task: str) -> tuple[float, ...]:
    """Return the points of study ``item`` that the task of this name computes."""
    first, _, last = task.rpartition("/")[2].partition("-")
    return recipe.studies[item].spec.grid()[int(first) : int(last or first) + 1]


def block_name(item: int, block: float) -> str:
    """Return the name of the task, and of the artefact, of one block of a measure of a whole release."""
    return f"measure/{item}/block/{block:g}"


def fit_model(
    recipe: Recipe, item: int, confidential: Microdata, report: Report = ignore_progress, *, key: bytes
) -> Fit:
    """Fit the recipe's synthesis step ``item`` to the recoded confidential data, with m posterior draws."""
    confidential = recipe.recode_data(confidential)
    return fit_step(recipe, item, confidential, synthesis_streams(recipe, confidential.without_controls, key), report)


def draw_dataset(
    recipe: Recipe,
    draw: int,
    confidential: Microdata,
    fits: Sequence[Fit],
    report: Report = ignore_progress,
    *,
    key: bytes,
    note: Note = lambda _: None,
) -> Microdata:
    """Draw dataset ``draw`` (from 1) of the recoded data, as ``making.draw_release`` does."""
    confidential = recipe.recode_data(confidential)
    return draw_release(
        recipe, draw, confidential, fits, synthesis_streams(recipe, confidential.without_controls, key), report, note
    )


def anonymise_data(
    recipe: Recipe, confidential: Microdata, report: Report = ignore_progress, *, key: bytes
) -> Anonymised:
    """Carry out the recipe's anonymisation steps in their order, as ``making.anonymise_table`` does."""
    return anonymise_table(recipe, confidential, synthesis_streams(recipe, confidential.without_controls, key), report)


def account_rows(
    recipe: Recipe,
    item: int,
    confidential: Microdata,
    *,
    key: bytes,
    trusted_packages: TrustedPackages = NO_PACKAGES,
) -> list[Row]:
    """Return the rows of the privacy account of synthesis step ``item``, if it keeps one.

    With a public key there is no epsilon, nor for a method of a package that ``trusted_packages`` lacks.
    """
    step = recipe.synthesis[item]
    kept = privacy_accounts(recipe, confidential.without_controls, secret=bool(key), trusted_packages=trusted_packages)
    account = next((own for of, own in kept if of is step), None)
    if account is None:
        return []
    measure = Measure(tuple(replace(e, target=step.target if len(kept) > 1 else "") for e in account.estimates()))
    return rows_of_measure(step.method, measure, recipe.origin, None, settings=recipe.settings(step))


def fit_rows(recipe: Recipe, item: int, fit: Fit, confidential: Microdata) -> list[Row]:
    """Return the rows of the estimates that the fit of synthesis step ``item`` provides, if its method has any."""
    step = recipe.synthesis[item]
    # Estimates are of records, and a step of drawn units counts units, or records place by place.
    if step.method.synthesis.privacy.fit_estimates is None or step.table is not None:
        return []
    found = step.method.synthesis.privacy.fit_estimates(
        fit,
        step.spec,
        step.targets,
        recipe.recode_data(confidential).without_controls,
        release_provenance(recipe, len(confidential)),
    )
    return rows_of_measure(step.method, Measure(found), recipe.origin, None, settings=recipe.settings(step))


def measure_dataset(
    recipe: Recipe,
    item: int,
    confidential: Microdata,
    released: Microdata,
    draw: int | None,
    report: Report = ignore_progress,
    *,
    key: bytes,
) -> tuple[Measure, list[Row]]:
    """Return measure ``item`` of the recipe on one released dataset, or on the confidential data themselves (``draw``
    None), and its rows.
    """
    step = recipe.measures[item]
    confidential, (released,) = tables_to_compare(recipe, step, confidential, [] if draw is None else [released])
    streams = measurement_streams(recipe, confidential, key)
    common = streams.generator("measure", item, "all datasets")
    run = Run(streams.generator("measure", item, draw or 0), report=report, shared=common)
    measure = _compute_or_explain(
        step.method,
        confidential,
        lambda: step.method.measure(
            _with_needed_controls(step, confidential),
            released.without_controls,
            step.spec.for_release(recipe.schema, recipe.released),
            run,
        ),
    )
    measure = add_unweighted_remark(step.method, measure, recipe.schema)
    return measure, rows_of_measure(step.method, measure, released.origin, draw, settings=recipe.settings(step))


def measure_block(
    recipe: Recipe,
    item: int,
    block: float,
    confidential: Microdata,
    releases: Sequence[Microdata],
    report: Report = ignore_progress,
    *,
    key: bytes,
) -> Mapping[str, NDArray[Any]]:
    """Compute one block of a measure of all released datasets.

    Return the arrays to store, or ``NOT_COMPUTED`` with the reason.
    """
    step = recipe.measures[item]
    confidential, releases = tables_to_compare(recipe, step, confidential, releases)
    run = Run(measurement_streams(recipe, confidential, key).generator("measure", item, 0), report=report)

    def models(data: Microdata, releases: Sequence[Microdata] = releases) -> tuple[ReleaseModel, ...]:
        """Return the models of all steps, fitted to these data.

        Raises NotComputable where one cannot use their weights.
        """
        data = data.without_controls
        for step in recipe.synthesis:
            if data.weights is not None and not step.method.synthesis.release_model.is_weighted:
                raise NotComputable(
                    f"{step.method.key} ({step.place}) does not say how probable a release is that records of less influence made"
                )
        made = [(made, made.method.synthesis.release_model.make_model) for made in recipe.synthesis]
        return tuple(of(data, made.targets, made.spec, releases, run) for made, of in made if of is not None)

    spec = step.spec.for_release(recipe.schema, recipe.released)
    streams = measurement_streams(recipe, confidential, key).with_path_prefix("measure", item, "shadow")
    asked: Any = (
        make_shadow_maker(recipe, confidential.without_controls, models, streams)
        if step.method.measurement.refits
        else models
    )
    try:
        result = step.method.measure_block(
            _with_needed_controls(step, confidential), releases, asked, spec, int(block), run
        )
    except NotComputable as error:
        return {NOT_COMPUTED: np.asarray(error.reason)}
    return result.to_arrays()


def gather_blocks(
    recipe: Recipe,
    item: int,
    confidential: Microdata,
    releases: Sequence[Microdata],
    parts: Sequence[Mapping[str, NDArray[Any]]],
) -> tuple[WholeReleaseMeasure, list[Row]]:
    """Combine the stored blocks of a measure.

    Return the result, and rows of the whole release and of each dataset alone.
    """
    step = recipe.measures[item]
    gather, block_result = step.method.measurement.gather, step.method.measurement.block_result
    assert gather is not None
    assert block_result is not None
    confidential, releases = tables_to_compare(recipe, step, confidential, releases)
    spec = step.spec.for_release(recipe.schema, recipe.released)
    try:
        for part in parts:
            if NOT_COMPUTED in part:
                raise NotComputable(str(part[NOT_COMPUTED]))
        blocks = [block_result.from_arrays(part) for part in parts]
        found = gather(_with_needed_controls(step, confidential), releases, spec, blocks)
    except NotComputable as error:
        found = WholeReleaseMeasure(explain_not_computed(step.method, error, confidential))
    settings = recipe.settings(step)
    rows = rows_of_measure(step.method, found.whole, recipe.origin, None, settings=settings)
    for draw, alone in enumerate(found.datasets, start=1):
        rows += rows_of_measure(step.method, alone, recipe.origin, draw, settings=settings)
    return found, rows


def tables_to_compare(
    recipe: Recipe, step: RecipeStep, confidential: Microdata, releases: Sequence[Microdata]
) -> tuple[Microdata, Sequence[Microdata]]:
    """Return the confidential records and the released datasets as a measure compares them.

    Without releases the records stand for one.
    """
    # Risk is measured by what the public rules leave of the intruder's knowledge, since a coarse value equals no exact
    # one; utility by exact values, so that the loss by recoding counts.
    if step.method.family not in INFORMATION:
        confidential = recipe.recode_data(confidential)
    elif recipe.form.recode:
        pairs = [align_levels(confidential, one, recipe.form.recode) for one in releases or [confidential]]
        return pairs[0][0], [one for _, one in pairs]
    return confidential, releases or [confidential]


def _with_needed_controls(step: RecipeStep, confidential: Microdata) -> Microdata:
    """Return the confidential records, with controls only where the measure needs them.

    Raises NotComputable where it lacks them.
    """
    if not step.method.measurement.controls:
        return confidential.without_controls
    if confidential.controls is None:
        raise NotComputable(f"no control records were held out; {HOW_TO_HOLD_OUT}")
    return confidential


def _compute_or_explain(method: Method, confidential: Microdata, compute: Callable[[], Measure]) -> Measure:
    """Return the measure, or its outputs as not computed with the reason."""
    try:
        return compute()
    except NotComputable as error:
        return explain_not_computed(method, error, confidential)


def explain_not_computed(method: Method, error: NotComputable, confidential: Microdata) -> Measure:
    """Return all outputs without a value and with the reason; those by unit too where units have several records."""
    found = [Estimate.not_computed(output.name, error.reason) for output in method.outputs]
    if confidential.units is not None:
        counted = (output for output in method.outputs if "by" in dict(output.row_defaults))
        found += [Estimate.not_computed(output.name, error.reason, by="unit") for output in counted]
    return Measure(tuple(found))


def rows_of_measure(
    method: Method,
    measure: Measure,
    dataset: str,
    draw: int | None,
    level: float | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[Row]:
    """Return the rows of a measure's estimates, with the settings of its step."""
    return [row_from_estimate(method, estimate, dataset, draw, level, settings) for estimate in measure.estimates]


def compute_study_point(
    recipe: Recipe,
    item: int,
    point: float,
    confidential: Microdata,
    releases: Sequence[Microdata],
    report: Report = ignore_progress,
    *,
    key: bytes,
) -> list[Row]:
    """Compute one point of study ``item``; return rows of the confidential data and of every release."""
    return compute_study_points(recipe, item, (point,), confidential, releases, report, key=key)


def compute_study_points(
    recipe: Recipe,
    item: int,
    points: Sequence[float],
    confidential: Microdata,
    releases: Sequence[Microdata],
    report: Report = ignore_progress,
    *,
    key: bytes,
) -> list[Row]:
    """Compute some points of study ``item``; return the rows that ``compute_study_point`` returns for each."""
    step, confidential = recipe.studies[item], recipe.recode_data(confidential)
    # All points have the same random numbers, so that only the point differs between them.
    streams = [measurement_streams(recipe, confidential, key).generator("study", item) for _ in points]
    runs = [Run(stream, report=report) for stream in streams]
    spec = step.spec.for_release(recipe.schema, recipe.released)
    together = step.method.study.points
    try:
        if together is not None:
            found = together(confidential.without_controls, releases, points, spec, runs)
        else:
            own = zip(points, runs, strict=True)
            found = [
                step.method.compute_point(confidential.without_controls, releases, point, spec, run)
                for point, run in own
            ]
    except NotComputable as error:
        found = [
            StudyPoint(None, tuple(explain_not_computed(step.method, error, confidential) for _ in releases))
            for _ in points
        ]
    return [
        row for at, one in zip(points, found, strict=True) for row in _rows_at_point(recipe, item, at, one, releases)
    ]


def _rows_at_point(
    recipe: Recipe, item: int, point: float, found: StudyPoint, releases: Sequence[Microdata]
) -> list[Row]:
    """Return the rows of the confidential data and of every release at one point."""
    step = recipe.studies[item]
    tables: list[tuple[str, int | None, Measure]] = (
        [] if found.confidential is None else [("confidential", None, found.confidential)]
    )
    for draw, (release, measure) in enumerate(zip(releases, found.releases, strict=True), start=1):
        tables.append((release.origin, draw, measure))
    settings = recipe.settings(step)
    return [row for own in tables for row in rows_of_measure(step.method, own[2], *own[:2], point, settings)]


def combine_rows(recipe: Recipe, rows: Sequence[Row], provenance: ReleaseProvenance) -> tuple[list[Row], list[Verdict]]:
    """Return all rows of a run, completed by combined datasets, baselines and study summaries, and the verdicts on
    them.

    ``provenance`` says how the release came about. Rows of intermediate outputs are dropped.
    """
    methods = filter(None, map(method_by_key, dict.fromkeys(row.method_key for row in rows)))
    hidden = {f"{found.key}.{o.name}" for found in methods for o in found.outputs if o.intermediate}
    kept = [row for row in rows if row.key not in hidden]
    combined = [row for row in combine_series(rows_with_draw(rows), provenance) if row.key not in hidden]
    complete = with_confidential_baseline(
        [*(row for row in kept if row.draw is None), *combined, *rows_with_draw(kept)]
    )
    complete = [*complete, *_study_summaries(recipe, rows)]
    return complete, judge_thresholds(recipe.thresholds, complete)


def _study_summaries(recipe: Recipe, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows that summarise the points of each study, by the study's own rule."""
    for step in recipe.studies:
        if rule := step.method.study.summarise:
            own = [row for row in rows if recipe.step_of_row(row.method_key, row.params) is step]
            settings = recipe.settings(step)
            yield from (replace(row, params=row_params(step.method, row.params, settings)) for row in rule(own))


def combine_series(rows: Sequence[Row], provenance: ReleaseProvenance) -> list[Row]:
    """Combine each series of each dataset into one row, by the method's own rule or else the average."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    order: dict[tuple[Any, ...], int] = {}
    for row in rows:
        groups.setdefault((row.method_key, row.dataset, row.level), []).append(row)
        order.setdefault((row.dataset, *row.series), len(order))
    found: list[Row] = []
    for (key, *_), group in groups.items():
        method = find_method(key, "method")
        if method.measures_whole_release:  # what it says of all datasets is no average
            continue
        if method.combine is not None:
            # A method's own rule uses the rows of its intermediate outputs too.
            found += method.combine(group, provenance)
            continue
        hidden = {output.name for output in method.outputs if output.intermediate}
        found += average_each_series([row for row in group if row.measure not in hidden], provenance.records)
    return sorted(found, key=lambda row: order[row.dataset, *row.series])


def rows_with_draw(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.draw is not None]


@dataclass(frozen=True)
class RunResult:
    """Result of a whole run: rows, verdicts, released datasets, and fits, or diagnostics of an anonymisation."""

    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...]
    releases: tuple[Microdata, ...] = ()
    fits: Mapping[str, Fit] = field(default_factory=dict)
    notes: tuple[Diagnostic, ...] = ()


def execute_run(
    recipe: Recipe,
    confidential: Microdata,
    given: Sequence[Microdata] = (),
    report: Report = ignore_progress,
    *,
    key: bytes,
) -> RunResult:
    """Carry out a whole run in this process, with the same result as a worker's, task by task.

    ``given`` are the released datasets where the recipe makes none.
    """
    fits = [fit_model(recipe, k, confidential, report, key=key) for k in range(len(recipe.synthesis))]
    releases = list(given)
    if fits:
        releases = [draw_dataset(recipe, draw, confidential, fits, report, key=key) for draw in range(1, recipe.m + 1)]
    table = anonymise_data(recipe, confidential, report, key=key) if recipe.anonymisation else None
    if table:
        releases = [table.data]
    rows = [row for k in range(len(fits)) for row in account_rows(recipe, k, confidential, key=key)]
    rows += [row for k, fit in enumerate(fits) for row in fit_rows(recipe, k, fit, confidential)]
    for j, step in enumerate(recipe.measures):
        if step.method.measurement.confidential:
            rows.extend(measure_dataset(recipe, j, confidential, confidential, None, report, key=key)[1])
    for draw, released in enumerate(releases, start=1):
        for j, step in enumerate(recipe.measures):
            if not step.method.measures_whole_release:
                rows.extend(measure_dataset(recipe, j, confidential, released, draw, report, key=key)[1])
    for j, step in enumerate(recipe.measures):
        if step.method.measures_whole_release:
            parts = [measure_block(recipe, j, b, confidential, releases, report, key=key) for b in step.spec.grid()]
            rows.extend(gather_blocks(recipe, j, confidential, releases, parts)[1])
    for s, step in enumerate(recipe.studies):
        rows.extend(compute_study_points(recipe, s, step.spec.grid(), confidential, releases, report, key=key))
    provenance = release_provenance(recipe, len(confidential), [len(one) for one in releases])
    complete, verdicts = combine_rows(recipe, rows, provenance)
    targets = [step.target for step in recipe.synthesis]
    models = dict(zip(targets, fits, strict=True))
    notes = table.notes if table else ()
    return RunResult(tuple(complete), tuple(verdicts), tuple(releases), models, notes)
