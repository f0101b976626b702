"""What every record of a table keeps to: constraints, as a recipe's ``[constraints]`` says them, their names bound to columns.

    [constraints]
    adult_spouse = "married = 'yes' -> age >= 15"
    total = "income = wage + rent + other"
    order = { holds = "born <= married_on", source = "data" }

A name is a column where there is one of that name, unless it stands in quotes on the right of a sign. Columns with levels are compared with levels, or with
each other by name; numbers with numbers; dates with dates, and differences of dates with days.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from ..data.conditions import (
    Atom,
    Comparison,
    Condition,
    Constraint,
    ConstraintSource,
    Implies,
    Item,
    Not,
    Presence,
    Sum,
    number_of,
    parse_condition,
)
from ..data.declaration import Param, Section
from ..data.schema import Kind, Role, Schema
from ..errors import BadInput, suggestion

MOST_CONSTRAINTS = 200
EPOCH = date(1970, 1, 1).toordinal()
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Linear:
    """The sum of ``parts``, coefficients by column, and ``constant``, held against 0 by ``sign``."""

    parts: Mapping[str, float]
    constant: float
    sign: str

    @property
    def exact(self) -> bool:
        """Whether no sum is rounded: one column against a number, or two against each other."""
        units = all(abs(coefficient) == 1 for coefficient in self.parts.values())
        return units and (len(self.parts) == 1 or (len(self.parts) == 2 and self.constant == 0))


@dataclass(frozen=True, slots=True)
class OneOf:
    """A column with levels, and which of them: ``sign`` and names."""

    column: str
    sign: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SameLevel:
    """Two columns with levels, whose names are equal, or differ."""

    column: str
    other: str
    sign: str


Bound = Linear | OneOf | SameLevel | Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintTable(Section):
    """A rule of ``[constraints]`` as a recipe writes it; one that is declared may be its text alone."""

    holds: Annotated[Any, Param('the rule, such as "income = wage + rent"')] = None
    source: Annotated[ConstraintSource, Param("who states it: the recipe, or the data that show it")] = "declared"


def read_constraints(table: Mapping[str, Any], schema: Schema) -> tuple[Constraint, ...]:
    """The constraints that a recipe's ``[constraints]`` says. Raises BadInput at ``constraints.NAME``."""
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
        constraint = Constraint(str(name), str(read.holds).strip(), rule, read.source)
        _check(constraint, schema, place)
        found.append(constraint)
    return tuple(found)


def _check(constraint: Constraint, schema: Schema, place: str) -> None:
    """BadInput where it names a column that there is none of, or compares what cannot be compared."""
    for bound in bound_terms(constraint.rule, schema, place):
        for column in columns_of_bound(bound):
            if schema[column].role is Role.IDENTIFIER:
                raise BadInput(
                    place, f'"{column}" is an identifier, which no release holds; leave it out of constraints'
                )
        if isinstance(bound, OneOf) and (levels := schema[bound.column].levels):
            require_levels(bound, levels, place)


def require_levels(bound: OneOf, levels: tuple[str, ...], place: str, hint: str = "") -> None:
    """BadInput where a comparison names a level that is none of these."""
    for name in bound.names:
        if name not in levels:
            raise BadInput(place, f'"{bound.column}" has no level "{name}"{suggestion(name, levels)}{hint}')


def columns_of(constraint: Constraint, schema: Schema) -> tuple[str, ...]:
    """The columns that a constraint speaks of, each once."""
    found = (
        column for bound in bound_terms(constraint.rule, schema, constraint.name) for column in columns_of_bound(bound)
    )
    return tuple(dict.fromkeys(found))


def columns_of_bound(bound: Bound) -> tuple[str, ...]:
    if isinstance(bound, Linear):
        return tuple(bound.parts)
    return (bound.column, bound.other) if isinstance(bound, SameLevel) else (bound.column,)


def bound_terms(rule: Condition, schema: Schema, place: str) -> Iterator[Bound]:
    """Every comparison of a rule, its names bound to columns. Raises BadInput."""
    if isinstance(rule, Presence):
        schema.require(rule.column, place)
        yield rule
    elif isinstance(rule, Comparison):
        yield from _bound(rule, schema, place)
    elif isinstance(rule, Not):
        yield from bound_terms(rule.inner, schema, place)
    else:
        for part in (rule.given, rule.then) if isinstance(rule, Implies) else rule.parts:
            yield from bound_terms(part, schema, place)


def _bound(term: Comparison, schema: Schema, place: str) -> list[Bound]:
    """One comparison for each value on its right."""
    first = term.left[0]
    if len(term.left) == 1 and _column(first.atom, schema, begins=True) and schema[first.atom.text].kind.has_levels:
        return [_levels(term, schema, place)]
    return [_linear(term, right, schema, place) for right in term.right]


def _column(atom: Atom, schema: Schema, *, begins: bool = False) -> bool:
    return (begins or not atom.is_value) and atom.text in schema


def _levels(term: Comparison, schema: Schema, place: str) -> Bound:
    column = term.left[0].atom.text
    if term.left[0].scaled or term.left[0].coefficient != 1 or any(len(right) > 1 for right in term.right):
        raise BadInput(place, f'"{column}" has levels, not numbers: it stands in no sum')
    atoms = [right[0].atom for right in term.right]
    if any(right[0].scaled or right[0].coefficient != 1 for right in term.right):
        raise BadInput(place, f'"{column}" has levels, not numbers: compare it with one of them')
    others = [atom.text for atom in atoms if _column(atom, schema)]
    if term.sign not in ("=", "!=") and (schema[column].kind is not Kind.ORDINAL or others):
        raise BadInput(place, f'the levels of "{column}" have no order: use = or !=, or make it ordinal or a count')
    if not others:
        return OneOf(column, term.sign, tuple(atom.text for atom in atoms))
    if len(atoms) > 1 or not schema[others[0]].kind.has_levels:
        raise BadInput(
            place, f'"{column}" has levels: compare it with them, in quotes, or with one other column that has'
        )
    return SameLevel(column, others[0], term.sign)


def _linear(term: Comparison, right: Sum, schema: Schema, place: str) -> Linear:
    parts: dict[str, float] = {}
    constant = moments = 0.0
    dates = any(
        _column(i.atom, schema) and schema[i.atom.text].kind is Kind.DATE for side in (term.left, right) for i in side
    )
    for side, factor, begins in ((term.left, 1.0, True), (right, -1.0, False)):
        for item in side:
            if _column(item.atom, schema, begins=begins and item is side[0]):
                name = item.atom.text
                if schema[name].kind.has_levels:
                    raise BadInput(place, f'"{name}" has levels, not numbers; make it a count, or leave it out of sums')
                parts[name] = parts.get(name, 0.0) + factor * item.coefficient
                moments += factor * item.coefficient if schema[name].kind is Kind.DATE else 0.0
            elif dates and DAY.fullmatch(item.atom.text):
                moments += factor * item.coefficient
                constant += factor * item.coefficient * day_of(item.atom.text, place)
            else:
                constant += factor * _value(item, schema, place)
    parts = {name: coefficient for name, coefficient in parts.items() if coefficient}
    if not parts:
        raise BadInput(place, f'"{term.text}" says nothing of a variable')
    if moments:
        raise BadInput(place, f'"{term.text}" compares a date with what is none: write dates as 2019-07-31')
    numbers = (constant, *parts.values())
    if not all(map(math.isfinite, numbers)):
        raise BadInput(place, f'"{term.text}" has a number that is too large')
    return Linear(parts, constant, term.sign)


def day_of(text: str, place: str) -> float:
    """Days since 1970 of a date as it is written. Raises BadInput."""
    try:
        return float(date.fromisoformat(text).toordinal() - EPOCH)
    except ValueError:
        raise BadInput(place, f'"{text}" is no date: write 2019-07-31') from None


def _value(item: Item, schema: Schema, place: str) -> float:
    number = number_of(item.atom)
    if number is not None:
        return item.coefficient * number
    if not item.atom.is_value:
        schema.require(item.atom.text, place)
    raise BadInput(place, f'"{item.atom.text}" is neither a number nor a date: it is compared with neither')
