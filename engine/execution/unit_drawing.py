"""Draws of a release in two stages: one row a unit, then its records place by place, each given those before it.

``sfumato.engine.recipe.unit_stages`` states the stages. A record at place k is drawn from drawn values alone: those of
its unit, of the records at places 1 to k - 1, and of its own variables before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np
import pandas as pd

from ..constraints.constraints import columns_of_constraint
from ..constraints.earlier_records import (
    DropOut,
    EarlierRecords,
    PlaceLevels,
    TermColumns,
    drop_out_column,
    numbers_and_conditions,
)
from ..constraints.evaluation import violations
from ..constraints.redraw_counts import DrawViolations, RedrawCounts, RedrawTally, add_counts
from ..constraints.rejection_sampling import ConstrainedDataset, plan_constraints
from ..constraints.unit_terms import PLACE, SIZE, UnitTerm, drop_out_variable
from ..data.arrays import Booleans, Floats, Integers
from ..data.conditions import RecordConstraint
from ..data.microdata import Microdata, schema_with_levels, units_of
from ..data.schema import Kind, Schema, Variable
from ..data.units import Units
from ..errors import ConstraintsUnmet
from ..methods.results import Fit
from ..methods.run import Progress, Randomness
from ..recipe.recipe import Recipe
from ..recipe.step_tables import StepTable
from ..recipe.steps import RecipeStep
from ..recipe.unit_stages import steps_of_stage, with_made_units
from ..statistics.unit_effects import unit_effect_columns
from .hidden_values import confidential_for_drawing
from .step_drawing import Path, StepDraw

AGAIN = "units again"
"""Begins the path of the random numbers of units that are drawn again."""


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

    @property
    def is_private(self) -> bool:
        """Return whether steps with an epsilon draw the units: nothing but their fits is then read of the data."""
        return any(step.is_private for step in self.recipe.synthesis)

    @property
    def count(self) -> int:
        """Return the number of units of the dataset."""
        return self.recipe.form.number_of_units or len(self.units)

    @cached_property
    def places(self) -> PlaceLevels:
        """Return the levels of the place of a record, those of the fits."""
        if self.is_private:
            return PlaceLevels(self.confidential.schema.unit_records)
        return PlaceLevels.of_units(self.units, self.confidential.schema.largest_unit)

    @cached_property
    def terms(self) -> tuple[UnitTerm, ...]:
        """Return all terms that a step names."""
        tables = [_table(step) for _, step in steps_of_stage(self.recipe.synthesis, by_unit=False)]
        return tuple({term.text: term for table in tables for term in table.terms}.values())

    @cached_property
    def term_columns(self) -> TermColumns:
        """Return the columns of all terms as the fits have them, without the confidential values."""
        most = self.confidential.schema.unit_records if self.is_private else None
        return TermColumns.for_drawing(self.confidential, self.terms, most)

    @cached_property
    def drop_out(self) -> DropOut | None:
        """Return how units drop out; None where their sizes are drawn or kept."""
        return DropOut.of_data(self.confidential) if self.recipe.form.until else None

    @cached_property
    def records_with_drop_out(self) -> Microdata:
        """Return the confidential records with the yes/no variable of drop-out, if there is one."""
        until, own = self.recipe.form.until, self.confidential
        if not until or until in own.schema:
            return own
        schema = replace(own.schema, variables=(*own.schema.variables, drop_out_variable(until)))
        return replace(own, schema=schema, frame=own.frame.assign(**{until: drop_out_column(own, until)}), kinds=None)

    def own_table(self, item: int, later: Sequence[str]) -> Microdata:
        """Return the confidential table that step ``item`` may use when it draws, the same one at every place."""
        if item not in self._own:
            step = self.recipe.synthesis[item]
            order = self.streams.generator("draw", self.draw, item, "order")
            self._own[item] = confidential_for_drawing(step, later, step.fitted_table(self.confidential), order)
        return self._own[item]

    def draw_unit_rows(self, which: Integers, path: Path = ()) -> pd.DataFrame:
        """Draw the first stage: the unit variables and ``size`` of some units (u,), (u, k)."""
        steps = steps_of_stage(self.recipe.synthesis, by_unit=True)
        own = _unit_frame(self.confidential, self.units)
        own = own if self.drop_out is None else own.drop(columns=SIZE)
        if self.is_private:
            own, start = (
                own.assign(**{SIZE: self.places.column(self.units.sizes)}),
                pd.DataFrame(index=range(len(which))),
            )
        else:
            start = own.iloc[which].reset_index(drop=True)
        if not steps:
            return start
        schema = _with_constraints(_table(steps[0][1]).schema, self.recipe.schema)
        made = {name for _, step in steps for name in step.targets}
        # Units that are kept have their confidential values until a step replaces them.
        start = start if self.keeps_units else start.drop(columns=list(made), errors="ignore")
        stage = _Stage(self, schema, steps, Microdata(schema, own))
        drawn = stage.draw_rows(start, path, len(which))
        return drawn.assign(**{SIZE: drawn[SIZE].cat.codes.astype(np.int64) + 1}) if self.is_private else drawn

    def draw_records(self, unit_rows: pd.DataFrame, which: Integers, path: Path = ()) -> tuple[pd.DataFrame, Integers]:
        """Draw the second stage of some units (u,) given the first, ``unit_rows`` (u, k).

        Return the records place by place, (n, k), and the unit of each.
        """
        steps = steps_of_stage(self.recipe.synthesis, by_unit=False)
        confidential = self.records_with_drop_out
        names = list(confidential.schema.non_identifiers)
        base = confidential.schema.select_variables(names)
        schema = _with_constraints(base, self.recipe.schema, besides=self.recipe.schema.unit_level)
        stage = _Stage(self, schema, steps, confidential)
        effects = {
            item: self.streams.generator("draw", self.draw, item, *path, "unit effect").standard_normal(
                (len(which), len(step.targets))
            )
            for item, step in steps
            if step.has_unit_effect
        }
        records = EarlierRecords(self.terms)
        frames, units = [], []
        # Without sizes nothing is known of a unit's end before its last record.
        sizes = np.zeros(len(which), dtype=np.int64) if self.drop_out else unit_rows[SIZE].to_numpy()
        alive, place = np.argsort(-sizes, kind="stable"), 0
        while len(alive):
            place += 1
            start = unit_rows.iloc[alive].reset_index(drop=True)
            if self.is_private:
                start = start.assign(**{SIZE: self.places.column(start[SIZE].to_numpy())})
            if self.keeps_units:
                rows = self.units.order[self.units.starts[which[alive]] + place - 1]
                own = [name for name in names if name not in start]
                start = start.assign(
                    **{name: self.confidential.frame[name].iloc[rows].reset_index(drop=True) for name in own}
                )
            terms = {term.text: self._term_column(term, records, sizes[alive]) for term in records.terms}
            terms[PLACE] = self.places.column(np.full(len(alive), place))
            where: Path = ("place", place) if place > 1 else ()
            shared = {item: own[alive] for item, own in effects.items()}
            drawn = stage.draw_rows(start, (*path, *where), len(alive), terms, shared)
            stays = sizes[alive] > place
            if self.drop_out is not None:
                drawn, stays = self._end_units(drawn, place, base)
            frames.append(drawn)
            units.append(alive)
            table = Microdata(base, drawn, "synthetic")
            records.add(*numbers_and_conditions(table, records, base))
            records.keep(stays)
            alive = alive[stays]
        return pd.concat(frames, ignore_index=True), which[np.concatenate(units)]

    def _end_units(self, drawn: pd.DataFrame, place: int, schema: Schema) -> tuple[pd.DataFrame, Booleans]:
        """Return the drawn records (n,) at a place with their drop-out, and which units have a further record, (n,)."""
        assert self.drop_out is not None
        until, table = self.recipe.form.until, Microdata(schema, drawn, "synthetic")
        ends, dropped = self.drop_out.ends_after(place, table, self.confidential, until)
        codes = pd.Categorical.from_codes(
            dropped.astype(np.int8), dtype=cast("pd.CategoricalDtype", drawn[until].dtype)
        )
        return drawn.assign(**{until: codes}), ~ends

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
        self,
        start: pd.DataFrame,
        path: Path,
        rows: int,
        terms: Mapping[str, pd.Series] | None = None,
        effects: Mapping[int, Floats] | None = None,
    ) -> pd.DataFrame:
        """Draw the targets of all steps for ``rows`` rows of which ``start`` is known, (rows, k).

        ``terms`` are columns that steps may name besides, and ``effects`` (rows, targets) are those of units by step;
        the result lacks them.
        """
        of, terms, effects, is_again = self.of, terms or {}, effects or {}, path[:1] == (AGAIN,)
        plan = plan_constraints([step.targets for _, step in self.steps], self.schema)
        form = of.recipe.form
        # Units with a record that still breaks a rule are drawn again as a whole.
        made = ConstrainedDataset(self.confidential, self.schema, plan, form.redraws, "keep", f"dataset {of.draw}")
        frame = start
        for position, (item, step) in enumerate(self.steps):
            later = [name for _, one in self.steps[position + 1 :] for name in one.targets]
            own = of.own_table(item, later)
            named = {name: terms[name] for name in _table(step).schema.names if name in terms}
            before = Microdata(
                _table(step).schema, frame.assign(**named), "synthetic", linked=of.recipe.linked
            ).without_variables((*step.targets, *later), step.place)
            if item in effects:
                before = _with_unit_effects(before, unit_effect_columns(step.targets), effects[item])
            one = StepDraw(step, item, of.fits[item], of.draw, own, before, rows, of.streams, path)
            released = Microdata(self.schema, frame, "synthetic", linked=of.recipe.linked)
            columns = made.make_columns(position, step, released, one.draw_values, one.generator)
            # Which sizes occur is of the data; those of a private step are drawn as noise leaves them.
            if SIZE in columns and not of.is_private:
                columns[SIZE] = of.seen_sizes(columns[SIZE])
            frame = frame.assign(**columns)
        if not is_again:
            of.counts.append(made.tally.all_counts)
        return frame


def _with_unit_effects(table: Microdata, names: Sequence[str], effects: Floats) -> Microdata:
    """Return a table with columns of the effects of each record's unit, (n, k)."""
    added = [Variable(name, Kind.CONTINUOUS) for name in names]
    schema = replace(table.schema, variables=(*table.schema.variables, *added))
    return replace(table, schema=schema, frame=table.frame.assign(**dict(zip(names, effects.T, strict=True))))


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
    every = np.arange(drawing.count)
    unit_rows = drawing.draw_unit_rows(every)
    records, unit = drawing.draw_records(unit_rows, every)
    report(Progress(1, 2, f"dataset {draw}"))
    records, unit, counts = UnitRules(drawing).redraw_units(unit_rows, records, unit)
    note(counts)
    report(Progress(2, 2, f"dataset {draw}"))
    if drawing.keeps_units:
        return _in_confidential_order(drawing, records, unit)
    numbers = streams.generator("draw", draw, "unit numbers").permutation(len(every)) + 1
    # Places ascend, and so they do within a unit after a stable sort.
    order = np.argsort(numbers[unit], kind="stable")
    schema, name = recipe.released_schema, str(recipe.schema.unit)
    frame = records.take(order).reset_index(drop=True).assign(**{name: numbers[unit][order]})
    return Microdata(schema, frame[list(schema.names)], "synthetic", linked=False)


@dataclass(frozen=True, eq=False)
class UnitRules:
    """Constraints of a release of whole units, and the redraws of units that break one."""

    drawing: UnitDraw

    @cached_property
    def rules(self) -> list[RecordConstraint]:
        """Return the constraints that a drawn value can break."""
        recipe = self.drawing.recipe
        made = {name for step in recipe.synthesis for name in step.targets}
        return [
            one
            for one in recipe.schema.constraints
            if not self.drawing.keeps_units or not made.isdisjoint(columns_of_constraint(one, recipe.schema))
        ]

    def mark_violations(self, records: pd.DataFrame, unit: Integers) -> dict[str, Booleans]:
        """Mark the records of units (n,) that break each rule, by its name, (n,)."""
        schema = self.drawing.recipe.schema
        name, known = str(schema.unit), with_made_units(schema_with_levels(self.drawing.confidential))
        frame = records.assign(**{name: unit})[[*schema.non_identifiers, name]]
        table = Microdata(with_made_units(schema), frame, "synthetic")
        return {rule.name: violations(rule, table, known) for rule in self.rules}

    def redraw_units(
        self, unit_rows: pd.DataFrame, records: pd.DataFrame, unit: Integers
    ) -> tuple[pd.DataFrame, Integers, tuple[RedrawCounts, ...]]:
        """Return the records and units (n,) after redraws of the units that break a rule, and the counts of redraws.

        A unit's records are redrawn given its first stage; after as many redraws as the recipe allows, both stages are.
        Raises ConstraintsUnmet where some still break a rule.
        """
        drawing, form = self.drawing, self.drawing.recipe.form
        if not self.rules:
            return records, unit, ()
        draws: list[DrawViolations] = []
        which, attempt, of = np.arange(drawing.count), 0, drawing.count
        found = self.mark_violations(records, unit)
        while True:
            own = {name: np.isin(which, unit[mask]) for name, mask in found.items()}
            draws.append((which, own))
            which = which[np.any(list(own.values()), axis=0)]
            if not len(which) or attempt >= 2 * form.redraws:
                break
            attempt += 1
            path: Path = (AGAIN, attempt)
            if attempt > form.redraws:
                rows = drawing.draw_unit_rows(which, (*path, "first"))
                unit_rows.iloc[which] = rows[list(unit_rows)]
            again, of_again = drawing.draw_records(unit_rows.iloc[which].reset_index(drop=True), which, path)
            stays = ~np.isin(unit, which)
            records = pd.concat([records[stays], again], ignore_index=True)
            unit = np.concatenate([unit[stays], of_again])
            kept = np.zeros(int(stays.sum()), dtype=np.bool_)
            found = {name: np.concatenate([kept, mask]) for name, mask in self.mark_violations(again, of_again).items()}
        if len(which) and form.unmet == "fail":
            left = {name: int(mask.sum()) for name, mask in draws[-1][1].items() if mask.any()}
            raise ConstraintsUnmet(f"dataset {drawing.draw}", left, of, attempt, "unit")
        return records, unit, self._count_redraws(draws, records, unit)

    def _count_redraws(
        self, draws: Sequence[DrawViolations], records: pd.DataFrame, unit: Integers
    ) -> tuple[RedrawCounts, ...]:
        """Return the counts of redrawn records by step and rule, of redrawn units by rule, and of the whole dataset."""
        tally = RedrawTally()
        tally.add_step("units", str(self.drawing.recipe.schema.unit), draws, self.drawing.count)
        *of_units, units = tally.all_counts
        left = self.mark_violations(records, unit)
        any_left = int(np.any(list(left.values()), axis=0).sum())
        *steps, whole = add_counts(self.drawing.counts) or (RedrawCounts("", "", "", 0, 0, 0, 0),)
        steps = [
            replace(one, left=int(left[one.constraint].sum()) if one.constraint else min(one.left, any_left))
            for one in steps
        ]
        again = np.unique(np.concatenate([which for which, _ in draws[1:]])) if len(draws) > 1 else np.empty(0, int)
        redrawn = min(len(unit), whole.records + int(np.isin(unit, again).sum()))
        whole = RedrawCounts("", "", "", len(unit), redrawn, whole.redraws + units.redraws, any_left)
        return (*steps, *of_units, whole)


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
