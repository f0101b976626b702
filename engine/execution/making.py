"""Creation of a release by the steps of a recipe, from confidential data and random streams: the run's own, and shadow
releases.

It includes the order of synthesis, constraints, what a step sees when it draws, and limits of anonymisation. A run
calls it with its own streams (``tasks``); an audit calls it again with other data and other streams
(``ShadowReleases``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..constraints.redraw_counts import RedrawCounts
from ..constraints.rejection_sampling import ConstrainedDataset
from ..data.microdata import Microdata
from ..errors import BadInput
from ..methods.release_form import AnonymisationSpec, Anonymised
from ..methods.results import Diagnostic, Fit
from ..methods.run import Progress, Randomness, Run, ignore_progress
from ..partition.equivalence_classes import Limits, SensitiveColumn, class_sizes, equivalence_classes
from ..partition.partial_matches import matching_sizes
from ..recipe.provenance import release_provenance
from ..recipe.recipe import Recipe
from ..recipe.steps import RecipeStep
from .hidden_values import confidential_for_drawing
from .step_drawing import StepDraw
from .unit_drawing import draw_units

Report = Callable[[Progress], None]
Note = Callable[[tuple[RedrawCounts, ...]], None]


def fit_step(
    recipe: Recipe, item: int, confidential: Microdata, streams: Randomness, report: Report = ignore_progress
) -> Fit:
    """Fit synthesis step ``item`` to the confidential data, with m posterior draws."""
    return fit_step_to_tables(recipe, item, [confidential], [streams], report)[0]


def fit_step_to_tables(
    recipe: Recipe,
    item: int,
    tables: Sequence[Microdata],
    streams: Sequence[Randomness],
    report: Report = ignore_progress,
) -> list[Fit]:
    """Fit synthesis step ``item`` to several tables, each with streams of its own."""
    step = recipe.synthesis[item]
    own = [one.without_controls.with_units(recipe.schema.unit_declaration) for one in tables]
    # All private steps count the same records of a unit.
    counted = [
        table.limit_units(one.generator("records of units")) if step.is_private else table
        for one, table in zip(streams, own, strict=True)
    ]
    fitted = [step.fitted_table(table) for table in counted]
    runs = [
        Run(one.generator("fit", item), report=report, provenance=release_provenance(recipe, len(table)))
        for one, table in zip(streams, tables, strict=True)
    ]
    fits = step.method.fit_many(fitted, step.targets, step.spec, runs, recipe.m)
    return [
        replace(fit, diagnostics=(*fit.diagnostics, *_unit_diagnostics(step, table, len(table) - len(some))))
        for fit, table, some in zip(fits, own, counted, strict=True)
    ]


def _unit_diagnostics(step: RecipeStep, confidential: Microdata, lost: int) -> Iterator[Diagnostic]:
    """Report how many records a private step left out so that no unit has too many, or that nothing checks this."""
    most, unit = confidential.schema.largest_unit, confidential.schema.unit
    if not step.is_private or most is None:
        return
    if unit is not None:
        yield Diagnostic("records_beyond_those_of_a_unit", unit, float(lost))
    elif most > 1:
        yield Diagnostic("records_of_a_unit_not_checked", "no variable numbers units", float(most))


def draw_release(
    recipe: Recipe,
    draw: int,
    confidential: Microdata,
    fits: Sequence[Fit],
    streams: Randomness,
    report: Report = ignore_progress,
    note: Note = lambda _: None,
) -> Microdata:
    """Draw dataset ``draw`` (from 1): the targets in the recipe's order, each given the synthetic values before it (Guo
    & Hu §2.3).

    ``note`` is called with the counts of records redrawn for constraints.
    """
    whole = recipe.form.records is not None
    confidential = confidential.without_controls.with_units(recipe.schema.unit_declaration)
    if recipe.form.units:
        return draw_units(recipe, draw, confidential, fits, streams, report, note)
    start = confidential.frame.iloc[:0] if whole else confidential.frame
    released = Microdata(confidential.schema, start, "synthetic", linked=recipe.linked)
    made = ConstrainedDataset(
        confidential, recipe.schema, recipe.constraint_plan, recipe.form.redraws, recipe.form.unmet, f"dataset {draw}"
    )
    for item, (step, fit) in enumerate(zip(recipe.synthesis, fits, strict=True)):
        own, before = data_for_drawing(
            recipe, item, confidential, released, streams.generator("draw", draw, item, "order")
        )
        one = StepDraw(step, item, fit, draw, own, before, recipe.form.records, streams)
        columns = made.make_columns(item, step, released, one.draw_values, one.generator)
        if whole:
            columns |= _empty_unit_column(confidential, len(next(iter(columns.values()))))
        released = released.with_columns(columns, "synthetic")
        report(Progress(item + 1, len(recipe.synthesis), f"dataset {draw}"))
    note(made.tally.all_counts)
    return released


def _empty_unit_column(confidential: Microdata, records: int) -> dict[str, pd.Series]:
    """Return an empty column for the number of the unit of a record: synthetic records have none."""
    name = confidential.schema.unit
    return {} if name is None else {name: confidential.frame[name].iloc[:0].reindex(range(records))}


def data_for_drawing(
    recipe: Recipe, item: int, confidential: Microdata, released: Microdata, rng: np.random.Generator
) -> tuple[Microdata, Microdata]:
    """Return the confidential and the released records that synthesis step ``item`` may use when it draws.

    Released records lack the variables of this step and of later ones. Confidential records lack the targets of later
    steps, and have this step's own in another order, by ``rng``, unless the recipe uses values of the own record
    (``Spec.uses_own_record``).
    """
    step = recipe.synthesis[item]
    later = [name for one in recipe.synthesis[item + 1 :] for name in one.targets]
    own = confidential_for_drawing(step, later, confidential, rng)
    return own, released.without_variables((*step.targets, *later), step.place)


def anonymise_table(
    recipe: Recipe, confidential: Microdata, streams: Randomness, report: Report = ignore_progress
) -> Anonymised:
    """Carry out the recipe's anonymisation steps in order, each on the table that the previous one left.

    The classes are those of the last step; a record that any step suppressed has none. Raises BadInput where a later
    step has undone the limits of an earlier one.
    """
    confidential = confidential.without_controls
    found = Anonymised(confidential, np.zeros(len(confidential), dtype=np.int64))
    for item, step in enumerate(recipe.anonymisation):
        run = Run(streams.generator("anonymise", item), report=report)
        made = step.method.anonymise(found.data, step.spec, run)
        classes = np.full(len(confidential), -1, dtype=np.int64)
        classes[~found.suppressed] = made.class_keys
        notes = tuple(replace(note, parameter=f"{note.parameter}, {step.place}") for note in made.notes)
        found = Anonymised(made.data, classes, (*found.notes, *notes))
        report(Progress(item + 1, len(recipe.anonymisation), "anonymisation steps"))
    released = as_released(recipe, found.data.frame, found.class_keys)
    for step in recipe.anonymisation:
        assert isinstance(step.spec, AnonymisationSpec)
        _check_class_limits(released, step.spec, step.place)
    return replace(found, data=released)


def _check_class_limits(released: Microdata, spec: AnonymisationSpec, place: str) -> None:
    """Raise BadInput where a released table breaks the limits of one of the steps that made it."""
    if spec.limits == Limits():
        return
    # Each step keeps its own limits in the table that it leaves. A later one may suppress more records, which moves the
    # distribution that t is compared with, or split the records of a class.
    columns = [released.frame[name] for name in spec.keys(released.schema)]
    classes = equivalence_classes(columns, len(released))
    sizes = class_sizes(classes)
    undone = "after the later steps; make this step the last"
    shared = sizes if spec.missing_matches == "value" else matching_sizes(columns, classes)
    if (smallest := int(shared.min())) < spec.limits.k:
        raise BadInput(f"{place}.k", f"the released table has a class of {smallest:,} records {undone}")
    for name in spec.constrained(released.schema):
        variable = SensitiveColumn.from_microdata(released, name)
        for limit, figures, kept in spec.limits.figures(variable, variable.class_composition(classes, len(sizes))):
            if not kept.all():
                worst = figures.min() if limit in ("l", "p") else figures.max()
                raise BadInput(f"{place}.{limit}", f'"{name}" of the released table has {worst:.4g} {undone}')


def as_released(recipe: Recipe, frame: pd.DataFrame, classes: NDArray[np.int64] | None = None) -> Microdata:
    """Return a released dataset as measures use it; an anonymised one with the class of each confidential record, (n,)."""
    return Microdata(
        recipe.released_schema,
        frame,
        recipe.origin,
        classes=classes,
        generalised=recipe.generalised,
        linked=recipe.linked,
    )
