"""Draws of a release in two stages: one row a unit, then its records place by place, each given those before it.

``sfumato.engine.recipe.unit_stages`` states the stages. A record at place k is drawn from drawn values alone: those of
its unit, of the records at places 1 to k - 1, and of its own variables before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..constraints.constraints import columns_of_constraint
from ..constraints.earlier_records import EarlierRecords, PlaceLevels, TermColumns, numbers_and_conditions, units_of
from ..constraints.redraw_counts import RedrawCounts, add_counts
from ..constraints.rejection_sampling import ConstrainedDataset, plan_constraints
from ..constraints.unit_terms import PLACE, SIZE, UnitTerm
from ..data.arrays import Integers
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..data.units import Units
from ..methods.results import Fit
from ..methods.run import Progress, Randomness
from ..recipe.recipe import Recipe
from ..recipe.steps import RecipeStep
from ..recipe.unit_stages import StepTable, steps_of_stage
from .hidden_values import confidential_for_drawing

Path = tuple[str | int, ...]


@dataclass(eq=False)
class UnitDraw:
    """Draw of dataset ``draw`` (from 1) of a recipe that draws or keeps units."""

    recipe: Recipe
    draw: int
    confidential: Microdata
    fits: Sequence[Fit]
    streams: Randomness
    report: Callable[[Progress], None]
    counts: list[tuple[RedrawCounts, ...]] = field(default_factory=list)
    _own: dict[int, Microdata] = field(default_factory=dict)

    @cached_property
    def units(self) -> Units:
        """Return the confidential units."""
        return units_of(self.confidential)

    @property
    def keeps_units(self) -> bool:
        """Return whether records stay in their units."""
        return self.recipe.form.units == "kept"

    @cached_property
    def places(self) -> PlaceLevels:
        """Return the levels of the place of a record, those of the fits."""
        return PlaceLevels.of_units(self.units)

    @cached_property
    def term_columns(self) -> TermColumns:
        """Return the columns of all terms that a step names."""
        tables = [_table(step) for _, step in steps_of_stage(self.recipe.synthesis, by_unit=False)]
        terms = {term.text: term for table in tables for term in table.terms}
        return TermColumns.of_data(self.confidential, tuple(terms.values()))

    def own_table(self, item: int, later: Sequence[str]) -> Microdata:
        """Return the confidential table that step ``item`` may use when it draws, the same one at every place."""
        if item not in self._own:
            step = self.recipe.synthesis[item]
            order = self.streams.generator("draw", self.draw, item, "order")
            self._own[item] = confidential_for_drawing(
                step, later, _table(step).of_data(self.confidential, step.place), order
            )
        return self._own[item]

    def draw_unit_rows(self) -> pd.DataFrame:
        """Draw the first stage: the unit variables and ``size`` of each unit, (U, k)."""
        steps = steps_of_stage(self.recipe.synthesis, by_unit=True)
        if not steps:
            return _unit_frame(self.confidential, self.units)
        schema = _with_constraints(_table(steps[0][1]).schema, self.recipe.schema)
        start = _unit_frame(self.confidential, self.units)
        own = Microdata(schema, start)
        made = {name for _, step in steps for name in step.targets}
        # Units that are kept have their confidential values until a step replaces them.
        start = start if self.keeps_units else start.drop(columns=list(made))
        stage = _Stage(self, schema, steps, own)
        return stage.draw_rows(start, (), len(self.units))

    def draw_records(self, unit_rows: pd.DataFrame, path: Path = ()) -> tuple[pd.DataFrame, Integers]:
        """Draw the second stage given the first.

        Return the records place by place, (n, k), and the unit of each, from 0. Records that are kept in their units
        are those of the confidential table in this order.
        """
        steps = steps_of_stage(self.recipe.synthesis, by_unit=False)
        names = list(self.recipe.schema.non_identifiers)
        base = self.recipe.schema.select_variables(names)
        schema = _with_constraints(base, self.recipe.schema, besides=self.recipe.schema.unit_level)
        stage = _Stage(self, schema, steps, self.confidential)
        sizes = unit_rows[SIZE].to_numpy()
        by_size = np.argsort(-sizes, kind="stable")
        sorted_rows = unit_rows.iloc[by_size].reset_index(drop=True)
        records = EarlierRecords(self.term_columns.terms)
        frames, units = [], []
        for place in range(1, int(sizes.max()) + 1):
            alive = by_size[: int((sizes >= place).sum())]
            start = sorted_rows.iloc[: len(alive)]
            if self.keeps_units:
                rows = self.units.order[self.units.starts[alive] + place - 1]
                own = [name for name in names if name not in start]
                start = start.assign(
                    **{name: self.confidential.frame[name].iloc[rows].reset_index(drop=True) for name in own}
                )
            terms = {term.text: self._term_column(term, records, sizes[alive]) for term in records.terms}
            terms[PLACE] = self.places.column(np.full(len(alive), place))
            where: Path = ("place", place) if place > 1 else ()
            drawn = stage.draw_rows(start, (*path, *where), len(alive), terms)
            frames.append(drawn)
            units.append(alive)
            table = Microdata(base, drawn, "synthetic")
            records.add(*numbers_and_conditions(table, records, base))
        return pd.concat(frames, ignore_index=True), np.concatenate(units)

    def _term_column(self, term: UnitTerm, records: EarlierRecords, sizes: Integers) -> pd.Series:
        found = records.value(term, sizes)
        absent = np.full(len(sizes), found is None)
        return self.term_columns.column(term, np.full(len(sizes), np.nan) if found is None else found, absent)

    def seen_sizes(self, drawn: pd.Series) -> pd.Series:
        """Return drawn sizes (U,) with those that no confidential unit has replaced by the nearest that one has."""
        weights = self.confidential.weights
        counted = slice(None) if weights is None else self.units.largest_by_unit(weights) > 0
        seen = np.unique(self.units.sizes[counted])
        numbers = drawn.to_numpy(dtype=np.float64)
        above = np.searchsorted(seen, numbers).clip(1, len(seen) - 1) if len(seen) > 1 else np.zeros(len(numbers), int)
        below = np.maximum(above - 1, 0)
        nearer = np.where(numbers - seen[below] <= seen[above] - numbers, below, above)
        return pd.Series(seen[nearer], name=SIZE)


def _table(step: RecipeStep) -> StepTable:
    assert step.table is not None
    return step.table


def _unit_frame(confidential: Microdata, units: Units) -> pd.DataFrame:
    """Return the unit variables of each unit's first record, and its size, (U, k)."""
    names = list(confidential.schema.unit_level)
    frame = confidential.frame[names].iloc[units.first_records].reset_index(drop=True)
    return frame.assign(**{SIZE: units.sizes})


def _with_constraints(schema: Schema, whole: Schema, besides: Sequence[str] = ()) -> Schema:
    """Return a stage's schema with the constraints on its variables, but for those on variables ``besides`` alone."""
    held = []
    for one in whole.constraints:
        columns = set(columns_of_constraint(one, whole))
        if columns <= set(schema.names) and not columns <= set(besides):
            held.append(one)
    return replace(schema, constraints=tuple(held))


@dataclass(eq=False)
class _Stage:
    """Steps of one stage, carried out on one table of rows after another."""

    of: UnitDraw
    schema: Schema
    steps: Sequence[tuple[int, RecipeStep]]
    confidential: Microdata

    def draw_rows(
        self, start: pd.DataFrame, path: Path, rows: int, terms: Mapping[str, pd.Series] | None = None
    ) -> pd.DataFrame:
        """Draw the targets of all steps for ``rows`` rows of which ``start`` is known, (rows, k).

        ``terms`` are columns that steps may name besides; the result lacks them.
        """
        of, terms = self.of, terms or {}
        plan = plan_constraints([step.targets for _, step in self.steps], self.schema)
        form = of.recipe.form
        made = ConstrainedDataset(self.confidential, self.schema, plan, form.redraws, form.unmet, f"dataset {of.draw}")
        frame = start
        for position, (item, step) in enumerate(self.steps):
            later = [name for _, one in self.steps[position + 1 :] for name in one.targets]
            own = of.own_table(item, later)
            named = {name: terms[name] for name in _table(step).schema.names if name in terms}
            before = Microdata(
                _table(step).schema, frame.assign(**named), "synthetic", linked=of.recipe.linked
            ).without_variables((*step.targets, *later), step.place)

            def values(
                rng: np.random.Generator,
                item: int = item,
                step: RecipeStep = step,
                own: Microdata = own,
                before: Microdata = before,
            ) -> Mapping[str, NDArray[np.generic]]:
                """Draw the values of the step's targets."""
                return step.method.draw_targets(
                    of.fits[item], step.spec, step.targets, own, before, of.draw - 1, rng, rows
                )

            def generator(attempt: int, item: int = item) -> np.random.Generator:
                again = ("redraw", attempt) if attempt else ()
                return of.streams.generator("draw", of.draw, item, *path, *again)

            released = Microdata(self.schema, frame, "synthetic", linked=of.recipe.linked)
            columns = made.make_columns(position, step, released, values, generator)
            if SIZE in columns:
                columns[SIZE] = of.seen_sizes(columns[SIZE])
            frame = frame.assign(**columns)
        of.counts.append(made.tally.all_counts)
        return frame


def draw_units(
    recipe: Recipe,
    draw: int,
    confidential: Microdata,
    fits: Sequence[Fit],
    streams: Randomness,
    report: Callable[[Progress], None],
    note: Callable[[tuple[RedrawCounts, ...]], None],
) -> Microdata:
    """Draw dataset ``draw`` (from 1) of a recipe that draws or keeps units.

    Units that are drawn are numbered 1 to U in random order, and their records follow each other.
    """
    drawing = UnitDraw(recipe, draw, confidential, fits, streams, report)
    unit_rows = drawing.draw_unit_rows()
    records, unit = drawing.draw_records(unit_rows)
    note(add_counts(drawing.counts))
    if drawing.keeps_units:
        return _in_confidential_order(drawing, records, unit)
    numbers = streams.generator("draw", draw, "unit numbers").permutation(len(unit_rows)) + 1
    # Places ascend, and so they do within a unit after a stable sort.
    order = np.argsort(numbers[unit], kind="stable")
    schema, name = recipe.released_schema, str(recipe.schema.unit)
    frame = records.take(order).reset_index(drop=True).assign(**{name: numbers[unit][order]})
    return Microdata(schema, frame[list(schema.names)], "synthetic", linked=False)


def _in_confidential_order(drawing: UnitDraw, records: pd.DataFrame, unit: Integers) -> Microdata:
    """Return the records in the order of the confidential ones, with the variables that these keep."""
    units, confidential = drawing.units, drawing.confidential
    back = np.empty(len(unit), dtype=np.int64)
    # Records come place by place, so that a stable sort by unit has them in the units' own order.
    back[units.order] = np.argsort(unit, kind="stable")
    made = [name for step in drawing.recipe.synthesis for name in step.targets]
    columns = {name: records[name].take(back).reset_index(drop=True) for name in made}
    released = Microdata(confidential.schema, confidential.frame, "synthetic", linked=drawing.recipe.linked)
    return released.with_columns(columns, "synthetic")
