"""Rejection sampling of datasets under record constraints, step by step; equalities of sums determine their last
variable.

A constraint is complete once the last of its variables is synthesised. The step that makes it redraws the violating
records from the same model, with the same parameters and predictors, until they satisfy it. Accepted records have the
model's distribution given the predictors and given that the constraint holds (von Neumann 1951). Each step is
conditioned on its own constraints: nothing made before it is redrawn, so the joint distribution of the dataset is the
product of these, not the model's whole one given all constraints.

An equality of sums of numbers has probability 0. There the variable that the recipe makes last is computed from the
others as soon as these are known, and its other requirements (bounds, whole numbers, further constraints) are imposed
on the step that made the last of them. Where one of the others is missing, the variable's own model draws it.

Nothing is repaired: records that violate a constraint after the last redraw are reported, and the run fails unless its
    recipe keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.conditions import RecordConstraint, SumComparison
from ..data.microdata import Microdata, to_column
from ..data.schema import Kind, Schema, Variable
from ..errors import BadInput, ConstraintsUnmet
from ..methods.registry import Method
from ..methods.release_form import Unmet
from ..methods.spec import Spec
from .binding import LinearComparison, bound_terms
from .constraints import columns_of_constraint
from .evaluation import Mask, violations
from .redraw_counts import DrawViolations, RedrawTally

DIGITS = 12
"""Significant digits of a computed number that is not whole: fewer than a double's, so that 0.1 + 0.2 is 0.3."""
DrawValues = Callable[[np.random.Generator], Mapping[str, NDArray[np.generic]]]


@dataclass(frozen=True, slots=True)
class ComputedVariable:
    """Variable that an equality of sums determines: ``constant`` plus other columns times their coefficients in
    ``parts``.
    """

    name: str
    constraint: RecordConstraint
    parts: Mapping[str, float]
    constant: float


@dataclass(frozen=True, slots=True)
class ConstraintPlan:
    """Constraints by synthesis step.

    constraints: those that each step has to satisfy
    computed: variables that are computed after each step, in order
    """

    constraints: tuple[tuple[RecordConstraint, ...], ...] = ()
    computed: tuple[tuple[ComputedVariable, ...], ...] = ()

    @property
    def step_of_computed(self) -> Mapping[str, int]:
        """Return the step after which each computed variable is known."""
        return {one.name: step for step, own in enumerate(self.computed) for one in own}


def plan_constraints(targets: Sequence[tuple[str, ...]], schema: Schema) -> ConstraintPlan:
    """Assign each constraint to one of the steps with these targets.

    Raises BadInput where a variable would follow from confidential values, or from variables that are made only after
    it.
    """
    own_step = {name: step for step, names in enumerate(targets) for name in names}
    # Rules of whole units are kept by whoever draws whole units.
    rules = [one for one in schema.constraints if not one.unit_terms]
    waiting = _computed_variables(own_step, schema)
    known = {name for name in schema.names if name not in own_step}
    held: list[tuple[RecordConstraint, ...]] = []
    derived: list[tuple[ComputedVariable, ...]] = []
    for step, names in enumerate(targets):
        before = set(known)
        known |= {name for name in names if name not in waiting}
        now: list[ComputedVariable] = []
        # Repeated, because a computed variable may complete the equality of another.
        while ready := [one for one in waiting.values() if known.issuperset(one.parts) and one.name not in known]:
            now += ready
            known |= {one.name for one in ready}
        for one in now:
            if own_step[one.name] < step:
                raise BadInput(
                    f"constraints.{one.constraint.name}",
                    f'"{one.name}" would follow from variables that later steps make; put its step after theirs',
                )
        changed = (known - before) | set(names)
        held.append(tuple(one for one in rules if _is_complete_after(one, known, changed, schema)))
        derived.append(tuple(now))
    for one in waiting.values():
        if one.name not in known:
            raise BadInput(
                f"constraints.{one.constraint.name}",
                f'"{one.name}" and another variable would follow from each other; leave one of the rules out',
            )
    return ConstraintPlan(tuple(held), tuple(derived))


def _is_complete_after(constraint: RecordConstraint, known: set[str], changed: set[str], schema: Schema) -> bool:
    """Return whether a constraint's columns are all known, and one of them only since this step."""
    columns = set(columns_of_constraint(constraint, schema))
    return columns <= known and not columns.isdisjoint(changed)


def _computed_variables(own_step: Mapping[str, int], schema: Schema) -> dict[str, ComputedVariable]:
    """Return the computed variables by name, each with the first equality of which it is the last variable."""
    order = list(own_step)
    found: dict[str, ComputedVariable] = {}
    for constraint in schema.constraints:
        rule = constraint.rule
        if constraint.unit_terms:
            continue
        if not isinstance(rule, SumComparison) or rule.sign != "=" or len(rule.right) > 1:
            continue
        (bound,) = bound_terms(rule, schema, f"constraints.{constraint.name}")
        if not isinstance(bound, LinearComparison) or len(bound.parts) < 2:
            continue
        made = sorted((name for name in bound.parts if name in own_step and name not in found), key=order.index)
        if not made:
            continue
        *earlier, last = made
        # The variable would be computed from kept values alone, and so equal its confidential value.
        if not earlier and not any(name in found for name in bound.parts):
            others = ", ".join(f'"{name}"' for name in bound.parts if name != last)
            raise BadInput(
                f"constraints.{constraint.name}",
                f'"{last}" would follow from {others}, which are released unchanged, and so be its confidential '
                "value; synthesise one of them too, or leave the rule out",
            )
        own = bound.parts[last]
        parts = {name: -coefficient / own for name, coefficient in bound.parts.items() if name != last}
        found[last] = ComputedVariable(last, constraint, parts, -bound.constant / own)
    return found


class SynthesisStep(Protocol):
    """Synthesis step of a recipe."""

    @property
    def place(self) -> str: ...

    @property
    def targets(self) -> tuple[str, ...]: ...

    @property
    def method(self) -> Method: ...

    @property
    def spec(self) -> Spec: ...


def may_redraw(step: SynthesisStep) -> bool:
    """Return whether redrawing records leaves a step's method what it claims to be."""
    # The proof of a privacy account covers records that are drawn once.
    return step.method.synthesis.privacy.account is None and step.spec.redrawable


def check_redraws(keeping: ConstraintPlan, steps: Sequence[SynthesisStep], place: str = "constraints") -> None:
    """Raise BadInput where a step would have to redraw records although its method does not allow it."""
    for step, held, derived in zip(steps, keeping.constraints, keeping.computed, strict=True):
        asked = [one.name for one in held if one.name not in {own.constraint.name for own in derived}]
        if not asked or may_redraw(step):
            continue
        at, method = f"{place}.{asked[0]}", step.method.key
        if step.method.synthesis.privacy.account is not None:
            raise BadInput(
                at,
                f"{step.place} would redraw records that break it, and the privacy account of {method} covers records drawn once; use "
                "a method without an account, or filter what is released afterwards",
            )
        raise BadInput(
            at,
            f"{step.place} would redraw records that break it, and {method} draws its parameters with its records; use "
            "another method, such as cart, multinomial_logistic or dpmpm",
        )


def refuse_redrawn_models(keeping: ConstraintPlan, place: str, key: str) -> None:
    """Raise BadInput where a measure, ``key``, uses the models of a release whose records were redrawn for constraints."""
    for constraint in (one for held in keeping.constraints for one in held):
        raise BadInput(
            f"{place}.method",
            f"{key} asks the models how probable the release is, and they do not know that records are redrawn until they keep "
            f'to the constraint "{constraint.name}"; leave one of both out',
        )


def computed_values(one: ComputedVariable, numbers: Mapping[str, Floats], variable: Variable) -> tuple[Floats, Mask]:
    """Return the values (n,) that an equality determines, NaN where a part is missing, and a mask of values that the
    variable cannot have.
    """
    exact = one.constant + sum(coefficient * numbers[name] for name, coefficient in one.parts.items())
    exact = np.asarray(exact, dtype=np.float64)
    if variable.kind is Kind.COUNT:
        values = np.rint(exact)
        wrong = np.abs(values - exact) > 1e-6
    else:
        values = exact if variable.kind is Kind.DATE else round_significant(exact)
        wrong = np.zeros(len(values), dtype=np.bool_)
    low = -np.inf if variable.lower is None else variable.lower
    high = np.inf if variable.upper is None else variable.upper
    # the whole of the last day is inside
    wrong |= (values < low) | ((np.floor(values) if variable.kind is Kind.DATE else values) > high) | np.isinf(values)
    # Impossible values are replaced by the nearest possible ones, so that the column can be built; their records are
    # redrawn or reported.
    return np.nan_to_num(np.where(wrong, np.clip(values, low, high), values), nan=np.nan), np.asarray(wrong)


def round_significant(values: Floats) -> Floats:
    """Return numbers (n,) rounded to ``DIGITS`` significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.floor(np.log10(np.abs(values)))
    # Clipped, since powers beyond 308 are no doubles.
    scale = 10.0 ** np.clip(DIGITS - 1 - np.where(np.isfinite(size), size, 0.0), -300, 300)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.rint(values * scale) / scale
    return np.asarray(np.where(np.isfinite(found), found, values))


@dataclass
class ConstrainedDataset:
    """Dataset while its steps are carried out.

    most_redraws: limit on redraws of a record in each step
    pending: mask by variable of records whose computed value was missing, and which wait for the variable's own step
    tally: counts of redraws
    """

    confidential: Microdata
    schema: Schema
    constraint_plan: ConstraintPlan
    most_redraws: int
    unmet: Unmet
    what: str
    pending: dict[str, Mask] = field(default_factory=dict)
    tally: RedrawTally = field(default_factory=RedrawTally)

    def make_columns(
        self,
        item: int,
        step: SynthesisStep,
        released: Microdata,
        draw: DrawValues,
        generator: Callable[[int], np.random.Generator],
    ) -> dict[str, pd.Series]:
        """Return the columns of step ``item``, given the variables ``released`` before it. Raises ConstraintsUnmet.

        ``generator(0)`` is that of the first draw, ``generator(i)`` that of redraw i.
        """
        early = [name for name in step.targets if self.constraint_plan.step_of_computed.get(name, item) < item]
        if early and set(early) == set(step.targets) and not any(self.pending[name].any() for name in early):
            return {}
        drawn = draw(generator(0))
        values = {name: np.array(drawn[name], dtype=np.float64) for name in step.targets}
        rows = np.arange(len(next(iter(values.values()))))
        for name in early:
            values[name] = np.where(self.pending[name], values[name], released.numbers(name))
        if not (self.constraint_plan.constraints and self.constraint_plan.constraints[item]):
            return {name: self._column(name, own, step) for name, own in values.items()}
        draws: list[DrawViolations] = []
        most = self.most_redraws if may_redraw(step) else 0
        for attempt in range(most + 1):
            if attempt:
                # All records are drawn anew and the violating ones are used: a draw of the whole dataset does not
                # depend on which were rejected.
                again = draw(generator(attempt))
                for name in step.targets:
                    new = np.asarray(again[name], dtype=np.float64)[rows]
                    values[name][rows] = (
                        np.where(self.pending[name][rows], new, values[name][rows]) if name in early else new
                    )
            broke = self._violations_by_constraint(item, values, rows, released, step)
            draws.append((rows, broke))
            rows = rows[np.any(list(broke.values()), axis=0)]
            if not len(rows):
                break
        of = len(next(iter(values.values())))
        if len(rows) and self.unmet == "fail":
            left = {name: int(own.sum()) for name, own in draws[-1][1].items() if own.any()}
            raise ConstraintsUnmet(f"{self.what}, {step.place}", left, of, most)
        self.tally.add_step(step.place, ", ".join(step.targets), draws, of)
        for name in early:
            self.pending.pop(name)
        return {name: self._column(name, own, step) for name, own in values.items()}

    def _column(self, name: str, values: Floats, step: SynthesisStep) -> pd.Series:
        return to_column(values, self.confidential, self.schema[name], step.place)

    def _fill_computed(
        self, item: int, values: dict[str, Floats], rows: NDArray[np.intp], released: Microdata, step: SynthesisStep
    ) -> dict[str, Mask]:
        """Compute the variables that are known after the step into ``values`` of these rows.

        Return a mask of impossible ones, by constraint.
        """
        wrong: dict[str, Mask] = {}
        for one in self.constraint_plan.computed[item]:
            own = step.targets
            parts = {name: self._numbers_so_far(name, values, rows, released, own) for name in one.parts}
            found, outside = computed_values(one, parts, self.schema[one.name])
            lacking = np.isnan(found)
            if one.name in own:
                values[one.name][rows] = np.where(lacking, values[one.name][rows], found)
            else:
                # Confidential values hold the places of those that are drawn later, whatever the number of records.
                places = np.resize(self.confidential.numbers(one.name), len(released))
                before = values.setdefault(one.name, places.copy())
                before[rows] = np.where(lacking, places[rows], found)
                self.pending.setdefault(one.name, np.zeros(len(before), dtype=np.bool_))[rows] = lacking
            wrong[one.constraint.name] = outside & ~lacking
        return wrong

    def _numbers_so_far(
        self, name: str, values: Mapping[str, Floats], rows: NDArray[np.intp], released: Microdata, own: Sequence[str]
    ) -> Floats:
        """Return one variable of these rows; NaN where it is not drawn yet."""
        found = (values[name] if name in values else released.numbers(name))[rows]
        waits = name in self.pending and name not in own
        return np.where(self.pending[name][rows], np.nan, found) if waits else found

    def _violations_by_constraint(
        self, item: int, values: dict[str, Floats], rows: NDArray[np.intp], released: Microdata, step: SynthesisStep
    ) -> dict[str, Mask]:
        """Mark the rows that violate each constraint of the step, each (len(rows),)."""
        wrong = self._fill_computed(item, values, rows, released, step)
        made = {name: self._column(name, own[rows], step) for name, own in values.items()}
        frame = released.frame if len(made) == len(self.schema) else released.frame.iloc[rows].reset_index(drop=True)
        table = Microdata(released.schema, frame, "synthetic").with_columns(made, "synthetic")
        found: dict[str, Mask] = {}
        for constraint in self.constraint_plan.constraints[item]:
            waiting = [self.pending[c] for c in columns_of_constraint(constraint, self.schema) if c in self.pending and c not in step.targets]  # fmt: skip
            own = violations(constraint, table, self.schema) | wrong.get(constraint.name, False)
            # A record whose computed value waits for its own step is judged there.
            for mask in waiting:
                own &= ~mask[rows]
            found[constraint.name] = own
        return found
