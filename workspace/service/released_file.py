"""Measures of one anonymised file without the confidential one; nothing is stored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engine.data.schema import MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.partition.released_file import measure_released_file
from sfumato.engine.wording import split_names

from ..ingest.columns import ColumnProfile, profile_columns
from ..reporting.released_file import AnonymityLimits, ReleasedFileView, released_file_document

if TYPE_CHECKING:
    from ..ingest.dialects import DetectedFormat
    from ..ingest.raw_tables import RawTable

FIRST_VALUES = 3
"""Values of a column that are shown before it is chosen."""
KNOWN_RULE = "name the variables that an intruder may know, such as --known age,sex"


def evaluate_released_file(
    file: str, known: Sequence[str], sensitive: Sequence[str], limits: AnonymityLimits, recipe: str = ""
) -> ReleasedFileView:
    """Measure the classes of one released file by the named variables, or by the roles of a recipe.

    ``known`` and ``sensitive`` are the values of the options: names, or names with commas between them. Raises BadInput.
    """
    from sfumato.engine.data.microdata import conform_to_schema

    declared = _schema_of_recipe(recipe)
    if not known and not declared.names_by_role(Role.QUASI_IDENTIFIER):
        raise BadInput("--known", KNOWN_RULE)
    # names with a comma in them are known to be such once the file is read; their columns are then read when needed
    needed = frozenset((*split_names(sensitive), *declared.names_by_role(Role.SENSITIVE)))
    raw, detection = _read_released_table(file, needed)
    known = split_names(known, raw.names) or declared.names_by_role(Role.QUASI_IDENTIFIER)
    sensitive = split_names(sensitive, raw.names)
    sensitive = sensitive or tuple(name for name in declared.names_by_role(Role.SENSITIVE) if name not in known)
    if not known:
        raise BadInput("--known", KNOWN_RULE)
    if twice := sorted(set(known) & set(sensitive)):
        raise BadInput("--sensitive", f'"{twice[0]}" is known too; leave it out of one')
    if not sensitive and (limits.l is not None or limits.t is not None):
        raise BadInput("--sensitive", "l and t limit a sensitive variable; name it, such as --sensitive income")
    for option, names in (("--known", known), ("--sensitive", sensitive)):
        for name in names:
            if name not in raw.names:
                raise BadInput(option, f'"{file}" has no column "{name}"{near_miss_hint(name, raw.names)}')
    columns = {column.variable.name: column for column in profile_columns(raw, sensitive)}
    variables = {name: _variable(columns[name], declared) for name in sensitive}
    shown = _written_table(file, raw, detection)
    schema = Schema(tuple(variables[name] for name in sensitive))
    data = conform_to_schema(raw.frame_of_columns(schema.names), schema, MissingPolicy.KEEP)
    found = measure_released_file(shown.written_columns(known), data, sensitive)
    return ReleasedFileView(file, found, limits, tuple(name for name in raw.names if name not in {*known, *sensitive}))


def released_file_columns(file: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of a released file, each with the values of its first records. Raises BadInput."""
    raw, detection = _read_released_table(file, frozenset())
    rows = () if detection is None else detection.rows[:FIRST_VALUES]
    if detection is not None and len(detection.header) == len(raw.names):
        return {name: tuple(row[place] for row in rows) for place, name in enumerate(raw.names)}
    return dict.fromkeys(raw.names, ())


def _read_released_table(file: str, needed: frozenset[str]) -> tuple[RawTable, DetectedFormat | None]:
    """Return the table of a file of which the ``needed`` columns are read, and how its text was read. Raises BadInput."""
    from ..ingest.files import find_source
    from .importing import EVERYTHING, read_source

    raw, detection = read_source(find_source(file, place="--released"), {}, EVERYTHING, "--released", needed)
    if not raw.records:
        raise BadInput("--released", f'"{file}" has no records')
    return raw, detection


def write_released_file_page(view: ReleasedFileView, path: Path, *, force: bool = False) -> int:
    """Write the page about a released file, Markdown if its name ends in .md; return its number of bytes.

    A file that is there stays, unless ``force``. Only its owner can read the page. Raises BadInput.
    """
    check_page_path(path, force=force)
    page = released_file_document(view)
    content = (page.to_markdown() if path.suffix == ".md" else page.to_html()).encode()
    # without force, a file that was made since it was looked for stays
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as opened:
        opened.write(content)
    return len(content)


def check_page_path(path: Path, *, force: bool = False) -> None:
    """Raise BadInput unless a page can be written to a path."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput("-o", f'"{path}" is not a file in a directory that exists; name one, such as report.html')
    if path.exists() and not force:
        raise BadInput("-o", f'"{path}" exists; name another file, or add --force to replace it')


def _written_table(file: str, raw: RawTable, detection: DetectedFormat | None) -> RawTable:
    """Return the table whose written columns are wanted: a sheet is read again where missing codes were taken out of it."""
    from ..ingest.files import find_source, is_text_source, read_table

    if detection is None or not detection.format.missing:
        return raw
    source = find_source(file, place="--released")
    if is_text_source(source):
        return raw
    return read_table(source, place="--released", form=replace(detection.format, missing=()))


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
