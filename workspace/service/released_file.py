"""Measures of one anonymised file without the confidential one; nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.engine.data.schema import MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.partition.released_file import measure_released_file

from ..ingest.columns import ColumnProfile, profile_columns
from ..reporting.released_file import AnonymityLimits, ReleasedFileView


def evaluate_released_file(
    file: str, known: Sequence[str], sensitive: Sequence[str], limits: AnonymityLimits, recipe: str = ""
) -> ReleasedFileView:
    """Measure the classes of one released file by the named variables, or by the roles of a recipe. Raises BadInput."""
    from sfumato.engine.data.microdata import conform_to_schema
    from sfumato.engine.data.missing_codes import mask_missing_codes

    from ..ingest.files import find_source
    from .importing import EVERYTHING, read_source

    declared = _schema_of_recipe(recipe)
    known = known or declared.names_by_role(Role.QUASI_IDENTIFIER)
    sensitive = sensitive or tuple(name for name in declared.names_by_role(Role.SENSITIVE) if name not in known)
    if not known:
        raise BadInput("--known", "name the variables that an intruder may know, such as --known age,sex")
    if twice := sorted(set(known) & set(sensitive)):
        raise BadInput("--sensitive", f'"{twice[0]}" is known too; leave it out of one')
    if not sensitive and (limits.l is not None or limits.t is not None):
        raise BadInput("--sensitive", "l and t limit a sensitive variable; name it, such as --sensitive income")
    raw, _ = read_source(find_source(file, place="--released"), {}, EVERYTHING)
    if not raw.records:
        raise BadInput("--released", f'"{file}" has no records')
    columns = {column.variable.name: column for column in profile_columns(raw)}
    for option, names in (("--known", known), ("--sensitive", sensitive)):
        for name in names:
            if name not in columns:
                raise BadInput(option, f'"{file}" has no column "{name}"{near_miss_hint(name, columns)}')
    variables = {name: _variable(columns[name], declared) for name in (*known, *sensitive)}
    shown = {
        name: mask_missing_codes(values, variables[name]).reset_index(drop=True)
        for name, values in raw.iterate_columns(tuple(known))
    }
    shown = {name: column.where(column.astype("object") != "") for name, column in shown.items()}
    schema = Schema(tuple(variables[name] for name in sensitive))
    data = conform_to_schema(raw.frame, schema, MissingPolicy.KEEP)
    found = measure_released_file({name: shown[name] for name in known}, data, sensitive)
    return ReleasedFileView(file, found, limits, tuple(name for name in columns if name not in variables))


def _schema_of_recipe(recipe: str) -> Schema:
    """Return the variables of a recipe; none without one."""
    if not recipe:
        return Schema(())
    from sfumato.engine.recipe.recipe import Recipe

    from ..plan.recipe_files import read_recipe_files
    from ..recipes import find_recipe

    found = find_recipe(recipe)
    return Recipe.from_table(read_recipe_files(found.table, found.data_directory)).schema


def _variable(column: ColumnProfile, declared: Schema) -> Variable:
    """Return a column as it was guessed, with the missing codes that the recipe declares."""
    variable = column.variable
    own = declared[variable.name].missing if variable.name in declared.names else ()
    # An identifier would not enter a table of values; here it is only counted.
    return replace(variable, role=Role.OTHER, missing=tuple(dict.fromkeys((*variable.missing, *own))))
