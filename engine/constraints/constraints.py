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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from ..data.conditions import ConstraintSource, RecordConstraint, parse_condition
from ..data.declaration import Param, Section
from ..data.schema import Schema
from ..errors import BadInput, near_miss_hint
from .binding import LevelComparison, bound_terms, columns_of_term
from .unit_terms import declare_for_rule, parse_rule_terms, quote_unit_terms

MOST_CONSTRAINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintTable(Section):
    """Rule of ``[constraints]`` as a recipe writes it; a declared one may be written as its text alone."""

    holds: Annotated[Any, Param('the rule, such as "income = wage + rent"')] = None
    source: Annotated[ConstraintSource, Param("who states it: the recipe, or the data that show it")] = "declared"


def read_constraints(
    table: Mapping[str, Any], schema: Schema, section: str = "constraints"
) -> tuple[RecordConstraint, ...]:
    """Return the constraints of a recipe's ``[constraints]``, or of another section. Raises BadInput at ``SECTION.NAME``."""
    if len(table) > MOST_CONSTRAINTS:
        raise BadInput(section, f"at most {MOST_CONSTRAINTS} rules; this has {len(table):,}")
    found = []
    for name, value in table.items():
        place = f"{section}.{name}"
        if not name.strip():
            raise BadInput(section, 'every rule has a name, such as total = "income = wage + rent"')
        read = ConstraintTable.read_section(value if isinstance(value, Mapping) else {"holds": value}, place)
        holds, terms = quote_unit_terms(read.holds, schema, place)
        try:
            rule = parse_condition(holds)
        except ValueError as error:
            raise BadInput(place, str(error)) from None
        constraint = RecordConstraint(str(name), str(read.holds).strip(), rule, read.source, terms)
        _check_constraint(constraint, schema, place)
        found.append(constraint)
    return tuple(found)


def _check_constraint(constraint: RecordConstraint, schema: Schema, place: str) -> None:
    """Raise BadInput where a constraint names a column that does not exist, or compares values that cannot be compared."""
    schema = schema_of_rule(constraint, schema)
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


def schema_of_rule(constraint: RecordConstraint, schema: Schema) -> Schema:
    """Return the schema to whose variables a constraint's names are bound: with one for each of its terms of units."""
    return declare_for_rule(constraint.unit_terms, schema, f"constraints.{constraint.name}")


def columns_of_constraint(constraint: RecordConstraint, schema: Schema) -> tuple[str, ...]:
    """Return the distinct columns of the table that a constraint reads."""
    own = schema_of_rule(constraint, schema)
    found = [
        column for bound in bound_terms(constraint.rule, own, constraint.name) for column in columns_of_term(bound)
    ]
    for term in parse_rule_terms(constraint.unit_terms, schema):
        found += term.columns(schema)
    return tuple(name for name in dict.fromkeys(found) if name not in constraint.unit_terms)
