"""Constraints that every record of a table satisfies, as a recipe's ``[constraints]`` states them, with names bound to
columns.

    [constraints]
    adult_spouse = "married = 'yes' -> age >= 15"
    total = "income = wage + rent + other"
    order = { holds = "born <= married_on", source = "data" }

A name denotes a column where there is one of that name, unless it is in quotes on the right of a sign. Columns with
levels are compared with levels, or with each other by name; numbers with numbers; dates with dates, and differences of
dates with days.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from ..data.conditions import (
    Condition,
    ConditionImplication,
    ConstraintSource,
    NameOrValue,
    NegatedCondition,
    PresenceTest,
    RecordConstraint,
    SumComparison,
    SumItem,
    SumItems,
    number_or_none,
    parse_condition,
)
from ..data.declaration import Param, Section
from ..data.schema import Kind, Schema
from ..errors import BadInput, near_miss_hint

MOST_CONSTRAINTS = 200
EPOCH = date(1970, 1, 1).toordinal()
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class LinearComparison:
    """Sum of ``constant`` and columns times their coefficients in ``parts``, compared with 0 by ``sign``."""

    parts: Mapping[str, float]
    constant: float
    sign: str

    @property
    def is_exact(self) -> bool:
        """Return whether the comparison involves no rounding: one column against a number, or two against each other."""
        units = all(abs(coefficient) == 1 for coefficient in self.parts.values())
        return units and (len(self.parts) == 1 or (len(self.parts) == 2 and self.constant == 0))


@dataclass(frozen=True, slots=True)
class LevelComparison:
    """Comparison of a column that has levels with some of them, ``names``, by ``sign``."""

    column: str
    sign: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SameLevel:
    """Comparison of two columns with levels by ``sign``, equal or not, by the names of the levels."""

    column: str
    other: str
    sign: str


BoundTerm = LinearComparison | LevelComparison | SameLevel | PresenceTest


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintTable(Section):
    """Rule of ``[constraints]`` as a recipe writes it; a declared one may be written as its text alone."""

    holds: Annotated[Any, Param('the rule, such as "income = wage + rent"')] = None
    source: Annotated[ConstraintSource, Param("who states it: the recipe, or the data that show it")] = "declared"


def read_constraints(table: Mapping[str, Any], schema: Schema) -> tuple[RecordConstraint, ...]:
    """Return the constraints of a recipe's ``[constraints]``. Raises BadInput at ``constraints.NAME``."""
    if len(table) > MOST_CONSTRAINTS:
        raise BadInput("constraints", f"at most {MOST_CONSTRAINTS} rules; this has {len(table):,}")
    found = []
    for name, value in table.items():
        place = f"constraints.{name}"
        if not name.strip():
            raise BadInput("constraints", 'every rule has a name, such as total = "income = wage + rent"')
        read = ConstraintTable.read_section(value if isinstance(value, Mapping) else {"holds": value}, place)
        try:
            rule = parse_condition(read.holds)
        except ValueError as error:
            raise BadInput(place, str(error)) from None
        constraint = RecordConstraint(str(name), str(read.holds).strip(), rule, read.source)
        _check_constraint(constraint, schema, place)
        found.append(constraint)
    return tuple(found)


def _check_constraint(constraint: RecordConstraint, schema: Schema, place: str) -> None:
    """Raise BadInput where a constraint names a column that does not exist, or compares values that cannot be compared."""
    for bound in bound_terms(constraint.rule, schema, place):
        for column in columns_of_term(bound):
            if schema[column].role.is_identifier:
                raise BadInput(
                    place, f'"{column}" is an identifier, which no release holds; leave it out of constraints'
                )
        if isinstance(bound, LevelComparison) and (levels := schema[bound.column].levels):
            require_levels(bound, levels, place)


def require_levels(bound: LevelComparison, levels: tuple[str, ...], place: str, hint: str = "") -> None:
    """Raise BadInput where a comparison names a level that is not among ``levels``."""
    for name in bound.names:
        if name not in levels:
            raise BadInput(place, f'"{bound.column}" has no level "{name}"{near_miss_hint(name, levels)}{hint}')


def columns_of_constraint(constraint: RecordConstraint, schema: Schema) -> tuple[str, ...]:
    """Return the distinct columns that a constraint reads."""
    found = (
        column for bound in bound_terms(constraint.rule, schema, constraint.name) for column in columns_of_term(bound)
    )
    return tuple(dict.fromkeys(found))


def columns_of_term(bound: BoundTerm) -> tuple[str, ...]:
    """Return the columns that a bound comparison reads."""
    if isinstance(bound, LinearComparison):
        return tuple(bound.parts)
    return (bound.column, bound.other) if isinstance(bound, SameLevel) else (bound.column,)


def bound_terms(rule: Condition, schema: Schema, place: str) -> Iterator[BoundTerm]:
    """Yield every comparison of a rule with its names bound to columns. Raises BadInput."""
    if isinstance(rule, PresenceTest):
        schema.require_variable(rule.column, place)
        yield rule
    elif isinstance(rule, SumComparison):
        yield from _bind_comparison(rule, schema, place)
    elif isinstance(rule, NegatedCondition):
        yield from bound_terms(rule.inner, schema, place)
    else:
        for part in (rule.premise, rule.conclusion) if isinstance(rule, ConditionImplication) else rule.parts:
            yield from bound_terms(part, schema, place)


def _bind_comparison(term: SumComparison, schema: Schema, place: str) -> list[BoundTerm]:
    """Return a bound comparison for each value on the right of a comparison, or one for all of them where the column
    has levels.
    """
    first = term.left[0]
    if len(term.left) == 1 and _is_column(first.atom, schema, begins=True) and schema[first.atom.text].kind.has_levels:
        return [_bind_levels(term, schema, place)]
    return [_bind_linear(term, right, schema, place) for right in term.right]


def _is_column(atom: NameOrValue, schema: Schema, *, begins: bool = False) -> bool:
    return (begins or not atom.is_value) and atom.text in schema


def _bind_levels(term: SumComparison, schema: Schema, place: str) -> BoundTerm:
    """Return the bound comparison of a column with levels. Raises BadInput."""
    column = term.left[0].atom.text
    if term.left[0].has_coefficient or term.left[0].coefficient != 1 or any(len(right) > 1 for right in term.right):
        raise BadInput(place, f'"{column}" has levels, not numbers: it stands in no sum')
    atoms = [right[0].atom for right in term.right]
    if any(right[0].has_coefficient or right[0].coefficient != 1 for right in term.right):
        raise BadInput(place, f'"{column}" has levels, not numbers: compare it with one of them')
    others = [atom.text for atom in atoms if _is_column(atom, schema)]
    if term.sign not in ("=", "!=") and (schema[column].kind is not Kind.ORDINAL or others):
        raise BadInput(place, f'the levels of "{column}" have no order: use = or !=, or make it ordinal or a count')
    if not others:
        return LevelComparison(column, term.sign, tuple(atom.text for atom in atoms))
    if len(atoms) > 1 or not schema[others[0]].kind.has_levels:
        raise BadInput(
            place, f'"{column}" has levels: compare it with them, in quotes, or with one other column that has'
        )
    return SameLevel(column, others[0], term.sign)


def _bind_linear(term: SumComparison, right: SumItems, schema: Schema, place: str) -> LinearComparison:
    """Return the bound comparison of two sums as one with 0. Raises BadInput."""
    parts: dict[str, float] = {}
    # ``moments`` is the sum of the coefficients of dates: 0 in a difference of dates, which is compared with days.
    constant = moments = 0.0
    dates = any(
        _is_column(i.atom, schema) and schema[i.atom.text].kind is Kind.DATE
        for side in (term.left, right)
        for i in side
    )
    for side, factor, begins in ((term.left, 1.0, True), (right, -1.0, False)):
        for item in side:
            if _is_column(item.atom, schema, begins=begins and item is side[0]):
                name = item.atom.text
                if schema[name].kind.has_levels:
                    raise BadInput(place, f'"{name}" has levels, not numbers; make it a count, or leave it out of sums')
                parts[name] = parts.get(name, 0.0) + factor * item.coefficient
                moments += factor * item.coefficient if schema[name].kind is Kind.DATE else 0.0
            elif dates and DAY.fullmatch(item.atom.text):
                moments += factor * item.coefficient
                constant += factor * item.coefficient * days_since_epoch(item.atom.text, place)
            else:
                constant += factor * _item_value(item, schema, place)
    # Columns that cancel out, as in "a = a", say nothing.
    parts = {name: coefficient for name, coefficient in parts.items() if coefficient}
    if not parts:
        raise BadInput(place, f'"{term.text}" says nothing of a variable')
    if moments:
        raise BadInput(
            place, f'"{term.text}" compares a date with a value that is not a date: write dates as 2019-07-31'
        )
    numbers = (constant, *parts.values())
    if not all(map(math.isfinite, numbers)):
        raise BadInput(place, f'"{term.text}" has a number that is too large')
    return LinearComparison(parts, constant, term.sign)


def days_since_epoch(text: str, place: str) -> float:
    """Return the days from 1970-01-01 to a date as written. Raises BadInput."""
    try:
        return float(date.fromisoformat(text).toordinal() - EPOCH)
    except ValueError:
        raise BadInput(place, f'"{text}" is no date: write 2019-07-31') from None


def _item_value(item: SumItem, schema: Schema, place: str) -> float:
    """Return the number of an item of a sum, times its coefficient. Raises BadInput."""
    number = number_or_none(item.atom)
    if number is not None:
        return item.coefficient * number
    if not item.atom.is_value:
        schema.require_variable(item.atom.text, place)
    raise BadInput(place, f'"{item.atom.text}" is neither a number nor a date: it is compared with neither')
