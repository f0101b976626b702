"""Evaluation of constraints in three-valued logic (Kleene 1938): records satisfy them, violate them, or are
undetermined.

Each value of a record is a set of possible values: one number or level, anything where it is missing, or what the label
    of a generalised value contains. A comparison holds where it does for all of them, is violated where it does for
    none, and is unknown otherwise (interval arithmetic: Moore 1966). A record violates a rule only where it is known
    not to hold.

Sums of several columns are compared up to 1e-9 of the sum of their absolute parts, single numbers, dates and
differences of two columns exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.conditions import (
    MIRRORED_SIGN,
    Condition,
    ConditionConjunction,
    ConditionImplication,
    NegatedCondition,
    PresenceTest,
    RecordConstraint,
    SumComparison,
)
from ..data.conditions import ConditionDisjunction as Some
from ..data.microdata import Microdata, units_of
from ..data.schema import Kind, Schema, Variable
from ..partition.hierarchies import parse_group, parse_interval
from .binding import DAY, BoundTerm, LevelComparison, LinearComparison, bound_terms, days_since_epoch
from .constraints import require_levels, schema_of_rule
from .unit_terms import SIZE, UnitTerm, declare_for_rule, parse_rule_terms

Mask = NDArray[np.bool_]

SLACK = 1e-9
"""Of the sum of absolute parts, by which a sum of several columns may miss."""
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuleEvaluation:
    """Evaluation of a rule for each of n records; it is unknown where neither mask is set.

    holds: whether it is known to hold, (n,)
    violated: whether it is known not to hold, (n,)
    """

    holds: Mask
    violated: Mask

    def __and__(self, other: RuleEvaluation) -> RuleEvaluation:
        return RuleEvaluation(self.holds & other.holds, self.violated | other.violated)

    def __or__(self, other: RuleEvaluation) -> RuleEvaluation:
        return RuleEvaluation(self.holds | other.holds, self.violated & other.violated)

    def __invert__(self) -> RuleEvaluation:
        return RuleEvaluation(self.violated, self.holds)

    @property
    def unknown(self) -> Mask:
        """Mark the records for which neither is known, (n,)."""
        return np.asarray(~(self.holds | self.violated))


@dataclass(frozen=True)
class PossibleValues:
    """Possible values of each record of a table; ``schema`` is that of its variables before release."""

    data: Microdata
    schema: Schema

    def number_ranges(self, name: str) -> tuple[Floats, Floats]:
        """Return the smallest and the largest possible number of each record, both (n,); NaN where nothing is known."""
        if name not in self.data.generalised:
            if self.data.schema[name].kind.has_levels:
                return self._unknown_range()
            numbers = self.data.numbers(name)
            return numbers, numbers
        column = self.data.frame[name].astype("category")
        ends = [_range_of_label(str(label), self.schema[name].kind) for label in column.cat.categories]
        low, high = np.array([*ends, (math.nan, math.nan)]).T
        codes = column.cat.codes.to_numpy()
        return low[codes], high[codes]

    def _unknown_range(self) -> tuple[Floats, Floats]:
        unknown = np.full(len(self.data), math.nan)
        return unknown, unknown

    def level_sets(self, name: str) -> tuple[NDArray[np.intp], list[frozenset[str] | None]]:
        """Return the index of each record's set of possible levels, (n,), and the sets.

        None, the last, stands for unknown.
        """
        if name not in self.data.generalised and not self.data.schema[name].kind.has_levels:
            return np.zeros(len(self.data), dtype=np.intp), [None]
        column = self.data.frame[name].astype("category")
        labels = [str(label) for label in column.cat.categories]
        whole = name in self.data.generalised
        order = self.schema[name].levels
        sets = [_possible_levels(label, self.schema[name], order) if whole else frozenset([label]) for label in labels]
        codes = column.cat.codes.to_numpy().astype(np.intp)
        return np.where(codes < 0, len(sets), codes), [*sets, None]

    def level_order(self, name: str) -> tuple[str, ...]:
        """Return the levels of a variable in their order."""
        if self.schema[name].levels or name in self.data.generalised:
            return self.schema[name].levels
        return tuple(str(level) for level in self.data.frame[name].cat.categories)


def _range_of_label(label: str, kind: Kind) -> tuple[float, float]:
    """Return the smallest and the largest number that a label may stand for."""
    found = parse_interval(label, kind)
    if found is None:
        values = [_parse_number(member, kind) for member in (parse_group(label) or (label,))]
        return (min(values), max(values)) if not any(map(math.isnan, values)) else (math.nan, math.nan)
    whole = kind is Kind.COUNT
    # An open end is the next number inside it.
    low = found.low if found.low_closed else (math.floor(found.low) + 1 if whole else math.nextafter(found.low, math.inf))  # fmt: skip
    high = found.high if found.high_closed or math.isinf(found.high) else (math.ceil(found.high) - 1 if whole else math.nextafter(found.high, -math.inf))  # fmt: skip
    return low, high


def _parse_number(text: str, kind: Kind) -> float:
    """Return the number, or the days since 1970, that a text denotes; NaN where it denotes none."""
    try:
        if kind is Kind.DATE:
            return days_since_epoch(text, "") if DAY.fullmatch(text) else math.nan
        return float(text)
    except ValueError:
        return math.nan


def _possible_levels(label: str, variable: Variable, order: tuple[str, ...]) -> frozenset[str] | None:
    """Return the levels that a label may stand for; None where that is unknown."""
    if label in order:
        return frozenset([label])
    if group := parse_group(label):
        return frozenset(group)
    between = parse_interval(label, variable.kind, order) if order else None
    if between is None:
        return None
    ranks = np.arange(len(order), dtype=np.float64)
    return frozenset(level for level, inside in zip(order, between.contains(ranks), strict=True) if inside)


def evaluate_rule(rule: Condition, values: PossibleValues) -> RuleEvaluation:
    """Return the evaluation of a rule for each record."""
    if isinstance(rule, NegatedCondition):
        return ~evaluate_rule(rule.inner, values)
    if isinstance(rule, ConditionImplication):
        return ~evaluate_rule(rule.premise, values) | evaluate_rule(rule.conclusion, values)
    if isinstance(rule, ConditionConjunction | Some):
        return reduce(
            and_ if isinstance(rule, ConditionConjunction) else or_,
            (evaluate_rule(part, values) for part in rule.parts),
        )
    # A comparison with several values is one term for each: any for "=", all for "!=".
    parts = (_evaluate_term(bound, values) for bound in bound_terms(rule, values.schema, ""))
    return reduce(and_ if isinstance(rule, SumComparison) and rule.sign == "!=" else or_, parts)


def _evaluate_term(bound: BoundTerm, values: PossibleValues) -> RuleEvaluation:
    """Return the evaluation of one bound comparison for each record."""
    if isinstance(bound, LinearComparison):
        return _evaluate_sum(bound, values)
    if isinstance(bound, PresenceTest):
        missing = values.data.missing_mask(bound.column)
        return RuleEvaluation(~missing, missing) if bound.is_present else RuleEvaluation(missing, ~missing)
    codes, sets = values.level_sets(bound.column)
    if isinstance(bound, LevelComparison):
        # Evaluated once for each distinct set of levels, not for each record.
        known = [_evaluate_levels(levels, _level_test(bound, values)) for levels in sets]
        yes, no = np.array(known, dtype=np.bool_).T
        return RuleEvaluation(yes[codes], no[codes])
    others, other_sets = values.level_sets(bound.other)
    alike = [[_compare_level_sets(one, other) for other in other_sets] for one in sets]
    same = RuleEvaluation(*np.array(alike, dtype=np.bool_).transpose(2, 0, 1)[:, codes, others])
    return same if bound.sign == "=" else ~same


def _level_test(bound: LevelComparison, values: PossibleValues) -> Callable[[str], bool]:
    """Return a function that tells whether a level satisfies a comparison."""
    if bound.sign in ("=", "!="):
        return lambda level: (level in bound.names) == (bound.sign == "=")
    order = values.level_order(bound.column)
    rank = {level: at for at, level in enumerate(order)}
    end = rank.get(bound.names[0], math.nan)
    return lambda level: bool(_COMPARED[bound.sign](rank.get(level, math.nan), end))


def _evaluate_levels(levels: frozenset[str] | None, meant: Callable[[str], bool]) -> tuple[bool, bool]:
    """Return whether all, and whether none, of the possible levels satisfy a test."""
    if not levels:
        return False, False
    found = [meant(level) for level in levels]
    return all(found), not any(found)


def _compare_level_sets(one: frozenset[str] | None, other: frozenset[str] | None) -> tuple[bool, bool]:
    """Return whether two values are surely equal, and whether they surely differ."""
    if not one or not other:
        return False, False
    # Equal sets of several levels may still stand for different levels.
    return len(one) == 1 and one == other, one.isdisjoint(other)


def _evaluate_sum(bound: LinearComparison, values: PossibleValues) -> RuleEvaluation:
    """Return the evaluation of a comparison of a sum with 0, by interval arithmetic."""
    low = high = np.full(len(values.data), bound.constant)
    size = np.full(len(values.data), abs(bound.constant))
    for name, coefficient in bound.parts.items():
        ends = [coefficient * end for end in values.number_ranges(name)]
        with np.errstate(invalid="ignore"):
            # A negative coefficient exchanges the ends.
            low, high = low + np.fmin(*ends), high + np.fmax(*ends)
        size = size + np.fmax(*map(np.abs, ends))
    # Decimal fractions are no doubles, so that sums miss by rounding.
    slack = np.zeros(len(size)) if bound.is_exact else SLACK * np.where(np.isfinite(size), size, 0.0)
    if bound.sign in (">", ">="):
        low, high = -high, -low
    sign = MIRRORED_SIGN[bound.sign] if bound.sign in (">", ">=") else bound.sign
    with np.errstate(invalid="ignore"):
        if sign == "<":
            return RuleEvaluation(high < -slack, low >= -slack)
        if sign == "<=":
            return RuleEvaluation(high <= slack, low > slack)
        equal = RuleEvaluation((low >= -slack) & (high <= slack), (high < -slack) | (low > slack))
    return equal if sign == "=" else ~equal


def evaluate_constraint(constraint: RecordConstraint, data: Microdata, schema: Schema) -> RuleEvaluation:
    """Return the evaluation of a constraint for each record, of a rule of units for each record of a unit alike.

    A rule of units is unknown where the release shows labels of what it reads.
    """
    if not constraint.unit_terms:
        return evaluate_rule(constraint.rule, PossibleValues(data, schema))
    terms = parse_rule_terms(constraint.unit_terms, schema)
    if not data.generalised.isdisjoint(name for term in terms for name in term.columns(schema)):
        never = np.zeros(len(data), dtype=np.bool_)
        return RuleEvaluation(never, never)
    own = schema_of_rule(constraint, schema)
    frame = data.frame.assign(**{term.text: _value_of_unit(term, data, schema) for term in terms})
    if SIZE in constraint.unit_terms:
        units = units_of(data)
        frame = frame.assign(**{SIZE: units.sizes[units.unit_of]})
    declared = declare_for_rule(constraint.unit_terms, data.schema, constraint.name)
    return evaluate_rule(constraint.rule, PossibleValues(replace(data, schema=declared, frame=frame), own))


def _value_of_unit(term: UnitTerm, data: Microdata, schema: Schema) -> Any:
    """Return the value of a term over all records of each record's unit, a column (n,)."""
    units = units_of(data)
    holds = np.ones(len(data), dtype=np.bool_)
    if term.condition is not None:
        holds = evaluate_rule(term.condition, PossibleValues(data, schema)).holds
    if term.function == "count":
        return units.sum_by_unit(holds.astype(np.int64))[units.unit_of]
    numbers = data.numbers(term.column)
    known = holds & ~np.isnan(numbers)
    if term.function == "mean":
        with np.errstate(invalid="ignore"):
            means = units.sum_by_unit(np.where(known, numbers, 0.0)) / units.sum_by_unit(known.astype(np.float64))
        return means[units.unit_of]
    # The record that has the extreme, or comes first, so that dates and levels stay what they are.
    ranks = {"first": np.zeros(len(data)), "least": numbers, "largest": -numbers}[term.function]
    ranks = np.where(holds if term.function == "first" else known, ranks, np.inf)[units.order]
    by_rank = np.lexsort((ranks, units.unit_of[units.order]))[units.starts]
    found = np.where(np.isinf(ranks[by_rank]), -1, units.order[by_rank])[units.unit_of]
    if not schema[term.column].kind.has_levels and schema[term.column].kind is not Kind.DATE:
        return np.where(found < 0, np.nan, numbers[found])
    column: Any = data.frame[term.column].array
    return column.take(found, allow_fill=True)


def violations(constraint: RecordConstraint, data: Microdata, schema: Schema) -> Mask:
    """Mark the records of a table that are known to violate a constraint, (n,)."""
    return evaluate_constraint(constraint, data, schema).violated


@dataclass(frozen=True, slots=True)
class ComplianceCounts:
    """Number of ``records`` that violate a constraint, and of those for which it is unknown."""

    constraint: RecordConstraint
    broken: int
    unknown: int
    records: int


def count_compliance(data: Microdata, schema: Schema) -> tuple[ComplianceCounts, ...]:
    """Return the compliance counts of a table for each of the schema's constraints."""
    found = []
    for constraint in schema.constraints:
        known = evaluate_constraint(constraint, data, schema)
        found.append(ComplianceCounts(constraint, int(known.violated.sum()), int(known.unknown.sum()), len(data)))
    return tuple(found)


def check_constraint_levels(data: Microdata, schema: Schema, place: str = "constraints") -> None:
    """Raise BadInput where a constraint names a level that no record has and the recipe does not list."""
    for constraint in schema.constraints:
        where, terms = f"{place}.{constraint.name}", parse_rule_terms(constraint.unit_terms, schema)
        column_of = {term.text: term.column for term in terms}
        bounds = list(bound_terms(constraint.rule, schema_of_rule(constraint, schema), where))
        for condition in (term.condition for term in terms if term.condition is not None):
            bounds += bound_terms(condition, schema, where)
        for bound in bounds:
            if isinstance(bound, LevelComparison):
                column = data.column(column_of.get(bound.column, bound.column))
                levels = tuple(str(level) for level in column.cat.categories)
                hint = f"; where it is one that no record has, list it under variables.{bound.column}.levels"
                # A misspelt level would make the constraint always hold.
                require_levels(bound, levels, f"{place}.{constraint.name}", hint)
