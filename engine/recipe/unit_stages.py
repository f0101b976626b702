"""Stages of a synthesis whose release keeps or draws units of several records (``[release] units``).

The first stage has one row a unit: steps of variables with ``level = "unit"``, then of ``size``, the number of records.
The second has the records at place 1 of all units, then those at place 2, and so on. Each of its steps is one model,
fitted to the records at all places, whose predictors may be variables of the unit and terms of earlier records
(``sfumato.engine.constraints.unit_terms``). ``units = "drawn"`` makes new units of new sizes, and numbers them; ``"kept"``
keeps which record is of which unit, and every variable without a step.

``until = "dropped"`` puts a yes/no variable of the record in place of ``size``: a unit's last record is one where it is
yes, or where nobody has a later one (``sfumato.engine.constraints.earlier_records.DropOut``). A variable of the file may
be it; without one it is made, and not released.

Where steps have an epsilon, all have one. Sizes and places are then levels from 1 to ``[data] largest_unit``, and
``[release] number_of_units`` fixes how many units are drawn: a draw reads nothing of the data but the fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..constraints.earlier_records import level_of_no_record, levels_of_counts
from ..constraints.unit_terms import (
    FOLLOWING,
    PLACE,
    SIZE,
    UnitTerm,
    drop_out_variable,
    find_unit_terms,
    implied_variables,
)
from ..data.schema import Kind, Role, Schema, Variable
from ..errors import BadInput
from ..statistics.unit_effects import unit_effect_columns
from .step_tables import StepTable
from .steps import RecipeStep, read_synthesis_step

UNITS, UNTIL = "release.units", "release.until"
NUMBER_OF_UNITS = "release.number_of_units"
MOST_PRIVATE_RECORDS = 50
"""Records of a unit that steps with an epsilon draw at most: each place has tables and noise of its own."""
LEAF_OF_SIZE = 20
"""What the tree has in a leaf at least that draws ``size`` where no step does."""


def read_synthesis_steps(
    tables: Sequence[Mapping[str, Any]], schema: Schema, release: Mapping[str, Any]
) -> tuple[RecipeStep, ...]:
    """Create the entries of [[synthesis]], in stages where ``[release] units`` requests that. Raises BadInput."""
    units, until = release.get("units"), release.get("until") or ""
    if until and units != "drawn":
        raise BadInput(UNTIL, 'only drawn units drop out; set units = "drawn" beside it, or leave it out')
    if units not in ("drawn", "kept"):
        return tuple(_read_step_of_records(table, i, schema) for i, table in enumerate(tables))
    _check_declarations(schema)
    until = _read_drop_out(until, schema)
    tables = list(tables)
    # Sizes are read from the data by that tree, which no account covers.
    is_private = any("epsilon" in table for table in tables)
    is_sized = is_private or until or any(SIZE in _targets(table) for table in tables)
    if units == "drawn" and tables and not is_sized:
        tables.append(
            {"target": SIZE, "method": "cart", "predictors": list(schema.unit_level), "minbucket": LEAF_OF_SIZE}
        )
    return tuple(_read_step_of_stage(table, i, schema, str(units), until) for i, table in enumerate(tables))


def _read_drop_out(name: object, schema: Schema) -> str:
    """Return the name of the yes/no variable of drop-out, or an empty one. Raises BadInput."""
    if not isinstance(name, str):
        raise BadInput(UNTIL, 'must be the name of a variable, such as "dropped"')
    if name in (SIZE, PLACE):
        raise BadInput(UNTIL, f'"{name}" is the name of another variable of units; use another, such as "dropped"')
    if name in schema and (schema[name].kind is not Kind.BINARY or schema[name].level == "unit"):
        raise BadInput(UNTIL, f'"{name}" must be a binary variable of records, or a name that no column has')
    return name


def _targets(table: Mapping[str, Any]) -> list[object]:
    given = table.get("target")
    return given if isinstance(given, list) else [given]


def _read_step_of_records(table: Mapping[str, Any], index: int, schema: Schema) -> RecipeStep:
    """Read a step of a recipe without stages. Raises BadInput where it names terms of earlier records."""
    place = f"synthesis[{index}]"
    if schema.unit is not None:
        for term in find_unit_terms(table, schema, place):
            raise BadInput(
                place, f'{term.text} is of earlier records of a unit; set units = "drawn" or "kept" under [release]'
            )
    step = read_synthesis_step(table, index, schema)
    if step.has_unit_effect:
        raise BadInput(
            f"{place}.unit_effect",
            'records of a unit share an effect where units are drawn; set units = "drawn" or "kept" under [release], or '
            "leave it out",
        )
    return step


def _check_declarations(schema: Schema) -> None:
    """Raise BadInput where the variables do not allow stages."""
    if schema.unit is None:
        raise BadInput(UNITS, 'no variable has the role "unit"; give it to the one that numbers the units')
    for name in (SIZE, PLACE):
        if name in schema:
            what = "the number of records of a unit" if name == SIZE else "the place of a record within its unit"
            raise BadInput(f"variables.{name}", f'with {UNITS} "{name}" is {what}; rename this column in the file')


def _read_step_of_stage(
    table: Mapping[str, Any], index: int, schema: Schema, units: str, until: str = ""
) -> RecipeStep:
    """Read a step with the table of its stage. Raises BadInput."""
    place = f"synthesis[{index}]"
    names = [name for name in _targets(table) if isinstance(name, str)]
    by_unit = {name for name in names if name == SIZE or name in schema.unit_level}
    if SIZE in names and units == "kept":
        raise BadInput(f"{place}.target", f'units = "kept" keeps the sizes of units; leave "{SIZE}" out')
    if until:
        _refuse_sizes(table, until, place)
    if by_unit and len(by_unit) < len(set(names)):
        other = next(name for name in names if name not in by_unit)
        raise BadInput(
            f"{place}.target",
            f'"{next(iter(by_unit))}" is of a unit and "{other}" of a record; make them in steps of their own',
        )
    for name in names:
        if name not in (SIZE, until) and (schema.require_variable(name, f"{place}.target").role.is_identifier):
            raise BadInput(f"{place}.target", f'"{name}" is an identifier, which no model makes; leave it out')
    size, number = implied_variables()
    terms: tuple[UnitTerm, ...] = ()
    if by_unit:
        variables = [v for v in schema if v.level == "unit"]
        own = Schema((*variables, *([] if until else [size])))
        _require_unit_variables(table, own, schema, place)
    else:
        terms = tuple(find_unit_terms({key: item for key, item in table.items() if key != "target"}, schema, place))
        variables = [v for v in schema if not v.role.is_identifier]
        made = [*([] if not until or until in schema else [drop_out_variable(until)]), *([] if until else [size])]
        own = Schema(
            (*variables, *(term.declare(schema) for term in terms), *made, number),
            order=schema.order,
            largest_unit=schema.largest_unit,
        )
    step = read_synthesis_step(table, index, own)
    _check_method(step, place, units)
    most = None
    if step.is_private:
        most = _largest_unit(schema)
        _check_private_step(step, terms, schema, place)
        own = _with_public_levels(own, most, terms, schema)
        step = read_synthesis_step(table, index, own)
    _check_unit_effect(step, own, place, by_unit=bool(by_unit))
    implied = until if until not in schema and not by_unit else ""
    return replace(step, table=StepTable(own, bool(by_unit), terms, implied, most))


def _largest_unit(schema: Schema) -> int:
    """Return the most records of a unit that a step with an epsilon draws. Raises BadInput without a bound, or a large one."""
    place = "data.largest_unit"
    if schema.largest_unit is None:
        raise BadInput(
            place,
            "a step with an epsilon draws units of 1 record up to this number; set it from public knowledge, such as 5",
        )
    if schema.largest_unit > MOST_PRIVATE_RECORDS:
        raise BadInput(place, f"a step with an epsilon draws units of at most {MOST_PRIVATE_RECORDS} records; lower it")
    return schema.largest_unit


def _with_public_levels(own: Schema, most: int, terms: Sequence[UnitTerm], schema: Schema) -> Schema:
    """Return a stage's schema with sizes and places as levels from 1 to the most records of a unit, and terms with levels
    that follow from it, or from their variables in ``schema``.
    """
    levels = tuple(str(number) for number in range(1, most + 1))
    made = {
        name: Variable(name, Kind.ORDINAL, levels=levels, title=own[name].title)
        for name in (SIZE, PLACE)
        if name in own
    }
    for term in terms:
        if not term.column:
            made[term.text] = Variable(term.text, Kind.ORDINAL, levels=tuple(levels_of_counts(most)))
            continue
        variable = schema[term.column]
        made[term.text] = replace(
            own[term.text],
            levels=(level_of_no_record(variable.levels), *variable.levels),
            may_be_missing=variable.may_be_missing,
        )
    variables = tuple(made.get(one.name, one) for one in own)
    # A table of units has one row of each, and no place.
    return replace(own, variables=variables, place=PLACE if PLACE in own else "")


def _check_private_step(step: RecipeStep, terms: Sequence[UnitTerm], schema: Schema, place: str) -> None:
    """Raise BadInput where a step with an epsilon names what it cannot count, or tells of units as if they were records."""
    for term in terms:
        if term.column and (term.function not in ("first", "previous") or not schema[term.column].levels):
            raise BadInput(
                place,
                f"{term.text}: a step with an epsilon takes first and previous of variables with declared levels, and count; "
                "declare levels, or leave the term out",
            )
    if getattr(step.spec, "figures", 0.0):
        raise BadInput(f"{place}.figures", "no figure is measured of drawn units; leave it out")


def _refuse_sizes(table: Mapping[str, Any], until: str, place: str) -> None:
    """Raise BadInput where a step makes or names the size of units, which is not known before their last record."""
    for key, item in table.items():
        for i, text in enumerate(item if isinstance(item, list) else [item]):
            if isinstance(text, str) and (text == SIZE or FOLLOWING in text) and key != "method":
                at = f"{place}.{key}[{i}]" if isinstance(item, list) else f"{place}.{key}"
                raise BadInput(at, f'with until = "{until}" the size of a unit follows from its records; leave it out')


def _check_unit_effect(step: RecipeStep, own: Schema, place: str, *, by_unit: bool) -> None:
    """Raise BadInput where records of a unit cannot share an effect."""
    if not step.has_unit_effect:
        return
    at = f"{place}.unit_effect"
    if by_unit:
        raise BadInput(at, "this step makes one value a unit, so that its records share it already; leave it out")
    for name in step.targets:
        if own[name].kind.has_levels and not step.spec.effect_on_levels:
            raise BadInput(at, f'"{name}" has levels, and only numbers share an effect; leave it out')
        if own[name].kind is Kind.CATEGORICAL:
            raise BadInput(
                at,
                f'the levels of "{name}" have no order, so that none is near another; make it ordinal, or leave it out',
            )
    for name in unit_effect_columns(step.targets):
        if name in own:
            raise BadInput(f"variables.{name}", "unit_effect has a column of this name; rename this one in the file")


def _require_unit_variables(table: Mapping[str, Any], own: Schema, schema: Schema, place: str) -> None:
    """Raise BadInput where a step of units names a variable or a term of records."""
    for key, item in table.items():
        for i, text in enumerate(item if isinstance(item, list) else [item]):
            if not isinstance(text, str) or key in ("target", "method") or text in own:
                continue
            at = f"{place}.{key}[{i}]" if isinstance(item, list) else f"{place}.{key}"
            if (text in schema and schema[text].level != "unit") or text == PLACE:
                raise BadInput(at, f'"{text}" is of a record, and this step makes one value a unit; leave it out')
            for term in find_unit_terms(text, schema, at):
                raise BadInput(at, f"{term.text} is of records, and this step makes one value a unit; leave it out")


def _check_method(step: RecipeStep, place: str, units: str) -> None:
    """Raise BadInput where a method cannot draw records place by place."""
    privacy = step.method.synthesis.privacy
    if privacy.account is not None and privacy.draws_units:
        if units != "drawn":
            raise BadInput(
                f"{place}.method", f'{step.method.key} keeps no unit; set units = "drawn", or use another method'
            )
        if not step.is_private:
            raise BadInput(
                f"{place}.method", f"{step.method.key} draws units with noise alone; add epsilon, or use another method"
            )
    elif privacy.account is not None:
        raise BadInput(
            f"{place}.method",
            f"the privacy account of {step.method.key} covers tables of records alone; leave {UNITS} out, or use "
            "another method",
        )
    if step.spec.uses_own_record:
        raise BadInput(
            f"{place}.method",
            f"{step.method.key} changes a record's own values, and {UNITS} draws records from those before; use "
            "another method, such as cart",
        )


def with_made_units(schema: Schema) -> Schema:
    """Return the schema of a release whose new units are numbered from 1."""
    number = schema[str(schema.unit)]
    made = Variable(number.name, Kind.COUNT, Role.UNIT, title=number.title)
    return replace(schema, variables=tuple(made if one.name == number.name else one for one in schema))


def steps_of_stage(steps: Sequence[RecipeStep], *, by_unit: bool) -> list[tuple[int, RecipeStep]]:
    """Return the steps of one stage with their numbers in the recipe."""
    return [(i, step) for i, step in enumerate(steps) if step.table is not None and step.table.by_unit == by_unit]


def check_drawn_units(steps: Sequence[RecipeStep], schema: Schema, surrogate_keys: Sequence[str], until: str) -> None:
    """Raise BadInput where new units would keep something of confidential ones."""
    if any(step.is_private for step in steps):
        _check_private_units(steps, schema, until)
    for name in schema.names_by_role(Role.IDENTIFIER):
        raise BadInput(f"variables.{name}.role", "drawn units have no identifier; leave the column out")
    made = {name for step in steps for name in step.targets}
    for name in schema.non_identifiers:
        if name not in made:
            raise BadInput(
                UNITS, f'"drawn" makes new units, and no step makes "{name}"; add a step, or set units = "kept"'
            )
    if until and until not in made:
        raise BadInput(UNTIL, f'no step draws "{until}"; add one with target = "{until}"')
    if surrogate_keys:
        raise BadInput("release.surrogate_keys", "drawn units have new numbers, which join nothing; leave it out")


def _check_private_units(steps: Sequence[RecipeStep], schema: Schema, until: str) -> None:
    """Raise BadInput where units with an epsilon would have a part without one."""
    if until:
        raise BadInput(UNTIL, "steps with an epsilon draw the size of a unit; leave it out")
    for step in steps:
        if not step.is_private:
            raise BadInput(
                f"{step.place}.method",
                f"another step has an epsilon and {step.method.key} has none; use synthesis.margins with an epsilon for all",
            )
    if SIZE not in {name for step in steps for name in step.targets}:
        raise BadInput(
            f"{steps[0].place}.target",
            f'no step draws the number of records of a unit; add "{SIZE}" to the targets of the step of its variables',
        )
    for one in schema.constraints:
        if one.unit_terms:
            raise BadInput(
                f"constraints.{one.name}",
                "units that break it would be drawn again, and the privacy account covers units drawn once; leave it out",
            )


def check_number_of_units(steps: Sequence[RecipeStep], units: str, number: int | None, records: int | None) -> None:
    """Raise BadInput where a number of units or records is requested that nothing draws."""
    is_private = any(step.is_private for step in steps)
    if number is not None and not (units == "drawn" and is_private):
        raise BadInput(
            NUMBER_OF_UNITS, 'only steps with an epsilon and units = "drawn" make a number of units; leave it out'
        )
    if records is not None and units:
        raise BadInput(
            "release.records",
            "the sizes of units say how many records there are; "
            + ("set number_of_units in its place" if units == "drawn" and is_private else "leave it out"),
        )
